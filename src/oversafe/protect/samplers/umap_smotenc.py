"""UMAPSMOTENC: SMOTE-NC on a supervised embedding, projected back to a fully synthetic table."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.spatial import KDTree

from oversafe._core.checks import check_choice, check_count
from oversafe._core.errors import InputError, import_extra
from oversafe.data.schema import Schema
from oversafe.privacy.guarantee import Guarantee
from oversafe.protect.base import Synthesizer
from oversafe.protect.explanations import Explanation

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_REASONS = (
    "new rows are drawn from the surroundings of real records in an embedding, and nothing bounds what one "
    "record changes in them",
    "the ranges, categories and class counts are those of the data",
)
# Up to so many rows the exact search for the graph's neighbours is faster than UMAP's approximate one.
_EXACT_SEARCH = 50_000
# A value that this share of a column's rows have, among more distinct values than that, is a spike: mostly a
# zero that means "none".
_SPIKE_SHARE, _SPIKE_VALUES = 0.1, 20


@dataclass(eq=False, repr=False)
class UMAPSMOTENC(Synthesizer):
    """Draw rows on lines in a supervised UMAP embedding and project them back to the table's columns.

    Numbers are scaled to [0, 1] and embedded by UMAP, which sees the classes; SMOTE-NC then makes points of
    every class in the embedding, as many as the class has rows, and each is projected back ([1]_, Section
    3.3). The lines between records are straight in the embedding only, so that they cannot be followed back
    in the released table. No original row is passed through; an equal row may arise by chance.

    umap-learn fits the embedding; the back-projection is our own: a draw from the distribution of the
    point's surroundings in the embedding, among the records of its class, and a little noise. It takes a small
    part of the time of umap-learn's inverse transform and keeps the spread that averaging would lose.

    Parameters
    ----------
    k_neighbors : int, default=5
        How many neighbours of its class a point's line may lead to.
    n_components : int, default=2
        Dimensions of the embedding.
    umap_neighbors : int, default=15
        Neighbours of a row in UMAP's graph.
    n_epochs : int, default=100
        Rounds in which UMAP improves its layout; its own default is 200, or 500 below 10,000 rows.
    graph_categories : bool, default=False
        Whether categories take part in the embedding. They always do in a table without numbers.
    interpolation : {"line", "box", "triangle"}, default="line"
        Where a point lies in the embedding: on the line between a record and a neighbour (SMOTE), in the box
        with the two as its corners, or in the triangle of a record and two neighbours.
    categories : {"surroundings", "vote"}, default="surroundings"
        Where categories come from: each from one of the records around the point, or all by a vote of the
        record's neighbours, as in SMOTE-NC and in the paper. A vote repeats the combination of categories
        of a real record far more often.
    back_neighbors : int, default=20
        How many records around a point make up its surroundings.
    spread : float, default=1.0
        Standard deviation of a draw from the surroundings, as a multiple of theirs: 1 keeps it, more leads
        away from the records, 0 gives their weighted mean.
    noise : float, default=0.15
        Standard deviation of the normal noise on top, as a multiple of the column's; it leads away from the
        records where they lie densely.
    sampling_strategy : None, str, float or dict, default=None
        Class counts of a sample: as in the data, or what the other synthesizers take.
    schema : Schema, optional
        What the columns are; read from the table when not given.
    random_state : int, optional
        Makes fit and sample repeatable.
    n_jobs : int, optional
        Number of threads. Above one, UMAP's layout is not repeatable and ``random_state`` must be None.

    Attributes
    ----------
    guarantee_ : Guarantee
        None, and why.
    schema_ : Schema
        What the feature columns are.
    classes_, class_counts_ : arrays
        The labels and their counts.
    embedding_ : array of shape (n_rows, n_components)
        Where UMAP placed the rows.

    See Also
    --------
    SMOTENC : The same without the embedding; its lines lead back to the records.

    References
    ----------
    .. [1] "UMAP-SMOTENC: a simple, efficient, and consistent alternative for privacy-aware synthetic data
       generation".

    Notes
    -----
    Needs the extra ``umap``. The first fit in a process waits for umap-learn's compilation.

    A drawn row that equals a real one stays. If such rows were drawn again, those that are missing would tell who is
    in the table, most of all where few rows are possible.
    """

    method_name = "umap-smotenc"
    extra = "umap"
    explanation = Explanation(
        "A fully synthetic table; rows are made on lines in an embedding of the table and projected back.",
        "No real row is passed through; an equal one may arise by chance. Nothing else is proven.",
        "Nothing bounds what one record changes in the result; the attacks on SMOTE's straight lines find nothing "
        "in it, which is a measurement and not a guarantee.",
    )

    k_neighbors: int = 5
    _: KW_ONLY
    n_components: int = 2
    umap_neighbors: int = 15
    n_epochs: int = 100
    graph_categories: bool = False
    interpolation: Literal["line", "box", "triangle"] = "line"
    categories: Literal["surroundings", "vote"] = "surroundings"
    back_neighbors: int = 20
    spread: float = 1.0
    noise: float = 0.15
    sampling_strategy: str | float | Mapping[Any, int] | None = None
    schema: Schema | None = None
    random_state: int | None = None
    n_jobs: int | None = None

    def _fit(self, table: pd.DataFrame, labels: pd.Series) -> None:
        self._check_parameters()
        self.schema_ = self._check_schema(table, self.schema)
        self._codes = self._read_classes(labels)
        self._check_class_sizes()
        # Before the work on the table: whoever misses the extra should not wait to hear it.
        import_extra("umap", "umap", "UMAPSMOTENC")

        matrix = self.schema_.encode(self.schema_.conform(table))
        self._scale_numbers(matrix[:, self._is_number])
        self._categories = self._read_categories(matrix[:, ~self._is_number])
        self.embedding_, self._curve = self._embed()
        self._neighbors = self._find_neighbors()
        self._trees = [KDTree(self.embedding_[self._codes == c]) for c in range(len(self.classes_))]
        self.guarantee_ = Guarantee.none(*_REASONS)

    @property
    def _is_number(self) -> NDArray[np.bool_]:
        return np.array([column.is_number for column in self.schema_])

    def _check_parameters(self) -> None:
        for name, least in (
            ("k_neighbors", 1),
            ("n_components", 1),
            ("umap_neighbors", 2),
            ("n_epochs", 1),
            ("back_neighbors", 2),
        ):
            check_count(name, getattr(self, name), least)
        check_choice("interpolation", self.interpolation, ("line", "box", "triangle"))
        check_choice("categories", self.categories, ("surroundings", "vote"))
        for name in ("spread", "noise"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < np.inf:
                raise InputError(f"{name} = {value!r} was given; use a number of at least 0, such as 1.0")
        if self.n_jobs not in (None, 1) and self.random_state is not None:
            raise InputError(
                f"random_state = {self.random_state!r} and n_jobs = {self.n_jobs!r} were given, but UMAP on "
                "several threads is not repeatable; leave one of them out"
            )

    def _check_class_sizes(self) -> None:
        smallest = int(np.argmin(self.class_counts_))
        rows = int(self.class_counts_[smallest])
        if rows <= self.k_neighbors:
            raise InputError(
                f"class {str(self.classes_[smallest])!r} has {rows} row{'s' if rows != 1 else ''}, and "
                f"UMAPSMOTENC with {self.k_neighbors} neighbours needs at least {self.k_neighbors + 1}; "
                "ask for fewer neighbours, or leave the class out"
            )

    def _scale_numbers(self, numbers: FloatArray) -> None:
        """Keep the numbers scaled to [0, 1], and what is needed to scale back."""
        known = np.where(np.isnan(numbers).all(axis=0), 0.0, numbers)
        self._low = np.nanmin(known, axis=0)
        self._range = np.nanmax(known, axis=0) - self._low
        # A constant column stays where it is, whatever is drawn.
        width = np.where(self._range > 0, self._range, 1.0)
        self._numbers = np.ascontiguousarray((numbers - self._low) / width)
        known = (known - self._low) / width
        self._fill, self._deviation = np.nanmedian(known, axis=0), np.nanstd(known, axis=0)
        self._spikes = np.array([_spike(column) for column in self._numbers.T], dtype=np.float64)

    def _read_categories(self, codes: FloatArray) -> IntArray:
        """Return the positions of the categories; what is missing is one category more."""
        widths = [len(column.categories or ()) for column in self.schema_ if not column.is_number]
        return np.where(np.isnan(codes), np.array(widths, dtype=np.float64), codes).astype(np.int64)

    def _embed(self) -> tuple[FloatArray, tuple[float, float]]:
        """Return UMAP's layout of the rows, and the two parameters of its curve of closeness."""
        umap = import_extra("umap", "umap", "UMAPSMOTENC")
        features = [np.where(np.isnan(self._numbers), self._fill, self._numbers)]
        if self.graph_categories or not features[0].shape[1]:
            # Two rows that differ in one category are as far apart as the two ends of a number's range.
            hot = [np.eye(c.max() + 1)[c] / np.sqrt(2.0) for c in self._categories.T]
            features += hot
        matrix = np.hstack(features).astype(np.float32)
        threads = 1 if self.n_jobs is None else _threads(self.n_jobs)
        # Without a seed UMAP runs on all threads.
        seed = int(np.random.default_rng(self.random_state).integers(2**31)) if threads == 1 else None
        neighbors = min(self.umap_neighbors, len(matrix) - 1)
        with warnings.catch_warnings():
            # On what does not concern us: that new rows cannot be transformed, parts that are not connected.
            warnings.simplefilter("ignore")
            model = umap.UMAP(
                n_neighbors=neighbors,
                n_components=self.n_components,
                n_epochs=self.n_epochs,
                random_state=seed,
                n_jobs=threads,
                **_graph_neighbors(matrix, neighbors, threads),
            )
            embedding = model.fit_transform(matrix, self._codes)
        return np.ascontiguousarray(embedding, dtype=np.float64), (float(model._a), float(model._b))

    def _find_neighbors(self) -> IntArray:
        """Return the neighbours of each row among its class, as in SMOTE-NC."""
        from oversafe.protect.samplers._umap_kernels import mixed_neighbors

        neighbors = np.empty((len(self._codes), self.k_neighbors), dtype=np.int64)
        for c in range(len(self.classes_)):
            rows = np.flatnonzero(self._codes == c)
            rows = rows[np.argsort(self.embedding_[rows, 0], kind="stable")]
            points = self.embedding_[rows]
            # A category that differs counts as the median of the coordinates' standard deviations.
            penalty = float(np.median(points.std(axis=0))) ** 2
            found = mixed_neighbors(points, self._categories[rows], penalty, self.k_neighbors)
            neighbors[rows] = rows[found]
        return neighbors

    def _draw(self, classes: NDArray[np.int64], rng: np.random.Generator) -> pd.DataFrame:
        is_number = self._is_number
        codes = np.empty((len(classes), len(self.schema_)))
        points = self._draw_points(classes, rng)
        codes[:, is_number], codes[:, ~is_number] = self._project(classes, points, rng)
        return self.schema_.decode(codes)

    def _draw_points(self, classes: NDArray[np.int64], rng: np.random.Generator) -> _Points:
        """Return points of the given classes in the embedding, and the record that each starts from."""
        base = np.empty(len(classes), dtype=np.int64)
        for c, count in enumerate(self.class_counts_):
            of_class = np.flatnonzero(self._codes == c)
            wanted = np.flatnonzero(classes == c)
            base[wanted] = of_class[rng.integers(count, size=len(wanted))]
        first, second = (
            self._neighbors[base, rng.integers(self.k_neighbors, size=len(base))] for _ in range(2)
        )
        start = self.embedding_[base]
        if self.interpolation == "triangle":
            share = rng.dirichlet(np.ones(3), size=len(base))
            to_first, to_second = share[:, 1:2], share[:, 2:3]
            where = start + to_first * (self.embedding_[first] - start)
            where += to_second * (self.embedding_[second] - start)
        else:
            width = self.n_components if self.interpolation == "box" else 1
            where = start + rng.random((len(base), width)) * (self.embedding_[first] - start)
        return _Points(where, base)

    def _project(
        self, classes: NDArray[np.int64], points: _Points, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Return the codes of the number and category columns of the points' rows."""
        from oversafe.protect.samplers._umap_kernels import back_project

        around, weights = self._surroundings(classes, points.where)

        # One record lends its pattern of missing values, so that values missing together stay so.
        lender = _pick(around, weights, rng)
        shape = len(classes), self._numbers.shape[1]
        scaled = back_project(
            self._numbers,
            around,
            weights,
            rng.standard_normal(weights.shape),
            self.noise * self._deviation * rng.standard_normal(shape),
            rng.random(shape),
            self._spikes,
            self._fill,
            float(self.spread),
        )
        scaled[np.isnan(self._numbers[lender])] = np.nan
        if self.categories == "vote":
            positions = _vote(self._categories, self._neighbors[points.base])
        else:
            positions = np.empty((len(classes), self._categories.shape[1]), dtype=np.int64)
            for j in range(positions.shape[1]):
                positions[:, j] = self._categories[_pick(around, weights, rng), j]
        columns = [column for column in self.schema_ if not column.is_number]
        widths = np.array([len(column.categories or ()) for column in columns], dtype=np.int64)
        return self._low + scaled * self._range, np.where(positions == widths, np.nan, positions)

    def _surroundings(self, classes: NDArray[np.int64], where: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return the records of its class around each point, and their weights."""
        # A class with fewer records leaves places empty, with no weight.
        around = np.zeros((len(classes), self.back_neighbors), dtype=np.int64)
        distances = np.full(around.shape, np.inf)
        for c, tree in enumerate(self._trees):
            wanted = np.flatnonzero(classes == c)
            k = min(self.back_neighbors, tree.n)
            far, found = tree.query(where[wanted], k=np.arange(1, k + 1), workers=self.n_jobs or 1)
            around[wanted, :k] = np.flatnonzero(self._codes == c)[found]
            distances[wanted, :k] = far
        # UMAP's own measure of how strongly two points belong together.
        a, b = self._curve
        weights = 1.0 / (1.0 + a * distances ** (2.0 * b))
        return around, weights / weights.sum(axis=1, keepdims=True)


class _Points(NamedTuple):
    where: FloatArray
    base: IntArray


def _threads(n_jobs: int) -> int:
    """Return as many threads as asked for and as the compiled loops may have."""
    import numba
    from joblib import effective_n_jobs

    config: Any = numba.config
    return min(effective_n_jobs(n_jobs), int(config.NUMBA_NUM_THREADS))


def _graph_neighbors(matrix: NDArray[np.float32], neighbors: int, threads: int) -> dict[str, Any]:
    """Return the parameters that give UMAP the exact neighbours, where finding them here is faster."""
    if len(matrix) > _EXACT_SEARCH:
        return {}
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=neighbors, n_jobs=threads).fit(matrix)
    distances, indices = search.kneighbors(matrix)
    # UMAP takes them from a small table only when told that it is a large one.
    return {
        "precomputed_knn": (indices, distances.astype(np.float32)),
        "force_approximation_algorithm": True,
    }


def _spike(values: FloatArray) -> float:
    """Return the value that a good part of a column's rows share, NaN if there is none."""
    known, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    if len(known) <= _SPIKE_VALUES or counts.max() < _SPIKE_SHARE * counts.sum():
        return np.nan
    return float(known[np.argmax(counts)])


def _pick(around: IntArray, weights: FloatArray, rng: np.random.Generator) -> IntArray:
    """Return one of the records around each point, drawn by their weights."""
    place = (np.cumsum(weights, axis=1) < rng.random((len(weights), 1))).sum(axis=1)
    return around[np.arange(len(around)), np.minimum(place, around.shape[1] - 1)]


def _vote(categories: IntArray, neighbors: IntArray) -> IntArray:
    """Return the most frequent category of each column among each row's neighbours; the nearer one on a tie."""
    votes = categories[neighbors]
    counts = (votes[:, :, None, :] == votes[:, None, :, :]).sum(axis=2)
    return np.take_along_axis(votes, counts.argmax(axis=1)[:, None, :], axis=1)[:, 0, :]
