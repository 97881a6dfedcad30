"""Values are drawn where the axes say that they are."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oversafe.report.plane import Plane


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20))
def test_numbers_lie_inside_and_in_order(values):
    plane = Plane(values, values, "x", "y")
    across, up = [plane.x(v) for v in sorted(values)], [plane.y(v) for v in sorted(values)]
    assert plane.left <= across[0] and across[-1] <= plane.right and across == sorted(across)
    assert plane.top <= up[-1] and up[0] <= plane.bottom and up == sorted(up, reverse=True)


def test_ticks_stand_at_their_values():
    plane = Plane([0.0, 10.0], ["low", "high"], "x", "y")
    found = dict(re.findall(r'<text x="([0-9.]+)"[^>]*middle">([0-9]+)</text>', plane.svg("", "")))
    assert {float(at) for at in found} == {plane.x(float(told)) for told in found.values()}
    assert sorted(map(int, found.values())) == [0, 2, 4, 6, 8, 10]
    # Names have a slot each, from the bottom up.
    assert plane.y("low") - plane.y("high") == pytest.approx((plane.bottom - plane.top) / 2)


def test_equal_values_have_an_axis_too():
    plane = Plane([3, 3], np.array([7.0]), "x", "y")
    assert plane.x(3) == pytest.approx((plane.left + plane.right) / 2, abs=0.01)
