"""Every attack that the material at hand allows on a release, class by class, in the order of their severity."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe._core.errors import was_interrupted
from oversafe._core.text import joined
from oversafe.attack.base import Attack, AttackResult, Earlier, Rows
from oversafe.attack.class_tables import ANOTHER_LABEL, ClassTables, rows_in_words
from oversafe.attack.registry import about, needing, on_releases
from oversafe.data.rows import is_copied, is_copy
from oversafe.data.rows.values import value_keys

# What they threaten are records, and not what is told about people.
_OF_RECORDS = ("reconstruction", "distinguishing")
# What so many people of other classes have in common names nobody.
_SEVERAL = 3

Step = Callable[[], AttackResult | None]


@dataclass(frozen=True)
class AttackStep:
    """An attack that can be run.

    Parameters
    ----------
    title : str
        What it is called.
    tables : ClassTables
        What it is run on.
    attack : Attack
        Which one.
    run : callable
        Runs it; None if there is nothing for it to say.
    is_own : bool
        Whether it is not one of oversafe's, whose code may be another the next time.
    """

    title: str
    tables: ClassTables
    attack: Attack
    run: Step
    is_own: bool = False


def attacked_classes(release: pd.Series, real: pd.Series | None) -> list[str]:
    """Return the classes whose records are at risk: all but the largest, or all when it is not known which.

    Of one class alone nobody knows whether it is the largest.
    """
    classes = set(value_keys(release))
    if real is not None:
        counts = value_keys(real).value_counts()
        classes |= set(counts.index)
        if len(counts) > 1:
            classes -= {counts.index[0]}
    return sorted(classes)


def class_tables(
    label: str,
    column: str,
    columns: Sequence[Any],
    tables: Sequence[pd.DataFrame | None],
    *,
    same_units: bool = True,
    is_largest: bool = False,
    others_copied: float = 0.0,
    kinds: NDArray[np.int64] | None = None,
) -> ClassTables:
    """Return one class of a release, the real table and the holdout, in the given columns.

    ``kinds`` are the numbers that :func:`oversafe.data.rows.row_keys` gives the real rows in these columns.
    """

    def own(table: pd.DataFrame) -> NDArray[np.bool_]:
        # 1, 1.0 and "1" are the same class, as files have it.
        return (value_keys(table[column]) == label).to_numpy()

    release, real, holdout = (
        None if table is None else table.loc[own(table), list(columns)].reset_index(drop=True)
        for table in tables
    )
    assert release is not None
    other_rows = None
    if tables[0] is not None and not is_largest:
        other_rows = tables[0].loc[~own(tables[0]), list(columns)]
    other_real: dict[str, pd.DataFrame] = {}
    if tables[1] is not None and not is_largest:
        rest = tables[1].loc[~own(tables[1])]
        other_real = {str(name): part[list(columns)] for name, part in rest.groupby(value_keys(rest[column]))}
    shared = None
    if kinds is not None and tables[1] is not None:
        theirs = kinds[own(tables[1])]
        others = np.bincount(kinds) - np.bincount(theirs, minlength=int(kinds.max()) + 1)
        shared = others[theirs] >= _SEVERAL
    return ClassTables(
        label,
        release,
        real,
        holdout,
        same_units,
        is_largest,
        others_copied,
        shared,
        other_rows,
        other_real,
    )


def relabelled_tables(
    column: str, columns: Sequence[Any], tables: Sequence[pd.DataFrame | None]
) -> list[ClassTables]:
    """Return the rows that stand in the release, but not under their own label, for copies among them; or nothing.

    Whoever codes the classes anew, or swaps them, hands out the same people.
    """
    release, real, holdout = tables
    if release is None or real is None:
        return []
    shared = list(columns)
    released, known = (with_keys(table, column, columns) for table in (release, real))
    added = released[shared][~is_copy(released, known)].reset_index(drop=True)
    missing = known[shared][~is_copied(known, released)].reset_index(drop=True)
    if added.empty or missing.empty or not is_copy(added, missing).any():
        return []
    others = None if holdout is None else holdout[shared].reset_index(drop=True)
    return [ClassTables(ANOTHER_LABEL, added, missing, others)]


def with_keys(table: pd.DataFrame, column: str, columns: Sequence[Any]) -> pd.DataFrame:
    """Return columns with the label, which may be a number in one table and text in another."""
    return table[list(columns)].assign(**{column: value_keys(table[column])})


def largest_class(release: pd.Series, real: pd.Series | None) -> list[str]:
    """Return the class that is not attacked but for copies, if it is known and the release has it."""
    return sorted(set(value_keys(release)) - set(attacked_classes(release, real)))


def steps_on(
    rows: Rows, classes: Sequence[ClassTables], results: Sequence[AttackResult], not_run: dict[str, str]
) -> Iterator[AttackStep]:
    """Yield the attacks on rows that are no class at risk: those of the largest, or under another label."""
    for attack in on_releases():
        for tables in classes if rows in attack.about.rows else ():
            if tables.real is not None and len(tables.real) and len(tables.release):
                yield from _step(attack, _with_a_holdout(tables), results, not_run)


def attack_steps(
    classes: Sequence[ClassTables], results: Sequence[AttackResult], not_run: dict[str, str]
) -> Iterator[AttackStep]:
    """Yield the attacks that can be run, the gravest first.

    Parameters
    ----------
    classes : sequence of ClassTables
        What is attacked.
    results : sequence of AttackResult
        What was found so far: append each result before the next step is asked for, since later attacks build on
        earlier ones.
    not_run : dict
        Is told which attacks are left out, and why.
    """
    attacks = [own for own in on_releases() if "attacked" in own.about.rows]
    # What reads records is run class by class, the other attacks one after the other.
    reading = [own for own in attacks if own.about.threat in _OF_RECORDS]
    ready = []
    for tables in classes:
        what = f"class {tables.label!r}"
        if tables.release.empty:
            not_run[f"every attack on {what}"] = "the release has no row of it"
            continue
        if tables.real is not None and tables.real.empty:
            not_run[f"every attack on {what}"] = "the real table has no such class"
            continue
        for attack in reading:
            if "real" not in attack.about.needs:
                yield from _step(attack, tables, results, not_run)
        if tables.real is not None and tables.holdout is not None and tables.holdout.empty:
            not_run[f"{joined(needing('holdout'))} on {what}"] = "the holdout has no row of it"
            tables = _with_a_holdout(tables)
        for attack in reading:
            if "real" in attack.about.needs and _suffices(tables, attack):
                yield from _step(attack, tables, results, not_run)
        ready.append(tables)
    for attack in attacks:
        for tables in ready if attack not in reading else ():
            if _suffices(tables, attack):
                yield from _step(attack, tables, results, not_run)


def _suffices(tables: ClassTables, attack: Attack) -> bool:
    """Whether the tables that an attack needs are there."""
    given = {"real": tables.real, "holdout": tables.holdout}
    return all(given[name] is not None for name in given if name in attack.about.needs)


def _with_a_holdout(tables: ClassTables) -> ClassTables:
    """Return tables whose holdout has rows, or that have none."""
    return replace(tables, holdout=None) if tables.holdout is not None and tables.holdout.empty else tables


def _step(
    attack: Attack, tables: ClassTables, results: Sequence[AttackResult], not_run: dict[str, str]
) -> Iterator[AttackStep]:
    title = f"{attack.title()} on {rows_in_words(tables.label)}"
    why = attack.why_not(tables, _earlier(results, tables))
    if why is None:
        yield AttackStep(title, tables, attack, partial(_run, attack, tables, results))
    elif why:
        not_run[title] = why


def _run(attack: Attack, tables: ClassTables, results: Sequence[AttackResult]) -> AttackResult | None:
    result = attack.run_on(tables, _earlier(results, tables))
    return None if result is None else _labelled(result, tables)


def _earlier(results: Sequence[AttackResult], tables: ClassTables) -> Earlier:
    """Return what names real records of a class, as far as it was found before: of each kind the first."""
    of_class = [result for result in reversed(results) if result.details.get("class") == tables.label]
    return {reads: result for result in of_class if (reads := about(result).reads) is not None}


def warn_of_own_attacks(attacks: Sequence[Any], *not_run: Mapping[str, str]) -> None:
    """Say which of somebody's own attacks came to nothing, and why."""
    for name in sorted({type(attack).__name__ for attack in attacks}):
        told = [
            why for each in not_run for title, why in each.items() if title.startswith(f"{name} on class ")
        ]
        if told:
            warnings.warn(f"the attack {name} was left out: {told[0]}", stacklevel=3)


