"""Private logistic regression on samples: after SMOTE (Figure 2), and bagged (Figure 3, Tables 4 to 9)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from oversafe.papers.base import NOT_IN_QUICK, NOT_MEASURED, Claim, Plot, beside, is_larger, published
from oversafe.papers.imbalance import Split, scores_of, split_of

SAMPLED = "mammography"
_EPSILON = 0.5
_SMOTE_EPSILONS = (0.5, 1.0, 5.0)
_ROWS, _RATIOS = (500, 1000, 2000, 5000, 10000), (4, 8, 16, 32)
_QUICK_ROWS, _QUICK_RATIOS = (1000, 10000), (8, 32)
_ALONE = ("LR, Non-Private", "DPLR")
# Each kind of bagging: how the rows are dealt out, and how the learners vote.
_BAGGED = {
    "Adv. Comp.": ("subsample", "hard"),
    "Soft": ("subsample", "soft"),
    "Disjoint": ("disjoint", "hard"),
    "Stratified": ("stratified", "hard"),
}
_LEARNERS = (5, 10, 20)
SMOTE, PLAIN = "SMOTE + Priv. LogReg", "Priv. LogReg"


def bagging_cells(quick: bool) -> list[dict[str, Any]]:
    """Return the settings of the tables, and in a full run of the other ratios of the figure."""
    methods = [(method, 1) for method in _ALONE] + [(method, n) for method in _BAGGED for n in _LEARNERS]
    return [
        {"kind": "bagging", "name": SAMPLED, "method": method, "n_estimators": n, "rows": rows, "ratio": ratio,
         "split": split}
        for ratio in (_QUICK_RATIOS if quick else _RATIOS)
        for rows in (_QUICK_ROWS if quick else _ROWS)
        for method, n in methods
        for split in range(5 if quick else 10)
    ]  # fmt: skip


def smote_cells(quick: bool) -> list[dict[str, Any]]:
    """Return the settings of Figure 2."""
    return [
        {"kind": "smote", "name": SAMPLED, "method": method, "epsilon": epsilon, "rows": rows, "ratio": ratio,
         "split": split}
        for ratio in (_QUICK_RATIOS if quick else _RATIOS)
        for rows in (_QUICK_ROWS if quick else _ROWS)
        for method, epsilons in ((PLAIN, (_EPSILON,)), (SMOTE, _SMOTE_EPSILONS))
        for epsilon in epsilons
        for split in range(5 if quick else 10)
    ]  # fmt: skip


def run_bagging(method: str, n_estimators: int, rows: int, ratio: int, split: int) -> dict[str, float]:
    """Return the scores of one private learner, of several that vote, or of one without privacy."""
    data = sample(rows, ratio, split)
    if method == "LR, Non-Private":
        from sklearn.linear_model import LogisticRegression

        return scores_of(LogisticRegression(max_iter=1000).fit(data.X, data.y), data)
    data = scaled(data)
    learner = _private(_EPSILON, data.X.shape[1], split)
    if method != "DPLR":
        from oversafe.learn import PrivateBaggingClassifier

        sampling, voting = _BAGGED[method]
        learner = PrivateBaggingClassifier(
            learner, n_estimators, epsilon=_EPSILON, delta=1 / len(data.y) ** 2 if sampling == "subsample" else 0.0,
            sampling=sampling, voting=voting, classes=[0, 1], random_state=split,
        )  # fmt: skip
    return scores_of(learner.fit(data.X, data.y), data)


def run_smote(
    name: str, method: str, epsilon: float, split: int, rows: int | None = None, ratio: int | None = None
) -> dict[str, float]:
    """Return the scores of a private learner, with SMOTE before it or without, at the same guarantee of the whole."""
    data = split_of(name, split) if rows is None or ratio is None else sample(rows, ratio, split)
    data = scaled(data)
    if method == PLAIN:
        return scores_of(_private(epsilon, data.X.shape[1], split).fit(data.X, data.y), data)
    from oversafe.privacy import smote_budget
    from oversafe.protect.samplers.stable_smote import stable_smote

    minority = data.X[data.y == 1].to_numpy()
    added = int((data.y == 0).sum()) - len(minority)
    k = min(5, len(minority) - 1)
    made = stable_smote(minority, added, k_neighbors=k, random_state=np.random.default_rng(split))
    new = minority[made.base] + made.gap[:, None] * (minority[made.neighbour] - minority[made.base])
    run_at = smote_budget(
        epsilon, n_minority=len(minority), n_added=added, dimensions=data.X.shape[1], k_neighbors=k
    )
    table = pd.concat([data.X, pd.DataFrame(new, columns=data.X.columns)], ignore_index=True)
    model = _private(run_at, data.X.shape[1], split).fit(table, np.r_[data.y, np.ones(added, dtype=int)])
    return scores_of(model, data)


def sample(rows: int, ratio: int, split: int) -> Split:
    """Return so many rows of the data set, with so many of the common class to one of the rare one.

    The rare class has too few records for most sizes; like the others it is then drawn with replacement, after the
    test rows were set aside, so that no record is in both.
    """
    data = split_of(SAMPLED, split)
    rng = np.random.default_rng(split)

    def drawn(y: np.ndarray, n: int) -> np.ndarray:
        rare = max(2, round(n / (ratio + 1)))
        parts = [
            rng.choice(np.flatnonzero(y == label), count, replace=count > int((y == label).sum()))
            for label, count in ((1, rare), (0, n - rare))
        ]
        return np.sort(np.concatenate(parts))

    train, test = drawn(data.y, round(0.8 * rows)), drawn(data.y_test, round(0.2 * rows))
    return Split(
        data.X.iloc[train].reset_index(drop=True),
        data.y[train],
        data.X_test.iloc[test].reset_index(drop=True),
        data.y_test[test],
    )


def scaled(data: Split) -> Split:
    """Return a split with every column between -1 and 1; its range counts as public, as everywhere in the paper."""
    both = pd.concat([data.X, data.X_test])
    low, high = both.min(), both.max()
    width = (high - low).where(high > low, 1.0)
    X, X_test = (2 * (part - low) / width - 1 for part in (data.X, data.X_test))
    return Split(X.reset_index(drop=True), data.y, X_test.reset_index(drop=True), data.y_test)


def _private(epsilon: float, dimensions: int, seed: int) -> Any:
    from oversafe.learn import PrivateLogisticRegression

    return PrivateLogisticRegression(
        epsilon=epsilon,
        class_weight=None,
        method="objective",
        data_norm=float(np.sqrt(dimensions)),
        classes=[0, 1],
        random_state=seed,
    )


def bagging_rows(bagging: pd.DataFrame, planned: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the tables beside the published ones, given the cells that are done and all that there are."""
    keys = ["ratio", "rows", "method", "n_estimators"]
    found = dict(list(bagging.groupby(keys)["f1"])) if len(bagging) else {}
    to_run = set(planned[keys].itertuples(index=False, name=None))
    rows = []
    for row in published("dp_imbalance_bagging").itertuples():
        key = (row.ratio, row.rows, row.method, row.n_estimators)
        rows.append(
            beside(
                str(row.table),
                f"{row.rows} rows, ratio {row.ratio}",
                f"F1 of {row.method}" + (f", {row.n_estimators} learners" if row.n_estimators > 1 else ""),
                row.f1,
                found.get(key, []),
                # The published one is a mean over ten runs itself.
                tolerance=max(0.05, 2 * row.deviation / np.sqrt(10)),
                absent=NOT_MEASURED if key in to_run else NOT_IN_QUICK,
            )
        )
    return rows


