"""Golden outputs: the quick cases answer as recorded, and the comparer sees what changed and of what kind it is."""

from __future__ import annotations

import copy
import gzip
import json

import numpy as np
import pandas as pd
import pytest

from oversafe.privacy import Guarantee
from tests.golden import __main__ as command
from tests.golden import coverage, store
from tests.golden.case import Case, all_cases, run_case
from tests.golden.comparing import TOLERANCE, Difference, compared, report, summary
from tests.golden.output import SENTENCE, Output

CASES = all_cases()
QUICK = [name for name, own in CASES.items() if own.quick]
_LARGEST_STORE = 3_000_000


@pytest.fixture(scope="module")
def golden():
    return store.load()


@pytest.mark.parametrize("name", QUICK)
def test_the_quick_cases_answer_as_recorded(golden, name):
    if (why := CASES[name].skipped) is not None:
        pytest.skip(why)
    found = compared(name, golden.get(name), run_case(CASES[name]), max(TOLERANCE, CASES[name].coarsest))
    assert not found, f"python -m tests.golden compare --only {name!r}\n{report(found)}"


def test_every_public_name_has_a_case(monkeypatch):
    assert coverage.uncovered(CASES) == []
    assert len(CASES) >= 200
    from oversafe import protect

    monkeypatch.setattr(protect, "__all__", [*protect.__all__, "NEW"])
    assert coverage.uncovered(CASES) == ["protect.NEW"]
    claims = Case("x/y", print, covers=("protect.Nothing",))
    assert "protect.Nothing (not public)" in coverage.uncovered({**CASES, "x/y": claims})


def test_every_case_is_recorded_unless_its_package_is_missing_here(golden):
    assert {name for name, own in CASES.items() if name not in golden and own.skipped is None} == set()
    assert set(golden) <= set(CASES)


def test_the_store_is_small():
    assert sum(path.stat().st_size for path in store.FOLDER.iterdir()) < _LARGEST_STORE


# ---------------------------------------------------------------------------------------- what is seen


def small(**changes):
    """Return the parts of a case with something of every kind, but for some changes."""
    given = {
        "dose": [1.0, 2.5, np.nan],
        "ward": ["A", None, "B"],
        "dtype": "float64",
        "interval": (0.1, 0.9),
        "epsilon": 1.0,
        "basis": "Laplace noise",
        "caveats": ("the bounds are public",),
        "headline": "All of the patients can be recovered.",
        "settings": {"method": "histograms", "bins": 20},
        "findings": ["ReconSMOTE", "ExactCopies"],
        "columns": ["row", "distance"],
        "figure": 3,
        **changes,
    }
    out = Output()
    out.table(
        "t", pd.DataFrame({"dose": pd.Series(given["dose"], dtype=given["dtype"]), "ward": given["ward"]})
    )
    own = Guarantee.pure(given["epsilon"], given["basis"]).assuming(*given["caveats"])
    out.guarantee(own)
    out.manifest("m", {"settings": given["settings"], "created": np.random.default_rng().random()})
    evidence = pd.DataFrame([[1, 0.5]], columns=given["columns"])
    found = [{"name": n, "interval": given["interval"], "evidence": evidence} for n in given["findings"]]
    out._keep("findings", "all", [{**each, "headline": given["headline"]} for each in found])
    out.number("figure", given["figure"])
    return out.parts


def changed(tolerance=1e-9, **changes):
    """Return the parts that a change is seen in, and the first place."""
    found = compared("case", small(), small(**changes), tolerance)
    return {each.part for each in found}, found


def test_the_same_is_the_same():
    assert changed() == (set(), [])


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"dose": [1.0, 2.6, np.nan]}, {"tables"}),
        ({"dose": [1.0, 2.5, 0.0]}, {"tables"}),
        ({"ward": ["A", "A", "B"]}, {"tables"}),
        ({"dose": [1.0, 2.5], "ward": ["A", None]}, {"tables"}),
        ({"dtype": "float32"}, {"tables"}),
        ({"dtype": "Float64"}, {"tables"}),
        ({"interval": (0.1, 0.91)}, {"findings"}),
        ({"findings": ["ExactCopies", "ReconSMOTE"]}, {"findings"}),
        ({"columns": ["distance", "row"]}, {"findings"}),
        ({"headline": "Every patient can be recovered."}, {"sentences"}),
        ({"basis": "noise of Laplace"}, {"sentences"}),
        ({"caveats": ("the bounds are publicly known",)}, {"sentences"}),
        ({"caveats": ()}, {"guarantee", "sentences"}),
        ({"epsilon": 1.1}, {"guarantee", "sentences"}),
        ({"settings": {"method": "histograms", "bins": 10}}, {"manifest"}),
        ({"settings": {"method": "histograms"}}, {"manifest"}),
        ({"figure": 4}, {"numbers"}),
        ({"figure": 3.0}, {"numbers"}),
        ({"figure": True}, {"numbers"}),
        ({"figure": "3"}, {"numbers"}),
    ],
)
def test_a_change_shows_in_its_part_alone(changes, parts):
    assert changed(**changes)[0] == parts


