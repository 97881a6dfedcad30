"""The command line."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oversafe.commands.account import account_app
from oversafe.commands.budget import LedgerKeyOption, budget_app, ledger_notes
from oversafe.commands.compare import compare
from oversafe.commands.consoles import console as console_of_the_output
from oversafe.commands.numbers import number_of, weak_epsilon
from oversafe.commands.options import (
    TABLE,
    DecimalOption,
    DropOption,
    EncodingOption,
    QuasiIdentifierOption,
    SeparatorOption,
    check_seed,
    seconds_of,
)
from oversafe.commands.outputs import check_folder, check_page, check_release, check_schema_file, check_style
from oversafe.commands.reproduce import reproduce
from oversafe.commands.tables import (
    DropUnlabelledOption,
    check_columns_given,
    check_label_given,
    labelled,
    unlabelled,
)
from oversafe.errors import InputError, MissingExtraError
from oversafe.text import counted, listed, showable

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console
    from rich.progress import Progress

    from oversafe.data import Schema
    from oversafe.privacy import DatasetLedger, Guarantee
    from oversafe.protect import Protector

app = typer.Typer(
    name="oversafe",
    help="Attack a table before anyone else does, and release it with a guarantee that holds.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    # Plain text: it fits one screen, and looks the same in a terminal, a pipe and an e-mail.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
schema_app = typer.Typer(
    help="Describe a table's columns: kinds, public ranges, identifiers.",
    short_help="Describe a table's columns: kinds, public ranges.",
    no_args_is_help=True,
)
app.add_typer(schema_app, name="schema")
app.add_typer(account_app, name="account")
app.add_typer(budget_app, name="budget")

_EXIT_GATE, _EXIT_INPUT, _EXIT_DEFECT, _EXIT_INTERRUPTED = 1, 2, 3, 130
# A larger release is written only if its number of rows was given.
_MOST_ROWS = 5_000_000
_LONGEST_HEADING = 1_000_000
_MOST_NAMES = 1000


def main() -> None:
    """Run the command line; errors a user can mend are one sentence, exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        # A locale without UTF-8 must not end a command because a column's name has an umlaut.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        _command()(prog_name="oversafe")
    except (InputError, MissingExtraError) as error:
        _fail(str(error), _EXIT_INPUT)
    except KeyboardInterrupt:
        _fail("stopped", _EXIT_INTERRUPTED)
    except BrokenPipeError:
        # The reader of a pipe has gone; there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(_EXIT_DEFECT)
    except Exception as error:
        if os.environ.get("OVERSAFE_DEBUG"):
            raise
        _fail(
            f"a defect of oversafe: {type(error).__name__}: {error} "
            "(set OVERSAFE_DEBUG=1 to see where, and please report it)",
            _EXIT_DEFECT,
        )


def _command() -> Any:
    """Return the command line with each command's examples on lines of their own."""
    command = typer.main.get_command(app)
    waiting: list[Any] = [command]
    while waiting:
        each = waiting.pop()
        each.help = _with_examples(each.help)
        waiting += getattr(each, "commands", {}).values()
    return command


def _with_examples(text: str | None) -> str | None:
    """Return a help text whose "Examples: one | other" stand below each other, and are not wrapped."""
    start, found, examples = (text or "").partition("Examples:")
    if not found:
        return text
    lines = [" ".join(example.split()) for example in re.split(r"\s+\|\s+", examples.strip())]
    return "\n".join([start.rstrip(), "", "\b", "Examples:", *(f"  {line}" for line in lines)])


def _complete_label(context: typer.Context, incomplete: str) -> list[str]:
    """Return the columns of the table that the command line names, for the shell."""
    import csv

    source = context.params.get("release") or context.params.get("table")
    try:
        with Path(source or "").open(encoding="utf-8", errors="replace", newline="") as file:
            heading = file.readline(_LONGEST_HEADING)
        separator = max(",;\t|", key=heading.count)
        return [
            name for name in next(csv.reader([heading], delimiter=separator)) if name.startswith(incomplete)
        ]
    except (OSError, TypeError, ValueError, StopIteration, csv.Error):
        return []


