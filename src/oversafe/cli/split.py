"""``oversafe split``: people set aside before anything is made."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from oversafe._core.outputs import check_file, check_kept
from oversafe.cli.options import (
    TABLE,
    DecimalOption,
    EncodingOption,
    OverwriteOption,
    SeparatorOption,
    check_seed,
    complete_label,
    number_option,
)


def split(
    table: Annotated[str, typer.Argument(help=TABLE)],
    holdout: Annotated[float, number_option("The share that is held out.")] = 0.5,
    unit: Annotated[
        str | None, typer.Option(help="The column that says whose row it is: nobody is then in both parts.")
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(
            "--label",
            "-l",
            help="The column that holds the class: each is split.",
            autocompletion=complete_label,
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="The part to make a release from.")] = Path("part.csv"),
    holdout_out: Annotated[Path, typer.Option(help="The part that is held out.")] = Path("holdout.csv"),
    seed: Annotated[int | None, typer.Option(help="For the draw; random when not given.")] = None,
    overwrite: OverwriteOption = False,
    separator: SeparatorOption = None,
    decimal: DecimalOption = None,
    encoding: EncodingOption = None,
) -> None:
    """Set people aside before anything is made, so that the release can be tested against them.

    Examples:  oversafe split patients.csv --unit patient --label diagnosis   |   oversafe split t.csv --holdout 0.3
    --out part.csv --holdout-out others.csv
    """
    check_seed(seed)
    from oversafe._core.errors import InputError
    from oversafe.data import write_table
    from oversafe.data.io.files import TABLE_ENDINGS, read_as_text
    from oversafe.releasing.splitting import split_rows

    remedy = "name a .csv, .tsv, .txt (also .gz) or .parquet file"
    for option, path in (("--out", out), ("--holdout-out", holdout_out)):
        check_file(option, path, TABLE_ENDINGS, remedy)
        check_kept(path, overwrite=overwrite, table=table)
    if out.absolute() == holdout_out.absolute():
        raise InputError(f"--out and --holdout-out are both {str(out)!r}; name two files")
    # As text: what a column is, is for whoever reads the parts.
    frame = read_as_text(table, separator=separator, decimal=decimal, encoding=encoding)
    part, others = split_rows(frame, holdout, unit=unit, label=label, random_state=seed)
    write_table(part, out)
    write_table(others, holdout_out)
    typer.echo(f"{out}: {len(part)} rows. Make the release from these.")
    typer.echo(
        f"{holdout_out}: {len(others)} rows. Keep these for: oversafe audit ... --holdout {holdout_out}"
    )
