"""The bound on kissing numbers: known values below it, and a certificate that it holds."""

from fractions import Fraction
from itertools import pairwise

import pytest

from oversafe._core.errors import InputError
from oversafe.privacy import kissing_number_bound

# Configurations that exist: J. H. Conway and N. J. A. Sloane, Sphere Packings, Lattices and Groups, Table 1.5, with
# the later records of H. Cohn's table of kissing numbers (10, 11, 14: Ganzhinov 2022 and later; 17 to 21: Cohn and
# Li 2024).
KNOWN = [2, 6, 12, 24, 40, 72, 126, 240, 306, 510, 593, 840, 1154, 1932, 2564, 4320]
KNOWN += [5730, 7654, 11692, 19448, 29768, 49896, 93150, 196560]
# As printed in the literature on the linear programming bound, rounded down.
LEVENSHTEIN = [
    2,
    6,
    13,
    26,
    48,
    84,
    142,
    240,
    384,
    605,
    945,
    1478,
    2328,
    3546,
    5460,
    8364,
    12373,
    18199,
    26771,
]
LEVENSHTEIN += [39655, 59693, 88391, 130340, 196560]


def test_never_below_a_configuration_that_exists():
    for d, known in enumerate(KNOWN, 1):
        assert kissing_number_bound(d) >= known
    assert kissing_number_bound(48) >= 52_416_000
    assert kissing_number_bound(72) >= 6_218_175_600


def test_the_values_of_levenshteins_bound():
    assert [kissing_number_bound(d) for d in range(1, 25)] == LEVENSHTEIN


def test_rises_and_stays_a_number():
    bounds = [kissing_number_bound(d) for d in range(1, 201)]
    assert all(a < b for a, b in pairwise(bounds))
    # Below the simple bound by the area of caps of 30 degrees, 2^d and a little.
    assert all(b <= 2 ** (d + 1) for d, b in enumerate(bounds, 1))
    assert isinstance(kissing_number_bound(2000), int)


@pytest.mark.parametrize("d", [*range(2, 25), 30, 48, 72])
def test_a_polynomial_proves_it(d):
    """Delsarte, Goethals and Seidel 1977: f <= 0 on [-1, 1/2] with coefficients f_i >= 0, f_0 > 0 in Gegenbauer
    polynomials gives f(1) / f_0. The first holds by the form of f, the others are computed in fractions.
    """
    proven = [bound for m in range(3, 24) if (bound := certified(d, m)) is not None]
    assert int(min(proven)) == kissing_number_bound(d)


@pytest.mark.parametrize("d", [0, -1, 2.5, "3", None, True, 2001])
def test_what_is_no_dimension_is_refused(d):
    with pytest.raises(InputError, match="whole number from 1 to 2,000"):
        kissing_number_bound(d)


def times(a, b):
    product = [Fraction(0)] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            product[i + j] += x * y
    return product


def value(a, t):
    total = Fraction(0)
    for x in reversed(a):
        total = total * t + x
    return total


def divided(a, root):
    """The polynomial over (t - root), which divides it."""
    quotient, carry = [], Fraction(0)
    for x in reversed(a):
        carry = carry * root + x
        quotient.append(carry)
    assert quotient.pop() == 0
    return quotient[::-1]


def gegenbauer(d, degree):
    found = [[Fraction(1)], [Fraction(0), Fraction(1)]]
    for i in range(1, degree):
        rising = [Fraction(0), *(Fraction(2 * i + d - 2, i + d - 2) * x for x in found[i])]
        for j, x in enumerate(found[i - 1]):
            rising[j] -= Fraction(i, i + d - 2) * x
        found.append(rising)
    return found


def certified(d, m):
    """f(1) / f_0 of Levenshtein's polynomial of degree m, or None where its coefficients are not all positive."""
    s = Fraction(1, 2)
    k, even = (m + 1) // 2, m % 2 == 0
    if even:
        k = m // 2
        basis = gegenbauer(d + 2, k)
    else:
        plain = gegenbauer(d, k + 1)
        basis = [
            [
                -x
                for x in divided(
                    [x - y for x, y in zip([*plain[i], Fraction(0)], plain[i + 1], strict=True)], 1
                )
            ]
            for i in range(k + 1)
        ]
    at_k, at_before = value(basis[k], s), value(basis[k - 1], s)
    numerator = [x * at_before for x in basis[k]]
    for j, x in enumerate(basis[k - 1]):
        numerator[j] -= x * at_k
    kernel = divided(numerator, s)
    f = times(times(kernel, kernel), [-s, Fraction(1)])
    if even:
        f = times(f, [Fraction(1), Fraction(1)])
    at_one, rest, coefficients = value(f, 1), f[:], {}
    for i, p in reversed(list(enumerate(gegenbauer(d, m)[: m + 1]))):
        coefficients[i] = rest[i] / p[i]
        for j, x in enumerate(p):
            rest[j] -= coefficients[i] * x
    if min(coefficients.values()) < 0 or coefficients[0] <= 0:
        return None
    return at_one / coefficients[0]
