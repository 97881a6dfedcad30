"""Deep generators of other projects as baselines: CTGAN, TVAE and CopulaGAN, with their licence said aloud."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe._core.checks import check_count
from oversafe._core.errors import InputError, MissingExtraError, import_extra
from oversafe.data.schema import Schema
from oversafe.privacy.guarantee import Guarantee
from oversafe.protect.base import Synthesizer
from oversafe.protect.descriptions import PLAIN, described
from oversafe.protect.explanations import Explanation

LICENCE = (
    "{method} comes with the package '{package}', which is under the Business Source License 1.1 and restricts "
    "some commercial use; read its licence before you use the result outside a comparison"
)
_REASONS = (
    "the network is trained on the records without noise, and nothing bounds what one record changes in its output",
    "the ranges, categories and class counts are those of the data",
)
_LABEL = "label"
# Rows of the classes still wanted are drawn in so many rounds at most; a class the network never draws is told.
_ROUNDS = 50


_NETWORK = f"""{PLAIN}
epochs : int, default=300
    Passes over the table.
batch_size : int, default=500
    Rows per step; a multiple of 10.
guarantee_ : Guarantee
    None, and why; with the notice on the licence.
"""


@dataclass(eq=False, repr=False)
class _Generator(Synthesizer):
    """Trains a generator of another project on the coded table and draws rows of the wanted classes from it."""

    explanation = Explanation(
        "A fully synthetic table from a neural network of another project, whose licence (BUSL-1.1) restricts some "
        "commercial use; for comparisons.",
        "Nothing: the network is trained without noise.",
        "It can repeat what it has seen, above all rare records.",
    )

    _package: ClassVar[str]

    epochs: int = 300
    _: KW_ONLY
    batch_size: int = 500
    sampling_strategy: str | float | Mapping[Any, int] | None = None
    schema: Schema | None = None
    random_state: int | None = None

    def _fit(self, table: pd.DataFrame, labels: pd.Series) -> None:
        for name in ("epochs", "batch_size"):
            check_count(name, getattr(self, name))
        if self.batch_size % 10:
            raise InputError(f"batch_size = {self.batch_size} was given; use a multiple of 10, such as 500")
        self.schema_ = self._check_schema(table, self.schema)
        codes = self._read_classes(labels)
        self._check_class_sizes()
        notice = LICENCE.format(method=type(self).__name__, package=self._package)
        coded = self._encode(self.schema_.encode(self.schema_.conform(table)))
        coded[_LABEL] = codes
        discrete = [name for name in coded if name == _LABEL or not name.startswith("number")]
        # A seed of None would leave the networks with the global state, which others share.
        seed = int(np.random.default_rng(self.random_state).integers(2**31))
        self._model = self._train(coded, discrete, seed)
        warnings.warn(notice, UserWarning, stacklevel=3)
        self.guarantee_ = Guarantee.none(*_REASONS, notice)

    def _check_class_sizes(self) -> None:
        smallest = int(np.argmin(self.class_counts_))
        if self.class_counts_[smallest] < 2:
            raise InputError(
                f"class {str(self.classes_[smallest])!r} has 1 row, from which {type(self).__name__} can learn "
                "nothing but that row; leave the class out"
            )

    def _encode(self, matrix: NDArray[np.float64]) -> pd.DataFrame:
        """Return the table as the networks take it: whole numbers for categories, no gaps."""
        columns: dict[str, Any] = {}
        self._limits: dict[str, tuple[float, float]] = {}
        for i, column in enumerate(self.schema_):
            codes, gaps = matrix[:, i], np.isnan(matrix[:, i])
            if column.is_category:
                columns[f"category {i}"] = np.where(gaps, len(column.categories or ()), codes).astype(
                    np.int64
                )
                continue
            known = codes[~gaps] if (~gaps).any() else np.zeros(1)
            self._limits[f"number {i}"] = float(known.min()), float(known.max())
            # The networks cannot learn a column without any spread; it is put back afterwards.
            if known.min() < known.max():
                columns[f"number {i}"] = np.where(gaps, np.median(known), codes)
            if gaps.any():
                columns[f"missing {i}"] = gaps.astype(np.int64)
        return pd.DataFrame(columns)

    def _decode(self, drawn: pd.DataFrame) -> pd.DataFrame:
        codes = np.empty((len(drawn), len(self.schema_)))
        for i, column in enumerate(self.schema_):
            if column.is_category:
                position = drawn[f"category {i}"].to_numpy(dtype=np.float64)
                codes[:, i] = np.where(position == len(column.categories or ()), np.nan, position)
                continue
            low, high = self._limits[f"number {i}"]
            codes[:, i] = low
            if f"number {i}" in drawn:
                codes[:, i] = np.clip(drawn[f"number {i}"].to_numpy(dtype=np.float64), low, high)
            if f"missing {i}" in drawn:
                codes[drawn[f"missing {i}"].to_numpy(dtype=np.int64) == 1, i] = np.nan
        return self.schema_.decode(codes)

    def _draw(self, classes: NDArray[np.int64], rng: np.random.Generator) -> pd.DataFrame:
        wanted = np.bincount(classes, minlength=len(self.classes_))
        parts: list[list[pd.DataFrame]] = [[] for _ in wanted]
        missing = wanted.copy()
        self._reseed(int(rng.integers(2**31)))
        for _ in range(_ROUNDS):
            if not missing.any():
                break
            rare = int(np.argmax(missing / np.maximum(self.class_counts_, 1)))
            # As many as should hold the missing ones of the scarcest class, twice, and not without end.
            needed = 2 * missing[rare] * self.class_counts_.sum() / self.class_counts_[rare]
            drawn = self._sample_rows(int(np.clip(needed, 500, 200_000)), rare)
            found = drawn.pop(_LABEL).to_numpy(dtype=np.int64)
            for c in np.flatnonzero(missing):
                taken = drawn[found == c].head(missing[c])
                parts[c].append(taken)
                missing[c] -= len(taken)
        if missing.any():
            scarce = int(np.argmax(missing))
            raise InputError(
                f"{type(self).__name__} drew {wanted[scarce] - missing[scarce]} of the {wanted[scarce]} rows wanted "
                f"of class {str(self.classes_[scarce])!r}; train it with more epochs, or ask for fewer rows"
            )
        rows = pd.concat([part for of_class in parts for part in of_class], ignore_index=True)
        # The parts stand class by class; each row goes to where its class is wanted.
        order = np.empty(len(classes), dtype=np.int64)
        order[np.argsort(classes, kind="stable")] = np.arange(len(classes))
        return self._decode(rows.iloc[order].reset_index(drop=True))

    @abstractmethod
    def _train(self, coded: pd.DataFrame, discrete: list[str], seed: int) -> Any:
        """Return the trained network."""

    @abstractmethod
    def _reseed(self, seed: int) -> None:
        """Make the next draws repeatable."""

    @abstractmethod
    def _sample_rows(self, n: int, rare: int) -> pd.DataFrame:
        """Return n drawn rows of any class, more of the given one where the network can be asked for it."""


@described(_NETWORK)
class CTGAN(_Generator):
    """Draw rows from a conditional generative adversarial network (Xu et al. 2019), for comparisons.

    The package ``ctgan`` (extra ``baselines``) does the work. It is under the Business Source License 1.1, which
    restricts some commercial use; a warning says so at every fit.

    Parameters
    ----------
    {epochs, batch_size, sampling_strategy, schema, random_state}

    Attributes
    ----------
    {guarantee_, schema_, classes_, class_counts_}
    """

    method_name = "ctgan"
    extra = "baselines"

    _package = "ctgan"

    def _train(self, coded: pd.DataFrame, discrete: list[str], seed: int) -> Any:
        kind = getattr(import_extra("ctgan", "baselines", type(self).__name__), type(self).__name__)
        model = kind(epochs=self.epochs, batch_size=self.batch_size)
        model.set_random_state(seed)
        with warnings.catch_warnings():
            # The mixture models of its preprocessing warn about every column that they fit badly.
            warnings.simplefilter("ignore")
            model.fit(coded, discrete)
        return model

    def _reseed(self, seed: int) -> None:
        self._model.set_random_state(seed)

    def _sample_rows(self, n: int, rare: int) -> pd.DataFrame:
        # Half of the rows as they come: the condition raises a class's share, at the cost of the others.
        half = n // 2
        return pd.concat(
            [self._model.sample(n - half), self._model.sample(half, _LABEL, rare)], ignore_index=True
        )


@described(_NETWORK)
class TVAE(CTGAN):
    """Draw rows from a variational autoencoder for tables (Xu et al. 2019), for comparisons.

    The package ``ctgan`` (extra ``baselines``) does the work. It is under the Business Source License 1.1, which
    restricts some commercial use; a warning says so at every fit.

    Parameters
    ----------
    {epochs, batch_size, sampling_strategy, schema, random_state}

    Attributes
    ----------
    {guarantee_, schema_, classes_, class_counts_}
    """

    method_name = "tvae"

    def _sample_rows(self, n: int, rare: int) -> pd.DataFrame:
        return self._model.sample(n)


@described(_NETWORK)
class CopulaGAN(_Generator):
    """Draw rows from CTGAN on columns made normal by their margins (SDV's CopulaGAN), for comparisons.

    The package ``sdv`` does the work; no extra brings it, because it holds other packages back: install it by
    itself. It is under the Business Source License 1.1, which restricts some commercial use; a warning says so
    at every fit.

    Parameters
    ----------
    {epochs, batch_size, sampling_strategy, schema}
    random_state : int, optional
        Makes the samples repeatable, as far as SDV does.

    Attributes
    ----------
    {guarantee_, schema_, classes_, class_counts_}
    """

    method_name = "copulagan"
    extra = "sdv"

    _package = "sdv"

    def _train(self, coded: pd.DataFrame, discrete: list[str], seed: int) -> Any:
        try:
            from sdv.metadata import Metadata
            from sdv.single_table import CopulaGANSynthesizer
        except ImportError as error:
            raise MissingExtraError(
                "CopulaGAN needs the package 'sdv', which no extra of oversafe brings; install it with: pip install sdv"
            ) from error
        import torch

        kinds = {
            name: {"sdtype": "categorical" if name in discrete else "numerical"} for name in coded.columns
        }
        metadata = Metadata.load_from_dict({"tables": {"table": {"columns": kinds}}})
        model = CopulaGANSynthesizer(metadata, epochs=self.epochs, batch_size=self.batch_size)
        with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
            warnings.simplefilter("ignore")
            torch.manual_seed(seed)
            model.fit(coded)
        return model

    def _reseed(self, seed: int) -> None:
        self._model._set_random_state(seed)

    def _sample_rows(self, n: int, rare: int) -> pd.DataFrame:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self._model.sample(num_rows=n)
