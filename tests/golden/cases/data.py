"""Reading and writing of tables, schemas, domains in bins, counts and encodings."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from oversafe.data import (
    Bins,
    Column,
    Counts,
    FileFormat,
    Schema,
    fold_one_hot,
    load_dataset,
    read_table,
    write_table,
)
from tests.golden.case import case
from tests.golden.output import Output, without_stamps
from tests.golden.tables import PUBLIC, cancer, declared, mixed, numeric, sampled

# Files as programs write them: name, bytes, and how they are to be read.
FILES: dict[str, tuple[bytes, dict[str, Any]]] = {
    "plain": (b"id,age,ward\n1,34,A\n2,51,B\n3,,A\n", {}),
    "semicolons and commas": ("name;dose;day\nMüller;1,5;03.02.2024\nŁoś;2,25;14.12.2023\n".encode(), {}),
    "latin-1": ("name;town\nJörg;Köln\nAnn;Ulm\n".encode("latin-1"), {}),
    "UTF-16": ("name\tvalue\nä\t1.5\nb\t2.5\n".encode("utf-16"), {}),
    "byte order mark": (b"\xef\xbb\xbfage,sex\n3,m\n4,f\n", {}),
    "tabs": (b"a\tb\n1\tx\n2\ty\n", {}),
    "pipes": (b"a|b\n1|x\n2|y\n", {}),
    "quotes": (b'a,b\n"1,5","say ""yes"""\n"2","two\nlines"\n', {}),
    "gaps": (b"a,b,c\nNA,N/A,\n1,,x\nnull,2,nan\n", {}),
    "booleans": (b"f,g,h\ntrue,yes,0\nFALSE,no,1\nTrue,yes,1\n", {}),
    "dates": (b"d,e,f\n2024-01-05,05/01/2024,2024-01-05 10:30:00\n2023-12-31,13/02/2024,2023-01-01\n", {}),
    "American dates": (b"d\n02/13/2024\n12/31/2023\n01/02/2024\n", {}),
    "thousands": (b"v;w\n1.234,50;1'234.5\n2.000,00;2'000.0\n", {}),
    "leading zeros": (b"zip,code\n01234,007\n98765,010\n", {}),
    "long numbers": (b"n,m\n9007199254740993,12345678901234567890\n1,2\n", {}),
    "exponents": (b"x,y\n1e3,1E-5\n-2.5e+2,inf\n", {}),
    "mixed": (b"x,y\n1,a\nb,2\n3,c\n", {}),
    "one column": (b"x\n1\n2\n", {}),
    "windows line ends": (b"a,b\r\n1,x\r\n2,y\r\n", {}),
    "blank lines": (b"\na,b\n1,x\n\n2,y\n\n", {}),
    "given": (b"a;b\n1.5;x,y\n2.5;z\n", {"separator": ";", "decimal": ".", "encoding": "utf-8"}),
    "decimal comma": (b"a;b\n1,5;1\n1,234;2\n", {"decimal": ","}),
    "unpacked": (gzip.compress(b"a,b\n1,x\n2,y\n", mtime=0), {}),
    "a comma that groups": (b"v;w;x\n1,234;0.5;1'234.5\n12,345;1.5;-7\n", {}),
    "both signs": (b"v;w;x\n1,5;0.5;2.5\n2,5;1.5;3.5\n", {}),
    "spaces that group": ("v;w\n1 234,5;1.2.2024\n1\u00a0234;2024-02-03\n".encode(), {}),
    "percent and currency": (b"p,c\n5%,3 EUR\n10 %,4 EUR\n", {}),
}
REFUSED: dict[str, tuple[bytes, dict[str, Any]]] = {
    "empty": (b"", {}),
    "ragged": (b"a,b\n1,2,3\n4,5\n", {}),
    "twice the same name": (b"a,a\n1,2\n", {}),
    "encoding": (b"a\n\xff\xfe\xfa\n", {"encoding": "utf-8"}),
    "separator": (b"a,b\n1,2\n", {"separator": "xx"}),
    "decimal": (b"a,b\n1,2\n", {"decimal": ";"}),
    "only a header": (b"a,b\n", {}),
    "null bytes": (b"\x00\x01\x02\x03", {}),
}


def _file(folder: str, content: bytes) -> Path:
    path = Path(folder) / ("table.csv.gz" if content[:2] == b"\x1f\x8b" else "table.csv")
    path.write_bytes(content)
    return path


def _read(name: str, out: Output) -> None:
    content, options = FILES[name]
    with tempfile.TemporaryDirectory() as folder:
        path = _file(folder, content)
        try:
            table = read_table(path, **options)
        except ValueError as error:
            out.text("refused", without_stamps(str(error), folder))
            return
        out.table("read", table)
        out.number("schema", Schema.infer(table))
        # As texts, where nothing was guessed.
        schema = Schema.infer(table)
        for column in schema:
            schema = schema.declare(column.name, **PUBLIC)
        try:
            out.table(
                "by the schema",
                read_table(path, schema=schema, **{k: options[k] for k in options if k != "decimal"}),
            )
        except ValueError as error:
            out.text("by the schema, refused", without_stamps(str(error), folder))


