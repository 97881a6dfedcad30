"""``oversafe protect``: a release with a manifest of its guarantee."""

from __future__ import annotations

import json
import os
import shlex
import warnings
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oversafe._core.errors import InputError
from oversafe._core.text import MOST_NAMES, counted, listed, shorten, showable, without_password
from oversafe.cli.budget import LedgerKeyOption, RecordUnprovenOption, echo_composition, ledger_notes
from oversafe.cli.consoles import console, in_options, note, progress, when_stopped
from oversafe.cli.options import (
    TABLE,
    DeclaredDecimalOption,
    DropOption,
    EncodingOption,
    JsonOption,
    LabelOption,
    OverwriteOption,
    QuasiIdentifierOption,
    SeparatorOption,
    check_seed,
    number_of,
)
from oversafe.cli.outputs import check_release, check_style
from oversafe.releasing.tables import (
    DropUnlabelledOption,
    given_label,
    labelled,
    left_out,
    places,
    read_by_schema,
    released_columns,
)

if TYPE_CHECKING:
    import pandas as pd

    from oversafe.data import Schema
    from oversafe.privacy import DatasetLedger, Guarantee
    from oversafe.protect import Protector

# A table that is read where it lies gets a larger release only if its number of rows is given.
_MOST_ROWS = 5_000_000


def _complete_method(incomplete: str) -> list[str]:
    from oversafe.protect.registry import method_names

    return [name for name in method_names() if name.startswith(incomplete)]


