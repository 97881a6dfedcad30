"""Every attack that the material at hand allows on a release, class by class, in the order of their severity."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe._core.errors import InputError, was_interrupted
from oversafe.attack.base import Attack, AttackResult
from oversafe.attack.copies import ExactCopies
from oversafe.attack.geometry.decimals import told_by_decimals
from oversafe.attack.geometry.distinguishing import DistinSMOTE
from oversafe.attack.geometry.reconstruction import ReconSMOTE
from oversafe.attack.geometry.shapes.points import EXACT
from oversafe.attack.linkage.inference import AttributeInference
from oversafe.attack.linkage.linkability import Linkability
from oversafe.attack.linkage.singling_out import SinglingOut
from oversafe.attack.membership.similarity import ClosestRecord, NaiveDistinguisher
from oversafe.data.rows import is_copied, is_copy
from oversafe.data.rows.values import value_keys

NEED_A_HOLDOUT = "Linkability, SinglingOut and AttributeInference"

# In the place of a class: real rows that stand in the release under any but their own.
ANOTHER_LABEL = "another label than their own"
# Attacks on the same tables must say the same thing twice.
AUDIT_SEED = 0
# A class that fewer rows speak for cannot hold the three lines of three rows that name a record.
_FEWEST_ROWS = 7
# What so many people of other classes have in common names nobody.
_SEVERAL = 3

Step = Callable[[], AttackResult | None]


@dataclass(frozen=True)
class ClassTables:
    """The rows of one class in each table, without the label.

    Parameters
    ----------
    label : str
        The class.
    release, real, holdout : DataFrame
        Its released rows, the real ones they were made from, and real ones that had no part in them.
    same_units : bool
        Whether the real rows can show which records that are computed from the release are real.
    is_largest : bool
        Whether it is the largest class, of which only copies are looked for.
    others_copied : float
        The share of other people's rows, of all classes together, that may stand in the release although their values
        are rare: the upper end of its interval, or 0 if none does.
    shared : bool array, optional
        Which of the real rows are those of several people of other classes too.
    """

    label: str
    release: pd.DataFrame
    real: pd.DataFrame | None = None
    holdout: pd.DataFrame | None = None
    same_units: bool = True
    is_largest: bool = False
    others_copied: float = 0.0
    shared: NDArray[np.bool_] | None = None

    @property
    def truth(self) -> pd.DataFrame | None:
        """The real rows where they can be held against what is computed from the release."""
        return self.real if self.same_units else None


@dataclass(frozen=True)
class AttackStep:
    """An attack that can be run.

    Parameters
    ----------
    title : str
        What it is called.
    tables : ClassTables
        What it is run on.
    run : callable
        Runs it; None if there is nothing for it to say.
    is_own : bool
        Whether it is not one of oversafe's, whose code may be another the next time.
    """

    title: str
    tables: ClassTables
    run: Step
    is_own: bool = False


def attacked_classes(release: pd.Series, real: pd.Series | None) -> list[str]:
    """Return the classes whose records are at risk: all but the largest, or all when it is not known which."""
    classes = set(value_keys(release))
    if real is not None:
        counts = value_keys(real).value_counts()
        classes = (classes | set(counts.index)) - {counts.index[0]}
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
    shared = None
    if kinds is not None and tables[1] is not None:
        theirs = kinds[own(tables[1])]
        others = np.bincount(kinds) - np.bincount(theirs, minlength=int(kinds.max()) + 1)
        shared = others[theirs] >= _SEVERAL
    return ClassTables(label, release, real, holdout, same_units, is_largest, others_copied, shared)


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


def rows_in_words(label: str) -> str:
    """Return what is attacked: a class, or what stands in the place of one."""
    return f"rows under {label}" if label == ANOTHER_LABEL else f"class {label!r}"


def copies_steps(classes: Sequence[ClassTables]) -> Iterator[AttackStep]:
    """Yield the one attack that needs no more than rows: whether people stand in the release as they are."""
    for tables in classes:
        if tables.real is not None and len(tables.real) and len(tables.release):
            if tables.holdout is not None and tables.holdout.empty:
                tables = replace(tables, holdout=None)
            yield AttackStep(
                f"ExactCopies on {rows_in_words(tables.label)}", tables, partial(_copies, tables)
            )


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
    compared = []
    for tables in classes:
        what = f"class {tables.label!r}"
        if tables.release.empty:
            not_run[f"every attack on {what}"] = "the release has no row of it"
            continue
        if tables.real is not None and tables.real.empty:
            not_run[f"every attack on {what}"] = "the real table has no such class"
            continue
        yield from _geometry(tables, results, not_run)
        if tables.real is not None:
            if tables.holdout is not None and tables.holdout.empty:
                not_run[f"{NEED_A_HOLDOUT} on {what}"] = "the holdout has no row of it"
                tables = replace(tables, holdout=None)
            yield AttackStep(f"ExactCopies on {what}", tables, partial(_copies, tables))
            compared.append(tables)
    yield from _linkage([tables for tables in compared if tables.holdout is not None], not_run)
    yield from _similarity(compared, results, not_run)
    for tables in compared:
        title = f"NaiveDistinguisher on class {tables.label!r}"
        copied = is_copy(tables.release, tables.real)
        if not copied.any():
            not_run[title] = "no released row is a real record, so there is none to be told from the others"
        elif _only_chance_copies(results, tables.label):
            # In a coarse table every release holds real rows; to know those that are frequent anyway is no gain.
            not_run[title] = (
                "the real rows in it are no more than chance gives, so there are none to be told apart"
            )
        elif min(len(tables.real if tables.real is not None else ()), int((~copied).sum())) < 2:
            not_run[title] = "it needs at least two real and two other rows"
        else:
            yield AttackStep(title, tables, partial(_naive, tables, results))


def _only_chance_copies(results: Sequence[AttackResult], label: str) -> bool:
    """Whether copies were looked for in a class and no more of them were found than by chance.

    Whoever judged that by more than the interval says so in the details.
    """
    found = [r for r in results if r.name == "ExactCopies" and r.details.get("class") == label]
    return bool(found) and not found[-1].details.get("more_than_chance", found[-1].interval[0] > 0)


def check_attacks(attacks: Sequence[Any] | None) -> tuple[Any, ...]:
    """Return somebody's own attacks, or say what one of them lacks."""
    if isinstance(attacks, Attack):
        raise InputError(
            f"attacks is a single {type(attacks).__name__}; give a list: [{type(attacks).__name__}()]"
        )
    given = tuple(attacks or ())
    for attack in given:
        if isinstance(attack, type):
            raise InputError(
                f"an attack is the class {attack.__name__}; give an object of it: {attack.__name__}()"
            )
        name = type(attack).__name__
        if not isinstance(attack, Attack):
            raise InputError(
                f"an attack is of type {name}, which is not an Attack; inherit from oversafe.attack.Attack"
            )
        try:
            signature(attack.run).bind(None, None, holdout=None)
        except TypeError:
            raise InputError(
                f"the attack {name} has run{signature(attack.run)}; here run(release, real, holdout=None) is called"
            ) from None
    return given


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
                yield AttackStep(title, tables, partial(_own, attack, tables, title, not_run), is_own=True)


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


