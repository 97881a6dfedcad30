"""The seeds that people use, the likeliest first."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray

IntArray = NDArray[np.int64]

# What tutorials, forums and keyboards suggest.
_FAVOURITES = (
    *(
        42,
        0,
        1,
        123,
        1234,
        12345,
        2,
        3,
        4,
        5,
        7,
        10,
        11,
        13,
        21,
        33,
        99,
        100,
        101,
        111,
        222,
        321,
        333,
        404,
        420,
        444,
    ),
    *(
        456,
        500,
        512,
        555,
        666,
        777,
        789,
        888,
        999,
        1000,
        1001,
        1024,
        1111,
        1337,
        1729,
        2000,
        2048,
        3407,
        4242,
        4321,
    ),
    *(
        4711,
        5000,
        6789,
        7777,
        8888,
        9999,
        10000,
        10086,
        12321,
        13579,
        31415,
        31337,
        42424,
        54321,
        65535,
        65536,
        99999,
    ),
    *(
        123456,
        1234567,
        12345678,
        123456789,
        1234567890,
        987654321,
        87654321,
        654321,
        314159,
        3141592,
        31415926,
    ),
    *(271828, 2718281, 161803, 141421, 20000, 1000000, 424242, 8675309, 2**31 - 1, 2**31, 2**32 - 1),
    *range(1990, 2041),
)
_SMALL, _COUNTED = 10_000, 100_001
_RECENT = 2015, 2030
_FIRST_DAY, _LAST_DAY = "1990-01-01", "2040-12-31"


@cache
def usual_seeds() -> IntArray:
    """Return the seeds to try: favourites, 0 to 100,000, and dates such as 20240131, 31012024."""
    days = pd.date_range(_FIRST_DAY, _LAST_DAY, freq="D")
    year, month, day = (np.asarray(part, dtype=np.int64) for part in (days.year, days.month, days.day))
    short = year % 100
    dates = (
        year * 10_000 + month * 100 + day,
        day * 1_000_000 + month * 10_000 + year,
        month * 1_000_000 + day * 10_000 + year,
        short * 10_000 + month * 100 + day,
        day * 10_000 + month * 100 + short,
        month * 10_000 + day * 100 + short,
        np.unique(year * 100 + month),
    )
    recent = dates[0][(year >= _RECENT[0]) & (year <= _RECENT[1])]
    seeds = np.concatenate([np.array(_FAVOURITES), np.arange(_SMALL), recent, np.arange(_COUNTED), *dates])
    return seeds[np.sort(np.unique(seeds, return_index=True)[1])]


def more_seeds(begin: int, count: int) -> IntArray:
    """Return further seeds in order, for those who have the time."""
    return np.arange(_COUNTED + begin, min(_COUNTED + begin + count, 2**32), dtype=np.int64)


def favourites() -> IntArray:
    """Return the likeliest seeds."""
    return usual_seeds()[: len(set(_FAVOURITES))]
