"""The command line's budgets: what is printed, stored, refused and returned."""

import json
import sqlite3
import sys
from types import SimpleNamespace

import pytest

from oversafe.cli.program import main
from oversafe.data import Schema, load_dataset, read_table
from oversafe.protect import HistogramSynthesizer, KAnonymizer


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command in this process, which spares the imports, with a configuration folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["oversafe", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return SimpleNamespace(returncode=ended.value.code or 0, stdout=said.out, stderr=said.err)

    return run


@pytest.fixture
def tables(tmp_path):
    X, y = load_dataset("breast_cancer")
    real = X.assign(diagnosis=y)
    real.to_csv(tmp_path / "real.csv", index=False)
    schema = Schema.infer(real, label="diagnosis")
    for column in schema:
        schema = schema.declare(column.name, domain="public", source="a test")
    schema.to_toml(tmp_path / "schema.toml")
    return (
        *("protect", "real.csv", "-l", "diagnosis", "--method", "histograms"),
        *("--schema", "schema.toml", "--ledger", "budget.db"),
    )


def refused(done, *parts):
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    for part in parts:
        assert part in done.stderr


def test_create_show_history_and_verify(run, tmp_path):
    done = run(
        "budget", "create", "budget.db", "patients", "--epsilon", "3", "--delta", "1e-6", "--note", "2026"
    )
    assert done.returncode == 0 and "epsilon = 3 left of 3, delta = 1e-06" in done.stdout
    refused(run("budget", "create", "budget.db", "patients", "--epsilon", "9"), "has a budget already")
    wrong = run("budget", "create", "budget.db", "visits", "--epsilon", "nan")
    assert wrong.returncode == 2 and "'--epsilon': nan was given; write a number" in wrong.stderr
    refused(run("budget", "create", "budget.db", "visits", "--epsilon", "1", "--relation", "x"), "relation")
    (balance,) = json.loads(run("budget", "show", "budget.db", "--json").stdout)
    assert balance["dataset"] == "patients" and balance["epsilon"] == 3.0
    shown = run("budget", "show", "budget.db")
    assert "patients" in shown.stdout and "epsilon left" in shown.stdout and "\x1b" not in shown.stdout
    (entry,) = json.loads(run("budget", "history", "budget.db", "--json").stdout)
    assert entry["kind"] == "create" and entry["what"] == "2026"
    assert "2026" in run("budget", "history", "budget.db").stdout
    verified = run("budget", "verify", "budget.db")
    assert verified.returncode == 0 and "1 entry of the history" in verified.stdout
    refused(run("budget", "show", "other.db"), "there is no ledger at 'other.db'")
    assert not (tmp_path / "other.db").exists()


@pytest.mark.parametrize(
    "change",
    [
        *(f"{column} = CAST({column} AS BLOB)" for column in ("dataset", "kind", "body", "previous", "mac")),
        "mac = 'é'",
        "body = CAST(x'ff' AS TEXT)",
        "mac = CAST(x'eda080' AS TEXT)",
    ],
)
def test_what_is_no_text_is_a_sentence_and_exit_code_1(run, tmp_path, change):
    run("budget", "create", "budget.db", "patients", "--epsilon", "3")
    connection = sqlite3.connect(tmp_path / "budget.db")
    connection.execute("DROP TRIGGER no_update")
    for number in (1, 0):
        with connection:
            connection.execute(f"UPDATE entries SET {change} WHERE number = ?", [number])
        done = run("budget", "verify", "budget.db")
        assert done.returncode == 1 and done.stderr == "" and done.stdout.endswith(".\n")
    connection.close()


def test_a_tampered_ledger_fails_verification(run, tmp_path):
    run("budget", "create", "budget.db", "patients", "--epsilon", "3")
    connection = sqlite3.connect(tmp_path / "budget.db")
    with connection:
        connection.execute("DROP TRIGGER no_update")
        connection.execute("UPDATE entries SET body = replace(body, '3.0', '9.0') WHERE number = 1")
    connection.close()
    done = run("budget", "verify", "budget.db")
    assert done.returncode == 1 and "Entry 1 was changed after it was written." in done.stdout
    assert not json.loads(run("budget", "verify", "budget.db", "--json").stdout)["ok"]
    refused(run("budget", "show", "budget.db"), "entry 1 of the ledger was changed")
    (key,) = (tmp_path / "config" / "oversafe" / "ledgers").glob("*.key")
    key.unlink()
    refused(run("budget", "verify", "budget.db"), "does not exist; copy it from where the ledger was made")


def test_a_protected_release_is_paid_for(run, tables, tmp_path):
    run("budget", "create", "budget.db", "patients", "--epsilon", "1.5")
    done = run(*tables, "--dataset", "patients", "--epsilon", "1", "--out", "r.csv")
    assert done.returncode == 0, done.stderr
    assert "Budget: patients: epsilon = 0.5 left of 1.5" in done.stdout and done.stderr == ""
    manifest = (tmp_path / "r.csv.manifest.json").read_text()
    entry = json.loads(run("budget", "history", "budget.db", "--json").stdout)[-1]
    assert json.loads(manifest)["ledger_entry"] == entry["id"] and entry["epsilon"] == 1.0
    # The manifest leaves the building; where the ledger is, and what the data set is called, do not.
    assert "budget.db" not in manifest and "patients" not in manifest
    refused(run(*tables, "--dataset", "patients", "--epsilon", "1", "--out", "r2.csv"), "epsilon = 0.5 left")
    assert not (tmp_path / "r2.csv").exists()

    run("budget", "create", "budget.db", "visits", "--epsilon", "1")
    twice = run(*tables, "--dataset", "visits", "--epsilon", "1", "--out", "r3.csv")
    assert twice.returncode == 0
    assert twice.stderr.startswith("oversafe: the same table was charged to 'patients'")
    assert twice.stderr.count("\n") == 1


def test_a_release_made_before_is_charged_once(run, tables, tmp_path):
    assert run("budget", "create", "budget.db", "patients", "--epsilon", "1.5").returncode == 0
    made = tables[: tables.index("--ledger")]
    assert run(*made, "--epsilon", "1", "--out", "earlier.csv").returncode == 0
    done = run("budget", "charge", "budget.db", "patients", "earlier.csv")
    assert done.returncode == 0 and "epsilon = 0.5 left of 1.5" in done.stdout
    refused(
        run("budget", "charge", "budget.db", "patients", "earlier.csv"), "is charged to 'patients' already"
    )
    assert run(*made, "--epsilon", "1", "--out", "other.csv").returncode == 0
    refused(run("budget", "charge", "budget.db", "patients", "other.csv"), "epsilon = 0.5 left")
    refused(run("budget", "charge", "budget.db", "patients", "real.csv"), "has no manifest beside it")
    paid = run(*tables, "--dataset", "patients", "--epsilon", "0.5", "--out", "paid.csv")
    assert paid.returncode == 0
    refused(run("budget", "charge", "budget.db", "patients", "paid.csv"), "is paid for already")
    assert run(*made, "--seed", "1", "--out", "seeded.csv").returncode == 0
    refused(run("budget", "charge", "budget.db", "patients", "seeded.csv"), "--record-unproven")
    done = run("budget", "charge", "budget.db", "patients", "seeded.csv", "--record-unproven")
    assert done.returncode == 0 and "1 recorded without a proven guarantee" in done.stdout


def test_what_is_left_is_explained_where_it_does_not_add_up(run, tables):
    run("budget", "create", "budget.db", "patients", "--epsilon", "1.5", "--delta", "1e-6")
    # Not the histograms, whose guarantee is pure.
    mixture = ("protect", "real.csv", "-l", "diagnosis", *tables[tables.index("--schema") :])
    done = run(*mixture, "--dataset", "patients", "--out", "release.csv")
    assert "after 1 charge." in done.stdout and "charges cost less together" in done.stdout


def test_releases_without_a_proven_guarantee(run, tables, tmp_path):
    run("budget", "create", "budget.db", "patients", "--epsilon", "1")
    seeded = (*tables, "--dataset", "patients", "--seed", "1", "--out", "seeded.csv")
    refused(run(*seeded), "nominal, not proven", "--record-unproven")
    smote = (*tables, "--dataset", "patients", "--method", "smote", "--out", "smote.csv")
    refused(run(*smote), "there is no guarantee", "--record-unproven")
    assert not (tmp_path / "seeded.csv").exists() and not (tmp_path / "smote.csv").exists()
    for command in (seeded, smote):
        done = run(*command, "--record-unproven")
        assert done.returncode == 0, done.stderr
    assert "Not covered: 2" in done.stdout
    shown = run("budget", "show", "budget.db")
    assert "no budget covers them" in shown.stdout


def test_options_of_a_ledger_go_together(run, tables):
    refused(run(*tables, "--out", "r.csv"), "--ledger was given without --dataset")
    refused(run(*tables[:-2], "--dataset", "patients", "--out", "r.csv"), "go with --ledger")
    refused(run(*tables, "--dataset", "patients", "--out", "r.csv"), "there is no ledger at 'budget.db'")
    run("budget", "create", "budget.db", "patients", "--epsilon", "1")
    refused(
        run(*tables, "--dataset", "patient", "--out", "r.csv"), "it has 'patients', and nothing was spent"
    )


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("_fit", "stopped; nothing was written; nothing was charged"),
        ("_draw", "stopped; nothing was written; epsilon = 0.2 was charged already, and stands"),
    ],
)
def test_ctrl_c_tells_whether_the_charge_stands(run, tables, monkeypatch, method, said):
    def stop(*_):
        raise KeyboardInterrupt

    run("budget", "create", "budget.db", "patients", "--epsilon", "3")
    monkeypatch.setattr(HistogramSynthesizer, method, stop)
    done = run(*tables, "--dataset", "patients", "--epsilon", "0.2", "--out", "r.csv")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", f"oversafe: {said}\n")
    (balance,) = json.loads(run("budget", "show", "budget.db", "--json").stdout)
    assert balance["charges"] == (method == "_draw")


