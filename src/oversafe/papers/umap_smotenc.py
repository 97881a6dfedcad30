"""UMAP-SMOTENC: ranks, trade-off, utility and privacy with their tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from oversafe.data import load_dataset
from oversafe.papers.base import (
    NOT_IN_QUICK,
    NOT_MEASURED,
    Claim,
    Paper,
    Plot,
    Summary,
    as_rows,
    beside,
    claim,
    published,
)

SETS = (
    "adult",
    "personal_loan",
    "covertype_25k",
    "creditcard_fraud_21k",
    "occupancy",
    "dry_bean",
    "magic_gamma",
    "letter_recognition",
)
CLASSIFIERS = ("lr", "nb", "dt", "rf", "xgb", "mlp")
DISTANCES = {"nn1": "closest_distance", "ratio_1_2": "ratio_to_2nd", "ratio_1_10": "ratio_to_10th"}
ORIGINAL = "Original train set"
_BASELINE = "Test set baseline"
_OURS = "UMAP-SMOTENC"
_METHODS = ("GC", "SMOTE-NC", _OURS)
DEEP = ("CTGAN", "TVAE")
_FOLDS = 5
_CLASS = "the class of the row"
# Of a quick run.
_ROWS = 5000

Table = tuple[pd.DataFrame, pd.Series]


def cells(quick: bool, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return what is run: three repeats of five folds on all rows, or one fold on some; deep generators once."""
    # The first fold of all comes first: the tables of a run that is stopped then hold every set.
    places = [(repeat, fold) for repeat in range(3) for fold in range(_FOLDS)]
    chosen = [
        {"name": name, "method": method, "repeat": repeat, "fold": fold}
        for repeat, fold in (places[:1] if quick else places)
        for methods in ((ORIGINAL, *_METHODS), () if quick or (repeat, fold) != (0, 0) else DEEP)
        for name in names
        for method in methods
    ]
    return [{**cell, "rows": _ROWS if quick else None, "tune": not quick} for cell in chosen]


def run(name: str, method: str, repeat: int, fold: int, rows: int | None, tune: bool) -> dict[str, Any]:
    """Make one release, and measure its utility and its distances."""
    import time

    from oversafe.measure.utility import folds

    X, y = load_dataset(name)
    train, test = list(folds(y, _FOLDS, 3, 0))[repeat * _FOLDS + fold]
    train, test = _some(train, y, rows), _some(test, y, rows)
    real = X.iloc[train].reset_index(drop=True), y.iloc[train].reset_index(drop=True)
    held = X.iloc[test].reset_index(drop=True), y.iloc[test].reset_index(drop=True)
    begin = time.perf_counter()
    release = make(method, *real, seed=repeat * _FOLDS + fold)
    seconds = time.perf_counter() - begin
    return measured(release, real, held, distances=method != ORIGINAL, tune=tune) | {
        "generator_seconds": seconds
    }


def measured(
    release: Table, real: Table, held: Table, *, distances: bool, tune: bool = False
) -> dict[str, float]:
    """Return the F1 of each classifier on held-out rows, and the distances of Section 4.2 beside the rows' own."""
    from oversafe.attack import ClosestRecord
    from oversafe.measure.utility import train_on_release

    scores = train_on_release(release, held, train=real[0], classifiers="paper", tune=tune, random_state=0)
    result: dict[str, float] = scores.set_index("classifier")["f1"].to_dict()
    if distances:
        # Over the numbers, as in the paper.
        columns = list(real[0].select_dtypes("number").columns)
        attack = ClosestRecord(n_rows=5000, random_state=0)
        found = attack.run(*(part[0][columns] for part in (release, real, held)))
        evidence = found.evidence.set_index("figure")
        for short, figure in DISTANCES.items():
            result[short] = float(evidence.loc[figure, "release"])
            result[f"{short}_baseline"] = float(evidence.loc[figure, "baseline"])
    return result


def make(method: str, X: pd.DataFrame, y: pd.Series, seed: int) -> Table:
    """Return the release of a generator of the paper."""
    from oversafe import protect

    if method == ORIGINAL:
        return X, y
    if method == "SMOTE-NC":
        return smotenc(X, y, seed)
    if method == "GC":
        return copula(X, y, seed)
    kinds = {
        # Not the paper's, which is GC.
        "GaussianCopula": protect.GaussianCopula,
        _OURS: protect.UMAPSMOTENC,
        "CTGAN": protect.CTGAN,
        "TVAE": protect.TVAE,
    }
    return kinds[method](random_state=seed).fit_resample(X, y)


