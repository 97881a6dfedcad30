"""The command line: what it prints, writes and returns."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from oversafe.cli import program
from oversafe.data import Schema, load_dataset, read_table, write_table


def oversafe(*arguments, cwd, **environment):
    return subprocess.run(
        [sys.executable, "-c", "from oversafe.cli.program import main; main()", *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "COLUMNS": "100", **environment},
        check=False,
    )


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A folder with a table, SMOTE's release of it, and a schema that declares everything public."""
    from imblearn.over_sampling import SMOTE

    folder = tmp_path_factory.mktemp("tables")
    X, y = load_dataset("breast_cancer")
    real = X.assign(diagnosis=y)
    real.to_csv(folder / "real.csv", index=False)
    X_new, y_new = SMOTE(random_state=0).fit_resample(X, y)
    X_new.assign(diagnosis=y_new).to_csv(folder / "release.csv", index=False)
    schema = Schema.infer(real, label="diagnosis")
    for column in schema:
        schema = schema.declare(column.name, domain="public", source="a test")
    schema.to_toml(folder / "schema.toml")
    return folder


def test_help_and_version(tmp_path):
    shown = oversafe("--help", cwd=tmp_path)
    assert shown.returncode == 0
    for command in ("audit", "protect", "schema", "account", "demo"):
        assert command in shown.stdout
    assert oversafe("--version", cwd=tmp_path).stdout.startswith("oversafe 0.2")


STOPPED = """
from oversafe.attack import Linkability
from oversafe.cli.program import main

def stop(*_):
    raise KeyboardInterrupt

Linkability.run = stop
main()
"""