def reconstruction_of(results: Sequence[AttackResult], label: str) -> AttackResult | None:
    """Return what the reconstruction attack got out of a class."""
    for result in results:
        if result.name == "ReconSMOTE" and result.details.get("class") == label:
            return result
    return None


def _geometry(
    tables: ClassTables, results: Sequence[AttackResult], not_run: dict[str, str]
) -> Iterator[AttackStep]:
    what = f"class {tables.label!r}"
    if len(tables.release) < _FEWEST_ROWS:
        not_run[f"ReconSMOTE on {what}"] = f"the release has only {len(tables.release)} rows of it"
        return
    yield AttackStep(f"ReconSMOTE on {what}", tables, partial(_reconstruct, tables))
    found = reconstruction_of(results, tables.label)
    truth = None if tables.truth is None else is_copy(tables.release, tables.truth)
    if truth is not None and truth.all():
        not_run[f"DistinSMOTE on {what}"] = "all its rows are real, so there is none to be told from them"
    elif found is not None and (
        truth is not None or found.details.get("released", 0) or told_by_decimals(tables.release) is not None
    ):
        yield AttackStep(f"DistinSMOTE on {what}", tables, partial(_distinguish, tables, truth))
    elif found is not None and found.details.get("tolerance", 0.0) > EXACT and not found.evidence.empty:
        # Records were read out, so that the sentence below would deny them.
        not_run[f"DistinSMOTE on {what}"] = (
            "its values are rounded, so that real rows, if it has any, cannot be told from added ones as they stand"
        )
    else:
        not_run[f"DistinSMOTE on {what}"] = "no row of the release was found to be a real record"