def protect(
    table: Annotated[str | None, typer.Argument(help=TABLE)] = None,
    label: LabelOption = None,
    out: Annotated[
        Path | None,
        typer.Option(help="The release: a .csv or .parquet file; its manifest stands beside it."),
    ] = None,
    overwrite: OverwriteOption = False,
    out_separator: Annotated[
        str | None, typer.Option(help='Of a CSV release; a comma when not given, ";" for a German Excel.')
    ] = None,
    out_decimal: Annotated[
        str | None, typer.Option(help='Decimal sign of a CSV release; a point when not given, or ",".')
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="For example mixture, privbayes, private-smote or k-anonymizer.",
            autocompletion=_complete_method,
        ),
    ] = "mixture",
    explain: Annotated[
        bool, typer.Option("--explain", help="Say what the method does and does not promise, and stop.")
    ] = False,
    epsilon: Annotated[
        str | None,
        typer.Option(
            metavar="<float>",
            help="Privacy budget of the methods that have one; when not given 1.0, of smote-dp 50.",
        ),
    ] = None,
    balance: Annotated[bool, typer.Option("--balance", help="As many rows of each class.")] = False,
    quasi_identifier: QuasiIdentifierOption = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting of the method, as NAME=VALUE; may be given again."),
    ] = None,
    schema: Annotated[
        Path | None, typer.Option(help="What the columns are; see oversafe schema init.")
    ] = None,
    drop: DropOption = None,
    rows_per_person: Annotated[
        int | None,
        typer.Option(help="Use at most so many rows of each person; with a person column in the schema."),
    ] = None,
    rows: Annotated[
        int | None, typer.Option(help="Of a synthetic release; as many as the table has when not given.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Repeatable, for experiments only.")] = None,
    ledger: Annotated[
        str | None, typer.Option(help="Charge the release to this ledger; see oversafe budget create.")
    ] = None,
    dataset: Annotated[str | None, typer.Option(help="Whose budget in the ledger it is charged to.")] = None,
    ledger_key: LedgerKeyOption = None,
    record_unproven: RecordUnprovenOption = False,
    json_output: JsonOption = False,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Refuse a table with a cell that does not fit its schema; the guarantee is then nominal.",
        ),
    ] = False,
    drop_unlabelled: DropUnlabelledOption = False,
    separator: SeparatorOption = None,
    decimal: DeclaredDecimalOption = None,
    encoding: EncodingOption = None,
) -> None:
    """Write a protected release of a table, with a manifest that says what it promises.

    Examples:  oversafe protect t.csv -l y --epsilon 1 --schema s.toml --out r.csv   |   oversafe protect t.csv
    -l y --method private-smote -q age -q town --set n_copies=2 --out r.csv   |   oversafe protect --method
    private-smote --explain   |   oversafe protect t.csv -l y --schema s.toml --ledger
    budget.db --dataset patients --out r.csv
    """
    if explain:
        from oversafe.protect.explanations import explain as explanation

        console().print(explanation(method), markup=False, highlight=False)
        return
    example = "oversafe protect table.csv --label y --out release.csv"
    if table is None:
        raise InputError(f"the table is missing; try: {example}")
    label = given_label(label, example)
    if out is None:
        raise InputError(f"--out is missing; try: {example}")
    # Everything that the arguments alone show is told before a table is read or a budget charged.
    budget = number_of("--epsilon", epsilon)
    check_seed(seed)
    if rows is not None and rows < 1:
        raise InputError(f"--rows {rows} was given; it is at least 1, and for synthetic tables only")
    check_release(out, inputs=(table, schema), overwrite=overwrite)
    check_style(out, out_separator, out_decimal)
    if strict and schema is None:
        raise InputError("--strict was given without --schema; it holds the cells against what is declared")
    chosen = _settings(setting or [])

    from oversafe.data import MisfitWarning, Schema, read_table
    from oversafe.data.domain_warnings import column_misfits
    from oversafe.data.encode import conform
    from oversafe.data.infer import doubts
    from oversafe.data.io.files import check_dropped, read_as_text
    from oversafe.data.io.parse_warnings import misread
    from oversafe.privacy import write_release
    from oversafe.protect.base import check_labels
    from oversafe.protect.registry import make_protector, promises

    given = None if schema is None else Schema.from_toml(schema)
    gone, declared = left_out(drop, label, given, persons=promises(method))
    account = _account(ledger, dataset, ledger_key, record_unproven)
    protector = make_protector(
        method,
        epsilon=budget,
        schema=declared,
        rows_per_person=rows_per_person,
        balance=balance,
        random_state=seed,
        quasi_identifiers=quasi_identifier,
        settings=chosen,
        ledger=account,
    )
    if rows is not None and not hasattr(protector, "sample"):
        raise InputError(f"--rows {rows} was given; it is at least 1, and for synthetic tables only")
    large = _table_to_read_in_place(table, protector)
    # What the estimates are to say of the columns nothing may say before them that was read off all rows.
    private = declared is None and protector.get_params().get("domains") == "private"
    if declared is not None:
        declared.check_releasable()
    if large is None:
        options: Any = {"separator": separator, "decimal": decimal, "encoding": encoding}
        if declared is not None:
            # What is told here is told to the holder: with a public schema nothing that a row holds ends the command.
            frame, said, place = read_by_schema(
                table, declared, drop=gone, drop_unlabelled=drop_unlabelled, strict=strict, **options
            )
            for sentence in (*said, *misread(declared, frame, place).values()):
                note(sentence)
        else:
            if private:
                _check_decimal(table, separator, decimal)
            frame = read_as_text(table, **options) if private else read_table(table, **options)
            check_dropped(gone, frame.columns)
            place = places(frame, table, label)
            if drop_unlabelled or not private:
                frame = labelled(frame, label, table, drop=drop_unlabelled, all_may_go=private)
            frame = frame.drop(columns=list(gone))
        if declared is None and not private:
            described = Schema.infer(frame, label=label)
            for sentence in misread(described, frame, place).values():
                note(sentence)
            described.check_releasable()
            frame = conform(described, frame, place)
        else:
            described = _described(frame, label) if declared is None else declared
        paid = protector.get_params().get("domains") == "private"
        if not paid and described[label].domain != "public":
            check_labels(frame[label])
        for sentence in (*column_misfits(described, frame), *doubts(described, frame)):
            note(sentence)
    else:
        if drop_unlabelled or strict:
            raise InputError(
                f"--{'strict' if strict else 'drop-unlabelled'} is for tables that fit into memory; leave the rows out "
                "beforehand"
            )
        check_dropped(gone, large.columns)
        frame = large.drop(*gone)
        assert declared is not None
        for sentence in doubts(declared):
            note(sentence)
    _check_fits(rows, len(frame.columns))
    _warn_of_a_weak_promise(protector.get_params())
    with when_stopped(_charged_since(account)), progress(f"Protecting with {method}") as show, ledger_notes():
        # Said above, of all rows.
        warnings.filterwarnings("ignore", message="column ", category=MisfitWarning)
        protector.on_progress = show
        protector.unlabelled_left_out, protector.odd_cells_refused = drop_unlabelled, strict
        with when_stopped(lambda: "nothing was written"):
            if large is not None:
                protector.fit_source(frame, label)
                if rows is None and int(protector.class_counts_.sum()) > _MOST_ROWS:
                    note(f"the release has {_MOST_ROWS:,} rows; say with --rows if it is to have more")
                    rows = _MOST_ROWS
                X, y = protector.sample(rows)
            elif rows is not None:
                X, y = protector.fit(frame.drop(columns=label), frame[label]).sample(rows)
            else:
                X, y = protector.fit_resample(frame.drop(columns=label), frame[label])
        _check_unit(protector.guarantee_, given, method)
        entry = None if account is None else _ledger_entry(protector, account, method)
        release = _with_labels(X, label, y, released_columns(frame, declared).index(label))
        if in_order := not hasattr(protector, "sample"):
            # In the order of the table, which is often that of its people's numbers.
            release = _shuffled(release, seed)
        settings = {
            "method": method,
            **{k: str(v) for k, v in protector.get_params().items() if k not in ("schema", "ledger")},
            **({"drop_unlabelled": "True"} if drop_unlabelled else {}),
            **({"strict": "True"} if strict else {}),
        }
        others = [] if declared is None else [c for c in declared.features if c.domain != "public"]
        if settings.get("domains") == "data" and declared is not None and not others:
            # The setting speaks of columns that are not declared public, and there are none.
            settings["domains"] = "public"
        manifest = write_release(
            release,
            out,
            protector.guarantee_,
            settings,
            entry,
            separator=out_separator,
            decimal=out_decimal,
            ledger=None if account is None else account.ledger,
        )
        signed = None if manifest.signature is None else manifest.signature.fingerprint
    if json_output:
        facts = {
            "release": str(out),
            "rows": len(release),
            "guarantee": protector.guarantee_.to_dict(),
            "settings": settings,
            "ledger_entry": entry,
            "signed_by": signed,
            "budget": None if account is None else asdict(account.remaining()),
        }
        typer.echo(json.dumps(facts, indent=2, ensure_ascii=False))
        return
    typer.echo(showable(in_options(str(protector.guarantee_))))
    order = ", in random order" if in_order else ""
    typer.echo(f"Release: {out} ({counted(len(release), 'row')}{order})")
    if signed is not None:
        typer.echo(f"Signed with your key, fingerprint {signed}.")
    if out_separator is None and out_decimal is None and out.suffix.lower() == ".csv" and large is None:
        from oversafe.data.io.files import separator_of

        if (between := separator_of(table)) not in (None, ","):
            typer.echo(
                f"It is UTF-8 text with commas between the fields and a point in the numbers, though the table has "
                f"{between!r} between the fields; for a German Excel add --out-separator ';' --out-decimal ','."
            )
    if (
        advice := _how_to_prove(protector.guarantee_, schema, declared, table, label, drop, drop_unlabelled)
    ) is not None:
        typer.echo(advice)
    if account is not None:
        typer.echo(f"Budget: {account.remaining()}")
        echo_composition(account.remaining())


