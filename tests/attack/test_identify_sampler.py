"""Which tool made a release: right or in the group that is told, and never a tool where nothing was interpolated.

A statement is wrong with probability 1e-3 at most: of 12 releases three or more with 2.2e-7, of 80 five or more with
2e-8. Where a test allows none, its releases were made with fixed seeds.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.atlas import verdict
from benchmarks.lattice import table
from benchmarks.tools import CONTROLS, TOOLS, Release
from numpy.typing import NDArray

from oversafe.attack import ReconSMOTE
from oversafe.attack.geometry.identify_sampler import BOXES, EVEN, FIXED, Kind, identify
from oversafe.attack.geometry.lattice import decode_rows
from oversafe.attack.geometry.sampler.boxes import own_gap_bases
from oversafe.attack.geometry.sampler.gaps import own_gaps, read_cells
from oversafe.attack.geometry.sampler.neighborhoods import counts_of, neighborhood_of
from oversafe.attack.geometry.sampler.order import order_of
from oversafe.attack.geometry.sampler.shares import extrapolated, of_one_class, of_two_classes
from oversafe.attack.geometry.sampler.traces import ERROR_RATE, SUREST, Finding, Traces, between_decoded

Floats = NDArray[np.float64]


def people(n: int = 60, seed: int = 0, apart: float = 1.0) -> tuple[Floats, NDArray[np.bool_]]:
    """Return a table with columns of several grids, of which the first n rows are the rare class."""
    rng = np.random.default_rng(seed)
    rare = np.arange(12 * n) < n
    shift = np.where(rare, 0.0, apart)
    columns = [
        np.round(rng.normal(shift, 1) * 100) / 100,
        np.round(rng.normal(3 * shift, 2) * 10) / 10,
        np.round(rng.normal(50, 12, len(rare))),
        np.round(rng.gamma(2, 10, len(rare))),
        (rng.random(len(rare)) < 0.4).astype(float),
        np.round(rng.normal(0, 1, len(rare)), 3),
    ]
    return np.column_stack(columns), rare


def of_parents(release: Release) -> Traces:
    """Return the traces of a release whose parents are known."""
    numbers = release.numbers()
    places, end = np.unique(np.vstack([numbers.first, numbers.second]), axis=0, return_inverse=True)
    ends = end.reshape(2, -1).T.astype(np.int64)
    way = numbers.second - numbers.first
    length = (way**2).sum(axis=1)
    ends[length == 0] = -1
    share = ((numbers.rows - numbers.first) * way).sum(axis=1) / np.where(length > 0, length, np.nan)
    return Traces(numbers.rows, places, ends, share)


def decoded(release: Release) -> Traces:
    """Return the traces that an attacker decodes."""
    found = decode_rows(release.rows, release.others)
    traces = between_decoded(
        release.rows, found.records, found.p_wrong <= 0.05, found.n_lines, found.row, found.ends, found.share
    )
    return traces if traces.known.any() else replace(traces, rows=release.rows)


def told(traces: Traces, categories: bool = False) -> Kind:
    return identify(traces, np.ptp(traces.rows, axis=0), categories)


LINES = [name for name, tool in TOOLS.items() if tool.family == "line"]


# --------------------------------------------------------------------------------------------- the tools


@pytest.mark.parametrize("name", TOOLS)
def test_parents_are_those_of_the_rows(name: str) -> None:
    X, rare = people()
    release = TOOLS[name].make(X, rare, 300, 0).numbers()
    way, off = release.second - release.first, release.rows - release.first
    if TOOLS[name].family == "box":
        low, high = np.minimum(release.first, release.second), np.maximum(release.first, release.second)
        assert ((release.rows >= low) & (release.rows <= high)).all()
        share = np.divide(off, way, out=np.full_like(off, np.nan), where=way != 0)
        assert np.nanmax(share, axis=1) - np.nanmin(share, axis=1) == pytest.approx(0.6, abs=0.6)
        assert (np.nanmax(share, axis=1) - np.nanmin(share, axis=1)).mean() > 0.3
    else:
        length = (way**2).sum(axis=1)
        share = (off * way).sum(axis=1) / np.where(length > 0, length, 1.0)
        assert np.abs(off - share[:, None] * way).max() < 1e-11
        least = -0.5 if name == "SVMSMOTE" else 0.0
        assert share.min() >= least - 1e-9
        assert share.max() <= 1 + 1e-9
    real = {tuple(row) for row in np.vstack([release.real, release.others])}
    assert {tuple(row) for row in np.vstack([release.first, release.second])} <= real
    assert len(release.rows) > 150


def test_order_of_the_imitations() -> None:
    X, rare = people()
    for name, size in (("smotefamily", 5), ("DMwR", 5), ("Weka, Chawla", 5), ("themis", 5)):
        first = TOOLS[name].make(X, rare, 300, 0).first
        assert (first == np.repeat(first[::size], size, axis=0)).all(), name
    first = TOOLS["themis"].make(X, rare, 330, 0).first
    sizes = np.diff(np.flatnonzero(np.r_[True, (np.diff(first, axis=0) != 0).any(axis=1), True]))
    assert set(sizes.tolist()) == {5, 6}


# --------------------------------------------------------------------------------------- who is told


@pytest.mark.parametrize("name", LINES)
def test_the_tool_is_among_those_told(name: str) -> None:
    """With all parents known, at three ratios and 4 seeds each: at most 2 of 12 may be wrong (2.2e-7)."""
    wrong = 0
    for ratio in (1, 4, 12):
        for seed in range(4):
            X, rare = people(30 + 4 * seed, seed)
            release = TOOLS[name].make(X, rare, int(ratio * rare.sum()), seed)
            kind = told(of_parents(release), bool(release.categories))
            wrong += verdict(name, kind.name, kind.tools) == "wrong"
    assert wrong <= 2


@pytest.mark.parametrize(
    ("name", "rows", "tools"),
    [
        ("SVMSMOTE", 300, ("SVMSMOTE",)),
        ("BorderlineSMOTE-2", 600, ("BorderlineSMOTE-2",)),
        ("mixup", 300, ("mixup",)),
        ("smotefamily", 300, ("smotefamily", "themis", "ADASYN")),
        ("DMwR", 300, ("DMwR",)),
        ("themis", 330, ("themis", "ADASYN")),
        ("ADASYN", 600, ("ADASYN",)),
        ("SMOTE", 900, EVEN),
    ],
)
def test_the_tool_that_rows_decoded_one_by_one_show(name: str, rows: int, tools: tuple[str, ...]) -> None:
    # Far from the other class there are records to go beyond.
    X, rare = people(apart=4.0 if name == "SVMSMOTE" else 1.0)
    kind = told(decoded(TOOLS[name].make(X, rare, rows, 0)))
    assert kind.tools == tools
    assert kind.error_rate is not None
    assert SUREST <= kind.error_rate <= ERROR_RATE
    if name in ("SMOTE", "smotefamily"):
        assert kind.k_neighbors == 5


def test_neighbours_and_records_alike() -> None:
    X, rare = people(80, apart=4.0)
    smote = of_parents(TOOLS["SMOTE"].make(X, rare, 1600, 0))
    border = of_parents(TOOLS["BorderlineSMOTE-1"].make(X, rare, 1600, 0))
    for traces, alike in ((smote, True), (border, False)):
        near = neighborhood_of(traces, np.ptp(traces.rows, axis=0))
        counts = counts_of(traces, near)
        assert near.k == 5
        assert counts is not None
        assert counts.alike.holds == alike
        assert counts.uneven.holds != alike
        assert (counts.varies < 0.15) == alike
    k_one = of_parents(TOOLS["SMOTE, k = 1"].make(X, rare, 400, 0))
    assert neighborhood_of(k_one, np.ptp(k_one.rows, axis=0)).k == 1


def test_distances_in_some_columns_say_nothing_about_neighbours() -> None:
    """A tool that saw other columns too joined records that are no neighbours in these."""
    X, rare = people()
    release = TOOLS["SMOTE"].make(X, rare, 600, 0)
    kept = [0, 4, 5]
    some = {name: getattr(release, name)[:, kept] for name in ("rows", "first", "second")}
    traces = of_parents(replace(release, **some))
    assert neighborhood_of(traces, np.ptp(traces.rows, axis=0)).any_pairs.holds
    kind = told(replace(traces, partial=True))
    assert (kind.name, kind.k_neighbors, kind.error_rate) == ("SMOTE or a relative", None, None)
    assert "mixup" in kind.tools
    assert told(traces, categories=True).name == "SMOTENC"


def test_blocks_are_told_from_rows_in_any_order() -> None:
    X, rare = people()
    for name in ("smotefamily", "Weka, Chawla"):
        release = TOOLS[name].make(X, rare, 300, 0)
        static = read_cells(release.rows).static
        unknown = Traces(
            release.rows, np.zeros((0, 6)), np.full((300, 2), -1, dtype=np.int64), np.full(300, np.nan)
        )
        order = order_of(unknown, static)
        assert (order.kind, order.size, order.even) == ("blocks", 5, True)
        mixed = np.random.default_rng(0).permutation(300)
        assert order_of(replace(unknown, rows=release.rows[mixed]), static[mixed]).kind == "random"


def test_no_order_is_seen_where_there_is_none() -> None:
    """80 looks at releases of SMOTE, as made and sorted by a column: at most 4 may seem to be in an order (2e-8)."""
    seen = 0
    for seed in range(20):
        X, rare = people(40, seed)
        release = TOOLS["SMOTE"].make(X, rare, 40 * (1 + seed % 5), seed)
        for order in (np.arange(len(release.rows)), np.argsort(release.rows[:, seed % 6])):
            traces = of_parents(release.take(order))
            seen += order_of(traces).kind != "random"
            seen += (
                order_of(
                    replace(traces, ends=np.full_like(traces.ends, -1)), read_cells(traces.rows).static
                ).kind
                != "random"
            )
    assert seen <= 4


def test_extrapolation_and_other_classes_by_hand() -> None:
    ends = np.tile([[0, 1]], (40, 1)).astype(np.int64)
    share = (np.arange(40) + 0.5) / 40
    traces = Traces(np.zeros((40, 2)), np.array([[0.0, 0.0], [1.0, 1.0]]), ends, share)
    assert extrapolated(traces).p == 1
    assert not of_two_classes(traces).holds
    assert of_one_class(traces).p == pytest.approx(
        0.1298, abs=1e-3
    )  # 20 of 40 in the outer quarters, under .6
    assert extrapolated(replace(traces, share=share - 0.25)).holds
    half = of_two_classes(replace(traces, share=share / 4))
    assert half.holds
    assert "1 of the 2 records" in half.sentence
    # The other way round the other record is of another class.
    assert of_two_classes(replace(traces, share=1 - share / 4)).p == pytest.approx(half.p)
    assert not extrapolated(replace(traces, ends=np.full_like(ends, -1))).holds


def test_a_row_beyond_its_records() -> None:
    """A point that one row alone ends in is no record where two others lie on the same line beyond."""
    records = np.array([[0.0, 0.0], [10.0, 20.0], [-10.0, -20.0], [7.0, 1.0], [3.0, 30.0]])
    lines = np.array([3, 2, 1, 2, 2])
    rows = np.array([[4.0, 8.0], [-3.0, -6.0], [5.0, 0.7]])
    row, ends = np.array([0, 1]), np.array([[0, 1], [2, 0]])
    traces = between_decoded(rows, records, np.ones(5, dtype=bool), lines, row, ends, np.array([0.4, 0.7]))
    assert np.abs(traces.places[traces.ends[0]] - [[0, 0], [10, 20]]).max() == 0
    assert traces.share[0] == pytest.approx(0.4)
    beyond = traces.places[traces.ends[1, 0]] + traces.share[1] * np.subtract(
        *traces.places[traces.ends[1, ::-1]]
    )
    assert beyond == pytest.approx([-3, -6])
    assert not 0 <= traces.share[1] <= 1
    assert traces.known.tolist() == [True, True, False]
    nothing = between_decoded(rows, records, np.zeros(5, dtype=bool), lines, row, ends, np.array([0.4, 0.7]))
    assert not nothing.known.any()


def test_findings_state_no_more_than_their_models() -> None:
    assert Finding("", 0.0).p == SUREST
    assert Finding("", 2.0).p == 1
    assert Finding("", ERROR_RATE).holds
    assert not Finding("", 1.1 * ERROR_RATE).holds


# ------------------------------------------------------------------------------- a gap for each column


def binary(n: int = 60, seed: int = 0) -> tuple[Floats, NDArray[np.bool_]]:
    """Return a table of answers to questions on scales of three and two steps."""
    rng = np.random.default_rng(seed)
    rare = np.arange(12 * n) < n
    groups = rng.integers(0, 5, len(rare))
    return ((rng.random((5, 16)) > 0.5)[groups] ^ (rng.random((len(rare), 16)) < 0.15)).astype(float), rare


def test_a_gap_for_each_column() -> None:
    X, rare = binary()
    boxed = TOOLS["Weka, Chawla"].make(X, rare, 300, 0)
    kind = told(decoded(boxed))
    assert kind.tools == BOXES
    assert kind.error_rate is not None
    assert kind.error_rate <= ERROR_RATE
    assert kind.k_neighbors is None
    mixed = boxed.take(np.random.default_rng(0).permutation(300))
    assert told(decoded(mixed)).tools == ()
    cells = read_cells(boxed.rows)
    assert own_gaps(boxed.rows, cells).holds
    # One gap for all columns: rows can be decoded.
    line = TOOLS["smotefamily"].make(X, rare, 300, 0)
    assert own_gaps(line.rows, read_cells(line.rows)).p == 1


def test_values_of_the_records_that_blocks_start_from() -> None:
    """Static cells are the first parent's: no value is wrong, and nearly all are known."""
    X, rare = binary()
    release = TOOLS["Weka, Chawla"].make(X, rare, 300, 0)
    found = own_gap_bases(release.rows)
    assert found is not None
    bases, order = found
    real = release.first[:: order.size]
    known = ~np.isnan(bases.values)
    # Which of several equally near neighbours are taken, and so how many cells move, is the library's.
    assert known.mean() > 0.9
    assert (bases.values[known] == real[known]).all()
    assert bases.contradicted == 0
    assert ((bases.lowest <= bases.highest).all(axis=1)).all()
    assert (known.all(axis=1)).sum() > 20
    assert own_gap_bases(release.rows[np.random.default_rng(0).permutation(300)]) is None
    assert own_gap_bases(TOOLS["SMOTE"].make(X, rare, 300, 0).rows) is None


