"""A result says what it may say."""

from __future__ import annotations

import pandas as pd
import pytest

from oversafe import audit
from oversafe._core.errors import InputError
from oversafe.attack import (
    Attack,
    AttackResult,
    AttributeInference,
    ClosestRecord,
    ExactCopies,
    Linkability,
    NaiveDistinguisher,
    ReconSMOTE,
    SinglingOut,
)
from oversafe.attack.registry import check_attacks


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"threat": "spying"}, "threat = 'spying' was given; use one of reconstruction"),
        ({"risk": 1.5}, "risk = 1.5 was given"),
        ({"risk": -0.1}, "from 0 to 1"),
        ({"risk": float("nan")}, "risk = nan"),
        ({"interval": (0.9, 0.1)}, "give its lower end"),
        ({"interval": (-3, 7)}, "both from 0 to 1"),
        ({"evidence": None}, "give a DataFrame"),
    ],
)
def test_results_that_make_no_sense_are_refused(changes, message):
    right = {
        "name": "mine",
        "threat": "linkage",
        "risk": 0.5,
        "interval": (0.4, 0.6),
        "evidence": pd.DataFrame(),
    }
    assert AttackResult(**right).risk == 0.5
    with pytest.raises(InputError, match=message):
        AttackResult(**{**right, **changes})


class Mine(Attack):
    def run(self, release, real, holdout=None):
        assert holdout is None and list(release.columns) == ["a", "b"]
        return AttackResult("Mine", "linkage", 0.5, (0.4, 0.6), pd.DataFrame({"who": ["<b>p7</b>"]}))


class Odd(Attack):
    def run(self, release, real, holdout=None):
        return 0.5


def test_own_attacks_in_an_audit():
    real = pd.DataFrame({"a": range(12), "b": range(12, 24), "y": [0] * 8 + [1] * 4})
    # Neither copies nor the same values in other units.
    release = real.assign(a=7 * real["a"] % 12 + 0.5, b=12 + real["b"] * 5 % 12)
    found = audit(release, "y", real=real, attacks=[Mine(), Odd()])
    (mine,) = [f for f in found.findings if f.result.name == "Mine"]
    assert mine.result.details["class"] == "1" and "gains 50% over guessing" in mine.headline
    assert found.verdict.level == "exposed"
    assert found.not_run["Odd on class '1'"] == "it returned float and not an AttackResult"
    assert "Mine" in str(found)
    page = found.to_html()
    assert "Mine" in page and "<b>p7" not in page
    alone = audit(release, "y", attacks=[Mine()])
    assert alone.not_run["Mine on class '1'"] == "it needs the real table (--real)"
    with pytest.raises(InputError, match="is the class Mine"):
        audit(release, "y", real=real, attacks=[Mine])


class NoAttack:
    def run(self, release, real, holdout=None):
        return AttackResult("NoAttack", "linkage", 0.5, (0.4, 0.6), pd.DataFrame())


def test_what_is_no_attack_on_a_release_and_the_real_table_is_refused():
    for given, message in (
        (NoAttack(), "NoAttack, which is not an Attack"),
        (3, "int, which is not an Attack"),
        (ReconSMOTE(), r"ReconSMOTE has run\(X.*here run\(release, real, holdout=None\) is called"),
    ):
        with pytest.raises(InputError, match=message):
            check_attacks([given])
    own = [
        Linkability(),
        SinglingOut(),
        AttributeInference(),
        ClosestRecord(),
        NaiveDistinguisher(),
        ExactCopies(),
    ]
    assert check_attacks(own) == tuple(own)


def test_rounding_is_not_told():
    result = AttackResult("A", "linkage", 1.0, (1 - 4e-16, 1 + 4e-16), pd.DataFrame())
    assert result.interval == (1.0, 1.0)
