"""The command line, run in this process: exit codes, what it prints and what it writes."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd

from oversafe.cli.program import main
from oversafe.data import Schema, read_table
from oversafe.protect import SMOTE
from tests.golden.case import case
from tests.golden.cases.audit import _shape, _small, _visible
from tests.golden.output import Output, without_stamps
from tests.golden.tables import PUBLIC, mixed

PROTECT = ("protect", "real.csv", "-l", "diagnosis", "--schema", "schema.toml", "--seed", "1")
AUDIT = ("audit", "release.csv", "-l", "diagnosis")


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """A folder with tables, a public schema and a configuration of its own, in which commands run."""
    real, holdout = _small()
    X, y = SMOTE(random_state=0).fit_resample(real.drop(columns="diagnosis"), real["diagnosis"])
    people, state = mixed(90, seed=30)
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        folder = Path.cwd()
        real.to_csv("real.csv", index=False)
        holdout.to_csv("holdout.csv", index=False)
        X.assign(diagnosis=y).to_csv("release.csv", index=False)
        people.assign(state=state, pid=range(90)).to_csv("people.csv", index=False, sep=";", decimal=",")
        schema = Schema.infer(real, label="diagnosis")
        for column in schema:
            schema = schema.declare(column.name, **PUBLIC)
        schema.to_toml("schema.toml")
        with mock.patch.dict(
            os.environ,
            {"XDG_CONFIG_HOME": str(folder / "config"), "OVERSAFE_KEYS": str(folder / "config" / "keys")},
        ):
            yield folder


def run(out: Output, name: str, *arguments: str) -> str:
    """Run a command and keep its exit code and its texts; return what it printed."""
    said, errors = io.StringIO(), io.StringIO()
    code: Any = 0
    with (
        mock.patch.object(sys, "argv", ["oversafe", *arguments]),
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(errors),
    ):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    out.number(f"{name}, exit code", code)
    if "--json" in arguments and code in (0, 1) and said.getvalue():
        document = json.loads(_clean(said.getvalue()))
        for changing in ("seconds", "settings"):
            document.pop(changing, None) if isinstance(document, dict) else None
        out.number(f"{name}, printed", document)
    else:
        out.text(f"{name}, printed", _clean(said.getvalue()))
    out.text(f"{name}, noted", _clean(errors.getvalue()))
    return said.getvalue()


def _clean(text: str) -> str:
    text = re.sub(r"(cells?), [\d.]+ s\b", r"\1, <seconds>", text)
    return without_stamps(text, Path.cwd(), os.path.realpath(Path.cwd()))


def _protect(arguments: tuple[str, ...], file: str, out: Output) -> None:
    with _folder():
        run(out, "protect", *PROTECT, "--out", file, *arguments)
        if Path(file).exists():
            out.table("release", read_table(file))
            out.manifest("manifest", json.loads(Path(f"{file}.manifest.json").read_text()))
        out.number("files", sorted(path.name for path in Path.cwd().iterdir()))


for _name, _arguments in {
    "histograms": ("--method", "histograms", "--epsilon", "1", "--set", "n_bins=6"),
    "histograms, balanced": ("--method", "histograms", "--balance", "--rows", "50"),
    "mixture": ("--set", "n_steps=20", "--set", "n_components=20", "--set", "n_bins=5"),
    "PrivBayes": ("--method", "privbayes", "--epsilon", "3", "--json", "--set", "n_bins=5"),
    "SMOTE": ("--method", "smote"),
    "PrivateSMOTE": ("--method", "private-smote", "-q", "mean_radius", "--set", "n_copies=2"),
    "k-anonymizer": ("--method", "k-anonymizer", "-q", "mean_radius", "-q", "mean_area"),
    "SMOTE-DP": ("--method", "smote-dp", "--epsilon", "100"),
    "a column left out": ("--method", "gaussian-copula", "--drop", "mean_area"),
}.items():
    case(f"command/protect, {_name}", partial(_protect, _arguments, "out.csv"))
case("command/protect, Parquet", partial(_protect, ("--method", "histograms"), "out.parquet"))
case(
    "command/protect, German file",
    partial(_protect, ("--method", "histograms", "--out-separator", ";", "--out-decimal", ","), "out.csv"),
)


@case("command/protect, what is refused", quick=True)
def _protect_refused(out: Output) -> None:
    with _folder():
        for name, arguments in {
            "no label": ("protect", "real.csv", "--out", "o.csv"),
            "no output": ("protect", "real.csv", "-l", "diagnosis"),
            "label": ("protect", "real.csv", "-l", "nothing", "--out", "o.csv"),
            "method": (*PROTECT, "--method", "smite", "--out", "o.csv"),
            "setting": (*PROTECT, "--method", "histograms", "--set", "bins=3", "--out", "o.csv"),
            "epsilon": (*PROTECT, "--epsilon", "x", "--out", "o.csv"),
            "negative": (*PROTECT, "--epsilon", "-1", "--out", "o.csv"),
            "file there": (*PROTECT, "--out", "release.csv"),
            "ending": (*PROTECT, "--out", "o.txt"),
            "no table": ("protect", "nowhere.csv", "-l", "y", "--out", "o.csv"),
            "quasi-identifier": (*PROTECT, "--method", "smote", "-q", "mean_area", "--out", "o.csv"),
            "unknown option": ("protect", "--nothing"),
        }.items():
            run(out, name, *arguments)
        out.number("files", sorted(path.name for path in Path.cwd().iterdir()))
        for method in ("mixture", "private-smote", "smote"):
            run(out, f"explain {method}", "protect", "--method", method, "--explain")


@case("command/protect, mixed columns and persons")
def _protect_mixed(out: Output) -> None:
    with _folder():
        run(out, "init", "schema", "init", "people.csv", "-l", "state", "--person", "pid", "--out", "p.toml")
        arguments = ("protect", "people.csv", "-l", "state", "--method", "histograms", "--seed", "2")
        run(out, "persons", *arguments, "--schema", "p.toml", "--rows-per-person", "1", "--out", "a.csv")
        run(out, "no schema", *arguments, "--drop", "pid", "--set", "n_bins=4", "--out", "b.csv")
        for name in ("a.csv", "b.csv"):
            if Path(name).exists():
                out.table(name, read_table(name))
                out.manifest(name, json.loads(Path(f"{name}.manifest.json").read_text()))


def _audit(arguments: tuple[str, ...], out: Output) -> None:
    with _folder():
        run(out, "audit", *AUDIT, *arguments)
        if Path("out.html").exists():
            page = Path("out.html").read_text(encoding="utf-8")
            out.text("page", _visible(_clean(page)))
            out.number("figures", _shape(json.loads(Path("out.json").read_text())))
        out.number("files", sorted(path.name for path in Path.cwd().iterdir()))


for _name, _arguments in {
    "release alone": (),
    "all material": ("--real", "real.csv", "--holdout", "holdout.csv"),
    "JSON": ("--real", "real.csv", "--json"),
    "gate": ("--fail-on", "exposed"),
    "report": ("--real", "real.csv", "--report", "out.html", "--fail-on", "unproven"),
    "no time": ("--real", "real.csv", "--time-limit", "0s"),
}.items():
    case(f"command/audit, {_name}", partial(_audit, _arguments), quick=_name == "gate")


@case("command/audit, what is refused", quick=True)
def _audit_refused(out: Output) -> None:
    with _folder():
        for name, arguments in {
            "no label": ("audit", "release.csv"),
            "label": ("audit", "release.csv", "-l", "nothing"),
            "gate": (*AUDIT, "--fail-on", "never"),
            "time": (*AUDIT, "--time-limit", "soon"),
            "real": (*AUDIT, "--real", "nowhere.csv"),
            "page": (*AUDIT, "--report", "nowhere/out.html"),
        }.items():
            run(out, name, *arguments)


@case("command/protect and audit")
def _both(out: Output) -> None:
    """The manifest goes with the release from one command to the other."""
    with _folder():
        own = [a for a in PROTECT if a not in ("--seed", "1")]
        seeded = ("--method", "histograms", "--set", "n_bins=4")
        run(out, "protect", *own, "--seed", "3", *seeded, "--out", "mine.csv")
        run(out, "audit", "audit", "mine.csv", "-l", "diagnosis", "--real", "real.csv", "--json")
        Path("mine.csv").write_text(Path("mine.csv").read_text() + "\n")
        run(out, "edited", "audit", "mine.csv", "-l", "diagnosis")


@case("command/schema", quick=True)
def _schema(out: Output) -> None:
    with _folder():
        printed = run(out, "init", "schema", "init", "people.csv", "-l", "state")
        Path("own.toml").write_text(printed, encoding="utf-8")
        run(out, "init to a file", "schema", "init", "real.csv", "-l", "diagnosis", "--out", "r.toml")
        for name in ("own.toml", "schema.toml"):
            run(out, f"check people by {name}", "schema", "check", "people.csv", "--schema", name)
        run(out, "check", "schema", "check", "real.csv", "--schema", "schema.toml")
        run(out, "check, JSON", "schema", "check", "people.csv", "--schema", "own.toml", "--json")
        table = pd.read_csv("real.csv").assign(mean_area=lambda t: t["mean_area"] * 100)
        table.to_csv("odd.csv", index=False)
        run(out, "check odd", "schema", "check", "odd.csv", "--schema", "schema.toml")
        run(out, "no label", "schema", "init", "people.csv", "-l", "nothing")
        run(out, "no schema", "schema", "check", "real.csv", "--schema", "nowhere.toml")


_ADDED = ("--added", "900", "--minority", "100")
_ENSEMBLE = ("--estimators", "10", "--records", "10000")
ACCOUNTS: dict[str, tuple[str, ...]] = {
    "smote": ("smote", "--epsilon", "1", "--dimensions", "25", "--neighbors", "5", *_ADDED),
    "smote, whole": ("smote", "--whole", "--epsilon", "1", "--delta", "1e-6", "--dimensions", "25", *_ADDED),
    "smote, noise": ("smote", "--noise-multiplier", "300", "--delta", "1e-6", "--dimensions", "3", *_ADDED),
    "oversampling": ("oversampling", "--epsilon", "1", *_ADDED),
    "oversampling, random": (
        "oversampling",
        "--epsilon",
        "1",
        *_ADDED,
        "--bases",
        "random",
        "--delta",
        "1e-6",
    ),
    "oversampling, two classes": (
        *("oversampling", "--epsilon", "1", *_ADDED, "--added", "5", "--minority", "50"),
        *("--relation", "add-remove"),
    ),
    "bagging": ("bagging", "--epsilon", "0.1", *_ENSEMBLE, "--delta", "1e-6"),
    "bagging, disjoint": ("bagging", "--epsilon", "1", *_ENSEMBLE, "--split", "disjoint"),
    "refused": ("smote", "--epsilon", "1", "--dimensions", "0", "--added", "1", "--minority", "1"),
}


@case("command/account", quick=True)
def _account(out: Output) -> None:
    for name, arguments in ACCOUNTS.items():
        run(out, name, "account", *arguments)
        run(out, f"{name}, figures", "account", *arguments, "--json")


@case("command/budget")
def _budget(out: Output) -> None:
    with _folder():
        run(
            out,
            "create",
            "budget",
            "create",
            "b.db",
            "patients",
            "--epsilon",
            "3",
            "--delta",
            "1e-6",
            "--note",
            "x",
        )
        run(out, "create again", "budget", "create", "b.db", "patients", "--epsilon", "9")
        own = [*PROTECT[:-2], "--method", "histograms", "--set", "n_bins=4", "--out", "o.csv"]
        budget = ("--ledger", "b.db", "--dataset", "patients")
        # Unseeded, so that it is charged: the terminal says what it promises, and no figure of the table.
        run(out, "charged", *own, *budget)
        run(out, "not left", *own, *budget, "--epsilon", "5", "--overwrite")
        run(out, "seeded", *own, "--seed", "1", *budget, "--overwrite")
        run(out, "recorded", *own, "--seed", "1", *budget, "--overwrite", "--record-unproven")
        run(out, "show", "budget", "show", "b.db")
        run(out, "show, JSON", "budget", "show", "b.db", "--json")
        run(out, "history", "budget", "history", "b.db")
        history = json.loads(run(Output(), "history", "budget", "history", "b.db", "--json"))
        for entry in history:
            entry.pop("id"), entry.pop("when"), entry.pop("plain_guarantee")
        out.number("history, JSON", history)
        run(out, "verify", "budget", "verify", "b.db")
        run(out, "verify, JSON", "budget", "verify", "b.db", "--json")
        run(out, "charge twice", "budget", "charge", "b.db", "patients", "o.csv")
        run(out, "no ledger", "budget", "show", "nowhere.db")


_TIMED = "the seconds and the memory of each fit are in it; compare/comparison has the text without them"


@case("command/compare", unstable={"sentences/page": _TIMED, "sentences/two, printed": _TIMED})
def _compare(out: Output) -> None:
    with _folder():
        arguments = ("compare", "real.csv", "-l", "diagnosis", "--no-membership", "--jobs", "1")
        run(out, "two", *arguments, "-m", "random-over,histograms", "-e", "2", "--schema", "schema.toml")
        page = Path("comparison.html").read_text(encoding="utf-8")
        out.text("page", _visible(_clean(page)))
        out.number("files", sorted(path.name for path in Path.cwd().iterdir()))
        run(out, "refused", *arguments, "-m", "smite")


@case("command/help and errors", quick=True)
def _help(out: Output) -> None:
    for arguments in ((), ("--help",), ("nothing",), ("protect", "--help"), ("audit", "--help"), ("budget",)):
        run(out, " ".join(arguments) or "nothing given", *arguments)


@case("command/reproduce, what is refused", quick=True)
def _reproduce(out: Output) -> None:
    run(out, "paper", "reproduce", "a-paper")
