"""Counts of column combinations are exact, in memory and wherever the table lies."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from oversafe._core.errors import InputError
from oversafe.data import Bins, Column, Counts, Schema, write_table
from oversafe.data.counts import TableCodes


def plain(sizes, n=1000, seed=0):
    """Return the cells of columns a, b, ... and their counts."""
    rng = np.random.default_rng(seed)
    names = [chr(ord("a") + i) for i in range(len(sizes))]
    cells = {name: rng.integers(0, size, n) for name, size in zip(names, sizes, strict=True)}
    return cells, Counts.of_cells(cells, dict(zip(names, sizes, strict=True)))


def one_by_one(cells, sizes, names):
    counts = np.zeros([sizes[name] for name in names], dtype=np.int64)
    np.add.at(counts, tuple(cells[name] for name in names), 1)
    return counts


def test_counts_by_hand():
    counts = Counts.of_cells({"a": np.array([0, 1, 1]), "b": np.array([2, 0, 0])}, {"a": 2, "b": 3})
    a, ab, ba = counts.of([["a"], ["a", "b"], ["b", "a"]])
    np.testing.assert_array_equal(a, [1, 2])
    np.testing.assert_array_equal(ab, [[0, 0, 1], [2, 0, 0]])
    np.testing.assert_array_equal(ba, ab.T)
    assert a.dtype == np.int64


@pytest.mark.parametrize("n_jobs", [1, 2, -1])
@pytest.mark.parametrize("sizes", [(2, 3, 4, 5), (300, 2, 7, 1), (2, 70_000, 3, 2)])
def test_every_combination_equals_counting_one_by_one(sizes, n_jobs):
    # More rows than the loop takes at a time, and not a multiple of it.
    cells, counts = plain(sizes, n=40_001)
    counts.n_jobs = n_jobs
    sets = [s for k in (1, 2, 3) for s in combinations(reversed(cells), k)]
    for names, found in zip(sets, counts.of(sets), strict=True):
        np.testing.assert_array_equal(found, one_by_one(cells, counts.sizes, names))


def test_more_cells_than_are_counted_at_once_take_more_passes(monkeypatch):
    cells, counts = plain((5, 6, 7, 8))
    sets = list(combinations(cells, 2))
    expected = counts.of(sets)
    monkeypatch.setattr("oversafe.data.counts._CELLS_AT_ONCE", 60)
    monkeypatch.setattr("oversafe.data.counts._ROWS_AT_ONCE", 10)
    for found, own in zip(counts.of(sets), expected, strict=True):
        np.testing.assert_array_equal(found, own)


def test_joined_cells_are_sums_of_cells():
    _, counts = plain((6, 4))
    groups = np.array([0, 0, 1, 1, 2, 2])
    fine, coarse = counts.of([["a", "b"]])[0], counts.coarsened({"A": ("a", groups)}).of([["A", "b"]])[0]
    np.testing.assert_array_equal(coarse, fine.reshape(3, 2, 4).sum(axis=1))


def test_bad_requests_are_one_sentence():
    _, counts = plain((2, 3))
    for sets, message in (
        ([["a", "c"]], "'c' is not counted"),
        ([["a", "a"]], "each column once"),
        ([[]], "at least one"),
    ):
        with pytest.raises(InputError, match=message):
            counts.of(sets)
    with pytest.raises(InputError, match="give a DataFrame"):
        Counts([1, 2], [])
    with pytest.raises(InputError, match="no column 'z'"):
        Counts(pd.DataFrame({"x": [1]}), {"z": Bins(Column("z", "integer", "int64", bounds=(0, 1)))})


# The same table in memory and elsewhere


def strange_table(n=4000, seed=0):
    """Return a table with values inside and outside its domains, of every kind that a database stores."""
    rng = np.random.default_rng(seed)
    number = rng.normal(0, 3, n)
    number[rng.random(n) < 0.05] = np.nan
    number[:4] = [2.0, -2.0, 1e300, -1e300]
    table = pd.DataFrame(
        {
            "number": number,
            # Exactly on the ends of intervals.
            "ends": rng.choice(np.linspace(0, 1, 8), n),
            "whole": pd.array(rng.integers(-5, 30, n), dtype="Int64"),
            "many": rng.integers(0, 5000, n),
            "flag": rng.random(n) < 0.3,
            "digit": rng.integers(0, 5, n),
            "town": rng.choice(["Ulm", "Köln", "Bern's", "elsewhere", ""], n),
            "code": rng.choice(["1", "1.0", "2", "007", "x"], n),
            "written": rng.choice(["1", "1.5", " 2e0", "x", "1_0"], n),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(-40, 400, n), unit="D"),
            "moment": pd.Timestamp("1969-12-31") + pd.to_timedelta(rng.integers(0, 10**6, n), unit="s"),
            "nothing": np.full(n, np.nan),
            "state": rng.choice(["healthy", "ill", "gone"], n, p=[0.9, 0.08, 0.02]),
        }
    )
    for name in ("whole", "town", "code", "day"):
        table.loc[rng.random(n) < 0.1, name] = None
    return table


def strange_bins():
    columns = [
        Column("number", "continuous", "float64", missing=True, bounds=(-2.0, 2.0)),
        Column("ends", "continuous", "float64", bounds=(0.0, 1.0)),
        Column("whole", "integer", "Int64", missing=True, bounds=(0, 20)),
        Column("many", "integer", "int64", bounds=(0, 4999)),
        Column("flag", "boolean", "bool", categories=(False, True)),
        Column("digit", "categorical", "str", missing=True, categories=("3", 1, 2.0, "001")),
        Column("town", "categorical", "str", missing=True, categories=("Köln", "Ulm", "Bern's")),
        Column("code", "categorical", "str", missing=True, categories=(1, "2", "007")),
        Column("written", "continuous", "float64", missing=True, bounds=(0.0, 3.0)),
        Column("day", "datetime", "datetime64[us]", True, ("2024-01-10", "2024-11-30"), resolution="D"),
        Column("moment", "datetime", "datetime64[us]", False, ("1970-01-01", "1970-01-09"), resolution="h"),
        Column("nothing", "continuous", "float64", missing=True),
        Column("state", "categorical", "str", categories=("healthy", "ill")),
    ]
    bins = {column.name: Bins(column, 7) for column in columns}
    # More cells than a byte holds.
    bins["many"] = Bins(bins["many"].column, 500)
    return bins


STRANGE_SETS = [
    *combinations(strange_bins(), 1),
    *combinations(strange_bins(), 2),
    ("state", "number", "town"),
    ("code", "written", "whole"),
]


def assert_same_counts(counts, table):
    expected = Counts(table, strange_bins())
    assert counts.n_rows == expected.n_rows == len(table)
    for names, found, own in zip(
        STRANGE_SETS, counts.of(STRANGE_SETS), expected.of(STRANGE_SETS), strict=True
    ):
        np.testing.assert_array_equal(found, own, err_msg=str(names))
        assert found.sum() == len(table)


def test_memory_equals_the_bins_themselves():
    table, bins = strange_table(), strange_bins()
    cells = {name: own.assign(table[name]) for name, own in bins.items()}
    counts = Counts(table, bins)
    for names, found in zip(STRANGE_SETS, counts.of(STRANGE_SETS), strict=True):
        np.testing.assert_array_equal(found, one_by_one(cells, counts.sizes, names))


def test_a_parquet_folder_equals_memory(tmp_path):
    table = strange_table()
    write_table(table[:1500], tmp_path / "a.parquet")
    write_table(table[1500:], tmp_path / "b.parquet")
    assert_same_counts(Counts.open(tmp_path, strange_bins(), n_jobs=2), table)
    assert_same_counts(Counts.open(tmp_path / "a.parquet", strange_bins()), table[:1500])


def test_a_duckdb_file_equals_memory(tmp_path):
    table = strange_table()
    write_table(table, f"duckdb://{tmp_path}/t.ddb#patients")
    assert_same_counts(Counts.open(f"duckdb://{tmp_path}/t.ddb#patients", strange_bins()), table)


def test_cells_that_the_database_assigns_equal_memory(tmp_path):
    """What other databases are asked for, asked of DuckDB, which is always there."""
    from oversafe.data.io import _sources

    class Pushed(_sources._IbisCodes):
        _batches = _sources._DuckDBCodes._batches

    table = strange_table()
    write_table(table, tmp_path / "t.parquet")
    source = Pushed(_sources.open_table(tmp_path / "t.parquet"), strange_bins())
    _, packed, raw = source._query(list(strange_bins()))
    # Only text that means numbers needs more than the database knows.
    assert set(raw) == {"code", "written"} and len({word for word, *_ in packed.values()}) == 1
    counts = Counts.__new__(Counts)
    counts._begin(source, {name: own.n_cells for name, own in strange_bins().items()}, 1)
    assert_same_counts(counts, table)


def test_folders_in_the_manner_of_hive_are_columns(tmp_path):
    for year in (2023, 2024):
        (tmp_path / f"year={year}").mkdir()
        write_table(pd.DataFrame({"x": [1, 2, year]}), tmp_path / f"year={year}" / "part.parquet")
    bins = [
        Bins(Column("year", "integer", "int64", bounds=(2023, 2024))),
        Bins(Column("x", "integer", "int64", bounds=(1, 3))),
    ]
    (found,) = Counts.open(tmp_path, bins).of([["year", "x"]])
    np.testing.assert_array_equal(found, [[1, 1, 1], [1, 1, 1]])


def test_a_sample_is_taken_in_the_same_pass(tmp_path):
    table = strange_table(20_000)
    write_table(table, tmp_path / "t.parquet")
    counts = Counts.open(tmp_path / "t.parquet", strange_bins())
    rng = np.random.default_rng(0)
    (found,), sample = counts.of_with_sample([["state", "digit"]], 5000, rng)
    np.testing.assert_array_equal(found, counts.of([["state", "digit"]])[0])
    # Binomial with mean 5,000: 6 standard deviations are below 400, and probability below 1e-8.
    assert isinstance(sample._source, TableCodes) and abs(sample.n_rows - 5000) < 400
    thin = sample.of([["state", "digit"], ["number"]])
    assert (thin[0] <= found).all() and thin[1].sum() == sample.n_rows
    assert counts.of_with_sample([["state"]], 30_000, rng)[1] is counts


def test_sources_that_cannot_be_read_in_place(tmp_path):
    (tmp_path / "t.csv").write_text("a\n1\n")
    with pytest.raises(InputError, match="Parquet file, a folder of them or a database"):
        Counts.open(tmp_path / "t.csv", strange_bins())
    (tmp_path / "broken.parquet").write_bytes(b"not parquet")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        Counts.open(tmp_path / "broken.parquet", strange_bins())
    write_table(pd.DataFrame({"x": [1]}), tmp_path / "t.parquet")
    with pytest.raises(InputError, match="no column 'number'"):
        Counts.open(tmp_path / "t.parquet", strange_bins())


@pytest.mark.engines
def test_postgresql_equals_memory(postgres_url):
    table = strange_table()
    write_table(table, f"{postgres_url}#strange")
    assert_same_counts(Counts.open(f"{postgres_url}#strange", strange_bins()), table)


@pytest.mark.engines
def test_spark_equals_memory(spark):
    table = strange_table()
    frame = spark.createDataFrame(table.astype(object).where(table.notna(), None), schema=SPARK_TYPES)
    frame.repartition(3).createOrReplaceTempView("strange")
    counts = Counts.open("pyspark://#strange", strange_bins())
    # Text that means numbers comes through the driver; the others are counted by the workers.
    assert not counts._source.counts_by_itself
    assert_same_counts(counts, table)
    kept = [name for name in strange_bins() if name not in ("code", "written")]
    counted = Counts.open("pyspark://#strange", {name: strange_bins()[name] for name in kept})
    assert counted._source.counts_by_itself
    groups = np.array([0, 0, 1, 1, 1, 2, 2, 2])
    sets = [[*s] for s in combinations(kept, 2)] + [["coarse", "state"]]
    expected = Counts(table, strange_bins()).coarsened({"coarse": ("whole", groups)}).of(sets)
    for found, own in zip(counted.coarsened({"coarse": ("whole", groups)}).of(sets), expected, strict=True):
        np.testing.assert_array_equal(found, own)


SPARK_TYPES = (
    "number double, ends double, whole bigint, many bigint, flag boolean, digit bigint, town string, code string, "
    "written string, day timestamp_ntz, moment timestamp_ntz, nothing double, state string"
)


def test_schema_of_the_examples_covers_the_table():
    assert set(Schema(tuple(b.column for b in strange_bins().values())).names) == set(strange_table())
