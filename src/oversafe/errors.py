"""The two errors that a user can mend, and how optional parts are imported."""

from importlib import import_module
from types import ModuleType


class InputError(ValueError):
    """What was given cannot be used; the message says what, what was expected, and what to do.

    The command line prints the message and ends with exit code 2.
    """


class MissingExtraError(ImportError):
    """An optional part is not installed; the message names the command that installs it."""


def import_extra(module: str, extra: str, purpose: str) -> ModuleType:
    """Return an optional module, or say in one sentence how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{purpose} needs the optional package '{module.partition('.')[0]}'; "
            f"install it with: pip install 'oversafe[{extra}]'"
        ) from error
