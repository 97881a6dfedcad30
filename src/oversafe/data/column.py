"""What one column of a table is: its kind, its domain and where that comes from."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from types import NoneType
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from oversafe._core.errors import InputError
from oversafe._core.text import shorten
from oversafe.data.cells import as_date
from oversafe.data.cells.grammar import why_no_number

Kind = Literal["continuous", "integer", "categorical", "ordinal", "boolean", "datetime", "identifier", "text"]
Domain = Literal["public", "private estimate", "data"]

NUMBER_KINDS: frozenset[str] = frozenset({"continuous", "integer", "datetime"})
CATEGORY_KINDS: frozenset[str] = frozenset({"categorical", "ordinal", "boolean"})
NAMING_KINDS: frozenset[str] = frozenset({"identifier", "text"})
RESOLUTIONS = ("D", "h", "min", "s", "ms", "us", "ns")

_NULLABLE = {f"{u}int{b}": f"{u.upper()}Int{b}" for u in ("", "u") for b in (8, 16, 32, 64)}
_NULLABLE["bool"] = "boolean"
_USUAL_DTYPE = {"continuous": "float64", "integer": "int64", "datetime": "datetime64[us]"}
_CATEGORY_TYPES = (str, bool, int, float, np.generic, date, datetime)
_FACTS: dict[str, tuple[str, tuple[type, ...]]] = {
    "name": ("text", (str,)),
    "kind": ("text", (str,)),
    "dtype": ("text", (str,)),
    "missing": ("true or false", (bool,)),
    "bounds": ("a minimum and a maximum", (tuple, NoneType)),
    "decimals": ("a whole number", (int, NoneType)),
    "resolution": ("text", (str, NoneType)),
    "categories": ("a list", (tuple, NoneType)),
    "domain": ("text", (str,)),
    "source": ("text", (str,)),
    "fallback": ("a value that the column may have", (*_CATEGORY_TYPES, NoneType)),
}


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Parameters
    ----------
    name : str
        The column's name.
    kind : str
        "continuous", "integer", "categorical", "ordinal", "boolean", "datetime", "identifier" or "text".
    dtype : str
        The pandas dtype that decoding restores; one that cannot hold the kind is replaced by the usual one.
    missing : bool
        Whether values may be missing.
    bounds : tuple, optional
        Smallest and largest value of a number or a date.
    decimals : int, optional
        Decimal places of a continuous column; None is full precision.
    resolution : str, optional
        The finest unit of a datetime column: "D", "h", "min", "s", "ms", "us" or "ns".
    categories : tuple, optional
        The values of a categorical, ordinal or boolean column, in order.
    domain : str
        Where all of this comes from: "public", "private estimate" or "data".
    source : str
        For a public domain, who published it.
    fallback : optional
        What a cell counts as that cannot be read, or is missing where no value may be: one of the categories, or a
        number or a date between the bounds. The first category, or the minimum, when not given.
    """

    name: str
    kind: Kind
    dtype: str
    missing: bool = False
    bounds: tuple[Any, Any] | None = None
    decimals: int | None = None
    resolution: str | None = None
    categories: tuple[Any, ...] | None = None
    domain: Domain = "data"
    source: str = ""
    fallback: Any = None

    def __post_init__(self) -> None:
        for fact in ("bounds", "categories"):
            if isinstance(given := getattr(self, fact), list | np.ndarray | pd.Index | pd.Series):
                object.__setattr__(self, fact, tuple(given))
        for fact, (expected, allowed) in _FACTS.items():
            value = getattr(self, fact)
            # In Python True is a whole number; in a schema it is not.
            if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
                shown = shorten(repr(value), 60)
                raise InputError(f"column {self.name!r} has {fact} = {shown}; it should be {expected}")
        for fact, choices in (("kind", get_args(Kind)), ("domain", get_args(Domain))):
            if getattr(self, fact) not in choices:
                raise InputError(
                    f"column {self.name!r} has the {fact} {getattr(self, fact)!r}; use one of {', '.join(choices)}"
                )
        if self.domain == "public" and not self.source.strip():
            raise InputError(
                f"column {self.name!r} declares a public domain without a source; "
                "say in `source` who published its bounds or categories"
            )
        if self.resolution is not None and self.resolution not in RESOLUTIONS:
            raise InputError(
                f"column {self.name!r} has the resolution {self.resolution!r}; use one of {', '.join(RESOLUTIONS)}"
            )
        if self.decimals is not None and not 0 <= self.decimals <= 15:
            raise InputError(f"column {self.name!r} has decimals = {self.decimals}; it lies between 0 and 15")
        object.__setattr__(self, "dtype", self._fitting_dtype())
        if self.bounds is not None:
            object.__setattr__(self, "bounds", self._checked_bounds())
        if self.categories is not None:
            self._check_categories()
        if self.fallback is not None:
            object.__setattr__(self, "fallback", self._checked_fallback())

    def _fitting_dtype(self) -> str:
        """The dtype if it can hold the kind, else the usual one: a number may have been read as text."""
        # pandas cannot read the name of a sparse dtype back; its dense form is meant.
        name = re.sub(r"^Sparse\[(\w+),.*\]$", r"\1", self.dtype)
        try:
            dtype = types.pandas_dtype(name)
        except Exception as error:
            # Whatever pandas raises: the name comes from a file.
            raise InputError(
                f"column {self.name!r} has the dtype {self.dtype!r}, which pandas does not know; float64 is one"
            ) from error
        number = types.is_any_real_numeric_dtype(dtype)
        fits = {
            "continuous": number and types.is_float_dtype(dtype),
            "integer": number,
            "datetime": re.fullmatch(r"datetime64\[(s|ms|us|ns)(, .+)?\]", name) is not None,
        }.get(self.kind, True)
        if not fits:
            name = _USUAL_DTYPE[self.kind]
        # numpy's integers and booleans cannot be missing; pandas has types beside them that can.
        return _NULLABLE.get(name, name) if self.missing else name

    def _checked_bounds(self) -> tuple[Any, Any]:
        if self.kind not in NUMBER_KINDS:
            raise InputError(f"column {self.name!r} is {self.kind} and has bounds; only numbers and dates do")
        if len(self.bounds or ()) != 2:
            raise InputError(f"column {self.name!r} has bounds {self.bounds!r}; give a minimum and a maximum")
        low, high = self.bounds  # type: ignore[misc]
        if self.kind == "datetime":
            low, high = self._as_stamp(low), self._as_stamp(high)
        elif any(isinstance(b, bool) or not isinstance(b, int | float | np.number) for b in (low, high)):
            comma = any(isinstance(b, str) and why_no_number(b) == "has a decimal comma" for b in (low, high))
            raise InputError(
                f"column {self.name!r} has bounds {low!r} and {high!r}; give two numbers"
                + (", with a decimal point in place of the comma and without quotes" if comma else "")
            )
        elif not (abs(low) <= sys.float_info.max and abs(high) <= sys.float_info.max):
            raise InputError(f"column {self.name!r} has bounds that are not finite; give two finite numbers")
        elif self.kind == "integer":
            if low != int(low) or high != int(high) or max(abs(int(low)), abs(int(high))) >= 2**63:
                raise InputError(
                    f"column {self.name!r} is integer; give whole numbers of 64 bits as its bounds"
                )
            low, high = int(low), int(high)
        else:
            low, high = float(low), float(high)
        if low > high:
            raise InputError(
                f"column {self.name!r} has a minimum of {low} above its maximum of {high}; swap them"
            )
        return low, high

    def _as_stamp(self, bound: Any) -> pd.Timestamp:
        """A bound in the column's own time zone, or without one."""
        stamp = as_date(bound)
        if stamp is pd.NaT:
            raise InputError(f"column {self.name!r} has the bound {bound!r}; write dates as 2024-12-31")
        # As every date of a column: the years before the first one count as its beginning.
        stamp = pd.Timestamp(1, 1, 1) if stamp.year < 1 else stamp
        dtype = types.pandas_dtype(self.dtype)
        try:
            pd.Series([stamp.tz_localize(None)]).astype(re.sub(r", .*\]", "]", self.dtype))
        except (ValueError, OverflowError):
            raise InputError(
                f"column {self.name!r} has the bound {bound!r}, which its dtype {self.dtype} cannot hold; give another"
            ) from None
        if isinstance(dtype, pd.DatetimeTZDtype):
            return stamp.tz_localize(dtype.tz) if stamp.tz is None else stamp.tz_convert(dtype.tz)
        return stamp if stamp.tz is None else stamp.tz_convert("UTC").tz_localize(None)

    def _check_categories(self) -> None:
        if self.kind in NUMBER_KINDS:
            raise InputError(
                f"column {self.name!r} is {self.kind} and lists categories; "
                "declare it categorical, or give a minimum and a maximum"
            )
        for category in self.categories or ():
            if not isinstance(category, _CATEGORY_TYPES) or category != category:
                raise InputError(
                    f"column {self.name!r} lists the category {category!r}; categories are text, numbers or dates"
                )
        if len(set(self.categories or ())) != len(self.categories or ()):
            raise InputError(f"column {self.name!r} lists a category twice; list each once")
        try:
            stored = pd.Series(list(self.categories or ()), dtype=object).astype(
                types.pandas_dtype(self.dtype)
            )
            told_apart = stored.nunique() == len(stored)
        except (TypeError, ValueError, OverflowError):
            told_apart = False
        if not told_apart:
            # Numbers cannot hold "other", nor tell "1.10" from "1.1".
            object.__setattr__(self, "dtype", "category")

    def _checked_fallback(self) -> Any:
        value, wanted = self.fallback, "one of its categories"
        if self.names_people:
            known, wanted = False, "none: a cell that names nobody is left out"
        elif self.is_category:
            known = any(type(own) is type(value) and own == value for own in self.categories or ())
        else:
            wanted = "a value between its minimum and maximum"
            if self.kind == "datetime":
                stamp = as_date(value)
                value = None if stamp is pd.NaT else self._as_stamp(stamp)
            elif isinstance(value, bool) or not isinstance(value, int | float | np.number):
                value = None
            elif self.kind == "integer":
                wanted, value = (
                    "a whole number between its minimum and maximum",
                    value if value == int(value) else None,
                )
            known = (
                value is not None and self.bounds is not None and self.bounds[0] <= value <= self.bounds[1]
            )
        if not known:
            raise InputError(f"column {self.name!r} has the fallback {self.fallback!r}; give {wanted}")
        return value

    @property
    def stand_in(self) -> Any:
        """What a cell counts as that cannot be read, where values may not be missing."""
        if self.fallback is not None:
            return self.fallback
        if self.is_category:
            return self.categories[0] if self.categories else None
        return None if self.bounds is None else self.bounds[0]

    @property
    def stand_in_place(self) -> int:
        """The place of a category that stands in for others."""
        known, wanted = self.categories or (), self.stand_in
        return next((i for i, own in enumerate(known) if type(own) is type(wanted) and own == wanted), 0)

    @property
    def is_number(self) -> bool:
        """Whether the column is a number or a date."""
        return self.kind in NUMBER_KINDS

    @property
    def is_category(self) -> bool:
        """Whether the column takes one of a set of values."""
        return self.kind in CATEGORY_KINDS

    @property
    def names_people(self) -> bool:
        """Whether the column holds identifiers or free text, which no release should carry."""
        return self.kind in NAMING_KINDS

    @property
    def naming(self) -> str:
        """What the column holds, if it names people: "identifiers" or "free text"."""
        return "free text" if self.kind == "text" else "identifiers"


