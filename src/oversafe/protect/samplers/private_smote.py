"""PrivateSMOTE: rows that single people out are replaced by noisy mixtures of their neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import product
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import pandas_dtype

from oversafe._core.checks import check_choice, check_count
from oversafe._core.errors import InputError
from oversafe.data.column import Column
from oversafe.data.encode import column_values, domain_codes
from oversafe.data.schema import Schema
from oversafe.privacy.guarantee import SEEDED, Guarantee, check_epsilon
from oversafe.protect.anonymize.quasi_identifiers import SUGGESTED, chosen_columns, group_sizes, telling_set
from oversafe.protect.base import Sampler, check_labels
from oversafe.protect.explanations import Explanation
from oversafe.protect.margins import finite_codes
from oversafe.protect.samplers.neighbors import nearest_rows, standardised

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_BASIS = (
    "none: epsilon is the noise level of epsilon-PrivateSMOTE (Carvalho et al., Algorithm 1), "
    "not a bound that was proven for the release"
)
_NOT_PRIVATE = (
    "epsilon is a noise level and bounds nothing, because the noise is scaled by the difference between a record "
    "and its neighbour, which is itself private",
    "which rows are replaced depends on all the other records",
)
_KEPT = "the rows that were not high-risk are published unchanged"
_LABELS = "the class of every row is published unchanged"
_DOMAINS = "ranges and categories were read from the data"
_UNIFORM = "new values lie between a record's own value and a neighbour's, so the release narrows down both"

# How often a number that came out as its own source is drawn again before it is moved by one step.
_REDRAWS = 8
# A whole number with fewer values than this may equal its source: never to be equal would tell what it was.
_FEW_VALUES = 10


@dataclass(frozen=True)
class Variant:
    """One release of a table, and the settings that made it.

    Parameters
    ----------
    settings : dict
        ``epsilon``, ``quasi_identifiers``, ``k_neighbors`` and ``n_copies``.
    X, y
        The release, in the form in which the table was given.
    guarantee : Guarantee
        What it promises.
    """

    settings: dict[str, Any]
    X: Any
    y: Any
    guarantee: Guarantee


@dataclass(frozen=True)
class _Searched:
    """A table with the neighbours of the rows that any of the wanted variants replaces."""

    table: pd.DataFrame
    codes: list[FloatArray]
    place: IntArray
    neighbors: IntArray


@dataclass(eq=False, repr=False)
class PrivateSMOTE(Sampler):
    """Replace the rows that single people out by noisy mixtures of their neighbours (Carvalho et al.).

    A row is high-risk when fewer than ``k_anonymity`` rows share its combination of quasi-identifiers. Each
    is taken out and ``n_copies`` synthetic rows come in its place, with its label; the other rows stay
    as they are. The neighbours are the nearest rows of the whole table, whatever their class, on one-hot,
    standardised features. Each value is made by itself, with a neighbour of its own, drawn at random:

    - a number is a + Laplace(0, 1 / epsilon) (b - a), with the column's standard deviation in place of b - a
      where both are equal. The noise is drawn again until the result lies in the column's range, and
      differs from its source after rounding;
    - a category is drawn from the different ones among the neighbours, or from all when they agree;
    - a number is missing when the drawn neighbour's is; where only the row's own is missing, the
      neighbour's takes its place, with noise of the standard deviation.

    Parameters
    ----------
    epsilon : float or None, default=1.0
        The noise level: smaller is noisier. **It is not a differential-privacy guarantee**, see
        ``guarantee_``. None is the method's ancestor, with uniform random numbers in place of Laplace noise.
    quasi_identifiers : list of column names or positions, optional
        What an outsider may know of a person. When not given, the set of up to four columns that singles
        out most rows is grown from the table; see :func:`suggest_quasi_identifiers`.
    k_anonymity : int, default=3
        A combination that fewer rows than this share is high-risk.
    k_neighbors : int, default=5
        How many neighbours a row has.
    n_copies : int, default=1
        How many synthetic rows replace one.
    synthesize : {"high-risk", "all"}, default="high-risk"
        Which rows to replace.
    random_state : int, optional
        Makes the result repeatable, for experiments.
    categories : {"published", "neighbors"}, default="published"
        How a category is drawn. "published" is the paper's rule, above: the different ones are equally
        likely, and where all neighbours agree any category of the column is. "neighbors" takes the drawn
        neighbour's own, as SMOTE would: rare categories stay rare, which costs a classifier about half as much.
    n_jobs : int, optional
        Number of threads of the neighbour search, as in joblib.
    schema : Schema, optional
        What the columns are; read from the table when not given.

    Attributes
    ----------
    guarantee_ : Guarantee
        What the result promises: nominal, with the reasons.
    schema_ : Schema
        What the feature columns are.
    quasi_identifiers_ : tuple of str
        The columns that decided which rows are high-risk.
    high_risk_ : array of bool
        Which rows of the table were.
    source_ : array of int
        The row of the table that each row of the result is, or replaces. Not to be published.
    synthetic_ : array of bool
        Which rows of the result are synthetic. Not to be published.
    sampling_strategy_ : dict
        The rows of each class in the result.

    See Also
    --------
    suggest_quasi_identifiers : Ranks sets of columns by how many rows they single out.
    KAnonymizer : Makes combinations of values common instead.

    Notes
    -----
    The rows of the result are in random order, so that neither copies of one source stand together nor
    synthetic rows apart.

    References
    ----------
    .. [1] Carvalho, Moniz, Antunes and Chawla, "Differentially-Private Data Synthetisation for Efficient
       Re-Identification Risk Control", Section 3 and Algorithm 1.

    Examples
    --------
    >>> from oversafe.data import load_dataset
    >>> from oversafe.protect import PrivateSMOTE
    >>> X, y = load_dataset("breast_cancer")
    >>> sampler = PrivateSMOTE(epsilon=1.0, quasi_identifiers=list(X.columns[:2]), n_copies=2, random_state=0)
    >>> X_new, y_new = sampler.fit_resample(X, y)
    >>> len(X_new) - len(X) == int(sampler.high_risk_.sum())
    True
    >>> sampler.guarantee_.status
    'nominal'
    """

    method_name = "private-smote"
    explanation = Explanation(
        "Rows whose quasi-identifiers fewer than k_anonymity rows share are replaced by noisy mixtures of their "
        "neighbours; the other rows stay as they are.",
        "No released number of a replaced row in a continuous column equals its source. Nothing else is proven.",
        "Epsilon is a noise level and not differential privacy: the noise depends on the data, the choice of rows "
        "too, the rows that are kept are published unchanged, and so are all labels. In tables of precise numbers "
        "an epsilon of 5 or more leaves people linkable.",
    )

    epsilon: float | None = 1.0
    quasi_identifiers: Sequence[Any] | None = None
    k_anonymity: int = 3
    k_neighbors: int = 5
    n_copies: int = 1
    synthesize: Literal["high-risk", "all"] = "high-risk"
    random_state: int | None = None
    _: KW_ONLY
    categories: Literal["published", "neighbors"] = "published"
    n_jobs: int | None = None
    schema: Schema | None = None

    def variants(
        self,
        X: Any,
        y: Any,
        *,
        epsilon: Sequence[float | None] | None = None,
        quasi_identifiers: Sequence[Sequence[Any] | None] | None = None,
        k_neighbors: Sequence[int] | None = None,
        n_copies: Sequence[int] | None = None,
    ) -> Iterator[Variant]:
        """Yield a release for every combination of the settings, with one neighbour search for all of them.

        A setting that is not given keeps the sampler's own value. With a ``random_state`` each is what
        a sampler with those settings makes.

        Parameters
        ----------
        X, y
            As for ``fit_resample``.
        epsilon, quasi_identifiers, k_neighbors, n_copies : sequence, optional
            The values to combine.
        """
        choices: dict[str, list[Any]] = {
            "epsilon": [self.epsilon] if epsilon is None else list(epsilon),
            "quasi_identifiers": (
                [self.quasi_identifiers] if quasi_identifiers is None else list(quasi_identifiers)
            ),
            "k_neighbors": [self.k_neighbors] if k_neighbors is None else list(k_neighbors),
            "n_copies": [self.n_copies] if n_copies is None else list(n_copies),
        }
        if empty := [name for name, values in choices.items() if not values]:
            raise InputError(f"{empty[0]} is an empty list; give at least one value, or leave it out")
        for values in product(*choices.values()):
            self._check(dict(zip(choices, values, strict=True)))
        table, labels, shape = self._read(X, y)
        check_labels(labels)
        table, codes = self._coded(table)
        sets = [self._at_risk(codes, given) for given in choices["quasi_identifiers"]]
        wanted = np.logical_or.reduce([replaced for _, replaced, _ in sets])
        searched = self._search(table, codes, wanted, max(choices["k_neighbors"]))
        for at, level, k, copies in product(
            range(len(sets)), choices["epsilon"], choices["k_neighbors"], choices["n_copies"]
        ):
            settings = {
                "epsilon": level,
                "quasi_identifiers": choices["quasi_identifiers"][at],
                "k_neighbors": k,
                "n_copies": copies,
            }
            made = self._make(searched, labels, sets[at], settings)
            released = shape.restore(*made)
            yield Variant(
                {**settings, "quasi_identifiers": self.quasi_identifiers_}, *released, self.guarantee_
            )

    def _resample(self, table: pd.DataFrame, labels: pd.Series) -> tuple[pd.DataFrame, pd.Series]:
        settings = {
            name: getattr(self, name) for name in ("epsilon", "quasi_identifiers", "k_neighbors", "n_copies")
        }
        self._check(settings)
        self._report("Reading the columns", 0.0)
        table, codes = self._coded(table)
        risk = self._at_risk(codes, self.quasi_identifiers)
        searched = self._search(table, codes, risk[1], self.k_neighbors)
        return self._make(searched, labels, risk, settings)

    def _check(self, settings: dict[str, Any]) -> None:
        if settings["epsilon"] is not None:
            check_epsilon(settings["epsilon"])
        check_count("k_anonymity", self.k_anonymity, 2)
        check_count("k_neighbors", settings["k_neighbors"], 1)
        check_count("n_copies", settings["n_copies"], 1)
        check_choice("synthesize", self.synthesize, ("high-risk", "all"))
        check_choice("categories", self.categories, ("published", "neighbors"))

    def _coded(self, table: pd.DataFrame) -> tuple[pd.DataFrame, list[FloatArray]]:
        self.schema_ = self._check_schema(table, self.schema)
        table = self.schema_.conform(table)
        return table, finite_codes(self.schema_, table)

    def _at_risk(
        self, codes: list[FloatArray], given: Sequence[Any] | None
    ) -> tuple[list[int], NDArray[np.bool_], NDArray[np.bool_]]:
        """Return the quasi-identifiers, the rows to replace and the high-risk rows."""
        columns = (
            telling_set(codes, self.k_anonymity) if given is None else chosen_columns(given, self.schema_)
        )
        high_risk = group_sizes([codes[i] for i in columns]) < self.k_anonymity
        replaced = np.ones_like(high_risk) if self.synthesize == "all" else high_risk
        return columns, replaced, high_risk

    def _search(
        self, table: pd.DataFrame, codes: list[FloatArray], wanted: NDArray[np.bool_], k: int
    ) -> _Searched:
        rows = np.flatnonzero(wanted)
        if len(table) <= k:
            raise InputError(
                f"the table has {len(table)} row{'s' * (len(table) != 1)}, and {k} neighbours of a row need "
                f"at least {k + 1}; ask for fewer neighbours"
            )
        neighbors = nearest_rows(
            standardised(self.schema_, codes),
            rows,
            k,
            n_jobs=self.n_jobs,
            progress=lambda share: self._report("Searching neighbours", 0.05 + 0.75 * share),
        )
        place = np.full(len(table), -1)
        place[rows] = np.arange(len(rows))
        return _Searched(table, codes, place, neighbors)

    def _make(
        self,
        searched: _Searched,
        labels: pd.Series,
        risk: tuple[list[int], NDArray[np.bool_], NDArray[np.bool_]],
        settings: dict[str, Any],
    ) -> tuple[pd.DataFrame, pd.Series]:
        columns, replaced, self.high_risk_ = risk
        self.quasi_identifiers_ = tuple(self.schema_.names[i] for i in columns)
        self.guarantee_ = self._guarantee(settings, all_replaced=bool(replaced.all()))
        rng = np.random.default_rng(self.random_state)
        kept = np.flatnonzero(~replaced)
        sources = np.repeat(np.flatnonzero(replaced), settings["n_copies"])
        near = searched.neighbors[searched.place[sources], : settings["k_neighbors"]]
        order = rng.permutation(len(kept) + len(sources))
        released = {}
        for i, (column, codes) in enumerate(zip(self.schema_, searched.codes, strict=True)):
            if not column.is_category:
                new = _new_numbers(column, codes, sources, near, settings["epsilon"], rng)
            elif self.categories == "published":
                new = _new_categories(column, codes, near, rng)
            else:
                new = codes[_one_of(near, rng)]
            fresh = column_values(column, new)
            old = searched.table[column.name].iloc[kept]
            joined = pd.concat([old, fresh.astype(old.dtype)], ignore_index=True)
            released[column.name] = joined.iloc[order].reset_index(drop=True)
            self._report("Making rows", 0.8 + 0.2 * (i + 1) / len(self.schema_))
        origin = np.concatenate([kept, sources])[order]
        self.source_ = origin
        self.synthetic_ = order >= len(kept)
        result = labels.iloc[origin].reset_index(drop=True)
        self.sampling_strategy_ = result.value_counts().to_dict()
        return pd.DataFrame(released), result

    def _guarantee(self, settings: dict[str, Any], *, all_replaced: bool) -> Guarantee:
        caveats = [_LABELS] if all_replaced else [_KEPT, _LABELS]
        if settings["quasi_identifiers"] is None and self.synthesize != "all":
            caveats.append(SUGGESTED)
        if settings["epsilon"] is None:
            return Guarantee.none(_UNIFORM, *caveats)
        if any(column.domain == "data" for column in self.schema_):
            caveats.append(_DOMAINS)
        if self.random_state is not None:
            caveats.append(SEEDED)
        return Guarantee(
            "nominal", float(settings["epsilon"]), 0.0, basis=_BASIS, caveats=(*_NOT_PRIVATE, *caveats)
        )


def _new_numbers(
    column: Column,
    codes: FloatArray,
    sources: IntArray,
    near: IntArray,
    epsilon: float | None,
    rng: np.random.Generator,
) -> FloatArray:
    """Return a number for each source: Algorithm 1, line 19, inside the column's range."""
    present = codes[~np.isnan(codes)]
    own = codes[sources]
    if not len(present):
        return own
    grid = _Grid.of(column, present)
    deviation = _deviation(present)
    # Line 17: every value has a neighbour of its own.
    other = codes[_one_of(near, rng)]
    base = np.clip(np.where(np.isnan(own), other, own), grid.low, grid.high)
    step = other - base
    step = np.where(step == 0, deviation * rng.choice([-1.0, 1.0], len(step)), step)
    new = grid.settle(_moved(base, step, grid, epsilon, rng))
    if not grid.must_differ:
        return new
    same = np.flatnonzero(new == own)
    for _ in range(_REDRAWS):
        if not len(same):
            return new
        new[same] = grid.settle(_moved(base[same], step[same], grid, epsilon, rng))
        same = same[new[same] == own[same]]
    new[same] = grid.beside(own[same], rng)
    return new


