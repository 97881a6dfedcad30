"""Which tool made a release, as far as the release shows it; every statement has a stated error rate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oversafe.attack.geometry.bounds import reconstruction_recall_bound
from oversafe.attack.geometry.recovery import Recovered
from oversafe.attack.geometry.sampler.gaps import own_gaps, read_cells
from oversafe.attack.geometry.sampler.neighborhoods import Neighborhood, counts_of, neighborhood_of
from oversafe.attack.geometry.sampler.order import Order, order_of
from oversafe.attack.geometry.sampler.shares import extrapolated, of_one_class, of_two_classes
from oversafe.attack.geometry.sampler.traces import Finding, FloatArray, Traces
from oversafe.attack.geometry.shapes.lines import Lines
from oversafe.attack.geometry.shapes.points import Points
from oversafe.attack.geometry.shapes.segments import shares_of

# So many rows between records, and this share of all, are no accident.
_ROWS, _SHARE = 10, 0.05
# Rows whose cells are looked at.
_LOOKED_AT = 20_000
# Above this share of rows between records their neighbours are told.
_EXPLAINED = 0.5
# Above this share of repeated rows a table was made by duplication.
_REPEATED = 0.5

# What numbers tell apart: every record has the same number of rows (ADASYN, where all records are as near to the other
# class); records are alike, but for chance or because all are as near to the other class; some are preferred; each
# column has a gap of its own.
FIXED = ("smotefamily", "themis", "DMwR", "ADASYN")
EVEN = (
    "SMOTE",
    "SMOTETomek",
    "SMOTEENN",
    "KMeansSMOTE",
    "BorderlineSMOTE-1",
    "SVMSMOTE",
    "Spark's SMOTE",
    *FIXED,
)
UNEVEN = ("ADASYN", "BorderlineSMOTE-1", "KMeansSMOTE", "SMOTEENN", "SVMSMOTE", "Spark's SMOTE")
BOXES = ("Weka's SMOTE", "SMOTE as of its paper")


@dataclass(frozen=True)
class Kind:
    """What a release looks like.

    Parameters
    ----------
    name : str
        The tool, or the tools that look alike: "SMOTE", "SMOTENC", "BorderlineSMOTE-2", "SVMSMOTE", "ADASYN",
        "smotefamily or themis", "duplication", "no lines", ...
    sentence : str
        The reason, for a person to read.
    k_neighbors : int, optional
        The number of neighbours that explains the segments between the recovered records.
    mutuality : float, optional
        The share of neighbour relations between recovered records that hold in both directions.
    recall_bound : float, optional
        The paper's lower bound (Theorem 4) on the expected recall, for what was recovered.
    tools : tuple of str
        The tools that may have made it; empty where no tool is named.
    error_rate : float, optional
        An upper bound on the probability of such a release from other tools than these; None where nothing excludes
        them, so that the name says only what nothing speaks against.
    """

    name: str
    sentence: str
    k_neighbors: int | None = None
    mutuality: float | None = None
    recall_bound: float | None = None
    tools: tuple[str, ...] = ()
    error_rate: float | None = None


def recognise(points: Points, lines: Lines, records: Recovered) -> Kind:
    """Tell from recovered records and the rows between them which tool made a table.

    Parameters
    ----------
    points : Points
        The table.
    lines : Lines
        Its lines.
    records : Recovered
        What was recovered from it.
    """
    n_rows = len(points.row)
    if len(points.values) <= (1 - _REPEATED) * n_rows:
        return Kind("duplication", f"{n_rows} rows are copies of {len(points.values)} distinct ones")
    kind = identify(
        traces_of(points, records), points.span, any(_varies(points, name) for name in points.left_out)
    )
    if kind.name != "no lines":
        return kind
    if points.reason is None and len(np.unique(lines.indices)) >= _EXPLAINED * len(points.values):
        return Kind(
            "lines that do not meet",
            "most rows lie on lines that lead to no common records, or away from those that were recovered",
        )
    return Kind("no lines", _why_not(points))


def traces_of(points: Points, records: Recovered) -> Traces:
    """Return the rows of a table, in its order and units, and the records between which they lie."""
    values = points.values * points.span + points.low
    share = shares_of(points.values, records.segments, records.places)
    return Traces(
        values[points.row],
        records.places * points.span + points.low,
        records.segments[points.row],
        share[points.row],
        bool(points.coarse) or any(_varies(points, name) for name in points.left_out),
    )


def identify(traces: Traces, span: FloatArray, categories: bool = False) -> Kind:
    """Tell which tool made rows.

    Parameters
    ----------
    traces : Traces
        The rows and the records between which they lie.
    span : array (m,)
        The range of each column.
    categories : bool
        Whether columns that are no numbers vary beside them.
    """
    known = int(traces.known.sum())
    if len(traces.places) < 3 or known < max(_ROWS, _SHARE * len(traces.rows)):
        return _without_lines(traces)
    near = neighborhood_of(traces, span)
    name, tools, finding = _between_records(traces, near, categories)
    k = mutuality = bound = None
    # Distances in some of the columns are not those that the tool took.
    if known >= _EXPLAINED * len(traces.rows) and not traces.partial and not categories:
        k, mutuality = near.k, float(near.mutual.mean())
        if len(traces.places) > k:
            bound = reconstruction_recall_bound(len(traces.places), len(traces.rows), k, mutuality)
    return Kind(name, finding.sentence, k, mutuality, bound, tools, finding.p if finding.holds else None)


def _between_records(
    traces: Traces, near: Neighborhood, categories: bool
) -> tuple[str, tuple[str, ...], Finding]:
    """Return the name, the tools that may have made rows between records, and why."""
    if (beyond := extrapolated(traces)).holds:
        return "SVMSMOTE", ("SVMSMOTE",), beyond
    if (classes := of_two_classes(traces)).holds:
        return "BorderlineSMOTE-2", ("BorderlineSMOTE-2",), classes
    partial = traces.partial or categories
    if near.any_pairs.holds and not partial:
        return "mixup", ("mixup",), near.any_pairs
    order = order_of(traces, read_cells(traces.rows[:_LOOKED_AT]).static)
    if order.kind == "blocks":
        tools = FIXED if partial and order.even else _of_blocks(order, near)
        return _named(tools), tools, order.finding
    if order.kind == "bases":
        return "ADASYN", ("ADASYN",), order.finding
    if order.kind == "clusters":
        return "KMeansSMOTE", ("KMeansSMOTE",), order.finding
    # What chance may hide stays possible.
    even = of_one_class(traces)
    hidden = ("BorderlineSMOTE-2",) * (not even.holds) + ("mixup",) * (partial or not near.only_near.holds)
    if categories:
        sentence = "rows lie between records in the numbers, and categories vary beside them"
        return "SMOTENC", ("SMOTENC", "DMwR", *hidden), Finding(sentence, 1.0)
    counts = None if partial else counts_of(traces, near)
    if counts is not None and counts.uneven.holds:
        return _named(UNEVEN), UNEVEN + hidden, counts.uneven
    if counts is not None and counts.fixed.holds:
        # Their order was lost, as it is in partitions.
        tools = _of_metric(FIXED, near)
        return _named(tools), (*tools, "Spark's SMOTE", *hidden), counts.fixed
    if counts is not None and counts.alike.holds:
        return "SMOTE", EVEN + hidden, counts.alike
    sentence = (
        "rows lie on the segments between records; whether some have more rows than others does not show"
    )
    return "SMOTE or a relative", EVEN + hidden, Finding(sentence, 1.0)


def _of_blocks(order: Order, near: Neighborhood) -> tuple[str, ...]:
    return _of_metric(FIXED, near) if order.even else ("themis", "ADASYN")


def _of_metric(tools: tuple[str, ...], near: Neighborhood) -> tuple[str, ...]:
    """Return the tools that take distances as the neighbours show: DMwR on ranges, the others as the numbers are."""
    if not near.told:
        return tools
    return ("DMwR",) if near.scaled else tuple(tool for tool in tools if tool != "DMwR")


def _without_lines(traces: Traces) -> Kind:
    """Return what cells show where few rows lie between known records."""
    if len(traces.rows) < _ROWS:
        return Kind("no lines", "")
    rows = traces.rows[:_LOOKED_AT]
    read = read_cells(rows)
    order = order_of(traces, read.static)
    if order.kind != "blocks" or not read.columns.any():
        return Kind("no lines", "")
    own = own_gaps(rows, read)
    share = read.static[:, read.columns].mean()
    sentence = (
        f"in {int(read.columns.sum())} columns {share:.0%} of the values are as real ones are and the others lie "
        f"between such, and {order.finding.sentence}"
    )
    if own.holds:
        error = min(1.0, own.p + order.finding.p)
        return Kind(_named(BOXES), f"{sentence}; {own.sentence}", tools=BOXES, error_rate=error)
    tools = FIXED + BOXES
    return Kind(_named(tools), sentence, tools=tools, error_rate=order.finding.p)


def _named(tools: tuple[str, ...]) -> str:
    return tools[0] if len(tools) == 1 else f"{', '.join(tools[:-1])} or {tools[-1]}"


def _why_not(points: Points) -> str:
    if points.reason is not None:
        return points.reason
    return (
        "rows do not lie between common records: the table was not made by interpolation, or by one that "
        "leaves no lines (Geometric SMOTE; SMOTEN, which copies categories), or its values are too inexact "
        f"(to {points.noise:.1g} of their range)"
    )


def _varies(points: Points, name: object) -> bool:
    column = points.frame.loc[:, name]
    return column.ndim == 1 and column.astype(str).nunique() > 1
