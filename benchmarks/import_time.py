"""What ``import`` costs, each in a fresh interpreter: the command line pays it at every start."""

from __future__ import annotations

from pathlib import Path

from benchmarks.runner import Side, in_a_fresh_process

SUMMARY = "`import oversafe` against `import imblearn`"


def sides(quick: bool, folder: Path) -> list[Side]:
    """Return the two imports; there is no smaller version of them."""
    return [
        Side("import oversafe", in_a_fresh_process("import oversafe"), ["oversafe"]),
        Side("import imblearn", in_a_fresh_process("import imblearn"), ["imbalanced-learn", "scikit-learn"]),
    ]