def _moved(
    base: FloatArray, step: FloatArray, grid: _Grid, epsilon: float | None, rng: np.random.Generator
) -> FloatArray:
    """Return base + weight * step, as if the weight were drawn again until that lies in the range.

    The result moves to one side or the other, with the probability that the noise has there before the end of
    the range, and then by a draw from that side alone; without loops, and at any epsilon.
    """
    reach = np.abs(step)
    forward, backward = grid.high - base, base - grid.low
    ahead, behind = np.where(step >= 0, forward, backward), np.where(step >= 0, backward, forward)
    share = rng.random(len(base))
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        if epsilon is None:
            # A step away from the range, which only the standard deviation's can be, turns back.
            turned = (ahead <= 0) & (behind > 0)
            way = np.minimum(reach, np.where(turned, behind, ahead)) * share
            signs = np.where(turned, -np.sign(step), np.sign(step))
        else:
            mass_ahead = -np.expm1(-epsilon * (ahead / reach))
            mass_behind = -np.expm1(-epsilon * (behind / reach))
            is_ahead = rng.random(len(base)) * (mass_ahead + mass_behind) < mass_ahead
            mass, most = np.where(is_ahead, mass_ahead, mass_behind), np.where(is_ahead, ahead, behind)
            drawn = -np.log1p(-share * mass) / epsilon * reach
            # With so little left to tell apart, the noise is even over the range.
            way = np.minimum(np.where(np.isfinite(drawn) & (mass > 1e-12), drawn, share * most), most)
            signs = np.where(is_ahead, np.sign(step), -np.sign(step))
    return base + signs * np.where(reach > 0, way, 0.0)


