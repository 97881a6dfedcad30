"""Every attack on a release, as audits and comparisons run them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import pandas as pd

from oversafe.attack import AttackResult
from oversafe.attack.class_tables import ClassTables
from oversafe.auditing.certainty import others_copied
from oversafe.auditing.plan.attack_steps import (
    AttackStep,
    attack_steps,
    attacked_classes,
    class_tables,
    largest_class,
    own_attack_steps,
    relabelled_tables,
    steps_on,
)
from oversafe.data.rows import row_keys


@dataclass(frozen=True)
class AttackedRelease:
    """A release with what is known about it, for the attacks on each of its classes.

    Parameters
    ----------
    label : str
        The column that holds the class.
    columns : sequence
        Those that are compared.
    tables : tuple
        Release, real table and holdout; one of the latter that is not known is None.
    same_units : bool
        Whether the real rows can show which records that are computed from the release are real.
    """

    label: str
    columns: Sequence[Any]
    tables: tuple[pd.DataFrame, pd.DataFrame | None, pd.DataFrame | None]
    same_units: bool = True

    @property
    def attacked(self) -> list[str]:
        """The classes whose records are at risk."""
        return attacked_classes(*self._labels())

    @property
    def largest(self) -> list[str]:
        """The class of which only copies are looked for, if it is known and the release has it."""
        return largest_class(*self._labels())

    @cached_property
    def largest_tables(self) -> list[ClassTables]:
        """The rows of the largest class."""
        return self._rows_of(self.largest, is_largest=True)

    def steps(
        self, results: Sequence[AttackResult], not_run: dict[str, str], own: Sequence[Any]
    ) -> Iterator[AttackStep]:
        """Yield the attacks that can be run; see :func:`oversafe.auditing.plan.attack_steps.attack_steps`.

        ``own`` are somebody's own attacks, which come last.
        """
        # First, since it takes next to no time: no limit may leave out that most people stand there as they are.
        yield from steps_on("largest", self.largest_tables, results, not_run)
        relabelled = relabelled_tables(self.label, self.columns, self.tables)
        yield from steps_on("relabelled", relabelled, results, not_run)
        classes = self._rows_of(self.attacked, same_units=self.same_units)
        yield from attack_steps(classes, results, not_run)
        yield from own_attack_steps(own, classes, not_run)

    def _labels(self) -> tuple[pd.Series, pd.Series | None]:
        release, real, _ = self.tables
        return release[self.label], real[self.label] if real is not None and self.same_units else None

    def _rows_of(self, labels: Sequence[str], **of_class: Any) -> list[ClassTables]:
        chance, kinds = self._common
        rows = partial(class_tables, column=self.label, columns=self.columns, tables=self.tables, kinds=kinds)
        return [rows(label, others_copied=chance, **of_class) for label in labels]

    @cached_property
    def _common(self) -> tuple[float, Any]:
        """What all classes together show: how often chance copies others, and which real rows are alike."""
        real = self.tables[1]
        kinds = None if real is None else row_keys(real[list(self.columns)])
        return others_copied(self.label, self.columns, self.tables), kinds
