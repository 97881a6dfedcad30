"""The ways from a table to what leaves: files, frames of all dtypes, arrays, lists and sources, by every method."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import io
import json
import os
import re
import sqlite3
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet

from oversafe import learn, protect
from oversafe._core.errors import InputError, MissingExtraError
from oversafe.cli.program import main
from oversafe.data import read_table
from oversafe.releasing import Release, release
from tests.replay.answers import Transcript, replayed
from tests.replay.neighbours import Pair, cell_text

BOTH = ("replace-one", "add-remove")


@dataclass(frozen=True)
class Method:
    """A method with proven guarantees, in small settings.

    Parameters
    ----------
    make : class
        Of a synthesizer or a classifier.
    command : str
        Its name on the command line, "" for none.
    settings : mapping
        Beside the schema and the relation.
    relations : tuple of str
        Those that it has.
    package : str, optional
        What it needs.
    deep : bool
        Whether a fit takes seconds.
    """

    make: Callable[..., Any]
    command: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    relations: tuple[str, ...] = BOTH
    package: str | None = None
    deep: bool = False

    @property
    def skipped(self) -> bool:
        """Whether what it needs is not installed."""
        return self.package is not None and find_spec(self.package) is None

    @property
    def estimates(self) -> bool:
        """Whether it finds the columns' domains in the data and pays for it."""
        return self.settings.get("domains") == "private"

    @property
    def learns(self) -> bool:
        """Whether it is a classifier."""
        return "relation" not in inspect.signature(self.make).parameters

    @property
    def persons(self) -> bool:
        """Whether it can protect persons."""
        return "rows_per_person" in inspect.signature(self.make).parameters


_BINS = {"n_bins": 4}
_ESTIMATED = {**_BINS, "epsilon": 1000.0, "delta": 1e-6, "domains": "private"}
_ONE = ("replace-one",)


def _threshold(**settings: Any) -> Any:
    return learn.PrivateThresholdClassifier(**settings)


METHODS: dict[str, Method] = {
    "histograms": Method(protect.HistogramSynthesizer, "histograms", _BINS),
    "histograms, delta": Method(protect.HistogramSynthesizer, "histograms", {**_BINS, "delta": 1e-9}),
    "histograms, estimated": Method(protect.HistogramSynthesizer, "histograms", _ESTIMATED),
    "histograms, quantiles": Method(
        protect.HistogramSynthesizer, "histograms", {**_BINS, "epsilon": 50.0, "binning": "quantile"}
    ),
    "privbayes": Method(protect.PrivBayes, "privbayes", {**_BINS, "epsilon": 50.0}),
    "privbayes, small": Method(protect.PrivBayes, "privbayes", {**_BINS, "epsilon": 0.5}),
    "privbayes, estimated": Method(protect.PrivBayes, "privbayes", _ESTIMATED),
    "mixture": Method(
        protect.PrivateMixture, "mixture", {**_BINS, "epsilon": 200.0, "n_steps": 3, "n_components": 4}
    ),
    "mixture, small": Method(
        protect.PrivateMixture, "mixture", {**_BINS, "epsilon": 1.0, "n_steps": 3, "n_components": 4}
    ),
    "mixture, estimated": Method(
        protect.PrivateMixture, "mixture", {**_ESTIMATED, "n_steps": 3, "n_components": 4}
    ),
    "gem": Method(
        protect.GEM,
        "gem",
        {**_BINS, "epsilon": 50.0, "n_rounds": 1, "n_products": 8, "embedding": 4, "n_steps": 2},
        package="torch",
    ),
    "mst": Method(protect.MST, "mst", {**_BINS, "epsilon": 50.0}, package="mbi", deep=True),
    "aim": Method(protect.AIM, "aim", {**_BINS, "epsilon": 50.0}, package="mbi", deep=True),
    "dpgan": Method(
        protect.DPGAN, "dpgan", {**_BINS, "epochs": 1, "batch_size": 5}, package="opacus", deep=True
    ),
    "pategan": Method(
        protect.PATEGAN,
        "pategan",
        {**_BINS, "n_rounds": 2, "n_votes": 20, "n_teachers": 5},
        package="opacus",
    ),
    "threshold": Method(_threshold, relations=_ONE),
    "threshold, delta": Method(_threshold, settings={"delta": 1e-6}, relations=_ONE),
    "bagging": Method(lambda **s: learn.PrivateBaggingClassifier(_threshold(), 2, **s), relations=_ONE),
    "logistic": Method(learn.PrivateLogisticRegression, relations=_ONE),
    "svc": Method(learn.PrivateLinearSVC, relations=_ONE),
    "svc, kernel": Method(
        learn.PrivateLinearSVC, settings={"kernel": "rbf", "n_components": 4}, relations=_ONE
    ),
    "balanced synthesis": Method(
        lambda **s: learn.BalancedSynthesisClassifier(
            protect.HistogramSynthesizer(n_bins=4), n_samples=40, **s
        ),
        relations=_ONE,
    ),
    "chosen": Method(learn.PrivateClassifier, relations=_ONE),
    "transformer": Method(
        learn.PrivateFTTransformer,
        settings={"epochs": 1, "batch_size": 5, "dimension": 8, "depth": 1, "heads": 2},
        relations=_ONE,
        package="opacus",
        deep=True,
    ),
}


