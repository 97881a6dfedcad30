"""The tables of an audit: whether they fit together, and how much work they are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_any_real_numeric_dtype

from oversafe._core.checks import check_pandas
from oversafe._core.errors import InputError
from oversafe._core.text import did_you_mean, listed, shorten
from oversafe.attack.registry import on_releases
from oversafe.auditing.plan.attacked import AttackedRelease
from oversafe.auditing.tables.align_columns import made_alike
from oversafe.auditing.tables.identifiers import real_identifiers
from oversafe.auditing.tables.masking_column import hiding_column
from oversafe.data import Schema
from oversafe.data.labels import check_class_count
from oversafe.data.rows import is_copy
from oversafe.data.rows.values import value_keys
from oversafe.data.schema import check_table

FloatArray = NDArray[np.float64]

# Two samples' largest difference of their distributions (Kolmogorov, Smirnov) from which they are told to hardly
# overlap, or to be unlike; of fewer values it says nothing.
_ELSEWHERE, _UNLIKE, _FEW = 0.9, 0.4, 7
# Values are in other units if they differ by at least this share of their range, and by less than this share of that
# when both are scaled to the same range.
_MOVED, _ALIKE = 0.01, 0.001


@dataclass(frozen=True)
class Material:
    """The tables of an audit, checked against one another."""

    release: pd.DataFrame
    label: str
    real: pd.DataFrame | None
    holdout: pd.DataFrame | None
    columns: list[str]
    warnings: tuple[str, ...]
    same_units: bool = True
    naming: tuple[str, ...] = ()
    real_identifiers: tuple[str, ...] = ()
    naming_columns: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, release: pd.DataFrame, label: str, real: pd.DataFrame | None, holdout: pd.DataFrame | None
    ) -> Material:
        """Return the tables in the columns that they share, or say why they cannot be compared."""
        tables = {"release": release, "real table": real, "holdout": holdout}
        for what, table in tables.items():
            check_pandas(table)
            if isinstance(table, pd.DataFrame) and label not in table.columns:
                names = [str(name) for name in table.columns]
                raise InputError(
                    f"the {what} has no column {label!r} to be its label{did_you_mean(label, names)}; "
                    f"its columns are {listed(names)}"
                )
        for table in tables.values():
            if table is not None:
                check_table(table)
        as_given = release, real
        alike = made_alike(release, real, holdout, label)
        release, real, holdout = alike.tables
        tables = {"release": release, "real table": real, "holdout": holdout}
        schema = Schema.infer(release, label=label)
        warnings = [
            f"column {name!r} seems to hold {schema[name].naming}; "
            "no release should carry it, and it was left out of the attacks"
            for name in schema.naming_columns
        ]
        naming = tuple(f"{schema[name].naming} in {shorten(name, 60)!r}" for name in schema.naming_columns)
        warnings += [*alike.read_again, *(f"{told}, so this was not compared" for told in alike.why_apart)]
        naming_columns = list(schema.naming_columns)
        columns = [c.name for c in schema.features if not c.names_people and c.name not in alike.apart]
        for what, table in tables.items():
            if table is None:
                continue
            if what != "release":
                found = Schema.infer(table, label=label)
                if what == "real table":
                    naming_columns += found.naming_columns
                missing = [c for c in columns if c not in table.columns]
                if missing:
                    warnings.append(
                        f"the {what} has no column {listed(missing)}; only shared columns were compared"
                    )
                    columns = [c for c in columns if c in table.columns]
            for name in table.select_dtypes("number").columns.intersection(columns):
                if np.isinf(table[name].to_numpy(dtype=float, na_value=np.nan)).any():
                    raise InputError(
                        f"column {name!r} of the {what} has infinite values; remove them or mark them as missing"
                    )
            if (gaps := table[label].isna()).any():
                raise InputError(
                    f"{int(gaps.sum())} rows of the {what} have no label in {label!r} "
                    f"(first: row {int(np.argmax(gaps)) + 1}); drop or label them"
                )
        if not columns and alike.apart:
            raise InputError(
                f"no column is left to be compared: {'; '.join(alike.why_apart)}; correct the cells that are not, or "
                "give both tables as the same program wrote them"
            )
        if not columns:
            raise InputError(
                "the tables share no column besides the label; give tables with the same columns"
            )
        classes = {what: set(value_keys(t[label])) for what, t in tables.items() if t is not None}
        for what, own in classes.items():
            if what != "holdout":
                check_class_count(
                    len(own), len(tables[what]), f"the label column {label!r} of the {what} has"
                )
        if real is not None and not classes["release"] & classes["real table"]:
            raise InputError(
                f"the release and the real table share no class in {label!r}; give the same label column"
            )
        if real is not None and holdout is not None:
            named = [*columns, label]
            again = int(is_copy(holdout[named], real[named]).sum())
            if again > len(holdout) / 2:
                warnings.append(
                    f"{again} of the {len(holdout)} rows of the holdout stand in the real table too; if they are the "
                    "same people, the holdout cannot show what chance gives"
                )
        others = [] if real is None else _other_units(release, real, label, columns)
        if others and 2 * len(others) <= len(columns):
            warnings.append(
                "the release and the real table do not seem to be in the same units, or noise moved the values far, in "
                f"{listed(others)}, so this was not compared"
            )
            columns, others = [name for name in columns if name not in others], []
        if others:
            warnings.append(
                "the release and the real table do not seem to be in the same units, unless noise moved the values "
                f"far: they hardly overlap in {listed(others)}; what the attacks read out of the release was not held "
                "against the real table, so give that one as the release was made from it"
            )
        elif real is not None and (hiding := hiding_column(release, real, columns)) is not None:
            name, count = hiding
            warnings.append(
                f"{count} rows of the release are those of real people but for {name!r}, so this was not compared"
            )
            columns = [own for own in columns if own != name]
        return cls(
            release,
            label,
            real,
            holdout,
            columns,
            tuple(warnings),
            not others,
            naming,
            # As they were given: read again as numbers, long ones would be rounded.
            real_identifiers(*as_given, [c.name for c in schema if c.names_people and c.name != label]),
            tuple(dict.fromkeys(naming_columns)),
        )

    def facts(self) -> dict[str, Any]:
        """What a report says about the tables."""
        counts = self.release[self.label].value_counts()
        return {
            "rows": len(self.release),
            "columns": len(self.columns),
            "label": self.label,
            "classes": {str(k): int(v) for k, v in counts.items()},
            "real_rows": None if self.real is None else len(self.real),
            "holdout_rows": None if self.holdout is None else len(self.holdout),
            "not_released": [c for c in self.real.columns if c not in self.release.columns]
            if self.real is not None
            else [],
            "naming_columns": list(self.naming_columns),
        }

    @cached_property
    def attacked(self) -> AttackedRelease:
        """The tables as they are attacked."""
        return AttackedRelease(
            self.label, self.columns, (self.release, self.real, self.holdout), self.same_units
        )

    def work(self) -> float:
        """How much the attacks will take together, if all can be run."""
        given = {"release", "reconstruction"}
        given |= {
            what for what, table in (("real", self.real), ("holdout", self.holdout)) if table is not None
        }
        possible = [own.about for own in on_releases() if given.issuperset(own.about.needs)]
        others = sum(own.work for own in possible if "largest" in own.rows) * len(self.attacked.largest)
        return max(1, len(self.attacked.attacked)) * sum(own.work for own in possible) + others


def _is_scaled(release: FloatArray, real: FloatArray) -> bool:
    """Whether these are the values of a class that was left as it is, in other units that cover the same range."""
    if len(release) != len(real):
        return False
    release, real = np.sort(release), np.sort(real)
    with np.errstate(all="ignore"):
        moved = np.abs(release - real).max() / np.ptp(real)
        left = np.abs((release - release[0]) / np.ptp(release) - (real - real[0]) / np.ptp(real)).max()
        # What noise or rounding moved is not elsewhere when both are scaled alike.
        return bool(moved > _MOVED and left < moved * _ALIKE)


def _distance(release: FloatArray, real: FloatArray) -> float:
    """Return Kolmogorov's and Smirnov's distance; SciPy's function also tests it, which takes longer."""
    at = np.sort(np.concatenate([release, real]))
    shares = [np.searchsorted(np.sort(own), at, "right") / len(own) for own in (release, real)]
    return float(np.abs(shares[0] - shares[1]).max())


