"""What releases give away in which each column has a gap of its own: values of the records that rows start from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oversafe.attack.geometry.lattice.grids import Grids
from oversafe.attack.geometry.sampler.gaps import read_cells
from oversafe.attack.geometry.sampler.order import Order, in_blocks, order_of
from oversafe.attack.geometry.sampler.traces import BoolArray, FloatArray, Traces


@dataclass(frozen=True)
class Bases:
    """The records from which the blocks of a release start, as far as they are known.

    Parameters
    ----------
    values : array (b, m)
        One record a block, NaN where a value is not known.
    lowest, highest : array (b, m)
        The smallest and largest released value of each block: the record or one of its neighbours is not beyond.
    contradicted : int
        Values in which rows of a block differ though both parents have them; none if the blocks are right.
    """

    values: FloatArray
    lowest: FloatArray
    highest: FloatArray
    contradicted: int


def bases_of(rows: FloatArray, static: BoolArray, size: int) -> Bases:
    """Return what blocks of rows say about the records that they start from.

    A static cell is the value of both parents. Each row of a block has the same first parent, so one static cell in a
    column is enough. Nothing joins the columns of a row otherwise: where no cell is static the record stays unknown.

    Parameters
    ----------
    rows : array (n, m)
        The released rows, in the order of the tool.
    static : array of bool (n, m)
        The cells in which both parents have the same value.
    size : int
        The rows of each block.
    """
    lowest, highest = in_blocks(rows, size)
    low, high = in_blocks(np.where(static, rows, np.nan), size)
    return Bases(np.where(low == high, low, np.nan), lowest, highest, int((low < high).sum()))


def own_gap_bases(rows: FloatArray, grids: Grids | None = None) -> tuple[Bases, Order] | None:
    """Return what a release gives away whose rows come record by record, whatever gaps its columns have.

    Parameters
    ----------
    rows : array (n, m)
        The released rows, in the order of the file and without missing values.
    grids : Grids, optional
        The grids of the real values; by default those of the cells that repeat.

    Returns
    -------
    tuple of Bases and Order, or None
        None where no order of equal blocks shows, or rows contradict it.
    """
    read = read_cells(rows, grids)
    nothing = np.full((len(rows), 2), -1, dtype=np.int64)
    order = order_of(
        Traces(rows, np.zeros((0, rows.shape[1])), nothing, np.full(len(rows), np.nan)), read.static
    )
    if order.kind != "blocks" or not order.even or order.size is None or order.size < 2:
        return None
    found = bases_of(rows, read.static, order.size)
    if found.contradicted:
        return None
    still = np.ptp(rows, axis=0) == 0
    found.values[:, still] = rows[0, still]
    return found, order
