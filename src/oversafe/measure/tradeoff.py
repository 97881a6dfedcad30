"""Privacy against utility in one figure, and without one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe._core.errors import InputError


def tradeoff(privacy: Any, utility: Any, *, original_utility: float) -> pd.DataFrame:
    """Return the harmonic mean of scaled privacy and utility of each method [1]_, and which are on the frontier.

    Parameters
    ----------
    privacy : DataFrame, Series or array of shape (n_methods,) or (n_methods, n_figures)
        Figures of privacy, larger being more private and 0 being what the original table gives, such as
        the distances of :class:`oversafe.attack.ClosestRecord`.
    utility : Series or array of shape (n_methods,)
        The utility of each method, larger being better.
    original_utility : float
        The utility of the original table.

    Returns
    -------
    DataFrame
        One row per method: "privacy" and "utility" as scaled, "tradeoff", "rank" (1 for the best) and "frontier".

    Notes
    -----
    Each figure of privacy is divided by the largest among the methods, and their mean taken. Utility is scaled
    so that the worst method has 0 and the original table 1; a method that beats the original has more than 1.
    Both scales depend on the methods that are compared: the same method has other figures in other company, and
    the worst method always has a trade-off of 0. The frontier does not have this flaw.

    References
    ----------
    .. [1] "UMAP-SMOTENC: a simple, efficient, and consistent alternative for privacy-aware synthetic data
       generation", Section 4.2.

    Examples
    --------
    >>> import pandas as pd
    >>> from oversafe.measure import tradeoff
    >>> names = ["copies", "noise", "both"]
    >>> distance = pd.Series([0.0, 2.0, 1.0], index=names)
    >>> tradeoff(distance, pd.Series([0.9, 0.5, 0.8], index=names), original_utility=0.9)["tradeoff"].round(2).to_dict()
    {'copies': 0.0, 'noise': 0.0, 'both': 0.6}
    """
    figures = pd.DataFrame(privacy).astype(float)
    useful = pd.Series(utility).astype(float)
    if isinstance(utility, pd.Series) and isinstance(privacy, pd.DataFrame | pd.Series):
        if not figures.index.equals(useful.index):
            raise InputError("privacy and utility are about different methods; give both in the same order")
    elif len(figures) != len(useful):
        raise InputError(f"privacy of {len(figures)} methods and utility of {len(useful)} were given")
    if figures.empty or not np.isfinite(figures.to_numpy()).all() or not np.isfinite(useful).all():
        raise InputError(
            "a figure of privacy or utility is missing or infinite; leave out methods without one"
        )
    if (figures < 0).any().any():
        raise InputError("a figure of privacy is below 0; give figures that are 0 for the original table")
    best = figures.max()
    private = (figures / best.where(best > 0, 1.0)).mean(axis=1)
    worst = useful.min()
    scaled = (useful - worst) / (original_utility - worst) if original_utility > worst else useful * 0 + 1.0
    total = private.to_numpy() + scaled.to_numpy()
    mean = np.divide(
        2 * private.to_numpy() * scaled.to_numpy(), total, out=np.zeros(len(total)), where=total > 0
    )
    table = pd.DataFrame(
        {"privacy": private.to_numpy(), "utility": scaled.to_numpy(), "tradeoff": mean}, index=figures.index
    )
    table["rank"] = table["tradeoff"].rank(ascending=False)
    table["frontier"] = frontier(table["privacy"], useful)
    return table


def frontier(privacy: Any, utility: Any) -> NDArray[np.bool_]:
    """Return which methods no other beats: none is at least as good in both and better in one.

    Parameters
    ----------
    privacy, utility : array of shape (n_methods,)
        Larger is better. A method with a missing figure is not on the frontier.
    """
    points = np.column_stack([np.asarray(privacy, dtype=float), np.asarray(utility, dtype=float)])
    known = np.isfinite(points).all(axis=1)
    at_least = (points[None] >= points[:, None]).all(axis=2) & known[None]
    better = (points[None] > points[:, None]).any(axis=2)
    return known & ~(at_least & better).any(axis=1)
