"""Experiments: repeated work that is stored as it goes on, and resumes after a stop."""

from oversafe.experiment.compare import compare
from oversafe.experiment.grid import run_grid
from oversafe.experiment.reproduce import Reproduction, reproduce

__all__ = ["Reproduction", "compare", "reproduce", "run_grid"]
