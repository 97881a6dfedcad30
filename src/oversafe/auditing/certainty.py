"""How many real records an attack names with certainty: one rule for audits and comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe.attack import AttackResult
from oversafe.attack.base import wilson_interval
from oversafe.attack.class_tables import ClassTables
from oversafe.attack.copies import difference_interval
from oversafe.attack.registry import about
from oversafe.auditing.plan.attack_steps import with_keys
from oversafe.data.rows import as_released, is_copied, is_copy
from oversafe.data.rows.values import value_keys
from oversafe.measure.leakage import Overlap, rare_matches, release_overlap

# Copies of so many more real rows than of others, at least, need no further reason to be called copies.
_MANY_COPIES = 0.1
# Fewer are copies if chance has a smaller probability: false alarms of a dozen settings stay below one in a hundred.
_BY_CHANCE = 1e-4
# Records that were computed from a release alone count if the probability that none of them is real is at most this.
_NONE_REAL = 1e-3


def with_certain_records(result: Any, tables: ClassTables) -> tuple[Any, int]:
    """Return a result and how many real records it names with certainty.

    Records of which ReconSMOTE reads a value, and real ones that stand in the release, are read out with certainty; the
    other attacks speak of chances. In a table of a few categories every release has real rows. They count where chance
    has a probability below one in ten thousand: by Fisher's exact test where rows of other people stand there too, and
    given how common their values are. Either will do where surely a tenth more of the real rows stand there than of
    others, or no row of others does. Without other people's rows the values also tell what chance gives, where columns
    that go together give more than columns drawn by themselves. Rows that several people of other classes have too are
    no such reason.
    """
    found, reads = result.details, about(result).reads
    if reads == "computed":
        return result, _computed(result)
    if reads is None or not found["copied"]:
        return result, 0
    if found.get("avoided"):
        return replace(result, details={**found, "more_than_chance": False}), 0
    overlap = release_overlap(tables.release, as_released(tables.real, tables.release))
    fair = None
    if not found.get("distinct_holdout"):
        result = _less_chance(result, overlap)
    elif (fair := _fair_counts(tables)) is not None:
        result = _less_others(result, fair)
    many = result.interval[0] >= _MANY_COPIES
    by_values, by_others = _by_values(tables, overlap), _beside_others(found, fair)
    if by_others is None:
        certain = many or by_values < _BY_CHANCE
    else:
        # Of a few kinds of people an interval alone is above a tenth in one of a hundred releases.
        certain = (by_others if many else max(by_others, by_values)) < _BY_CHANCE
        # The rows of other people in other classes show how often chance copies, too.
        by_values = max(by_values, _beside_other_classes(found, tables.others_copied))
        certain = certain or (not found["copied_holdout"] and by_values < _BY_CHANCE)
    if certain and not result.risk:
        # What chance gives of others says nothing against these.
        copied, total = found["copied"], found["distinct_real"]
        result = replace(result, risk=copied / total, interval=wilson_interval(copied, total))
    result = replace(result, details={**result.details, "more_than_chance": certain})
    return result, int(found["copied"]) if certain else 0


def _by_values(tables: ClassTables, overlap: Overlap) -> float:
    """Return how probable so many copies are given how common their values are, but for kinds of people."""
    assert tables.real is not None
    if tables.shared is None or not tables.shared.any():
        return overlap.probability
    rows = tables.real[~tables.shared]
    return (
        release_overlap(tables.release, as_released(rows, tables.release)).probability if len(rows) else 1.0
    )


def _computed(result: AttackResult) -> int:
    """Return how many records were computed, less those of which every value is an estimate.

    Without the real table none counts if chance may explain them all.
    """
    read = _own(result, "columns_read") > 0
    if "recovered" not in result.details:
        return int(read.sum()) if result.details.get("p_none_real", 0.0) <= _NONE_REAL else 0
    rows = _own(result, "real_row")
    own = int(result.details["recovered"]) - len(np.setdiff1d(rows[rows >= 0], rows[read]))
    # Those of other classes are told beside them.
    return own or sum(result.details.get("other_classes", {}).values())


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


def _fair_counts(tables: ClassTables) -> tuple[int, int, int, int] | None:
    """Return how many rows of the real table alone are in the release, of how many, and the same of the holdout.

    None where no row is in both: then all of them can be compared. Else the others of the holdout are rare kinds of
    people, and those of a larger real table less so, which any release has more of. So as many rows are taken of each,
    and of these the kinds that only one of them has.
    """
    assert tables.real is not None and tables.holdout is not None
    real, holdout = tables.real, tables.holdout
    if not is_copy(holdout, real).any():
        return None
    n = min(len(real), len(holdout))
    real, holdout = (t.sample(n, random_state=0) if len(t) > n else t for t in (real, holdout))
    parts = []
    for own, other in ((real, holdout), (holdout, real)):
        # Rounded as the release is, like the copies.
        own, other = (as_released(t, tables.release) for t in (own, other))
        own, other = (t[~t.apply(value_keys).duplicated()] for t in (own, other))
        alone = own[~is_copy(own, other)]
        parts += [int(is_copied(alone, tables.release).sum()) if len(alone) else 0, len(alone)]
    return parts[0], parts[1], parts[2], parts[3]


def _less_others(result: AttackResult, fair: tuple[int, int, int, int]) -> AttackResult:
    """Return copies beside as many rows of other people, where these explain more of them."""
    low, high = difference_interval(*fair)
    if low >= result.interval[0]:
        return result
    share, others = (copied / total if total else 0.5 for copied, total in (fair[:2], fair[2:]))
    return replace(result, risk=max(0.0, share - others), interval=(max(0.0, low), max(0.0, high)))


def others_copied(column: str, columns: Sequence[Any], tables: Sequence[pd.DataFrame | None]) -> float:
    """Return which share of the holdout's rare rows may stand in the release: the upper end of its interval, or 0.

    Of rows that are no real ones, and stand there under their own label. Those that are common say nothing about
    others, which may be rare in another class.
    """
    release, real, holdout = tables
    if release is None or real is None or holdout is None:
        return 0.0
    release, real, holdout = (with_keys(table, column, columns) for table in (release, real, holdout))
    if not is_copy(release, holdout).any():
        return 0.0
    copied, rare = rare_matches(release, as_released(holdout, release), as_released(real, release))
    return wilson_interval(copied, rare)[1] if copied else 0.0


def _beside_other_classes(found: Mapping[str, Any], share: float) -> float:
    """Return how probable so many copies are if chance copies a share of all rows."""
    from scipy.stats import poisson

    return float(poisson.sf(found["copied"] - 1, found["distinct_real"] * share)) if share else 0.0


def _beside_others(found: Mapping[str, Any], fair: tuple[int, int, int, int] | None) -> float | None:
    """Return how probable so many copies are if those of other people are chance; None without other people."""
    if not found.get("distinct_holdout"):
        return None
    from scipy.stats import fisher_exact

    names = ("copied", "distinct_real", "copied_holdout", "distinct_holdout")
    copied, total, copied_others, total_others = fair or (found[name] for name in names)
    table = [[copied, total - copied], [copied_others, total_others - copied_others]]
    return float(fisher_exact(table, alternative="greater").pvalue)