def _linkage(compared: Sequence[ClassTables], not_run: dict[str, str]) -> Iterator[AttackStep]:
    for make in _AGAINST_HOLDOUT:
        for tables in compared:
            attack = make()
            title = f"{_title(attack)} on class {tables.label!r}"
            if isinstance(attack, Linkability | AttributeInference) and tables.release.shape[1] < 2:
                not_run[title] = "the tables share one column only"
                continue
            yield AttackStep(title, tables, partial(_against_holdout, attack, tables))


def _similarity(
    compared: Sequence[ClassTables], results: Sequence[AttackResult], not_run: dict[str, str]
) -> Iterator[AttackStep]:
    for tables in compared:
        title = f"ClosestRecord on class {tables.label!r}"
        if tables.holdout is None and len(tables.release) < _FEWEST_ROWS:
            not_run[title] = f"the release has only {len(tables.release)} rows of it"
        else:
            yield AttackStep(title, tables, partial(_closest, tables, results))


def _title(attack: Any) -> str:
    name = type(attack).__name__
    return f"{name} ({attack.mode})" if isinstance(attack, SinglingOut) else name


_AGAINST_HOLDOUT: tuple[Callable[[], Any], ...] = (
    lambda: SinglingOut("univariate", random_state=AUDIT_SEED),
    lambda: SinglingOut("multivariate", random_state=AUDIT_SEED),
    lambda: Linkability(random_state=AUDIT_SEED),
    lambda: AttributeInference(random_state=AUDIT_SEED),
)


def _reconstruct(tables: ClassTables) -> AttackResult:
    return _labelled(ReconSMOTE().run(tables.release, real=tables.truth), tables)


def _distinguish(tables: ClassTables, truth: NDArray[np.bool_] | None) -> AttackResult | None:
    if truth is not None and not truth.any():
        return None
    return _labelled(DistinSMOTE().run(tables.release, truth=truth), tables)


def _copies(tables: ClassTables) -> AttackResult:
    # Under another label the real rows were chosen for being missing under their own; the holdout's were not chosen.
    attack = ExactCopies(both_ways=tables.label != ANOTHER_LABEL)
    return _labelled(attack.run(tables.release, tables.real, tables.holdout), tables)


def _against_holdout(attack: Any, tables: ClassTables) -> AttackResult:
    return _labelled(attack.run(tables.release, tables.real, tables.holdout), tables)


def _closest(tables: ClassTables, results: Sequence[AttackResult]) -> AttackResult:
    known = reconstruction_of(results, tables.label)
    attack = ClosestRecord(random_state=AUDIT_SEED)
    return _labelled(attack.run(tables.release, tables.real, tables.holdout, reconstruction=known), tables)


def _naive(tables: ClassTables, results: Sequence[AttackResult]) -> AttackResult:
    known = reconstruction_of(results, tables.label)
    attack = NaiveDistinguisher(random_state=AUDIT_SEED)
    return _labelled(attack.run(tables.release, tables.real, reconstruction=known), tables)


def _labelled(result: AttackResult, tables: ClassTables) -> Any:
    # Comparisons and verdicts speak of the others first.
    largest = {"is_largest_class": True} if tables.is_largest else {}
    return replace(result, details={"class": tables.label, **largest, **result.details})
