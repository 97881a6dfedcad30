"""What is fed with hostile input, and what it may do: its work, or say in one sentence what is wrong."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from oversafe import attack, audit, learn, protect
from oversafe._core.errors import InputError, MissingExtraError
from oversafe.cli.program import main
from oversafe.data import Schema, read_table, write_table
from tests.fuzz.source import Source
from tests.fuzz.tables import labels, table, variant
from tests.protect.conformance import CASES
from tests.replay.pairs import replay
from tests.replay.ways import METHODS

# Errors that say what a user should do.
MENDABLE = (InputError, MissingExtraError)
CSV_PIECES = (
    b"a,b\n1,2\n", b"a;b\n1,5;2\n", b"\xef\xbb\xbfa;\xe4\n", b"\xff\xfea\x00\n\x00", b'"', b"\n", b"\r\n",
    b",", b";", b"\t", b"\x00", b"\xe4", b"31.12.2023", b"1.234,56", b"=1+1", b"'=1", b"nan", b"1e999", b"-",
    b"0123", b"true",
    b" ", b"9" * 40,
)  # fmt: skip
PROTECTORS = {name: case for name, case in CASES.items() if case.package is None}
LEARNERS = {
    "PrivateLogisticRegression": lambda: learn.PrivateLogisticRegression(1.0),
    "PrivateLinearSVC": lambda: learn.PrivateLinearSVC(1.0),
    "PrivateThresholdClassifier": lambda: learn.PrivateThresholdClassifier(1.0),
    "PrivateBaggingClassifier": lambda: learn.PrivateBaggingClassifier(
        learn.PrivateLogisticRegression(1.0), 3
    ),
    "BalancedSynthesisClassifier": lambda: learn.BalancedSynthesisClassifier(
        protect.HistogramSynthesizer(1.0), n_samples=50
    ),
}
ATTACKS: dict[str, Callable[[Source, pd.DataFrame, pd.DataFrame], Any]] = {
    "ReconSMOTE": lambda source, made, real: attack.ReconSMOTE(n_jobs=1).run(made, real),
    "DistinSMOTE": lambda source, made, real: attack.DistinSMOTE(n_jobs=1).run(made),
    "ExactCopies": lambda source, made, real: attack.ExactCopies().run(made, real, variant(source, real)),
    "ClosestRecord": lambda source, made, real: attack.ClosestRecord().run(made, real, variant(source, real)),
    "Linkability": lambda source, made, real: attack.Linkability(n_jobs=1).run(
        made, real, variant(source, real)
    ),
    "SinglingOut": lambda source, made, real: attack.SinglingOut().run(made, real, variant(source, real)),
    "AttributeInference": lambda source, made, real: attack.AttributeInference(n_jobs=1).run(
        made, real, variant(source, real)
    ),
    "NaiveDistinguisher": lambda source, made, real: attack.NaiveDistinguisher().run(made, real),
}


def reading(source: Source) -> None:
    """A file of any bytes is a table that survives being written, or an error of one sentence."""
    suffix = source.choose((".csv", ".tsv", ".txt", ".csv.gz", ".parquet"))
    pieces = [source.choose(CSV_PIECES) for _ in range(source.whole(24))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"table{suffix}"
        path.write_bytes(b"".join(pieces) + source.rest())
        read = read_table(path)
        assert len(read) and read.columns.is_unique
        write_table(read, Path(folder) / "again.csv")
        again = read_table(Path(folder) / "again.csv")
        assert again.shape == read.shape and list(again.columns) == list(read.columns)


def schemas(source: Source) -> None:
    """A schema file of any bytes is a schema that survives being written, or an error."""
    pieces = (
        b'label = "a"\n', b'[[column]]\nname = "a"\nkind = "integer"\ndtype = "int64"\n', b"bounds = [0, 1]\n",
        b'[[column]]\nname = "b"\nkind = "categorical"\ndtype = "object"\n', b"categories = [1, 'x']\n",
        b'domain = "public"\n', b'source = "law"\n', b"[column.a]\n", b'kind = "continuous"\n', b"missing = true\n",
        b"bounds = [0, 1e400]\n", b"decimals = -3\n", b"categories = []\n", b"x = nan\n", b"bounds = [2, 1]\n",
    )  # fmt: skip
    data = b"version = 1\n" + b"".join(source.choose(pieces) for _ in range(source.whole(12)))
    if not source.often():
        data += source.rest()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "schema.toml"
        path.write_bytes(data)
        schema = Schema.from_toml(path)
        assert Schema.from_toml(schema.to_toml()) == schema


def inferring(source: Source) -> None:
    """A table's schema encodes it and gives it back."""
    own = table(source)
    schema = Schema.infer(own)
    back = schema.decode(schema.encode(own))
    assert list(back.columns) == [str(name) for name in own.columns] and len(back) == len(own)