def _complete_method(incomplete: str) -> list[str]:
    from oversafe.protect.methods import method_names

    return [name for name in method_names() if name.startswith(incomplete)]


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Show the version.", is_eager=True)] = False,
) -> None:
    if version:
        from oversafe import __version__

        typer.echo(f"oversafe {__version__}")
        raise typer.Exit


# Checked by hand, so that its absence is told in the same words as other mistakes.
LabelOption = Annotated[
    str | None,
    typer.Option(
        "--label", "-l", help="The column that holds the class; required.", autocompletion=_complete_label
    ),
]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace a file that exists already.")]


@app.command(short_help="The whole story on a medical data set, and a report.")
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the report and the releases.")] = Path(
        "oversafe-demo"
    ),
    json_output: Annotated[bool, typer.Option("--json", help="Print JSON instead of the summary.")] = False,
) -> None:
    """The whole story on an embedded medical data set, and a report.

    Examples:  oversafe demo   |   oversafe demo --out /tmp/demo
    """
    from rich.markup import escape

    from oversafe.report.demo import run_demo
    from oversafe.report.terminal import summary

    console = _console()
    check_folder(out, make=True)
    with console.status("Starting") as status:
        result = run_demo(out, progress=lambda step: status.update(escape(step)))
    if json_output:
        verdicts = {"smote": result.smote.to_dict(), "private": result.private.to_dict()}
        typer.echo(
            json.dumps({"report": str(result.report.resolve()), **verdicts}, indent=2, ensure_ascii=False)
        )
        return
    console.rule("A table balanced with SMOTE, handed out without the patients")
    console.print(summary(result.smote), soft_wrap=True)
    console.rule("The same table as noisy histograms, class by class")
    console.print(summary(result.private), soft_wrap=True)
    console.print("The whole story, record by record:")
    # Not wrapped, so that it can be clicked or copied.
    console.print(str(result.report.resolve()), soft_wrap=True, markup=False, highlight=False)


