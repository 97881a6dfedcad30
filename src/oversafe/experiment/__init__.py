"""Experiments: repeated work that is stored as it goes on, and resumes after a stop."""

from oversafe.experiment.grid import run_grid

__all__ = ["run_grid"]
