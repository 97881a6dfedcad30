"""The mechanisms against OpenDP's own measurements, which they are thin over."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.runner import Side, in_this_process
from oversafe.privacy import Accountant, choose, frequent_counts, gaussian_counts, noisy_counts

SUMMARY = "noise on 100,000 counts: `oversafe.privacy` against bare OpenDP"
_PACKAGES = ["oversafe", "opendp", "numpy"]


def sides(quick: bool, folder: Path) -> list[Side]:
    """Return discrete Laplace noise on the same counts, ours and OpenDP's."""
    counts = _counts(quick)
    bare = _bare()
    # Both draw noise of the same size before they are timed.
    ours = noisy_counts(counts, sensitivity=2, epsilon=1.0) - counts
    theirs = np.asarray(bare["discrete Laplace"](counts)) - counts
    if not 0.9 < ours.std() / theirs.std() < 1.1:
        raise AssertionError("the two sides do not draw the same noise")
    return [
        Side(
            "noisy_counts",
            in_this_process(lambda: noisy_counts(counts, sensitivity=2, epsilon=1.0)),
            _PACKAGES,
        ),
        Side("bare OpenDP", in_this_process(lambda: bare["discrete Laplace"](counts)), ["opendp"]),
    ]


def figures(quick: bool) -> list[dict[str, Any]]:
    """Return the seconds of each mechanism, with OpenDP's noise and from a seed, and of bare OpenDP."""
    counts = _counts(quick)
    scores = counts.astype(float)
    rng = np.random.default_rng(0)
    threshold: dict[str, Any] = {"changed": 2, "sensitivity": 2**0.5, "largest": 1, "rho": 0.5, "delta": 1e-9}
    ours: dict[str, Callable[[Any], Any]] = {
        "discrete Laplace": lambda seed: noisy_counts(counts, sensitivity=2, epsilon=1.0, random_state=seed),
        "discrete Gaussian": lambda seed: gaussian_counts(
            counts, sensitivity=2**0.5, rho=0.5, random_state=seed
        ),
        "choice, pure": lambda seed: choose(counts, sensitivity=1, epsilon=1.0, random_state=seed),
        "choice, zCDP": lambda seed: choose(counts, sensitivity=1, rho=0.5, random_state=seed),
        "choice, fractions": lambda seed: choose(scores, sensitivity=0.5, rho=0.5, random_state=seed),
        "threshold": lambda seed: frequent_counts(counts, random_state=seed, **threshold),
        "accountant": lambda seed: Accountant(1.0, random_state=seed).counts(counts, 1.0, what="counts"),
    }
    bare = _bare()
    bare["choice, fractions"] = bare["choice, zCDP"]
    bare["accountant"] = bare["discrete Laplace"]
    table = dict(enumerate(counts.tolist()))
    rows = []
    for name, run in ours.items():
        given = table if name == "threshold" else counts
        turns = [
            (
                in_this_process(lambda run=run: run(None))().seconds,
                in_this_process(lambda name=name, given=given: bare[name](given))().seconds,
                in_this_process(lambda run=run: run(rng))().seconds,
            )
            for _ in range(2 if quick else 5)
        ]
        mine, theirs, seeded = (median(turn[i] for turn in turns) for i in range(3))
        rows.append(
            {"name": name, "ours": mine, "bare OpenDP": theirs, "ratio": mine / theirs, "from a seed": seeded}
        )
    return rows


def _counts(quick: bool) -> Any:
    return np.random.default_rng(0).integers(0, 1000, 5_000 if quick else 100_000)


def _bare() -> dict[str, Any]:
    """Return OpenDP's own measurements with the same parameters."""
    from opendp.domains import atom_domain, map_domain, vector_domain
    from opendp.measurements import make_gaussian, make_gaussian_threshold, make_laplace, make_noisy_max
    from opendp.measures import max_divergence, zero_concentrated_divergence
    from opendp.metrics import absolute_distance, l02inf_distance, l1_distance, l2_distance, linf_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    whole = vector_domain(atom_domain(T="i64"))
    linf = linf_distance(T="i64")
    return {
        "discrete Laplace": make_laplace(whole, l1_distance(T="i64"), scale=2.0),
        "discrete Gaussian": make_gaussian(whole, l2_distance(T="f64"), scale=2**0.5),
        "choice, pure": make_noisy_max(whole, linf, max_divergence(), scale=2.0),
        "choice, zCDP": make_noisy_max(whole, linf, zero_concentrated_divergence(), scale=1.0),
        "threshold": make_gaussian_threshold(
            map_domain(atom_domain(T="i64"), atom_domain(T="i64")),
            l02inf_distance(absolute_distance(T="f64")),
            scale=2**0.5,
            threshold=12,
        ),
    }