def copula(X: pd.DataFrame, y: pd.Series, seed: int) -> Table:
    """Return as many rows from Gaussian copulas of all classes together, of which the class is a column like others.

    That is how the paper's is used; :class:`oversafe.protect.GaussianCopula` has a copula for each class, so it is
    given two that mean nothing, every other row.
    """
    from oversafe.protect import GaussianCopula

    labels = {str(value): value for value in y.unique()}
    whole = X.assign(**{_CLASS: y.astype(str)})
    made, _ = GaussianCopula(random_state=seed).fit_resample(whole, pd.Series(np.arange(len(X)) % 2))
    drawn = made.pop(_CLASS).map(labels)
    return made, pd.Series(drawn.to_numpy(), name=y.name).astype(y.dtype)


def smotenc(X: pd.DataFrame, y: pd.Series, seed: int) -> Table:
    """Return as many rows of each class as there are, made by SMOTE-NC from numbers scaled to [0, 1]."""
    from oversafe.protect import SMOTENC

    numbers = X.select_dtypes("number").columns
    low, high = X[numbers].min(), X[numbers].max()
    width = (high - low).where(high > low, 1)
    scaled = X.assign(**((X[numbers] - low) / width).astype(float))
    counts = y.value_counts()
    doubled = {label: 2 * count for label, count in counts.items()}
    neighbors = max(1, min(5, int(counts.min()) - 1))
    sampler = SMOTENC(k_neighbors=neighbors, sampling_strategy=doubled, random_state=seed)
    made, labels = sampler.fit_resample(scaled, y)
    made, labels = made.iloc[len(X) :], labels.iloc[len(X) :]
    back = made[numbers] * width + low
    whole = [name for name in numbers if X[name].dtype.kind in "iu"]
    return made.assign(**back).assign(**back[whole].round()).astype(X.dtypes), labels


def _some(places: np.ndarray, y: pd.Series, rows: int | None) -> np.ndarray:
    """Return at most so many of the rows, with the classes' shares."""
    if rows is None or rows >= len(places):
        return places
    from sklearn.model_selection import train_test_split

    return np.sort(train_test_split(places, train_size=rows, stratify=y.iloc[places], random_state=0)[0])


