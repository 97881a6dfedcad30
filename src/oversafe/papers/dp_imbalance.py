"""Differential Privacy Under Class Imbalance: ranks over epsilon, non-private tables, SMOTE before DP, bagging."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd

from oversafe.data import Schema
from oversafe.papers import dp_imbalance_samples as samples
from oversafe.papers.base import (
    EIGHT,
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
from oversafe.papers.imbalance import (
    BASELINES,
    PRIVATE,
    Split,
    baseline_scores,
    fit_baseline,
    fit_private,
    private_scores,
    scores_of,
)

_EPSILONS = (0.05, 0.1, 0.5, 1.0, 5.0)
_QUICK_EPSILONS = (0.1, 1.0, 5.0)
_SCORES = {
    "auc": "auc",
    "f1": "f1",
    "bal_acc": "balanced_accuracy",
    "precision": "precision",
    "recall": "recall",
    "worst_acc": "worst_class_accuracy",
    "avg_acc": "macro_accuracy",
    "g_mean": "g_mean",
    "mcc": "mcc",
}
# The private approaches that are named below, and what each method needs beside the core install.
_WEIGHTED, _PLAIN = "Priv. Weighted LogReg", "Priv. LogReg"
_TRANSFORMER, _GEM, _PRIVBAYES = "Priv. Weighted FTT", "GEM + XGBoost", "PrivBayes + XGBoost"
_CHOSEN = "PrivateClassifier"
# Without privacy it is published, and not made again here.
_FTT = "FTTransformer"
# Of Figure 4: two normal classes in the plane, and the area that is shown.
_TWO_NORMALS = "two normal classes"
_AREA, _STEPS = (-8.0, 12.0), 33
_BOUNDARIES = (
    "Identity + NonPriv. LogReg",
    "SMOTE + NonPriv. XGBoost",
    _PLAIN,
    _WEIGHTED,
    _TRANSFORMER,
    _GEM,
    _CHOSEN,
)
_NEEDS = {"XG": ("xgboost", "boost"), "GEM": ("torch", "deep"), "FTT": ("opacus", "deep")}


def _absent(method: str) -> str | None:
    """Return what is missing for a method, in words."""
    for part, (package, extra) in _NEEDS.items():
        if part in method and find_spec(package) is None:
            return f"it needs {package}; install the extra {extra!r}"
    return None


def cells(quick: bool, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return what is run: ten splits, or two of them and fewer epsilons; what is quick has its ten in any case."""
    splits = range(2 if quick else 10)
    chosen = [
        {"kind": "plain", "name": name, "method": method, "split": split}
        for name in names
        for method in BASELINES
        if _absent(method) is None
        for split in range(10)
    ]
    slow = {_TRANSFORMER, _GEM}
    chosen += [
        {"kind": "private", "name": name, "method": method, "epsilon": epsilon, "split": split}
        for name in names
        for method in PRIVATE
        if _absent(method) is None
        for epsilon in (_QUICK_EPSILONS if quick else _EPSILONS)
        for split in (splits if not quick or method not in slow else [0])
        if not quick or method != _TRANSFORMER or name in ("ecoli", "yeast_me2")
    ]
    chosen += [
        {"kind": "smote", "name": name, "method": method, "epsilon": 1.0, "split": split}
        for name in names
        for method in (samples.SMOTE, samples.PLAIN)
        for split in splits
    ]
    if samples.SAMPLED in names:
        chosen += samples.smote_cells(quick) + samples.bagging_cells(quick)
    chosen += [
        {"kind": "boundary", "name": _TWO_NORMALS, "method": method, "epsilon": 1.0, "split": split}
        for method in _BOUNDARIES
        if _absent(method) is None
        for split in splits
    ]
    return chosen


def run(kind: str, name: str, method: str, split: int, **settings: Any) -> dict[str, Any]:
    """Train one approach on one split and return its scores on the rest."""
    if kind == "plain":
        return _named(baseline_scores(name, method, split))
    if kind == "private":
        return _named(private_scores(name, method, settings["epsilon"], split))
    if kind == "smote":
        return _named(samples.run_smote(name, method, split=split, **settings))
    if kind == "bagging":
        return _named(samples.run_bagging(method, split=split, **settings))
    return _boundary(method, settings["epsilon"], split)


def _named(found: Mapping[str, float]) -> dict[str, Any]:
    """Return scores by the paper's names."""
    return {short: found[name] for short, name in _SCORES.items()}