@dataclass
class Outcome:
    """What leaves a run, and what its mechanisms were asked.

    Parameters
    ----------
    status : str
        "proven", "nominal", "none", "refused", "defect"; or "unread" where no table was made of the bytes.
    leaves : dict of str to str
        All that others see, by its place.
    transcript : Transcript
        The questions.
    """

    status: str
    leaves: dict[str, str]
    transcript: Transcript


def differences(a: Outcome, b: Outcome) -> list[str]:
    """Return what tells two neighbours apart, in sentences; nothing where nothing was promised."""
    if "unread" in (a.status, b.status):
        return []
    if "defect" in (a.status, b.status):
        return [f"a defect: {_said(a)} and {_said(b)}"]
    if "proven" not in (a.status, b.status) and (a.status, b.status) != ("refused", "refused"):
        return []
    if a.status != b.status:
        return [f"{a.status} ({_said(a)}) and {b.status} ({_said(b)})"]
    if a.status == "refused":
        # Nothing else leaves.
        return [f"refused with {_said(a)!r} and {_said(b)!r}"] if a.leaves != b.leaves else []
    asked, of_other = a.transcript.questions, b.transcript.questions
    found = [wrong for q, r in zip(asked, of_other, strict=False) if (wrong := q.wrong_beside(r))]
    if len(asked) != len(of_other) and not found:
        found.append(f"{len(asked)} questions were asked of one and {len(of_other)} of the other")
    for place in dict.fromkeys([*a.leaves, *b.leaves]):
        mine, theirs = a.leaves.get(place, "nothing"), b.leaves.get(place, "nothing")
        if mine != theirs:
            found.append(f"{place} is {mine[:200]} and {theirs[:200]}")
    return found


def _said(outcome: Outcome) -> str:
    return outcome.leaves.get("error", "released")[:200]


# ------------------------------------------------------------------------------------------------ what leaves


def described(value: Any, place: str, *, exact: bool = True) -> Iterator[tuple[str, str]]:
    """Return all that an object holds, by its place; without ``exact`` real numbers by their shape alone."""
    waiting, seen = [(place, value)], []
    while waiting:
        at, own = waiting.pop()
        if isinstance(own, pd.DataFrame):
            waiting += [(f"{at}[{name!r}]", own.iloc[:, i]) for i, name in enumerate(own.columns)]
            yield at, f"a frame of shape {own.shape}, {type(own.index).__name__}"
        elif isinstance(own, pd.Series | pd.Index | pd.api.extensions.ExtensionArray):
            cells = [repr(cell) for cell in own.tolist()]
            yield at, f"{getattr(own, 'name', None)!r} {own.dtype!r} {cells}"
        elif isinstance(own, np.ndarray) and own.dtype != object:
            real = own.dtype.kind == "f" and not exact
            content = "" if real else f" {own.tolist() if own.size < 9 else _hash(own)}"
            yield at, f"{own.dtype} {own.shape}{content}"
        elif isinstance(own, float | np.floating) and not exact:
            yield at, type(own).__name__
        elif own is None or isinstance(
            own, str | bytes | int | float | complex | np.generic | pd.Timestamp | type
        ):
            yield at, f"{type(own).__name__} {own!r}"
        elif isinstance(own, dict):
            yield at, f"dict of {list(own)!r}"
            waiting += [(f"{at}[{key!r}]", each) for key, each in own.items()]
        elif isinstance(own, list | tuple | set | frozenset | np.ndarray):
            yield at, f"{type(own).__name__} of {len(own)}"
            cells = sorted(own, key=repr) if isinstance(own, set | frozenset) else list(own)
            waiting += [(f"{at}[{i}]", each) for i, each in enumerate(cells)]
        elif callable(own) or not hasattr(own, "__dict__"):
            yield at, re.sub(r"0x[0-9A-Fa-f]+", "", repr(own))
        elif not any(own is other for other in seen):
            seen.append(own)
            yield at, type(own).__qualname__
            waiting += [(f"{at}.{name}", each) for name, each in vars(own).items()]


