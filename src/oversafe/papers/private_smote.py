"""epsilon-PrivateSMOTE: linkability against predictive performance, optimisation paths, oracle, fidelity, cost."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from oversafe.data import fold_one_hot, load_dataset
from oversafe.papers.base import Claim, Paper, Plot, Summary, as_rows, claim, is_larger, published

# Of the sets at hand those with two classes and a size in the paper's range (1,043 to 15,545 rows).
SETS = ("yeast_me2", "employee", "car_eval_34", "solar_flare_m0", "abalone", "personal_loan", "mammography")
_OURS = "PrivateSMOTE"
_EPSILONS = (0.1, 0.5, 1.0, 5.0, 10.0)
_FIDELITY = ("range_coverage", "boundary_adherence", "statistic_similarity", "correlation_similarity")
_LINKED = 10


def cells(quick: bool, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the variants: the paper's grid of each technique, or a part of it."""
    copies, neighbors = ((1, 3), (3,)) if quick else ((1, 2, 3), (1, 3, 5))
    variants = [
        {"method": _OURS, "epsilon": epsilon, "n_copies": n, "k_neighbors": k}
        for epsilon in _EPSILONS
        for n in copies
        for k in neighbors
    ]
    variants += [{"method": "PPT", "k_anonymity": k} for k in ((3,) if quick else (3, 5, 10))]
    everyone = [{"method": "RUS", "ratio": r} for r in ((1.0,) if quick else (0.25, 0.5, 0.75, 1.0))]
    everyone += [
        {"method": method, "ratio": ratio, "k_neighbors": k}
        for method in ("SMOTE", "BorderlineSMOTE")
        for ratio in ((1.0,) if quick else (0.5, 0.75, 1.0))
        for k in ((3,) if quick else (1, 3, 5))
    ]
    everyone.append({"method": "GaussianCopula"})
    if not quick:
        everyone += [{"method": name} for name in ("CTGAN", "TVAE")]
        everyone += [{"method": name, "epsilon": e} for name in ("DPGAN", "PATEGAN") for e in _EPSILONS]
    sets = range(3 if quick else 5)
    return [
        {"name": name, "known": known, "variant": variant, "classifiers": "quick"}
        for name in names
        for variant in [{"method": "original"}, *variants, *everyone]
        for known in sets
    ]


def run(name: str, known: int, variant: dict[str, Any], classifiers: Any) -> dict[str, Any]:
    """Make one variant, and measure linkability, predictive performance and fidelity."""
    from sklearn.model_selection import train_test_split

    from oversafe.attack import Linkability
    from oversafe.measure import fidelity, train_on_release

    X, y = load_dataset(name)
    X = fold_one_hot(X)
    train, test = train_test_split(np.arange(len(X)), test_size=0.2, stratify=y, random_state=0)
    real = X.iloc[train].reset_index(drop=True), y.iloc[train].reset_index(drop=True)
    held = X.iloc[test].reset_index(drop=True), y.iloc[test].reset_index(drop=True)
    columns = quasi_identifiers(list(X.columns), known)
    begin = time.perf_counter()
    release = _made(variant, columns, *real)
    seconds = time.perf_counter() - begin
    scores = train_on_release(release, held, train=real[0], classifiers=classifiers, random_state=0)
    result: dict[str, Any] = {
        "method": variant["method"],
        "auc": float(scores["auc"].max()),
        "variant_seconds": seconds,
    }
    if variant["method"] != "original":
        half = len(columns) // 2
        attack = Linkability(columns[:half], columns[half:], _LINKED, random_state=0)
        risk = attack.run(release[0], real[0], held[0])
        figures = fidelity(release[0], real[0]).overall
        result |= {"linkability": float(risk.risk), **{name: float(figures[name]) for name in _FIDELITY}}
    return result


def quasi_identifiers(columns: list[str], number: int) -> list[str]:
    """Return a random set of 40 % of the columns, at least two."""
    size = max(2, round(0.4 * len(columns)))
    chosen = np.random.default_rng(number).choice(len(columns), size, replace=False)
    return [columns[at] for at in chosen]