for _name in FILES:
    case(
        f"data/CSV, {_name}",
        partial(_read, _name),
        covers=("data.read_table",),
        quick=_name in ("semicolons and commas", "gaps", "dates"),
    )


@case("data/CSV, what is refused", covers=("data.read_table",), quick=True)
def _refused(out: Output) -> None:
    for name, (content, options) in REFUSED.items():
        with tempfile.TemporaryDirectory() as folder:
            path = _file(folder, content)
            out.error(name, partial(read_table, path, **options), folder)
    out.error("no file", lambda: read_table("nowhere.csv"))
    out.error("an ending", lambda: read_table("nowhere.xyz"))


_DECLARED = Schema(
    (
        Column("age", "integer", "int64", True, bounds=(0, 120), **PUBLIC),
        Column("dose", "continuous", "float64", True, bounds=(0.0, 10.0), decimals=2, **PUBLIC),
        Column("ward", "categorical", "object", True, categories=("A", "B", "C"), **PUBLIC),
        Column("grade", "ordinal", "object", False, categories=("low", "mid", "high"), **PUBLIC),
        Column("smoker", "boolean", "bool", True, **PUBLIC),
        Column("day", "datetime", "datetime64[s]", True, bounds=("2020-01-01", "2024-12-31"), **PUBLIC),
        Column("state", "categorical", "object", False, categories=("healthy", "ill"), **PUBLIC),
    ),
    label="state",
    file=FileFormat(separator=";", decimal=",", dates="day first", source="a code book"),
)
_CELLS = """age;dose;ward;grade;smoker;day;state
34;1,25;A;low;true;03.02.2024;ill
x;2,5;D;mid;no;31.12.2023;healthy
130;-1;B;hig;1;2024-05-06;healthy
;;;high;;;ill
12,0;1.234,5;a;low;TRUE;13.13.2024;healthy
"""


@case(
    "data/CSV by a declared schema",
    covers=("data.read_table", "data.MisfitWarning", "data.FileFormat"),
    quick=True,
)
def _by_schema(out: Output) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = read_table(_file(folder, _CELLS.encode()), schema=_DECLARED)
    out.table("read", table)
    out.number("schema", _DECLARED)
    out.error("conform", lambda: _DECLARED.conform(table))
    out.text("toml", _DECLARED.to_toml())
    out.number("again", Schema.from_toml(_DECLARED.to_toml()) == _DECLARED)


def _tables() -> dict[str, Callable[[], pd.DataFrame]]:
    return {
        "mixed": lambda: mixed()[0].assign(state=mixed()[1]),
        "numbers": lambda: numeric()[0].assign(y=numeric()[1]),
        "nullable": lambda: mixed(80)[0].convert_dtypes(),
        "Arrow": lambda: mixed(80)[0].drop(columns="exact").convert_dtypes(dtype_backend="pyarrow"),
        "objects": lambda: mixed(80)[0].astype(object),
        "texts": lambda: pd.DataFrame(
            {
                "note": [f"the patient number {i} came on a day" for i in range(60)],
                "mail": [f"p{i}@example.org" for i in range(60)],
                "id": range(1000, 1060),
                "phone": [f"+49 30 {i:06d}" for i in range(60)],
                "code": [f"C{i % 4}" for i in range(60)],
            }
        ),
        "constants and gaps": lambda: pd.DataFrame(
            {"one": 1, "none": [None] * 30, "nan": np.nan, "text": "x", "rare": ["a"] * 29 + ["b"]}
        ),
        "many classes": lambda: pd.DataFrame(
            {"x": np.arange(120) % 7, "town": [f"town {i % 35}" for i in range(120)]}
        ),
    }


def _infer(name: str, out: Output) -> None:
    table = _tables()[name]()
    label = {"mixed": "state", "numbers": "y"}.get(name)
    schema = Schema.infer(table, label=label)
    out.number("schema", schema)
    out.text("toml", schema.to_toml())
    out.number("naming", schema.naming_columns)
    kept = schema.drop([*schema.naming_columns])
    rows = table[list(kept.names)]
    try:
        out.table("conform", kept.conform(rows))
        for one_hot in (False, True):
            matrix = kept.encode(rows, one_hot=one_hot)
            out.number(f"encoded, one-hot {one_hot}", matrix)
            out.table(f"decoded, one-hot {one_hot}", kept.decode(matrix, one_hot=one_hot))
    except ValueError as error:
        out.text("refused", str(error))


for _name in _tables():
    case(
        f"data/schema of {_name}",
        partial(_infer, _name),
        covers=("data.Schema", "data.Column"),
        quick=_name == "mixed",
    )


@case("data/declarations", covers=("data.Schema", "data.Column"), quick=True)
def _declarations(out: Output) -> None:
    X, y = mixed()
    schema = declared(X, y)
    out.number("features", schema.features)
    out.number("dropped", schema.drop(["age"]))
    for name, call in {
        "unknown column": lambda: schema["nothing"],
        "bounds": lambda: schema.declare("age", bounds=(5, 1)),
        "kind": lambda: schema.declare("age", kind="number"),
        "category twice": lambda: schema.declare("ward", categories=("a", "a")),
        "no source": lambda: schema.declare("age", domain="public", source=""),
        "label dropped": lambda: schema.drop(["state"]),
        "toml": lambda: Schema.from_toml("[[column]]\nname = 3"),
        "other columns": lambda: schema.conform(X.rename(columns={"age": "years"})),
        "other values": lambda: schema.conform(X.assign(state=y, age="old")),
    }.items():
        out.error(name, call)


