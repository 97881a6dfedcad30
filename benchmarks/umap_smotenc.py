"""A fully synthetic table from a UMAP embedding: ours, and umap-learn with its own inverse transform."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.runner import Cost, Side, in_a_fresh_process, in_this_process

SUMMARY = "`oversafe.protect.UMAPSMOTENC` against umap-learn's fit, SMOTE and inverse transform, one thread"

# The compilation of our own loops alone, as a first fit in a fresh installation meets it.
_FIRST_CALL = """
back_project(values, neighbors, weights, weights, values, values, fill, fill, 1.0)
mixed_neighbors(values, neighbors, 1.0, 2)
"""
_FIRST_CALL_SETUP = """
import os
os.environ["NUMBA_CACHE_DIR"] = {folder!r}
import numpy as np
import umap  # as a fit has loaded it by then
from oversafe.protect.samplers._umap_kernels import back_project, mixed_neighbors
values = np.sort(np.random.default_rng(0).random((4, 2)), axis=0)
neighbors, weights, fill = np.zeros((4, 3), dtype=np.int64), np.full((4, 3), 1 / 3), np.zeros(2)
"""


def table(rows: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return 10 columns of numbers in which one class of ten in a hundred can be told from the other."""
    from sklearn.datasets import make_classification

    return make_classification(rows, 10, n_informative=6, weights=[0.9], random_state=0)


def embed_and_smote(X: NDArray[np.float64], y: NDArray[np.int64]):
    """Return a fitted UMAP and synthetic points of every class in its embedding, as the paper makes them."""
    import umap
    from imblearn.over_sampling import SMOTE

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = umap.UMAP(random_state=0, n_jobs=1)
        embedding = model.fit_transform(X, y)
    doubled = {label: 2 * count for label, count in enumerate(np.bincount(y))}
    points, _ = SMOTE(sampling_strategy=doubled, random_state=0).fit_resample(embedding, y)
    return model, points[len(X) :]


def synthesize_with_umap_learn(X: NDArray[np.float64], y: NDArray[np.int64]) -> NDArray[np.float64]:
    low, high = X.min(axis=0), X.max(axis=0)
    model, points = embed_and_smote((X - low) / (high - low), y)
    return low + model.inverse_transform(points) * (high - low)


def sides(quick: bool, folder: Path) -> list[Side]:
    """Fit both once, check that both give tables of the same form, and return them whole and by part."""
    import numba

    from oversafe.protect import UMAPSMOTENC

    numba.set_num_threads(1)
    X, y = table(1_500 if quick else 20_000)
    ours = UMAPSMOTENC(random_state=0).fit(X, y)
    made, _ = ours.sample()
    scaled = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
    model, points = embed_and_smote(scaled, y)
    if made.shape != model.inverse_transform(points).shape:
        raise AssertionError("the two tables differ in form")
    rng = np.random.default_rng(0)
    classes = np.repeat([0, 1], np.bincount(y))
    drawn = ours._draw_points(classes, rng)

    def first_call() -> Cost:
        # An empty folder each time, so that the loops are compiled each time.
        with tempfile.TemporaryDirectory(dir=folder) as empty:
            return in_a_fresh_process(_FIRST_CALL, _FIRST_CALL_SETUP.format(folder=empty))()

    packages = ["oversafe", "umap-learn", "imbalanced-learn", "numba"]
    return [
        Side(
            "UMAPSMOTENC", in_this_process(lambda: UMAPSMOTENC(random_state=0).fit_resample(X, y)), packages
        ),
        Side("UMAP, SMOTE, inverse transform", in_this_process(lambda: synthesize_with_umap_learn(X, y))),
        Side("our back-projection", in_this_process(lambda: ours._project(classes, drawn, 1.0, rng))),
        Side("umap-learn's inverse transform", in_this_process(lambda: model.inverse_transform(points))),
        Side("first call of our loops, compiled", first_call),
    ]