def _check_fits(rows: int | None, n_columns: int) -> None:
    """Refuse more rows than memory holds, before a budget is charged for them."""
    # Windows does not tell.
    if rows is None or not hasattr(os, "sysconf"):
        return
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    # A number has eight bytes.
    if (needed := 8 * rows * n_columns) > memory:
        raise InputError(
            f"--rows {rows} was given, which takes {needed / 1e9:,.0f} GB or more, and the machine has "
            f"{memory / 1e9:,.0f} GB; ask for fewer rows"
        )


def _check_decimal(table: str, separator: str | None, decimal: str | None) -> None:
    """Refuse a CSV file whose rows would decide on its decimal sign."""
    from oversafe.data.io.files import is_text_file, separator_of

    if decimal or not is_text_file(table) or (separator or separator_of(table)) == ",":
        return
    raise InputError(
        f"{shorten(str(table), 60)!r} does not have commas between its fields, so that its numbers may have a decimal "
        "comma; say so with --decimal , (or --decimal . if they have a point), so that no row decides on it"
    )


def _described(frame: pd.DataFrame, label: str) -> Schema:
    """Return what columns seem to be that are estimated privately, and tell the holder of those that name people."""
    from oversafe.data import Schema

    try:
        found = Schema.infer(frame, label=label)
    except InputError:
        # Whatever the rows hold: the fit does without this.
        return Schema(())
    for name in found.naming_columns:
        note(
            f"column {name!r} seems to hold {found[name].naming}: leave it out with --drop {shlex.quote(name)} if it "
            "names people"
        )
    return found


def _shuffled(release: pd.DataFrame, seed: int | None) -> pd.DataFrame:
    import numpy as np

    return release.sample(frac=1, random_state=np.random.default_rng(seed), ignore_index=True)


def _with_labels(X: pd.DataFrame, label: str, y: Any, position: int) -> pd.DataFrame:
    """Return a table with the labels where they stood; of columns by the thousand, each is moved once."""
    import pandas as pd

    labels = pd.Series(y, name=label).set_axis(X.index)
    return pd.concat([X.iloc[:, :position], labels, X.iloc[:, position:]], axis=1)


def _settings(given: list[str]) -> dict[str, Any]:
    """Return NAME=VALUE texts as values: numbers, true, false, null and lists as in JSON, else text."""
    settings: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InputError(f"--set {text!r} was given; write it as NAME=VALUE, such as k_neighbors=3")
        try:
            settings[name] = json.loads(value)
        except json.JSONDecodeError:
            settings[name] = value
    return settings


