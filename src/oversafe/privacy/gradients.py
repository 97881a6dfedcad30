"""Noisy gradients: the step of DP-SGD on Poisson samples, and what many such steps cost."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oversafe._core.errors import InputError, import_extra
from oversafe.privacy.answers import Sampled, about, answered, sampled
from oversafe.privacy.guarantee import Relation, check_delta, check_epsilon
from oversafe.privacy.mechanisms import gaussian_noise

if TYPE_CHECKING:
    import torch

IntArray = NDArray[np.int64]

# Rows whose gradients are held at once.
_CHUNK = 256
# Gradients are whole multiples of this part of the norm. A double holds every sum of a chunk of them exactly.
GRID = 2.0**-30
# Gradients are shortened to a little less than the norm: a sum of up to 2^30 squares in double precision is off by less
# than 2^-22 of it.
_SLACK = 2.0**-20
# Discrete Gaussian noise of variance s^2 + 4^2 is normal noise of variance s^2 that was brought to the grid at random,
# but for a factor of exp(1e-136) per number; this share of epsilon and delta pays for that.
_ROUNDING, _ROUNDING_SHARE = 4.0, 2.0**-40
_MOST_NOISE = 1e7


def steps_epsilon(
    noise: float, delta: float, *, rate: float, steps: int, relation: Relation = "replace-one"
) -> float:
    """Return the epsilon of many noisy sums of vectors, each over a Poisson sample of the rows.

    Parameters
    ----------
    noise : float
        The deviation of the normal noise, relative to the longest vector of one row.
    delta : float
        At which epsilon is stated.
    rate : float
        The chance with which each row is in a sample.
    steps : int
        How many sums there are.
    relation : {"replace-one", "add-remove"}
        Which tables count as neighbours.

    Notes
    -----
    A replaced row that is in the sample moves the sum from one vector to another, and one that is not moves nothing:
    the worst pair is (1 - q) N(0) + q N(1) against (1 - q) N(0) + q N(-1), in one dimension. The proof is on the docs
    page "Guarantees, proofs and errata", section "Noisy gradients".
    """
    return _steps_epsilon(float(noise), float(delta), float(rate), int(steps), relation, 1e-4)


def _steps_epsilon(
    noise: float, delta: float, rate: float, steps: int, relation: Relation, interval: float
) -> float:
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import privacy_loss_distribution

    between = NeighboringRelation.REPLACE_ONE
    if relation == "add-remove":
        between = NeighboringRelation.ADD_OR_REMOVE_ONE
    with np.errstate(over="ignore", divide="ignore"):
        one = privacy_loss_distribution.from_gaussian_mechanism(
            noise,
            sampling_prob=rate,
            value_discretization_interval=interval,
            neighboring_relation=between,
        )
        return float(one.self_compose(steps).get_epsilon_for_delta(delta))


@lru_cache(maxsize=256)
def noise_for_steps(
    epsilon: float, delta: float, *, rate: float, steps: int, relation: Relation = "replace-one"
) -> float:
    """Return the least noise, relative to the longest vector, at which :func:`steps_epsilon` is within epsilon."""
    check_epsilon(epsilon)
    check_delta(delta)
    if delta == 0:
        raise InputError("normal noise needs a delta above 0, such as 1e-9, and delta = 0 was given")
    # Rounding of the privacy loss goes upwards, so a coarse grid is never too hopeful.
    interval = min(max(1e-5, epsilon / 1000), 0.05)

    kept = 1 - _ROUNDING_SHARE

    def fits(noise: float) -> bool:
        return _steps_epsilon(noise, kept * delta, rate, steps, relation, interval) <= kept * epsilon

    # From moderate noise upwards: the privacy loss of hardly any noise takes long to compute.
    low, high = 0.0, 1.0
    while not fits(high):
        low, high = high, 2 * high
        if high > _MOST_NOISE:
            raise InputError(
                f"{steps} steps do not fit into epsilon = {epsilon:g}, delta = {delta:g}, whatever the noise; take a "
                "larger delta or fewer steps"
            )
    while high - low > 1e-3 * high and high > 0.01:
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


class NoisyGradient:
    """The gradients of a network on a Poisson sample, each row's shortened to a norm, with noise on their sum.

    Opacus computes the gradients of single rows. They are cut off to a grid and added up exactly, and the noise is
    OpenDP's discrete Gaussian on that grid, or numpy's if a generator is given. A step on an empty sample adds noise as
    any other.

    Parameters
    ----------
    network : torch.nn.Module
        Of layers that Opacus knows.
    clip : float
        The norm that no row's gradient exceeds.
    noise : float
        The deviation of the noise, relative to ``clip``.
    n_rows : int
        How many rows there are, or are said to be: the sum is divided by ``rate * n_rows``, which is public.
    rate : float
        The chance of each row to be in a sample.
    rng : Generator, optional
        For repeatable runs.

    Attributes
    ----------
    network : GradSampleModule
        The network, to be called in its place.
    """

    def __init__(
        self,
        network: torch.nn.Module,
        *,
        clip: float,
        noise: float,
        n_rows: int,
        rate: float,
        rng: np.random.Generator | None,
    ):
        grad_sample = import_extra("opacus.grad_sample", "deep", "training with noisy gradients")
        self.network = grad_sample.GradSampleModule(network, batch_first=True, loss_reduction="sum")
        self.clip = clip
        self.noise = noise
        self.rate = rate
        self.expected = max(rate * n_rows, 1.0)
        self.rng = rng

    def sample(self, n_rows: int) -> IntArray:
        """Return the rows of the next step."""
        return sampled(n_rows, self.rate, self.rng)

    def step(self, losses: Callable[[Any, IntArray], torch.Tensor], rows: IntArray) -> None:
        """Set the gradient of every parameter to the noisy mean.

        Parameters
        ----------
        losses : callable (network, rows) -> tensor of shape (n_rows,)
            The loss of each row by itself: nothing in it may depend on the other rows of the sample.
        rows : array of int
            The sample.
        """
        import torch

        parameters = [p for p in self.network.parameters() if p.requires_grad]
        total = np.zeros(sum(p.numel() for p in parameters), dtype=np.int64)
        for first in range(0, len(rows), _CHUNK):
            with _quiet_hooks():
                losses(self.network, rows[first : first + _CHUNK]).sum().backward()
            total += clipped_sum([p.grad_sample for p in parameters], self.clip)
            self._forget(parameters)
        law = Sampled(_grid_deviation(self.noise), 1 / GRID, self.rate)
        about("a step's gradient")
        answer = answered(law, total, lambda own, rng: noisy(own, self.noise, rng), self.rng)
        mean = answer * (GRID * self.clip / self.expected)
        ends = np.cumsum([p.numel() for p in parameters])
        for p, own in zip(parameters, np.split(mean, ends[:-1]), strict=True):
            p.grad = torch.as_tensor(own.reshape(p.shape), dtype=p.dtype)

    @contextmanager
    def without_rows(self) -> Iterator[None]:
        """Leave out the gradients of single rows, for what is no record."""
        self.network.disable_hooks()
        try:
            with _quiet_hooks():
                yield
        finally:
            self.network.enable_hooks()

    def _forget(self, parameters: Sequence[Any]) -> None:
        for p in parameters:
            p.grad_sample = p.grad = None


def clipped_sum(gradients: Sequence[torch.Tensor], clip: float) -> IntArray:
    """Return the sum over rows of gradients of norm at most ``clip``, in whole steps of ``GRID * clip``.

    Parameters
    ----------
    gradients : sequence of tensors of shape (n_rows, ...)
        One for each parameter; the norm is over all of them together. A row whose gradient is not finite counts as 0,
        so that it tells nothing.
    clip : float
        The norm.
    """
    import torch

    flat = [g.detach().reshape(len(g), -1) for g in gradients]
    norms = torch.sqrt(sum((g.double().square().sum(dim=1) for g in flat), torch.zeros(())))
    lost = ~torch.isfinite(norms)
    if lost.any():
        flat = [g.masked_fill(lost[:, None], 0.0) for g in flat]
    most = clip * (1 - _SLACK)
    steps = torch.where(lost, 0.0, most / norms.clamp_min(most) / (GRID * clip))[:, None]
    # Towards zero, so that no norm grows. Every number is whole and small, so a double's sum of them is exact.
    return torch.cat([(g * steps).trunc_().sum(dim=0) for g in flat]).long().numpy()


def noisy(total: IntArray, noise: float, rng: np.random.Generator | None) -> IntArray:
    """Return steps of the grid with the noise of a Gaussian whose deviation is ``noise`` times the norm."""
    return gaussian_noise(total, _grid_deviation(noise), rng)


def _grid_deviation(noise: float) -> float:
    # A little more, for the rounding of this line.
    return math.hypot(noise / GRID, _ROUNDING) * (1 + 2.0**-50)


@contextmanager
def _quiet_hooks() -> Iterator[None]:
    """Rows are no parameters, and torch says so at the first layer."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Full backward hook is firing")
        yield


@contextmanager
def seeded_torch(rng: np.random.Generator | None) -> Iterator[None]:
    """Let torch draw from a seed of its own, from the generator or the operating system, and put its state back."""
    import torch

    seed = int.from_bytes(os.urandom(7), "big") if rng is None else int(rng.integers(2**53))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
