"""From a table to a protected release of it: read, describe, protect, write, sign, charge."""

from oversafe.releasing.run import Release, release

__all__ = ["Release", "release"]