def test_common_gaps_are_not_called_own() -> None:
    """The share of rows that show a common gap is far above what the test takes for the least."""
    for seed in range(4):
        X, rare = people(40, seed)
        release = TOOLS["SMOTE"].make(X, rare, 800, seed)
        assert own_gaps(release.rows, read_cells(release.rows)).p > 0.9


# ------------------------------------------------------------------------ nothing was interpolated


@pytest.mark.parametrize("name", CONTROLS)
def test_no_tool_is_told_where_nothing_was_interpolated(name: str) -> None:
    for seed in range(2):
        X, rare = people(40, seed)
        binary_X, binary_rare = binary(40, seed)
        for table_, minority in ((X, rare), (binary_X, binary_rare)):
            release = CONTROLS[name].make(table_, minority, 200, seed)
            assert told(decoded(release)).tools == ()
            assert ReconSMOTE(n_jobs=1).run(release.rows).details["kind"] in ("no lines", "duplication")


def test_no_tool_is_told_of_real_tables() -> None:
    X, rare = people(60)
    for rows in (X[rare], X, np.repeat(X[rare], 3, axis=0), X[np.argsort(X[:, 2])]):
        blank = np.full((len(rows), 2), -1, dtype=np.int64)
        assert told(Traces(rows, np.zeros((0, 6)), blank, np.full(len(rows), np.nan))).tools == ()


