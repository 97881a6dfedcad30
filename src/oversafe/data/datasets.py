"""The benchmark data sets of the field, and a small medical one that needs no download."""

import difflib
import os
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from oversafe._core.errors import InputError
from oversafe.data.io.files import read_table, write_table


class Dataset(NamedTuple):
    """A table in two parts, so that ``X, y = load_dataset(name)`` works.

    Attributes
    ----------
    X : pandas.DataFrame
        The features.
    y : pandas.Series
        The labels. In sets with two classes 1 is the minority, except in ``breast_cancer`` whose labels are
        words.
    """

    X: pd.DataFrame
    y: pd.Series

    @property
    def frame(self) -> pd.DataFrame:
        """The whole table, with the label as last column."""
        return pd.concat([self.X, self.y], axis=1)


class _Source(NamedTuple):
    shape: tuple[int, int]
    fetch: Callable[[str, Path | None], pd.DataFrame] | None = None


def load_dataset(name: str) -> Dataset:
    """Return a data set by name, from this computer if it is there, else from its public source.

    ``<name>.parquet`` is looked for in the folder that the environment variable ``OVERSAFE_DATA`` names, then
    in the cache folder (``$XDG_CACHE_HOME/oversafe``, or ``~/.cache/oversafe``). Otherwise the set is
    downloaded and kept in the cache folder, with its rows in the order of the source:

    - ``abalone``, ``abalone_19``, ``car_eval_34``, ``car_eval_4``, ``ecoli``, ``mammography``,
      ``solar_flare_m0``, ``yeast_me2``: imbalanced-learn's collection [1]_, labels 0 and 1.
    - ``adult``, ``letter_recognition``, ``magic_gamma``: OpenML.
    - ``covertype_25k``, ``creditcard_fraud_21k``, ``dry_bean``, ``employee``, ``german_credit_20``,
      ``german_credit_9``, ``occupancy``, ``personal_loan``: cannot be downloaded.

    ``breast_cancer`` needs neither a file nor a network. It has the ten "mean" measurements of scikit-learn's
    copy of the Wisconsin diagnostic set, under names such as ``mean_radius``, and the label ``diagnosis``
    ("benign" or "malignant"). To make it imbalanced it has 300 of the 357 benign rows and 15 of the 212
    malignant ones: the first 300 and 15 of ``numpy.random.default_rng(0).permutation(569)`` that are of
    their class. ``breast_cancer_holdout`` has the other 254 patients. The rows keep their original order.

    Parameters
    ----------
    name : str
        One of the names above.

    Returns
    -------
    Dataset
        The features ``X`` and the labels ``y``.

    Raises
    ------
    InputError
        If the name is unknown, or the set is neither on this computer nor can be downloaded.

    References
    ----------
    .. [1] Z. Ding, "Diversified ensemble classifiers for highly imbalanced data learning and their
       application in bioinformatics", Georgia State University, 2011.

    Examples
    --------
    >>> X, y = load_dataset("breast_cancer")
    >>> X.shape
    (315, 10)
    >>> y.value_counts().to_dict()
    {'benign': 300, 'malignant': 15}
    """
    if name in _EMBEDDED:
        return _breast_cancer(holdout=name.endswith("_holdout"))
    if name not in _SOURCES:
        raise InputError(_unknown(name))
    cache = _cache_folder()
    named = os.environ.get("OVERSAFE_DATA")
    folders = [folder for folder in (Path(named) if named else None, cache) if folder is not None]
    for folder in folders:
        if (file := folder / f"{name}.parquet").exists():
            return _split(read_table(file))

    remedy = f"set OVERSAFE_DATA to a folder that has {name}.parquet"
    looked = " and ".join(repr(str(folder)) for folder in folders) or "no folder, for want of a home"
    source = _SOURCES[name]
    if source.fetch is None:
        raise InputError(f"the data set {name!r} is not in {looked} and cannot be downloaded; {remedy}")
    try:
        frame = source.fetch(name, cache)
    # Besides the network's own errors: a page that is no data, and data that is not what it was.
    except (OSError, ValueError, LookupError, EOFError, tarfile.TarError) as error:
        raise InputError(
            f"the data set {name!r} is not in {looked} and its download failed ({_reason(error)}); {remedy}"
        ) from error
    if frame.shape != source.shape:
        raise InputError(
            f"the download of {name!r} has {frame.shape[0]} rows and {frame.shape[1]} columns instead of "
            f"{source.shape[0]} and {source.shape[1]}; {remedy}"
        )
    _keep(frame, name, cache)
    return _split(frame)


