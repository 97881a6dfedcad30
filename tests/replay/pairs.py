"""One pair of neighbours, from bytes to what tells them apart."""

from __future__ import annotations

from dataclasses import dataclass

from oversafe._core.errors import InputError
from tests.fuzz.source import Source
from tests.replay.neighbours import Pair, make_pair
from tests.replay.ways import METHODS, differences, run, ways


@dataclass(frozen=True)
class Result:
    """What became of a pair.

    Parameters
    ----------
    way : str
        Which it went.
    status : str
        "proven", "unproven", or "refused" where both were, or the declaration was.
    found : list of str
        What tells the neighbours apart.
    questions : int
        How many were checked.
    """

    way: str
    status: str
    found: list[str]
    questions: int = 0

    def __iter__(self):
        return iter([f"{self.way}: {self.status}", *self.found])


def replay(name: str, relation: str, data: bytes) -> Result:
    """Take two neighbours that bytes decide on the whole way, and compare what leaves."""
    method, source = METHODS[name], Source(data)
    try:
        domain = "data" if method.estimates else "public"
        pair = make_pair(source, relation, persons=method.persons, domain=domain)
    except InputError:
        # The declaration contradicts itself, whatever the rows are.
        return Result("declaration", "refused", [])
    return compared(name, pair, source.choose(ways(method, pair)), source.whole(255))


def compared(name: str, pair: Pair, way: str, seed: int = 0) -> Result:
    """Compare what leaves when two neighbours go one way."""
    a, b = (run(METHODS[name], pair, side, way, seed) for side in range(2))
    known = {a.status, b.status}
    status = "refused" if known == {"refused"} else "proven" if "proven" in known else "unproven"
    checked = len(a.transcript.questions) if status == "proven" else 0
    return Result(way, status, differences(a, b), checked)
