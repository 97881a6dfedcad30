"""SMOTE and Mirrors: Tables 3 and 4, Figures 2 to 6."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from oversafe.data import load_dataset
from oversafe.papers.base import (
    EIGHT,
    NOT_IN_QUICK,
    NOT_MEASURED,
    Claim,
    Paper,
    Plot,
    Summary,
    as_rows,
    beside,
    claim,
    is_larger,
    published,
)

# Those with an imbalance of 20 or more.
_FAR = EIGHT[4:]
_K = 5
_RATIOS = (5, 10, 20, 25, 50, 75, 100)
# A quick run varies the ratio only of classes of so many records, and trains perceptrons only on so many rows.
_FEW_RECORDS, _FEW_ROWS = 150, 2000


def cells(quick: bool, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return what is run; the repetitions of the paper, or few of them."""
    seeds = range(3 if quick else 25)
    rounds = range(2 if quick else 5)
    chosen: list[dict[str, Any]] = []
    for name in names:
        rows, records = _sizes(name)
        chosen += [{"kind": "geometry", "name": name, "seed": seed} for seed in seeds]
        for seed in rounds:
            chosen.append({"kind": "naive", "name": name, "seed": seed, "repeats": len(rounds)})
            chosen.append({"kind": "linkability", "name": name, "seed": seed})
        game = (20 if quick else 100, 400, 200)
        chosen.append({"kind": "groundhog", "name": name, "seed": 0, "game": list(game)})
        if not quick or rows <= _FEW_ROWS:
            models = (4, 30) if quick else (100, 200)
            chosen += [
                {"kind": "shadow", "name": name, "seed": 0, "augmented": augmented, "models": list(models)}
                for augmented in (False, True)
            ]
        if not quick or records <= _FEW_RECORDS:
            chosen += [
                {"kind": "ratio", "name": name, "seed": seed, "ratio": ratio}
                for ratio in _RATIOS
                for seed in range(1 if quick else 5)
            ]
    # The games last longest, so that a run that is stopped has the rest.
    return sorted(chosen, key=lambda cell: list(_RUN).index(cell["kind"]))


def run(kind: str, name: str, seed: int, **settings: Any) -> dict[str, Any]:
    """Run one attack on one release, or play one game."""
    X, y = scaled(name)
    return _RUN[kind](X, y, seed, **settings)


