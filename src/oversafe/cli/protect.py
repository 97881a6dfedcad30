"""``oversafe protect``: a release with a manifest of its guarantee."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oversafe._core.errors import InputError
from oversafe._core.text import MOST_NAMES, counted, listed, showable, without_password
from oversafe.cli.budget import LedgerKeyOption, RecordUnprovenOption, echo_composition
from oversafe.cli.consoles import console, in_options, note, progress
from oversafe.cli.options import (
    TABLE,
    DeclaredDecimalOption,
    DropOption,
    DropUnlabelledOption,
    EncodingOption,
    JsonOption,
    LabelOption,
    OverwriteOption,
    QuasiIdentifierOption,
    SeparatorOption,
    check_seed,
    given_label,
    number_of,
)

if TYPE_CHECKING:
    from oversafe.privacy import DatasetLedger
    from oversafe.releasing import Release


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
        from oversafe.protect.registry import explain as explanation

        console().print(explanation(method), markup=False, highlight=False)
        return
    example = "oversafe protect table.csv --label y --out release.csv"
    if table is None:
        raise InputError(f"the table is missing; try: {example}")
    label = given_label(label, example)
    if out is None:
        raise InputError(f"--out is missing; try: {example}")
    budget = number_of("--epsilon", epsilon)
    check_seed(seed)
    chosen = _settings(setting or [])

    from oversafe.releasing import release

    with progress(f"Protecting with {method}") as show:
        made = release(
            table,
            label,
            method=method,
            epsilon=budget,
            schema=schema,
            drop=drop or (),
            rows_per_person=rows_per_person,
            balance=balance,
            rows=rows,
            quasi_identifiers=quasi_identifier,
            settings=chosen,
            drop_unlabelled=drop_unlabelled,
            strict=strict,
            separator=separator,
            decimal=decimal,
            encoding=encoding,
            ledger=_account(ledger, dataset, ledger_key, record_unproven),
            out=out,
            overwrite=overwrite,
            out_separator=out_separator,
            out_decimal=out_decimal,
            random_state=seed,
            on_note=note,
            on_progress=show,
        )
    if json_output:
        typer.echo(json.dumps(_facts(made), indent=2, ensure_ascii=False))
        return
    typer.echo(showable(in_options(str(made.guarantee))))
    order = ", in random order" if made.shuffled else ""
    typer.echo(f"Release: {out} ({counted(len(made.table), 'row')}{order})")
    if (signed := _signed_by(made)) is not None:
        typer.echo(f"Signed with your key, fingerprint {signed}.")
    if out_separator is None and out_decimal is None and out.suffix.lower() == ".csv":
        _say_how_it_is_written(table)
    if (advice := _how_to_prove(made, schema, table, label, drop, drop_unlabelled)) is not None:
        typer.echo(advice)
    if made.budget is not None:
        typer.echo(f"Budget: {made.budget}")
        echo_composition(made.budget)


def _facts(made: Release) -> dict[str, Any]:
    """Return what ``--json`` prints of a release."""
    return {
        "release": str(made.path),
        "rows": len(made.table),
        "guarantee": made.guarantee.to_dict(),
        "settings": dict(made.settings),
        "ledger_entry": made.ledger_entry,
        "signed_by": _signed_by(made),
        "budget": None if made.budget is None else asdict(made.budget),
    }


def _signed_by(made: Release) -> str | None:
    if made.manifest is None or made.manifest.signature is None:
        return None
    return made.manifest.signature.fingerprint


def _say_how_it_is_written(table: str) -> None:
    """Tell whoever has a table for a German Excel how to get a release for it."""
    from oversafe.data.io.files import separator_of

    between = None if Path(table).is_dir() else separator_of(table)
    if between not in (None, ","):
        typer.echo(
            f"It is UTF-8 text with commas between the fields and a point in the numbers, though the table has "
            f"{between!r} between the fields; for a German Excel add --out-separator ';' --out-decimal ','."
        )


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

    opened = Ledger(ledger, key_file=key)
    return opened.for_dataset(dataset, unproven="record" if record_unproven else "refuse")


def _how_to_prove(
    made: Release,
    file: Path | None,
    table: str,
    label: str,
    drop: list[str] | None,
    drop_unlabelled: bool,
) -> str | None:
    """Return how domains that were read from the data are declared; None where that is not what is missing."""
    if made.guarantee.status != "nominal" or not any(
        "read from the data" in caveat for caveat in made.guarantee.caveats
    ):
        return None
    if made.guarantee.basis.startswith("none"):
        # No declaration proves anything for such a method.
        return None
    what = 'write domain = "public" and a source'
    if file is not None and made.schema is not None:
        names = [c.name for c in made.schema if c.domain != "public" and c.name != made.schema.person]
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