def _split(frame: pd.DataFrame) -> Dataset:
    return Dataset(frame.drop(columns="target"), frame["target"])


def _unknown(name: str) -> str:
    names = sorted([*_EMBEDDED, *_SOURCES])
    near = difflib.get_close_matches(str(name), names, n=1)
    meant = f" (did you mean {near[0]!r}?)" if near else ""
    return f"there is no data set {name!r}{meant}; choose one of {', '.join(names)}"


def _reason(error: BaseException) -> str:
    reason = getattr(error, "reason", None) or error
    return str(reason).partition("\n")[0].rstrip(".") or type(error).__name__


def _cache_folder() -> Path | None:
    if named := os.environ.get("XDG_CACHE_HOME"):
        return Path(named) / "oversafe"
    try:
        return Path.home() / ".cache" / "oversafe"
    except RuntimeError:
        return None


def _keep(frame: pd.DataFrame, name: str, cache: Path | None) -> None:
    if cache is not None:
        # Where it cannot be kept, it is downloaded again next time.
        with suppress(OSError, InputError):
            cache.mkdir(parents=True, exist_ok=True)
            write_table(frame, cache / f"{name}.parquet")


_EMBEDDED = ("breast_cancer", "breast_cancer_holdout")


def _breast_cancer(*, holdout: bool) -> Dataset:
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer(as_frame=True)
    labels = np.asarray(bunch.target_names)[bunch.target]
    order = np.random.default_rng(0).permutation(len(labels))
    chosen = np.concatenate(
        [order[labels[order] == label][:count] for label, count in (("benign", 300), ("malignant", 15))]
    )
    rows = np.setdiff1d(order, chosen) if holdout else np.sort(chosen)
    means = [column for column in bunch.data.columns if column.startswith("mean ")]
    X = bunch.data.loc[rows, means].reset_index(drop=True)
    X.columns = [column.replace(" ", "_") for column in means]
    return Dataset(X, pd.Series(labels[rows].astype(str), name="diagnosis", dtype="str"))


# Downloads


def _one_hot(**levels: str) -> list[str]:
    return [f"{name}_{level}" for name, text in levels.items() for level in text.split()]


_ABALONE = [
    *_one_hot(sex="F I M"),
    "length",
    "diameter",
    "height",
    "whole_weight",
    "shucked_weight",
    "viscera_weight",
    "shell_weight",
]
_CAR_EVAL = _one_hot(
    buying="high low med vhigh",
    maint="high low med vhigh",
    doors="2 3 4 5more",
    persons="2 4 more",
    lug_boot="big med small",
    safety="high low med",
)
_SOLAR_FLARE = _one_hot(
    **{"class": "B C D E F H"},
    largest_spot_size="A H K R S X",
    spot_distribution="C I O X",
    activity="2 1",
    evolution="2 3 1",
    prev_24h_activity="2 3 1",
    historically_complex="2 1",
    became_hist_complex="2 1",
    area="2 1",
    area_largest_spot="2 1",
)
# The collection has no column names.
_COLUMNS = {
    "abalone": _ABALONE,
    "abalone_19": _ABALONE,
    "car_eval_34": _CAR_EVAL,
    "car_eval_4": _CAR_EVAL,
    "ecoli": ["mcg", "gvh", "lip", "chg", "aac", "alm1", "alm2"],
    "mammography": ["attr1", "attr2", "attr3", "attr4", "attr5", "attr6"],
    "solar_flare_m0": _SOLAR_FLARE,
    "yeast_me2": ["mcg", "gvh", "alm", "mit", "erl", "pox", "vac", "nuc"],
}