def protecting(source: Source) -> None:
    """A protector returns rows with the same columns and known labels."""
    name = source.choose(tuple(PROTECTORS))
    X = table(source)
    y = labels(source, len(X) if source.often() else source.choose((0, 1, 7)))
    made, made_labels = PROTECTORS[name].make(random_state=0).fit_resample(X, y)
    # By their texts: a name that is NaN is not equal to itself.
    assert [*map(repr, made.columns)] == [*map(repr, X.columns)] and len(made) == len(made_labels)
    known = y.cat.categories if isinstance(y.dtype, pd.CategoricalDtype) else pd.unique(y)
    assert set(pd.unique(made_labels)) <= set(known)


def attacking(source: Source) -> None:
    """An attack returns a risk between 0 and 1 with its interval around it."""
    name = source.choose(tuple(ATTACKS))
    real = table(source)
    result = ATTACKS[name](source, variant(source, real), real)
    assert 0 <= result.risk <= 1 and result.interval[0] <= result.interval[1]


def learning(source: Source) -> None:
    """A private classifier predicts known labels, with probabilities that sum to one."""
    name = source.choose(tuple(LEARNERS))
    X = table(source)
    y = labels(source, len(X))
    model = LEARNERS[name]().fit(X, y)
    known = y.cat.categories if isinstance(y.dtype, pd.CategoricalDtype) else np.asarray(y)
    assert set(pd.unique(np.asarray(model.predict(X)))) <= set(known.tolist())
    if hasattr(model, "predict_proba"):
        assert np.allclose(model.predict_proba(X).sum(axis=1), 1)


def auditing(source: Source) -> None:
    """An audit of anything ends with a report."""
    real = table(source)
    real = real.assign(label=labels(source, len(real)).to_numpy())
    release = variant(source, real)
    audit(release, "label", real=real if source.often() else None, time_limit=5).to_html()


def commanding(source: Source) -> None:
    """A command ends with 0, 1 or 2 and never with a defect."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        own = table(source)
        label = source.choose(("label", "nothing", "", "LABEL"))
        own = own.assign(label=labels(source, len(own)).to_numpy())
        with contextlib.suppress(*MENDABLE):
            write_table(own, "real.csv")
        Path("garbage.csv").write_bytes(source.data[:64])
        file = source.choose(("real.csv", "real.csv", "real.csv", "garbage.csv", "absent.csv", "."))
        command = source.choose(
            (
                ["audit", file, "--label", label, "--report", "report.html", "--time-limit", "5s"],
                ["protect", file, "--label", label, "--out", "out.csv"],
                ["protect", file, "--label", label, "--method", "private-smote", "--out", "out.csv"],
                ["protect", file, "--label", label, "--method", "k-anonymity", "--out", "out.csv"],
                ["protect", file, "--label", label, "--method", "smote", "--out", "out.csv"],
                ["schema", "init", file, "--label", label, "--out", "schema.toml"],
            )
        )
        before = sys.argv
        sys.argv = ["oversafe", *command]
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                main()
        except SystemExit as end:
            if end.code == 2:
                assert not Path("out.csv").exists(), "an error left a release"
            assert end.code in (None, 0, 1, 2), f"{command}: exit code {end.code}: {said.getvalue()}"
        finally:
            sys.argv = before


def replaying(source: Source) -> None:
    """Neighbouring tables leave nothing different behind if noisy answers are the same; ``python -m tests.replay``."""
    name = source.choose(
        tuple(name for name, method in METHODS.items() if not method.deep and not method.package)
    )
    result = replay(name, source.choose(METHODS[name].relations), source.rest())
    assert not result.found, f"{name}, {result.way}: {'; '.join(result.found)[:1000]}"
    if result.status == "refused":
        raise InputError("both neighbours were refused")


TARGETS: dict[str, Callable[[Source], None]] = {
    "reading": reading,
    "schemas": schemas,
    "inferring": inferring,
    "protecting": protecting,
    "attacking": attacking,
    "learning": learning,
    "auditing": auditing,
    "commanding": commanding,
    "replay": replaying,
}


def run(name: str, data: bytes) -> bool:
    """Run one case; return whether the input was accepted. What is not an error of one sentence is raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            TARGETS[name](Source(data))
        except MENDABLE as error:
            assert "\n" not in str(error), f"an error of more than one line: {error}"
            return False
        except (ValueError, TypeError) as error:
            # Classifiers refuse what scikit-learn refuses, in its words.
            place = traceback.extract_tb(error.__traceback__)[-1].filename
            if name == "learning" and "sklearn/utils" in place.replace(os.sep, "/"):
                return False
            raise
    return True