def _one_of(near: IntArray, rng: np.random.Generator) -> IntArray:
    """Return one of each row's neighbours."""
    return np.take_along_axis(near, rng.integers(near.shape[1], size=(len(near), 1)), axis=1)[:, 0]


def _deviation(present: FloatArray) -> float:
    scale = float(np.abs(present).max())
    return scale * float((present / scale).std()) if scale else 0.0


@dataclass(frozen=True)
class _Grid:
    """The values that a column of numbers can take."""

    low: float
    high: float
    decimals: int | None
    dtype: str
    must_differ: bool

    @classmethod
    def of(cls, column: Column, present: FloatArray) -> _Grid:
        low, high = float(present.min()), float(present.max())
        if column.bounds is not None:
            low, high = domain_codes(column)
        decimals = column.decimals if column.kind == "continuous" else 0
        if decimals is not None:
            unit = 10.0**decimals
            inner = np.ceil(low * unit) / unit, np.floor(high * unit) / unit
            low, high = inner if inner[0] <= inner[1] else (low, high)
        enough = column.kind == "continuous" or high - low + 1 >= _FEW_VALUES
        own = pandas_dtype(column.dtype) if column.kind == "continuous" else np.dtype("float64")
        # Of pandas's and of Arrow's numbers, numpy's that hold the same.
        narrow = str(getattr(own, "numpy_dtype", own))
        return cls(low, high, decimals, narrow, enough and high > low)

    def settle(self, numbers: FloatArray) -> FloatArray:
        """Return numbers rounded as the column is, and not beyond its range."""
        inside = numbers if self.decimals is None else np.round(numbers, self.decimals)
        # As it will be stored, so that a comparison with the source is one of what will be published.
        return np.clip(inside, self.low, self.high).astype(self.dtype).astype(np.float64)

    def beside(self, own: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return numbers next to the given ones: one step away, or a small share of the range."""
        span = self.high - self.low
        if self.decimals is None:
            step = np.maximum(span * 1e-3 * (0.5 + rng.random(len(own))), 4 * np.spacing(np.abs(own)))
        else:
            step = np.full(len(own), 10.0**-self.decimals)
        up = np.where(rng.random(len(own)) < 0.5, own + step, own - step)
        up = np.where(
            up > self.high + step / 2, own - step, np.where(up < self.low - step / 2, own + step, up)
        )
        return self.settle(up)


def _new_categories(
    column: Column, codes: FloatArray, near: IntArray, rng: np.random.Generator
) -> FloatArray:
    """Return a category for each source: Algorithm 1, lines 20 and 21; missing is one of them."""
    gap = float(len(column.categories or ()))
    filled = np.where(np.isnan(codes), gap, codes)
    observed = np.unique(filled)
    around = np.sort(filled[near], axis=1)
    is_first = np.ones(around.shape, dtype=bool)
    is_first[:, 1:] = around[:, 1:] != around[:, :-1]
    different = is_first.sum(axis=1)
    chosen = np.floor(rng.random(len(near)) * different).astype(np.int64)
    position = np.argmax(np.cumsum(is_first, axis=1) > chosen[:, None], axis=1)
    new = np.take_along_axis(around, position[:, None], axis=1)[:, 0]
    agreed = np.flatnonzero(different == 1)
    new[agreed] = observed[rng.integers(len(observed), size=len(agreed))]
    return np.where(new == gap, np.nan, new)
