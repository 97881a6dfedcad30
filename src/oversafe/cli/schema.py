"""``oversafe schema``: what a table's columns are, to be corrected by a person."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from oversafe._core.text import MOST_NAMES, counted, listed, showable
from oversafe.cli.consoles import note
from oversafe.cli.options import (
    TABLE,
    DecimalOption,
    DropOption,
    DropUnlabelledOption,
    EncodingOption,
    JsonOption,
    OverwriteOption,
    SeparatorOption,
    complete_label,
)
from oversafe.cli.outputs import check_schema_file

schema_app = typer.Typer(
    help="Describe a table's columns: kinds, public ranges, identifiers.",
    short_help="Describe a table's columns: kinds, public ranges.",
    no_args_is_help=True,
)


@schema_app.command("init")
def schema_init(
    table: Annotated[str, typer.Argument(help=TABLE)],
    label: Annotated[
        str | None,
        typer.Option("--label", "-l", help="The column that holds the class.", autocompletion=complete_label),
    ] = None,
    person: Annotated[str | None, typer.Option(help="The column that says whose row it is.")] = None,
    drop: DropOption = None,
    drop_unlabelled: DropUnlabelledOption = False,
    out: Annotated[Path | None, typer.Option(help="Write the schema here instead of printing it.")] = None,
    overwrite: OverwriteOption = False,
    separator: SeparatorOption = None,
    decimal: DecimalOption = None,
    encoding: EncodingOption = None,
) -> None:
    """Write down what a table's columns seem to be, for you to correct.

    Examples:  oversafe schema init t.csv -l y   |   oversafe schema init t.csv -l y --out schema.toml
    """
    if out is not None:
        check_schema_file(out, table=table, overwrite=overwrite)
    from oversafe.data import Schema, read_table
    from oversafe.data.infer import doubts
    from oversafe.data.io.files import check_dropped
    from oversafe.data.io.parse_warnings import misread
    from oversafe.releasing.tables import labelled, places, unlabelled

    frame = read_table(table, separator=separator, decimal=decimal, encoding=encoding)
    check_dropped(drop or (), frame.columns)
    frame = frame.drop(columns=list(drop or ()))
    gaps, place = None, places(frame, table, label)
    if label is not None and label in frame.columns:
        gaps = unlabelled(frame, label, table)
        frame = labelled(frame, label, table, drop=True)
    found = Schema.infer(frame, label=label, person=person)
    text = found.to_toml(out)
    if out is None:
        typer.echo(text, nl=False)
    if gaps is not None and not drop_unlabelled:
        note(f"{gaps}; left out here, and the other commands need --drop-unlabelled, or a corrected file")
    misled = misread(found, frame, place)
    for name in found.naming_columns:
        if name in misled:
            continue
        note(
            f"column {name!r} seems to hold {found[name].naming}: leave it out of a release with "
            f"--drop {shlex.quote(name)}, or declare another kind"
        )
    for sentence in (*misled.values(), *doubts(found, frame)):
        note(sentence)
    if out is not None:
        typer.echo(f"Schema: {out} ({counted(len(found), 'column')})")
        typer.echo(
            "Next, open it in a text editor, correct the ranges and categories to what is publicly known, and write "
            'domain = "public" with a source for each such column, and under [file] once you have checked how the '
            "file is written: only then is a guarantee proven."
        )


@schema_app.command("check")
def schema_check(
    table: Annotated[str, typer.Argument(help=TABLE)],
    schema: Annotated[Path, typer.Option(help="The schema to hold it against.")],
    drop: DropOption = None,
    drop_unlabelled: DropUnlabelledOption = False,
    json_output: JsonOption = False,
    separator: SeparatorOption = None,
    decimal: Annotated[
        str | None, typer.Option(help="Decimal sign of CSV files; the schema's when not given.")
    ] = None,
    encoding: EncodingOption = None,
) -> None:
    """Say whether a table fits a schema, and what a guarantee could rest on.

    Examples:  oversafe schema check t.csv --schema schema.toml   |   oversafe schema check t.csv --schema schema.toml
    --json
    """
    from oversafe.data import Schema
    from oversafe.data.domain_warnings import column_misfits
    from oversafe.data.infer import doubts
    from oversafe.data.io.parse_warnings import misread
    from oversafe.releasing.tables import read_by_schema

    declared = Schema.from_toml(schema)
    declared = declared.drop(set(drop or ()).intersection(declared.names))
    written: Any = {"separator": separator, "decimal": decimal, "encoding": encoding}
    frame, outside, place = read_by_schema(
        table, declared, drop=drop or (), drop_unlabelled=drop_unlabelled, **written
    )
    doubtful = [*misread(declared, frame, place).values(), *doubts(declared, frame)]
    outside += column_misfits(declared, frame)
    private = [c.name for c in declared if c.domain == "data" and not c.names_people]
    if json_output:
        facts = {
            "columns": len(declared),
            "naming": list(declared.naming_columns),
            "from_the_data": private,
            "outside": outside,
            "doubts": doubtful,
        }
        typer.echo(json.dumps(facts, indent=2, ensure_ascii=False))
        return
    if outside:
        typer.echo("The table has values that the schema does not declare:")
        for sentence in outside:
            typer.echo(f"  {showable(sentence)}.")
    else:
        typer.echo(f"The table fits the schema ({counted(len(declared), 'column')}).")
    for sentence in doubtful:
        typer.echo(f"{sentence[0].upper()}{showable(sentence[1:])}.")
    if naming := declared.naming_columns:
        typer.echo(
            "Identifiers or free text, to be left out with --drop or declared as another kind: "
            f"{listed(naming, most=MOST_NAMES)}."
        )
    if private:
        typer.echo(
            "Ranges or categories read from the data, so that no guarantee is proven: "
            f"{listed(private, most=MOST_NAMES)}."
        )
        typer.echo(f'To prove one, write domain = "public" and a source for each of them in {str(schema)!r}.')
