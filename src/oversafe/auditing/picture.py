"""The proof of a reconstruction, for the eye: one record, and the lines of released rows that meet in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe._core.errors import InputError
from oversafe.attack.geometry.reconstruction import ReconstructionResult
from oversafe.auditing.formatting import cell, estimated_cell

RELEASED, READ_BACK, SHOWN, REAL = "released row", "record read back", "the record shown", "real record"

_MOST_POINTS = 600
_MOST_LINES = 12
_MOST_TRIED = 12
_MOST_COLUMNS = 24


def shown_record(rows: pd.DataFrame, result: ReconstructionResult) -> int | None:
    """Return the number of the record that is best seen: a real one if that is known, whose lines part most widely."""
    if not len(result.support):
        return None
    evidence = result.evidence
    is_real = evidence["real_row"].to_numpy() >= 0 if "real_row" in evidence else np.ones(len(evidence), bool)
    by_lines = (evidence["found_by"] == "lines").to_numpy()
    order = np.lexsort((-result.support, ~by_lines, ~is_real))
    best = order[0]
    # Only records that are as well proven as the best one are looked at.
    alike = [r for r in order[:_MOST_TRIED] if (is_real[r], by_lines[r]) == (is_real[best], by_lines[best])]
    numbers, ranges = _numbers(rows, certain_columns(result, result.records))
    if numbers.shape[1] < 2:
        return int(best)
    return int(max(alike, key=lambda r: _columns(numbers, ranges, r, _ends(result.proof(int(r))))[1]))


def side_by_side(
    result: ReconstructionResult, real: pd.DataFrame | None, record: int | None
) -> pd.DataFrame | None:
    """Return one record value by value: as it was read back, how far off it may be, and the real one beside it."""
    if record is None:
        return None
    columns = list(result.records.columns)
    table = pd.DataFrame(
        {
            "column": [str(name) for name in columns],
            "read_back": [
                estimated_cell(value) if estimated else cell(value)
                for value, estimated in zip(
                    result.records.iloc[record], result.estimated.iloc[record], strict=True
                )
            ],
            "off_by_at_most": [cell(value) for value in result.errors.iloc[record]],
        }
    )
    if real is not None and (row := int(result.evidence["real_row"].iloc[record])) >= 0:
        table["real"] = [cell(value) for value in real.iloc[row][columns]]
    return table


def picture(
    rows: pd.DataFrame, result: ReconstructionResult, real: pd.DataFrame | None, record: int | None
) -> pd.DataFrame | None:
    """Return released rows and records in the two columns in which the lines through one record part best.

    Returns
    -------
    DataFrame or None
        One row per point: ``x``, ``y``, ``kind`` and ``line``, the number of the line through the record shown that
        it lies on, or -1; ``attrs`` has the names of the two columns. None without two columns of numbers.
    """
    numbers, ranges = _numbers(rows, certain_columns(result, result.records))
    if record is None or numbers.shape[1] < 2:
        return None
    proof = result.proof(record)
    proof = proof[(proof["to"] >= 0) & (proof["line"] < _MOST_LINES)]
    ends = _ends(proof)
    (x, y), _ = _columns(numbers, ranges, record, ends)

    line_of_row = np.full(len(rows), -1)
    line_of_row[proof["row"].to_numpy()] = proof["line"].to_numpy()
    on_lines = line_of_row >= 0
    others = np.flatnonzero(~on_lines)
    room = max(0, _MOST_POINTS - int(on_lines.sum()))
    if len(others) > room:
        others = np.sort(np.random.default_rng(0).choice(others, room, replace=False))
    drawn = np.concatenate([others, np.flatnonzero(on_lines)[:_MOST_POINTS]])

    line_of_record = np.full(len(numbers), -1)
    line_of_record[ends] = np.arange(len(ends))
    kept = np.unique(np.concatenate([np.arange(min(len(numbers), _MOST_POINTS)), ends, [record]]).astype(int))
    kinds = np.where(kept == record, SHOWN, READ_BACK)
    parts = [
        _points(rows.iloc[drawn], x, y, RELEASED, line_of_row[drawn]),
        _points(numbers.iloc[kept], x, y, kinds, line_of_record[kept]),
    ]
    if real is not None and {x, y} <= set(real.select_dtypes("number").columns):
        parts.insert(1, _points(real.head(_MOST_POINTS), x, y, REAL, -1))
    points = pd.concat(parts, ignore_index=True).dropna(subset=["x", "y"]).reset_index(drop=True)
    points.attrs = {"x": str(x), "y": str(y)}
    return points


def certain_columns(result: ReconstructionResult, records: pd.DataFrame) -> pd.DataFrame:
    """Return the records in the columns that took part in the geometry, if there are two: others leave the lines."""
    filled_in = {str(name) for name in result.details.get("columns_filled_in", ())}
    estimated = {str(name) for name in result.estimated.columns[result.estimated.any().to_numpy(dtype=bool)]}
    for doubtful in (filled_in | estimated, estimated):
        certain = records[[name for name in records.columns if str(name) not in doubtful]]
        if certain.select_dtypes("number").dropna(axis=1).shape[1] > 1:
            return certain
    return records.iloc[:, :0]


def _numbers(rows: pd.DataFrame, records: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series]:
    """Return the records in the columns that can be drawn, and the ranges of the released values in them."""
    numbers = records.select_dtypes("number").dropna(axis=1).astype(float)
    ranges = rows[numbers.columns].max().astype(float) - rows[numbers.columns].min().astype(float)
    drawn = (ranges > 0) & np.isfinite(ranges)
    return numbers.loc[:, drawn.to_numpy()], ranges[drawn]


def _ends(proof: pd.DataFrame) -> NDArray[np.int64]:
    """Return the records at the other ends of the first lines, in the order of the lines."""
    known = proof[(proof["to"] >= 0) & (proof["line"] < _MOST_LINES)]
    return known.drop_duplicates("line")["to"].to_numpy()


def best_columns(rows: pd.DataFrame, records: pd.DataFrame, pairs: NDArray[np.int64]) -> tuple[Any, Any]:
    """Return the two columns in which lines between pairs of records part most widely."""
    numbers, ranges = _numbers(rows, records)
    if numbers.shape[1] < 2:
        raise InputError(
            "the records have fewer than two columns of numbers that vary; there is nothing to draw"
        )
    centre = int(np.bincount(pairs.ravel()).argmax()) if len(pairs) else 0
    ends = pairs[(pairs == centre).any(axis=1)].sum(axis=1) - centre
    return _columns(numbers, ranges, centre, ends[:_MOST_LINES])[0]


def _points(table: pd.DataFrame, x: Any, y: Any, kind: Any, line: Any) -> pd.DataFrame:
    places = table[[x, y]].astype(float).set_axis(["x", "y"], axis=1).reset_index(drop=True)
    return places.assign(kind=kind, line=line)


def _columns(
    numbers: pd.DataFrame, ranges: pd.Series, record: int, ends: NDArray[np.int64]
) -> tuple[tuple[Any, Any], float]:
    """Return the two columns in which the lines from the record to the ends part most widely, and how widely."""
    spread = (numbers.std(ddof=0) / ranges).sort_values(ascending=False, kind="stable")
    names = list(spread.index[:_MOST_COLUMNS])
    if len(ends) < 2:
        return (names[0], names[1]), 0.0
    places = (numbers[names] / ranges[names]).to_numpy()
    ways = places[ends] - places[record]
    # For every pair of columns at once: the areas between pairs of lines over the root of the lines' lengths, which is
    # the sine of their angle, weighted so that long lines count.
    area = np.abs(
        ways[:, None, :, None] * ways[None, :, None, :] - ways[:, None, None, :] * ways[None, :, :, None]
    )
    length = np.hypot(ways[:, :, None], ways[:, None, :])
    scale = np.sqrt(length[:, None] * length[None, :])
    parted = np.divide(area, scale, out=np.zeros_like(area), where=scale > 0).sum(axis=(0, 1))
    first, second = np.unravel_index(np.argmax(parted), (len(names), len(names)))
    if first == second:
        return (names[0], names[1]), 0.0
    return (names[first], names[second]), float(parted[first, second])