def _made(variant: dict[str, Any], known: list[str], X: pd.DataFrame, y: pd.Series) -> Any:
    from oversafe import protect

    settings = {key: value for key, value in variant.items() if key not in ("method", "ratio")}
    method = variant["method"]
    if method == "original":
        return X, y
    if method == _OURS:
        return protect.PrivateSMOTE(quasi_identifiers=known, random_state=0, **settings).fit_resample(X, y)
    if method == "PPT":
        return protect.KAnonymizer(settings["k_anonymity"], quasi_identifiers=known).fit_resample(X, y)
    kinds: dict[str, Any] = {
        "RUS": protect.RandomUnderSampler,
        "SMOTE": protect.SMOTE,
        "BorderlineSMOTE": protect.BorderlineSMOTE,
        "GaussianCopula": protect.GaussianCopula,
        "CTGAN": protect.CTGAN,
        "TVAE": protect.TVAE,
        "DPGAN": protect.DPGAN,
        "PATEGAN": protect.PATEGAN,
    }
    if "ratio" in variant:
        counts = y.value_counts()
        # Tables whose classes are more even than the wanted ratio are balanced.
        settings["sampling_strategy"] = max(variant["ratio"], counts.iloc[-1] / counts.iloc[0])
    return kinds[method](random_state=0, **settings).fit_resample(X, y)


def summarize(table: pd.DataFrame) -> Summary:
    """Return what the figures of the paper show, and the cost beside the published one."""
    from oversafe.measure import bayes_sign_test

    done = table[table["status"] == "done"].copy()
    if done.empty:
        return Summary(as_rows([]))
    original = done[done["method"] == "original"].groupby("name")["auc"].max()
    made = done[done["method"] != "original"].copy()
    made["loss"] = 100 * (made["auc"] / made["name"].map(original) - 1)
    ours = made[made["method"] == _OURS].copy()
    ours["epsilon"] = [_setting(text, "epsilon") for text in ours["variant"]]
    by_epsilon = ours.groupby("epsilon")[["linkability", "loss", *_FIDELITY]].median()
    # Each set of quasi-identifiers is an intruder of its own, for whom the variants are chosen anew.
    case = ["name", "known"]
    best_use = made.loc[made.groupby(["method", *case])["auc"].idxmax()]
    safest = (
        made.sort_values(["linkability", "auc"], ascending=[True, False]).groupby(["method", *case]).head(1)
    )
    oracle = safest.groupby(case)["auc"].max()
    signs = []
    for method, part in safest.groupby("method"):
        # Of each data set one pair, since its sets of quasi-identifiers are no tables of their own.
        pairs = part.set_index(case)[["auc"]].assign(oracle=oracle).groupby(level="name").median()
        test = bayes_sign_test(pairs["auc"], pairs["oracle"])
        signs.append(
            {"technique": method, "draws with the oracle": test.draw, "loses": test.lose, "sets": len(pairs)}
        )
    paths = pd.DataFrame(
        {
            "AUC difference in %, performance first": best_use.groupby("method")["loss"].median(),
            "linkability, performance first": best_use.groupby("method")["linkability"].median(),
            "AUC difference in %, privacy first": safest.groupby("method")["loss"].median(),
            "linkability, privacy first": safest.groupby("method")["linkability"].median(),
        }
    )
    cost = made.groupby("method").agg(
        variants=("variant_seconds", "size"), seconds=("variant_seconds", "mean")
    )
    # Of another machine, so the order of the techniques is what can be compared.
    printed = published("private_smote_cost").set_index("technique")["minutes_per_variant"] * 60
    printed = printed.rename({"epsilon-PrivateSMOTE": _OURS, "PATE-GAN": "PATEGAN"})
    cost["published seconds"] = printed.reindex(cost.index)
    plots = [
        Plot(
            "Figure 2: linkability against the difference in AUC, by epsilon",
            pd.DataFrame({"x": ours["loss"], "y": ours["linkability"], "group": ours["epsilon"].astype(str)}),
            "AUC difference in %",
            "linkability",
            "points",
        ),
        Plot(
            "Figure 3: fidelity by epsilon",
            by_epsilon[list(_FIDELITY)].reset_index().melt("epsilon").set_axis(["x", "group", "y"], axis=1)
            .assign(x=lambda t: t["x"].astype(str)),
            "epsilon",
            "median",
        ),
        Plot(
            "Figure 6: fidelity by technique, privacy first",
            safest.groupby("method")[list(_FIDELITY)].median().reset_index().melt("method")
            .set_axis(["x", "group", "y"], axis=1),
            "technique",
            "median",
            "points",
        ),
    ]  # fmt: skip
    tables = {
        "Optimisation paths (Figure 4, medians over the sets)": paths.rename_axis("technique").reset_index(),
        "Bayes sign test against the oracle, privacy first (Figure 5)": pd.DataFrame(signs),
        "PrivateSMOTE by epsilon (Figures 2 and 3, medians)": by_epsilon.reset_index(),
        "Cost of a variant in seconds (Table 2)": cost.rename_axis("technique").reset_index(),
    }
    claims = (*_claims(ours, best_use, by_epsilon, pd.DataFrame(signs)), _cheaper(cost, list(original.index)))
    return Summary(as_rows([]), claims, tuple(plots), tables)