def test_ctrl_c_in_a_comparison_tells_what_is_kept(run, tables, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("oversafe.experiment.grid._run", stop)
    done = run(
        "compare", "real.csv", "-l", "diagnosis", "--methods", "histograms", "--epsilons", "1", "--jobs", "1"
    )
    assert (done.returncode, done.stderr) == (
        130,
        "oversafe: stopped; 0 of 2 cells are kept; the same command goes on\n",
    )


def test_a_release_of_changed_rows_is_in_random_order(run, tables):
    command = (
        "protect",
        "real.csv",
        "-l",
        "diagnosis",
        "--method",
        "k-anonymizer",
        "--seed",
        "3",
        "--out",
        "k.csv",
    )
    done = run(*command)
    assert done.returncode == 0 and "in random order" in done.stdout
    X, y = load_dataset("breast_cancer")
    kept, labels = KAnonymizer().fit_resample(X, y)
    expected = kept.assign(diagnosis=labels)
    found = read_table("k.csv")[expected.columns.tolist()]
    # That 373 shuffled labels are in their old order has a probability below 1e-100.
    assert found["diagnosis"].tolist() != expected["diagnosis"].tolist()
    assert sorted(map(tuple, found.astype(str).to_numpy())) == sorted(
        map(tuple, expected.astype(str).to_numpy())
    )


def test_the_terminal_speaks_of_options_and_not_of_arguments(run, tables):
    done = run("account", "smote", "--epsilon", "1", "--dimensions", "2", "--added", "9", "--minority", "20")
    assert "--unstable-ties" in done.stdout and "stable_ties=" not in done.stdout
    run("budget", "create", "budget.db", "patients", "--epsilon", "3")
    protect = [word for word in tables if word not in ("--schema", "schema.toml")]
    done = run(*protect, "--dataset", "patients", "--out", "r.csv")
    refused(done, "--record-unproven")
    assert "unproven=" not in done.stderr and "classes=" not in done.stderr
    done = run(*protect, "--dataset", "patients", "--out", "r.csv", "--record-unproven")
    assert done.returncode == 0 and "schema file" in done.stdout and "classes=" not in done.stdout