def as_series(values: NDArray[Any]) -> pd.Series:
    """Return an array as a Series; one that pandas cannot hold as text is kept as it is."""
    try:
        return pd.Series(values)
    except (UnicodeEncodeError, OverflowError):
        # Half of a character, such as "\ud800", is no text for pandas; an error would tell of the record.
        return pd.Series(values, dtype=object)


def as_frame(values: NDArray[Any], names: Iterable[str], *, infer: bool = False) -> pd.DataFrame:
    """Return an array as a DataFrame, as :func:`as_series` does; with ``infer`` objects get the dtype they fit."""
    names = list(names)
    try:
        frame = pd.DataFrame(values, columns=names)
        return frame.infer_objects() if infer else frame
    except (UnicodeEncodeError, OverflowError):
        if len(names) == 1:
            return pd.DataFrame(values, columns=names, dtype=object)
        columns = [as_frame(values[:, [i]], [name], infer=infer) for i, name in enumerate(names)]
        return pd.concat(columns, axis=1)


def select_columns(table: pd.DataFrame, names: Iterable[Any]) -> pd.DataFrame:
    """Return the columns of these names, all of which the table has once.

    By position and as objects: pandas takes a list of True and False for a choice of rows, and None beside numbers for
    another number.
    """
    wanted = pd.Index(list(names), dtype=object, tupleize_cols=False)
    return table.iloc[:, table.columns.get_indexer(wanted)]


def as_cells(values: Any) -> Any:
    """Return a list of rows or labels as an array of objects; anything else as it is.

    numpy finds one dtype for a whole list: one text makes texts of all numbers, and a list for a cell is an error.
    """
    if not isinstance(values, list | tuple):
        return values
    if not values or not all(types.is_list_like(row) for row in values):
        return np.fromiter(values, dtype=object, count=len(values))
    widths = [len(row) for row in values]
    if min(widths) < max(widths):
        raise InputError(
            f"rows of {min(widths)} to {max(widths)} cells were given; give as many in each, None for those missing"
        )
    cells = (cell for row in values for cell in row)
    return np.fromiter(cells, dtype=object, count=sum(widths)).reshape(len(values), widths[0])
