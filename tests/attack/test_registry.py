"""Attacks say what they are, and those of installed packages are run like the user's own."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pandas as pd
import pytest

from oversafe import attack, audit
from oversafe._core.errors import InputError
from oversafe.attack import About, Attack, AttackResult
from oversafe.attack import registry as module
from oversafe.attack.registry import all_attacks, attack_named, check_attacks, on_releases, own_attacks


class SharedValues(Attack):
    about = About(question="Does it share values?", attacker="Somebody.", method="By looking.")

    def run(self, release, real, holdout=None):
        return AttackResult("SharedValues", "attribute", 0.5, (0.4, 0.6), pd.DataFrame())

    def headline(self, result, label, certain=0):
        return f"Class {label} shares values."


class Broken(SharedValues):
    def headline(self, result, label, certain=0):
        raise KeyError("no such figure")


class Choosy(SharedValues):
    def __init__(self, column):
        self.column = column


class Mute(SharedValues):
    about = "an attack"


@pytest.fixture
def installed(monkeypatch):
    """Make entry points known as installed packages do."""

    def install(**values):
        points = [EntryPoint(name, value, module.PLUGINS) for name, value in values.items()]
        monkeypatch.setattr(module, "entry_points", lambda group: points if group == module.PLUGINS else [])

    return install


@pytest.fixture
def tables():
    real = pd.DataFrame({"a": range(12), "b": range(12, 24), "y": [0] * 8 + [1] * 4})
    return real.assign(a=7 * real["a"] % 12 + 0.5, b=12 + real["b"] * 5 % 12), real


def test_every_exported_attack_is_run_or_needs_the_method():
    exported = {
        name
        for name in attack.__all__
        if isinstance(kind := getattr(attack, name), type) and issubclass(kind, Attack) and kind is not Attack
    }
    assert exported == {kind.__name__ for kind in attack.ATTACKS}
    assert len({own.title() for own in all_attacks()}) == len(all_attacks())
    assert {type(own) for own in set(all_attacks()) - set(on_releases())} == {
        attack.GroundHog,
        attack.ShadowClassifier,
    }


@pytest.mark.parametrize("own", all_attacks(), ids=lambda own: own.title())
def test_an_attack_says_what_it_is(own):
    about = own.about
    assert about.question.endswith("?") and about.attacker and about.method and about.risk
    assert about.threat is not None and about.work > 0 and about.needs
    assert attack_named(own.title()) is own


def test_what_is_not_known_says_nothing():
    unknown = attack_named("Mine")
    assert unknown.about == About() and unknown.why_not(None, {}) is None


def test_an_attack_of_an_installed_package_is_run(installed, tables):
    installed(shared=f"{__name__}:SharedValues")
    release, real = tables
    found = audit(release, "y", real=real)
    (own,) = [f for f in found.findings if f.result.name == "SharedValues"]
    assert own.headline == "Class 1 shares values." and isinstance(own.attack, SharedValues)
    page = found.to_html()
    assert "Does it share values?" in page and "By looking." in page
    assert "Class 1 shares values." in str(found) and "SharedValues" in found.to_json()


def test_an_attack_that_cannot_describe_itself_is_told_by_its_figures(installed, tables):
    release, real = tables
    found = audit(release, "y", real=real, attacks=[Broken()])
    (own,) = [f for f in found.findings if f.result.name == "SharedValues"]
    assert own.headline.startswith("An attack of your own gains 50% over guessing")
    assert "Can an unknown fact about a person be inferred?" in found.to_html()


def test_what_an_installed_package_cannot_bring_is_one_sentence(installed):
    for value, message in (
        ("no_such_package_anywhere:Thing", "the plugin 'own' .* cannot be loaded .ModuleNotFoundError"),
        (f"{__name__}:installed", "name a class that inherits from oversafe.attack.Attack"),
        (f"{__name__}:Choosy", "names Choosy, which cannot be made without settings"),
        (f"{__name__}:Mute", "the attack Mute says 'an attack' about itself"),
    ):
        installed(own=value)
        with pytest.raises(InputError, match=message):
            own_attacks(None)
    assert check_attacks(None) == ()
