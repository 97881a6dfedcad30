"""The two errors that a user can mend, and how optional parts are imported."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType

# A path is hardly ever longer; the name of a column, or a value in it, may be.
_LONG_WORD = re.compile(r"\S{1001,}")


class InputError(ValueError):
    """What was given cannot be used; the message says what, what was expected, and what to do.

    The command line prints the message and ends with exit code 2. What is quoted in it is cut where it is longer than a
    person would read.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(_LONG_WORD.sub(lambda word: f"{word[0][:80]}…{word[0][-40:]}", str(message)))


class MissingExtraError(ImportError):
    """An optional part is not installed; the message names the command that installs it."""


def was_interrupted(error: BaseException) -> bool:
    """Whether an error is a Ctrl-C; one that arrives within compiled code comes out as the cause of a SystemError."""
    if isinstance(error, SystemError):
        return isinstance(error.__cause__, KeyboardInterrupt)
    return isinstance(error, KeyboardInterrupt)


@contextmanager
def when_stopped(told: Callable[[], str]) -> Iterator[None]:
    """Have a Ctrl-C within the block say what stands, after what it says already."""
    try:
        yield
    except (KeyboardInterrupt, SystemError) as error:
        if not was_interrupted(error):
            raise
        said = str(error) if isinstance(error, KeyboardInterrupt) else ""
        raise KeyboardInterrupt("; ".join(filter(None, (said, told())))) from error


def import_extra(module: str, extra: str, purpose: str) -> ModuleType:
    """Return an optional module, or say in one sentence how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{purpose} needs the optional package '{module.partition('.')[0]}'; "
            f"install it with: pip install 'oversafe[{extra}]'"
        ) from error
