"""Compiled loops of the teachers: each is trained alone, in the order of its own rows."""

from __future__ import annotations

import numpy as np

from oversafe._core.compiled import compiled


@compiled
def score(places, weights, hidden):
    """Return a network's score of one row, and leave its hidden layer behind.

    ``weights`` holds ``len(hidden)`` numbers for each place that a row can have, then as many of the second layer,
    then its bias. A row is the list of its places.
    """
    width = len(hidden)
    for unit in range(width):
        hidden[unit] = 0.0
    for place in places:
        begin = place * width
        for unit in range(width):
            hidden[unit] += weights[begin + unit]
    second = len(weights) - 1 - width
    total = weights[len(weights) - 1]
    for unit in range(width):
        hidden[unit] = max(hidden[unit], np.float32(0.0))
        total += hidden[unit] * weights[second + unit]
    return total


@compiled
def add_gradients(rows, real, weights, hidden, gradient):
    """Add the gradient of the rows' mean loss, softplus(-score) of real rows and softplus(score) of others."""
    width = len(hidden)
    second = len(weights) - 1 - width
    for row in range(len(rows)):
        own = score(rows[row], weights, hidden)
        slope = np.float32(1.0 / (1.0 + np.exp(-own)) - real) / np.float32(len(rows))
        gradient[len(weights) - 1] += slope
        for unit in range(width):
            gradient[second + unit] += slope * hidden[unit]
            # From here on it holds what goes back through the unit, nothing where it was silent.
            if hidden[unit] > 0.0:
                hidden[unit] = slope * weights[second + unit]
        for place in rows[row]:
            begin = place * width
            for unit in range(width):
                gradient[begin + unit] += hidden[unit]


@compiled
def train(own, starts, fake, weights, mean, square, done, steps, hidden_width, rate, decay):
    """Train every teacher on its own rows and on the generated ones, by AdamW with torch's defaults.

    Teacher i has the rows ``starts[i]`` to ``starts[i + 1]`` of ``own`` and row i of ``weights``, ``mean`` and
    ``square``. It reads nothing else but ``fake``, one row after the other: what it becomes depends on no other
    teacher, to the last bit.
    """
    hidden = np.empty(hidden_width, dtype=np.float32)
    gradient = np.empty(weights.shape[1], dtype=np.float32)
    old_mean, old_square = np.float32(0.9), np.float32(0.999)
    new_mean, new_square = np.float32(1.0 - 0.9), np.float32(1.0 - 0.999)
    keep, tiny = np.float32(1.0 - rate * decay), np.float32(1e-8)
    for teacher in range(len(weights)):
        rows = own[starts[teacher] : starts[teacher + 1]]
        w, m, v = weights[teacher], mean[teacher], square[teacher]
        for step in range(done + 1, done + steps + 1):
            for at in range(len(gradient)):
                gradient[at] = 0.0
            add_gradients(rows, 1.0, w, hidden, gradient)
            add_gradients(fake, 0.0, w, hidden, gradient)
            length = np.float32(rate / (1.0 - 0.9**step))
            scale = np.float32(1.0 / np.sqrt(1.0 - 0.999**step))
            for at in range(len(gradient)):
                g = gradient[at]
                m[at] = old_mean * m[at] + new_mean * g
                v[at] = old_square * v[at] + new_square * g * g
                w[at] = keep * w[at] - length * m[at] / (scale * np.sqrt(v[at]) + tiny)


@compiled
def holds_for_real(rows, weights, hidden_width):
    """Return which rows each teacher holds for real."""
    hidden = np.empty(hidden_width, dtype=np.float32)
    found = np.empty((len(weights), len(rows)), dtype=np.bool_)
    for teacher in range(len(weights)):
        for row in range(len(rows)):
            found[teacher, row] = score(rows[row], weights[teacher], hidden) > 0.0
    return found