def scaled(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a data set as the authors prepare it: columns in [-1, 1], 1 for the minority."""
    from sklearn.preprocessing import minmax_scale

    X, y = load_dataset(name)
    return minmax_scale(X.to_numpy(dtype=float), (-1, 1)), (y == y.value_counts().idxmin()).to_numpy().astype(
        int
    )


def _sizes(name: str) -> tuple[int, int]:
    y = load_dataset(name).y
    return len(y), int(y.value_counts().min())


def _made(X: np.ndarray, y: np.ndarray, seed: int, ratio: float | None = None) -> np.ndarray:
    """Return the rows that imbalanced-learn's SMOTE adds, in random order."""
    from imblearn.over_sampling import SMOTE

    n = int(y.sum())
    if ratio is not None:
        # More rows of the minority than of the others are wanted: the others are not looked at.
        X, y = np.vstack([X[y == 1], X[y == 1][:6]]), np.r_[np.ones(n, int), np.zeros(6, int)]
        strategy: Any = {1: n + round(ratio * n), 0: 6}
    else:
        strategy = "auto"
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        made = SMOTE(k_neighbors=_K, random_state=seed, sampling_strategy=strategy).fit_resample(X, y)[0][
            len(X) :
        ]
    return np.random.default_rng(seed).permutation(made)


def _geometry(X: np.ndarray, y: np.ndarray, seed: int) -> dict[str, Any]:
    from oversafe.attack import DistinSMOTE, ReconSMOTE, neighbour_mutuality, reconstruction_recall_bound
    from oversafe.data.rows import is_copy

    real, made = X[y == 1], _made(X, y, seed)
    recon = ReconSMOTE().run(made).score(real)
    augmented = np.random.default_rng(seed).permutation(np.vstack([real, made]))
    distin = DistinSMOTE().run(augmented).score(is_copy(augmented, real))
    n, mutual = len(real), neighbour_mutuality(real, _K)
    bounds = [
        reconstruction_recall_bound(n, len(made), _K, exact=False),
        reconstruction_recall_bound(n, len(made), _K, mutuality=mutual),
        reconstruction_recall_bound(n, len(made), _K, mutuality=mutual, tight=True),
    ]
    return {
        "reconsmote_precision": recon[0],
        "reconsmote_recall": recon[1],
        "distinsmote_precision": distin[0],
        "distinsmote_recall": distin[1],
        **dict(zip(("approximate_bound", "exact_bound", "tight_bound"), bounds, strict=True)),
    }


def _ratio(X: np.ndarray, y: np.ndarray, seed: int, ratio: float) -> dict[str, Any]:
    from oversafe.attack import ReconSMOTE

    precision, recall = ReconSMOTE().run(_made(X, y, seed, ratio)).score(X[y == 1])
    return {"precision": precision, "recall": recall}


def _naive(X: np.ndarray, y: np.ndarray, seed: int, repeats: int) -> dict[str, Any]:
    from oversafe.attack import NaiveDistinguisher

    attack = NaiveDistinguisher(repeats, protocol="published", random_state=seed)
    details = attack.run(_made(X, y, seed), X[y == 1]).details
    return {"naive_precision": details["precision"], "naive_recall": details["recall"]}


def _linkability(X: np.ndarray, y: np.ndarray, seed: int) -> dict[str, Any]:
    from oversafe.attack import Linkability

    made, real = _made(X, y, seed), X[y == 1]
    return {
        "linkability_accuracy": Linkability(protocol="published", random_state=seed).run(made, real).risk,
        "linkability_rate": Linkability(random_state=seed).run(made, real).risk,
    }


def _groundhog(X: np.ndarray, y: np.ndarray, seed: int, game: list[int]) -> dict[str, Any]:
    from imblearn.over_sampling import SMOTE

    from oversafe.attack import GroundHog

    result = GroundHog(*game, random_state=seed).run(SMOTE(), X, y)
    auc = np.sort(result.auc)[::-1]
    # Table 4 holds the mean over the fifty most exposed of a hundred targets, or of all in a smaller class; fewer
    # targets stand for the same share of them.
    n = int(y.sum())
    exposed = auc[: math.ceil(len(auc) * min(50, n) / min(100, n))]
    return {"groundhog_auc": float(exposed.mean()), "groundhog_all": float(auc.mean()),
            "interval": list(result.details["auc_interval"])}  # fmt: skip


def _shadow(X: np.ndarray, y: np.ndarray, seed: int, augmented: bool, models: list[int]) -> dict[str, Any]:
    from imblearn.over_sampling import SMOTE
    from sklearn.neural_network import MLPClassifier

    from oversafe.attack import ShadowClassifier

    d = X.shape[1]
    attack = ShadowClassifier(MLPClassifier((d, d), max_iter=25), *models, random_state=seed)
    details = attack.run(X, y, SMOTE() if augmented else None).details
    return {"shadow_auc": details["auc"], "interval": list(details["auc_interval"])}


_RUN: dict[str, Callable[..., dict[str, Any]]] = {
    "geometry": _geometry,
    "linkability": _linkability,
    "naive": _naive,
    "ratio": _ratio,
    "groundhog": _groundhog,
    "shadow": _shadow,
}


def summarize(table: pd.DataFrame) -> Summary:
    """Return Tables 3 and 4 beside the published ones, and the figures."""
    done = table[table["status"] == "done"]
    rows: list[dict[str, Any]] = []
    three, four = (
        published(f"smote_and_mirrors_{name}").set_index("dataset") for name in ("augmented", "synthetic")
    )
    of, planned = (
        {(str(kind), str(name)): part for (kind, name), part in cells.groupby(["kind", "name"])}
        for cells in (done, table)
    )
    for name in [n for n in EIGHT if n in set(table["name"])]:
        absent = {kind: NOT_MEASURED if (kind, name) in planned else NOT_IN_QUICK for kind in _RUN}
        for number, printed, kind, columns in (
            ("3", three, "naive", ("naive_precision", "naive_recall")),
            ("3", three, "geometry", ("distinsmote_precision", "distinsmote_recall")),
            ("4", four, "linkability", ("linkability_accuracy",)),
            ("4", four, "geometry", ("reconsmote_precision", "reconsmote_recall")),
            ("4", four, "groundhog", ("groundhog_auc",)),
        ):
            for column in columns:
                rows.append(
                    beside(
                        number,
                        name,
                        column.replace("_", " "),
                        printed.loc[name, column],
                        of[kind, name][column] if (kind, name) in of else [],
                        larger_is_better=kind == "geometry",
                        # See the note on what is measured.
                        tolerance=0.15 if kind == "linkability" else 0.05,
                        absent=absent[kind],
                    )
                )
        for augmented, column in ((False, "mia_real_auc"), (True, "mia_augmented_auc")):
            played = of.get(("shadow", name), done.head(0))
            played = played[played["augmented"] == augmented] if len(played) else played
            interval = tuple(played["interval"].iloc[0]) if len(played) else None
            rows.append(
                beside("3", name, column.replace("_", " "), three.loc[name, column],
                       played["shadow_auc"] if len(played) else [], interval=interval, absent=absent["shadow"])
            )  # fmt: skip
    return Summary(as_rows(rows), _claims(of), (*_measured_plots(done), *bound_plots()))


def _claims(of: dict[tuple[str, str], pd.DataFrame]) -> tuple[Claim, ...]:
    geometry = {name: part for (kind, name), part in of.items() if kind == "geometry"}
    precision = min((float(part["reconsmote_precision"].min()) for part in geometry.values()), default=np.nan)
    far = {n: p for n, p in geometry.items() if n in _FAR}
    recall = min((float(part["reconsmote_recall"].mean()) for part in far.values()), default=np.nan)
    above = [
        (name, float(part["reconsmote_recall"].mean()), float(part["exact_bound"].mean()))
        for name, part in geometry.items()
    ]
    played = {name: part for (kind, name), part in of.items() if kind == "shadow"}
    sides = {name: part.assign(augmented=part["augmented"].astype(bool)) for name, part in played.items()}
    pairs = [
        (name, part[part["augmented"]].iloc[0], part[~part["augmented"]].iloc[0])
        for name, part in sides.items()
        if part["augmented"].nunique() == 2
    ]
    return (
        claim(
            "The reconstruction's precision is 1 on all sets",
            precision >= 0.995,
            f"the lowest is {precision:.3f}",
            geometry,
            EIGHT,
            of_each=True,
        ),
        claim(
            "its recall reaches 1 where the imbalance is 20 or more",
            recall >= 0.995,
            f"the lowest is {recall:.3f}",
            far,
            _FAR,
            of_each=True,
        ),
        claim(
            "its recall is in line with Theorem 4, a lower bound",
            all(r >= b - 0.05 for _, r, b in above),
            "; ".join(f"{n} {r:.2f} (bound {b:.2f})" for n, r, b in above),
            geometry,
            EIGHT,
            of_each=True,
        ),
        claim(
            "classifiers trained on augmented tables give more away than those trained on real ones",
            _gives_more_away(pairs),
            "; ".join(f"{n} {a['shadow_auc']:.2f} against {r['shadow_auc']:.2f}" for n, a, r in pairs),
            [name for name, _, _ in pairs],
            EIGHT,
        ),
    )


def _gives_more_away(pairs: Sequence[tuple[str, pd.Series, pd.Series]]) -> bool | None:
    """Return whether the AUCs on augmented tables are higher; None if the mean difference may be chance."""
    halves = [(cell["interval"][1] - cell["interval"][0]) / 2 for _, a, r in pairs for cell in (a, r)]
    return is_larger([a["shadow_auc"] - r["shadow_auc"] for _, a, r in pairs], halves)


def _measured_plots(done: pd.DataFrame) -> list[Plot]:
    plots = []
    geometry = done[done["kind"] == "geometry"]
    if len(geometry):
        means = geometry.groupby("name")[
            ["reconsmote_recall", "approximate_bound", "exact_bound", "tight_bound"]
        ].mean()
        data = means.reset_index().melt("name").set_axis(["x", "group", "y"], axis=1)
        data["group"] = data["group"].str.replace("_", " ")
        plots.append(
            Plot(
                "Figure 2: the reconstruction's recall and its lower bounds",
                data,
                "data set",
                "recall",
                "points",
            )
        )
    ratio = done[done["kind"] == "ratio"]
    if len(ratio):
        data = ratio.groupby(["ratio", "name"])["recall"].mean().rename("y").reset_index()
        data = data.set_axis(["x", "group", "y"], axis=1)
        plots.append(Plot("Figure 3: recall against the imbalance ratio", data, "imbalance ratio", "recall"))
    return plots


def bound_plots() -> list[Plot]:
    """Return Figures 4 to 6, which need no data."""
    from oversafe.attack import reconstruction_recall_bound

    def exact(r: float, k: int, alpha: float) -> float:
        return reconstruction_recall_bound(100, round(100 * r), k, mutuality=alpha)

    ratios = range(10, 101, 5)
    four = [
        {"x": r, "group": f"k = {k}", "facet": f"mutuality {alpha:g}", "y": exact(r, k, alpha) / approximate}
        for alpha in (0.0, 0.1)
        for k in (3, 5, 7, 10)
        for r in ratios
        if (approximate := reconstruction_recall_bound(100, 100 * r, k, exact=False)) > 0.01
    ]
    five = [{"x": r, "group": k, "y": exact(r, k, 0.5)} for k in range(3, 16) for r in range(5, 101, 5)]
    six = [
        {"x": alpha / 20, "group": f"r = {r}", "y": exact(r, 5, alpha / 20)}
        for r in (5, 10, 15, 20, 30)
        for alpha in range(21)
    ]
    return [
        Plot("Figure 4: the exact bound over the approximate one", pd.DataFrame(four), "imbalance ratio", "ratio"),
        Plot("Figure 5: the exact bound, 100 records, mutuality 0.5", pd.DataFrame(five), "imbalance ratio",
             "neighbours k", "map"),
        Plot("Figure 6: the exact bound against mutuality, k = 5", pd.DataFrame(six), "mutuality", "bound"),
    ]  # fmt: skip


PAPER = Paper(
    "smote-and-mirrors",
    "SMOTE and Mirrors: Exposing Privacy Leakage from Synthetic Minority Oversampling",
    EIGHT,
    {},
    cells,
    run,
    summarize,
    (
        "The linkability figures of Table 4 are means of lower ends of intervals from five attacks each; the same is "
        "measured here, and such a mean moves by about 0.1 from run to run, so that 0.15 counts as agreement.",
        "The membership figures of Table 4 are those of the fifty most exposed of a hundred targets, or of all in a "
        "class of fewer than a hundred; a quick run takes the same share of twenty. Neither this nor what the figures "
        "of linkability are stands in the paper's text.",
        "A row of SMOTE that equals a record counts as real for the distinguishing attack, since no attack can tell "
        "the two, and as synthetic for the naive attack, as in the paper.",
    ),
)
