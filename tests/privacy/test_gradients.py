"""Noisy gradients: what they cost, against exact figures, and that copies with a mistake are caught.

The audits hold at confidence 1 - 1e-6, so a test of the right step fails by chance with at most that probability. Those
of broken copies have fixed seeds.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from oversafe._core.errors import InputError
from oversafe.measure import audit_epsilon
from oversafe.privacy import gradients
from oversafe.privacy.gradients import noise_for_steps, steps_epsilon
from oversafe.privacy.noise import poisson_sample

CONFIDENCE = 1 - 1e-6
STEPS = 2**30


def divergence(epsilon: float, noise: float, rate: float, first: float, second: float) -> float:
    """Return the hockey-stick divergence of two sampled sums in one dimension, by integration."""
    x = np.linspace(-12 * noise - 1, 12 * noise + 1, 200_001)

    def density(moved: float) -> np.ndarray:
        return (1 - rate) * norm.pdf(x, scale=noise) + rate * norm.pdf(x, moved, noise)

    return float(np.maximum(density(first) - np.exp(epsilon) * density(second), 0).sum() * (x[1] - x[0]))


@pytest.mark.parametrize(("noise", "rate"), [(0.7, 0.1), (1.5, 0.3), (2.0, 1.0)])
def test_the_cost_of_one_step_is_that_of_the_worst_pair(noise, rate):
    for delta in (1e-3, 1e-5):
        epsilon = steps_epsilon(noise, delta, rate=rate, steps=1)
        assert divergence(epsilon, noise, rate, 1.0, -1.0) == pytest.approx(delta, rel=0.02)
        one_way = steps_epsilon(noise, delta, rate=rate, steps=1, relation="add-remove")
        assert divergence(one_way, noise, rate, 1.0, 0.0) == pytest.approx(delta, rel=0.02)
        assert one_way < epsilon


@pytest.mark.parametrize("angle", [0.5, 1.0, 2.0, 3.0])
@pytest.mark.parametrize(("long", "short"), [(1.0, 1.0), (1.0, 0.3)])
def test_no_other_pair_of_gradients_is_worse(angle, long, short):
    noise, rate = 1.0, 0.2
    a, b = long * np.array([1.0, 0.0]), short * np.array([np.cos(angle), np.sin(angle)])
    grid = np.linspace(-7, 7, 301)
    x = np.stack(np.meshgrid(grid, grid), axis=-1)
    cell = (grid[1] - grid[0]) ** 2

    def density(moved: np.ndarray) -> np.ndarray:
        bell = norm.pdf(x).prod(axis=-1)
        return (1 - rate) * bell + rate * norm.pdf(x - moved).prod(axis=-1)

    for epsilon in (0.0, 0.3, 1.0):
        worst = divergence(epsilon, noise, rate, 1.0, -1.0)
        for first, second in ((a, b), (b, a)):
            found = np.maximum(density(first) - np.exp(epsilon) * density(second), 0).sum() * cell
            assert found <= worst * (1 + 1e-3)


def test_steps_compose():
    # Two steps, by integration over the first one's outcome.
    noise, rate, epsilon = 1.0, 0.3, 1.5
    grid = np.linspace(-9, 9, 1001)
    step = grid[1] - grid[0]

    def density(moved: float) -> np.ndarray:
        return (1 - rate) * norm.pdf(grid) + rate * norm.pdf(grid, moved)

    both, other = (np.multiply.outer(density(m), density(m)) for m in (1.0, -1.0))
    delta = np.maximum(both - np.exp(epsilon) * other, 0).sum() * step**2
    assert steps_epsilon(noise, float(delta), rate=rate, steps=2) == pytest.approx(epsilon, rel=0.01)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize(("epsilon", "rate", "steps"), [(0.1, 0.05, 100), (1.0, 1.0, 20), (6.0, 0.1, 50)])
def test_noise_fits_the_budget_and_hardly_less_would(relation, epsilon, rate, steps):
    noise = noise_for_steps(epsilon, 1e-6, rate=rate, steps=steps, relation=relation)
    kwargs = {"rate": rate, "steps": steps, "relation": relation}
    assert steps_epsilon(noise, 1e-6, **kwargs) <= epsilon
    assert steps_epsilon(0.98 * noise, 1e-6, **kwargs) > epsilon


def test_what_cannot_be_paid_is_refused():
    with pytest.raises(InputError, match="needs a delta"):
        noise_for_steps(1.0, 0.0, rate=0.1, steps=10)


@pytest.mark.parametrize("rng", [None, np.random.default_rng(0)], ids=["system", "seeded"])
def test_a_poisson_sample_has_every_row_with_the_same_chance(rng):
    counts = sum(np.bincount(poisson_sample(50, 0.3, rng), minlength=50) for _ in range(2000))
    # Each is Bin(2000, 0.3); 50 of them within 6.5 deviations fail with probability below 1e-8.
    assert (np.abs(counts - 600) < 6.5 * np.sqrt(2000 * 0.21)).all()
    assert len({len(poisson_sample(50, 0.3, rng)) for _ in range(50)}) > 1
    assert len(poisson_sample(20, 1.0, rng)) == 20


def test_a_sample_takes_no_row_more_often_than_was_accounted_for(monkeypatch):
    from oversafe.privacy import noise

    rate = 1 / 3
    words = (np.array([int(rate * 2**53) - 1, int(rate * 2**53)], dtype=np.uint64) << np.uint64(11)).tobytes()
    monkeypatch.setattr(noise.os, "urandom", lambda size: words[:size])
    assert poisson_sample(2, rate, None).tolist() == [0]


@pytest.mark.parametrize("rounding", [0.25, 0.3, 0.4])
def test_discrete_noise_is_normal_noise_brought_to_the_grid(rounding):
    # The lemma on the docs page with less rounding than the steps have, so that its bound can be seen.
    scale, z, x = 2.0, np.arange(-12, 13), np.linspace(-25, 25, 20_001)
    bell = np.exp(-((z[:, None] - x) ** 2) / (2 * rounding**2))
    everywhere = np.exp(-((np.arange(-40, 41)[:, None] - x) ** 2) / (2 * rounding**2)).sum(axis=0)
    brought = (norm.pdf(x, scale=np.sqrt(scale**2 - rounding**2)) * bell / everywhere).sum(axis=1) * (
        x[1] - x[0]
    )
    discrete = np.exp(-(z**2) / (2 * scale**2))
    discrete /= np.exp(-(np.arange(-60, 61) ** 2) / (2 * scale**2)).sum()
    kappa = 2 * sum(np.exp(-2 * np.pi**2 * rounding**2 * k**2) for k in range(1, 9))
    apart = np.abs(np.log(discrete / brought)).max()
    assert 1e-3 < apart <= np.log((1 + kappa) / (1 - kappa))


def test_the_rounding_of_the_noise_is_paid_for():
    # Of 2^70 numbers, in both directions, at the least epsilon that a search for the noise could meet.
    kappa = 2.1 * np.exp(-2 * np.pi**2 * gradients._ROUNDING**2)
    assert 6 * kappa * 2.0**70 < 1e-12 * gradients._ROUNDING_SHARE


def test_a_step_draws_the_noise_it_says_on_the_grid():
    from scipy.stats import kstest

    # Kolmogorov-Smirnov at 1e-7: the unseeded draws fail by chance with that probability. Half of the noise is far off.
    drawn = gradients.noisy(np.zeros(4000, dtype=np.int64), 1.5, None)
    assert drawn.dtype == np.int64 and len(set(drawn % 1024)) > 900
    assert kstest(drawn / STEPS, norm(scale=1.5).cdf).pvalue > 1e-7
    assert kstest(drawn / STEPS, norm(scale=0.75).cdf).pvalue < 1e-7
    seeded = gradients.noisy(np.zeros(4000, dtype=np.int64), 1.5, np.random.default_rng(0))
    assert kstest(seeded / STEPS, norm(scale=1.5).cdf).pvalue > 1e-7


def test_sums_on_the_grid_are_exact():
    # A double holds whole numbers up to 2^53; a chunk's largest sum is that of as many rows of full length.
    assert gradients._CHUNK / gradients.GRID < 2**53
    # And a 64-bit number the sum of all rows of a table, with its noise.
    assert 1e9 / gradients.GRID < 2**63


def test_no_number_of_the_system_is_0(monkeypatch):
    from oversafe.privacy import noise

    monkeypatch.setattr(noise.os, "urandom", bytes)
    assert (noise.uniform(3) > 0).all() and (noise.fine_uniform(3) > 0).all()
    monkeypatch.setattr(noise.os, "urandom", lambda size: b"\xff" * size)
    assert (noise.uniform(3) < 1).all()


def test_the_rounding_of_hardly_any_noise_is_noise_of_its_own():
    # Noise of a step of the grid, and four more for the rounding; off by 10 % with a chance below 1e-9.
    drawn = gradients.noisy(np.zeros(4000, dtype=np.int64), gradients.GRID, np.random.default_rng(0))
    assert drawn.std() == pytest.approx(math.hypot(1.0, 4.0), rel=0.1)


# ------------------------------------------------------------------------------------------- with the extra


@pytest.fixture
def torch():
    pytest.importorskip("opacus", reason="needs: pip install 'oversafe[deep]'")
    return pytest.importorskip("torch")


@pytest.mark.extras
def test_gradients_are_shortened_over_all_parameters_together(torch):
    a = torch.tensor([[3.0, 0.0], [0.0, 0.3], [float("nan"), 1.0], [float("inf"), 0.0]])
    b = torch.tensor([[4.0], [0.4], [1.0], [1.0]])
    total = gradients.clipped_sum([a, b], 1.0)
    # The first row has norm 5 and is shortened to 1, the second has 0.5 and stays; the others tell nothing.
    assert total.dtype == np.int64
    np.testing.assert_allclose(total / STEPS, [0.6, 0.3, 0.8 + 0.4], rtol=2e-6)


@pytest.mark.extras
@pytest.mark.parametrize("clip", [1.0, 0.3, 1e-4, 77.7])
def test_no_rows_steps_are_longer_than_the_norm(torch, clip):
    rng = np.random.default_rng(0)
    long = rng.normal(size=(300, 41)) * 10.0 ** rng.uniform(-6, 30, size=(300, 1))
    # At the norm itself, and a hair to either side.
    at = rng.normal(size=(300, 41))
    at *= clip * (1 + rng.normal(size=(300, 1)) * 1e-7) / np.linalg.norm(at, axis=1, keepdims=True)
    odd = rng.choice([np.nan, np.inf, 3e38, 1e-45, 0.0, 1.0], size=(300, 41))
    rows = torch.as_tensor(np.vstack([long, at, odd]), dtype=torch.float32)
    longest = 0
    for i in range(len(rows)):
        own = gradients.clipped_sum([rows[i : i + 1, :20], rows[i : i + 1, 20:]], clip)
        # Of Python's whole numbers, which do not overflow.
        longest = max(longest, sum(int(step) ** 2 for step in own))
    assert 0.99999 * STEPS**2 < longest <= STEPS**2
    # However rows are put together, their sum is exact.
    alone = sum(gradients.clipped_sum([rows[i : i + 1]], clip) for i in range(256))
    np.testing.assert_array_equal(gradients.clipped_sum([rows[:256]], clip), alone)


@pytest.mark.extras
def test_a_step_without_noise_is_the_mean_of_shortened_gradients(torch, monkeypatch):
    monkeypatch.setattr(gradients, "noisy", lambda total, noise, rng: total)
    with gradients.seeded_torch(np.random.default_rng(0)):
        network = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
        X = torch.randn(700, 3)

    def losses(net, rows):
        return net(X[rows])[:, 0].square()

    step = gradients.NoisyGradient(
        network, clip=0.2, noise=1.0, n_rows=1000, rate=0.7, rng=np.random.default_rng(0)
    )
    rows = np.arange(700)
    step.step(losses, rows)
    found = torch.cat([p.grad.flatten() for p in network.parameters()])
    expected = torch.zeros_like(found)
    with step.without_rows():
        for i in rows:
            own = torch.autograd.grad(losses(network, [i]).sum(), list(network.parameters()))
            own = torch.cat([g.flatten() for g in own])
            expected += own * min(1.0, 0.2 / float(own.norm())) / 700
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)


def critic(torch):
    """Return the losses of rows of one-hot cells in DPGAN's discriminator."""
    network = torch.nn.Sequential(torch.nn.Linear(40, 64), torch.nn.LeakyReLU(0.2), torch.nn.Linear(64, 1))

    def losses(net, table):
        hot = torch.nn.functional.one_hot(torch.as_tensor(table % 10), 10).float().reshape(len(table), -1)
        return torch.nn.functional.softplus(-net(hot)[:, 0])

    return network, losses