def _boundary(method: str, epsilon: float, seed: int) -> dict[str, Any]:
    """Return the scores of an approach on the two normal classes of Figure 4, and what it predicts where."""
    (X, y), (X_test, y_test) = _two_normals(1_000, seed), _two_normals(10_000, 1_000 + seed)
    if method in BASELINES:
        model = fit_baseline(method, X, y, seed)
    else:
        schema = Schema.infer(X)
        for name in X.columns:
            schema = schema.declare(name, domain="public", bounds=_AREA, source="the figure's area")
        model = fit_private(method, epsilon, X, y, schema, seed)
    predicted = model.predict(_places())
    return {
        **_named(scores_of(model, Split(X, y, X_test, y_test))),
        "predicted": "".join(str(int(label)) for label in predicted),
    }


def _two_normals(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.1).astype(np.int64)
    return pd.DataFrame(rng.normal(scale=2.0, size=(n, 2)) + 4.0 * y[:, None], columns=["x1", "x2"]), y


def _places() -> pd.DataFrame:
    """Return the places at which predictions are shown."""
    steps = np.linspace(*_AREA, _STEPS)
    return pd.DataFrame({"x1": np.tile(steps, _STEPS), "x2": np.repeat(steps, _STEPS)})


def summarize(table: pd.DataFrame) -> Summary:
    """Return the non-private tables beside the published ones, and the ranks of the private approaches."""
    done = table[table["status"] == "done"]
    # Of a run that was stopped before anything ended there are no scores at all.
    done = done.reindex(columns=list(dict.fromkeys([*done.columns, *_SCORES])))
    rows: list[dict[str, Any]] = []
    printed = published("dp_imbalance_nonprivate").set_index(["dataset", "approach"])
    plain = {(str(n), str(m)): p for (n, m), p in done[done["kind"] == "plain"].groupby(["name", "method"])}
    names = set(table.loc[table["kind"] == "plain", "name"])
    for key in [key for key in printed.index if key[0] in names]:
        for score in printed.columns[printed.loc[key].notna()]:
            # Of the FT-Transformer the others look like standard deviations.
            if _FTT not in key[1] or score not in ("g_mean", "mcc"):
                values = plain[key][score] if key in plain else []
                rows.append(
                    beside("13-20", key[0], f"{score} of {key[1]}", float(printed.loc[key, score]), values)
                )
    private = done[done["kind"] == "private"]
    claims: list[Claim] = []
    plots: list[Plot] = []
    tables: dict[str, pd.DataFrame] = {}
    means = private.groupby(["name", "epsilon", "method"])[list(_SCORES)].mean().reset_index()
    if len(means):
        ranks = _ranks(means)
        tables["Mean ranks over sets and epsilons, private approaches"] = ranks.reset_index()
        by_epsilon = private.groupby(["method", "epsilon"])[list(_SCORES)].mean().reset_index()
        tables["Mean scores by epsilon"] = by_epsilon
        claims += _claims(means, done)
        data = by_epsilon.rename(columns={"epsilon": "x", "auc": "y", "method": "group"})[["x", "y", "group"]]
        plots.append(
            Plot("Mean AUC over the sets by epsilon", data.assign(x=data["x"].astype(str)), "epsilon", "AUC")
        )
    smote, bagging = (done[done["kind"] == kind] for kind in ("smote", "bagging"))
    planned = table[table["kind"] == "bagging"]
    if len(planned):
        rows += samples.bagging_rows(bagging, planned)
    if len(bagging):
        bagging = bagging.astype({"ratio": int, "rows": int, "n_estimators": int})
        claims.append(samples.bagging_claim(bagging))
    plots += samples.plots(smote, bagging)
    boundaries = done[done["kind"] == "boundary"]
    if len(boundaries):
        means = boundaries.groupby("method", sort=False)[["auc", "recall", "precision"]].mean().reset_index()
        tables["Figure 4: two normal classes in the plane, epsilon 1"] = means
        plots.append(_boundary_plot(boundaries[boundaries["split"] == 0]))
    return Summary(as_rows(rows), tuple(claims), tuple(plots), tables)


def _boundary_plot(boundaries: pd.DataFrame) -> Plot:
    shown = [
        _places().assign(facet=row.method, y=[int(label) for label in row.predicted])
        for row in boundaries.itertuples()
    ]
    data = pd.concat(shown, ignore_index=True).rename(columns={"x1": "x", "x2": "group"})
    return Plot("Figure 4: what is predicted where, epsilon 1", data, "first column", "second column", "map")


