"""Compiled loops over tables: pure functions on arrays."""

from __future__ import annotations

import numpy as np

from oversafe._core.compiled import compiled

# Rows at a time: their codes and the codes of a common prefix stay in a core's own cache.
_CHUNK = 16384


@compiled
def add_counts(codes, sets, prefixes, sizes, starts, out):
    """Add the rows to the counts of several combinations of columns.

    ``codes[column, row]`` is a cell; ``sets[i]`` are the columns of the i-th combination, -1 behind the last, and
    its counts begin at ``starts[i]`` of ``out``, the last column counting fastest. ``prefixes[i]`` numbers the
    columns before the last: combinations that follow each other with the same number share the work of joining
    them. All numbers are unsigned, which spares the check for places counted from the end.
    """
    n = codes.shape[1]
    width = sets.shape[1]
    one = np.uint32(1)
    joined = np.empty(_CHUNK, dtype=np.uint32)
    for begin in range(0, n, _CHUNK):
        size = min(_CHUNK, n - begin)
        before = -1
        for i in range(len(sets)):
            length = 1
            while length < width and sets[i, length] >= 0:
                length += 1
            last = codes[sets[i, length - 1], begin : begin + size]
            counts = out[starts[i] : starts[i + 1]]
            if length == 1:
                for row in range(size):
                    counts[np.uint64(last[row])] += one
                continue
            if prefixes[i] != before:
                before = prefixes[i]
                first = codes[sets[i, 0], begin : begin + size]
                for row in range(size):
                    joined[row] = first[row]
                for k in range(1, length - 1):
                    own_size = np.uint32(sizes[sets[i, k]])
                    own = codes[sets[i, k], begin : begin + size]
                    for row in range(size):
                        joined[row] = joined[row] * own_size + np.uint32(own[row])
            last_size = np.uint32(sizes[sets[i, length - 1]])
            for row in range(size):
                counts[np.uint64(joined[row] * last_size + np.uint32(last[row]))] += one


@compiled
def bin_numbers(numbers, edges, missing, cells):
    """Write each number's interval, the last for what lies beyond; ``missing`` for what is no number.

    ``edges`` are the ends of the intervals and rise; a number equal to an inner end lies above it.
    """
    count = len(edges) - 1
    low = edges[0]
    width = (edges[count] - low) / count
    scale = 1.0 / width if width > 0.0 else 0.0
    for row in range(len(numbers)):
        number = np.float64(numbers[row])
        if number != number:
            cells[row] = missing
            continue
        # A guess that is right but for rounding, or for intervals of different width; then the exact ends.
        guess = (number - low) * scale
        place = 0
        if guess >= count:
            place = count - 1
        elif guess > 0.0:
            place = int(guess)
        while place < count - 1 and number >= edges[place + 1]:
            place += 1
        while place > 0 and number < edges[place]:
            place -= 1
        cells[row] = place


@compiled
def row_hashes(values):
    """Return a number for each row that equal rows share, and others by a chance of 2**-64 only."""
    n, d = values.shape
    bits = values.view(np.uint64)
    result = np.empty(n, dtype=np.uint64)
    for row in range(n):
        mixed = np.uint64(0x9E3779B97F4A7C15)
        for column in range(d):
            # Zero has two signs.
            word = bits[row, column] if values[row, column] != 0.0 else np.uint64(0)
            mixed = (mixed ^ word) * np.uint64(0xBF58476D1CE4E5B9)
            mixed = mixed ^ (mixed >> np.uint64(29))
            mixed = mixed * np.uint64(0x94D049BB133111EB)
            mixed = mixed ^ (mixed >> np.uint64(32))
        result[row] = mixed
    return result
