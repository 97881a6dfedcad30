"""Where rows lie on the way between records: beyond them, or in one half only."""

from __future__ import annotations

import numpy as np
from scipy.stats import binom

from oversafe.attack.geometry.sampler.traces import Finding, Traces

# Of rows between records so many seem to lie beyond one at most, because the record behind them is unknown: none of
# 70,000 did on 12 development sets.
_BEYOND = 0.005
# Differences that arithmetic explains.
_ROUNDING = 1e-6
# How many records are of another class, before the rows are looked at.
_OTHERS = 0.1
# Where half of the rows lead at most half the way, two thirds of all lie in the outer quarters; taken less.
_OUTER = 0.6


def extrapolated(traces: Traces) -> Finding:
    """Return whether rows lie beyond a record, on the line to another."""
    share = traces.share[traces.known]
    outside = int(((share < -_ROUNDING) | (share > 1 + _ROUNDING)).sum())
    p = float(binom.sf(outside - 1, len(share), _BEYOND)) if outside else 1.0
    part = outside / max(1, len(share))
    return Finding(f"{part:.0%} of the rows lie beyond a record, on the line to another", p)


def of_two_classes(traces: Traces) -> Finding:
    """Return whether some records are never the nearer one: BorderlineSMOTE-2 goes at most half the way to them.

    The likelihood ratio of the best choice of such records, times the prior of that choice, is a bound from below on
    that of the mixture over all choices: by Markov's inequality it exceeds 1 / p with probability p at most where the
    places are uniform.
    """
    use = traces.known & (traces.share >= 0) & (traces.share <= 1)
    ends, share = traces.ends[use], traces.share[use]
    r = len(traces.places)
    rows, near = np.zeros(r, dtype=np.int64), np.zeros(r, dtype=np.int64)
    for side in (0, 1):
        np.add.at(rows, ends[:, side], 1)
        np.add.at(near, ends[:, side], (np.abs(share - side) < 0.5).astype(np.int64))
    others = (near == 0) & (rows > 0)
    # Rows between two of them show nothing.
    one = others[ends[:, 0]] != others[ends[:, 1]]
    way = np.where(others[ends[:, 1]], share, 1 - share)[one]
    # The product of a uniform share and one up to a half.
    gain = np.log(np.maximum(-2 * np.log(np.maximum(2 * way, 1e-300)), 1e-300))
    by_record = np.zeros(r)
    np.add.at(by_record, np.where(others[ends[one, 1]], ends[one, 1], ends[one, 0]), gain)
    odds = np.log(_OTHERS / (1 - _OTHERS))
    chosen = others & (by_record + odds > 0)
    log_ratio = float((by_record[chosen] + odds).sum() + r * np.log(1 - _OTHERS)) if chosen.any() else -np.inf
    count = int(chosen.sum())
    return Finding(
        f"rows come never nearer than half the way to {count} of the {r} records, as to those of another class",
        float(np.exp(min(0.0, -log_ratio))),
    )


def of_one_class(traces: Traces) -> Finding:
    """Return whether rows lie evenly: BorderlineSMOTE-2, half of whose rows stay near one end, is excluded."""
    share = traces.share[traces.known]
    share = share[(share >= 0) & (share <= 1)]
    outer = int((np.abs(2 * share - 1) > 0.5).sum())
    return Finding("rows lie evenly between their records", float(binom.cdf(outer, len(share), _OUTER)))
