"""Results as JSON: the same values whatever the layout, and a line for each row of a table."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from oversafe.auditing.to_json import as_json, plain

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=30,
)


@given(st.dictionaries(st.text(), VALUES, max_size=5))
def test_any_document_is_read_back(document: dict[str, object]) -> None:
    assert json.loads(as_json(document)) == document


def test_each_row_of_a_table_is_a_line() -> None:
    table = pd.DataFrame({f"column {i}": [i, i + 0.5] for i in range(50)})
    lines = as_json({"evidence": plain(table), "few": [1, 2]}).splitlines()
    assert len(lines) == 7 and json.loads(lines[2].rstrip(",")) == table.iloc[0].to_dict()
    assert lines[-2] == '  "few": [1, 2]'


def test_cells_of_any_kind() -> None:
    table = pd.DataFrame(
        {
            "number": [1.5, np.nan],
            "single": np.array([0.1, np.inf], dtype=np.float32),
            "long": np.array([0.25, np.nan], dtype=np.longdouble),
            "whole": [1, -2],
            "missing": pd.array([1, None], dtype="Int64"),
            "day": pd.to_datetime(["2024-12-31", None]),
            "text": ["a", None],
            "yes": [True, False],
        }
    )
    first, second = plain(table)
    assert first == {
        "number": 1.5,
        "single": float(np.float32(0.1)),
        "long": 0.25,
        "whole": 1,
        "missing": 1,
        "day": "2024-12-31 00:00:00",
        "text": "a",
        "yes": True,
    }
    assert second == {
        "number": None,
        "single": None,
        "long": None,
        "whole": -2,
        "missing": None,
        "day": None,
        "text": None,
        "yes": False,
    }
    assert json.loads(as_json({"rows": plain(table)}))["rows"] == [first, second]
