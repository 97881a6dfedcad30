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

from oversafe.errors import InputError, import_extra
from oversafe.privacy.guarantee import Relation, check_delta, check_epsilon
from oversafe.privacy.noise import gaussian, poisson_sample

if TYPE_CHECKING:
    import torch

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Rows whose gradients are held at once.
_CHUNK = 256
# Gradients are shortened to a thousandth less than what the noise is for, so that sums in single precision stay below.
_SLACK = 1e-3
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

    def fits(noise: float) -> bool:
        return _steps_epsilon(noise, delta, rate, steps, relation, interval) <= epsilon

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
    """The gradients of a network on a Poisson sample, each row's shortened to a norm, with normal noise on their sum.

    Opacus computes the gradients of single rows. The noise comes from the operating system's random source unless a
    generator is given. A step on an empty sample adds noise as any other.

    Parameters
    ----------
    network : torch.nn.Module
        Of layers that Opacus knows.
    clip : float
        The norm that no row's gradient exceeds.
    noise : float
        The deviation of the noise, relative to ``clip``; 0 for none.
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
        return poisson_sample(n_rows, self.rate, self.rng)

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
        totals = [np.zeros(p.numel()) for p in parameters]
        for first in range(0, len(rows), _CHUNK):
            with _quiet_hooks():
                losses(self.network, rows[first : first + _CHUNK]).sum().backward()
            gradients = [p.grad_sample for p in parameters]
            for total, part in zip(totals, clipped_sums(gradients, self.clip), strict=True):
                total += part
            self._forget(parameters)
        for p, total in zip(parameters, totals, strict=True):
            mean = noisy(total, self.noise * self.clip, self.rng) / self.expected
            p.grad = torch.as_tensor(mean.reshape(p.shape), dtype=p.dtype)

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


def clipped_sums(gradients: Sequence[torch.Tensor], clip: float) -> list[FloatArray]:
    """Return the sum over rows of gradients whose norm, over all parameters together, is at most ``clip``.

    Parameters
    ----------
    gradients : sequence of tensors of shape (n_rows, ...)
        One for each parameter. A row whose gradient is not finite counts as 0, so that it tells nothing.
    clip : float
        The norm.
    """
    import torch

    flat = [g.detach().reshape(len(g), -1) for g in gradients]
    norms = torch.sqrt(sum((g.double().square().sum(dim=1) for g in flat), torch.zeros(())))
    lost = ~torch.isfinite(norms)
    if lost.any():
        flat = [torch.where(lost[:, None], torch.zeros((), dtype=g.dtype), g) for g in flat]
    factor = torch.where(lost, 0.0, clip * (1 - _SLACK) / norms.clamp_min(clip * (1 - _SLACK)))
    return [(factor.double() @ g.double()).numpy() for g in flat]


def noisy(total: FloatArray, deviation: float, rng: np.random.Generator | None) -> FloatArray:
    """Return numbers with normal noise, without the last digits, which tell of the arithmetic and nothing else."""
    if deviation == 0:
        return total
    step = 2.0 ** (math.floor(math.log2(deviation)) - 20)
    return np.round((total + gaussian(len(total), deviation, rng)) / step) * step


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
