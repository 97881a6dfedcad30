"""Columns that were read as numbers in one table of an audit and as text in another: made alike, or left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd
from pandas.api.types import is_numeric_dtype

from oversafe._core.text import counted, listed
from oversafe.data.coerce_text import ReadAs, read_as, reread, without_zone
from oversafe.data.rows.values import value_keys

Kinds = tuple[tuple[str, ReadAs], ...]

_FEW_AGREE = 0.5


@dataclass(frozen=True)
class Alike:
    """The tables of an audit, with columns of one kind in all of them.

    Parameters
    ----------
    tables : tuple
        Release, real table and holdout as given, but for text that was read as numbers or dates.
    read_again : tuple of str
        What to say of columns whose text was.
    apart : tuple of str
        The columns that are not of one kind.
    why_apart : tuple of str
        What is what in them.
    """

    tables: tuple[pd.DataFrame, pd.DataFrame | None, pd.DataFrame | None]
    read_again: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    why_apart: tuple[str, ...] = ()


def made_alike(
    release: pd.DataFrame, real: pd.DataFrame | None, holdout: pd.DataFrame | None, label: str
) -> Alike:
    """Return the tables with columns of one kind in all of them, and which columns are not.

    No row is equal to another whose value is text in place of a number, so that one such column would hide every copy.
    Text that is numbers or dates nearly throughout is read as these.
    """
    given = {
        what: table.copy(deep=False)
        for what, table in (("release", release), ("real table", real), ("holdout", holdout))
        if table is not None
    }
    again: dict[tuple[Kinds, str], list[str]] = {}
    apart: dict[Kinds, list[str]] = {}
    recoded: list[str] = []
    left_out: list[str] = []
    emptied: list[str] = []
    for name in given["release"].columns:
        if name == label or not all(name in table.columns for table in given.values()):
            continue
        columns = {what: table[name] for what, table in given.items()}
        if (told := _without_values(name, columns)) is not None:
            left_out.append(name)
            emptied.append(told)
            continue
        kinds = {what: kind for what, column in columns.items() if (kind := read_as(column)) is not None}
        if set(kinds.values()) == {"dates"}:
            changed = _in_one_zone(columns)
            compared = [columns[what] for what in ("release", "real table") if what in columns]
            zoned = {isinstance(column.dtype, pd.DatetimeTZDtype) for column in compared}
            if _written_otherwise({**columns, **changed}, zones=len(zoned) > 1):
                recoded.append(name)
        elif set(kinds.values()) == {"text"} and _nothing_in_common(columns):
            recoded.append(name)
            continue
        elif len(set(kinds.values())) < 2:
            continue
        else:
            changed = _read_again(columns, kinds)
            if changed:
                again.setdefault((tuple(kinds.items()), _unread(columns, changed)), []).append(name)
            else:
                apart.setdefault(tuple(kinds.items()), []).append(name)
        for what, column in changed.items():
            given[what][name] = column
    return Alike(
        (given["release"], given.get("real table"), given.get("holdout")),
        tuple(f"{_which(names, of)}; the text was {read}" for (of, read), names in again.items()),
        (*(name for names in apart.values() for name in names), *recoded, *left_out),
        (
            *(_which(names, of) for of, names in apart.items()),
            *(
                f"column {name!r} is written otherwise in the release than in the real table"
                for name in recoded
            ),
            *emptied,
        ),
    )


def _read_again(columns: Mapping[str, pd.Series], kinds: Mapping[str, ReadAs]) -> dict[str, pd.Series]:
    """Return the columns of text as what the others are; none if one of them cannot be read so."""
    models = {kind: columns[what] for what, kind in kinds.items() if kind != "text"}
    if len(models) != 1:
        return {}
    (model,) = models.values()
    texts = [what for what, kind in kinds.items() if kind == "text"]
    changed = {what: column for what in texts if (column := reread(columns[what], model)) is not None}
    return changed if len(changed) == len(texts) else {}


def _in_one_zone(columns: Mapping[str, pd.Series]) -> dict[str, pd.Series]:
    """Return dates that have a time zone without it, where those of another table have none."""
    zoned = {what: c for what, c in columns.items() if isinstance(c.dtype, pd.DatetimeTZDtype)}
    return {} if len(zoned) == len(columns) else {what: without_zone(c) for what, c in zoned.items()}


def _without_values(name: str, columns: Mapping[str, pd.Series]) -> str | None:
    """Return in words that a column says nothing in one of release and real table alone, which hides every copy.

    It is empty, or the release has one value throughout that few real rows have, such as a mean or zero for a value
    that was taken out.
    """
    if "real table" not in columns:
        return None
    release, real = (columns[what].dropna() for what in ("release", "real table"))
    for what, own, other in (("release", release, real), ("real table", real, release)):
        if own.empty and len(other):
            return f"column {name!r} is empty in the {what}"
    # Most columns show by their first rows that they have several; of numbers no two are written alike.
    few = release.head(100)
    kinds = few.unique() if is_numeric_dtype(few.dtype) else value_keys(few).unique()
    if len(kinds) != 1 or len(release) < len(columns["release"]):
        return None
    keys = value_keys(release).unique()
    if len(keys) == 1 and len(real) and (value_keys(real) == keys[0]).mean() < _FEW_AGREE:
        return f"column {name!r} has the same value in all rows of the release, which few real ones have"
    return None


def _nothing_in_common(columns: Mapping[str, pd.Series]) -> bool:
    """Whether release and real table have other categories: coded anew, or with a space behind them."""
    keys = [value_keys(columns[what]).dropna() for what in ("release", "real table") if what in columns]
    if len(keys) < 2 or any(key.nunique() > len(key) / 2 for key in keys):
        return False
    return not set(keys[0]) & set(keys[1])


def _written_otherwise(columns: Mapping[str, pd.Series], *, zones: bool) -> bool:
    """Whether few dates agree, and they have a zone or a time of day in one of release and real table alone."""
    dates = [columns[what].dropna() for what in ("release", "real table") if what in columns]
    if len(dates) < 2 or not all(map(len, dates)):
        return False
    by_day = [bool((values == values.dt.normalize()).all()) for values in dates]
    # Moved by hours, some still agree by chance.
    return (zones or by_day[0] != by_day[1]) and dates[0].isin(dates[1]).mean() < _FEW_AGREE


def _which(names: list[str], kinds: Kinds) -> str:
    parts = [f"{kind} in the {what}" for what, kind in kinds]
    are = f"column {listed(names)} is" if len(names) == 1 else f"columns {listed(names)} are"
    return f"{are} {', '.join(parts[:-1])} and {parts[-1]}"


def _unread(columns: Mapping[str, pd.Series], changed: Mapping[str, pd.Series]) -> str:
    """Return as what text was read, and how much of it could not be."""
    kind = next(filter(None, map(read_as, changed.values())))
    lost = [
        f"{counted(count, 'value')} of the {what}"
        for what, column in changed.items()
        if (count := int((columns[what].notna() & column.isna()).sum()))
    ]
    return f"read as {kind}" + (f", but for {' and '.join(lost)}, taken as missing" if lost else "")
