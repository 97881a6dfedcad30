"""Where each column's bounds and categories come from: public, paid for, or read from the data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from oversafe._core.checks import check_choice, check_count
from oversafe._core.errors import InputError
from oversafe._core.text import MOST_NAMES, listed
from oversafe.data.bins import Bins
from oversafe.data.cells import FileFormat, as_number, cell_key, were_read_by_rows
from oversafe.data.column import Column
from oversafe.data.domain_warnings import warn_of_columns, warn_of_labels
from oversafe.data.encode import column_codes, column_values, domain_codes
from oversafe.data.labels import check_class_spellings, check_labels, declared_classes
from oversafe.data.schema import Schema, features_of
from oversafe.privacy.accountant import Accountant
from oversafe.privacy.estimates import category_keys, private_bounds, private_categories, private_quantiles
from oversafe.privacy.kinds import private_kinds, rows_for_kinds

Estimate = Literal["private", "data"]
Binning = Literal["uniform", "quantile"]

UNPAID = {
    "data": "the domains of these columns were read from the data without noise",
    "private estimate": "the private estimates of these columns' domains are not paid from this budget",
}
FILE_READ = (
    "how the CSV file is written was found in its rows; check the section [file] of the schema, and write "
    'domain = "public" there'
)
_PURE = (
    "pure differential privacy cannot find a set of values, so it was read from the data without noise; "
    "declare it, or give a delta: "
)
FRAME_READ = (
    "the table was read from a file without a schema, so that its rows decided how its cells are read; read it with "
    "read_table(..., schema=...)"
)
LABELS_READ = (
    "the set of labels was read from the data; declare it with classes=, or in the schema file with the label's "
    'categories and domain = "public"'
)
# Dates are sought between these, which whoever has others must declare.
_DATES = ("1900-01-01", "2100-01-01")
# A column's kind is voted on with less than its bounds need.
_KIND, _DOMAIN, _QUANTILE = 0.5, 1.0, 1.0


class TooFewRowsError(InputError):
    """There are too few rows to find out privately what columns hold.

    Parameters
    ----------
    reason : str
        How many there are, and how many are needed.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason}; give a schema, or take domains='data'")
        self.reason = reason

    def __reduce__(self) -> Any:
        return TooFewRowsError, (self.reason,)


@dataclass(frozen=True)
class Domains:
    """What a table's columns and labels can be, and how they are cut into cells.

    Parameters
    ----------
    schema : Schema
        The feature columns; each says whether its domain is public, a private estimate or the data's.
    label : Column
        The label, with its classes as categories.
    bins : mapping of str to Bins
        The cells of each feature column.
    caveats : tuple of str
        What was read from the data and not paid for; pass it to :meth:`Accountant.guarantee`.
    """

    schema: Schema
    label: Column
    bins: Mapping[str, Bins]
    caveats: tuple[str, ...] = ()

    @property
    def classes(self) -> NDArray[Any]:
        """The labels, in order."""
        categories = self.label.categories or ()
        kinds = {type(category) for category in categories}
        return np.array(categories, dtype=None if len(kinds) == 1 else object)

    def label_codes(self, labels: pd.Series) -> NDArray[np.int64]:
        """Return each label's position among the classes; what is none of them counts as the label's stand-in."""
        codes = column_codes(self.label, labels, strict=False)
        # A public choice, so that no error tells of it.
        return np.where(np.isnan(codes), label_stand_in(self.label), codes).astype(np.int64)

    def cells(self, table: pd.DataFrame) -> NDArray[np.int64]:
        """Return the cell of every value, one column per feature."""
        return np.column_stack([bins.assign(table[name]) for name, bins in self.bins.items()])


def drawn_values(
    bins: Mapping[str, Bins], cells: Iterable[NDArray[np.int64]], rng: np.random.Generator
) -> pd.DataFrame:
    """Return a table drawn from the cells of each column, uniform within each at the column's resolution."""
    return pd.DataFrame(
        {name: own.draw(drawn, rng) for (name, own), drawn in zip(bins.items(), cells, strict=True)}
    )


