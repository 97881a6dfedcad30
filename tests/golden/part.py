"""A part of the golden cases in a program of its own: ``python -m tests.golden.part NAMES.json MADE.pickle``."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path

from tests.golden.case import tried_all

if __name__ == "__main__":
    names, made = map(Path, sys.argv[1:])
    made.write_bytes(pickle.dumps(tried_all(json.loads(names.read_text()))))