def _ranks(means: pd.DataFrame) -> pd.DataFrame:
    """Return the mean rank of each approach in each score."""
    ranks = {score: _ranked(means, score).mean() for score in _SCORES}
    return pd.DataFrame(ranks).rename_axis("method")


def _ranked(means: pd.DataFrame, score: str) -> pd.DataFrame:
    """Return the ranks of the approaches that were run on most data sets, where all of these were run."""
    runs = means.groupby("method")["name"].nunique()
    kept = means[means["method"].map(runs) == runs.max()]
    wide = kept.pivot_table(index=["name", "epsilon"], columns="method", values=score).dropna()
    return wide.rank(axis=1, ascending=False)


def _claims(means: pd.DataFrame, done: pd.DataFrame) -> list[Claim]:
    # Statements about the paper's approaches, among which ours is not.
    means = means[means["method"] != _CHOSEN]
    methods = set(means["method"])
    synthesis = [m for m in methods if m.endswith("XGBoost")]
    claims = [
        _leads(
            "synthesis and then a strong classifier has the best rank in AUC",
            means,
            "auc",
            synthesis,
            methods,
        )
    ]
    if _WEIGHTED in methods:
        claims.append(
            _leads(
                "the weighted private logistic regression has the best rank in recall",
                means,
                "recall",
                [_WEIGHTED],
                methods,
            )
        )
    if {_GEM, _PRIVBAYES} <= methods:
        claims.append(_leads("GEM does better than PrivBayes", means, "auc", [_GEM], [_PRIVBAYES]))
    smote = done[done["kind"] == "smote"]
    if "rows" in smote:
        smote = smote[smote["rows"].isna()]
    both = smote.pivot_table(index="name", columns="method", values="auc")
    both = both.reindex(columns=[samples.SMOTE, samples.PLAIN]).dropna()
    after, alone = both[samples.SMOTE], both[samples.PLAIN]
    claims.append(
        claim(
            "SMOTE before a private classifier costs more than it brings, at the same guarantee",
            is_larger(alone - after),
            f"AUC {after.mean():.3f} with SMOTE, {alone.mean():.3f} without, epsilon 1 for the whole",
            both.index,
            EIGHT,
        )
    )
    return claims


def _leads(
    sentence: str, means: pd.DataFrame, score: str, leaders: Collection[str], methods: Collection[str]
) -> Claim:
    """Return whether the best of some approaches has a better rank than the best of the others, set by set."""
    ranks = _ranked(means, score).groupby(level="name").mean()
    mean = ranks.mean()
    own = mean[[m for m in mean.index if m in leaders]]
    others = mean[[m for m in mean.index if m in methods and m not in leaders]]
    ahead = None
    if len(own) and len(others):
        ahead = is_larger(ranks[others.idxmin()] - ranks[own.idxmin()])
    shown = ", ".join(f"{method} {rank:.2f}" for method, rank in mean.items())
    return claim(sentence, ahead, shown, ranks.index, EIGHT)


def _missing() -> dict[str, str]:
    found = {method: _absent(method) for method in (*BASELINES, *PRIVATE)}
    return {method: reason for method, reason in found.items() if reason is not None}


PAPER = Paper(
    "dp-imbalance",
    "Differential Privacy Under Class Imbalance: Methods and Empirical Insights",
    EIGHT,
    _missing(),
    cells,
    run,
    summarize,
    (
        "Ranges, categories and labels count as public for every private method alike. The weighted private logistic "
        "regression has the published noise, the unweighted one that of Chaudhuri et al.",
        "The published weighted learners fit a weight of 1 for the rare class and 2 n0 n1 / n^2 for the other, not the "
        "n0 / n and n1 / n of the text, under which weights after SMOTE would change nothing.",
        "Samples of mammography with more records of the rare class than there are (Figures 2 and 3, Tables 4 to 9) "
        "are drawn with replacement, training and test rows from different records; the paper does not say how its "
        "samples were made. Tables 6 and 8 print, for five learners at ratio 8, the figures that Table 5 has for ratio "
        "32; those of Table 4 are compared. F1s there agree within 0.05 or twice the "
        "standard error of the published mean.",
        "The FT-Transformer takes part in a quick run on two sets, and in the ranks of a full run alone.",
        "Ranks are among the approaches that are here and can be compared with the published ones only in their order.",
        "The FT-Transformer without privacy is not made again: its figures are not measured. Its G-mean and MCC are "
        "left out: the published ones look like standard deviations.",
    ),
)