def _hash(values: np.ndarray) -> str:
    if values.dtype.names:
        return " ".join(_hash(np.ascontiguousarray(values[name])) for name in values.dtype.names)
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()[:12]


# ------------------------------------------------------------------------------------------------- the inputs


def _objects(pair: Pair, side: int) -> pd.DataFrame:
    return pd.DataFrame(pair.rows[side], columns=list(pair.schema.names), dtype=object)


def _texts(pair: Pair, side: int, dtype: Any = "str") -> pd.DataFrame:
    rows = [[_whole_text(cell) for cell in row] for row in pair.rows[side]]
    return pd.DataFrame(rows, columns=list(pair.schema.names), dtype=object).astype(dtype)


def _file(pair: Pair, side: int, folder: Path) -> Path:
    path = folder / "table.csv"
    path.write_bytes(pair.csv(side))
    return path


def _as_pandas_reads(pair: Pair, side: int, folder: Path) -> pd.DataFrame:
    path, file = _file(pair, side, folder), pair.schema.file
    return pd.read_csv(path, sep=file.separator, decimal=file.decimal, encoding_errors="replace")


def _parquet(pair: Pair, side: int, folder: Path, *, typed: bool) -> Path:
    """Write a table as Parquet: of texts, or with the declared types where both neighbours' cells have them."""
    columns = {}
    for column in pair.schema:
        both = [[row[pair.schema.names.index(column.name)] for row in rows] for rows in pair.rows]
        texts = [[_whole_text(cell) for cell in cells] for cells in both]
        columns[column.name] = pa.array(texts[side], pa.string())
        if not typed or column.kind not in ("continuous", "integer"):
            continue
        kind = pa.float64() if column.kind == "continuous" else pa.int64()
        with contextlib.suppress(pa.ArrowException, TypeError, OverflowError):
            columns[column.name] = [pa.array(cells, kind) for cells in both][side]
    path = folder / "table.parquet"
    pa.parquet.write_table(pa.table(columns), path)
    return path


def _whole_text(cell: Any) -> str | None:
    text = cell_text(cell)
    return None if text is None else text.encode(errors="replace").decode()


def _dates(pair: Pair, side: int, folder: Path) -> pd.DataFrame:
    """Return a frame whose declared dates are dates, and whose declared numbers are numbers or missing."""
    frame = _objects(pair, side)
    for column in pair.schema:
        if column.kind == "datetime":
            frame[column.name] = pd.to_datetime(
                _texts(pair, side)[column.name], errors="coerce", format="ISO8601"
            )
        elif column.kind in ("continuous", "integer"):
            frame[column.name] = pd.to_numeric(frame[column.name].map(cell_text), errors="coerce")
    return frame


FRAMES: dict[str, Callable[[Pair, int, Path], pd.DataFrame]] = {
    "pandas.read_csv": _as_pandas_reads,
    "objects": lambda pair, side, folder: _objects(pair, side),
    "texts": lambda pair, side, folder: _texts(pair, side),
    "category": lambda pair, side, folder: _texts(pair, side, "category"),
    "nullable": lambda pair, side, folder: _as_pandas_reads(pair, side, folder).convert_dtypes(),
    "arrow": lambda pair, side, folder: _texts(pair, side, pd.ArrowDtype(pa.string())),
    "dates": _dates,
    "parquet": lambda pair, side, folder: read_table(_parquet(pair, side, folder, typed=True)),
    "declared": lambda pair, side, folder: read_table(_file(pair, side, folder), schema=pair.schema),
    "declared Arrow": lambda pair, side, folder: read_table(
        pa.parquet.read_table(_parquet(pair, side, folder, typed=False)), schema=pair.schema
    ),
}
PLAIN = ("array", "list")