def transformer(torch):
    """Return the losses of rows of numbers and categories in the FT-Transformer, with dropout."""
    from oversafe.learn.ft_network import NetworkShape, build_network

    network = build_network(NetworkShape(2, 25, 1, dimension=16, depth=2, heads=4, dropout=0.1)).train()

    def losses(net, table):
        numbers = torch.as_tensor(np.tan(table[:, :2]), dtype=torch.float32)
        places = torch.as_tensor(
            np.column_stack([0 * table[:, 0], [[1, 3]] * len(table), 5 + table[:, 2:] % 10])
        )
        scores = torch.nn.functional.pad(net(numbers, places), (1, 0))
        return torch.nn.functional.cross_entropy(scores, torch.as_tensor(table[:, 3] % 2), reduction="none")

    return network, losses


@pytest.mark.extras
@pytest.mark.parametrize("build", [critic, transformer])
@pytest.mark.parametrize("n", [1, 2, 7, 33, 100, 256])
def test_a_replaced_row_changes_no_bit_of_the_others_gradients(torch, build, n):
    from opacus.grad_sample import GradSampleModule

    rng = np.random.default_rng(n)
    with gradients.seeded_torch(np.random.default_rng(0)):
        network, losses = build(torch)
    network = GradSampleModule(network, batch_first=True, loss_reduction="sum")
    table = rng.integers(0, 1000, size=(n, 4))

    def rows_gradients(table):
        with gradients.seeded_torch(np.random.default_rng(1)), gradients._quiet_hooks():
            losses(network, table).sum().backward()
        found = [p.grad_sample for p in network.parameters()]
        for p in network.parameters():
            p.grad_sample = p.grad = None
        return found

    before = rows_gradients(table)
    for place in {0, n // 2, n - 1}:
        other = table.copy()
        other[place] = rng.integers(0, 10**6, size=4)
        after = rows_gradients(other)
        rest = np.arange(n) != place
        assert all(torch.equal(a[rest], b[rest]) for a, b in zip(before, after, strict=True))
        # So the sums differ by what the two rows have, to the last step.
        one = slice(place, place + 1)
        np.testing.assert_array_equal(
            gradients.clipped_sum(before, 0.1) - gradients.clipped_sum(after, 0.1),
            gradients.clipped_sum([g[one] for g in before], 0.1)
            - gradients.clipped_sum([g[one] for g in after], 0.1),
        )


@pytest.mark.extras
def test_an_empty_sample_has_noise_too(torch):
    network = torch.nn.Linear(2, 1)
    step = gradients.NoisyGradient(network, clip=1.0, noise=2.0, n_rows=100, rate=0.1, rng=None)
    step.step(lambda net, rows: net(torch.zeros(len(rows), 2))[:, 0], np.arange(0))
    drawn = np.concatenate([p.grad.numpy().ravel() for p in network.parameters()])
    assert (drawn != 0).all()


@pytest.mark.extras
def test_a_step_has_the_noise_of_its_norm_over_the_expected_rows(torch):
    network = torch.nn.Linear(60, 50)
    step = gradients.NoisyGradient(network, clip=0.5, noise=2.0, n_rows=100, rate=0.1, rng=None)
    step.step(lambda net, rows: net(torch.zeros(len(rows), 60))[:, 0], np.arange(0))
    drawn = np.concatenate([p.grad.numpy().ravel() for p in network.parameters()])
    # Of 3050 numbers the deviation is off by 8 %, six standard errors, with a chance below 1e-8.
    assert drawn.std() == pytest.approx(2.0 * 0.5 / 10, rel=0.08)


def audited(torch, rate: float, trials: int = 20_000) -> float:
    """Return a bound on the epsilon of one step whose only row pulls with the longest gradient, either way."""
    noise = noise_for_steps(1.0, 0.01, rate=rate, steps=1)

    def run(pull, rng, size):
        (total,) = gradients.clipped_sum([torch.tensor([[pull]])], 1.0)
        sums = np.zeros(size, dtype=np.int64)
        sums[poisson_sample(size, rate, rng)] = total
        return gradients.noisy(sums, noise, rng) / STEPS

    audit = audit_epsilon(
        run, 40.0, -40.0, trials=trials, delta=0.01, confidence=CONFIDENCE, vectorized=True, random_state=0
    )
    return audit.lower_bound


@pytest.mark.extras
@pytest.mark.parametrize("rate", [0.3, 1.0])
def test_one_step_survives_the_audit(torch, rate):
    assert audited(torch, rate) <= 1.0


@pytest.mark.extras
@pytest.mark.parametrize("rate", [0.3, 1.0])
@pytest.mark.parametrize("mistake", ["half of the noise", "no clipping"])
def test_a_broken_step_is_caught(torch, monkeypatch, rate, mistake):
    if mistake == "half of the noise":
        honest = gradients.noisy
        monkeypatch.setattr(gradients, "noisy", lambda total, noise, rng: honest(total, noise / 2, rng))
    else:
        monkeypatch.setattr(
            gradients,
            "clipped_sum",
            lambda found, clip: torch.cat([g.double().sum(dim=0) * STEPS for g in found]).long().numpy(),
        )
    assert audited(torch, rate) > 1.0


def test_the_tails_of_the_noise_are_as_fine_as_numbers_are(monkeypatch):
    from oversafe.privacy import noise

    # All bits 0 but the last that count: the largest noise that can be drawn, and the next.
    drawn = []
    for last in (0, 1):
        words = np.zeros(2, dtype=np.uint64)
        words[1] = last << 11
        monkeypatch.setattr(noise.os, "urandom", lambda size, words=words: words.tobytes()[:size])
        drawn.append(float(noise.gaussian(1, 1.0, None)[0]))
    # With 53 bits the largest were 8.2 and 8.1 deviations, a hundred thousand steps of the rounding apart.
    assert abs(drawn[0]) > 11 and abs(drawn[0] - drawn[1]) < 0.2