def summarize(table: pd.DataFrame) -> Summary:
    """Return Tables 2 to 6 beside the published ones."""
    from oversafe.measure import friedman_holm, tradeoff

    done = table[table["status"] == "done"]
    # Of a run that was stopped before anything ended there are no figures at all.
    figures = [*CLASSIFIERS, *DISTANCES, *(f"{name}_baseline" for name in DISTANCES)]
    done = done.reindex(columns=list(dict.fromkeys([*done.columns, *figures])))
    printed = published("umap_smotenc_tradeoff").set_index("generator")
    done["f1"] = done[list(CLASSIFIERS)].mean(axis=1)
    # Each generator's mean over the folds of a data set; the deep ones are run on the first fold alone.
    means = done.groupby(["name", "method"])[[*figures, "f1"]].mean()
    scores: dict[str, pd.Series] = {}
    for name, part in means.groupby(level="name"):
        of = part.droplevel("name")
        others = of.drop(index=ORIGINAL, errors="ignore")
        if ORIGINAL not in of.index or len(others) < 2:
            continue
        found = tradeoff(
            others[list(DISTANCES)], others["f1"], original_utility=float(of.loc[ORIGINAL, "f1"])
        )
        scores[str(name)] = found["tradeoff"]
    by_set = pd.DataFrame(scores).T
    by_set = by_set[[m for m in ("GC", "CTGAN", "TVAE", "SMOTE-NC", _OURS) if m in by_set.columns]].dropna()
    rows: list[dict[str, Any]] = []
    claims: list[Claim] = []
    tables: dict[str, pd.DataFrame] = {}
    ranks = pd.Series(dtype=float)
    if len(by_set) >= 2 and by_set.shape[1] >= 3:
        test = friedman_holm(by_set, control=_OURS if _OURS in by_set.columns else None)
        ranks = test.ranks
        claims.append(
            claim(
                "UMAP-SMOTENC has the best rank in the trade-off",
                # Ranks that the Friedman test does not tell apart may be chance.
                bool(ranks.idxmin() == _OURS) if test.p_value < 0.05 else None,
                ", ".join(f"{m} {r:.2f}" for m, r in ranks.items()),
                by_set.index,
                SETS,
            )
        )
        claims.append(
            claim(
                "the Friedman test is significant at 0.05",
                bool(test.p_value < 0.05),
                f"p = {test.p_value:.2g}",
                by_set.index,
                SETS,
            )
        )
        claims.append(
            claim(
                "UMAP-SMOTENC differs from each other generator (Wilcoxon, Holm)",
                bool((test.pairs["p_holm"] < 0.05).all()),
                "; ".join(f"{r.method} p = {r.p_holm:.3f}" for r in test.pairs.itertuples()),
                by_set.index,
                SETS,
            )
        )
        tables["Trade-off by data set"] = by_set.rename_axis("data set").reset_index()
    planned = set(table["method"])
    absent = {m: NOT_MEASURED if m in planned else NOT_IN_QUICK for m in printed.index}
    generators = printed.index[printed["rank"].notna()]
    # Ranks among fewer generators are others.
    all_there = set(ranks.index) == set(generators)
    rows += [
        beside("2", "all", f"rank of {m}", printed.loc[m, "rank"], ranks[m] if all_there else np.nan, tolerance=0.5,
               absent=NOT_MEASURED if planned >= set(generators) else NOT_IN_QUICK)
        for m in generators
    ]  # fmt: skip
    rows += [
        beside("3", "all", f"trade-off of {m}", printed.loc[m, "tradeoff"], by_set[m] if m in ranks.index else np.nan,
               absent=absent[m])
        for m in generators
    ]  # fmt: skip
    overall = means.groupby(level="method").mean()
    of_the_test_set = overall[[f"{name}_baseline" for name in DISTANCES]].mean()
    overall = overall.reindex(printed.index)
    for method in printed.index.drop(_BASELINE):
        wanted = [("4", name, f"F1 of {name} on {method}") for name in CLASSIFIERS]
        if method != ORIGINAL:
            wanted += [("6", name, f"{name} of {method}") for name in DISTANCES]
        rows += [
            beside(number, "all", figure, printed.loc[method, name], overall.loc[method, name], absent=absent[method])
            for number, name, figure in wanted
        ]  # fmt: skip
    rows += [
        beside(
            "6",
            "all",
            f"{name} of the test set",
            printed.loc[_BASELINE, name],
            of_the_test_set[f"{name}_baseline"],
        )
        for name in DISTANCES
    ]
    claims += _privacy_claims(means)
    plots = []
    if len(by_set):
        data = by_set.reset_index(names="x").melt("x", var_name="group", value_name="y")
        plots.append(Plot("The trade-off by data set", data, "data set", "trade-off", "points"))
        points = means.reset_index()
        points = points[points["method"] != ORIGINAL]
        data = pd.DataFrame({"x": points["nn1"], "y": points["f1"], "group": points["method"]})
        plots.append(
            Plot("Mean F1 against the distance to the closest record", data, "distance", "F1", "points")
        )
    return Summary(as_rows(rows), tuple(claims), tuple(plots), tables)


def _privacy_claims(means: pd.DataFrame) -> list[Claim]:
    claims = []
    for method, above in (("SMOTE-NC", False), (_OURS, True)):
        if method not in means.index.get_level_values("method"):
            continue
        of = means.xs(method, level="method")
        ahead = {name: of[name] > of[f"{name}_baseline"] for name in DISTANCES}
        share = pd.DataFrame(ahead).all(axis=1) if above else ~pd.DataFrame(ahead).any(axis=1)
        claims.append(
            claim(
                f"{method} is {'above' if above else 'below'} the test set in all three distances",
                bool(share.all()),
                f"on {int(share.sum())} of {len(share)} sets"
                + ("" if share.all() else "; not on " + ", ".join(map(str, share.index[~share]))),
                share.index,
                SETS,
                of_each=True,
            )
        )
    return claims


PAPER = Paper(
    "umap-smotenc",
    "UMAP-SMOTENC: a simple, efficient, and consistent alternative for privacy-aware synthetic data generation",
    SETS,
    {
        "the full credit card fraud file": "only 20,796 of its 284,807 rows are public here (all frauds, a sample of "
        "the rest); creditcard_fraud_21k stands for it, with a fraud share of 2.4 % instead of 0.17 %",
        "the paper's sample of cover types": "its seed is not given; covertype_25k is another sample of the same size",
    },
    cells,
    run,
    summarize,
    (
        "A quick run has one fold, at most 5,000 training and test rows of each set, no tuning and neither CTGAN nor "
        "TVAE; the scales of the trade-off run over the generators that are there, so its size cannot be compared.",
        "The grids of the tuning are ours; the paper does not print its own.",
        "GC is a copula with the class as a column, as the paper's, here one of either half of the rows; the protector "
        "GaussianCopula, which has one for each class, is far better and takes no part here.",
    ),
)