def _other_units(release: pd.DataFrame, real: pd.DataFrame, label: str, columns: list[str]) -> list[str]:
    """Return the columns of numbers whose values hardly overlap between two tables, in none of their classes.

    One column that lies elsewhere is enough for no row to agree. Scaled values may cover the real ones by chance, as
    standardized ones do those below 1: columns that are only distributed otherwise count where most of them are.
    """
    numbers = [c for c in columns if all(is_any_real_numeric_dtype(t[c].dtype) for t in (release, real))]
    keys = [value_keys(table[label]).to_numpy() for table in (release, real)]
    of_class = [[key == shared for key in keys] for shared in np.intersect1d(*keys)]
    apart = {}
    for name in numbers:
        values = [table[name].to_numpy(dtype=float, na_value=np.nan) for table in (release, real)]
        present = [~np.isnan(v) for v in values]
        parts = [[v[k & p] for v, k, p in zip(values, which, present, strict=True)] for which in of_class]
        parts = [pair for pair in parts if min(map(len, pair)) >= _FEW]
        if any(_is_scaled(*pair) for pair in parts):
            apart[name] = 1.0
        elif parts:
            apart[name] = min(_distance(*pair) for pair in parts)
    others = [name for name, distance in apart.items() if distance >= _ELSEWHERE]
    unlike = [name for name, distance in apart.items() if distance >= _UNLIKE]
    return unlike if others or len(unlike) > len(apart) / 2 else []