def _folder(pair: Pair, side: int, folder: Path) -> Path:
    """Write a table as a folder of Parquet files, parted by its first feature, whose cells are names of folders."""
    table = pa.parquet.read_table(_parquet(pair, side, folder, typed=False))
    (folder / "table.parquet").unlink()
    parted = next(i for i, c in enumerate(pair.schema) if c.name not in ("y", "pid"))
    # As long as a folder's name may be.
    names = pa.array(
        [None if text is None else text[:50] for text in table.column(parted).to_pylist()], pa.string()
    )
    table = table.set_column(parted, table.column_names[parted], names)
    pa.parquet.write_to_dataset(table, folder / "parts", partition_cols=[table.column_names[parted]])
    return folder / "parts"


def _sqlite(pair: Pair, side: int, folder: Path) -> str:
    """Write a table to SQLite, where each cell has a type of its own."""
    path, names = (folder / "table.db").absolute(), pair.schema.names
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE TABLE rows ({', '.join(names)})")
        rows = [[_of_sqlite(cell) for cell in row] for row in pair.rows[side]]
        connection.executemany(f"INSERT INTO rows VALUES ({', '.join('?' * len(names))})", rows)
    return f"sqlite://{path}#rows"


def _of_sqlite(cell: Any) -> Any:
    if isinstance(cell, float) or (isinstance(cell, int) and abs(cell) < 2**63):
        return cell
    return _whole_text(cell)


SOURCES: dict[str, Callable[[Pair, int, Path], Any]] = {
    "source of texts": lambda pair, side, folder: _parquet(pair, side, folder, typed=False),
    "source with types": lambda pair, side, folder: _parquet(pair, side, folder, typed=True),
    "source, folder": _folder,
}
_DROPPED = "command, unlabelled dropped"
COMMANDS: dict[str, tuple[Callable[[Pair, int, Path], Any], tuple[str, ...]]] = {
    "command, CSV": (_file, ()),
    "command, Parquet of texts": (SOURCES["source of texts"], ()),
    "command, Parquet with types": (SOURCES["source with types"], ()),
    "command, folder": (_folder, ()),
    "command, SQLite": (_sqlite, ()),
    _DROPPED: (_file, ("--drop-unlabelled",)),
}
# By one call of Python, from tables of many kinds.
RELEASED = {f"release() of {way}": way for way in ("objects", "texts", "category", "nullable", "declared")}


def ways(method: Method, pair: Pair) -> tuple[str, ...]:
    """Return the ways that a pair can go by a method."""
    possible = [*FRAMES]
    if pair.schema.person is None:
        possible += PLAIN
    if hasattr(method.make, "fit_source") and not method.estimates and "binning" not in method.settings:
        possible += SOURCES
    if method.command:
        # Twice: this is the way that most take.
        possible += [*COMMANDS, *COMMANDS, *RELEASED]
        if method.estimates and pair.schema.file.decimal != ".":
            # Without a schema nothing says that a comma was a decimal sign to the reader, which asked all rows.
            possible.remove("release() of nullable")
    if pair.schema.person is not None or method.package == "opacus":
        # Lots, of a person's rows, of teachers and of samples, are drawn by places, which a further folder changes.
        possible = [way for way in possible if "folder" not in way]
    return tuple(possible)


# ------------------------------------------------------------------------------------------------- the runs


def run(method: Method, pair: Pair, side: int, way: str, seed: int = 0) -> Outcome:
    """Take one of two neighbours the whole way."""
    transcript = Transcript(seed, pair.relation, pair.shared)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if way in COMMANDS:
            return _commanded(method, pair, side, way, transcript)
        # What a reader of others makes of the bytes, or ours without a schema, is the holder's own doing.
        try:
            data = None if way in SOURCES else _material(pair, side, RELEASED.get(way, way))
        except (InputError, ValueError) as error:
            return Outcome("unread", {"error": str(error)}, transcript)
        leaves, status = {}, "refused"
        try:
            with replayed(transcript):
                if way in RELEASED:
                    made = _released(method, pair, data)
                    status = made.guarantee.status
                    seen = {
                        "table": made.table,
                        "settings": made.settings,
                        "guarantee": made.guarantee.to_dict(),
                    }
                    leaves = dict(described(seen, "release"))
                else:
                    fitted = _fitted(method, pair, side, way, data)
                    status = fitted.guarantee_.status
                    leaves = dict(_left(method, pair, fitted, transcript))
        except Exception as error:
            known = isinstance(error, InputError | MissingExtraError | ValueError | TypeError)
            status, leaves = "refused" if known else "defect", {"error": f"{type(error).__name__}: {error}"}
    return Outcome(status, leaves, transcript)


