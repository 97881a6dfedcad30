"""The recommendation follows its rules, and the page says what was measured."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from markupsafe import escape

from oversafe import compare
from oversafe._core.errors import InputError
from oversafe.attack import Attack
from oversafe.auditing.comparing.comparison import judged
from oversafe.auditing.comparing.trials import ATTACK_COLUMNS
from oversafe.data import load_dataset
from oversafe.measure.fidelity import FIGURES
from oversafe.measure.scores import SCORES
from oversafe.privacy import Guarantee

NONE = Guarantee.none("nothing is promised")


def nominal(epsilon: float) -> Guarantee:
    return Guarantee.pure(epsilon, "a theorem").weaken("the domains were read from the data")


def cell(
    method,
    utility,
    *,
    low_risk=0.0,
    certain=0,
    copied=0,
    of_largest=0,
    missing=(),
    guarantee=NONE,
    epsilon=None,
    status="done",
):
    attacks = pd.DataFrame(
        [
            ["ReconSMOTE", "1", "reconstruction", 0.5 if certain else 0.0, 0.0, 0.6, certain, False],
            ["ExactCopies", "1", "reconstruction", 0.04 if copied else 0.0, 0.0, 0.1, copied, False],
            ["ExactCopies", "0", "reconstruction", 0.9 if of_largest else 0.0, 0.0, 0.95, of_largest, True],
            ["Linkability", "1", "linkage", low_risk + 0.05, low_risk, low_risk + 0.1, 0, False],
        ],
        columns=ATTACK_COLUMNS,
    )
    figures = {name: utility for name in SCORES} | {f"{name}_low": utility - 0.02 for name in SCORES}
    return {
        "method": method,
        "epsilon": epsilon,
        "status": status,
        "seconds": 1.0,
        "error": "ValueError: broken" if status == "failed" else None,
        **figures,
        **{f"{name}_high": utility + 0.02 for name in SCORES},
        **dict.fromkeys(FIGURES, 0.9),
        "attacks": attacks,
        "not_run": {"NaiveDistinguisher on class '1'": "no row is a real record"},
        "missing_classes": list(missing),
        "guarantee": guarantee.to_dict(),
        "released_rows": 100,
        "fit_seconds": 0.5,
        "fit_memory": 2**20,
    }


def comparison(*cells):
    return judged(
        pd.DataFrame([cell("original", 0.9), *cells]), "auc", {"name": "patients.csv", "label": "y"}
    )


def test_never_a_release_that_was_read_out():
    found = comparison(cell("smote", 0.9, certain=1), cell("copula", 0.6))
    assert found.recommendation.setting == "copula"
    # And the reason against the more useful one is told.
    assert any(
        "Not smote" in reason and "1 real record was" in reason for reason in found.recommendation.reasons
    )
    none = comparison(cell("smote", 0.9, certain=3), cell("linked", 0.8, low_risk=0.2))
    assert none.recommendation.setting is None
    assert "Release none" in none.recommendation.sentence


def test_a_proven_guarantee_comes_before_utility():
    proven = Guarantee.pure(1.0, "a theorem")
    found = comparison(cell("copula", 0.88), cell("privbayes", 0.7, guarantee=proven, epsilon=1.0))
    assert found.recommendation.setting == "privbayes, epsilon 1"
    weak = Guarantee.pure(20.0, "a theorem")
    found = comparison(cell("copula", 0.88), cell("privbayes", 0.7, guarantee=weak, epsilon=20.0))
    assert found.recommendation.setting == "copula"
    assert any('write domain = "public"' in reason for reason in found.recommendation.reasons)


def test_of_settings_alike_the_more_cautious():
    proven = [Guarantee.pure(epsilon, "a theorem") for epsilon in (1.0, 3.0)]
    found = comparison(
        cell("mixture", 0.805, guarantee=proven[1], epsilon=3.0),
        cell("mixture", 0.800, guarantee=proven[0], epsilon=1.0),
        cell("copula", 0.802),
    )
    assert found.recommendation.setting == "mixture, epsilon 1"
    apart = comparison(
        cell("mixture", 0.85, guarantee=proven[1], epsilon=3.0),
        cell("mixture", 0.80, guarantee=proven[0], epsilon=1.0),
    )
    assert apart.recommendation.setting == "mixture, epsilon 3"
    # An epsilon that is not proven is no reason: the lower risk is.
    noise = comparison(
        cell("noise", 0.80, guarantee=nominal(0.1), epsilon=0.1, low_risk=0.04), cell("copula", 0.80)
    )
    assert noise.recommendation.setting == "copula"


def by_fold(*auc):
    """Return the scores of two repetitions of three folds."""
    folds = pd.DataFrame({"repeat": [0, 0, 0, 1, 1, 1], "fold": [0, 1, 2, 0, 1, 2], "classifier": "logistic"})
    return folds.assign(auc=auc)


def test_a_setting_that_an_attack_seems_to_beat_is_not_taken_while_there_is_another():
    # Linkability gains 12 %, and surely 7 %: not enough to call it exposed.
    found = comparison(cell("rounded", 0.9, low_risk=0.07), cell("copula", 0.6))
    assert [s.verdict.level for s in found.settings] == ["unproven", "unproven"]
    assert found.recommendation.setting == "copula"
    assert any("Not rounded" in r and "Linkability" in r and "12%" in r for r in found.recommendation.reasons)
    alone = comparison(cell("rounded", 0.9, low_risk=0.07))
    assert alone.recommendation.setting == "rounded"
    assert "Linkability on class '1' gains 12% over chance" in alone.recommendation.sentence
    assert json.loads(alone.to_json())["settings"][0]["suspicion"] in alone.recommendation.sentence
    assert "gains 12% over chance" in alone.to_html()
    # A proven guarantee bounds every attack; another that is proven, and that none seems to beat, is better still.
    proven = Guarantee.pure(1.0, "a theorem")
    seems = cell("seems", 0.9, low_risk=0.05, guarantee=proven, epsilon=1.0)
    seems["attacks"].loc[2, "risk"] = 0.12
    assert comparison(seems, cell("copula", 0.9)).recommendation.setting == "seems, epsilon 1"
    better = cell("better", 0.7, guarantee=proven, epsilon=1.0)
    assert comparison(seems, better).recommendation.setting == "better, epsilon 1"


def test_utilities_that_differ_within_the_noise_are_alike():
    useful = cell("useful", 0.85, low_risk=0.04)
    cautious = cell("cautious", 0.80)
    useful["scores"] = by_fold(0.95, 0.75, 0.9, 0.8, 0.95, 0.75)
    # Better in some folds and worse in others: chance.
    cautious["scores"] = by_fold(0.70, 0.90, 0.7, 0.9, 0.8, 0.80)
    assert comparison(useful, cautious).recommendation.setting == "cautious"
    # Worse by the same in every fold, however much the folds differ.
    cautious["scores"] = by_fold(0.90, 0.70, 0.85, 0.75, 0.90, 0.70)
    assert comparison(useful, cautious).recommendation.setting == "useful"


def test_the_sentence_says_what_is_not_proven():
    told = comparison(cell("mine", 0.8)).recommendation.sentence
    assert told.startswith("Take mine. No attack that was run") and "it carries no guarantee" in told
    proven = comparison(cell("mine", 0.8, guarantee=Guarantee.pure(1.0, "a theorem")))
    assert proven.recommendation.sentence == "Take mine."


def test_nothing_that_is_of_no_use():
    # Lower ends of the AUC's intervals: 0.49, and 0.51 for a release that holds one class only.
    found = comparison(cell("noise", 0.51), cell("one class", 0.53, missing=["1"]))
    assert found.recommendation.setting is None
    assert found.recommendation.sentence == "Release none of these: what they release is of no use."
    reasons = " ".join(found.recommendation.reasons)
    assert "noise: what classifiers learn from it is not clearly better than a coin (AUC 0.510" in reasons
    assert "one class: its release has no row of class '1'" in reasons
    mixed = comparison(cell("smote", 0.9, certain=4), cell("noise", 0.5))
    assert mixed.recommendation.setting is None and "those that are of use are exposed" in str(mixed)
    # One that is of use is taken, however useful the useless one seems.
    other = comparison(cell("one class", 0.9, missing=["1"]), cell("copula", 0.6))
    assert other.recommendation.setting == "copula"
    assert any("Not one class" in r and "no row of class '1'" in r for r in other.recommendation.reasons)
    assert json.loads(other.to_json())["settings"][0]["useless"].startswith("its release has no row")


def test_never_a_release_that_holds_real_rows():
    found = comparison(cell("mine", 0.9, copied=3), cell("copula", 0.6))
    mine = found.settings[0]
    assert found.recommendation.setting == "copula"
    assert mine.verdict.level == "exposed" and mine.certain_records == 3
    assert (
        mine.verdict.sentence
        == "3 different real records of the attacked classes stand in the release word for word."
    )
    # Although Linkability's interval begins as low and its risk is higher.
    assert mine.gravest == "ExactCopies on class '1'" and mine.privacy[0] == pytest.approx(0.96)
    # The same people, found by two attacks.
    both = comparison(cell("smote", 0.9, certain=5, copied=3)).settings[0]
    assert both.certain_records == 5 and both.verdict.sentence.startswith("5 real records were read out")
    # And one count of them, whichever attack found more.
    both = comparison(cell("smote", 0.9, certain=45, copied=46)).settings[0]
    assert both.certain_records == 46
    assert both.verdict.sentence == (
        "46 real records were read out of this table with certainty, 45 of them computed. "
        "46 real records of the attacked classes stand in it as they are."
    )


def test_never_a_release_that_holds_real_rows_of_the_largest_class():
    found = comparison(cell("mine", 0.9, of_largest=700), cell("copula", 0.6))
    mine = found.settings[0]
    assert found.recommendation.setting == "copula" and mine.verdict.level == "exposed"
    assert mine.certain_records == 0 and mine.copies_of_largest == 700
    assert mine.verdict.sentence == (
        "700 different real records of class '0', the largest, stand in the release word for word."
    )
    assert mine.gravest == "ExactCopies on class '0'"
    assert "0 + 700" in str(found) and "0 + 700" in found.to_html()
    assert json.loads(found.to_json())["settings"][0]["copies_of_largest"] == 700
    assert comparison(cell("mine", 0.9, of_largest=700)).recommendation.setting is None
    # What was read out of the rare class is told first, and is the gravest.
    smote = comparison(cell("smote", 0.9, certain=5, copied=3, of_largest=700)).settings[0]
    assert smote.gravest == "ReconSMOTE on class '1'" and smote.certain_records == 5
    assert smote.verdict.sentence == (
        "5 real records were read out of this table with certainty. 3 real records of the attacked classes and "
        "700 real records of class '0', the largest, stand in it as they are."
    )


def test_the_frontier_and_the_table():
    found = comparison(
        cell("a", 0.9, low_risk=0.3), cell("b", 0.8), cell("c", 0.7), cell("d", 0.6, status="failed")
    )
    assert [s.on_frontier for s in found.settings] == [True, True, False, False]
    assert found.table["verdict"].tolist() == ["exposed", "unproven", "unproven", "failed"]
    assert found.settings[0].privacy == pytest.approx((0.65, 0.6, 0.7))


def test_the_page_says_the_whole_recommendation():
    found = comparison(cell("a method of a rather long name, " * 4, 0.8), cell("b", 0.9, certain=2))
    assert len(found.recommendation.sentence) > 120
    assert escape(found.recommendation.sentence) in found.to_html()


def test_the_page_escapes_and_sorts():
    hostile = "<script>alert(1)</script>"
    found = comparison(cell(hostile, 0.8), cell("b", 0.9, certain=2), cell("c", 0.7, status="failed"))
    page = found.to_html()
    assert page.count("<script") == 1 and "&lt;script&gt;alert(1)" in page
    assert "http://" not in page.replace("http://www.w3.org", "") and "<img" not in page
    # The policy lets no style in but the page's own.
    assert "style=" not in page.replace("style-src", "") and page.count("<style") == 1
    table = page[page.index('class="sortable"') :]
    # b has the most utility, so that it comes first; c has none and comes last.
    assert table.index("<td>b") < table.index("<td>&lt;script") < table.index("<td>c")
    assert 'data-value="0.9"' in table and 'data-value="-inf"' not in table
    assert "ValueError: broken" in page
    chart = page[page.index('<svg class="chart') : page.index("</figure>")]
    assert chart.count('<circle class="exposed"') == chart.count('<circle class="unproven"') == 2
    assert chart.count('class="interval') == 4 and "&lt;script&gt;alert(1)" in chart
    assert "Take" in page and "95 % intervals" in page


def test_a_setting_without_a_score_is_left_out_of_the_chart():
    page = comparison(cell("a", np.nan), cell("b", np.nan)).to_html()
    assert page.count('class="chart') == 4 and 'points="nan' not in page and '="nan"' not in page


def test_as_a_display():
    pytest.importorskip("matplotlib")
    from oversafe.report import FrontierDisplay

    found = comparison(
        cell("a", 0.9, low_risk=0.3), cell("b", 0.8), cell("c", 0.7), cell("d", 0.6, status="failed")
    )
    display = FrontierDisplay.from_comparison(found)
    assert display.names == ["a", "b", "c"] and display.on_frontier.tolist() == [True, True, False]
    assert display.privacy_intervals[0].tolist() == pytest.approx([0.6, 0.7])
    assert display.ax_.get_ylabel() == "auc"
    with pytest.raises(InputError, match="no setting"):
        FrontierDisplay.from_comparison(comparison(cell("d", 0.6, status="failed")))


def test_nothing_is_cut_in_a_file(monkeypatch, capsys):
    from oversafe.cli.consoles import console
    from oversafe.report.comparison_page import comparison_summary

    name = "a-method-with-quite-a-long-name-of-its-own-and-more, epsilon 0.25"
    monkeypatch.delenv("COLUMNS", raising=False)
    console().print(comparison_summary(comparison(cell(name, 0.8))))
    assert any(name in line and "unproven" in line for line in capsys.readouterr().out.splitlines())


def test_json_and_terminal():
    found = comparison(cell("a", 0.8), cell("b", 0.9, certain=2))
    stored = json.loads(found.to_json())
    assert stored["format"] == "oversafe-comparison"
    assert stored["recommendation"]["setting"] == "a"
    assert [s["certain_records"] for s in stored["settings"]] == [0, 2]
    assert stored["settings"][1]["verdict"]["level"] == "exposed"
    text = str(found)
    assert "Take a." in text and "exposed" in text and "the real table" in text


def test_a_real_comparison():
    rng = np.random.default_rng(0)
    ill = np.arange(200) < 40
    table = pd.DataFrame(rng.normal(size=(200, 3)) + ill[:, None], columns=list("abc")).assign(
        state=ill.astype(int)
    )
    found = compare(table, "state", methods=["smote", "gaussian-copula"], n_repeats=1, membership=False)
    smote, copula = found.settings
    assert smote.verdict.level == "exposed" and smote.certain_records > 0
    assert found.recommendation.setting in (None, "gaussian-copula")
    assert (found.recommendation.setting == "gaussian-copula") == (copula.verdict.level != "exposed")
    assert found.facts["rows"] == 200 and found.facts["columns"] == 3


class Odd(Attack):
    def run(self, release, real, holdout=None):
        return 0.5


def test_an_attack_of_ones_own_that_came_to_nothing_is_told():
    table = load_dataset("breast_cancer").frame
    with pytest.warns(UserWarning, match="the attack Odd was left out: it returned float and not an"):
        compare(table, "diagnosis", methods="random-over", attacks=[Odd()], n_repeats=1, membership=False)


def test_bad_use():
    with pytest.raises(InputError, match="use 'auc'"):
        compare(pd.DataFrame({"a": [1], "y": [0]}), "y", score="gini")


def test_a_failed_and_a_pending_setting_are_named_and_the_rest_is_shown():
    cells = [cell("a", 0.9), cell("b", 0.8, status="failed"), cell("c", 0.7, status="pending")]
    found = comparison(*cells)
    # As pandas has a column of texts in which some are missing.
    found = judged(found.cells.assign(error=found.cells["error"].astype("str")), "auc", found.facts)
    page, text = found.to_html(), str(found)
    assert "b: ValueError: broken" in page and "c: was not started" in page
    assert "b failed: ValueError: broken" in text and "pending" in text and "Take a." in text
    assert [s["error"] for s in found.to_dict()["settings"]] == [None, "ValueError: broken", None]
