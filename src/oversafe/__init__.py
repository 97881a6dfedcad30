"""Attack, protect and learn from imbalanced sensitive tables.

The rooms, in the order the data flows: :mod:`oversafe.data`, :mod:`oversafe.privacy`,
:mod:`oversafe.protect`, :mod:`oversafe.learn`, :mod:`oversafe.attack`, :mod:`oversafe.measure`,
:mod:`oversafe.experiment`, :mod:`oversafe.auditing`, :mod:`oversafe.releasing`, :mod:`oversafe.papers`,
:mod:`oversafe.report`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oversafe.auditing.comparing.comparison import compare
    from oversafe.auditing.run import audit
    from oversafe.releasing.run import release

__version__ = "0.2.0.dev0"

__all__ = ["__version__", "audit", "compare", "release"]

_LAZY = {"audit": "oversafe.auditing", "compare": "oversafe.auditing", "release": "oversafe.releasing"}
_ROOMS = (
    "data",
    "privacy",
    "protect",
    "learn",
    "attack",
    "measure",
    "experiment",
    "auditing",
    "releasing",
    "papers",
    "report",
)


def __getattr__(name: str) -> Any:
    # Loaded on first use: importing the package must stay quick, and pandas alone takes half a second.
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    if name in _ROOMS:
        return import_module(f"oversafe.{name}")
    raise AttributeError(f"module 'oversafe' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_ROOMS})
