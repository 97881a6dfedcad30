"""Compiled loops of completion: what rows say about the values at their ends."""

from __future__ import annotations

import math

import numpy as np

from oversafe._core.compiled import compiled


@compiled
def carry_over(values, error, share, slack, ends, found, doubt, step, noise, snap):
    """Carry known values of one column along the rows to their other ends, in place, the surest way there."""
    for _ in range(100):
        changed = False
        for i in range(len(values)):
            for side in range(2):
                known, other = ends[i, side], ends[i, 1 - side]
                near = 1.0 - share[i] if side == 0 else share[i]
                far = 1.0 - near
                if not math.isfinite(doubt[known]) or far <= 0.0:
                    continue
                value = (values[i] - near * found[known]) / far
                off = (error[i] + near * doubt[known] + slack[i] * abs(value - found[known])) / far
                if not off < 0.5 * doubt[other]:
                    continue
                if step > 0.0 and off < snap * step:
                    whole = np.rint(value / step) * step
                    if abs(value - whole) > off + noise:
                        continue
                    value, off = whole, noise
                    if not off < 0.5 * doubt[other]:
                        continue
                found[other], doubt[other] = value, off
                changed = True
        if not changed:
            break


@compiled
def check(values, error, share, slack, ends, found, doubt):
    """Return how many rows confirm and how many contradict the values of one column at each point."""
    confirm, contradict = np.zeros(len(found)), np.zeros(len(found))
    for i in range(len(values)):
        a, b = ends[i, 0], ends[i, 1]
        if math.isfinite(doubt[a]) and math.isfinite(doubt[b]):
            u = share[i]
            off = abs((1.0 - u) * found[a] + u * found[b] - values[i])
            limit = error[i] + slack[i] * abs(found[b] - found[a]) + (1.0 - u) * doubt[a] + u * doubt[b]
            for end in ends[i]:
                if off <= 2.0 * limit:
                    confirm[end] += 1.0
                else:
                    contradict[end] += 1.0
    return confirm, contradict
