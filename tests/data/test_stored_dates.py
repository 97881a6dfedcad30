"""Dates far off are moved to the nearest one that there is, whatever holds them, and end nothing."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from oversafe.data import Column, Schema, read_table
from oversafe.data.bins import Bins
from oversafe.data.dates import in_unit

PUBLIC = {"bounds": ("2001-01-01", "2001-02-01"), "domain": "public", "source": "a test"}
FAR = 632_000_000_000_000_000  # in the year 21997


@pytest.mark.parametrize("dtype", [f"datetime64[{kind}]" for kind in ("ns", "us", "s", "us, Europe/Berlin")])
@pytest.mark.parametrize("resolution", ["D", "s", "ns", None])
def test_a_far_date_in_a_file(tmp_path, dtype, resolution):
    column = Column("d", "datetime", dtype, resolution=resolution, **PUBLIC)
    for odd in ("9999-12-31", "0001-01-01", "1677-09-21T00:12:43.145224193", "9999-12-31 23:59-14:00"):
        (tmp_path / "t.csv").write_text(f"d\n2001-01-05\n{odd}\n")
        read = read_table(tmp_path / "t.csv", schema=Schema((column,)))
        assert read["d"].dtype == column.dtype
        cells = Bins(column, 4).assign(read["d"])
        assert cells[0] == 0 and cells[1] == (3 if odd[0] == "9" else 0)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_a_far_date_in_arrow_and_in_frames(unit, zone):
    per = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    near, far = 978_600_000 * per, min(FAR // 10**6 * per, 2**63 - 1)
    values = pa.array([near, far, -far, None], pa.timestamp(unit, zone))
    for column in (
        Column("d", "datetime", "datetime64[us]", missing=True, resolution="D", **PUBLIC),
        Column(
            "d",
            "categorical",
            "str",
            missing=True,
            categories=("2001-01-04", "x"),
            domain="public",
            source="a test",
        ),
        Column("d", "integer", "int64", missing=True, bounds=(0, 9), domain="public", source="a test"),
    ):
        with pytest.warns(UserWarning) if column.kind == "integer" else _nothing():
            read = read_table(pa.table({"d": values}), schema=Schema((column,)))["d"]
        frame = pd.Series(pd.arrays.ArrowExtensionArray(values))
        bins = Bins(column, 4)
        assert bins.assign(read).tolist() == bins.assign(frame).tolist()
        if column.kind == "datetime":
            assert bins.assign(frame).tolist() == [0, 3, 0, 4]


class _nothing:
    def __enter__(self):
        return None

    def __exit__(self, *_):
        return None


def test_units_are_exchanged_within_the_years_that_dates_have():
    ticks = np.array([0, 1, -1, 2**62, -(2**62)])
    assert in_unit(ticks, "us", "s").tolist()[:3] == np.array([0, 0, -1], "datetime64[s]").tolist()
    assert (
        str(in_unit(ticks, "s", "us")[3]).startswith("9999-12-31")
        and str(in_unit(ticks, "s", "us")[4])[:4] == "0001"
    )
    assert str(in_unit(ticks, "s", "ns")[3])[:4] == "2262" and str(in_unit(ticks, "s", "ns")[4])[:4] == "1677"
