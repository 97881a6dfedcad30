"""``oversafe account``: tables, sentences, JSON, and what it refuses."""

import json

import pytest
from typer.testing import CliRunner

from oversafe._core.errors import InputError
from oversafe.cli.program import app
from oversafe.privacy import Guarantee, bagging_cost, oversampling_cost, smote_budget, smote_cost

SMOTE = ["account", "smote", "--dimensions", "25", "--neighbors", "5", "--added", "1000", "--minority", "100"]


def run(*arguments):
    result = CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "200"})
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_smote_as_a_table():
    shown = run(*SMOTE, "--epsilon", 1).stdout
    assert "1,001" in shown and "proven" in shown
    assert "protects a record as epsilon = 1001 would on the table itself" in shown
    assert "It holds if" in shown


def test_smote_the_other_way_round():
    shown = run(*SMOTE, "--epsilon", 1, "--delta", 1e-6, "--whole").stdout
    budget = smote_budget(1.0, n_minority=100, n_added=1000, dimensions=25, target_delta=1e-6)
    assert f"the mechanism must run at epsilon = {budget:.4g}" in shown


def test_json_is_the_guarantee():
    told = json.loads(run(*SMOTE, "--epsilon", 1, "--delta", 1e-6, "--json").stdout)
    cost = smote_cost(1.0, n_minority=100, n_added=1000, dimensions=25, target_delta=1e-6)
    assert Guarantee.from_dict(told["guarantee"]) == cost
    assert told["settings"]["k_neighbors"] == 5 and told["changed_rows"]["largest"] == 1001
    assert "epsilon" in told["meaning"]


def test_a_gaussian_mechanism_and_two_classes():
    two = [*SMOTE, "--added", 300, "--minority", 50, "--noise-multiplier", 500, "--delta", 1e-6, "--json"]
    told = json.loads(run(*two).stdout)
    cost = smote_cost(
        noise_multiplier=500,
        n_minority={0: 100, 1: 50},
        n_added={0: 1000, 1: 300},
        dimensions=25,
        target_delta=1e-6,
    )
    assert told["guarantee"]["epsilon"] == pytest.approx(cost.epsilon)


def test_oversampling_and_bagging():
    told = json.loads(
        run(
            *["account", "oversampling", "--epsilon", 1, "--added", 900, "--minority", 100],
            *["--mechanism-delta", 1e-9, "--json"],
        ).stdout
    )
    cost = oversampling_cost(1.0, n_minority=100, n_added=900, delta=1e-9)
    assert told["guarantee"]["delta"] == cost.delta
    bagging = ["account", "bagging", "--estimators", 10, "--records", 1000]
    shown = run(*bagging, "--epsilon", 0.1, "--delta", 1e-6).stdout
    cost = bagging_cost(0.1, n_estimators=10, n_records=1000, target_delta=1e-6)
    assert f"epsilon = {cost.epsilon:.4g} mechanism" in shown
    assert "No privacy guarantee" in run(*bagging, "--split", "disjoint").stdout
    assert "without any protection" in run(*bagging, "--samples", 5).stdout
    assert "It is not proven" in run(*bagging, "--epsilon", 1, "--split", "stratified").stdout
    whole = run(*bagging, "--epsilon", 1, "--split", "subsample", "--samples", 100, "--whole").stdout
    assert "epsilon of each learner" in whole


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epsilon", "0"], "epsilon = 0.0"),
        (["--epsilon", "1", "--delta", "1"], "delta = 1.0"),
        (["--epsilon", "1", "--minority", "50"], "--minority was given 2 times"),
        (["--whole"], "--whole needs --epsilon"),
        ([], "either epsilon"),
        (["--epsilon", "1", "--neighbors", "100"], "more records than neighbours"),
        (["--epsilon", "1", "--relation", "odd"], "relation = 'odd'"),
    ],
)
def test_bad_use_is_one_sentence(arguments, message):
    with pytest.raises(InputError, match=message) as refused:
        run(*SMOTE, *arguments)
    assert "\n" not in str(refused.value)