def _account(
    ledger: str | None, dataset: str | None, key: Path | None, record_unproven: bool
) -> DatasetLedger | None:
    if ledger is None:
        if dataset is not None or key is not None or record_unproven:
            raise InputError(
                "--dataset, --ledger-key and --record-unproven go with --ledger; name the ledger"
            )
        return None
    if dataset is None:
        raise InputError("--ledger was given without --dataset; name the data set whose budget is charged")
    from oversafe.privacy import Ledger

    account = Ledger(ledger, key_file=key).for_dataset(
        dataset, unproven="record" if record_unproven else "refuse"
    )
    # A mistake in its name is told before the table is read.
    account.remaining()
    return account


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


def _warn_of_a_weak_promise(settings: dict[str, Any]) -> None:
    from oversafe.privacy.meaning import LIMITS, right_at_most, share_in_words

    epsilon, delta = settings.get("epsilon"), settings.get("delta")
    if delta is not None and delta > LIMITS.max_delta:
        note(
            f"delta = {delta:g} is a large one: with this probability anything may be told of a person; use far less "
            f"than 1 over the number of rows, and at most {LIMITS.max_delta:g}"
        )
    # A record that is replaced is one removed and one added.
    doubled = 2 if settings.get("relation") == "add-remove" else 1
    if epsilon is not None and doubled * epsilon > LIMITS.max_epsilon:
        note(
            f"epsilon = {epsilon:g} is a weak promise: whoever would guess right half of the time about a person "
            f"guesses right up to {share_in_words(right_at_most(epsilon))} of the time; 1 is usual, and above "
            f"{LIMITS.max_epsilon:g}, where a record is replaced, no audit calls a release protected"
        )


def _ledger_entry(protector: Protector, account: DatasetLedger, method: str) -> str | None:
    if "ledger" in protector.get_params():
        return protector.ledger_entry_
    if protector.guarantee_.status != "none":
        raise InputError(f"the method {method!r} cannot be charged to a ledger; leave --ledger out")
    return account.charge(protector.guarantee_, what=type(protector).__name__).id


def _check_unit(guarantee: Guarantee, given: Schema | None, method: str) -> None:
    """Refuse a promise for records by a plugin, which tells its promise only now, where there are persons."""
    promised = guarantee.status != "none" and not guarantee.basis.startswith("none")
    if promised and guarantee.unit == "record" and given is not None and given.person is not None:
        from oversafe.privacy.persons import check_persons

        check_persons(f"the method {method!r}", given, None, takes_persons=False)


def _table_to_read_in_place(source: str, protector: Any) -> Any | None:
    """Return the Ibis table of a folder or a database that a method can learn without loading it, or None."""
    # In SQLite each cell has a type of its own, and is read by itself.
    in_place = ("://" in source and not source.startswith("sqlite:")) or Path(source).is_dir()
    if not in_place or not hasattr(protector, "fit_source") or protector.schema is None:
        return None
    if (protector.domains, protector.binning, protector.rows_per_person) != ("data", "uniform", None):
        # Estimated, and limited by person, in a table in memory.
        return None
    from oversafe.data.io._sources import open_table

    return open_table(source)


def _how_to_prove(
    guarantee: Guarantee,
    file: Path | None,
    declared: Schema | None,
    table: str,
    label: str,
    drop: list[str] | None,
    drop_unlabelled: bool,
) -> str | None:
    """Return how domains that were read from the data are declared; None where that is not what is missing."""
    if guarantee.status != "nominal" or not any(
        "read from the data" in caveat for caveat in guarantee.caveats
    ):
        return None
    if guarantee.basis.startswith("none"):
        # No declaration proves anything for such a method.
        return None
    what = 'write domain = "public" and a source'
    if file is not None and declared is not None:
        names = [c.name for c in declared if c.domain != "public" and c.name != declared.person]
        return (
            f"To prove it: {what} in {str(file)!r} for each of these columns, after correcting their ranges and "
            f"categories to what is publicly known: {listed(names, most=MOST_NAMES)}."
        )
    columns = "".join(f" --drop {shlex.quote(name)}" for name in drop or ())
    columns += " --drop-unlabelled --set relation=add-remove" if drop_unlabelled else ""
    source, class_column = shlex.quote(without_password(table)), shlex.quote(label)
    return (
        f"To prove it: oversafe schema init {source} --label {class_column} --out schema.toml, then correct the ranges "
        f"and categories in schema.toml to what is publicly known, and {what} for each column, then: "
        f"oversafe protect {source} --label {class_column}{columns} --schema schema.toml --out RELEASE.csv"
    )