def test_a_stopped_audit_tells_what_it_found_and_passes_no_gate(tables, tmp_path):
    X, y = load_dataset("breast_cancer_holdout")
    X.assign(diagnosis=y).to_csv(tmp_path / "holdout.csv", index=False)
    done = subprocess.run(
        [sys.executable, "-c", STOPPED, "audit", tables / "release.csv", "--label", "diagnosis",
         "--real", tables / "real.csv", "--holdout", tmp_path / "holdout.csv", "--report", tmp_path / "out.html"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300, env={**os.environ, "COLUMNS": "100"}, check=False,
    )  # fmt: skip
    assert done.returncode == 130 and "stopped" in done.stderr
    assert "EXPOSED" in done.stdout and "SinglingOut" in done.stdout
    figures = json.loads((tmp_path / "out.json").read_text())
    assert figures["stopped"] and "stopped during" in figures["not_run"]["Linkability on class 'malignant'"]


def test_audit_writes_page_and_figures(tables, tmp_path):
    done = oversafe(
        "audit", tables / "release.csv", "--label", "diagnosis", "--real", tables / "real.csv",
        "--report", tmp_path / "out.html", "--fail-on", "exposed", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "EXPOSED" in done.stdout and "ReconSMOTE" in done.stdout and "\x1b" not in done.stdout
    assert (tmp_path / "out.html").read_text().startswith("<!doctype html>")
    figures = json.loads((tmp_path / "out.json").read_text())
    assert figures["verdict"]["level"] == "exposed"
    recon = next(f for f in figures["findings"] if f["attack"] == "ReconSMOTE")
    assert recon["details"]["precision"] == 1.0


def test_audit_prints_json(tables, tmp_path):
    done = oversafe("audit", tables / "release.csv", "-l", "diagnosis", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verdict"]["level"] == "exposed"


def test_protect_writes_a_release_with_its_manifest_and_audit_reads_it(tables, tmp_path):
    done = oversafe(
        "protect", tables / "real.csv", "--label", "diagnosis", "--epsilon", "1", "--balance",
        "--schema", tables / "schema.toml", "--out", "private.csv", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Proven: epsilon = 1" in done.stdout
    release = read_table(tmp_path / "private.csv")
    assert list(release.columns) == list(read_table(tables / "real.csv").columns)
    manifest = json.loads((tmp_path / "private.csv.manifest.json").read_text())
    assert manifest["guarantee"]["status"] == "proven"
    audited = oversafe(
        "audit", "private.csv", "-l", "diagnosis", "--real", tables / "real.csv", "--fail-on", "unproven",
        cwd=tmp_path,
    )  # fmt: skip
    assert audited.returncode == 0, audited.stdout + audited.stderr
    assert "PROTECTED" in audited.stdout


def test_protect_without_public_domains_is_nominal(tables, tmp_path):
    done = oversafe(
        "protect", tables / "real.csv", "-l", "diagnosis", "--out", "r.parquet", "--balance", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "Nominal, not proven" in done.stdout
    counts = pd.read_parquet(tmp_path / "r.parquet")["diagnosis"].value_counts()
    assert counts.min() == counts.max()


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        (
            "private-smote",
            ["-q", "mean_radius", "-q", "mean_area", "--set", "n_copies=2", "--epsilon", "0.5"],
        ),
        ("k-anonymizer", ["-q", "mean_radius", "--set", "k_anonymity=4", "--set", "output=ranges"]),
        ("nhs-sanitizer", []),
        ("gaussian-copula", ["--balance"]),
        ("bayesian-network", ["--set", "degree=1"]),
    ],
)
def test_every_method_writes_a_release_and_its_guarantee(tables, tmp_path, method, settings):
    done = oversafe(
        "protect", tables / "real.csv", "-l", "diagnosis", "--method", method, *settings, "--out", "r.csv",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    manifest = json.loads((tmp_path / "r.csv.manifest.json").read_text())
    status = "nominal" if method == "private-smote" else "none"
    assert manifest["guarantee"]["status"] == status and manifest["guarantee"]["caveats"]
    assert manifest["settings"]["method"] == method
    shown = " ".join(done.stdout.split())
    assert ("Nominal, not proven" if status == "nominal" else "No privacy guarantee") in shown
    released = read_table(tmp_path / "r.csv")
    if method == "private-smote":
        assert manifest["settings"]["n_copies"] == "2" and len(released) > len(
            read_table(tables / "real.csv")
        )
    if method == "k-anonymizer":
        assert released["mean_radius"].str.contains(" to ").any()
        assert released["mean_radius"].value_counts().min() >= 4
    if method == "gaussian-copula":
        counts = released["diagnosis"].value_counts()
        assert counts.min() == counts.max()


# Reading the whole table would be noticed: only the declared columns are asked for, batch by batch.
WITHOUT_READING = """
import oversafe.data.io.files
from oversafe.cli.program import main

def refuse(*_, **__):
    raise AssertionError("the table was loaded")

oversafe.data.io.files.to_frame = refuse
main()
"""


@pytest.mark.parametrize("kind", ["folder", "database"])
def test_a_folder_or_database_is_learned_in_place(tables, tmp_path, kind):
    real = read_table(tables / "real.csv")
    source = tmp_path / "parts"
    source.mkdir()
    if kind == "folder":
        write_table(real[:300], source / "a.parquet")
        write_table(real[300:], source / "b.parquet")
    else:
        source = f"duckdb://{source}/t.ddb#patients"
        write_table(real, source)
    arguments = ["--method", "privbayes", "--schema", tables / "schema.toml", "--label", "diagnosis"]
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            WITHOUT_READING,
            "protect",
            source,
            *arguments,
            "--out",
            "r.parquet",
            "--rows",
            "250",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Proven: epsilon = 1" in done.stdout and "250 rows" in done.stdout
    release = read_table(tmp_path / "r.parquet")
    assert list(release.columns) == list(real.columns) and len(release) == 250
    manifest = json.loads((tmp_path / "r.parquet.manifest.json").read_text())
    assert manifest["guarantee"]["status"] == "proven" and manifest["settings"]["method"] == "privbayes"
    refused = oversafe("protect", source, *arguments, "--out", "r.csv", "--drop", "nothing", cwd=tmp_path)
    assert refused.returncode == 2 and "no column 'nothing' to leave out" in refused.stderr


def test_a_release_is_larger_than_usual_only_if_its_number_of_rows_is_given(tables, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from oversafe.cli import program
    from oversafe.releasing import run

    (tmp_path / "parts").mkdir()
    write_table(read_table(tables / "real.csv"), tmp_path / "parts" / "a.parquet")
    monkeypatch.setattr(run, "MOST_ROWS", 100)
    arguments = ["protect", tmp_path / "parts", "-l", "diagnosis", "--method", "privbayes"]
    arguments += ["--schema", tables / "schema.toml", "--out", tmp_path / "r.csv"]
    for rows, n in ((), 100), (("--rows", "150"), 150):
        result = CliRunner().invoke(program.app, [*map(str, arguments), *rows, "--overwrite"])
        # No refusal, which would tell how many rows there are where that is private.
        assert result.exception is None and len(read_table(tmp_path / "r.csv")) == n
        assert ("say with --rows if it is to have more" in result.stderr) == (not rows)


def test_rows_are_for_synthetic_releases(tables, tmp_path):
    done = oversafe(
        "protect", tables / "real.csv", "-l", "diagnosis", "--rows", 30, "--out", "r.csv", cwd=tmp_path
    )
    assert done.returncode == 0 and len(read_table(tmp_path / "r.csv")) == 30
    done = oversafe(
        "protect",
        tables / "real.csv",
        "-l",
        "diagnosis",
        "--method",
        "smote",
        "--rows",
        30,
        "--out",
        "s.csv",
        cwd=tmp_path,
    )
    assert done.returncode == 2 and "--rows 30" in done.stderr


def test_explain_says_what_a_method_promises_without_a_table(tmp_path):
    done = oversafe("protect", "--method", "private-smote", "--explain", cwd=tmp_path)
    shown = " ".join(done.stdout.split())
    assert done.returncode == 0, done.stderr
    for words in ("What it does:", "What it promises:", "not differential privacy", "k_anonymity=3"):
        assert words in shown
    assert oversafe("protect", "--method", "magic", "--explain", cwd=tmp_path).returncode == 2


def test_schema_init_and_check(tables, tmp_path):
    done = oversafe("schema", "init", tables / "real.csv", "-l", "diagnosis", "--out", "s.toml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert Schema.from_toml(tmp_path / "s.toml").label == "diagnosis"
    checked = oversafe("schema", "check", tables / "real.csv", "--schema", "s.toml", cwd=tmp_path)
    assert checked.returncode == 0 and "fits the schema" in checked.stdout
    printed = oversafe("schema", "init", tables / "real.csv", cwd=tmp_path)
    assert "[[column]]" in printed.stdout


def test_identifiers_and_free_text_are_named_warned_of_and_refused(tables, tmp_path):
    table = read_table(tables / "real.csv")
    table.insert(0, "patient_id", [f"P{i:05d}" for i in range(len(table))])
    table["note"] = [f"seen on day {i}, doing well enough to go home" for i in range(len(table))]
    table.to_csv(tmp_path / "named.csv", index=False)
    shown = oversafe("schema", "init", "named.csv", "-l", "diagnosis", "--out", "s.toml", cwd=tmp_path)
    assert "'patient_id' seems to hold identifiers" in shown.stderr
    assert "'note' seems to hold free text" in shown.stderr
    for extra in ([], ["--schema", "s.toml"]):
        refused = oversafe("protect", "named.csv", "-l", "diagnosis", "--out", "r.csv", *extra, cwd=tmp_path)
        assert refused.returncode == 2 and "'patient_id'" in refused.stderr
    assert not (tmp_path / "r.csv").exists()
    dropped = oversafe(
        "protect", "named.csv", "-l", "diagnosis", "--out", "r.csv", "--drop", "patient_id", "--drop", "note",
        "--schema", "s.toml", cwd=tmp_path,
    )  # fmt: skip
    assert dropped.returncode == 0, dropped.stderr
    assert set(read_table(tmp_path / "r.csv").columns) == set(table.columns) - {"patient_id", "note"}
    audited = oversafe("audit", "named.csv", "-l", "diagnosis", cwd=tmp_path)
    assert audited.returncode == 0 and "'patient_id' seems to hold identifiers" in " ".join(
        audited.stdout.split()
    )


def bad_inputs(folder: Path) -> dict[str, list[str]]:
    """Return what is wrong, and the arguments that give it to a command."""
    good = pd.DataFrame({"x": np.arange(30) / 7, "z": np.arange(30) % 5 / 3, "y": ["a", "b", "b"] * 10})
    good.to_csv(folder / "good.csv", index=False)
    (folder / "empty.csv").write_text("x,z,y\n")
    good.assign(y="a").to_csv(folder / "one_class.csv", index=False)
    good.assign(y=good["y"].where(good.index != 3)).to_csv(folder / "gap.csv", index=False)
    (folder / "twice.csv").write_text("x,x,y\n1,2,a\n2,3,b\n")
    (folder / "zero.parquet").touch()
    (folder / "zero.csv").touch()
    (folder / "binary.csv").write_bytes(bytes(range(256)) * 8)
    (folder / "broken.parquet").write_bytes(b"PAR1" + b"\0" * 40 + b"PAR1")
    return {
        "missing file": ["missing.csv", "--label", "y"],
        "missing label column": ["good.csv", "--label", "nope"],
        "an empty table": ["empty.csv", "--label", "y"],
        "one class only": ["one_class.csv", "--label", "y"],
        "a gap in the label": ["gap.csv", "--label", "y"],
        "two columns of the same name": ["twice.csv", "--label", "y"],
        "a 0-byte Parquet": ["zero.parquet", "--label", "y"],
        "a 0-byte CSV": ["zero.csv", "--label", "y"],
        "a binary file called .csv": ["binary.csv", "--label", "y"],
        "a broken Parquet": ["broken.parquet", "--label", "y"],
        "an unknown kind of file": ["good.docx", "--label", "y"],
        "a folder": [".", "--label", "y"],
    }


def test_rows_of_one_class_are_audited(tmp_path):
    bad_inputs(tmp_path)
    for real in ([], ["--real", "one_class.csv"], ["--real", "good.csv"]):
        done = oversafe("audit", "one_class.csv", "-l", "y", *real, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "class" in done.stdout and "refused" not in done.stderr


@pytest.mark.parametrize("command", ["audit", "protect"])
def test_bad_input_is_one_sentence_and_nothing_is_written(command, tmp_path):
    cases = bad_inputs(tmp_path)
    if command == "audit":
        del cases["one class only"]
    before = sorted(tmp_path.iterdir())
    out = ["--report", "out.html"] if command == "audit" else ["--out", "out.csv"]
    for what, arguments in cases.items():
        done = oversafe(command, *arguments, *out, cwd=tmp_path)
        assert done.returncode == 2, (what, done.returncode, done.stderr)
        assert done.stderr.startswith("oversafe: ") and done.stderr.count("\n") == 1, (what, done.stderr)
        assert done.stdout == "", (what, done.stdout)
        assert sorted(tmp_path.iterdir()) == before, what


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["audit", "good.csv", "-l", "y", "--fail-on", "never"], "--fail-on never"),
        (["audit", "good.csv", "-l", "y", "--time-limit", "soon"], "30s, 5m or 1h"),
        (["compare", "good.csv", "-l", "y", "--time-limit", "soon"], "30s, 5m or 1h"),
        (["reproduce", "smote-dp", "--time-limit", "soon"], "30s, 5m or 1h"),
        (["compare", "good.csv", "-l", "y", "--time-limit", "0s"], "30s, 5m or 1h"),
        (["audit", "good.csv", "-l", "y", "--report", "out.pdf"], ".html"),
        (["audit", "good.csv", "-l", "y", "--report", "nowhere/out.html"], "not a folder"),
        (["audit", "good.csv", "-l", "y", "--real", "other.csv"], "label"),
        (["protect", "good.csv", "-l", "y", "--out", "r.csv", "--epsilon", "0"], "epsilon = 0"),
        (
            ["protect", "good.csv", "-l", "y", "--out", "r.csv", "--epsilon", "nan"],
            "--epsilon nan was given",
        ),
        (["protect", "good.csv", "-l", "y", "--out", "r.csv", "--method", "magic"], "'magic' is not known"),
        (
            ["protect", "good.csv", "-l", "y", "--out", "r.csv", "--method", "smote", "--epsilon", "1"],
            "no epsilon",
        ),
        (
            ["protect", "good.csv", "-l", "y", "--out", "r.csv", "--schema", "text.toml", "--strict"],
            "'z': 1 cell does not fit what is declared",
        ),
        (["schema", "check", "good.csv", "--schema", "missing.toml"], "cannot be read"),
        (["protect", "good.csv", "-l", "y", "--out", "good.csv"], "the table itself"),
        (["protect", "good.csv", "-l", "y", "--out", "r.csv", "--seed", "-1"], "--seed -1"),
        (["protect", "good.csv", "--out", "r.csv"], "--label is missing"),
        (["protect", "-l", "y", "--out", "r.csv"], "the table is missing"),
        (["protect", "good.csv", "-l", "y"], "--out is missing"),
        (["protect", "good.csv", "-l", "y", "--out", "r.csv", "--set", "n_bins"], "NAME=VALUE"),
        (["protect", "good.csv", "-l", "y", "--out", "r.csv", "--set", "depth=3"], "no setting 'depth'"),
        (["protect", "good.csv", "-l", "y", "--out", "r.csv", "-q", "x"], "takes no quasi-identifiers"),
        (
            ["protect", "good.csv", "-l", "y", "--out", "r.csv", "--method", "private-smote", "--balance"],
            "cannot balance",
        ),
        (
            ["protect", "good.csv", "-l", "y", "--out", "r.csv", "--drop", "nope"],
            "no column 'nope' to leave out",
        ),
        (["protect", "good.csv", "-l", "y", "--out", "r.csv", "--drop", "y"], "cannot be left out"),
        (["audit", "postgres://me:secret@127.0.0.1:1/db", "-l", "y"], "#"),
    ],
)
def test_bad_use_is_one_sentence(arguments, message, tmp_path):
    bad_inputs(tmp_path)
    pd.DataFrame({"a": [1, 2]}).to_csv(tmp_path / "other.csv", index=False)
    text = pd.read_csv(tmp_path / "good.csv").astype({"z": object})
    Schema.infer(pd.read_csv(tmp_path / "good.csv"), label="y").to_toml(tmp_path / "text.toml")
    text.loc[4, "z"] = "n/a?"
    if "text.toml" in arguments:
        text.to_csv(tmp_path / "good.csv", index=False)
    before = sorted(tmp_path.iterdir())
    done = oversafe(*arguments, cwd=tmp_path)
    assert done.returncode == 2, done
    assert message in done.stderr and done.stderr.count("\n") == 1 and "secret" not in done.stderr
    assert sorted(tmp_path.iterdir()) == before


def test_a_gate_is_not_passed_when_nothing_was_run(tmp_path):
    pd.DataFrame({"x": list("abcdefgh"), "y": [0, 0, 0, 0, 1, 1, 1, 1]}).to_csv(
        tmp_path / "t.csv", index=False
    )
    done = oversafe("audit", "t.csv", "-l", "y", "--fail-on", "exposed", cwd=tmp_path)
    assert done.returncode == 2 and "no attack could be run" in done.stderr


def test_a_label_column_with_an_awkward_name(tables, tmp_path):
    table = read_table(tables / "real.csv").rename(columns={"diagnosis": "self"})
    table.to_csv(tmp_path / "t.csv", index=False)
    done = oversafe("protect", "t.csv", "-l", "self", "--out", "r.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert list(read_table(tmp_path / "r.csv").columns) == list(table.columns)


def test_a_defect_is_exit_code_3(tmp_path):
    code = (
        "import oversafe.data.io.files as f, oversafe.data as d; f.read_table = d.read_table = lambda *a, **k: 1 / 0;"
        "from oversafe.cli.program import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "schema", "init", "x.csv"],
        capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 3 and "a defect of oversafe: ZeroDivisionError" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_import_is_quick():
    # A ratio, not a time: importing the package must cost a small part of importing what it is built on.
    def seconds(module):
        code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
        runs = [
            subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
            for _ in range(5)
        ]
        return min(float(run.stdout) for run in runs)

    assert seconds("oversafe") < 0.2 * seconds("pandas")


STOPPED_WITHIN = """
import signal, sys
import oversafe.data
from oversafe.cli.program import main

# A shell has background jobs, and all that they start, ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)

def stop(*_, **__):
    {how}

oversafe.data.read_table = oversafe.data.io.files.read_table = oversafe.data.io.files.read_file = stop
main()
"""
COMPILED = """
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt as inner:
        raise SystemError("CPUDispatcher returned a result with an exception set") from inner
"""
# What a callback from C raises is dropped by Python, and the work goes on.
CALLBACK = """
    import ctypes, time
    def work():
        raise KeyboardInterrupt
    ctypes.CFUNCTYPE(None)(work)()
    for _ in range(600):
        time.sleep(0.1)
"""


@pytest.mark.parametrize("how", ["raise KeyboardInterrupt", COMPILED, CALLBACK])
@pytest.mark.parametrize("command", ["audit", "protect"])
def test_ctrl_c_is_one_line_wherever_it_arrives(tables, tmp_path, how, command):
    more = ("--out", "r.csv") if command == "protect" else ()
    done = subprocess.run(
        [sys.executable, "-c", STOPPED_WITHIN.format(how=how.strip()), command, tables / "real.csv", "-l", "diagnosis",
         *more], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == f"oversafe: stopped{'; nothing was written' * (command == 'audit')}\n"


def test_a_ctrl_c_is_sent_again_though_another_comes_meanwhile(monkeypatch):
    started = []

    def start(work, arguments):
        started.append(work)
        if len(started) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(program._thread, "start_new_thread", start)
    program._send_again(SimpleNamespace(exc_type=KeyboardInterrupt))
    assert started == [program._interrupt_later] * 2


def test_an_error_of_compiled_code_is_no_ctrl_c(tables, tmp_path):
    code = STOPPED_WITHIN.format(how="raise SystemError('broken')")
    done = subprocess.run(
        [sys.executable, "-c", code, "audit", tables / "real.csv", "-l", "diagnosis"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 3 and "a defect of oversafe: SystemError: broken" in done.stderr
