"""DPGAN and PATEGAN pay for what they see, start from noisy margins, and draw any class shares.

The audits hold at confidence 1 - 1e-6, so a test of the right votes fails by chance with at most that probability. The
broken copy has a fixed seed.
"""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pandas as pd
import pytest

from oversafe.errors import InputError, MissingExtraError
from oversafe.measure import audit_epsilon
from oversafe.privacy import Accountant, Ledger
from oversafe.privacy.gradients import steps_epsilon
from oversafe.privacy.guarantee import OVER_THE_REALS
from oversafe.protect import DPGAN, PATEGAN, SMOTEDP
from oversafe.protect.adversarial import Cells, Generator
from oversafe.protect.pategan import Teachers, noisy_votes
from tests.protect.sensitivity import CountsSeen
from tests.protect.test_mixture import SCHEMA, correlated

QUICK = {DPGAN: {"epochs": 2}, PATEGAN: {"n_rounds": 3, "n_votes": 10, "n_teachers": 8}}
both = pytest.mark.parametrize("kind", [DPGAN, PATEGAN])


def make(kind, **parameters):
    known = {"schema": SCHEMA, "classes": ["ill", "well"], "random_state": 0}
    return kind(**{**known, **QUICK[kind], **parameters})


# ------------------------------------------------------------------------------------------- without the extra


def test_a_generator_draws_from_its_softmax():
    start = np.log(np.array([[0.2, 0.8, 0.5, 0.25, 0.25], [1.0, 1e-9, 1e-9, 1e-9, 1.0]]))
    silent = (np.zeros((32 + 2, 5)), np.zeros(5))
    drawn = Generator((2, 3), start, [silent]).draw(np.repeat([0, 1], 40_000), np.random.default_rng(0))
    # Shares of 40,000 draws; five deviations are below 0.013.
    assert drawn[:40_000, 0].mean() == pytest.approx(0.8, abs=0.013)
    assert (drawn[:40_000, 1] == 0).mean() == pytest.approx(0.5, abs=0.013)
    assert (drawn[40_000:, 0] == 0).all() and (drawn[40_000:, 1] == 2).all()


@both
def test_a_missing_package_is_told_before_the_ledger_pays(monkeypatch, tmp_path, kind):
    monkeypatch.setitem(sys.modules, "torch", None)
    ledger = Ledger(tmp_path / "budget.db", key_file=tmp_path / "key")
    ledger.create("patients", 1.0, 1e-6)
    with pytest.raises(MissingExtraError, match="oversafe\\[deep\\]"):
        make(kind, random_state=None, ledger=ledger.for_dataset("patients")).fit(*correlated(50))
    assert len(ledger.history("patients")) == 1


@both
@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"epsilon": 0.0}, "epsilon = 0.0"),
        ({"delta": 0.0}, "delta = 0"),
        ({"margins": 1.0}, "margins = 1.0"),
        ({"n_bins": 0}, "n_bins = 0"),
        ({"learning_rate": 0.0}, "learning_rate = 0.0"),
    ],
)
def test_bad_parameters_are_refused(kind, parameters, words):
    with pytest.raises(InputError, match=words):
        make(kind, **parameters).fit(*correlated(50))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (DPGAN(epochs=0), "epochs = 0"),
        (DPGAN(batch_size=0), "batch_size = 0"),
        (DPGAN(max_grad_norm=0.0), "max_grad_norm = 0.0"),
        (PATEGAN(n_teachers=1), "n_teachers = 1"),
        (PATEGAN(n_rounds=0), "n_rounds = 0"),
        (PATEGAN(n_votes=0), "n_votes = 0"),
    ],
)
def test_bad_settings_of_each_are_refused(model, words):
    with pytest.raises(InputError, match=words):
        model.fit(*correlated(50))


def audited_votes(accountant: Accountant) -> float:
    """Return a bound on the epsilon of votes on four rows, all of which one teacher turns round."""
    share = 1.0

    def run(votes, rng):
        own = Accountant(accountant.epsilon, accountant.delta, random_state=rng)
        return noisy_votes(np.asarray(votes), own, share)

    audit = audit_epsilon(
        run,
        [9, 9, 1, 1],
        [8, 8, 2, 2],
        trials=6000,
        delta=accountant.delta,
        confidence=1 - 1e-6,
        random_state=0,
    )
    return audit.lower_bound


def test_noisy_votes_survive_the_audit():
    assert audited_votes(Accountant(1.0, 0.05)) <= 1.0


# Half of the noise; and a quarter, as if a teacher had one vote in all and not one on each row, with half of the noise.
@pytest.mark.parametrize("factor", [2, 4])
def test_votes_with_too_little_noise_are_caught(monkeypatch, factor):
    from oversafe.privacy import accountant

    honest = accountant.gaussian_counts

    def weak(counts, *, sensitivity, **budget):
        return honest(counts, sensitivity=sensitivity / factor, **budget)

    monkeypatch.setattr(accountant, "gaussian_counts", weak)
    assert audited_votes(Accountant(1.0, 0.05)) > 1.0


# ---------------------------------------------------------------------------------------------- with the extra


@pytest.fixture
def deep():
    pytest.importorskip("opacus", reason="needs: pip install 'oversafe[deep]'")


