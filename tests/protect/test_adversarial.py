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

from oversafe._core.errors import InputError, MissingExtraError
from oversafe.measure import audit_epsilon
from oversafe.privacy import Accountant, Ledger
from oversafe.privacy.gradients import steps_epsilon
from oversafe.privacy.guarantee import OVER_THE_REALS
from oversafe.protect import DPGAN, PATEGAN, SMOTEDP
from oversafe.protect.deep.adversarial import Cells, Generator, one_hot
from oversafe.protect.deep.pategan import Teachers, noisy_votes
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

    replaced = [("replace-one", *map(with_record, pair)) for pair in itertools.combinations(records, 2)]
    added = [("add-remove", (X, y), with_record(record)) for record in records]
    for relation, a, b in replaced + added:

        def fit(table, relation=relation):
            return make(PATEGAN, relation=relation).fit(*table)

        # Answers first, so that both runs replay them and draw the same lots.
        watched.answers, watched.seen = [], []
        fit(a)
        moves = watched.moved(fit, a, b)
        # The margins, and three rounds of votes.
        assert len(moves) == 4 and max(moves) <= 1 + 1e-9


class Lots:
    """In the place of a source of random numbers, so that every other record keeps its lot."""

    def __init__(self, lots):
        self.lots = lots

    def random(self, n):
        assert n == len(self.lots)
        return self.lots


def random_cells(n, rng):
    sizes = (7, 20, 3)
    codes = np.array([rng.integers(0, size, n) for size in sizes], dtype=np.int64).T
    return Cells(sizes, codes, rng.integers(0, 2, n), 2)


def trained(cells, n_teachers, lots, fake, rounds=4):
    """Return teachers with the same starting weights in every call, and their votes after each round."""
    from oversafe.privacy.gradients import seeded_torch

    with seeded_torch(np.random.default_rng(7)):
        teachers = Teachers(cells, n_teachers, Lots(lots))
    seen = []
    for _ in range(rounds):
        teachers.learn(fake)
        seen.append(teachers.opinions(fake))
    return teachers, np.array(seen)


@pytest.mark.extras
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_no_record_moves_a_bit_of_other_teachers(deep, relation):
    moved, sizes = 0, set()
    for trial in range(60):
        rng = np.random.default_rng(trial)
        n, k = int(rng.integers(1, 150)), int(rng.integers(2, 40))
        table, lots = random_cells(n, rng), rng.random(n)
        own = np.floor(lots * k).astype(int)
        # Half of the time a record of the teacher with most rows, by which all teachers' tables were once filled up.
        longest = int(np.argmax(np.bincount(own, minlength=k)))
        at = int(np.argmax(own == longest)) if trial % 2 else int(rng.integers(n))
        keep = np.arange(n) != at
        if relation == "add-remove":
            other = Cells(table.sizes, table.codes[keep], table.classes[keep], 2), lots[keep]
        else:
            codes, classes = table.codes.copy(), table.classes.copy()
            codes[at], classes[at] = (codes[at] + 1) % table.sizes, 1 - classes[at]
            other = Cells(table.sizes, codes, classes, 2), lots
        generated = random_cells(int(rng.integers(50, 110)), rng)
        fake = one_hot(generated)(np.arange(len(generated.classes)))
        (first, votes), (second, other_votes) = (
            trained(cells, k, drawn, fake) for cells, drawn in ((table, lots), other)
        )
        others = np.arange(k) != own[at]
        np.testing.assert_array_equal(votes[:, others], other_votes[:, others])
        for name in ("weights", "mean", "square"):
            a, b = (getattr(each, name)[others].view(np.uint32) for each in (first, second))
            np.testing.assert_array_equal(a, b)
        assert np.isfinite(first.weights).all()
        moved += not np.array_equal(first.weights[own[at]], second.weights[own[at]])
        sizes |= set(np.bincount(own, minlength=k).tolist())
    # The record's own teacher does learn from it, and some teachers have no row at all.
    assert moved == 60 and {0, 1, 2} <= sizes


@pytest.mark.extras
def test_teachers_learn_as_torchs_networks_do(deep):
    import torch
    from torch.nn import functional

    rng = np.random.default_rng(0)
    table, generated = random_cells(90, rng), random_cells(60, rng)
    lots = rng.random(90) * 5 / 6
    fake = one_hot(generated)(np.arange(60))
    start, _ = trained(table, 6, lots, fake, rounds=0)
    teachers, seen = trained(table, 6, lots, fake, rounds=3)
    assert np.diff(teachers.starts).sum() == 90 and teachers.starts[5] == teachers.starts[6]
    own = np.floor(lots * 6).astype(int)
    for number in range(6):
        real = one_hot(table)(np.flatnonzero(own == number))
        weights = torch.as_tensor(start.weights[number])
        first, bias, second, last = (
            part.clone().requires_grad_() for part in weights.split([32 * 16, 16, 16, 1])
        )

        def score(rows, first=first, bias=bias, second=second, last=last):
            return torch.relu(rows @ first.reshape(32, 16) + bias) @ second + last

        parts = [first, bias, second, last]
        optimizer = torch.optim.AdamW(parts, lr=0.01, weight_decay=0.1)
        for _ in range(3 * 5):
            optimizer.zero_grad()
            loss = functional.softplus(score(fake)).mean()
            if len(real):
                loss = loss + functional.softplus(-score(real)).mean()
            loss.backward()
            optimizer.step()
        expected = torch.cat(parts).detach().numpy()
        np.testing.assert_allclose(teachers.weights[number], expected, atol=1e-4)
        scores = score(fake).detach().numpy()
        clear = np.abs(scores) > 1e-3
        np.testing.assert_array_equal(seen[-1, number, clear], scores[clear] > 0)


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
