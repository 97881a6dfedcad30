"""``oversafe audit``: what an outsider reads out of a release."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from oversafe._core.errors import InputError, when_stopped
from oversafe._core.text import without_password
from oversafe.cli.budget import LedgerKeyOption
from oversafe.cli.consoles import console, note, progress
from oversafe.cli.options import (
    PAGE,
    TABLE,
    DecimalOption,
    DropUnlabelledOption,
    EncodingOption,
    JsonOption,
    LabelOption,
    SeparatorOption,
    given_label,
    number_of,
    seconds_of,
)
from oversafe.cli.outputs import check_page

_EXIT_GATE, _EXIT_INTERRUPTED = 1, 130


def audit(
    release: Annotated[str, typer.Argument(help=TABLE)],
    label: LabelOption = None,
    real: Annotated[str | None, typer.Option(help="The table that the release was made from.")] = None,
    holdout: Annotated[str | None, typer.Option(help="Real rows that were not used for the release.")] = None,
    report: Annotated[Path | None, typer.Option(help=PAGE)] = None,
    json_output: JsonOption = False,
    fail_on: Annotated[
        str | None,
        typer.Option(
            help="Exit with code 1 on this verdict or a worse one: exposed or unproven.",
            autocompletion=lambda: ["exposed", "unproven"],
        ),
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(help="A ledger of yours: what it paid for and sealed counts; its budget is told."),
    ] = None,
    ledger_key: LedgerKeyOption = None,
    max_epsilon: Annotated[
        str | None,
        typer.Option(
            metavar="<float>",
            help="The weakest guarantee, where a record is replaced, that may be called protected; 3 when not given.",
        ),
    ] = None,
    time_limit: Annotated[
        str | None, typer.Option(help="Start no further attack after this: 30s, 5m, 1h.")
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(help="Keep what each attack finds in this folder, and go on from there after a stop."),
    ] = None,
    drop_unlabelled: DropUnlabelledOption = False,
    separator: SeparatorOption = None,
    decimal: DecimalOption = None,
    encoding: EncodingOption = None,
) -> None:
    """Attack a release and say which real records an outsider can recover from it.

    Examples:  oversafe audit release.csv --label y   |   oversafe audit release.csv -l y --real table.csv
    --report report.html --fail-on exposed
    """
    if fail_on not in (None, "exposed", "unproven"):
        raise InputError(f"--fail-on {fail_on} was given; use exposed or unproven")
    seconds = seconds_of(time_limit)
    most = number_of("--max-epsilon", max_epsilon)
    if most is not None and not 0 < most < float("inf"):
        raise InputError(f"--max-epsilon {max_epsilon} was given; use a finite number above 0")
    if ledger_key is not None and ledger is None:
        raise InputError("--ledger-key goes with --ledger; name the ledger")
    label = given_label(label, "oversafe audit release.csv --label y")
    if report is not None:
        check_page("--report", report)

    sources = {"release": release, "real": real, "holdout": holdout}
    options: Any = {"separator": separator, "decimal": decimal, "encoding": encoding}
    with when_stopped(lambda: "nothing was written"), progress("Reading") as show:
        from oversafe.data.io.files import FileTable, read_file
        from oversafe.releasing.tables import labelled

        def read(source: str) -> FileTable:
            file = read_file(source, **options)
            return replace(file, table=labelled(file.table, label, source, drop=drop_unlabelled))

        tables: Any = {what: None if source is None else read(source) for what, source in sources.items()}

        # Loaded only now: a mistake in the files is told before the attacks' libraries are waited for.
        from oversafe.auditing import audit as run_audit
        from oversafe.privacy import Ledger
        from oversafe.privacy.meaning import LIMITS
        from oversafe.report.terminal import summary

        account = None if ledger is None else Ledger(ledger, key_file=ledger_key)
        most = LIMITS.max_epsilon if most is None else most
        result = run_audit(
            **tables,
            label=label,
            ledger=account,
            max_epsilon=most,
            time_limit=seconds,
            on_progress=show,
            resume=resume,
        )
    # The command that repeats the audit, for its report; a database's password is not in it.
    words = ["oversafe", "audit", without_password(release), "--label", label]
    for name, value in {"real": real, "holdout": holdout, "ledger": ledger, "ledger-key": ledger_key,
                        "max-epsilon": max_epsilon, "time-limit": time_limit, **options}.items():  # fmt: skip
        words += [] if value is None else [f"--{name}", without_password(value)]
    words += ["--drop-unlabelled"] if drop_unlabelled else []
    settings = {**result.settings, "command": shlex.join(words)}
    if drop_unlabelled:
        settings["drop_unlabelled"] = True
    result = replace(result, settings=settings)
    if report is not None:
        result.to_html(report)
        result.to_json(report.with_suffix(".json"))
    if json_output:
        typer.echo(result.to_json())
    else:
        console().print(summary(result), soft_wrap=True)
        if report is not None:
            typer.echo(f"Report: {report}")
    if result.stopped:
        # Not a pass of the gate: attacks are missing.
        note("stopped; what was found until then is above")
        raise typer.Exit(_EXIT_INTERRUPTED)
    if fail_on is not None and not result.findings and result.verdict.level != "protected":
        reasons = "; ".join(f"{attack}: {reason}" for attack, reason in result.not_run.items())
        raise InputError(
            f"no attack could be run, so the gate says nothing ({reasons}); give it what it lacks"
        )
    if fail_on is not None and result.verdict.level in ("exposed", fail_on):
        raise typer.Exit(_EXIT_GATE)
