"""The command line's part for comparisons: ``oversafe compare``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from oversafe._core.errors import InputError, when_stopped
from oversafe.cli.consoles import console, note
from oversafe.cli.options import (
    PAGE,
    TABLE,
    DeclaredDecimalOption,
    DropOption,
    DropUnlabelledOption,
    EncodingOption,
    JsonOption,
    LabelOption,
    QuasiIdentifierOption,
    SeparatorOption,
    check_seed,
    given_label,
    plain_number,
    seconds_of,
)
from oversafe.cli.outputs import check_page


def compare(
    table: Annotated[str, typer.Argument(help=TABLE)],
    label: LabelOption = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(
            "--methods",
            "--method",
            "-m",
            help="As in oversafe protect, with commas or given again; else eight.",
        ),
    ] = None,
    epsilons: Annotated[
        list[str] | None,
        typer.Option(
            "--epsilons",
            "--epsilon",
            "-e",
            help="For the methods that have one, with commas or given again; else 1 and 5.",
        ),
    ] = None,
    report: Annotated[Path, typer.Option(help=PAGE)] = Path("comparison.html"),
    resume: Annotated[
        Path | None,
        typer.Option(help="Folder that keeps finished settings; beside the page when not given."),
    ] = None,
    score: Annotated[
        str, typer.Option(help="What utility is, such as auc, average_precision or f1.")
    ] = "auc",
    classifiers: Annotated[str, typer.Option(help="quick (two), or paper (six, extra boost).")] = "quick",
    schema: Annotated[
        Path | None, typer.Option(help="What the columns are; without it no guarantee is proven.")
    ] = None,
    quasi_identifier: QuasiIdentifierOption = None,
    drop: DropOption = None,
    no_membership: Annotated[
        bool,
        typer.Option("--no-membership", help="Leave out the membership game, which takes most of the time."),
    ] = False,
    drop_unlabelled: DropUnlabelledOption = False,
    time_limit: Annotated[
        str | None,
        typer.Option(
            help="Start no further setting after this: 30s, 5m, 1h; those begun are finished, which takes minutes."
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes at a time; -1 is all cores.")] = -1,
    seed: Annotated[int, typer.Option(help="Of folds and releases.")] = 0,
    json_output: JsonOption = False,
    separator: SeparatorOption = None,
    decimal: DeclaredDecimalOption = None,
    encoding: EncodingOption = None,
) -> None:
    """Say which protection gives the most utility for which risk on your table.

    Every setting is kept as it ends: after a stop the same command goes on where it ended.

    Examples:  oversafe compare t.csv -l y   |   oversafe compare t.csv -l y --methods smote,privbayes --epsilons 0.5,2
    --report c.html
    """
    label = given_label(label, "oversafe compare table.csv --label y")
    check_page("--report", report)
    check_seed(seed)
    limit = seconds_of(time_limit)
    budgets = _numbers(epsilons) if epsilons else None

    from oversafe.data import Schema
    from oversafe.data.io.files import check_dropped, read_table
    from oversafe.releasing.tables import labelled, left_out, read_by_schema

    given = None if schema is None else Schema.from_toml(schema)
    gone, declared = left_out(drop, label, given, persons=True)
    written: Any = {"separator": separator, "decimal": decimal, "encoding": encoding}
    if declared is None:
        frame = read_table(table, **written)
        check_dropped(gone, frame.columns)
        frame = labelled(frame, label, table, drop=drop_unlabelled).drop(columns=list(gone))
    else:
        frame, said, _ = read_by_schema(
            table, declared, drop=gone, drop_unlabelled=drop_unlabelled, **written
        )
        for sentence in said:
            note(sentence)

    from oversafe.auditing.comparing.comparison import compare as run
    from oversafe.auditing.sources import file_name
    from oversafe.report.comparison_page import comparison_summary

    options: dict[str, Any] = {} if budgets is None else {"epsilons": budgets}
    with when_stopped(lambda: "the same command goes on"):
        result = run(
            frame,
            label,
            score=score,
            name=file_name(table),
            methods=_split(methods) or None,
            schema=declared,
            quasi_identifiers=quasi_identifier,
            classifiers=classifiers,
            membership=not no_membership,
            store=resume if resume is not None else report.with_name(f"{report.stem}-cells"),
            time_limit=limit,
            random_state=seed,
            n_jobs=jobs,
            progress=True,
            **options,
        )
    result.to_html(report)
    result.to_json(report.with_suffix(".json"))
    if json_output:
        typer.echo(result.to_json())
        return
    console().print(comparison_summary(result))
    typer.echo(f"Report: {report}")


def _split(given: list[str] | None) -> list[str]:
    return [part.strip() for text in given or () for part in text.split(",") if part.strip()]


def _numbers(given: list[str]) -> list[float]:
    numbers = [plain_number(part) for part in _split(given)]
    if not numbers or not all(0 < number < math.inf for number in numbers):
        raise InputError(
            f"--epsilons {','.join(given)} was given; write numbers above 0 with commas between them and points in "
            "them, such as 0.5,2"
        )
    return numbers
