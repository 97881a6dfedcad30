"""What stands on the report's page, and that nothing but the page's own script can run on it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import jsonschema
import numpy as np
import pandas as pd
import pytest
from imblearn.over_sampling import SMOTE as PlainSMOTE

from oversafe import audit
from oversafe._core.text import percent, percent_range
from oversafe.attack import AttackResult, ExactCopies, ReconSMOTE
from oversafe.auditing import Audit, Finding, Verdict
from oversafe.auditing.anonymisation_criteria import assess
from oversafe.auditing.formatting import cell
from oversafe.auditing.picture import READ_BACK, REAL, RELEASED, SHOWN, picture, shown_record, side_by_side
from oversafe.auditing.plan.not_run import by_attack
from oversafe.data import load_dataset
from oversafe.privacy import Guarantee
from oversafe.privacy.guarantee import OVER_THE_REALS, SEEDED
from oversafe.protect import SMOTE
from oversafe.protect.samplers import oversamplers
from oversafe.report.advice import advice
from oversafe.report.terminal import as_text


@pytest.fixture(scope="module")
def tables():
    X, y = load_dataset("breast_cancer")
    with pytest.MonkeyPatch.context() as patched:
        # All digits, as imbalanced-learn has them.
        patched.setattr(oversamplers, "_decimals", lambda column: None)
        X_new, y_new = SMOTE(random_state=0).fit_resample(X, y)
    return X_new.assign(diagnosis=y_new), X.assign(diagnosis=y)


@pytest.fixture(scope="module")
def report(tables):
    return audit(tables[0], "diagnosis", real=tables[1])


@pytest.fixture(scope="module")
def page(report):
    return report.to_html()


def text_of(page: str) -> str:
    class Text(HTMLParser):
        parts: list[str]
        skip = False

        def handle_starttag(self, tag, attributes):
            self.skip = tag in ("script", "style")

        def handle_endtag(self, tag):
            self.skip = False

        def handle_data(self, data):
            if not self.skip:
                self.parts.append(data)

    reader = Text()
    reader.parts = []
    reader.feed(page)
    return " ".join(" ".join(reader.parts).split())


def test_the_policy_names_the_only_script_and_style_by_their_hashes(page):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    for tag in ("script", "style"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, flags=re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert not re.search(r"\s(style|on\w+)=", page) and "http" not in page.replace("http-equiv", "")


def test_every_part_that_a_reader_needs_is_there(page):
    text = text_of(page)
    for part in (
        "15 real records were read out of this table with certainty, in all 10 columns. "
        "15 of the 15 real records of the attacked classes and 300 of the 300 real records of class 'benign', the "
        "largest, stand in it as they are.",
        "The gravest finding",
        "Every attack, the highest risk first",
        "In the words of European law",
        "What the release promises",
        "What could not be checked, and why",
        "What to do instead",
        "To repeat it",
        "Glossary",
        "This page holds records of real people.",
    ):
        assert part in text
    assert "oversafe protect TABLE.csv --label diagnosis --epsilon 1" in text
    assert "--holdout HOLDOUT.csv" in text


def test_records_under_other_labels_are_not_counted_among_the_attacked_classes():
    rng = np.random.default_rng(0)
    real = pd.DataFrame(rng.normal(size=(200, 4)), columns=list("abcd"))
    real["state"] = np.where(np.arange(200) % 4, "well", "ill")
    swapped = real.replace({"state": {"well": "ill", "ill": "well"}})
    shown = text_of(audit(swapped, "state", real=real).to_html())
    assert "rows under another label than their own" in shown
    assert "real ones in the attacked classes" not in shown


def test_headings_do_not_skip_a_level(page):
    levels = [int(level) for level in re.findall(r"<h([1-6])", page)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_all_internal_links_lead_somewhere(page):
    identifiers = re.findall(r'\sid="([^"]+)"', page)
    assert len(identifiers) == len(set(identifiers))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(identifiers)


def test_the_record_stands_beside_the_real_one(tables, report):
    finding = next(f for f in report.findings if f.result.name == "ReconSMOTE")
    record = finding.record
    assert list(record["column"]) == list(tables[0].columns[:-1])
    assert (record["read_back"] == record["real"]).all()
    points = finding.points
    shown = points[points["kind"] == SHOWN]
    assert len(shown) == 1
    # The drawn rows of a line lie between its ends.
    for _, line in points[points["line"] >= 0].groupby("line"):
        end = line[line["kind"] == READ_BACK][["x", "y"]].to_numpy()[0]
        way = end - shown[["x", "y"]].to_numpy()[0]
        rows = line[line["kind"] == RELEASED][["x", "y"]].to_numpy() - shown[["x", "y"]].to_numpy()[0]
        across = np.abs(rows[:, 0] * way[1] - rows[:, 1] * way[0])
        assert (across < 1e-6 * np.abs(way).max() * max(1, np.abs(rows).max())).all()
    assert points.loc[points["line"] >= 0, "line"].nunique() >= 3
    assert (points["kind"] == REAL).sum() == 15


def test_the_record_in_which_lines_meet_is_the_one_shown():
    """Four lines leave one place; their other ends are on no other line."""
    rng = np.random.default_rng(0)
    centre, ends = rng.normal(size=4), 5 * rng.normal(size=(4, 4))
    shares = rng.uniform(0.05, 0.95, size=(4, 5, 1))
    rows = pd.DataFrame((centre + shares * (ends - centre)[:, None]).reshape(-1, 4), columns=list("abcd"))
    result = ReconSMOTE(expand=False).run(rows)
    record = shown_record(rows, result)
    assert np.allclose(result.records.iloc[record], centre, atol=1e-6)
    beside = side_by_side(result, None, record)
    assert "real" not in beside and list(beside["column"]) == list("abcd")
    points = picture(rows, result, None, record)
    assert (points["kind"] == RELEASED).sum() == 20 and not (points["kind"] == REAL).any()


def test_without_a_record_nothing_is_shown():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(30, 4)), columns=list("abcd"))
    result = ReconSMOTE().run(rows)
    assert shown_record(rows, result) is None
    assert picture(rows, result, None, None) is None and side_by_side(result, None, None) is None


def test_no_picture_without_two_columns_of_numbers(report):
    result = next(f.result for f in report.findings if f.result.name == "ReconSMOTE")
    one = replace(result, records=result.records[["mean_radius"]].assign(text="x"))
    assert picture(result.records[["mean_radius"]], one, None, 0) is None


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (0.0, "0 %"),
        (-1e-17, "0 %"),
        (0.001, "below 1 %"),
        (0.5, "50 %"),
        (0.999, "above 99 %"),
        (1.0, "100 %"),
    ],
)
def test_percent(share, shown):
    assert percent(share) == shown


def test_intervals_and_cells():
    assert percent_range(0.064, 1.0) == "6 to 100 %"
    assert percent_range(-1e-17, 0.003) == "0 to 1 %"
    assert percent_range(0.07, 0.57) == "7 to 57 %"
    assert [cell(v) for v in (None, np.nan, pd.NaT, True, 1 / 3, 7, "x" * 300)] == [
        "-",
        "-",
        "-",
        "yes",
        "0.333333",
        "7",
        "x" * 119 + "…",
    ]


def finding(threat, low, certain=0, name="Attack"):
    result = AttackResult(name, threat, low, (low, 1.0), pd.DataFrame(), {"class": "rare"})
    return Finding(result, "Something was found.", certain)


NONE = Guarantee.none("nothing is known")
PROVEN = Guarantee.pure(1.0, "a theorem")


@pytest.mark.parametrize(
    ("findings", "guarantee", "answers"),
    [
        ([], NONE, ["unchecked"] * 3),
        ([finding("reconstruction", 0.0, certain=1)], NONE, ["shown"] * 3),
        ([finding("linkage", 0.1)], NONE, ["unchecked", "shown", "unchecked"]),
        ([finding("attribute", 0.05)], NONE, ["unchecked", "unchecked", "some"]),
        ([finding("singling-out", 0.0)], NONE, ["none", "unchecked", "unchecked"]),
        ([finding("similarity", 0.0)], NONE, ["unchecked"] * 3),
        ([finding("similarity", 0.2)], NONE, ["shown", "unchecked", "unchecked"]),
        ([finding("membership", 0.0)], PROVEN, ["unchecked", "none", "none"]),
    ],
)
def test_the_three_words(findings, guarantee, answers):
    found = assess(findings, guarantee)
    assert [c.criterion for c in found] == ["singling out", "linkability", "inference"]
    assert [c.answer for c in found] == answers
    assert all(("bounds" in c.sentence) == (guarantee is PROVEN) for c in found if c.answer != "shown")


def test_advice_names_the_files_and_quotes_them():
    facts = {"label": "it's y", "real_rows": 3, "holdout_rows": None}
    steps = advice("exposed", [], NONE, facts, {"real": "my table.csv", "release": "r.csv"})
    commands = [command for step in steps for command in step.commands]
    assert commands[0] == "oversafe schema init 'my table.csv' --label 'it'\"'\"'s y' --out schema.toml"
    assert commands[-1].startswith("oversafe audit r.csv --label") and "--real 'my table.csv'" in commands[-1]
    seeded = Guarantee.pure(1.0, "a theorem").weaken(SEEDED)
    assert "without a seed" in advice("unproven", [], seeded, facts, {})[0].sentence
    (kept,) = advice("protected", [], PROVEN, {**facts, "holdout_rows": 2}, {})
    assert "manifest" in kept.sentence


def test_advice_for_interpolated_rows_names_the_decimals_and_what_rounding_does_not_stop(tables):
    X, y = load_dataset("breast_cancer")
    X_new, y_new = PlainSMOTE(random_state=0).fit_resample(X, y)
    found = audit(X_new.assign(diagnosis=y_new), "diagnosis")
    (step,) = [s for s in steps_after(found) if "decimals" in s.sentence]
    assert "1 decimal in 'mean_area'" in step.sentence and "2 decimals in 'mean_radius'" in step.sentence
    for said in ("shuffle", "no seed", "still do", "no guarantee"):
        assert said in step.sentence
    assert step.sentence in " ".join(as_text(found).split())
    assert "of our test tables they gave away 5 to 86" in text_of(found.to_html())
    # A table that nobody interpolated has no rows to be rounded.
    assert not any("shuffle" in s.sentence for s in steps_after(audit(tables[1], "diagnosis")))


def steps_after(found):
    return advice(found.verdict.level, found.findings, found.guarantee, found.facts, found.settings)


def test_advice_after_a_nominal_release_says_what_to_edit():
    nominal = Guarantee.pure(2.0, "a theorem").weaken(
        "the domains of these columns were read from the data: 'age'"
    )
    facts = {"label": "y", "real_rows": 3, "holdout_rows": 1, "not_released": ["patient id", "name"]}
    step = advice("unproven", [], nominal, facts, {"real": "t.csv", "method": "privbayes"})[0]
    assert 'domain = "public"' in step.sentence and "nominal guarantee again" in step.sentence
    assert step.commands[1] == (
        "oversafe protect t.csv --label y --drop 'patient id' --drop name --method privbayes --epsilon 2 "
        "--schema schema.toml --out protected.csv"
    )


def test_the_suggested_command_leaves_out_what_names_people():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"]).assign(
        case=[f"F{number:05d}" for number in range(60)], y=np.repeat(["ill", "well"], [20, 40])
    )
    found = audit(table, "y", real=table.assign(mail=[f"p{n}@clinic.org" for n in range(60)]))
    assert found.to_dict()["release"]["naming_columns"] == ["case", "mail"]
    protect = advice(found.verdict.level, found.findings, found.guarantee, found.facts, found.settings)[
        0
    ].commands[1]
    assert protect.count("--drop") == 2 and "--drop mail --drop case" in protect
    # Also where the real table is not at hand.
    assert "--drop case" in str(audit(table, "y"))


def test_each_reason_for_not_running_is_told_once():
    not_run = {
        "DistinSMOTE on class 'a'": "no row",
        "ExactCopies": "no table",
        "DistinSMOTE on class 'b'": "no row",
        "DistinSMOTE on class 'c'": "another",
    }
    told = [
        ("DistinSMOTE on classes 'a', 'b'", "no row"),
        ("ExactCopies", "no table"),
        ("DistinSMOTE on class 'c'", "another"),
    ]
    assert by_attack(not_run) == told
    report = Audit(Verdict("unproven", "Nothing was tried."), (), NONE, not_run)
    assert "DistinSMOTE on classes 'a', 'b' : no row." in text_of(report.to_html())
    assert "Not run: DistinSMOTE on classes 'a', 'b' (no row)." in str(report)


@pytest.fixture(scope="module")
def three_classes():
    """Synthetic rows alone, of two small classes and a large one; ages are whole numbers, some of them left open."""
    rng = np.random.default_rng(0)
    real = pd.DataFrame(rng.normal(size=(700, 4)), columns=list("abcd")).assign(
        age=rng.integers(18, 100, 700)
    )
    y = pd.Series(np.repeat(["common", "rare", "rarest"], [500, 120, 80]))
    X, labels = SMOTE(random_state=0).fit_resample(real, y)
    release = X.assign(y=labels).iloc[np.r_[0:500, 700 : len(X)]].reset_index(drop=True)
    return release, real.assign(y=y)


def test_alone_and_beside_the_real_table_the_same_is_certain(three_classes):
    release, real = three_classes
    beside = audit(release, "y", real=real)
    found = {f.result.details["class"]: f for f in beside.findings if f.result.name == "ReconSMOTE"}
    assert set(found) == {"rare", "rarest"}
    alone, with_real = (
        {
            (f.result.name, f.result.details["class"]): f.certain_records
            for f in own.findings
            if f.certain_records and not f.is_of_largest
        }
        for own in (audit(release, "y"), beside)
    )
    assert alone == with_real
    # Several attacks compute the records of one class, and the best counts.
    total = sum(max(n for (_, own), n in alone.items() if own == label) for label in found)
    assert beside.verdict.sentence.startswith(
        f"{total} real records were read out of this table with certainty"
    )
    estimated = {label: f.result.details["columns_estimated"] for label, f in found.items()}
    assert ("age",) in estimated.values()
    assert any("'age'" in f.headline and "estimate" in f.headline for f in found.values())
    page = text_of(beside.to_html())
    assert f"Records read back {total} of 200 real ones" in page and "(estimated)" in page
    assert "every other attack on class 'common'" in beside.not_run
    risks = [f.result.risk for f in beside.findings if not f.is_of_largest]
    assert risks == sorted(risks, reverse=True)
    for finding in found.values():
        if finding.points is None or finding.result.details["columns_estimated"] == ():
            continue
        assert "age" not in (finding.points.attrs["x"], finding.points.attrs["y"])
        rings = finding.points[finding.points["kind"] == REAL][["x", "y"]].to_numpy()
        dots = finding.points[finding.points["kind"].isin([READ_BACK, SHOWN])][["x", "y"]].to_numpy()
        assert np.abs(dots[:, None] - rings).max(axis=2).min(axis=1).max() < 1e-6


def test_rates_are_held_against_what_chance_gives():
    details = {"class": "rare", "copied": 3, "distinct_real": 4, "copied_holdout": 1, "distinct_holdout": 10}
    own, others = ExactCopies().rates(
        AttackResult("copies", "reconstruction", 0.65, (0, 1), pd.DataFrame(), details)
    )
    assert (own.share, own.role, others.share, others.role) == (0.75, "attack", 0.1, "baseline")
    new = AttackResult("New", "membership", 0.3, (0.1, 0.5), pd.DataFrame())
    unknown = Finding(new, "New.").attack.rates(new)
    assert [bar.share for bar in unknown] == [0.3, 0.0]


def test_a_page_without_any_finding():
    nothing = Audit(Verdict("unproven", "Nothing was tried."), (), NONE, {"ReconSMOTE": "no time"})
    text = text_of(nothing.to_html())
    assert "Nothing was tried." in text and "ReconSMOTE : no time." in text and "gravest" not in text


def test_attacks_that_found_nothing_are_shown_too():
    tried = Audit(
        Verdict("unproven", "Nothing was found."), (finding("linkage", 0.0, name="Linkability"),), NONE
    )
    text = text_of(tried.to_html())
    assert "Every attack" in text and "Can two sources about one person be linked" in text
    assert "The gravest finding" not in text


def test_a_proven_guarantee_is_told_in_words():
    page = text_of(Audit(Verdict("protected", "It holds."), (), PROVEN).to_html())
    assert "Proven: epsilon = 1 differential privacy for every record." in page
    assert "at most 2.72 times more likely" in page and "Hand out the file together with its manifest" in page


def test_what_a_proof_takes_for_granted_is_told_wherever_the_guarantee_is():
    assumed = Audit(Verdict("protected", "It holds."), (), PROVEN.assuming(OVER_THE_REALS))
    told = (
        "loating-point numbers count as real numbers: the proof does not cover how the computer rounds them."
    )
    page = text_of(assumed.to_html())
    assert "Proven: epsilon = 1" in page and f"What limits it F{told}" in page
    assert f"It holds if f{told}" in " ".join(as_text(assumed).split())
    assert OVER_THE_REALS in json.loads(assumed.to_json())["guarantee"]["caveats"]


def test_a_page_stays_small_with_many_columns_and_rows():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        rng.normal(size=(1500, 120)), columns=[f"a_column_with_a_long_name_{i}" for i in range(120)]
    )
    y = np.repeat(["common", "rare"], [1400, 100])
    X_new, y_new = SMOTE(random_state=0, sampling_strategy={"rare": 600}).fit_resample(X, y)
    page = audit(X_new.copy().assign(y=y_new), "y", real=X.assign(y=y)).to_html()
    # Of the evidence alone, a hundred rows of each of three attacks would be more than a million.
    assert len(page.encode()) < 500_000


def test_the_json_follows_its_schema(report, tables):
    schema = Audit.json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(report.to_json()), schema)
    empty = audit(tables[0], "diagnosis", time_limit=0)
    jsonschema.validate(json.loads(empty.to_json()), schema)
    broken = json.loads(report.to_json())
    broken["findings"][0]["risk"] = 1.5
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, schema)


def test_every_property_of_the_json_is_described(report):
    """A field that the schema does not know would be undocumented."""
    schema, document = Audit.json_schema(), json.loads(report.to_json())
    assert set(document) == set(schema["properties"])
    for part in ("verdict", "release", "guarantee"):
        assert set(document[part]) == set(schema["properties"][part]["properties"])
    assert set(document["findings"][0]) == set(schema["properties"]["findings"]["items"]["properties"])


def test_files_are_named_with_their_fingerprints(tables, tmp_path):
    release = tmp_path / "release.csv"
    tables[0].to_csv(release, index=False)
    settings = audit(release, "diagnosis", time_limit=0).settings
    assert settings["release"] == str(release)
    assert settings["sha256"] == {"release": hashlib.sha256(release.read_bytes()).hexdigest()}


def test_in_a_notebook_the_page_stands_in_a_frame_of_its_own(report):
    frame = report._repr_html_()
    assert (
        frame.startswith("<iframe")
        and 'sandbox="allow-scripts"' in frame
        and "allow-same-origin" not in frame
    )
    assert "<script" not in frame and "srcdoc=" in frame
    assert repr(report) == "<Audit of 'the release': exposed, 7 findings>"
