"""The command line's keys, and what they change in audits, from end to end."""

import io
import json
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from oversafe.cli.program import main
from oversafe.data import Schema
from oversafe.privacy import Keys, read_manifest
from oversafe.privacy.signing.keys import fingerprint
from oversafe.privacy.signing.manifest import checksum, manifest_path

OTHER = "ab" * 32


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command in this process, with keys and ledgers of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("OVERSAFE_KEYS", raising=False)
    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments, typed=""):
        monkeypatch.setattr(sys, "argv", ["oversafe", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return SimpleNamespace(returncode=ended.value.code or 0, stdout=said.out, stderr=said.err)

    return run


def refused(done, *parts):
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    for part in parts:
        assert part in done.stderr


@pytest.fixture
def made(run, tmp_path):
    """The real table, a public schema, and the command that protects it.

    Of 60 released rows all are of one class with a probability below 1e-12, and three of them stand on one line of four
    columns with six decimals, which an attack would take for SMOTE's, below 1e-9.
    """
    rng = np.random.default_rng(0)
    real = pd.DataFrame(rng.normal(50, 9, size=(300, 4)).round(6), columns=list("abcd"))
    real["diagnosis"] = np.where(np.arange(300) % 2, "ill", "well")
    real.to_csv(tmp_path / "real.csv", index=False)
    schema = Schema.infer(real, label="diagnosis")
    for column in schema:
        schema = schema.declare(column.name, domain="public", source="a test")
    schema.to_toml(tmp_path / "schema.toml")
    return (
        "protect",
        "real.csv",
        "-l",
        "diagnosis",
        "--method",
        "histograms",
        "--schema",
        "schema.toml",
        "--rows",
        "60",
        "--out",
    )


@pytest.fixture
def audited(run):
    """Audit a file with all attacks that the release alone allows, and fail on less than protected."""
    return lambda file, *more: run("audit", file, "-l", "diagnosis", "--fail-on", "unproven", *more)


def test_keys_are_created_shown_trusted_and_distrusted(run, tmp_path):
    assert "You have no key yet" in run("keys", "show").stdout
    done = run("keys", "create", "--name", "Ward 7")
    own = Keys(tmp_path / "config" / "oversafe" / "keys").own()
    assert (
        done.returncode == 0 and own.public_key in done.stdout and fingerprint(own.public_key) in done.stdout
    )
    assert run("keys", "show").stdout == done.stdout
    refused(run("keys", "create", "--name", "Ward 8"), "a signing key of 'Ward 7' already")
    refused(run("keys", "create", "--name", "<b>"), "cannot be the name")
    assert run("keys", "trust", "Ann", OTHER, "--fingerprint", fingerprint(OTHER)).returncode == 0
    shown = json.loads(run("keys", "show", "--json").stdout)
    assert [(key["name"], key["status"]) for key in shown] == [("Ward 7", "own"), ("Ann", "trusted")]
    assert "Distrusted: Ann" in run("keys", "distrust", "Ann").stdout
    assert "Distrusted: Ann" in run("keys", "show").stdout
    refused(run("keys", "distrust", "Bob"), "no key of 'Bob'")


def test_the_fingerprint_is_typed_and_not_shown_beforehand(run):
    done = run("keys", "trust", "Ann", OTHER, typed=fingerprint(OTHER) + "\n")
    assert done.returncode == 0 and "Trusted: Ann" in done.stdout
    wrong = run("keys", "trust", "Bob", "ac" * 32, typed=fingerprint(OTHER) + "\n")
    assert wrong.returncode == 2 and "is not that of this key" in wrong.stderr
    assert fingerprint("ac" * 32) not in wrong.stdout + wrong.stderr
    nothing = run("keys", "trust", "Bob", "ac" * 32)
    assert nothing.returncode == 2 and "no fingerprint was given, and nothing is trusted" in nothing.stderr
    refused(run("keys", "trust", "Bob", "nothing"), "is no public key and no file with one")


def test_ones_own_release_is_protected_and_a_strangers_is_not_until_trusted(
    run, made, audited, tmp_path, monkeypatch
):
    done = run(*made, "mine.csv", "--epsilon", "1")
    assert done.returncode == 0 and "Signed with your key, fingerprint " in done.stdout
    mine = audited("mine.csv")
    assert mine.returncode == 0 and "PROTECTED" in mine.stdout
    said = " ".join(mine.stdout.split())
    assert "This is signed by you." in said and "at most 73 % of the time" in said

    monkeypatch.setenv("OVERSAFE_KEYS", str(tmp_path / "stranger"))
    assert run(*made, "theirs.csv", "--epsilon", "1").returncode == 0
    monkeypatch.delenv("OVERSAFE_KEYS")
    theirs = audited("theirs.csv")
    assert theirs.returncode == 1 and "UNPROVEN" in theirs.stdout
    digits = Keys(tmp_path / "stranger").known()[0].fingerprint
    assert f"signed by an unknown key (fingerprint {digits})" in " ".join(theirs.stdout.split())
    assert "oversafe keys trust NAME theirs.csv.manifest.json" in theirs.stdout
    trusted = run("keys", "trust", "Ward 7", "theirs.csv.manifest.json", "--fingerprint", digits)
    assert trusted.returncode == 0
    assert "Ward 7, whom you trust, states this." in " ".join(audited("theirs.csv").stdout.split())
    assert run("keys", "distrust", "Ward 7").returncode == 0
    assert audited("theirs.csv").returncode == 1


def test_files_that_nobody_vouches_for_fail_the_gate_or_are_refused(run, made, audited, tmp_path):
    assert run(*made, "r.csv", "--epsilon", "1").returncode == 0
    manifest, path = read_manifest(tmp_path / "r.csv"), manifest_path(tmp_path / "r.csv")
    for forged, words in (
        (replace(manifest, signature=None), "the manifest is unsigned"),
        (replace(manifest, created="2020-01-01"), "the signature does not fit"),
        (replace(manifest, oversafe="0.1.0").signed(), "made by oversafe 0.1.0"),
    ):
        path.write_text(forged.to_json())
        done = audited("r.csv")
        assert done.returncode == 1 and done.stderr == "" and "UNPROVEN" in done.stdout
        assert words in " ".join(done.stdout.split())
    for text in ("", "[" * 100_000, manifest.to_json()[:300], replace(manifest, sha256="0" * 64).to_json()):
        path.write_text(text)
        refused(audited("r.csv"), "manifest")
    (tmp_path / "r.csv").write_bytes((tmp_path / "real.csv").read_bytes())
    path.write_text(replace(manifest, sha256=checksum(tmp_path / "r.csv")).to_json())
    done = audited("r.csv")
    assert done.returncode == 1 and "the signature does not fit" in " ".join(done.stdout.split())


def test_a_ledger_vouches_on_the_command_line(run, made, audited, tmp_path, monkeypatch):
    assert run("budget", "create", "b.db", "patients", "--epsilon", "2", "--delta", "1e-6").returncode == 0
    monkeypatch.setenv("OVERSAFE_KEYS", str(tmp_path / "colleague"))
    paid = run(*made, "r.csv", "--epsilon", "1", "--ledger", "b.db", "--dataset", "patients")
    assert paid.returncode == 0, paid.stderr
    monkeypatch.delenv("OVERSAFE_KEYS")
    assert audited("r.csv").returncode == 1
    done = audited("r.csv", "--ledger", "b.db", "--report", "r.html")
    said = " ".join(done.stdout.split())
    assert done.returncode == 0 and f"in its entry {read_manifest('r.csv').ledger_entry}." in said
    assert "the budget of 'patients' covers (epsilon = 2, delta = 1e-06 in all" in said
    assert "--ledger b.db" in json.loads((tmp_path / "r.json").read_text())["settings"]["command"]
    refused(audited("r.csv", "--ledger", "absent.db"), "there is no ledger at 'absent.db'")
    refused(audited("r.csv", "--ledger-key", "key"), "--ledger-key goes with --ledger")


def test_the_weakest_guarantee_is_a_setting(run, made, audited, tmp_path):
    done = run(*made, "r.csv", "--epsilon", "5")
    assert done.returncode == 0 and "epsilon = 5 is a weak promise" in done.stderr
    weak = audited("r.csv")
    said = " ".join(weak.stdout.split())
    assert weak.returncode == 1 and "its guarantee is weak: epsilon = 5, and 3 or less is asked." in said
    assert "at most 99.3 % of the time" in said and "with a smaller epsilon" in said
    assert audited("r.csv", "--max-epsilon", "5").returncode == 0
    for wrong in ("0", "-1", "inf", "nan", "three", "1,5"):
        refused(audited("r.csv", "--max-epsilon", wrong), f"--max-epsilon {wrong} was given")


def test_a_budget_is_not_charged_by_what_nobody_vouches_for(run, made, tmp_path):
    run("budget", "create", "b.db", "patients", "--epsilon", "3")
    assert run(*made, "r.csv", "--epsilon", "1").returncode == 0
    signed = read_manifest(tmp_path / "r.csv")
    path = manifest_path(tmp_path / "r.csv")
    path.write_text(replace(signed, signature=None).to_json())
    refused(
        run("budget", "charge", "b.db", "patients", "r.csv"), "the manifest is unsigned", "nothing was spent"
    )
    done = run("budget", "charge", "b.db", "patients", "r.csv", "--record-unproven")
    assert "1 recorded without a proven guarantee" in done.stdout and "epsilon = 3 left" in done.stdout


def test_a_release_that_cannot_be_signed_is_written_and_that_is_said(run, made, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("OVERSAFE_KEYS", str(tmp_path / "file" / "keys"))
    done = run(*made, "r.csv", "--epsilon", "1")
    assert done.returncode == 0 and "Release: r.csv" in done.stdout and "Signed" not in done.stdout
    assert (
        done.stderr.count("\n") == 1
        and "the release is not signed, so that no audit will count" in done.stderr
    )
    facts = json.loads(run(*made, "r2.csv", "--epsilon", "1", "--json").stdout)
    assert facts["signed_by"] is None