def _fetch_imbalanced_learn(name: str, cache: Path | None) -> pd.DataFrame:
    from imblearn.datasets import fetch_datasets

    with _download_folder(cache) as folder:
        bunch = fetch_datasets(data_home=folder, filter_data=(name,), shuffle=False)[name]
    frame = pd.DataFrame(np.asarray(bunch.data, dtype=float), columns=_COLUMNS[name])
    return frame.assign(target=(np.asarray(bunch.target) == 1).astype("int8"))


def _fetch_adult(name: str, cache: Path | None) -> pd.DataFrame:
    frame, label = _fetch_openml(1590, cache)
    integers = ["age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
    for column in frame.columns.difference(integers):
        # OpenML reads the question mark as a missing value; here it is a category like the others.
        values = frame[column].astype(object).where(frame[column].notna(), "?").astype(str).str.strip()
        frame[column] = pd.Categorical(values, categories=sorted(values.unique()))
    frame[integers] = frame[integers].astype("int64")
    return frame.assign(target=label.str.startswith(">50K").astype("int8"))


def _fetch_letters(name: str, cache: Path | None) -> pd.DataFrame:
    frame, label = _fetch_openml(6, cache)
    return frame.astype("int64").assign(target=pd.Categorical(label, categories=sorted(label.unique())))


def _fetch_magic(name: str, cache: Path | None) -> pd.DataFrame:
    frame, label = _fetch_openml(1120, cache)
    frame.columns = [column.rstrip(":") for column in frame.columns]
    return frame.astype(float).assign(target=(label == "h").astype("int8"))


def _fetch_openml(number: int, cache: Path | None) -> tuple[pd.DataFrame, pd.Series]:
    from sklearn.datasets import fetch_openml

    with _download_folder(cache) as folder:
        bunch = fetch_openml(data_id=number, data_home=folder, as_frame=True)
    return bunch.data.copy(), bunch.target.astype(object).astype(str).str.strip()


@contextmanager
def _download_folder(cache: Path | None) -> Iterator[str]:
    """Give a folder for the archives, which hold more than one set and are worth keeping where possible."""
    if cache is not None:
        with suppress(OSError):
            (cache / "downloads").mkdir(parents=True, exist_ok=True)
        if os.access(cache / "downloads", os.W_OK):
            yield str(cache / "downloads")
            return
    with tempfile.TemporaryDirectory() as folder:
        yield folder


_SOURCES = {
    "abalone": _Source((4177, 11), _fetch_imbalanced_learn),
    "abalone_19": _Source((4177, 11), _fetch_imbalanced_learn),
    "adult": _Source((48842, 15), _fetch_adult),
    "car_eval_34": _Source((1728, 22), _fetch_imbalanced_learn),
    "car_eval_4": _Source((1728, 22), _fetch_imbalanced_learn),
    "covertype_25k": _Source((25000, 13)),
    "creditcard_fraud_21k": _Source((20796, 31)),
    "dry_bean": _Source((13611, 17)),
    "ecoli": _Source((336, 8), _fetch_imbalanced_learn),
    "employee": _Source((4653, 9)),
    "german_credit_20": _Source((1000, 21)),
    "german_credit_9": _Source((1000, 10)),
    "letter_recognition": _Source((20000, 17), _fetch_letters),
    "magic_gamma": _Source((19020, 11), _fetch_magic),
    "mammography": _Source((11183, 7), _fetch_imbalanced_learn),
    "occupancy": _Source((20560, 6)),
    "personal_loan": _Source((5000, 13)),
    "solar_flare_m0": _Source((1389, 33), _fetch_imbalanced_learn),
    "yeast_me2": _Source((1484, 9), _fetch_imbalanced_learn),
}
