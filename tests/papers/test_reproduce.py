"""Reproductions put published and measured figures side by side, and say what is missing."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from oversafe._core.errors import InputError
from oversafe.data import load_dataset
from oversafe.papers import (
    dp_imbalance,
    dp_imbalance_samples,
    private_smote,
    reproduce,
    smote_and_mirrors,
    smote_dp,
    umap_smotenc,
)
from oversafe.papers.base import (
    Claim,
    Paper,
    Plot,
    Summary,
    as_rows,
    beside,
    claim,
    counted,
    is_larger,
    published,
)
from oversafe.papers.reproduction import PAPERS, load_paper
from oversafe.report.papers_page import draw, reproduction_page, reproduction_summary, write_reproduction

# Its name in the package is that of the function.
MODULE = import_module("oversafe.papers.reproduction")


def test_figures_side_by_side():
    close = beside("3", "ecoli", "auc", 0.50, [0.53, 0.54])
    assert close["measured"] == pytest.approx(0.535) and close["difference"] == pytest.approx(0.035)
    assert close["agrees"] is True
    # Seven hundredths off with a narrow interval.
    assert beside("3", "ecoli", "auc", 0.50, [0.57, 0.571, 0.569])["agrees"] is False
    # As far off, and the repetitions vary so much that it may be chance; of two alone nothing is concluded.
    wide = beside("3", "ecoli", "auc", 0.50, [0.40, 0.74, 0.42, 0.70, 0.59])
    assert wide["mark"] == "undecided" and wide["agrees"] is None
    assert beside("3", "ecoli", "auc", 0.50, [0.40, 0.74])["agrees"] is False
    # An attack that finds more than the published one neither agrees nor differs; one that finds less differs.
    rows = [
        beside("4", "ecoli", "recall", 0.43, [value], larger_is_better=True)
        for value in (1.0, 0.2, 0.45, np.nan)
    ]
    assert [row["mark"] for row in rows] == ["stronger", "differs", "agrees", "not measured"]
    assert [row["agrees"] for row in rows] == [False, False, True, None]
    assert counted(as_rows(rows)) == "1 agrees, 1 finds more, 1 differs, 1 not measured"
    assert counted(as_rows([rows[2], wide, rows[2]])) == "2 agree, 0 find more, 0 differ, 1 undecided"
    # An interval that is wider than the tolerance holds what agrees and what does not, however close the means are.
    assert beside("4", "ecoli", "recall", 0.5, [0.6], interval=(0.45, 0.7))["mark"] == "undecided"
    assert beside("4", "ecoli", "recall", 0.5, [0.5], interval=(0.4, 0.6))["mark"] == "undecided"
    assert beside("4", "ecoli", "recall", 0.5, [0.54], interval=(0.5, 0.58))["mark"] == "agrees"
    assert beside("4", "ecoli", "recall", 0.5, [0.8], interval=(0.6, 1.0))["mark"] == "differs"


def test_statements_say_on_how_many_sets_they_were_tried():
    sets = ("a", "b", "c")
    assert claim("x", True, "all 1", sets, sets) == Claim("x", True, "all 1; tried on 3 of 3 sets")
    some = claim("x", True, "all 1", ["a"], sets)
    assert some.holds is None and some.measured == "all 1; tried on 1 of 3 sets"
    assert claim("x", None, "", [], sets).holds is None
    # What fails on one set fails on all of them, and a mean over some of them says nothing.
    assert claim("x", False, "0", ["a"], sets, of_each=True).holds is False
    assert claim("x", False, "0", ["a"], sets).holds is None


def test_differences_within_the_noise_decide_nothing():
    # Means 0.1: standard errors of 0.01 and of 0.1, by hand.
    assert is_larger([0.08, 0.10, 0.12]) is True and is_larger([-0.08, -0.10, -0.12]) is False
    assert is_larger([-0.1, 0.1, 0.3]) is None
    assert is_larger([0.3]) is None and is_larger([]) is None
    # Two intervals of 0.2 either way leave 0.28 for their difference.
    assert is_larger([0.3], [0.2, 0.2]) is True and is_larger([0.25], [0.2, 0.2]) is None


def test_the_statements_of_smote_and_mirrors():
    def cells(names, augmented_auc):
        geometry = [
            {"kind": "geometry", "name": n, "status": "done", "seed": 0, "reconsmote_precision": 1.0,
             "reconsmote_recall": 1.0, "distinsmote_precision": 1.0, "distinsmote_recall": 1.0, "exact_bound": 0.5,
             "approximate_bound": 0.5, "tight_bound": 0.5}
            for n in names
        ]  # fmt: skip
        shadow = [
            {"kind": "shadow", "name": n, "status": "done", "augmented": augmented, "interval": [auc - 0.1, auc + 0.1],
             "shadow_auc": auc}
            for n in names
            for augmented, auc in ((False, 0.5), (True, augmented_auc))
        ]  # fmt: skip
        return pd.DataFrame(geometry + shadow)

    def holds(names, augmented_auc):
        return [c.holds for c in smote_and_mirrors.summarize(cells(names, augmented_auc)).claims]

    every = smote_and_mirrors.EIGHT
    assert holds(every, 0.7) == [True, True, True, True]
    # A difference of 0.02 is within the noise: 0.1 * sqrt(16) / 8 = 0.05.
    assert holds(every, 0.52) == [True, True, True, None]
    assert holds(every[:1], 0.9) == [None, None, None, None]
    summary = smote_and_mirrors.summarize(cells(every[:2], 0.7))
    assert summary.claims[0].measured == "the lowest is 1.000; tried on 2 of 8 sets"
    assert summary.claims[1].measured == "not tried on any set"
    marks = summary.rows.set_index(["data", "figure"])["mark"]
    assert marks["ecoli", "reconsmote recall"] == "stronger"
    assert marks["ecoli", "reconsmote precision"] == "agrees"
    assert marks["ecoli", "mia real auc"] == "undecided"
    # What a quick run leaves out is said, and what was not finished.
    assert marks["ecoli", "groundhog auc"] == "not in a quick run"
    stopped = cells(every[:1], 0.7)
    stopped.loc[stopped["kind"] == "shadow", "status"] = "pending"
    marks = smote_and_mirrors.summarize(stopped).rows.set_index(["data", "figure"])["mark"]
    assert marks["ecoli", "mia real auc"] == "not measured" and len(marks) == 10


@pytest.mark.data
@pytest.mark.parametrize(
    ("paper", "figures", "left_out"),
    [(smote_and_mirrors, 80, 6), (umap_smotenc, 64, 25), (dp_imbalance, 772, 84)],
)
def test_a_quick_run_names_every_published_figure(paper, figures, left_out, data_folder):
    planned = pd.DataFrame(paper.cells(True, paper.PAPER.data_sets)).assign(status="pending")
    everything = pd.DataFrame(paper.cells(False, paper.PAPER.data_sets)).assign(status="pending")
    for table, missing in ((planned, left_out), (everything, 0)):
        rows = paper.summarize(table).rows
        assert len(rows) == figures and not rows.duplicated(["table", "data", "figure"]).any()
        assert (rows["mark"] == "not in a quick run").sum() == missing
        assert (rows["mark"] == "not measured").sum() == figures - missing


def test_the_statements_of_the_private_papers():
    rng = np.random.default_rng(0)
    scores = list(dp_imbalance._SCORES)

    def cell(name, method, kind, level, **more):
        values = dict.fromkeys(scores, level + 0.01 * rng.random())
        return {"kind": kind, "name": name, "method": method, "epsilon": 1.0, "split": 0, "status": "done",
                "ratio": np.nan, "rows": np.nan, "n_estimators": np.nan, **values, **more}  # fmt: skip

    def private(names):
        rows = []
        for name in names:
            rows += [cell(name, "GEM + XGBoost", "private", 0.9), cell(name, "Priv. LogReg", "private", 0.7)]
            rows += [
                cell(name, "SMOTE + Priv. LogReg", "smote", 0.5),
                cell(name, "Priv. LogReg", "smote", 0.7),
            ]
        # The transformer was run on one set alone, which must not leave the others out of the ranks.
        rows += [cell(names[0], "Priv. Weighted FTT", "private", 0.1)]
        rows += [
            cell("mammography", method, "bagging", level, ratio=r, rows=500, n_estimators=n, split=split)
            for method, n, level in (("DPLR", 1, 0.29), ("Disjoint", 5, 0.2), ("LR, Non-Private", 1, 0.9))
            for r in (8, 32) for split in range(4)
        ]  # fmt: skip
        return dp_imbalance.summarize(pd.DataFrame(rows))

    every = private(smote_and_mirrors.EIGHT)
    assert [c.holds for c in every.claims] == [True, True, True]
    assert every.claims[1].measured.endswith("tried on 8 of 8 sets")
    assert "over 8 samples" in every.claims[2].measured
    assert [c.holds for c in private(["ecoli", "abalone"]).claims][:2] == [None, None]
    marks = every.rows.set_index(["table", "data", "figure"])["mark"]
    assert marks["4", "500 rows, ratio 8", "F1 of Disjoint, 5 learners"] == "agrees"
    # Within twice the standard error of the published mean, 0.4 over ten runs with a deviation of 0.299.
    assert marks["5", "500 rows, ratio 32", "F1 of LR, Non-Private"] == "differs"
    assert marks["7", "500 rows, ratio 32", "F1 of DPLR"] == "differs"
    # The eight sets as they are do not belong to the figure of samples.
    (plot,) = (plot for plot in every.plots if "samples" in plot.title)
    assert plot.title.startswith("Figure 3") and set(plot.data["facet"]) == {"ratio 8", "ratio 32"}


@pytest.mark.data
def test_samples_of_a_size_and_a_ratio(data_folder):
    data = dp_imbalance_samples.sample(10_000, 8, split=1)
    assert len(data.y) == 8_000 and len(data.y_test) == 2_000
    assert [round(float((y == 0).sum() / y.sum())) for y in (data.y, data.y_test)] == [8, 8]
    # Drawn with replacement, but never the same record for training and for testing.
    whole = dp_imbalance_samples.split_of("mammography", 1)
    for drawn, pool in ((data.X, whole.X), (data.X_test, whole.X_test)):
        assert len(drawn.merge(pool.drop_duplicates())) == len(drawn)
    scaled = dp_imbalance_samples.scaled(data)
    assert scaled.X.abs().to_numpy().max() <= 1 and scaled.X_test.abs().to_numpy().max() <= 1


@pytest.mark.parametrize(
    ("name", "rows", "column", "value"),
    [
        ("smote_and_mirrors_augmented", 9, "mia_augmented_auc", 0.50),
        ("smote_and_mirrors_synthetic", 9, "reconsmote_recall", 0.43),
        ("smote_dp_fnorm", 3, "covariance_fnorm", 4.154),
        ("umap_smotenc_tradeoff", 7, "tradeoff", 0.24),
        ("private_smote_cost", 6, "minutes", 207.60),
        ("dp_imbalance_bagging", 140, "f1", 0.662),
    ],
)
def test_published_figures_come_with_the_package(name, rows, column, value):
    table = published(name)
    assert len(table) == rows and table[column].iloc[0] == value


@pytest.mark.parametrize("name", PAPERS)
def test_every_paper_is_complete(name, monkeypatch):
    paper = load_paper(name)
    assert paper.name == name
    monkeypatch.setattr(smote_and_mirrors, "_sizes", lambda data: (1000, 40))
    quick, full = (paper.cells(flag, list(paper.data_sets)) for flag in (True, False))
    assert 0 < len(quick) < len(full)
    with pytest.raises(InputError, match="is not known"):
        load_paper("tables-of-contents")


def test_the_bounds_of_figures_4_to_6():
    four, five, six = smote_and_mirrors.bound_plots()
    # Without mutuality both bounds agree where rows are many, as the paper says.
    plain = four.data[(four.data["facet"] == "mutuality 0") & (four.data["x"] == 100)]
    assert plain["y"].between(0.95, 1.05).all()
    # A few neighbours and many rows identify nearly all, many neighbours and few rows nobody.
    grid = five.data.set_index(["group", "x"])["y"]
    assert grid[3, 100] > 0.95 and grid[15, 5] < 0.05
    # More mutuality, a higher bound.
    assert all(part.sort_values("x")["y"].is_monotonic_increasing for _, part in six.data.groupby("group"))


def test_smote_contracts_and_the_norms_of_the_gaussian_experiment():
    found = smote_dp.run("contraction", dimensions=2, k=5, seed=0, records=100)
    assert found["trace_ratio"] + 2 * found["trace_spread"] < 1
    norms = smote_dp.run("gaussian", dimensions=2, seed=0, epsilon=1.0)
    # With 500 records of a class private counts are far rougher than SMOTE's rows.
    assert norms["SMOTE covariance"] < norms["DP covariance"]
    assert set(norms) == {f"{m} {w}" for m in ("DP", "SMOTE", "SMOTE-DP") for w in ("mean", "covariance")}


def test_quasi_identifiers_are_two_fifths_of_the_columns():
    columns = [f"c{i}" for i in range(20)]
    sets = [private_smote.quasi_identifiers(columns, number) for number in range(5)]
    assert all(len(set(chosen)) == 8 for chosen in sets) and len({tuple(chosen) for chosen in sets}) == 5


def test_the_trade_off_of_the_umap_paper_by_hand():
    def cell(name, method, f1, near):
        return {"name": name, "method": method, "status": "done", **dict.fromkeys(umap_smotenc.CLASSIFIERS, f1),
                **dict.fromkeys(umap_smotenc.DISTANCES, near),
                **{f"{d}_baseline": 0.3 for d in umap_smotenc.DISTANCES}}  # fmt: skip

    cells = []
    for name in umap_smotenc.SETS:
        cells += [cell(name, "Original train set", 0.9, np.nan), cell(name, "GC", 0.3, 0.5)]
        cells += [cell(name, "SMOTE-NC", 0.88, 0.1), cell(name, "UMAP-SMOTENC", 0.84, 0.5)]
    summary = umap_smotenc.summarize(pd.DataFrame(cells))
    rows = summary.rows.set_index("figure")["measured"]
    assert rows["trade-off of GC"] == 0.0
    utility = (0.84 - 0.3) / (0.9 - 0.3)
    assert rows["trade-off of UMAP-SMOTENC"] == pytest.approx(2 * utility / (1 + utility))
    assert rows["F1 of lr on SMOTE-NC"] == pytest.approx(0.88)
    holds = {claim.sentence: claim.holds for claim in summary.claims}
    assert holds["UMAP-SMOTENC has the best rank in the trade-off"] is True
    assert holds["SMOTE-NC is below the test set in all three distances"] is True
    some = umap_smotenc.summarize(pd.DataFrame(cells[:12]))
    assert {claim.holds for claim in some.claims} == {None}
    assert all("tried on 3 of 8 sets" in claim.measured for claim in some.claims)


def squares(number: int, name: str = "") -> dict[str, float]:
    if number == 13:
        raise ValueError("an unlucky number")
    return {"square": number**2}


def _paper(cells, **changes) -> Paper:
    def summarize(table):
        rows = [beside("1", "<b>all</b>", "square of 3", 9.0, table.loc[table["number"] == 3, "square"])]
        plot = pd.DataFrame(
            {"x": [1, 2], "y": [1.0, 4.0], "group": ["a", "a"], "low": [0.5, 3.5], "high": [1.5, 4.5]}
        )
        claims = (Claim("squares grow", True, "1, 4"), Claim("squares shrink", False, "1, 4"))
        return Summary(as_rows(rows), claims, (Plot("Squares", plot, "n", "n^2"),), {"Extra": plot})

    settings = {"data_sets": (), "unavailable": {"the census": "nobody may have it"}, **changes}
    return Paper(
        "squares",
        "On <squares>",
        cells=lambda quick, names: cells,
        run=squares,
        summarize=summarize,
        **settings,
    )


def test_a_run_its_page_and_what_failed(tmp_path: Path, monkeypatch):
    paper = _paper([{"number": 3}, {"number": 13}])
    monkeypatch.setattr(MODULE, "load_paper", lambda name: paper)
    found = reproduce("squares", store=tmp_path / "cells")
    assert found.missing == {"the census": "nobody may have it"}
    assert list(found.failed.values()) == ["ValueError: an unlucky number"]
    assert found.table["agrees"].tolist() == [True] and found.settings["cells"] == 2
    page = reproduction_page(found)
    assert "On &lt;squares&gt;" in page and "&lt;b&gt;all&lt;/b&gt;" in page and "<b>" not in page
    assert "nobody may have it" in page and "an unlucky number" in page and "does not hold" in page
    assert "<svg" in page and page.count("<script") == 1
    write_reproduction(found, tmp_path / "page.html")
    stored = json.loads((tmp_path / "page.json").read_text())
    assert stored["figures"][0]["measured"] == 9.0 and stored["claims"][1]["holds"] is False
    assert stored["figures"][0]["mark"] == "agrees" and stored["counts"]["agrees"] == 1
    assert "Of 1 figure 1 agrees, 0 find more, 0 differ" in page
    assert reproduction_summary(found) is not None


def test_data_sets_that_are_not_there_are_named(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("OVERSAFE_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    paper = _paper([{"number": 3}], data_sets=("employee", "breast_cancer"))
    monkeypatch.setattr(MODULE, "load_paper", lambda name: paper)
    found = reproduce("squares")
    assert (
        set(found.missing) == {"the census", "employee"}
        and "cannot be downloaded" in found.missing["employee"]
    )
    monkeypatch.setattr(MODULE, "load_paper", lambda name: _paper([], data_sets=("employee",)))
    with pytest.raises(
        InputError, match=r"none of the data sets .* cannot be downloaded; .* has employee.parquet"
    ):
        reproduce("squares")
    monkeypatch.setattr(MODULE, "load_paper", lambda name: _paper([], data_sets=("employee", "dry_bean")))
    with pytest.raises(InputError, match=r"employee.parquet \(and 'dry_bean.parquet'\)"):
        reproduce("squares")


def test_some_of_the_data_sets_of_a_paper():
    with pytest.raises(InputError, match="'adult' is not one of smote-and-mirrors; use 'ecoli'"):
        reproduce("smote-and-mirrors", data_sets=["adult"])
    for name in ("umap-smotenc", "private-smote", "dp-imbalance"):
        paper = load_paper(name)
        chosen = paper.data_sets[1]
        assert {cell["name"] for cell in paper.cells(False, [chosen])} <= {chosen, "two normal classes"}


def test_the_class_is_a_column_of_the_papers_copula():
    X, y = load_dataset("breast_cancer")
    made, labels = umap_smotenc.copula(X, y, seed=0)
    assert list(made.columns) == list(X.columns) and labels.name == y.name and labels.dtype == y.dtype
    assert set(labels) == set(y) and len(made) == len(X)
    # Drawn with the share of the class, 15 in 315: none or 45 and more have a probability below 1e-6.
    assert 0 < (labels == y.value_counts().idxmin()).sum() < 45


def test_the_first_fold_of_every_set_comes_first():
    cells = umap_smotenc.cells(False, umap_smotenc.SETS)
    first = [(cell["repeat"], cell["fold"]) == (0, 0) for cell in cells]
    assert first == sorted(first, reverse=True) and sum(first) == 8 * 6


def test_the_boundaries_of_figure_4():
    methods = ("Identity + NonPriv. LogReg", "PrivateClassifier")
    cells = [
        {"kind": "boundary", "name": "two normal classes", "method": m, "epsilon": 1.0, "split": 0, "status": "done"}
        | dp_imbalance.run("boundary", "two normal classes", m, 0, epsilon=1.0)
        for m in methods
    ]  # fmt: skip
    # The published figures without privacy are 0.94 to 0.97; the classes' centres are told apart by both.
    assert min(cell["auc"] for cell in cells) > 0.9
    (plot,) = dp_imbalance.summarize(pd.DataFrame(cells)).plots
    predicted = plot.data.set_index(["facet", "x", "group"])["y"]
    for method in methods:
        assert predicted[method, -3.0, -3.0] == 0 and predicted[method, 7.0, 7.0] == 1
    assert "PrivateClassifier" in draw(plot)


@pytest.mark.parametrize("kind", ["line", "points", "map"])
@pytest.mark.parametrize("x", [["a", "<b>", "a"], [1.0, 2.0, 1.0]])
def test_plots(kind, x):
    data = pd.DataFrame({"x": x, "y": [1.0, 2.0, 3.0], "group": ["g", "g", "<h>"]})
    missing = pd.concat([data, data[:1].assign(y=np.nan)])
    drawn = draw(Plot("<t>", missing.assign(low=0.5, high=3.5), "<x>", "y", kind))
    drawings, _, entries = drawn.partition('<ul class="key">')
    # One mark for each figure that there is, in the colour that the key has for its group.
    marks = re.findall(r'<(?:circle|rect) class="([a-z]+-[0-9])"', drawings)
    assert len(marks) == 3 and drawings.count("<svg") == 1
    assert set(marks) <= set(re.findall(r'<circle class="([a-z]+-[0-9])"', entries))
    if kind != "map":
        assert marks == ["group-0", "group-0", "group-1"] and drawings.count('class="interval') == 3
        assert "&lt;h&gt;</li>" in entries
    assert ("&lt;b&gt;" in drawings) == (x[0] == "a") and "<b>" not in drawn and "<x>" not in drawn
    assert draw(Plot("t", data.assign(facet=["f", "f", "k"]), "x", "y", kind)).count('role="img"') == 2


@pytest.mark.data
def test_one_cell_of_each_kind(data_folder):
    geometry = smote_and_mirrors.run("geometry", name="ecoli", seed=0)
    assert geometry["reconsmote_precision"] == 1.0 and geometry["reconsmote_recall"] >= 0.43 - 0.05
    assert geometry["distinsmote_precision"] == 1.0 and geometry["distinsmote_recall"] == 1.0
    ratio = [smote_and_mirrors.run("ratio", name="ecoli", seed=0, ratio=r)["recall"] for r in (5, 50)]
    assert ratio[1] >= ratio[0]
    assert smote_and_mirrors.run("naive", name="ecoli", seed=0, repeats=1)["naive_recall"] <= 0.1
    linked = smote_and_mirrors.run("linkability", name="ecoli", seed=0)
    assert 0 <= linked["linkability_accuracy"] <= 1
    game = smote_and_mirrors.run("groundhog", name="ecoli", seed=0, game=[4, 20, 20])
    # All 35 records are targets in the paper, so that no share of them is left out.
    assert game["groundhog_auc"] == game["groundhog_all"] > 0.5
    shadow = smote_and_mirrors.run("shadow", name="ecoli", seed=0, augmented=True, models=[2, 8])
    assert 0 <= shadow["shadow_auc"] <= 1
    variant = {"method": "PrivateSMOTE", "epsilon": 1.0, "n_copies": 1, "k_neighbors": 3}
    made = private_smote.run(name="yeast_me2", known=0, variant=variant, classifiers="quick")
    assert 0.5 < made["auc"] <= 1 and 0 <= made["linkability"] <= 1
    gain = smote_dp.run("gain", name="german_credit_9", method="SMOTE-NC", targets="random", n_targets=2,
                        game=[4, 4], rows=200, seed=0)  # fmt: skip
    assert 0 <= gain["gain"] <= 2
    for kind, method, more in (
        ("plain", "SMOTE + NonPriv. Weighted LogReg", {}),
        ("private", "Priv. Weighted LogReg", {"epsilon": 5.0}),
        ("smote", "SMOTE + Priv. LogReg", {"epsilon": 5.0}),
        ("bagging", "Soft", {"rows": 500, "ratio": 8, "n_estimators": 5}),
    ):
        found = dp_imbalance.run(kind, name="ecoli", method=method, split=0, **more)
        assert set(found) == set(dp_imbalance._SCORES) and 0 <= found["auc"] <= 1


def test_approaches_that_are_not_there_are_named(monkeypatch):
    def run_by(quick):
        return {cell["method"] for cell in dp_imbalance.cells(quick, ["ecoli"])}

    private = {"Priv. LogReg", "Priv. Weighted LogReg", "PrivateClassifier"}
    assert private <= run_by(True)
    assert set(load_paper("dp-imbalance").unavailable).isdisjoint(run_by(False))
    monkeypatch.setattr(dp_imbalance, "find_spec", lambda package: None)
    missing = dp_imbalance._missing()
    assert missing["Priv. Weighted FTT"] == "it needs opacus; install the extra 'deep'"
    assert missing["GEM + XGBoost"] == "it needs xgboost; install the extra 'boost'"
    assert not set(missing) & run_by(False) and private <= run_by(False)
