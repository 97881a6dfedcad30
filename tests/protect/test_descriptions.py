"""Every protector describes the parameters it has, and no others."""

from __future__ import annotations

import inspect
import re

import pytest

from oversafe import protect
from oversafe.protect.base import Protector
from oversafe.protect.descriptions import described

PROTECTORS = [
    kind
    for kind in vars(protect).values()
    if isinstance(kind, type) and issubclass(kind, Protector) and not inspect.isabstract(kind)
]


@pytest.mark.parametrize("kind", PROTECTORS, ids=lambda kind: kind.__name__)
def test_parameters_are_described_as_they_are(kind):
    documented = inspect.getdoc(kind).partition("Parameters\n----------\n")[2]
    entries = re.split(r"\n\n", documented)[0]
    names = [
        name for line in re.findall(r"^(\w[\w, ]*) : ", entries, flags=re.M) for name in line.split(", ")
    ]
    assert sorted(names) == sorted(inspect.signature(kind).parameters)
    assert not re.search(r"^ *\{\w", kind.__doc__, flags=re.M)


@pytest.mark.parametrize("indent", ["", "    "])
def test_a_line_stands_for_entries(indent):
    lines = ["{b, a}", 'c : {"x"}', "    {a} is not one."]
    toy = type("Toy", (), {"__doc__": "\n".join(indent + line for line in lines)})
    text = described("\na : int\n    First.\n    More.\nb : str\n    Second.\n")(toy).__doc__
    told = ["b : str", "    Second.", "a : int", "    First.", "    More.", *lines[1:]]
    assert text.split("\n") == [indent + line for line in told]