def resolve_domains(
    table: pd.DataFrame,
    labels: pd.Series,
    schema: Schema | None,
    accountant: Accountant,
    *,
    classes: Sequence[Any] | None = None,
    estimate: Estimate = "data",
    n_bins: int = 20,
    binning: Binning = "uniform",
    share: float = 0.1,
) -> Domains:
    """Return every column's domain and cells: what is public as it is, the rest as ``estimate`` says.

    Call it before anything else is charged to the accountant, and split what is left afterwards.

    Parameters
    ----------
    table : DataFrame
        The feature columns.
    labels : Series
        The class of each row.
    schema : Schema or None
        What is declared. Of a column marked "private estimate" its kind, dtype, decimals and whether values may be
        missing are taken as declared; of one marked "data", and without a schema, they are estimated too.
    accountant : Accountant
        Who pays.
    classes : sequence, optional
        The labels that exist, when they are public; also taken from the schema's label column.
    estimate : {"data", "private"}, default="data"
        Where the domains come from that are not public: read from the data, with a caveat, or estimated and paid
        for.
    n_bins : int, default=20
        How many intervals a number is cut into at most.
    binning : {"uniform", "quantile"}, default="uniform"
        Intervals of one width, or of about as many rows each, which is paid for.
    share : float, default=0.1
        Of the whole budget, for all that is estimated.
    """
    for name, value, allowed in (("estimate", estimate, Estimate), ("binning", binning, Binning)):
        check_choice(name, value, get_args(allowed))
    check_count("n_bins", n_bins)
    label = check_classes(labels, schema, classes)
    if label is not None and len(labels):
        places = column_codes(label, labels, strict=False)
        warn_of_labels(label, places, labels, stacklevel=4)
    unnamed = label is None and estimate == "private" and not accountant.pure
    declared, open_columns, unknown, cut, part = _plan(table, schema, estimate, binning, unnamed, share)
    if schema is not None and len(table):
        warn_of_columns(
            Schema(tuple(declared[n] for n in declared if n not in open_columns)), table, stacklevel=4
        )
    names = [str(name) for name in table.columns] if not declared else list(declared)
    each = accountant.delta / 10 / (len(open_columns) + 1)
    if (sets := len(open_columns) + unnamed) and not accountant.pure:
        # For all of them beforehand: which columns turn out to be sets is a noisy answer, and must not decide on delta.
        accountant.spend("sets of values", delta=each * sets)
    if part:
        accountant.afford(share, "estimating the domains")
    pay = _Payment(accountant, part, each)

    caveats = file_caveats(schema)
    if label is None:
        if not unnamed:
            caveats.append(LABELS_READ)
        label = _found_label(labels, pay if unnamed else None)
    columns = dict(declared)
    if unknown:
        columns |= private_kinds(table, unknown, accountant=accountant, share=_KIND * part * len(unknown))
    for name in open_columns:
        columns[name] = _estimated(columns[name], table[name], pay, declared=name not in unknown)
    final = tuple(columns[name] for name in names)
    for domain, caveat in UNPAID.items():
        unpaid = [c.name for c in final if c.domain == domain and c.name not in open_columns]
        if unpaid:
            # All of them: the manifest carries this sentence, and whoever mends the schema needs every name.
            caveats.append(f"{caveat}: {listed(unpaid, most=MOST_NAMES)}")
    if read := [name for name in open_columns if columns[name].domain == "data"]:
        caveats.append(_PURE + listed(read, most=MOST_NAMES))
    file = FileFormat() if schema is None else schema.file
    bins = {
        column.name: replace(_quantile_bins(column, table[column.name], n_bins, pay), file=file)
        if column.name in cut
        else Bins(column, n_bins, file=file)
        for column in final
    }
    return Domains(Schema(final), label, bins, tuple(caveats))


class _Plan(NamedTuple):
    """What is declared, what is to be estimated of the others, and the share that each part of it may cost."""

    declared: dict[str, Column]
    open_columns: list[str]
    unknown: list[str]
    cut: list[str]
    part: float


def _plan(
    table: pd.DataFrame,
    schema: Schema | None,
    estimate: Estimate,
    binning: Binning,
    unnamed: bool,
    share: float,
) -> _Plan:
    private = estimate == "private"
    declared = {} if schema is None and private else {c.name: c for c in features_of(table, schema)}
    names = [str(name) for name in table.columns] if not declared else list(declared)
    open_columns = (
        [n for n in names if n not in declared or declared[n].domain != "public"] if private else []
    )
    unknown = [n for n in open_columns if n not in declared or declared[n].domain == "data"]
    cut = [n for n in names if n in unknown or declared[n].is_number] if binning == "quantile" else []
    weights = _KIND * len(unknown) + _DOMAIN * (len(open_columns) + unnamed) + _QUANTILE * len(cut)
    return _Plan(declared, open_columns, unknown, cut, share / weights if weights else 0.0)


