"""The command line's part for ledgers: ``oversafe budget``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oversafe._core.errors import InputError
from oversafe._core.text import counted, shorten, showable
from oversafe.cli.consoles import console, note
from oversafe.cli.options import JsonOption, number_option

if TYPE_CHECKING:
    from oversafe.privacy import Balance, Entry, Ledger

budget_app = typer.Typer(
    help="Keep the privacy budgets of data sets, and see what they were spent on.",
    short_help="Keep privacy budgets, and see what they were spent on.",
    no_args_is_help=True,
)

_EXIT_TAMPERED = 1

LedgerArgument = Annotated[
    str, typer.Argument(help="The ledger: a file, or postgresql://user@host/database.", show_default=False)
]
LedgerKeyOption = Annotated[
    Path | None,
    typer.Option(
        "--ledger-key",
        help="File with the ledger's key; else OVERSAFE_LEDGER_KEY or ~/.config/oversafe/ledgers has it.",
    ),
]
RecordUnprovenOption = Annotated[
    bool,
    typer.Option("--record-unproven", help="Write a release without a proven guarantee into the history."),
]


@budget_app.command("create")
def create(
    ledger: LedgerArgument,
    dataset: Annotated[str, typer.Argument(help="What the data set is called from now on.")],
    epsilon: Annotated[float, number_option("What all its releases together may have.")],
    delta: Annotated[float, number_option("Likewise; above 0 many releases cost less together.")] = 0.0,
    relation: Annotated[str, typer.Option(help="replace-one or add-remove.")] = "replace-one",
    unit: Annotated[str, typer.Option(help="Who is protected: record or person.")] = "record",
    rows_per_unit: Annotated[int, typer.Option(help="How many rows a person has at most.")] = 1,
    note: Annotated[str, typer.Option(help="Anything to be remembered with it.")] = "",
    ledger_key: LedgerKeyOption = None,
    json_output: JsonOption = False,
) -> None:
    """Give a data set a budget; a ledger that is not there yet is made, with its key.

    Examples:  oversafe budget create budget.db patients --epsilon 3 --delta 1e-6   |   oversafe budget create
    postgresql://ann@db/budgets patients --epsilon 1 --unit person --rows-per-unit 12
    """
    balance = _ledger(ledger, ledger_key).create(
        dataset,
        epsilon,
        delta,
        relation=relation,  # type: ignore[arg-type]
        unit=unit,  # type: ignore[arg-type]
        rows_per_unit=rows_per_unit,
        note=note,
    )
    if json_output:
        typer.echo(json.dumps(asdict(balance), indent=2))
    else:
        typer.echo(str(balance))


@budget_app.command("show")
def show(
    ledger: LedgerArgument,
    dataset: Annotated[str | None, typer.Argument(help="One data set; all of them if not given.")] = None,
    ledger_key: LedgerKeyOption = None,
    json_output: JsonOption = False,
) -> None:
    """Show what is left of the budgets.

    Examples:  oversafe budget show budget.db   |   oversafe budget show budget.db patients --json
    """
    opened = _ledger(ledger, ledger_key)
    names = opened.datasets() if dataset is None else [dataset]
    balances = [opened.remaining(name) for name in names]
    if json_output:
        typer.echo(json.dumps([asdict(balance) for balance in balances], indent=2))
        return
    _print_table(
        ("data set", "epsilon left", "spent", "of", "delta", "for every", "charges", "unaccounted"),
        [_balance_cells(balance) for balance in balances],
    )
    echo_composition(*balances)
    if any(balance.unaccounted for balance in balances):
        typer.echo("Unaccounted releases have no proven guarantee, and no budget covers them.")


@budget_app.command("charge")
def charge(
    ledger: LedgerArgument,
    dataset: Annotated[str, typer.Argument(help="Whose budget it is charged to.")],
    release: Annotated[Path, typer.Argument(help="A release that was made without a ledger.")],
    record_unproven: RecordUnprovenOption = False,
    ledger_key: LedgerKeyOption = None,
    json_output: JsonOption = False,
) -> None:
    """Charge a release that exists already, by the guarantee in the manifest beside it.

    Examples:  oversafe budget charge budget.db patients protected.csv   |   oversafe budget charge budget.db patients
    kept.csv --record-unproven
    """
    from oversafe.privacy.signing.manifest import manifest_path, read_manifest
    from oversafe.privacy.signing.vouching import vouch
    from oversafe.releasing.notes import warnings_told

    manifest = read_manifest(release)
    if manifest is None:
        raise InputError(
            f"{str(release)!r} has no manifest beside it ({str(manifest_path(release))!r}), which would say what it "
            "promises; name a release that oversafe wrote"
        )
    if manifest.ledger_entry is not None:
        raise InputError(f"{str(release)!r} is paid for already, by the entry {manifest.ledger_entry}")
    # What nobody trusted vouches for is not proven, however it calls itself.
    counts = vouch(manifest).guarantee
    account = _ledger(ledger, ledger_key)
    what = f"a release made before, SHA-256 {manifest.sha256}"
    if any(entry.what == what for entry in account.history(dataset)):
        raise InputError(f"{str(release)!r} is charged to {dataset!r} already; nothing was spent")
    with warnings_told(note):
        account.charge(dataset, counts, what=what, unproven="record" if record_unproven else "refuse")
    balance = account.remaining(dataset)
    if json_output:
        typer.echo(json.dumps(asdict(balance), indent=2))
    else:
        typer.echo(str(balance))
        echo_composition(balance)


@budget_app.command("history")
def history(
    ledger: LedgerArgument,
    dataset: Annotated[str | None, typer.Argument(help="One data set; all of them if not given.")] = None,
    ledger_key: LedgerKeyOption = None,
    json_output: JsonOption = False,
) -> None:
    """Show what the budgets were spent on, in the order in which it happened.

    Examples:  oversafe budget history budget.db patients   |   oversafe budget history budget.db --json
    """
    entries = _ledger(ledger, ledger_key).history(dataset)
    if json_output:
        typer.echo(json.dumps([asdict(entry) for entry in entries], indent=2))
        return
    _print_table(
        ("entry", "when (UTC)", "data set", "", "epsilon", "delta", "what"),
        [_entry_cells(entry) for entry in entries],
    )


@budget_app.command("verify")
def verify(
    ledger: LedgerArgument, ledger_key: LedgerKeyOption = None, json_output: JsonOption = False
) -> None:
    """Check that no entry was changed, removed or reordered, and that no budget is overspent.

    Exit code 1 if something is wrong.

    Examples:  oversafe budget verify budget.db   |   oversafe budget verify budget.db --ledger-key key
    """
    found = _ledger(ledger, ledger_key).verify()
    if json_output:
        typer.echo(json.dumps({"ok": found.ok, **asdict(found)}, indent=2))
    elif found.ok:
        written = counted(found.entries - 1, "entry", "entries")
        typer.echo(
            f"All is as it was written, {written} of the history and the ledger's own first one, and every budget is "
            "kept."
        )
        if not found.end_seen:
            typer.echo(
                "This machine has no record of the history's end, so that entries cut off from it would not show."
            )
    else:
        for problem in found.problems:
            typer.echo(showable(problem[:1].upper() + problem[1:]) + ".")
    if not found.ok:
        raise typer.Exit(_EXIT_TAMPERED)


def echo_composition(*balances: Balance) -> None:
    """Print why what is left and what is spent do not add up, where they do not."""
    if any(abs(b.epsilon + b.spent_epsilon - b.budget_epsilon) > 1e-3 * b.budget_epsilon for b in balances):
        typer.echo(
            "With a delta above 0 charges cost less together than one by one, so that what is left and what is spent "
            "need not add up to the budget."
        )


def _ledger(location: str, key: Path | None) -> Ledger:
    from oversafe.privacy import Ledger

    return Ledger(location, key_file=key)


def _balance_cells(balance: Balance) -> Sequence[str]:
    from oversafe.privacy.ledger.entries import left

    return (
        shorten(balance.dataset, 40),
        left(balance.epsilon),
        f"{balance.spent_epsilon:.4g}",
        f"{balance.budget_epsilon:g}",
        f"{balance.budget_delta:g}",
        balance.unit,
        str(balance.charges),
        str(balance.unaccounted),
    )


def _entry_cells(entry: Entry) -> Sequence[str]:
    return (
        str(entry.number),
        entry.when.removesuffix("+00:00").replace("T", " "),
        shorten(entry.dataset, 30),
        "budget" if entry.kind == "create" else entry.kind,
        "" if entry.epsilon is None else f"{entry.epsilon:g}",
        "" if entry.delta is None else f"{entry.delta:g}",
        shorten(entry.what, 60),
    )


def _print_table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in header:
        words = name in ("when (UTC)", "data set", "for every", "", "what")
        table.add_column(name, justify="left" if words else "right", no_wrap=name != "what")
    for line in lines:
        table.add_row(*map(Text, line))
    console().print(table)
