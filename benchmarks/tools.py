"""What each oversampling tool writes, with the real parents of every row: the releases of the atlas.

imbalanced-learn's samplers run as they are. The other tools are imitated from what their papers and manuals state;
``TOOLS`` says of each what is known and what is assumed. Rows come in the order in which the tool writes them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from imblearn.combine import SMOTEENN, SMOTETomek
from imblearn.over_sampling import ADASYN, SMOTE, SMOTENC, SVMSMOTE, BorderlineSMOTE, KMeansSMOTE
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from benchmarks.recon_cases import gaussian_copula

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

K_NEIGHBORS = 5
# A column of no more values than this is a category to SMOTENC.
_CATEGORIES = 8
# Hash tables, and how many records a bucket holds on average, in the imitation of Spark's hashing.
_TABLES, _BUCKET = 3, 40


@dataclass(frozen=True)
class Release:
    """Synthetic rows of one class.

    Parameters
    ----------
    rows : array (n, m)
        The rows, in the order in which the tool writes them.
    first, second : array (n, m)
        The real records from which each was made; NaN where it was made otherwise.
    real : array (r, m)
        The real records of the class.
    others : array
        The rows of the other classes, which are released as they are.
    categories : tuple of int
        The columns that are categories.
    """

    rows: Floats
    first: Floats
    second: Floats
    real: Floats
    others: Floats
    categories: tuple[int, ...] = ()

    def frame(self, rows: Floats | None = None) -> pd.DataFrame:
        """Return rows as the file has them: categories are text."""
        frame = pd.DataFrame(self.rows if rows is None else rows)
        for column in self.categories:
            frame[column] = "c" + frame[column].astype(int).astype(str)
        return frame

    def numbers(self) -> Release:
        """Return the release without its categories."""
        kept = np.setdiff1d(np.arange(self.rows.shape[1]), np.array(self.categories, dtype=int))
        names = ("rows", "first", "second", "real", "others")
        return replace(self, **{name: getattr(self, name)[:, kept] for name in names}, categories=())

    def take(self, order: Ints) -> Release:
        """Return some of the rows, or all in another order."""
        return replace(self, rows=self.rows[order], first=self.first[order], second=self.second[order])


Maker = Callable[[Floats, Bools, int, int], Release]


@dataclass(frozen=True)
class Tool:
    """A tool, and how sure its imitation is.

    Parameters
    ----------
    make : callable
        Returns a release of a table: ``make(X, minority, n_rows, seed)``.
    family : str
        What can be told of it from numbers alone: one common gap for all columns of a row ("line"), a gap for each
        ("box"), or none.
    basis : str
        What the imitation rests on.
    """

    make: Maker
    family: str
    basis: str


# --------------------------------------------------------------------------------------- imbalanced-learn


def _remembering(sampler: type, **settings: Any) -> Any:
    """Return an imbalanced-learn sampler that keeps the parents of its rows, in ``parents_``."""

    class Remembering(sampler):  # type: ignore[misc]
        def _generate_samples(
            self, X: Any, nn_data: Any, nn_num: Any, rows: Any, cols: Any, *rest: Any
        ) -> Any:
            kept = self.__dict__.setdefault("parents_", [])
            ends = rows, nn_num[rows, cols]
            kept.append(ends if sampler is SMOTENC else (X[ends[0]], nn_data[ends[1]]))
            return super()._generate_samples(X, nn_data, nn_num, rows, cols, *rest)

    Remembering.__init__.__signature__ = _signature(sampler)  # type: ignore[attr-defined]
    return Remembering(**settings)


def _signature(sampler: type) -> Any:
    import inspect

    return inspect.signature(sampler.__init__)


def _resampled(sampler: Any, X: Floats, y: NDArray[np.int64]) -> Floats:
    with warnings.catch_warnings():
        # A minority that grows larger than the majority, where many rows are asked for.
        warnings.simplefilter("ignore")
        return np.asarray(sampler.fit_resample(X, y)[0], dtype=float)


def _imblearn(sampler: type, **settings: Any) -> Maker:
    def make(X: Floats, minority: Bools, n_rows: int, seed: int) -> Release:
        target = {1: int(minority.sum()) + n_rows}
        known = _remembering(sampler, sampling_strategy=target, random_state=seed, **settings)
        rows = _resampled(known, X, minority.astype(int))[len(X) :]
        first, second = (np.vstack(part) for part in zip(*known.parents_, strict=True))
        return Release(rows, first, second, X[minority], X[~minority])

    return make


def _cleaned(combined: type) -> Maker:
    """SMOTE followed by the removal of rows among the other class: fewer synthetic rows, in their order."""

    def make(X: Floats, minority: Bools, n_rows: int, seed: int) -> Release:
        y = minority.astype(int)
        made = _imblearn(SMOTE, k_neighbors=K_NEIGHBORS)(X, minority, n_rows, seed)
        smote = SMOTE(
            k_neighbors=K_NEIGHBORS, random_state=seed, sampling_strategy={1: minority.sum() + n_rows}
        )
        sampler = combined(
            smote=smote, random_state=seed, sampling_strategy={1: int(minority.sum()) + n_rows}
        )
        _resampled(sampler, X, y)
        cleaner = sampler.enn_ if combined is SMOTEENN else sampler.tomek_
        kept = cleaner.sample_indices_
        return made.take(kept[kept >= len(X)] - len(X))

    return make


def _adasyn(X: Floats, minority: Bools, n_rows: int, seed: int) -> Release:
    sampler = ADASYN(
        n_neighbors=K_NEIGHBORS, random_state=seed, sampling_strategy={1: int(minority.sum()) + n_rows}
    )
    rows = _resampled(sampler, X, minority.astype(int))[len(X) :]
    real = X[minority]
    # It keeps no parents: its draws are repeated, and must give its rows.
    among_all = NearestNeighbors(n_neighbors=K_NEIGHBORS + 1).fit(X).kneighbors(real, return_distance=False)
    hard = (~minority[among_all[:, 1:]]).sum(axis=1) / K_NEIGHBORS
    counts = np.rint(hard / hard.sum() * n_rows).astype(int)
    near = NearestNeighbors(n_neighbors=K_NEIGHBORS + 1).fit(real).kneighbors(real, return_distance=False)
    rng = np.random.RandomState(seed)
    base = np.repeat(np.arange(len(real)), counts)
    other = near[base, 1 + rng.choice(K_NEIGHBORS, size=len(base))]
    share = rng.uniform(size=(len(base), 1))
    if not np.array_equal(rows, real[base] + share * (real[other] - real[base])):
        raise AssertionError("the draws of ADASYN were not repeated")
    return Release(rows, real[base], real[other], real, X[~minority])


def _smotenc(X: Floats, minority: Bools, n_rows: int, seed: int) -> Release:
    """SMOTENC on a table whose columns of few values are categories; its narrowest column becomes one if none is."""
    X = X.copy()
    kinds = np.array([len(np.unique(column)) for column in X.T])
    categories = np.flatnonzero(kinds <= _CATEGORIES)[: X.shape[1] - 2]
    if not len(categories):
        categories = np.array([kinds.argmin()])
        edges = np.quantile(X[:, categories[0]], (0.25, 0.5, 0.75))
        X[:, categories[0]] = np.searchsorted(edges, X[:, categories[0]])
    if (
        X.shape[1] - len(categories) < 2
        or len(np.unique(np.delete(X, categories, axis=1), axis=0)) < len(X) / 10
    ):
        raise ValueError("nearly all columns are categories, so nothing is interpolated")
    for column in categories:
        X[:, column] = np.unique(X[:, column], return_inverse=True)[1]
    known = _remembering(
        SMOTENC,
        categorical_features=categories.tolist(),
        k_neighbors=K_NEIGHBORS,
        sampling_strategy={1: int(minority.sum()) + n_rows},
        random_state=seed,
    )
    rows = _resampled(known, X, minority.astype(int))[len(X) :]
    [(base, other)] = known.parents_
    real = X[minority]
    return Release(rows, real[base], real[other], real, X[~minority], tuple(map(int, categories)))


def _multi_class(X: Floats, minority: Bools, n_rows: int, seed: int) -> Release:
    """SMOTE on three classes, of which two are oversampled one after the other; the rows of the asked one."""
    rng = np.random.default_rng(seed)
    y = minority.astype(int)
    y[
        rng.choice(np.flatnonzero(~minority), size=min(minority.sum(), (~minority).sum() // 3), replace=False)
    ] = 2
    target = {label: int((y == label).sum()) + n_rows for label in (1, 2)}
    known = _remembering(SMOTE, sampling_strategy=target, random_state=seed, k_neighbors=K_NEIGHBORS)
    rows = _resampled(known, X, y)[len(X) : len(X) + n_rows]
    return Release(rows, *known.parents_[0], X[minority], X[~minority])


# ------------------------------------------------------------------------------------------- other tools


def neighbors_of(real: Floats, k: int) -> Ints:
    """Return the k nearest other records of each, nearest first."""
    k = min(k, len(real) - 1)
    found = NearestNeighbors(n_neighbors=k + 1).fit(real).kneighbors(real, return_distance=False)
    # Of equal records any may come first; none is its own neighbour.
    own = found == np.arange(len(real))[:, None]
    own[~own.any(axis=1), -1] = True
    return np.asarray(found[~own].reshape(len(real), k), dtype=np.int64)


def _between(
    X: Floats,
    minority: Bools,
    base: Ints,
    other: Ints,
    rng: np.random.Generator,
    *,
    per_attribute: bool = False,
    share: Floats | None = None,
) -> Release:
    real = X[minority]
    if share is None:
        share = rng.random((len(base), X.shape[1] if per_attribute else 1))
    rows = real[base] + share * (real[other] - real[base])
    return Release(rows, real[base], real[other], real, X[~minority])


def _per_record(n_rows: int, n_records: int) -> int:
    return max(1, round(n_rows / n_records))


def _base_by_base(*, shuffled: bool = False, per_attribute: bool = False, scaled: bool = False) -> Maker:
    """As many rows of each record, one record after the other."""

    def make(X: Floats, minority: Bools, n_rows: int, seed: int) -> Release:
        rng, real = np.random.default_rng(seed), X[minority]
        spread = np.ptp(real, axis=0)
        metric = real / np.where(spread > 0, spread, 1.0) if scaled else real
        near = neighbors_of(metric, K_NEIGHBORS)
        order = rng.permutation(len(real)) if shuffled else np.arange(len(real))
        base = np.repeat(order, _per_record(n_rows, len(real)))
        other = near[base, rng.integers(0, near.shape[1], len(base))]
        return _between(X, minority, base, other, rng, per_attribute=per_attribute)

    return make


def _themis(X: Floats, minority: Bools, n_rows: int, seed: int) -> Release:
    rng, n = np.random.default_rng(seed), int(minority.sum())
    near = neighbors_of(X[minority], K_NEIGHBORS)
    counts = np.full(n, n_rows // n)
    counts[rng.permutation(n)[: n_rows % n]] += 1
    base = np.repeat(np.arange(n), counts)
    return _between(X, minority, base, near[base, rng.integers(0, near.shape[1], len(base))], rng)


def _spark(X: Floats, minority: Bools, n_rows: int, seed: int) -> Release:
    """Neighbours among the records that share a bucket of a random projection; rows come from partitions."""
    rng, real = np.random.default_rng(seed), X[minority]
    n, spread = len(real), X[minority].std(axis=0)
    scaled = real / np.where(spread > 0, spread, 1.0)
    same = np.zeros((n, n), dtype=bool)
    for _ in range(_TABLES):
        way = rng.normal(size=X.shape[1])
        place = scaled @ (way / np.linalg.norm(way))
        bucket = np.floor((place - place.min()) / max(np.ptp(place) * _BUCKET / n, 1e-12))
        same |= bucket[:, None] == bucket
    distance = np.linalg.norm(scaled[:, None] - scaled, axis=2)
    distance[~same] = np.inf
    np.fill_diagonal(distance, np.inf)
    near = np.argsort(distance, axis=1)[:, :K_NEIGHBORS]
    found = np.isfinite(np.take_along_axis(distance, near, axis=1)).sum(axis=1)
    base = np.repeat(np.flatnonzero(found), _per_record(n_rows, n))
    other = near[base, (rng.random(len(base)) * found[base]).astype(int)]
    order = rng.permutation(len(base))
    return _between(X, minority, base[order], other[order], rng)


def _mixup(X: Floats, minority: Bools, n_rows: int, seed: int) -> Release:
    rng, n = np.random.default_rng(seed), int(minority.sum())
    base = rng.integers(0, n, n_rows)
    other = (base + rng.integers(1, n, n_rows)) % n
    return _between(X, minority, base, other, rng)


_LIBRARY = "imbalanced-learn itself"
TOOLS: dict[str, Tool] = {
    "SMOTE": Tool(_imblearn(SMOTE, k_neighbors=K_NEIGHBORS), "line", _LIBRARY),
    "SMOTE, k = 1": Tool(
        _imblearn(SMOTE, k_neighbors=1),
        "line",
        f"{_LIBRARY}; stands for Azure's module too, of which the manual states the share and the neighbours only",
    ),
    "SMOTE, 3 classes": Tool(_multi_class, "line", _LIBRARY),
    "SMOTEENN": Tool(_cleaned(SMOTEENN), "line", _LIBRARY),
    "SMOTETomek": Tool(_cleaned(SMOTETomek), "line", _LIBRARY),
    "SMOTENC": Tool(_smotenc, "line", _LIBRARY),
    "BorderlineSMOTE-1": Tool(
        _imblearn(BorderlineSMOTE, kind="borderline-1", k_neighbors=K_NEIGHBORS), "line", _LIBRARY
    ),
    "BorderlineSMOTE-2": Tool(
        _imblearn(BorderlineSMOTE, kind="borderline-2", k_neighbors=K_NEIGHBORS), "line", _LIBRARY
    ),
    "SVMSMOTE": Tool(_imblearn(SVMSMOTE, k_neighbors=K_NEIGHBORS), "line", _LIBRARY),
    "ADASYN": Tool(_adasyn, "line", _LIBRARY),
    "KMeansSMOTE": Tool(
        _imblearn(KMeansSMOTE, k_neighbors=2, cluster_balance_threshold=0.01, kmeans_estimator=4),
        "line",
        f"{_LIBRARY}, with a low threshold, without which it finds no cluster in most tables",
    ),
    "smotefamily": Tool(
        _base_by_base(shuffled=True),
        "line",
        "manual: dup_size rows of each record; as its listing shows, records in random order and one gap a row",
    ),
    "themis": Tool(
        _themis,
        "line",
        "manual: new rows for each record in turn; that the counts differ by one at most is assumed",
    ),
    "DMwR": Tool(
        _base_by_base(scaled=True),
        "line",
        "manual: perc.over / 100 rows of each record; neighbours on ranges and one gap a row are assumed",
    ),
    "Spark": Tool(
        _spark,
        "line",
        "descriptions: neighbours from random projections in buckets; rows in the order of partitions is assumed",
    ),
    "mixup": Tool(_mixup, "line", "paper: random pairs of a class, here with a uniform share"),
    "Weka, Chawla": Tool(
        _base_by_base(per_attribute=True),
        "box",
        "pseudo-code of Chawla et al. 2002: the gap is drawn for each attribute, record after record",
    ),
}


# ----------------------------------------------------------------------- tables that no tool interpolated


def _control(rows_of: Callable[[Floats, int, np.random.Generator], Floats]) -> Maker:
    def make(X: Floats, minority: Bools, n_rows: int, seed: int) -> Release:
        rng, real = np.random.default_rng(seed), X[minority]
        rows = rows_of(real, n_rows, rng)
        blank = np.full_like(rows, np.nan)
        return Release(rows, blank, blank, real, X[~minority])

    return make


def _jittered(real: Floats, n_rows: int, rng: np.random.Generator) -> Floats:
    rows = real[rng.integers(0, len(real), n_rows)]
    return rows + 0.05 * real.std(axis=0) * rng.normal(size=rows.shape)


def _copula(real: Floats, n_rows: int, rng: np.random.Generator) -> Floats:
    return gaussian_copula(real[rng.integers(0, len(real), n_rows)], rng)


CONTROLS: dict[str, Tool] = {
    "bootstrap": Tool(_control(lambda real, n, rng: real[rng.integers(0, len(real), n)]), "none", "copies"),
    "noise": Tool(_control(_jittered), "none", "copies with normal noise of a twentieth of the deviation"),
    "copula": Tool(_control(_copula), "none", "a Gaussian copula of the class's own values"),
    "independent columns": Tool(
        _control(lambda real, n, rng: rng.permuted(real[rng.integers(0, len(real), n)], axis=0)),
        "none",
        "each column drawn by itself",
    ),
}
