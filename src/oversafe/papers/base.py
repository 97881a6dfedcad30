"""What the reproduction of a paper consists of."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Literal

import numpy as np
import pandas as pd

# The data sets that two of the papers share, by their imbalance.
EIGHT = (
    "ecoli",
    "abalone",
    "car_eval_34",
    "solar_flare_m0",
    "car_eval_4",
    "yeast_me2",
    "mammography",
    "abalone_19",
)
TOLERANCE = 0.05
_FEWEST = 5
ROW_COLUMNS = (
    "table", "data", "figure", "published", "measured", "low", "high", "difference", "agrees", "mark",
)  # fmt: skip
AGREES, STRONGER, DIFFERS, UNDECIDED = "agrees", "stronger", "differs", "undecided"
NOT_IN_QUICK, NOT_MEASURED = "not in a quick run", "not measured"


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, such as an order of methods, and whether it holds here.

    Parameters
    ----------
    sentence : str
        The statement.
    holds : bool or None
        Whether it does; None if it could not be tried, is within the noise, or was tried on some of the sets alone.
    measured : str
        The figures it was judged by.
    """

    sentence: str
    holds: bool | None
    measured: str


@dataclass(frozen=True)
class Plot:
    """A figure of the paper, made again.

    Parameters
    ----------
    title : str
        What it shows.
    data : DataFrame
        Columns "x", "y" and "group"; and "facet", "low" and "high" where there are such.
    x, y : str
        Titles of the axes.
    kind : {"line", "points", "map"}
        How it is drawn; a "map" has the group as its second axis and y as its colour.
    """

    title: str
    data: pd.DataFrame
    x: str
    y: str
    kind: Literal["line", "points", "map"] = "line"


@dataclass(frozen=True)
class Summary:
    """What comes out of the cells of a paper.

    Parameters
    ----------
    rows : DataFrame
        Published and measured figures; see :func:`beside`.
    claims : tuple of Claim
        Statements without a figure.
    plots : tuple of Plot
        Figures.
    tables : mapping of str to DataFrame
        Tables that the paper does not print, or not as figures.
    """

    rows: pd.DataFrame
    claims: tuple[Claim, ...] = ()
    plots: tuple[Plot, ...] = ()
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)


@dataclass(frozen=True)
class Paper:
    """A paper whose tables can be made again.

    Parameters
    ----------
    name : str
        As the command line calls it.
    title : str
        Its title.
    data_sets : sequence of str
        What it needs.
    unavailable : mapping of str to str
        Data that cannot be had, and why; never replaced by others without a word.
    cells : callable
        Returns the settings to run, given whether the run is quick and the data sets that are there.
    run : callable
        Runs one of them.
    summarize : callable
        Returns the summary of all, given the table of results.
    notes : sequence of str
        Where the set-up differs from the paper's, in sentences.
    """

    name: str
    title: str
    data_sets: Sequence[str]
    unavailable: Mapping[str, str]
    cells: Callable[[bool, Sequence[str]], list[dict[str, Any]]]
    run: Callable[..., Any]
    summarize: Callable[[pd.DataFrame], Summary]
    notes: Sequence[str] = ()