def check_classes(
    labels: pd.Series | None, schema: Schema | None, classes: Sequence[Any] | None
) -> Column | None:
    """Return the label's column if its classes are public; refuse, before anything is paid, what no label can be.

    Labels are None where they are texts of a file or a database.
    """
    label = _declared_label(schema, classes)
    if label is None:
        return None
    if not label.categories:
        raise InputError("classes = [] was given; give the labels that exist in a list")
    if labels is not None:
        check_class_spellings(label.categories, labels)
    return label


def check_rows(
    table: pd.DataFrame,
    schema: Schema | None,
    accountant: Accountant,
    classes: Sequence[Any] | None,
    estimate: Estimate,
    binning: Binning,
    share: float = 0.1,
) -> None:
    """Refuse, before anything is paid, to estimate what columns are from so few rows that noise would decide it."""
    if estimate != "private" or not accountant.n_rows_public:
        return
    unnamed = _declared_label(schema, classes) is None and not accountant.pure
    plan = _plan(table, schema, estimate, binning, unnamed, share)
    if not plan.unknown:
        return
    needed = rows_for_kinds(accountant, _KIND * plan.part * len(plan.unknown), len(plan.unknown))
    if len(table) < needed:
        raise TooFewRowsError(
            f"{len(table):,} rows at epsilon = {accountant.epsilon:g} are too few to find out privately what "
            f"{len(plan.unknown)} columns hold ({needed:,} are needed)"
        )


def unpaid_domains(
    schema: Schema | None, classes: Sequence[Any] | None, estimate: Estimate, pure: bool
) -> list[str]:
    """Return, before any look at the data, what :func:`resolve_domains` may read without paying for it."""
    caveats = file_caveats(schema)
    if estimate != "data" and not pure:
        return caveats
    open_columns = None if schema is None else [c for c in schema.features if c.domain != "public"]
    if estimate == "data":
        if open_columns is None or open_columns:
            named = "all columns" if open_columns is None else listed([c.name for c in open_columns])
            caveats.append(f"{UNPAID['data']}: {named}; declare them public in a schema")
    # A column whose kind is to be found may turn out to be a set of values.
    elif open_columns is None or any(c.domain == "data" or c.is_category for c in open_columns):
        caveats.append(
            _PURE + listed(["all columns"] if open_columns is None else [c.name for c in open_columns])
        )
    if _declared_label(schema, classes) is None:
        caveats.append(LABELS_READ)
    return caveats


def file_caveats(schema: Schema | None) -> list[str]:
    """Return what is said of a schema by which texts are read as the rows themselves suggested."""
    return [FILE_READ] if schema is not None and schema.file.domain != "public" else []


def frame_caveats(*tables: Any) -> list[str]:
    """Return what is said of tables whose rows decided together how their cells were read from a file."""
    return [FRAME_READ] if were_read_by_rows(*tables) else []


@dataclass(frozen=True)
class _Payment:
    """Who pays for a column's estimate, with which share and, for a set of values, which delta that is paid already."""

    accountant: Accountant
    share: float
    delta: float


def _declared_label(schema: Schema | None, classes: Sequence[Any] | None) -> Column | None:
    """Return the label's column if its classes are public.

    The categories of y do not count: whoever made them may have found them in the data, and most did.
    """
    stand_in = None
    if classes is None and schema is not None and schema.label is not None:
        entry = schema[schema.label]
        classes = entry.categories if entry.domain == "public" else None
        stand_in = entry.stand_in
    return None if classes is None else _label_column(classes, stand_in)


def _label_column(classes: Sequence[Any], stand_in: Any = None) -> Column:
    declared = tuple(declared_classes(classes, 0))
    return Column("label", "categorical", "object", True, categories=declared, fallback=stand_in)


def label_stand_in(label: Column) -> int:
    """Return the place of the class that a label counts as which is none of the classes."""
    return label.stand_in_place