@app.command(short_help="Attack a release: which real records can be recovered?")
def audit(
    release: Annotated[str, typer.Argument(help=TABLE)],
    label: LabelOption = None,
    real: Annotated[str | None, typer.Option(help="The table that the release was made from.")] = None,
    holdout: Annotated[str | None, typer.Option(help="Real rows that were not used for the release.")] = None,
    report: Annotated[
        Path | None, typer.Option(help="Write the page here (.html), and the figures beside it (.json).")
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print JSON instead of the summary.")] = False,
    fail_on: Annotated[
        str | None,
        typer.Option(
            help="Exit with code 1 on this verdict or a worse one: exposed or unproven.",
            autocompletion=lambda: ["exposed", "unproven"],
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
    check_label_given(label, "oversafe audit release.csv --label y")
    assert label is not None
    if report is not None:
        check_page("--report", report)

    console = _console()
    options = {"separator": separator, "decimal": decimal, "encoding": encoding}
    with _audit_progress(console) as show:
        released, original, held = (
            None if t is None else labelled(_read(t, options), label, t, drop=drop_unlabelled)
            for t in (release, real, holdout)
        )

        # Loaded only now: a mistake in the files is told before the attacks' libraries are waited for.
        from dataclasses import replace

        from oversafe.privacy import read_manifest
        from oversafe.report import audit as run_audit
        from oversafe.report.audit import file_name, repeat_settings
        from oversafe.report.terminal import summary

        manifest = None if "://" in release else read_manifest(release)
        result = run_audit(
            released,
            label,
            real=original,
            holdout=held,
            guarantee=None if manifest is None else manifest.guarantee,
            time_limit=seconds,
            on_progress=show,
            name=file_name(release),
            resume=resume,
        )
        result = replace(
            result,
            settings={
                **repeat_settings({"release": release, "real": real, "holdout": holdout}, label, seconds),
                "command": _audit_command(
                    release, label, real, holdout, time_limit, options, drop_unlabelled=drop_unlabelled
                ),
            },
        )
    if report is not None:
        result.to_html(report)
        result.to_json(report.with_suffix(".json"))
    if json_output:
        typer.echo(result.to_json())
    else:
        console.print(summary(result), soft_wrap=True)
        if report is not None:
            console.print(f"Report: {report}", soft_wrap=True, markup=False, highlight=False)
    if result.stopped:
        # Not a pass of the gate: attacks are missing.
        _fail("stopped; what was found until then is above", _EXIT_INTERRUPTED)
    if fail_on is not None and not result.findings and result.verdict.level != "protected":
        reasons = "; ".join(f"{attack}: {reason}" for attack, reason in result.not_run.items())
        raise InputError(f"no attack could be run, so the gate says nothing ({reasons})")
    failing = {"exposed": ("exposed",), "unproven": ("exposed", "unproven"), None: ()}[fail_on]
    if result.verdict.level in failing:
        raise typer.Exit(_EXIT_GATE)


@app.command(short_help="Write a protected release with a manifest of its guarantee.")
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
            metavar="<float>", help="Privacy budget of the methods that have one; 1.0 when not given."
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
    rows: Annotated[
        int | None, typer.Option(help="Of a synthetic release; as many as the table has when not given.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Repeatable, for experiments only.")] = None,
    ledger: Annotated[
        str | None, typer.Option(help="Charge the release to this ledger; see oversafe budget create.")
    ] = None,
    dataset: Annotated[str | None, typer.Option(help="Whose budget in the ledger it is charged to.")] = None,
    ledger_key: LedgerKeyOption = None,
    record_unproven: Annotated[
        bool,
        typer.Option(
            "--record-unproven", help="Write a release without a proven guarantee into the history."
        ),
    ] = False,
    json_output: Annotated[bool, typer.Option("--json", help="Print JSON instead of sentences.")] = False,
    drop_unlabelled: DropUnlabelledOption = False,
    separator: SeparatorOption = None,
    decimal: DecimalOption = None,
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

        _console().print(explanation(method), markup=False, highlight=False)
        return
    example = "oversafe protect table.csv --label y --out release.csv"
    if table is None:
        raise InputError(f"the table is missing; try: {example}")
    check_label_given(label, example)
    if out is None:
        raise InputError(f"--out is missing; try: {example}")
    assert label is not None
    # Everything that the arguments alone show is told before a library is loaded, a table read or a budget charged.
    budget = number_of("--epsilon", epsilon)
    check_seed(seed)
    if rows is not None and rows < 1:
        raise InputError(f"--rows {rows} was given; it is at least 1, and for synthetic tables only")
    if label in (drop or ()):
        raise InputError(f"the label column {label!r} cannot be left out; name another column")
    check_release(out, inputs=(table, schema), overwrite=overwrite)
    check_style(out, out_separator, out_decimal)
    chosen = _settings(setting or [])
    from dataclasses import asdict, replace

    from oversafe.data import Schema
    from oversafe.privacy import write_release
    from oversafe.protect.base import check_labels
    from oversafe.protect.methods import make_protector

    declared = None if schema is None else replace(Schema.from_toml(schema), label=label)
    left_out = set(drop or ())
    if declared is not None:
        if declared.person is not None:
            # It says whose row it is, which no release carries.
            left_out.add(declared.person)
        declared = declared.drop(left_out.intersection(declared.names))
    account = _account(ledger, dataset, ledger_key, record_unproven)
    protector = make_protector(
        method,
        epsilon=budget,
        schema=declared,
        balance=balance,
        random_state=seed,
        quasi_identifiers=quasi_identifier,
        settings=chosen,
        ledger=account,
    )

    if label in left_out:
        raise InputError(f"the label column {label!r} cannot be left out; name another column")
    if rows is not None and not hasattr(protector, "sample"):
        raise InputError(f"--rows {rows} was given; it is at least 1, and for synthetic tables only")
    large = _table_to_read_in_place(table, protector)
    frame = (
        large
        if large is not None
        else _read(table, {"separator": separator, "decimal": decimal, "encoding": encoding})
    )
    check_columns_given(left_out, frame.columns)
    if large is None:
        frame = labelled(frame, label, table, drop=drop_unlabelled)
    elif drop_unlabelled:
        raise InputError(
            "--drop-unlabelled is for tables that fit into memory; leave the rows out beforehand"
        )
    frame = frame.drop(*left_out) if large is not None else frame.drop(columns=list(left_out))
    described = declared if declared is not None else Schema.infer(frame, label=label)
    if naming := described.naming_columns:
        raise InputError(
            f"column {naming[0]!r} seems to hold {described[naming[0]].naming}, which a release must not carry; "
            f"leave it out with --drop {shlex.quote(naming[0])}, or declare what it is: oversafe schema init"
        )
    if large is None:
        frame = described.conform(frame)
        check_labels(frame[label])
    elif rows is None and (found := int(frame.count().execute())) > _MOST_ROWS:
        raise InputError(f"the table has {found} rows; say how many the release is to have with --rows")
    if (warning := weak_epsilon(protector.get_params().get("epsilon"))) is not None:
        _note(warning)
    console = _console()
    with _progress(console, protector, f"Protecting with {method}"), ledger_notes():
        if large is not None:
            X, y = protector.fit_source(frame, label).sample(rows)
        elif rows is not None:
            X, y = protector.fit(frame.drop(columns=label), frame[label]).sample(rows)
        else:
            X, y = protector.fit_resample(frame.drop(columns=label), frame[label])
        entry = None if account is None else _ledger_entry(protector, account, method)
        release = _with_labels(X, label, y, list(frame.columns).index(label))
        settings = {
            "method": method,
            **{k: str(v) for k, v in protector.get_params().items() if k not in ("schema", "ledger")},
        }
        write_release(
            release, out, protector.guarantee_, settings, entry, separator=out_separator, decimal=out_decimal
        )
    if json_output:
        facts = {
            "release": str(out),
            "rows": len(release),
            "guarantee": protector.guarantee_.to_dict(),
            "settings": settings,
            "ledger_entry": entry,
            "budget": None if account is None else asdict(account.remaining()),
        }
        typer.echo(json.dumps(facts, indent=2, ensure_ascii=False))
        return
    console.print(showable(str(protector.guarantee_)), soft_wrap=True, markup=False, highlight=False)
    console.print(
        f"Release: {out} ({counted(len(release), 'row')})", soft_wrap=True, markup=False, highlight=False
    )
    if out_separator is None and out_decimal is None and out.suffix.lower() == ".csv" and large is None:
        from oversafe.data.files import separator_of

        if (between := separator_of(table)) not in (None, ","):
            console.print(
                f"It is UTF-8 text with commas between the fields and a point in the numbers, though the table has "
                f"{between!r} between the fields; for a German Excel add --out-separator ';' --out-decimal ','.",
                soft_wrap=True,
                markup=False,
                highlight=False,
            )
    if (advice := _how_to_prove(protector.guarantee_, schema, declared, table, label, drop)) is not None:
        console.print(advice, soft_wrap=True, markup=False, highlight=False)
    if account is not None:
        console.print(f"Budget: {account.remaining()}", soft_wrap=True, markup=False, highlight=False)


app.command(short_help="Protections of your own table beside each other.")(compare)
app.command(short_help="A paper's tables, published and measured.")(reproduce)


@app.command("app", short_help="The same in a browser, on this machine alone.")
def web_page(
    port: Annotated[int | None, typer.Option(help="Of this machine's loopback address; a free one.")] = None,
    max_size: Annotated[int, typer.Option(help="Megabytes that a file may have.")] = 200,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
) -> None:
    """Open a page on this machine: drop a table, audit or protect it, download the result.

    It listens on the loopback address alone, sends nothing, and keeps nothing when it ends.

    Examples:  oversafe app   |   oversafe app --port 9000 --max-size 500 --no-browser
    """
    import webbrowser

    from oversafe.app.server import serve

    def tell(address: str) -> None:
        typer.echo(f"The page is at {address}; end it with Ctrl-C.")
        if browser:
            webbrowser.open(address)

    if code := serve(port, max_size, on_start=tell):
        raise typer.Exit(code)


@schema_app.command("init")
def schema_init(
    table: Annotated[str, typer.Argument(help=TABLE)],
    label: Annotated[
        str | None, typer.Option("--label", "-l", help="The column that holds the class.")
    ] = None,
    person: Annotated[str | None, typer.Option(help="The column that says whose row it is.")] = None,
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
        check_schema_file(out, inputs=(table,), overwrite=overwrite)
    from oversafe.data import Schema

    frame = _read(table, {"separator": separator, "decimal": decimal, "encoding": encoding})
    gaps = None
    if label in frame.columns:
        assert label is not None
        gaps = unlabelled(frame, label, table)
        frame = labelled(frame, label, table, drop=True)
    found = Schema.infer(frame, label=label, person=person)
    text = found.to_toml(out)
    if out is None:
        typer.echo(text, nl=False)
    if gaps is not None:
        _note(f"{gaps}; left out here, and the other commands need --drop-unlabelled, or a corrected file")
    for name in found.naming_columns:
        _note(
            f"column {name!r} seems to hold {found[name].naming}: leave it out of a release with "
            f"--drop {shlex.quote(name)}, or declare another kind"
        )
    if out is not None:
        typer.echo(f"Schema: {out} ({counted(len(found), 'column')})")
        typer.echo(
            "Next, open it in a text editor, correct the ranges and categories to what is publicly known, and write "
            'domain = "public" with a source for each such column: only then is a guarantee proven.'
        )


@schema_app.command("check")
def schema_check(
    table: Annotated[str, typer.Argument(help=TABLE)],
    schema: Annotated[Path, typer.Option(help="The schema to hold it against.")],
    drop: Annotated[
        list[str] | None, typer.Option(help="A column to leave out, such as a name; may be given again.")
    ] = None,
    drop_unlabelled: DropUnlabelledOption = False,
    json_output: Annotated[bool, typer.Option("--json", help="Print JSON instead of sentences.")] = False,
    separator: SeparatorOption = None,
    decimal: DecimalOption = None,
    encoding: EncodingOption = None,
) -> None:
    """Say whether a table fits a schema, and what a guarantee could rest on.

    Examples:  oversafe schema check t.csv --schema schema.toml   |   oversafe schema check t.csv --schema schema.toml
    --json
    """
    from oversafe.data import Schema

    declared = Schema.from_toml(schema)
    frame = _read(table, {"separator": separator, "decimal": decimal, "encoding": encoding})
    check_columns_given(drop or (), frame.columns)
    frame = frame.drop(columns=list(drop or ()))
    declared = declared.drop(set(drop or ()).intersection(declared.names))
    if declared.label is not None:
        frame = labelled(frame, declared.label, table, drop=drop_unlabelled)
    declared.conform(frame)
    private = [c.name for c in declared if c.domain == "data" and not c.names_people]
    if json_output:
        facts = {"columns": len(declared), "naming": list(declared.naming_columns), "from_the_data": private}
        typer.echo(json.dumps(facts, indent=2, ensure_ascii=False))
        return
    typer.echo(f"The table fits the schema ({counted(len(declared), 'column')}).")
    if naming := declared.naming_columns:
        typer.echo(
            f"Identifiers or free text, to be left out with --drop or declared as another kind: "
            f"{listed(naming, most=_MOST_NAMES)}."
        )
    if private:
        typer.echo(
            f"Ranges or categories read from the data, so that no guarantee is proven: "
            f"{listed(private, most=_MOST_NAMES)}."
        )
        typer.echo(f'To prove one, write domain = "public" and a source for each of them in {str(schema)!r}.')


def _with_labels(X: pd.DataFrame, label: str, y: Any, position: int) -> pd.DataFrame:
    """Return a table with the labels where they stood; of columns by the thousand, each is moved once."""
    import pandas as pd

    labels = pd.Series(y, name=label).set_axis(X.index)
    return pd.concat([X.iloc[:, :position], labels, X.iloc[:, position:]], axis=1)


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


def _ledger_entry(protector: Protector, account: DatasetLedger, method: str) -> str | None:
    if "ledger" in protector.get_params():
        return protector.ledger_entry_
    if protector.guarantee_.status != "none":
        raise InputError(f"the method {method!r} cannot be charged to a ledger; leave --ledger out")
    return account.charge(protector.guarantee_, what=type(protector).__name__).id


def _how_to_prove(
    guarantee: Guarantee,
    file: Path | None,
    declared: Schema | None,
    table: str,
    label: str,
    drop: list[str] | None,
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
        names = [c.name for c in declared if c.domain != "public"]
        return (
            f"To prove it: {what} in {str(file)!r} for each of these columns, after correcting their ranges and "
            f"categories to what is publicly known: {listed(names, most=_MOST_NAMES)}."
        )
    from oversafe.report.audit import without_password

    columns = "".join(f" --drop {shlex.quote(name)}" for name in drop or ())
    source, class_column = shlex.quote(without_password(table)), shlex.quote(label)
    return (
        f"To prove it: oversafe schema init {source} --label {class_column} --out schema.toml, then correct the ranges "
        f"and categories in schema.toml to what is publicly known, and {what} for each column, then: "
        f"oversafe protect {source} --label {class_column}{columns} --schema schema.toml --out RELEASE.csv"
    )


def _table_to_read_in_place(source: str, protector: Any) -> Any | None:
    """Return the Ibis table of a folder or a database that a method can learn without loading it, or None."""
    in_place = "://" in source or Path(source).is_dir()
    if not in_place or not hasattr(protector, "fit_source") or protector.schema is None:
        return None
    if (protector.domains, protector.binning) != ("data", "uniform"):
        # Estimated from a table in memory.
        return None
    from oversafe.data._sources import open_table

    return open_table(source)


def _read(source: str, options: dict[str, str | None]) -> pd.DataFrame:
    from oversafe.data import read_table

    return read_table(source, **options)


def _audit_command(
    release: str,
    label: str,
    real: str | None,
    holdout: str | None,
    time_limit: str | None,
    options: dict[str, str | None],
    *,
    drop_unlabelled: bool = False,
) -> str:
    """Return the command that repeats an audit, for its report; a database's password is not in it."""
    from oversafe.report.audit import without_password

    words = ["oversafe", "audit", without_password(release), "--label", label]
    tables = {
        name: without_password(t) for name, t in (("real", real), ("holdout", holdout)) if t is not None
    }
    for name, value in {**tables, "time-limit": time_limit, **options}.items():
        if value is not None:
            words += [f"--{name}", value]
    words += ["--drop-unlabelled"] if drop_unlabelled else []
    return shlex.join(words)


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


@contextmanager
def _progress(console: Console, protector: Protector, title: str) -> Iterator[None]:
    """Show how far a protector is; one that does not tell shows only that it is at work."""
    with _bar(console) as shown:
        task = shown.add_task(title, total=None)
        protector.on_progress = lambda step, share: shown.update(
            task, description=step, total=1.0, completed=share
        )
        try:
            yield
        finally:
            protector.on_progress = None


@contextmanager
def _audit_progress(console: Console) -> Iterator[Callable[[str, float], None]]:
    """Show which attack runs, how much is done and how long the rest will take."""
    with _bar(console) as shown:
        task = shown.add_task("Reading", total=None)
        yield lambda step, share: shown.update(task, description=showable(step), total=1.0, completed=share)


def _bar(console: Console) -> Progress:
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        TextColumn("so far,"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def _console() -> Console:
    return console_of_the_output()


def _note(message: str) -> None:
    """Print a sentence beside the result, where it does not disturb whoever reads that."""
    print("oversafe: " + showable(" ".join(message.split())), file=sys.stderr)


def _fail(message: str, code: int) -> None:
    print("oversafe: " + showable(" ".join(message.split())), file=sys.stderr)
    sys.exit(code)
