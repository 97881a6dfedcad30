"""Settings are refused with what was given and what to use instead."""

from __future__ import annotations

import numpy as np
import pytest

from oversafe._core.checks import check_choice, check_count, check_positive, check_share
from oversafe._core.errors import InputError


def test_what_is_fine():
    assert check_count("n", np.int32(3)) == 3 and type(check_count("n", np.int32(3))) is int
    assert check_count("n", 0, 0) == 0 and check_count("n", 7, 1, 7) == 7
    check_share("s", np.float32(0.5), 0, 1)
    check_share("s", 1, 0, 1)
    check_positive("p", 1e-300)
    check_choice("kind", "b", ("a", "b"))


@pytest.mark.parametrize("value", [0, -1, True, 1.0, "1", None, np.nan])
def test_no_count(value):
    with pytest.raises(InputError, match=r"^n = .* was given; use a whole number of at least 1$"):
        check_count("n", value)
    with pytest.raises(InputError, match=r"use a whole number from 1 to 2,000$"):
        check_count("n", value, 1, 2000)


@pytest.mark.parametrize("value", [0, -0.5, np.inf, np.nan, True, "1", None])
def test_no_number(value):
    with pytest.raises(InputError, match=r"^p = .* was given; use a finite number above 0$"):
        check_positive("p", value)
    with pytest.raises(InputError, match=r"^s = .* was given; use a number from 0.1 to 0.9$"):
        check_share("s", value, 0.1, 0.9)


def test_no_choice():
    with pytest.raises(InputError, match=r"^kind = 'c' was given; use 'a', 2 or None$"):
        check_choice("kind", "c", ("a", 2, None))
    with pytest.raises(InputError, match=r"^n = 2001 was given"):
        check_count("n", 2001, 1, 2000)
