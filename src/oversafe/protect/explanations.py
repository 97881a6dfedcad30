"""What a method does, promises and does not promise, in words for whoever has to choose."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Explanation:
    """A method in plain words.

    Parameters
    ----------
    does : str
        What comes out.
    promises : str
        What holds whatever an outsider knows, or that nothing does.
    does_not : str
        What one might expect of it and must not.
    """

    does: str
    promises: str
    does_not: str


# Of methods that see the data through noisy counts alone.
COUNTED = (
    "Differential privacy with the given epsilon for every record, if the schema declares public ranges and "
    "categories or domains='private' pays for them; otherwise the figure is nominal."
)