def own_attack_steps(
    attacks: Sequence[Any], classes: Sequence[ClassTables], not_run: dict[str, str]
) -> Iterator[AttackStep]:
    """Yield somebody's own attacks on each class; one that fails is left out, with its error as the reason."""
    for attack in attacks:
        for tables in classes:
            title = f"{type(attack).__name__} on class {tables.label!r}"
            if tables.real is None:
                not_run[title] = "it needs the real table (--real)"
            elif tables.release.empty or tables.real.empty:
                not_run[title] = "the release or the real table has no row of it"
            else:
                yield AttackStep(
                    title, tables, attack, partial(_own, attack, tables, title, not_run), is_own=True
                )


def _own(attack: Any, tables: ClassTables, title: str, not_run: dict[str, str]) -> AttackResult | None:
    holdout = tables.holdout if tables.holdout is not None and len(tables.holdout) else None
    try:
        result = attack.run(tables.release, tables.real, holdout=holdout)
    except Exception as error:
        if was_interrupted(error):
            raise
        # Somebody else's code: the other attacks are worth their report all the same.
        not_run[title] = f"it failed with {type(error).__name__}: {error}"
        return None
    if not isinstance(result, AttackResult):
        not_run[title] = f"it returned {type(result).__name__} and not an AttackResult"
        return None
    return _labelled(result, tables)


def _labelled(result: AttackResult, tables: ClassTables) -> Any:
    # Comparisons and verdicts speak of the others first.
    largest = {"is_largest_class": True} if tables.is_largest else {}
    return replace(result, details={"class": tables.label, **largest, **result.details})
