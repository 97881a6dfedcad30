"""The command line's part for reproductions: ``oversafe reproduce``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from oversafe._core.errors import when_stopped
from oversafe.cli.consoles import console
from oversafe.cli.options import PAGE, seconds_of
from oversafe.cli.outputs import check_page


def reproduce(
    paper: Annotated[
        str,
        typer.Argument(
            help="smote-and-mirrors, smote-dp, umap-smotenc, private-smote or dp-imbalance.",
            show_default=False,
        ),
    ],
    full: Annotated[
        bool, typer.Option("--full/--quick", help="The paper's repetitions (hours), or few (minutes).")
    ] = False,
    data_set: Annotated[
        list[str] | None, typer.Option(help="Only this data set of the paper; may be given more than once.")
    ] = None,
    report: Annotated[Path | None, typer.Option(help=PAGE)] = None,
    resume: Annotated[
        Path | None, typer.Option(help="Folder that keeps what is finished; beside the page when not given.")
    ] = None,
    time_limit: Annotated[
        str | None, typer.Option(help="Start nothing further after this: 30s, 5m, 1h.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes at a time; -1 is all cores.")] = -1,
) -> None:
    """Measure the tables of a paper and put them beside the published ones.

    What is finished is kept: after a stop the same command goes on where it ended.

    Examples:  oversafe reproduce smote-and-mirrors   |   oversafe reproduce umap-smotenc --full --report u.html
    """
    from oversafe.papers.reproduction import load_paper
    from oversafe.papers.reproduction import reproduce as run

    limit = seconds_of(time_limit)
    load_paper(paper)
    page = report if report is not None else Path(f"{paper}-{'full' if full else 'quick'}.html")
    check_page("--report", page)

    from oversafe.report.papers_page import reproduction_summary, write_reproduction

    store = resume if resume is not None else page.with_name(f"{page.stem}-cells")
    with when_stopped(lambda: "the same command goes on"):
        found = run(
            paper,
            quick=not full,
            data_sets=data_set or None,
            store=store,
            time_limit=limit,
            n_jobs=jobs,
            progress=True,
        )
    write_reproduction(found, page)
    console().print(reproduction_summary(found))
    typer.echo(f"Report: {page}")
