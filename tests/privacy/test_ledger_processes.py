"""Many processes on one ledger, killed at random: nothing is overspent, nothing confirmed is lost."""

import subprocess
import sys
import uuid
from collections import Counter
from pathlib import Path

import pytest

from oversafe.privacy import Ledger

WORKERS = Path(__file__).with_name("ledger_workers.py")


def charge_from_processes(location, folder, *, charges, kills, pause, delta=0.0, epsilon=0.001):
    key = folder / "key"
    confirmed = folder / "confirmed"
    confirmed.mkdir()
    ledger = Ledger(location, key_file=key)
    budget = round(charges * epsilon, 9)
    ledger.create("others", 1.0)
    ledger.create("people", budget, delta)
    done = subprocess.run(
        [sys.executable, WORKERS, location, key, confirmed, "8", str(kills), str(pause), "1", str(epsilon)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    numbers = Counter(int(n) for file in confirmed.iterdir() for n in file.read_text().split())
    history = {entry.number for entry in ledger.history("people") if entry.kind == "charge"}
    balance = ledger.remaining("people")
    found = ledger.verify()
    assert found.ok and found.end_seen, found.problems
    assert max(numbers.values()) == 1
    # No confirmed charge is lost; one that a kill kept from being confirmed stands too.
    assert set(numbers) <= history and len(history) - len(numbers) <= kills
    assert len(list(confirmed.iterdir())) > 9, "the workers that were killed had successors"
    return balance


def assert_spent_to_the_last_charge(balance, charges):
    assert balance.charges == charges
    assert balance.epsilon == 0 and balance.added_epsilon == balance.budget_epsilon


def test_eight_processes_with_kills(tmp_path):
    balance = charge_from_processes(tmp_path / "budget.db", tmp_path, charges=300, kills=10, pause=0.05)
    assert_spent_to_the_last_charge(balance, 300)


@pytest.mark.slow
def test_eight_processes_charge_ten_thousand_times_with_kills(tmp_path):
    balance = charge_from_processes(tmp_path / "budget.db", tmp_path, charges=10_000, kills=200, pause=0.5)
    assert_spent_to_the_last_charge(balance, 10_000)


@pytest.mark.slow
def test_eight_processes_spend_a_budget_with_delta(tmp_path):
    balance = charge_from_processes(
        tmp_path / "budget.db", tmp_path, charges=100, kills=40, pause=0.1, delta=1e-6, epsilon=0.01
    )
    # The filter lets through what the sum would not.
    assert balance.charges > 400 and balance.spent_epsilon <= 1.0 < balance.added_epsilon


@pytest.mark.engines
def test_eight_processes_with_kills_on_postgresql(tmp_path, postgres_url):
    pytest.importorskip("psycopg", reason="install the extra 'engines'")
    location = f"{postgres_url}#ledger_{uuid.uuid4().hex[:12]}"
    balance = charge_from_processes(location, tmp_path, charges=300, kills=10, pause=0.05)
    assert_spent_to_the_last_charge(balance, 300)


@pytest.mark.engines
@pytest.mark.slow
def test_eight_processes_charge_ten_thousand_times_on_postgresql(tmp_path, postgres_url):
    pytest.importorskip("psycopg", reason="install the extra 'engines'")
    location = f"{postgres_url}#ledger_{uuid.uuid4().hex[:12]}"
    balance = charge_from_processes(location, tmp_path, charges=10_000, kills=200, pause=0.5)
    assert_spent_to_the_last_charge(balance, 10_000)
