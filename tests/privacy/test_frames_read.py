"""A frame whose rows decided together how a file was read carries no proven guarantee, however public its schema."""

import sqlite3
from contextlib import closing

import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from oversafe import release
from oversafe.data import Column, Schema, read_table
from oversafe.learn import PrivateClassifier, PrivateLogisticRegression
from oversafe.privacy.domains import FRAME_READ
from oversafe.protect import HistogramSynthesizer

PUBLIC = {"missing": False, "domain": "public", "source": "the form"}
SCHEMA = Schema(
    (
        Column("age", "integer", "int64", bounds=(0, 99), **PUBLIC),
        Column("place", "categorical", "object", categories=("a", "b"), **PUBLIC),
        Column("y", "categorical", "object", categories=("no", "yes"), **PUBLIC),
    ),
    label="y",
)
ROWS = pd.DataFrame({"age": [*range(20, 60)], "place": [*"ab"] * 20, "y": ["no", "no", "no", "yes"] * 10})


def _csv(folder):
    ROWS.to_csv(folder / "rows.csv", index=False)
    return folder / "rows.csv"


def _sqlite(folder):
    pytest.importorskip("regex")
    path = folder / "rows.db"
    with closing(sqlite3.connect(path)) as connection:
        ROWS.to_sql("rows", connection, index=False)
    return f"sqlite://{path}#rows"


def _parquet(folder):
    ROWS.to_parquet(folder / "rows.parquet")
    return folder / "rows.parquet"


def _partitions(folder):
    pa.parquet.write_to_dataset(pa.Table.from_pandas(ROWS), folder / "parts", partition_cols=["place"])
    return folder / "parts"


BY_ROWS = {"CSV": _csv, "SQLite": _sqlite, "folder": _partitions}
BY_TYPES = {
    "CSV with a schema": lambda folder: read_table(_csv(folder), schema=SCHEMA),
    "SQLite with a schema": lambda folder: read_table(_sqlite(folder), schema=SCHEMA),
    "folder with a schema": lambda folder: read_table(_partitions(folder), schema=SCHEMA),
    "Parquet": lambda folder: read_table(_parquet(folder)),
    "no file": lambda folder: ROWS,
}
USES = {
    "protector": lambda X, y: HistogramSynthesizer(1.0, schema=SCHEMA).fit(X, y),
    "protector that pays for its domains": lambda X, y: HistogramSynthesizer(
        100.0, delta=1e-6, domains="private"
    ).fit(X, y),
    "learner": lambda X, y: PrivateLogisticRegression(1.0, schema=SCHEMA).fit(X, y),
    "chooser": lambda X, y: PrivateClassifier(1.0, schema=SCHEMA).fit(X, y),
}


def _caveats(use, frame):
    return USES[use](frame.drop(columns="y"), frame["y"]).guarantee_.caveats


@pytest.mark.parametrize("source", BY_ROWS)
@pytest.mark.parametrize("use", USES)
def test_what_the_rows_of_a_file_decided_is_said(use, source, tmp_path):
    frame = read_table(BY_ROWS[source](tmp_path))
    assert FRAME_READ in _caveats(use, frame)


@pytest.mark.parametrize("source", BY_TYPES)
@pytest.mark.parametrize("use", USES)
def test_what_the_rows_did_not_decide_is_not_said(use, source, tmp_path):
    assert FRAME_READ not in _caveats(use, BY_TYPES[source](tmp_path))


def test_a_release_says_it_too(tmp_path):
    told = release(read_table(_csv(tmp_path)), "y", epsilon=1.0, schema=SCHEMA, on_note=lambda sentence: None)
    assert FRAME_READ in told.guarantee.caveats and told.guarantee.status != "proven"
    silent = BY_TYPES["CSV with a schema"](tmp_path)
    proven = release(silent, "y", epsilon=1.0, schema=SCHEMA, on_note=lambda sentence: None)
    assert FRAME_READ not in proven.guarantee.caveats


def test_labels_of_such_a_frame_are_enough(tmp_path):
    frame = read_table(_csv(tmp_path))
    made = HistogramSynthesizer(1.0, schema=SCHEMA).fit(ROWS.drop(columns="y"), frame["y"])
    assert FRAME_READ in made.guarantee_.caveats