def published(name: str) -> pd.DataFrame:
    """Return published figures."""
    with (files("oversafe.papers") / "published" / f"{name}.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file)


def beside(
    table: str,
    data: str,
    figure: str,
    printed: float,
    values: Any,
    *,
    larger_is_better: bool = False,
    tolerance: float = TOLERANCE,
    interval: tuple[float, float] | None = None,
    absent: str = NOT_MEASURED,
) -> dict[str, Any]:
    """Return a published figure and a measured one side by side.

    They agree if they differ by no more than the tolerance, or the published one lies in the 95 % interval of
    the measured one; where that interval is wider than the tolerance to either side, figures that differ would lie in
    it as well, and nothing is decided. An attack that does better than the published one beyond that is "stronger":
    no disagreement, and no agreement either.

    Parameters
    ----------
    table, data, figure : str
        Where it stands in the paper.
    printed : float
        The published figure.
    values : array-like
        The measured one of each repetition; their mean counts.
    larger_is_better : bool
        Whether a larger figure than the published one is an attack that finds more.
    tolerance : float
        What rounding and other seeds may change.
    interval : tuple of float, optional
        Of the measured figure; that of the mean over the repetitions, if there are five, when not given.
    absent : str
        The mark where there is no value.
    """
    values = np.atleast_1d(np.asarray(values, dtype=float))
    values = values[np.isfinite(values)]
    measured = float(values.mean()) if len(values) else np.nan
    low, high = interval if interval is not None else _mean_interval(values)
    difference = measured - printed
    close = abs(round(difference, 10)) <= tolerance or low - 0.005 <= printed <= high + 0.005
    if np.isnan(measured):
        mark = absent
    elif close:
        mark = UNDECIDED if (high - low) / 2 > tolerance else AGREES
    else:
        mark = STRONGER if larger_is_better and difference > 0 else DIFFERS
    agrees = mark == AGREES if mark in (AGREES, STRONGER, DIFFERS) else None
    figures = (table, data, figure, printed, measured, low, high, difference, agrees, mark)
    return dict(zip(ROW_COLUMNS, figures, strict=True))


def counted(rows: pd.DataFrame) -> str:
    """Return how many figures agree, find more and differ, and how many cannot be judged, in words."""
    of = rows["mark"].value_counts()
    words = [
        f"{of.get(mark, 0)} {one if of.get(mark, 0) == 1 else more}"
        for mark, one, more in (
            (AGREES, "agrees", "agree"),
            (STRONGER, "finds more", "find more"),
            (DIFFERS, "differs", "differ"),
        )
    ]
    words += [f"{of[mark]} {mark}" for mark in (UNDECIDED, NOT_IN_QUICK, NOT_MEASURED) if mark in of]
    return ", ".join(words)


def claim(
    sentence: str,
    holds: bool | None,
    measured: str,
    tried: Collection[Any],
    all_sets: Collection[Any],
    *,
    of_each: bool = False,
) -> Claim:
    """Return a statement about data sets, with the number of those it was tried on; undecided until all are there.

    Parameters
    ----------
    sentence, holds, measured
        As of :class:`Claim`; None if it is within the noise.
    tried, all_sets : collection
        The sets it was tried on, and those that the paper's statement is about.
    of_each : bool
        Whether it is about each of the sets, so that one on which it fails suffices.
    """
    missing = [name for name in all_sets if name not in set(tried)]
    if not len(tried):
        return Claim(sentence, None, "not tried on any set")
    if missing and not (of_each and holds is False):
        holds = None
    sets = "set" if len(all_sets) == 1 else "sets"
    return Claim(sentence, holds, f"{measured}; tried on {len(set(tried))} of {len(all_sets)} {sets}")


def is_larger(differences: Any, half_widths: Any = None) -> bool | None:
    """Return whether the mean of differences is above 0; None where its 95 % interval holds 0, or is not known.

    Parameters
    ----------
    differences : array-like
        One of each data set, split or seed, which are taken to be independent.
    half_widths : array-like, optional
        Half of the 95 % interval of each figure that the differences are made of, which add up as standard errors do;
        when not given, the interval is that of the differences among one another.
    """
    from scipy import stats

    values = np.asarray(differences, dtype=float)
    values = values[np.isfinite(values)]
    if half_widths is not None and len(values):
        noise = float(np.sqrt(np.square(np.asarray(half_widths, dtype=float)).sum())) / len(values)
        return None if abs(values.mean()) <= noise else bool(values.mean() > 0)
    if len(values) < 2:
        return None
    error = float(values.std(ddof=1)) / np.sqrt(len(values))
    half = float(stats.t.ppf(0.975, len(values) - 1)) * error
    mean = float(values.mean())
    return None if abs(mean) <= half else mean > 0


def as_rows(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return rows of :func:`beside` as a table."""
    return pd.DataFrame(list(rows), columns=list(ROW_COLUMNS))


def _mean_interval(values: Any) -> tuple[float, float]:
    from scipy import stats

    # An interval from fewer repetitions holds nearly everything, and would make everything agree.
    if len(values) < _FEWEST:
        return (np.nan, np.nan)
    half = float(stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    return float(values.mean()) - half, float(values.mean()) + half