def _found_label(labels: pd.Series, pay: _Payment | None) -> Column:
    """Return the label's column with the classes that the data have, found privately if somebody pays."""
    if pay is None and isinstance(labels.dtype, pd.CategoricalDtype):
        return _label_column(labels.dtype.categories.tolist())
    if pay is None:
        check_labels(labels)
        return _label_column(pd.Series(labels.unique()).sort_values().tolist())
    found = private_categories(
        labels,
        accountant=pay.accountant,
        share=_DOMAIN * pay.share,
        delta=pay.delta,
        delta_paid=True,
        what="the set of labels",
    )
    if len(found) < 2:
        raise InputError(
            f"{len(found)} of the labels can be named with this budget, and 2 are needed; declare them with classes="
        )
    return _label_column(_as_numbers(found))


def _as_numbers(keys: list[str]) -> list[Any]:
    """Return values that were written down as text as the numbers that they are, if all are."""
    if not all(cell_key(as_number(key)) == key for key in keys):
        return keys
    numbers = [as_number(key) for key in keys]
    return sorted(int(number) if number.is_integer() else number for number in numbers)


def _estimated(column: Column, values: pd.Series, pay: _Payment, *, declared: bool) -> Column:
    """Return a column with bounds or categories that were paid for."""
    if column.is_category:
        return _with_categories(column, values, pay, declared=declared)
    if column.kind == "datetime":
        # Two centuries have more nanoseconds than a float can tell apart.
        resolution = "us" if column.resolution in (None, "ns") else column.resolution
        column = replace(column, bounds=_DATES, resolution=resolution, domain="private estimate")
        low, high = domain_codes(column)
        within = (low, high)
    else:
        column, within = replace(column, bounds=None, domain="private estimate"), None
    bounds = private_bounds(
        column_codes(column, values, strict=False),
        accountant=pay.accountant,
        share=_DOMAIN * pay.share,
        whole=column.kind != "continuous",
        within=within,
        what=f"bounds of {column.name!r}",
    )
    if column.kind == "datetime":
        stamps = column_values(replace(column, missing=False), np.array(bounds))
        return replace(column, bounds=(stamps.iloc[0], stamps.iloc[1]))
    return replace(column, bounds=bounds)


def _with_categories(column: Column, values: pd.Series, pay: _Payment, *, declared: bool) -> Column:
    if column.kind == "boolean":
        return replace(column, categories=column.categories or (False, True), domain="private estimate")
    # Rows whose value is too rare to be named are missing, unless that was ruled out.
    missing = column.missing if declared else True
    if pay.accountant.pure:
        keys = sorted(set(category_keys(values).dropna()))
        return replace(column, kind="categorical", missing=missing, categories=tuple(keys), domain="data")
    found = private_categories(
        values,
        accountant=pay.accountant,
        share=_DOMAIN * pay.share,
        delta=pay.delta,
        delta_paid=True,
        what=f"categories of {column.name!r}",
    )
    known = {cell_key(category): category for category in column.categories or ()}
    ordered = [category for key, category in known.items() if key in found]
    categories = tuple(ordered + _as_type(column, [key for key in found if key not in known]))
    kind = column.kind if len(ordered) == len(categories) else "categorical"
    return replace(column, kind=kind, missing=missing, categories=categories, domain="private estimate")


def _as_type(column: Column, keys: list[str]) -> list[Any]:
    """Return values that were written down as text as the column's dtype has them."""
    return _as_numbers(keys) if types.is_numeric_dtype(types.pandas_dtype(column.dtype)) else list(keys)


def _quantile_bins(column: Column, values: pd.Series, n_bins: int, pay: _Payment) -> Bins:
    """Return the cells of a number with about as many rows each; other columns' as they are."""
    if not column.is_number or column.bounds is None:
        return Bins(column, n_bins)
    low, high = domain_codes(column)
    if column.kind != "continuous":
        low, high = low - 0.5, high + 0.5
        if high - low <= n_bins:
            return Bins(column, n_bins)
    cuts = private_quantiles(
        column_codes(column, values, strict=False),
        (np.arange(1, n_bins) / n_bins).tolist(),
        bounds=(low, high),
        accountant=pay.accountant,
        share=_QUANTILE * pay.share,
        what=f"quantiles of {column.name!r}",
    )
    return Bins(column, n_bins, tuple(cuts.tolist()))