def test_the_last_digits_are_no_change_and_more_is():
    assert changed(dose=[1.0, 2.5 * (1 + 1e-12), np.nan])[0] == set()
    assert changed(dose=[1.0, 2.5 * (1 + 1e-8), np.nan])[0] == {"tables"}
    assert changed(0.0, dose=[1.0, 2.5 * (1 + 1e-12), np.nan])[0] == {"tables"}


def column(values):
    out = Output()
    out.table("t", pd.DataFrame({"x": values}))
    return out.parts


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.__setitem__(150, x[150] + 1e-4),
        lambda x: x.__setitem__(150, -x[150]),
        lambda x: x.__setitem__(150, np.nan),
        lambda x: x.__setitem__(slice(100, 102), x[100:102][::-1].copy()),
    ],
)
def test_of_a_long_column_every_cell_and_its_place_is_seen(change):
    values = np.random.default_rng(0).normal(size=200)
    other = values.copy()
    change(other)
    assert compared("case", column(values), column(values)) == []
    assert {d.part for d in compared("case", column(values), column(other))} == {"tables"}
    texts = [f"t{i}" for i in range(200)]
    assert compared("case", column(texts), column([*texts[:150], "x", *texts[151:]]))


def test_a_case_that_is_missing_is_told():
    (found,) = compared("case", None, small())
    assert found.part == "case" and "not recorded" in str(found)


def test_a_part_or_a_place_that_is_missing_is_told():
    less = {part: values for part, values in small().items() if part != "manifest"}
    assert {d.part for d in compared("case", small(), less)} == {"manifest"}
    assert {d.part for d in compared("case", less, small())} == {"manifest"}


def test_what_is_unstable_is_not_compared_and_says_why():
    out = Output({"numbers/time*": "it takes as long as it takes"})
    out.number("time", 3.2)
    out.number("other", 1)
    assert out.parts["numbers"] == {"time": "<not compared: it takes as long as it takes>", "other": 1}


def test_the_report_names_cases_parts_and_values():
    found = changed(figure=4, headline="Every patient can be recovered.")[1]
    text = report(found)
    assert text.startswith("case: numbers (1), sentences (2)") and "was 3\n      is  4" in text
    assert summary(found).splitlines() == [
        "numbers changed in 1 case: case",
        "sentences changed in 1 case: case",
    ]


def test_of_a_long_text_the_place_is_shown_that_differs():
    text = "word " * 200
    found = Difference("case", "sentences", "page", text + "old" + text, text + "new" + text)
    assert "word oldword" in str(found) and "word newword" in str(found) and len(str(found)) < 500


def test_sentences_stand_apart():
    parts = small()
    assert parts["findings"]["all"][0]["headline"] == SENTENCE
    assert parts["sentences"]["findings/all/0/headline"] == "All of the patients can be recovered."


# ---------------------------------------------------------------------------------------- the store


def test_the_store_gives_back_what_it_got_in_the_same_bytes(tmp_path):
    golden = {"a/one": small(), "b/two": small(headline="Two lines\nof four words each.")}
    store.save(golden, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    again = store.load(tmp_path)
    assert all(compared(name, again[name], golden[name], 0.0) == [] for name in golden)
    assert store.save(again, tmp_path) == []
    for path in tmp_path.iterdir():
        path.unlink()
    store.save(copy.deepcopy(dict(reversed(golden.items()))), tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    store.save({"a/one": golden["a/one"]}, tmp_path)
    assert not list(tmp_path.glob("b.*"))


def test_recording_keeps_what_compares_equal(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(store, "FOLDER", tmp_path)
    monkeypatch.setattr(store.load, "__defaults__", (tmp_path,))
    monkeypatch.setattr(store.save, "__defaults__", (tmp_path,))
    name = "privacy/kissing numbers"
    assert command.main(["compare", "--only", name]) == 1
    assert command.main(["record", "--only", name]) == 0
    assert command.main(["compare", "--only", name]) == 0
    path = tmp_path / "privacy.json.gz"
    stored = json.loads(gzip.decompress(path.read_bytes()))
    stored[name]["numbers"]["bounds"][3] += 1
    path.write_bytes(gzip.compress(json.dumps(stored).encode()))
    capsys.readouterr()
    assert command.main(["compare", "--only", name]) == 1
    assert "numbers changed in 1 case: privacy/kissing numbers" in capsys.readouterr().out
    assert command.main(["compare", "--only", name, "--except", "numbers"]) == 0
    assert command.main(["record", "--only", name]) == 0
    assert command.main(["compare", "--only", name]) == 0
    assert command.main(["list"]) == 0
    assert "not compared" in capsys.readouterr().out or not any(own.unstable for own in CASES.values())
