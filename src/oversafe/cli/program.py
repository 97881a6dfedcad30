"""The command line: its commands, and what becomes of their errors."""

from __future__ import annotations

import _thread
import io
import os
import re
import sys
import time
from typing import Annotated, Any

import typer

from oversafe._core.errors import InputError, MissingExtraError
from oversafe.cli.account import account_app
from oversafe.cli.audit import audit
from oversafe.cli.budget import budget_app
from oversafe.cli.compare import compare
from oversafe.cli.consoles import note
from oversafe.cli.demo import demo
from oversafe.cli.keys import keys_app
from oversafe.cli.protect import protect
from oversafe.cli.reproduce import reproduce
from oversafe.cli.schema import schema_app
from oversafe.cli.web_page import web_page

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
app.command(short_help="The whole story on a medical data set, and a report.")(demo)
app.command(short_help="Attack a release: which real records can be recovered?")(audit)
app.command(short_help="Write a protected release with a manifest of its guarantee.")(protect)
app.command(short_help="Protections of your own table beside each other.")(compare)
app.command(short_help="A paper's tables, published and measured.")(reproduce)
app.command("app", short_help="The same in a browser, on this machine alone.")(web_page)
app.add_typer(schema_app, name="schema")
app.add_typer(account_app, name="account")
app.add_typer(budget_app, name="budget")
app.add_typer(keys_app, name="keys")

_EXIT_INPUT, _EXIT_DEFECT, _EXIT_INTERRUPTED = 2, 3, 130
_SECONDS_UNTIL_AGAIN = 0.05


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Show the version.", is_eager=True)] = False,
) -> None:
    if version:
        from oversafe import __version__

        typer.echo(f"oversafe {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line; errors a user can mend are one sentence, exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        # A locale without UTF-8 must not end a command because a column's name has an umlaut.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    dropped, sys.unraisablehook = sys.unraisablehook, _send_again
    try:
        # A pipe whose reader has gone is typer's to handle.
        _command()(prog_name="oversafe")
    except (InputError, MissingExtraError) as error:
        note(str(error))
        sys.exit(_EXIT_INPUT)
    except BaseException as error:
        if (stop := _stop_behind(error)) is not None:
            note("; ".join(filter(None, ("stopped", str(stop)))))
            sys.exit(_EXIT_INTERRUPTED)
        if not isinstance(error, Exception) or os.environ.get("OVERSAFE_DEBUG"):
            raise
        note(
            f"a defect of oversafe: {type(error).__name__}: {error} "
            "(set OVERSAFE_DEBUG=1 to see where, and please report it)"
        )
        sys.exit(_EXIT_DEFECT)
    finally:
        sys.unraisablehook = dropped


def _command() -> Any:
    """Return the command line with each command's examples on lines of their own."""
    command = typer.main.get_command(app)
    waiting: list[Any] = [command]
    while waiting:
        each = waiting.pop()
        each.help = _with_examples(each.help)
        waiting += getattr(each, "commands", {}).values()
    return command


def _stop_behind(error: BaseException | None) -> KeyboardInterrupt | None:
    """Return the Ctrl-C behind an end: typer makes an exit of it, and compiled code a SystemError."""
    while isinstance(error, SystemExit | typer.Exit | SystemError):
        error = error.__cause__ or error.__context__
    return error if isinstance(error, KeyboardInterrupt) else None


def _send_again(lost: Any) -> None:
    """Send a Ctrl-C once more that arrived where Python drops exceptions, as while code is compiled."""
    if lost.exc_type is None or not issubclass(lost.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
        return
    while True:
        try:
            # Not a Timer, which waits until it runs: on a busy machine what it sends would arrive here and be dropped.
            _thread.start_new_thread(_interrupt_later, ())
            return
        except KeyboardInterrupt:
            continue


def _interrupt_later() -> None:
    time.sleep(_SECONDS_UNTIL_AGAIN)
    _thread.interrupt_main()


def _with_examples(text: str | None) -> str | None:
    """Return a help text whose "Examples: one | other" stand below each other, and are not wrapped."""
    start, found, examples = (text or "").partition("Examples:")
    if not found:
        return text
    lines = [" ".join(example.split()) for example in re.split(r"\s+\|\s+", examples.strip())]
    return "\n".join([start.rstrip(), "", "\b", "Examples:", *(f"  {line}" for line in lines)])
