"""From a table to a protected release of it: read, describe, protect, write, sign, charge."""

from oversafe.releasing.run import Release, release
from oversafe.releasing.splitting import split_rows

__all__ = ["Release", "release", "split_rows"]
