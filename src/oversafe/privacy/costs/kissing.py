"""How many equal balls can touch one: an upper bound that holds in every dimension."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from math import comb

from oversafe._core.checks import check_count

_COSINE = Fraction(1, 2)  # of 60 degrees: two balls that touch a third and each other


def kissing_number_bound(d: int) -> int:
    """Return an upper bound on the kissing number of a dimension: Levenshtein's, in exact arithmetic.

    The kissing number is also the largest number of directions that are pairwise at least 60 degrees apart,
    which is why it bounds how often one record can be among the nearest neighbours of others.

    Parameters
    ----------
    d : int
        The dimension, from 1 to 2,000.

    Returns
    -------
    int
        Never below the kissing number; equal to it for d = 1, 2, 8 and 24.

    References
    ----------
    .. [1] V. I. Levenshtein, "Universal bounds for codes and designs", in Handbook of Coding Theory,
       Elsevier, 1998, Section 4.

    Examples
    --------
    >>> from oversafe.privacy import kissing_number_bound
    >>> [kissing_number_bound(d) for d in (1, 2, 3, 8, 24)]
    [2, 6, 13, 240, 196560]
    """
    check_count("d", d, 1, 2000)
    return 2 if d == 1 else _levenshtein(d)


@cache
def _levenshtein(d: int) -> int:
    # The bound is piecewise: L_m holds where cos 60 lies between the largest zeros of two Jacobi polynomials. Those
    # zeros rise with the degree, so the first polynomial of its family that is not positive at 1/2 says which m.
    s = _COSINE
    values, derived = _gegenbauer(d), _gegenbauer(d + 2)
    before, here, after = next(values), next(values), next(values)
    next(derived)
    k = 1
    while True:
        if here - after <= 0:
            share = (before - here) / ((1 - s) * here)
            return int(comb(k + d - 3, k - 1) * (Fraction(2 * k + d - 3, d - 1) - share))
        if next(derived) <= 0:
            share = (1 + s) * (here - after) / ((1 - s) * (here + after))
            return int(comb(k + d - 2, k) * (Fraction(2 * k + d - 1, d - 1) - share))
        before, here, after = here, after, next(values)
        k += 1


def _gegenbauer(d: int) -> Iterator[Fraction]:
    """Yield the Gegenbauer polynomials of a dimension at 1/2, each 1 at 1, in rising degree."""
    before, here, degree = Fraction(1), _COSINE, 1
    yield before
    while True:
        yield here
        step = (2 * degree + d - 2) * _COSINE * here - degree * before
        before, here, degree = here, step / (degree + d - 2), degree + 1