@case("data/Bins", covers=("data.Bins",), quick=True)
def _bins(out: Output) -> None:
    X, y = mixed()
    schema = declared(X, y)
    for column in schema.features:
        for n_bins in (2, 7):
            try:
                own = Bins(column, n_bins)
                cells = own.assign(X[column.name])
                drawn = own.draw(cells, np.random.default_rng(0))
                out.number(f"{column.name}, {n_bins}", [own.n_values, own.n_cells, own.gap_cell])
                out.number(f"{column.name}, {n_bins}, cells", cells)
                out.table(f"{column.name}, {n_bins}", drawn.to_frame())
            except ValueError as error:
                out.text(f"{column.name}, {n_bins}, refused", str(error))
    cut = Bins(schema["dose"], 4, cuts=(2.0, 4.0, 6.5))
    out.number("edges", cut.edges)
    out.number("cut", cut.assign(X["dose"]))


@case("data/Counts", covers=("data.Counts",))
def _counts(out: Output) -> None:
    X, y = mixed()
    schema = declared(X, y)
    bins = {column.name: Bins(column, 4) for column in schema.features}
    table = X[list(bins)]
    sets = [["age"], ["ward", "dose"], ["grade", "smoker", "town"], ["dose", "ward"]]
    with tempfile.TemporaryDirectory() as folder:
        write_table(table, Path(folder) / "t.parquet")
        import ibis

        stored = ibis.duckdb.connect().read_parquet(str(Path(folder) / "t.parquet"))
        for name, source in {"frame": table, "DuckDB": stored}.items():
            counts = Counts(source, bins)
            for each, found in zip(sets, counts.of(sets), strict=True):
                out.number(f"{name}, {' and '.join(each)}", found)
    out.error("unknown column", lambda: Counts(table, bins).of([["nothing"]]))


@case("data/fold_one_hot", covers=("data.fold_one_hot",), quick=True)
def _one_hot(out: Output) -> None:
    table = pd.DataFrame(
        {
            "age": [1, 2, 3],
            "boot_small": [1.0, 0, 0],
            "boot_big": [0.0, 1, 1],
            "a.x": [1, 0, 0],
            "a.y": [0, 1, 1],
        }
    )
    out.table("underscore", fold_one_hot(table))
    out.table("point", fold_one_hot(table, separator="."))


@case("data/write_table", covers=("data.write_table",), quick=True)
def _write(out: Output) -> None:
    X, y = mixed(40)
    table = X.assign(state=y)
    with tempfile.TemporaryDirectory() as folder:
        for name, options in {
            "a.csv": {},
            "b.csv": {"separator": ";", "decimal": ","},
            "c.parquet": {},
            "d.csv.gz": {},
        }.items():
            path = Path(folder) / name
            try:
                write_table(table, path, **options)
            except ValueError as error:
                out.text(name, without_stamps(str(error), folder))
                continue
            if path.suffix == ".csv":
                out.number(f"{name}, lines", path.read_text(encoding="utf-8").splitlines())
            out.table(name, read_table(path))


@case("data/sources", covers=("data.read_table",))
def _sources(out: Output) -> None:
    X, y = mixed(30)
    table = X.assign(state=y)
    out.table("Arrow table", read_table(pa.Table.from_pandas(table)))
    with tempfile.TemporaryDirectory() as folder:
        parts = Path(folder) / "parts"
        for part in ("a", "b"):
            (parts / f"half={part}").mkdir(parents=True)
            write_table(
                table.iloc[:15] if part == "a" else table.iloc[15:], parts / f"half={part}" / "0.parquet"
            )
        out.table("folder of Parquet", read_table(parts))
        import sqlite3

        with sqlite3.connect(Path(folder) / "t.db") as connection:
            table.drop(columns="admitted").to_sql("people", connection, index=False)
        for name in (f"sqlite:///{folder}/t.db?table=people", f"sqlite:///{folder}/t.db::people"):
            out.error(f"database {name.partition('t.db')[2]}", partial(read_table, name), folder)


@case("data/load_dataset, embedded", covers=("data.load_dataset", "data.Dataset"), quick=True)
def _embedded(out: Output) -> None:
    for name, table in zip(("patients", "holdout"), cancer(), strict=True):
        out.table(name, table)
    out.error("unknown", lambda: load_dataset("abalones"))


def _stored(name: str, out: Output) -> None:
    X, y = sampled(name, 60)
    out.table("rows", X, y)
    out.number("schema", Schema.infer(X))


for _name in ("adult", "solar_flare_m0", "german_credit_9", "employee", "creditcard_fraud_21k"):
    case(f"data/data set {_name}", partial(_stored, _name), covers=("data.load_dataset",), data=True)
