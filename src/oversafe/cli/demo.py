"""``oversafe demo``: the whole story on a medical data set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from oversafe.cli.consoles import console
from oversafe.cli.options import JsonOption
from oversafe.cli.outputs import check_demo


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the report and the releases.")] = Path(
        "oversafe-demo"
    ),
    json_output: JsonOption = False,
) -> None:
    """The whole story on an embedded medical data set, and a report.

    Examples:  oversafe demo   |   oversafe demo --out /tmp/demo
    """
    from rich.markup import escape

    from oversafe.cli.story import run_demo
    from oversafe.report.terminal import summary

    check_demo(out)
    shown = console()
    with shown.status("Starting") as status:
        result = run_demo(out, progress=lambda step: status.update(escape(step)))
    if json_output:
        verdicts = {"smote": result.smote.to_dict(), "private": result.private.to_dict()}
        typer.echo(
            json.dumps({"report": str(result.report.resolve()), **verdicts}, indent=2, ensure_ascii=False)
        )
        return
    shown.rule("A table balanced with SMOTE, handed out without the patients")
    shown.print(summary(result.smote), soft_wrap=True)
    shown.rule("The same table as noisy histograms, class by class")
    shown.print(summary(result.private), soft_wrap=True)
    typer.echo(f"The whole story, record by record:\n{result.report.resolve()}")