def test_no_tool_is_told_of_people_with_several_rows() -> None:
    """Blocks of rows with values of their own person and others that vary: no column has both kinds."""
    rng = np.random.default_rng(0)
    person = np.column_stack([np.round(rng.normal(50, 10, 80)), rng.integers(0, 2, 80)])
    rows = np.column_stack([np.repeat(person, 4, axis=0), rng.normal(size=(320, 3))])
    blank = np.full((320, 2), -1, dtype=np.int64)
    assert told(Traces(rows, np.zeros((0, 5)), blank, np.full(320, np.nan))).tools == ()


def test_small_releases() -> None:
    for rows in (np.zeros((0, 3)), np.zeros((1, 3)), np.arange(12.0).reshape(4, 3), np.eye(3)):
        blank = np.full((len(rows), 2), -1, dtype=np.int64)
        traces = Traces(rows, np.zeros((0, 3)), blank, np.full(len(rows), np.nan))
        kind = identify(traces, np.ones(3))
        assert kind.tools == ()


# -------------------------------------------------------------------------------------- real tables


@pytest.mark.data
@pytest.mark.parametrize("data", ["ecoli", "abalone_19", "car_eval_4"])
def test_the_tool_of_releases_of_real_tables(data: str, data_folder: object) -> None:
    """Every tool that interpolates at three ratios, decoded: at most 3 of 45 may be wrong (1.4e-7)."""
    X, minority = table(data, None)
    wrong, right = [], 0
    for name in LINES:
        if name == "SMOTENC":
            continue
        for ratio in (1, 5, 12):
            release = TOOLS[name].make(X, minority, int(ratio * minority.sum()), 1)
            kind = told(decoded(release))
            if (found := verdict(name, kind.name, kind.tools)) == "wrong":
                wrong.append((name, ratio, kind))
            right += found in ("named", "in a group")
    assert len(wrong) <= 3, wrong
    assert right > 30


def test_groups_are_what_they_say() -> None:
    assert set(FIXED) <= set(EVEN)
    assert not set(BOXES) & set(EVEN)
    assert verdict("SMOTE", "SMOTE", EVEN) == "in a group"
    assert verdict("mixup", "SMOTE", EVEN) == "wrong"
    assert verdict("SVMSMOTE", "SVMSMOTE", ("SVMSMOTE",)) == "named"
    assert verdict("noise", "no lines", ()) == "not told"