@pytest.mark.extras
@both
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_the_guarantee_is_proven(deep, kind, relation):
    X, y = correlated(300)
    model = make(kind, random_state=None, relation=relation).fit(X, y)
    assert model.guarantee_.status == "proven" and model.guarantee_.relation == relation
    assert model.guarantee_.epsilon <= 1.0 + 1e-9 and model.guarantee_.delta == 1e-9
    if kind is DPGAN:
        # A record more moves the others' places in a step, which a replaced one does not.
        assert model.guarantee_.caveats == ((OVER_THE_REALS,) if relation == "add-remove" else ())
    assert type(model.guarantee_).from_dict(model.guarantee_.to_dict()) == model.guarantee_
    S, t = model.sample(class_counts={"ill": 30, "well": 20})
    assert list(S.columns) == ["x", "n", "c"] and t.value_counts().to_dict() == {"ill": 30, "well": 20}


@pytest.mark.extras
@both
def test_domains_can_be_paid_for(deep, kind):
    X, y = correlated(3000)
    model = kind(domains="private", epsilon=8.0, delta=1e-6, **QUICK[kind]).fit(X, y)
    assert model.guarantee_.status == "proven"
    assert {column.domain for column in model.schema_} == {"private estimate"}


@pytest.mark.extras
@both
def test_a_large_budget_keeps_the_margins_of_every_class(deep, kind):
    X, y = correlated(3000)
    model = make(kind, epsilon=1000.0, n_bins=8).fit(X, y)
    S, t = model.sample(class_counts={"ill": 4000, "well": 4000})
    for label in ("ill", "well"):
        real, made = X[y == label], S[t == label]
        assert abs(real["x"].mean() - made["x"].mean()) < 0.15 * real["x"].std()
        assert abs((real["c"] == "a").mean() - (made["c"] == "a").mean()) < 0.05


@pytest.mark.extras
def test_a_discriminator_costs_what_it_says(deep, monkeypatch):
    from oversafe.privacy import gradients

    drawn = []
    honest = gradients.noisy

    def watched(total, noise, rng):
        drawn.append((len(total), noise))
        return honest(total, noise, rng)

    monkeypatch.setattr(gradients, "noisy", watched)
    model = make(DPGAN, margins=0.25, batch_size=50, max_grad_norm=0.5).fit(*correlated(200))
    assert (model.sample_rate_, model.n_steps_) == (0.25, 8)
    # All weights and biases of both layers together, once in a step.
    assert len(drawn) == 8 and set(drawn) == {(drawn[0][0], model.noise_multiplier_)} and drawn[0][0] > 64 * 3
    spent = steps_epsilon(model.noise_multiplier_, 0.75e-9, rate=0.25, steps=8)
    assert 0.9 * 0.75 < spent <= 0.75


@pytest.mark.extras
def test_no_neighbour_moves_the_votes_by_more_than_is_paid_for(deep, monkeypatch):
    X, y = correlated(60)
    X = X.astype({"c": "object"})
    records = [(0.0, 0, "a", "ill"), (99.0, 3, None, "well"), (2.0, 1, "unknown", "nobody")]
    watched = CountsSeen(monkeypatch)

    def with_record(record):
        row = pd.DataFrame([record[:3]], columns=["x", "n", "c"]).astype({"c": "object"})
        return pd.concat([X, row], ignore_index=True), pd.concat(
            [y, pd.Series([record[3]])], ignore_index=True
        )

    for a, b in itertools.combinations(records, 2):
        # Answers first, so that both runs replay them and draw the same lots.
        watched.answers, watched.seen = [], []
        make(PATEGAN).fit(*with_record(a))
        moves = watched.moved(lambda table: make(PATEGAN).fit(*table), with_record(a), with_record(b))
        # The margins, and three rounds of votes.
        assert len(moves) == 4 and max(moves) <= 1 + 1e-9


@pytest.mark.extras
def test_teachers_see_rows_of_their_own(deep):
    import torch

    from oversafe.privacy.gradients import seeded_torch

    rng = np.random.default_rng(0)
    codes, classes = rng.integers(0, 4, size=(90, 3)), rng.integers(0, 2, 90)
    other = codes.copy()
    other[60] = (other[60] + 2) % 4

    def scores(own):
        with seeded_torch(np.random.default_rng(1)):
            teachers = Teachers(Cells((4, 4, 4), own, classes, 2), 6, np.random.default_rng(2))
            assert sorted(teachers.rows[teachers.weight.numpy() > 0]) == list(range(90))
            # These rows are the same for both, as generated ones are.
            fake = teachers.hot(np.arange(40))
            for _ in range(3):
                teachers.learn(fake)
            with torch.no_grad():
                return teachers._scores(fake).numpy()

    moved = np.abs(scores(codes) - scores(other)).max(axis=1)
    assert (moved > 1e-4).sum() == 1 and np.sort(moved)[-2] < 1e-6


@pytest.mark.extras
def test_pategan_after_smote(deep):
    X, y = correlated(200)
    inner = PATEGAN(**QUICK[PATEGAN])
    model = SMOTEDP(inner, epsilon=50.0, delta=1e-6, k_neighbors=1, random_state=0, schema=SCHEMA).fit(X, y)
    assert model.guarantee_.status == "nominal" and model.guarantee_.epsilon <= 50.0 + 1e-9
    assert len(model.sample(20)[0]) == 20


@pytest.mark.extras
@both
def test_torch_keeps_its_own_random_state_and_threads(deep, kind):
    import torch

    torch.manual_seed(5)
    expected, threads = torch.rand(3), torch.get_num_threads()
    torch.manual_seed(5)
    make(kind).fit(*correlated(60)).sample(5)
    assert torch.equal(torch.rand(3), expected) and torch.get_num_threads() == threads