def _material(pair: Pair, side: int, way: str) -> tuple[Any, Any]:
    if way in PLAIN:
        frame = _objects(pair, side)
        X, y = frame.drop(columns="y").to_numpy(), frame["y"].to_numpy()
        return (X, y) if way == "array" else (X.tolist(), y.tolist())
    frame = FRAMES[way](pair, side, Path())
    return frame.drop(columns="y"), frame["y"]


def _fitted(method: Method, pair: Pair, side: int, way: str, data: tuple[Any, Any] | None) -> Any:
    settings = {**method.settings, "schema": pair.schema}
    if not method.learns:
        settings["relation"] = pair.relation
    if pair.bound is not None:
        settings["rows_per_person"] = pair.bound
    made = method.make(**settings)
    if data is None:
        return made.fit_source(SOURCES[way](pair, side, Path()))
    return made.fit(*data)


def _released(method: Method, pair: Pair, data: Any) -> Release:
    settings = {**method.settings, "relation": pair.relation}
    return release(
        data[0].assign(y=data[1]),
        "y",
        method=method.command,
        epsilon=settings.pop("epsilon", 1.0),
        schema=None if method.estimates else pair.schema,
        rows_per_person=pair.bound,
        settings=settings,
        on_note=lambda sentence: None,
    )


def _left(method: Method, pair: Pair, fitted: Any, transcript: Transcript) -> Iterator[tuple[str, str]]:
    """Return what a fitted object gives away: its state, and what it draws or predicts."""
    exact = not transcript.continuous
    yield from described(fitted, "fitted", exact=exact)
    if hasattr(fitted, "sample"):
        X, y = fitted.sample()
        yield from described(X, "release")
        yield from described(y, "labels")
    elif exact:
        public = pd.DataFrame({c.name: list((c.categories or c.bounds)[:1]) for c in pair.schema.features})
        yield from described(fitted.predict(public), "predictions")


def _commanded(method: Method, pair: Pair, side: int, way: str, transcript: Transcript) -> Outcome:
    settings = {**method.settings, "relation": pair.relation}
    epsilon = settings.pop("epsilon", 1.0)
    write, options = COMMANDS[way]
    file = str(write(pair, side, Path()))
    command = ["protect", file, "--label", "y", "--method", method.command, "--epsilon", str(epsilon)]
    if pair.bound is not None:
        command += ["--rows-per-person", str(pair.bound)]
    if not method.estimates:
        pair.schema.to_toml("schema.toml")
        command += ["--schema", "schema.toml"]
    command += options
    for name, value in settings.items():
        command += ["--set", f"{name}={json.dumps(value)}"]
    code, said = commanded([*command, "--out", "release.csv"], transcript)
    paper = Path("release.csv.manifest.json")
    if code != 0 or not paper.exists():
        error = f"exit code {code}: {said.strip().splitlines()[-1]}"
        if way == _DROPPED:
            # With this option that there are rows counts as public, and under replace-one a guarantee is nominal.
            error = f"exit code {code}"
        return Outcome("refused" if code == 2 else "defect", {"error": error}, transcript)
    manifest = json.loads(paper.read_text())
    # The signature and the seal are made of the others, under keys of the holder.
    for name in ("created", "sha256", "signature", "seal"):
        del manifest[name]
    leaves = {"release": Path("release.csv").read_text(), "manifest": json.dumps(manifest)}
    return Outcome(manifest["guarantee"]["status"], leaves, transcript)


def commanded(command: list[str], transcript: Transcript) -> tuple[int, str]:
    """Run the command line here; return its exit code and what it wrote to the terminal as errors."""
    before, sys.argv = sys.argv, ["oversafe", *command]
    out, errors = io.StringIO(), io.StringIO()
    columns = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "100000"
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors), replayed(transcript):
            main()
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.argv = before
        os.environ.pop("COLUMNS") if columns is None else os.environ.update(COLUMNS=columns)
    return code, errors.getvalue()