def _claims(
    ours: pd.DataFrame, best_use: pd.DataFrame, by_epsilon: pd.DataFrame, signs: pd.DataFrame
) -> tuple[Claim, ...]:
    low, high = by_epsilon.loc[min(by_epsilon.index)], by_epsilon.loc[max(by_epsilon.index)]
    of = ours.pivot_table(
        index=["name", "known"],
        columns="epsilon",
        values=["linkability", *_FIDELITY],
        aggfunc="median",
    )
    tried = set(ours["name"])

    def by_set(differences: pd.Series) -> pd.Series:
        """Return the median of each data set, whose sets of quasi-identifiers are no tables of their own."""
        return differences.groupby(level="name").median()

    def grows(column: str) -> Any:
        """Return by how much a figure grows from the lowest epsilon to the highest, set by set."""
        return by_set(of[column][high.name] - of[column][low.name])

    def about(sentence: str, differences: Any, column: str) -> Claim:
        both = f"{low[column]:.3f} at epsilon {low.name:g}, {high[column]:.3f} at {high.name:g}"
        return claim(sentence, is_larger(differences), both, tried, SETS)

    link = best_use.pivot_table(index=["name", "known"], columns="method", values="linkability")
    keeping = [name for name in ("SMOTE", "BorderlineSMOTE") if name in link.columns]
    draws = signs.set_index("technique")["draws with the oracle"].sort_values(ascending=False)
    # Probabilities so close to each other say nothing about an order.
    clear = len(draws) < 3 or draws.iloc[1] - draws.iloc[2] > 0.05
    return (
        about("a lower epsilon covers more of the range", -grows("range_coverage"), "range_coverage"),
        about(
            "a lower epsilon keeps less within the boundaries",
            grows("boundary_adherence"),
            "boundary_adherence",
        ),
        about("a higher epsilon keeps means better", grows("statistic_similarity"), "statistic_similarity"),
        about(
            "a higher epsilon keeps correlations better",
            grows("correlation_similarity"),
            "correlation_similarity",
        ),
        about(
            "epsilon 0.1 is linked no less than the others, its noise notwithstanding",
            by_set(of["linkability"][low.name] - of["linkability"].drop(columns=low.name).median(axis=1)),
            "linkability",
        ),
        claim(
            "PrivateSMOTE is linked less than the samplers that keep all rows",
            is_larger(by_set(link[keeping].min(axis=1) - link[_OURS])) if keeping and _OURS in link else None,
            ", ".join(f"{name} {value:.3f}" for name, value in link.median().items()),
            tried,
            SETS,
        ),
        claim(
            "of all techniques PPT and PrivateSMOTE most often equal the oracle",
            set(draws.index[:2]) == {"PPT", _OURS} if clear else None,
            ", ".join(f"{name} {value:.2f}" for name, value in draws.items()),
            tried,
            SETS,
        ),
    )


def _cheaper(cost: pd.DataFrame, tried: Sequence[str]) -> Claim:
    seconds = cost["seconds"].dropna()
    slow = seconds.reindex(["CTGAN", "TVAE", "DPGAN", "PATEGAN"]).dropna()
    return claim(
        "a variant of PrivateSMOTE takes less time than one of any deep or private generator",
        bool(seconds[_OURS] < slow.min()) if len(slow) else None,
        ", ".join(f"{name} {value:.2g} s" for name, value in seconds.items()),
        tried,
        SETS,
    )


def _setting(text: Any, name: str) -> float:
    """Return a setting of a variant from its text in the table of results."""
    import ast

    plain = text if isinstance(text, dict) else ast.literal_eval(str(text))
    pairs = plain["mapping"] if "mapping" in plain else [[k, k, v] for k, v in plain.items()]
    return float({key: value for _, key, value in pairs}[name])


PAPER = Paper(
    "private-smote",
    "Differentially-Private Data Synthetisation for Efficient Re-Identification Risk Control",
    SETS,
    {"the fifteen OpenML sets of the paper": "they are published on Kaggle only and their OpenML names are not given; "
     "sets of this collection with two classes and as many rows are used, so that figures are not comparable"},
    cells,
    run,
    summarize,
    (
        "PPT stands for the best solutions of ARX in the paper and for Mondrian k-anonymity here; CTGAN, TVAE, "
        "DPGAN and PATEGAN take part in a full run alone, and Copula GAN in none.",
        "Predictive performance is the better AUC of logistic regression and a random forest, without a grid search.",
    ),
)  # fmt: skip