def bagging_claim(bagging: pd.DataFrame) -> Claim:
    """Return whether several learners do no better than one, over sizes, ratios and splits of one data set."""
    wide = bagging[bagging["method"] != _ALONE[0]].pivot_table(
        index=["ratio", "rows", "split"], columns=["method", "n_estimators"], values="f1"
    )
    mean = wide.mean().sort_values(ascending=False)
    bagged = [key for key in mean.index if key[0] in _BAGGED]
    one = (_ALONE[1], 1)
    return Claim(
        "bagging private classifiers does not beat one of them",
        is_larger(wide[one] - wide[bagged[0]]) if bagged and one in wide else None,
        ", ".join(f"{method} {n}: F1 {value:.3f}" for (method, n), value in mean.items())
        + f"; over {len(wide)} samples of one set",
    )


def plots(smote: pd.DataFrame, bagging: pd.DataFrame) -> list[Plot]:
    """Return Figures 2 and 3, one drawing for each ratio."""
    drawn = []
    # Of the kinds of bagging the figure has one; the tables have all.
    bagging = bagging[bagging["method"].isin([*_ALONE, "Adv. Comp."])]
    for title, data, setting in (
        (
            "Figure 2: SMOTE before private logistic regression, F1 on samples of mammography",
            smote,
            "epsilon",
        ),
        (
            "Figure 3: bagging of private logistic regressions, F1 on samples of mammography",
            bagging,
            "n_estimators",
        ),
    ):
        data = data.dropna(subset=["rows"]) if "rows" in data else data[:0]
        if len(data):
            group = [
                f"{method}, epsilon {value:g}" if setting == "epsilon"
                else method if value == 1 else f"{method}, {value:g} learners"
                for method, value in zip(data["method"], data[setting], strict=True)
            ]  # fmt: skip
            means = data.assign(group=group).groupby(["ratio", "rows", "group"])["f1"].mean().reset_index()
            means["facet"] = [f"ratio {int(ratio)}" for ratio in means.pop("ratio")]
            means["rows"] = means["rows"].astype(int).astype(str)
            drawn.append(Plot(title, means.rename(columns={"rows": "x", "f1": "y"}), "rows", "F1"))
    return drawn
