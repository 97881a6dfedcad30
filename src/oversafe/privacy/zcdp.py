"""Between zero-concentrated differential privacy and (epsilon, delta)."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import lru_cache

from oversafe._core.errors import InputError

# The conversions are minimised in floats; what they return is moved to the safe side by more than that can lose.
_SAFE = 1e-12


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Return an epsilon such that every rho-zCDP mechanism is (epsilon, delta)-DP, the least that is known."""
    check_rho(rho)
    _check_open(delta)
    log = -math.log(delta)
    # Near the best order of Bun and Steinke's simpler conversion.
    near = math.log(log / rho) / 2
    return max(0.0, _least(lambda s: rho * (1 + math.exp(s)) + _conversion(s, delta), near)) * (1 + _SAFE)


@lru_cache(maxsize=1024)
def zcdp_rho(epsilon: float, delta: float) -> float:
    """Return a rho such that every rho-zCDP mechanism is (epsilon, delta)-DP, the largest that is known."""
    if not 0 < epsilon <= sys.float_info.max:
        raise InputError(f"epsilon = {epsilon!r} was given; it is a finite number above 0, such as 1.0")
    _check_open(delta)
    log = -math.log(delta)
    rho = epsilon**2 / (math.sqrt(epsilon + log) + math.sqrt(log)) ** 2
    near = math.log(log / rho) / 2
    found = -_least(lambda s: -(epsilon - _conversion(s, delta)) / (1 + math.exp(s)), near)
    return max(found, rho) * (1 - _SAFE)


def check_rho(rho: float) -> None:
    """Refuse a rho that means nothing."""
    if isinstance(rho, bool) or not isinstance(rho, int | float) or not 0 < rho <= sys.float_info.max:
        raise InputError(f"rho = {rho!r} was given; it is a finite number above 0, such as 0.1")


def _check_open(delta: float) -> None:
    if not 0 < delta < 1:
        raise InputError(
            f"delta = {delta!r} was given; zCDP is stated at a delta between 0 and 1, such as 1e-9"
        )


def _least(cost: Callable[[float], float], near: float) -> float:
    """Return the least cost of a Renyi order 1 + e^s; every order gives a valid bound."""
    from scipy.optimize import minimize_scalar

    return float(
        minimize_scalar(
            cost, bounds=(near - 6, near + 6), method="bounded", options={"xatol": 1e-10, "maxiter": 200}
        ).fun
    )


def _conversion(s: float, delta: float) -> float:
    """Return epsilon less the Renyi divergence of order 1 + e^s (Canonne, Kamath and Steinke 2020, Proposition 12)."""
    return -math.log1p(math.exp(-s)) - (math.log(delta) + math.log1p(math.exp(s))) / math.exp(s)
