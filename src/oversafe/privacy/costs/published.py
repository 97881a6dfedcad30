"""The costs as one paper states them, beside those that hold; for comparison only, never for a guarantee."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from oversafe.privacy.costs.oversampling import smote_budget, smote_cost

if TYPE_CHECKING:
    import pandas as pd

_SETTINGS: dict[str, Any] = {"dimensions": 25, "k_neighbors": 5}
_DELTA = 1e-8  # 1 / n^2 with n = 10,000
# The smallest n_minority in the table of n = 10,000 for which one added row per record balances the classes.
_BALANCED = 3333
_RESULTING = {1.0: 213.21, 5.0: 1066.06, 10.0: 2132.1}
_REQUIRED = {1.0: 0.00469, 5.0: 0.02346, 10.0: 0.04692}


def paper_smote_epsilon(
    epsilon: float,
    *,
    n_minority: int,
    n_added: int,
    dimensions: int,
    k_neighbors: int = 5,
    gamma: float | None = None,
) -> float:
    """Return the epsilon of Theorem 3 of "Differential Privacy Under Class Imbalance", which does NOT hold.

    Parameters
    ----------
    epsilon : float
        The mechanism's own.
    n_minority, n_added, dimensions, k_neighbors : int
        As in :func:`~oversafe.privacy.smote_cost`.
    gamma : float, optional
        For the form with a delta; None for the one without.
    """
    factor = 2 ** (0.4042 * dimensions) * -(-n_added // n_minority)
    return epsilon * (factor + 1) if gamma is None else epsilon * (1 + gamma) * factor / k_neighbors


def paper_smote_delta(
    epsilon: float,
    *,
    n_minority: int,
    n_added: int,
    dimensions: int,
    k_neighbors: int = 5,
    gamma: float = 0.0,
) -> float:
    """Return the delta that goes with it, which is often above 1: at gamma = 0, always."""
    factor = k_neighbors * 2 ** (0.4042 * dimensions) * -(-n_added // n_minority)
    exponent = factor * (epsilon - gamma**2 / (k_neighbors * (2 + gamma)))
    return math.exp(exponent) if exponent < 709 else math.inf


def paper_bagging_cost(n_estimators: int, n_samples: int, n_records: int) -> tuple[float, float]:
    """Return the epsilon and delta of bagging with learners that are not private, as Proposition 4 takes them."""
    draws = n_estimators * n_samples
    return draws * math.log1p(1 / n_records), -math.expm1(draws * math.log1p(-1 / n_records))


def advanced_composition(epsilon: float, count: int, slack: float) -> float:
    """Return the epsilon of ``count`` epsilon-DP mechanisms at delta = ``slack``, as Section 4.1 states it."""
    return epsilon * math.sqrt(2 * count * math.log(1 / slack)) + count * epsilon * math.expm1(epsilon)


def smote_table() -> pd.DataFrame:
    """Return the paper's Table 2 beside its own formula and the figure that holds.

    The table has 25 columns, 5 neighbours, delta = 1e-8, and one added row per minority record; it leaves open how
    many of these there are, on which the true figure depends. With 10,000 rows, 3,333 of them are balanced by one row
    each.

    Returns
    -------
    DataFrame
        ``what`` and ``epsilon`` name the cell; ``published`` is the paper's figure, ``formula`` what Theorem 3 gives,
        ``formula_delta`` the delta it comes with, and ``n_minority = ...`` what holds at delta = 1e-8.
    """
    import pandas as pd

    rows = []
    for what, cells in (("input required", _REQUIRED), ("resulting", _RESULTING)):
        for epsilon, published in cells.items():
            row: dict[str, Any] = {"what": what, "epsilon": epsilon, "published": published}
            size = {"n_minority": _BALANCED, "n_added": _BALANCED}
            factor = paper_smote_epsilon(1.0, gamma=0.0, **size, **_SETTINGS)
            inside = epsilon if what == "resulting" else epsilon / factor
            row["formula"] = epsilon * factor if what == "resulting" else inside
            row["formula_delta"] = paper_smote_delta(inside, **size, **_SETTINGS)
            for n in (100, 1000, _BALANCED):
                settings: dict[str, Any] = {
                    "n_minority": n,
                    "n_added": n,
                    "target_delta": _DELTA,
                    **_SETTINGS,
                }
                if what == "resulting":
                    row[f"n_minority = {n}"] = smote_cost(epsilon, **settings).epsilon
                else:
                    row[f"n_minority = {n}"] = smote_budget(epsilon, **settings)
            rows.append(row)
    return pd.DataFrame(rows)
