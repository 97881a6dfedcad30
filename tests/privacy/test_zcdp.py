"""The conversions between zCDP and (epsilon, delta) hold and are tight."""

import math

import pytest
from dp_accounting.rdp import compute_epsilon
from scipy.stats import norm

from oversafe._core.errors import InputError
from oversafe.privacy.zcdp import zcdp_epsilon, zcdp_rho

PAIRS = [(0.001, 1e-9), (0.1, 1e-5), (1.0, 1e-9), (1.0, 0.3), (10.0, 1e-6), (100.0, 1e-12)]


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
def test_the_two_directions_agree(epsilon, delta):
    rho = zcdp_rho(epsilon, delta)
    assert zcdp_epsilon(rho, delta) == pytest.approx(epsilon, rel=1e-9)
    # Every order gives a valid bound, so some order of dp-accounting's conversion must reach epsilon.
    orders = [1 + math.exp(s / 50) for s in range(-300, 600)]
    assert compute_epsilon(orders, [rho * a for a in orders], delta)[0] == pytest.approx(epsilon, rel=1e-3)
    # Never below the simpler conversion of Bun and Steinke 2016, Proposition 1.3.
    log = -math.log(delta)
    assert rho >= (math.sqrt(epsilon + log) - math.sqrt(log)) ** 2 * (1 - 1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
def test_the_gaussian_mechanism_keeps_what_follows_from_its_rho(epsilon, delta):
    # Its exact delta (Balle and Wang 2018, Theorem 8); mu is the sensitivity over the noise.
    mu = math.sqrt(2 * zcdp_rho(epsilon, delta))
    exact = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    assert exact <= delta


@pytest.mark.parametrize("bad", [0.0, 1.0, -0.1, math.nan])
def test_bad_delta(bad):
    with pytest.raises(InputError, match="delta"):
        zcdp_rho(1.0, bad)
    with pytest.raises(InputError, match="delta"):
        zcdp_epsilon(1.0, bad)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_bad_amounts(bad):
    with pytest.raises(InputError, match="epsilon"):
        zcdp_rho(bad, 1e-9)
    with pytest.raises(InputError, match="rho"):
        zcdp_epsilon(bad, 1e-9)
