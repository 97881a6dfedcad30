"""Experiments: repeated work that is stored as it goes on, and resumes after a stop."""

from oversafe.experiment.compare import compare
from oversafe.experiment.grid import run_grid

__all__ = ["compare", "run_grid"]
