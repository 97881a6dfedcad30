"""How many real records an attack names with certainty: one rule for audits and comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oversafe.attack import AttackResult
from oversafe.attack.base import wilson_interval
from oversafe.attack.copies import as_released
from oversafe.attack.release_attacks import ClassTables
from oversafe.measure.leakage import Overlap, release_overlap

# Copies of so many more real rows than of others, at least, need no further reason to be called copies.
_MANY_COPIES = 0.1
# Fewer are copies if chance has a smaller probability: false alarms of a dozen settings stay below one in a hundred.
_BY_CHANCE = 1e-4


def with_certain_records(result: Any, tables: ClassTables) -> tuple[Any, int]:
    """Return a result and how many real records it names with certainty.

    Records of which ReconSMOTE reads a value, and real ones that stand in the release, are read out with certainty; the
    other attacks speak of chances. In a table of a few categories every release has real rows. They count where surely
    a tenth more of the real rows stand there than of others; and fewer of them where chance has a probability below one
    in ten thousand: by Fisher's exact test where rows of other people stand there too, else given how common their
    values are. Without other people's rows the latter also tells what chance gives, where columns that go together give
    more than columns drawn by themselves.
    """
    found = result.details
    if result.name == "ReconSMOTE":
        return result, _computed(result)
    if result.name != "ExactCopies" or not found["copied"]:
        return result, 0
    overlap = release_overlap(tables.release, as_released(tables.real, tables.release))
    if not found.get("distinct_holdout"):
        result = _less_chance(result, overlap)
    certain = result.interval[0] >= _MANY_COPIES or _probability(found, overlap) < _BY_CHANCE
    result = replace(result, details={**result.details, "more_than_chance": certain})
    return result, int(found["copied"]) if certain else 0


def _computed(result: AttackResult) -> int:
    """Return how many records were computed, less those of which every value is an estimate."""
    read = _own(result, "columns_read") > 0
    if "recovered" not in result.details:
        return int(read.sum())
    rows = _own(result, "real_row")
    return int(result.details["recovered"]) - len(np.setdiff1d(rows[rows >= 0], rows[read]))


def _own(result: AttackResult, name: str) -> NDArray[np.int64]:
    """Return what an attack says about its records; the table may have a column of that name too."""
    return result.evidence.loc[:, [name]].iloc[:, -1].to_numpy()


def _less_chance(result: AttackResult, overlap: Overlap) -> AttackResult:
    """Return copies with what chance gives taken off, by the larger of its two estimates."""
    copied, total = (result.details[key] for key in ("copied", "distinct_real"))
    chance = max(result.details["expected_by_chance"], overlap.expected / overlap.possible)
    low, high = wilson_interval(copied, total)
    return replace(
        result,
        risk=max(0.0, copied / total - chance),
        interval=(max(0.0, low - chance), max(0.0, high - chance)),
        details={**result.details, "expected_by_chance": chance},
    )


def _probability(found: Mapping[str, Any], overlap: Overlap) -> float:
    """Return how probable so many copies are by chance."""
    if not (others := found.get("copied_holdout")):
        return overlap.probability
    from scipy.stats import fisher_exact

    own = [found["copied"], found["distinct_real"] - found["copied"]]
    return float(
        fisher_exact([own, [others, found["distinct_holdout"] - others]], alternative="greater").pvalue
    )
