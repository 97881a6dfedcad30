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


def test_a_line_stands_for_entries():
    class Toy:
        """Do it.

        Parameters
        ----------
        {b, a}
        c : {"x"}
            Not one.
        """

    Toy.__doc__ = inspect.cleandoc(Toy.__doc__).replace("\n", "\n    ")
    text = described("\na : int\n    First.\n    More.\nb : str\n    Second.\n")(Toy).__doc__
    assert "    b : str\n        Second.\n    a : int\n        First.\n        More.\n    c : {" in text
