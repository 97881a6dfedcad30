"""A protected release of a table: one way for Python, the command line and the local page."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from oversafe._core.errors import InputError, when_stopped
from oversafe.data import MisfitWarning, Schema
from oversafe.data.schema import check_given_schema
from oversafe.privacy import Balance, DatasetLedger, Guarantee, Manifest, write_release
from oversafe.privacy.persons import check_persons
from oversafe.protect.registry import make_protector, promises
from oversafe.releasing.notes import Notes, weak_promise
from oversafe.releasing.reading import Material
from oversafe.releasing.tables import left_out, released_columns
from oversafe.releasing.writing import check_fits, check_release, check_style, shuffled, with_labels

# A table that is read where it lies gets a larger release only if its number of rows is given.
MOST_ROWS = 5_000_000


@dataclass(frozen=True)
class Release:
    """A protected release of a table.

    Parameters
    ----------
    table : DataFrame
        The released rows.
    guarantee : Guarantee
        What they promise.
    settings : mapping
        How they were made, as the manifest says it.
    schema : Schema or None
        What the columns were declared to be, without those that were left out.
    path : Path or None
        The file that was written.
    manifest : Manifest or None
        What stands beside the file, signed.
    ledger_entry : str or None
        The entry that paid for it.
    budget : Balance or None
        What is left of the data set's budget.
    shuffled : bool
        Whether the rows were put in random order, because they were in that of the table.
    notes : tuple of str
        What was told about the table. It is for whoever holds the table, and no part of the release.
    """

    table: pd.DataFrame = field(repr=False)
    guarantee: Guarantee
    settings: Mapping[str, str] = field(repr=False)
    schema: Schema | None = field(default=None, repr=False)
    path: Path | None = None
    manifest: Manifest | None = field(default=None, repr=False)
    ledger_entry: str | None = None
    budget: Balance | None = field(default=None, repr=False)
    shuffled: bool = False
    notes: tuple[str, ...] = ()


def release(
    table: pd.DataFrame | str | os.PathLike[str],
    label: str | None = None,
    *,
    method: str = "mixture",
    epsilon: float | None = None,
    schema: Schema | str | os.PathLike[str] | None = None,
    drop: Sequence[str] = (),
    rows_per_person: int | None = None,
    balance: bool = False,
    rows: int | None = None,
    quasi_identifiers: Sequence[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    drop_unlabelled: bool = False,
    strict: bool = False,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    ledger: DatasetLedger | None = None,
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    out_separator: str | None = None,
    out_decimal: str | None = None,
    random_state: int | None = None,
    on_note: Callable[[str], Any] | None = None,
    on_progress: Callable[[str, float], None] | None = None,
) -> Release:
    """Return a protected release of a table; with ``out`` it is written, with a signed manifest beside it.

    Whatever can be refused is refused before a budget is charged, and the budget is charged before any noise is drawn.

    Parameters
    ----------
    table : DataFrame, str or path
        The table, or a CSV or Parquet file, a folder of Parquet files, or a database address with its table
        (``duckdb://file.ddb#table``). A folder or a database is read where it lies, if the method can do so and the
        schema declares its columns.
    label : str
        The column that holds the class.
    method : str, default="mixture"
        A name that ``oversafe protect --method`` knows, one of a plugin among them.
    epsilon : float, optional
        The privacy budget of methods that have one; when not given, the method's own default.
    schema : Schema or path, optional
        What the columns are. Only public ranges and categories give a proven guarantee, unless the method estimates
        them (``settings={"domains": "private"}``).
    drop : sequence of str
        Columns to leave out.
    rows_per_person : int, optional
        Use at most so many rows of each person; with a person column in the schema.
    balance : bool, default=False
        Balance the classes.
    rows : int, optional
        Of a synthetic release; as many as the table has when not given.
    quasi_identifiers : sequence of str, optional
        Columns that outsiders may know, for methods that ask.
    settings : mapping, optional
        Parameters of the method, by name.
    drop_unlabelled : bool, default=False
        Leave out rows without a label.
    strict : bool, default=False
        Refuse a table with a cell that does not fit the schema; the guarantee is then nominal.
    separator, decimal, encoding : str, optional
        How a CSV file is written; see :func:`oversafe.data.read_table`.
    ledger : DatasetLedger, optional
        The budget to charge, from :meth:`Ledger.for_dataset <oversafe.privacy.Ledger.for_dataset>`.
    out : path, optional
        The file to write: ``.csv``, ``.tsv``, ``.txt`` (also ``.gz``) or ``.parquet``. Nothing is written when not
        given.
    overwrite : bool, default=False
        Replace a file that exists already.
    out_separator, out_decimal : str, optional
        How a CSV release is written; see :func:`oversafe.data.write_table`.
    random_state : int, optional
        Makes the release repeatable, for experiments; the guarantee is then nominal.
    on_note : callable, optional
        Called with each sentence about the table, before anything is charged. When not given, each is a warning.
        The sentences are for whoever holds the table.
    on_progress : callable, optional
        Called with what is being done and the share that is done.

    Raises
    ------
    InputError
        If the table, a setting or the file cannot be used. Once the table is read by a public schema, no error depends
        on its rows, unless ``strict`` asks for that.

    Examples
    --------
    >>> import oversafe
    >>> from oversafe.data import load_dataset
    >>> people = load_dataset("breast_cancer").frame
    >>> made = oversafe.release(people, "diagnosis", method="histograms", epsilon=1.0)
    >>> made.guarantee.status, list(made.table.columns) == list(people.columns)
    ('nominal', True)
    """
    notes = Notes(on_note)
    target = None if out is None else Path(out)
    if label is None:
        raise InputError("--label is missing; name the column that holds the class")
    # Everything that the arguments alone show is told before a table is read or a budget charged.
    if rows is not None and rows < 1:
        raise _for_synthetic_tables(rows)
    if target is not None:
        read = {"table": _path(table), "schema": _path(schema)}
        check_release(target, overwrite=overwrite, **read)
        check_style(target, out_separator, out_decimal)
    if strict and schema is None:
        raise InputError("--strict was given without --schema; it holds the cells against what is declared")
    given = Schema.from_toml(Path(schema)) if isinstance(schema, str | os.PathLike) else schema
    check_given_schema(given)
    gone, declared = left_out(drop, label, given, persons=promises(method))
    if ledger is not None:
        # A mistake in the data set's name is told before the table is read.
        ledger.remaining()
    protector = make_protector(
        method,
        epsilon=epsilon,
        schema=declared,
        rows_per_person=rows_per_person,
        balance=balance,
        random_state=random_state,
        quasi_identifiers=None if quasi_identifiers is None else list(quasi_identifiers),
        settings=settings,
        ledger=ledger,
    )
    synthetic = hasattr(protector, "sample")
    if rows is not None and not synthetic:
        raise _for_synthetic_tables(rows)
    parameters = protector.get_params()
    material = Material(
        table if (path := _path(table)) is None else path,
        label,
        declared,
        drop=gone,
        drop_unlabelled=drop_unlabelled,
        strict=strict,
        estimated=parameters.get("domains") == "private",
        written={"separator": separator, "decimal": decimal, "encoding": encoding},
    )
    large = material.in_place(protector)
    if declared is not None:
        declared.check_releasable()
    frame = material.read(notes) if large is None else material.opened(large, notes)
    check_fits(rows, len(frame.columns))
    notes.say(*weak_promise(parameters.get("epsilon"), parameters.get("delta"), parameters.get("relation")))
    with when_stopped(_charged_since(ledger)), notes.of_warnings():
        # Said above, of all rows.
        warnings.filterwarnings("ignore", message="column ", category=MisfitWarning)
        protector.on_progress = on_progress
        protector.unlabelled_left_out, protector.odd_cells_refused = drop_unlabelled, strict
        with when_stopped(lambda: "nothing was written"):
            if large is not None:
                X, y = _sample_in_place(protector.fit_source(frame, label), rows, notes)
            elif rows is not None:
                X, y = protector.fit(frame.drop(columns=label), frame[label]).sample(rows)
            else:
                X, y = protector.fit_resample(frame.drop(columns=label), frame[label])
        guarantee = protector.guarantee_
        _check_unit(guarantee, given, method)
        entry = None if ledger is None else _ledger_entry(protector, ledger, method)
        made = with_labels(X, label, y, released_columns(frame, declared).index(label))
        if not synthetic:
            made = shuffled(made, random_state)
        stated = _stated(method, parameters, declared, drop_unlabelled=drop_unlabelled, strict=strict)
        manifest = None
        if target is not None:
            manifest = write_release(
                made,
                target,
                guarantee,
                stated,
                entry,
                separator=out_separator,
                decimal=out_decimal,
                ledger=None if ledger is None else ledger.ledger,
            )
    return Release(
        made,
        guarantee,
        stated,
        declared,
        target,
        manifest,
        entry,
        None if ledger is None else ledger.remaining(),
        not synthetic,
        tuple(notes.said),
    )


def _path(given: Any) -> str | None:
    """Return where a file is, None of what is no file."""
    return os.fspath(given) if isinstance(given, str | os.PathLike) else None


def _for_synthetic_tables(rows: int) -> InputError:
    return InputError(f"--rows {rows} was given; it is at least 1, and for synthetic tables only")


def _sample_in_place(fitted: Any, rows: int | None, notes: Notes) -> tuple[pd.DataFrame, Any]:
    """Return a sample of what was learned where it lies, of no more rows than memory holds."""
    if rows is None and int(fitted.class_counts_.sum()) > MOST_ROWS:
        notes.say(f"the release has {MOST_ROWS:,} rows; say with --rows if it is to have more")
        rows = MOST_ROWS
    X, y = fitted.sample(rows)
    return X, y


def _charged_since(account: DatasetLedger | None) -> Callable[[], str]:
    """Return what tells which charges a data set's budget has had from now on."""
    if account is None:
        return lambda: ""
    before = len(account.ledger.history(account.name))

    def told() -> str:
        since = account.ledger.history(account.name)[before:]
        charges = [f"epsilon = {entry.epsilon:g}" for entry in since if entry.kind == "charge"]
        return (
            f"{' and '.join(charges)} was charged already, and stands" if charges else "nothing was charged"
        )

    return told


def _check_unit(guarantee: Guarantee, given: Schema | None, method: str) -> None:
    """Refuse a promise for records by a plugin, which tells its promise only now, where there are persons."""
    promised = guarantee.status != "none" and not guarantee.basis.startswith("none")
    if promised and guarantee.unit == "record" and given is not None and given.person is not None:
        check_persons(f"the method {method!r}", given, None, takes_persons=False)


def _ledger_entry(protector: Any, account: DatasetLedger, method: str) -> str | None:
    """Return the entry that paid for a fit; a method that takes no ledger is recorded now."""
    if "ledger" in protector.get_params():
        entry: str | None = protector.ledger_entry_
        return entry
    if protector.guarantee_.status != "none":
        raise InputError(f"the method {method!r} cannot be charged to a ledger; leave --ledger out")
    return account.charge(protector.guarantee_, what=type(protector).__name__).id


def _stated(
    method: str, parameters: Mapping[str, Any], schema: Schema | None, **asked: bool
) -> dict[str, str]:
    """Return how a release was made, as its manifest states it."""
    stated = {"method": method}
    stated |= {name: str(value) for name, value in parameters.items() if name not in ("schema", "ledger")}
    stated |= {name: "True" for name, given in asked.items() if given}
    declared = schema is not None and all(column.domain == "public" for column in schema.features)
    if declared and stated.get("domains") == "data":
        # The setting speaks of columns that are not declared public, and there are none.
        stated["domains"] = "public"
    return stated
