"""Mechanisms that write down what they are asked and answer from a seed, without a look at the data."""

from __future__ import annotations

import functools
import hashlib
import inspect
import math
import os
import random
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from opendp.mod import Measurement

from oversafe.learn.base import PrivateLearner
from oversafe.learn.features import FeatureMap
from oversafe.privacy import accountant, estimates, gradients, mechanisms, noise
from oversafe.protect.deep.pategan import Teachers

# Sums in floating point may lie this much above their exact value.
_ROUNDING = 1e-9
_new_generator, _system_bytes = np.random.default_rng, os.urandom


@dataclass
class Question:
    """What a mechanism was asked.

    Parameters
    ----------
    what : str
        What was looked at, and by which mechanism.
    truth : array
        The answer without noise.
    terms : tuple
        What must be the same for neighbours: shape, sensitivity, budget, grid.
    moves : float
        How far a unit may move the truth, in the norm below.
    norm : {1, 2, inf, 0}
        0 counts the rows that differ.
    step : float
        The grid on which the truth must lie; 0 for none.
    keys : tuple of str, optional
        Of values that were found in the data.
    """

    what: str
    truth: np.ndarray
    terms: tuple[Any, ...]
    moves: float
    norm: float
    step: float = 0.0
    keys: tuple[str, ...] | None = None
    largest: float = math.inf
    one_way: bool = False

    def wrong_beside(self, other: Question) -> str | None:
        """Return what is wrong with the answers of two neighbours, None if nothing is."""
        if (self.what, self.terms) != (other.what, other.terms):
            return f"asked {self.what} {self.terms} of one and {other.what} {other.terms} of the other"
        if not all(q.step == 0 or _on_grid(q.truth, q.step) for q in (self, other)):
            return f"{self.what}: not on the grid of {self.step:g}"
        mine, theirs = self.truth, other.truth
        if self.keys is not None:
            mine, theirs = _aligned(self, other)
        if mine.shape != theirs.shape:
            return f"{self.what}: of shape {mine.shape} and {theirs.shape}"
        moved = mine.astype(np.float64) - theirs.astype(np.float64)
        moved[(mine == theirs) | (np.isnan(mine.astype(float)) & np.isnan(theirs.astype(float)))] = 0.0
        far = _length(moved, self.norm)
        if not far <= self.moves * (1 + _ROUNDING):
            return f"{self.what}: moved by {far:g} in norm {self.norm:g}, and {self.moves:g} was paid"
        if np.abs(moved).max(initial=0) > self.largest or (self.keys and (moved != 0).sum() > self.terms[0]):
            return f"{self.what}: moves more values, or one of them farther, than was paid"
        if self.one_way and (moved > 0).any() and (moved < 0).any():
            return f"{self.what}: moves both ways, and one way was paid"
        return None


def _length(moved: np.ndarray, norm: float) -> float:
    if norm == 0:
        return float((moved != 0).reshape(len(moved), -1).any(axis=1).sum())
    return float(np.linalg.norm(moved.ravel(), ord=norm)) if moved.size else 0.0


def _on_grid(truth: np.ndarray, step: float) -> bool:
    steps = truth.astype(np.float64) / step
    return bool((np.isfinite(steps) & (steps == np.rint(steps))).all())


def _aligned(mine: Question, theirs: Question) -> tuple[np.ndarray, np.ndarray]:
    """Return the counts of the values that either has; what is not there counts 0."""
    sides = [dict(zip(q.keys or (), q.truth.tolist(), strict=True)) for q in (mine, theirs)]
    keys = sorted(set().union(*sides))
    first, second = (np.array([side.get(key, 0) for key in keys], dtype=np.int64) for side in sides)
    return first, second


@dataclass
class Transcript:
    """The questions of one run, and what answers them.

    Parameters
    ----------
    seed : int
        Of all answers and of everything else that is random.
    relation : str
        Which tables count as neighbours.
    shared : collection of (str, str)
        Columns with the values of rows that both neighbours hold; no other is named as found in the data.
    """

    seed: int
    relation: str = "replace-one"
    shared: Collection[tuple[str, str]] = ()
    questions: list[Question] = field(default_factory=list)
    # Whether what leaves is a function of the data by design, as the minimum of a perturbed objective is.
    continuous: bool = False
    what: str = ""
    keys: tuple[str, ...] = ()
    drawn: int = 0

    def answers(self) -> np.random.Generator:
        """Return what the next answer is drawn from."""
        return _new_generator([self.seed, 1, len(self.questions)])

    def ask(
        self, what: str, truth: Any, terms: tuple[Any, ...], moves: float, norm: float, **more: Any
    ) -> None:
        """Write a question down."""
        self.questions.append(Question(what, np.array(truth), terms, moves, norm, **more))

    def generator(self, seed: Any = None) -> np.random.Generator:
        """Return what numpy would; without a seed one that is the same for both neighbours."""
        if seed is not None:
            return _new_generator(seed)
        # What other packages draw, such as while they are imported, moves none of our draws.
        self.drawn += (ours := _asked_by_us())
        return _new_generator([self.seed, 2, self.drawn if ours else 0])

    def random_bytes(self, size: int) -> bytes:
        """Return bytes in place of the operating system's; of more of them the first are the same."""
        if not _asked_by_us():
            return _system_bytes(size)
        self.drawn += 1
        return _new_generator([self.seed, 3, self.drawn]).bytes(size + 8)[:size]

    # ------------------------------------------------------------------------------------- the mechanisms

    def mechanism(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return what takes the place of a mechanism: noisy counts or sums, a choice, or values that were found."""
        name, signature = function.__name__, inspect.signature(function)

        @functools.wraps(function)
        def answer(*arguments: Any, **settings: Any) -> Any:
            given = signature.bind(*arguments, **settings)
            given.apply_defaults()
            truth, *terms = given.arguments.values()
            truth, facts = np.asarray(truth), dict(zip(list(given.arguments)[1:], terms, strict=True))
            assert facts.pop("random_state", None) is None, "a seeded run promises nothing"
            rng, what, moves = (
                self.answers(),
                f"{self.what or 'unnamed'} ({name})",
                float(facts["sensitivity"]),
            )
            if name == "choose":
                fine = 1 if np.issubdtype(truth.dtype, np.integer) else 1 + 2.0**-20
                one_way = bool(facts["monotonic"])
                terms = (truth.shape, *facts.values())
                self.ask(what, truth, terms, moves * fine, math.inf, one_way=one_way)
                return int(rng.integers(len(truth)))
            if name == "frequent_counts":
                keys = self.keys
                assert len(keys) == len(truth), "values were counted that the replay does not know"
                terms = (facts["changed"], *facts.values())
                self.ask(what, truth, terms, moves, 2, step=1, keys=keys, largest=float(facts["largest"]))
                return np.array([self.named(key) for key in keys], dtype=np.int64)
            step = float(facts.get("step") or facts.get("grid") or 1)
            norm = 1 if facts.get("rho") is None and "gaussian" not in name else 2
            self.ask(what, truth, (truth.shape, *facts.values()), moves, norm, step=step)
            # Empty cells, a few below zero as noise makes them, and some rows.
            drawn = np.where(rng.random(truth.shape) < 0.4, rng.integers(-2, 1, truth.shape), 0)
            drawn = np.where(rng.random(truth.shape) < 0.5, rng.integers(1, 12, truth.shape), drawn)
            return drawn.astype(np.int64) if step == 1 else drawn * step

        return answer

    def named(self, key: str) -> int:
        """Return the answer for a value that was found: by its hash, and 0 if only one neighbour may have it."""
        drawn = hashlib.sha256(f"{self.seed} {key}".encode(errors="surrogatepass")).digest()[0]
        column = "y" if "labels" in self.what else self.what.split("'")[1]
        return drawn if drawn > 64 and (column, key) in self.shared else 0

    def values_found(self, find: Callable[..., Any]) -> Callable[..., Any]:
        """Return what takes the place of the search for frequent values, of which a mechanism sees counts alone."""

        def found(values: Any, **settings: Any) -> Any:
            keys = pd.factorize(estimates.category_keys(values))[1]
            self.keys = tuple(str(key) for key in keys)
            return find(values, **settings)

        return found

    def continuous_noise(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return what takes the place of noise that is added to real numbers which this does not see."""

        def drawn(size: int, scale: float, rng: Any) -> np.ndarray:
            assert rng is None, "a seeded run promises nothing"
            self.continuous = True
            self.ask(function.__name__, np.zeros(0), (size, scale), 0, 1)
            return self.answers().normal(scale=scale, size=size)

        return drawn

    def noisy_gradient(self, total: np.ndarray, noise: float, rng: Any) -> np.ndarray:
        """Return a step's gradient in steps of its grid, which a record moves by at most the norm it is cut to."""
        assert rng is None, "a seeded run promises nothing"
        moves = (2 if self.relation == "replace-one" else 1) / gradients.GRID
        self.ask("a step's gradient", total, (total.shape, noise), moves, 2, step=1)
        return np.rint(self.answers().normal(scale=noise / gradients.GRID, size=len(total))).astype(np.int64)

    # ---------------------------------------------------------------- what only one record's part may change in

    def vectors(self, apply: Callable[..., Any]) -> Callable[..., Any]:
        """Return what also writes down the vectors of records: one differs, and none is longer than the norm."""

        def applied(own: FeatureMap, table: Any) -> np.ndarray:
            made = apply(own, table)
            assert (np.linalg.norm(made, axis=1) <= own.norm * (1 + _ROUNDING)).all(), "a vector is too long"
            self.ask("vectors", made, (made.shape, own.norm), 1, 0)
            return made

        return applied

    def labels(self, read: Callable[..., Any]) -> Callable[..., Any]:
        """Return what also writes down the classes of records."""

        def reading(own: PrivateLearner, y: Any) -> Any:
            codes, caveats = read(own, y)
            self.ask("classes of the rows", codes, (codes.shape, tuple(own.classes_.tolist())), 1, 0)
            return codes, caveats

        return reading

    def votes(self, vote: Callable[..., Any]) -> Callable[..., Any]:
        """Return what also writes down how each teacher votes and what it has learned, of which a record changes one's.

        Weights are compared to the last digit: one that is not the same turns a vote sooner or later.
        """

        def voting(own: Teachers, rows: Any) -> Any:
            opinions = own.opinions(rows)
            self.ask("votes of each teacher", opinions, opinions.shape, 1, 0)
            self.ask("weights of each teacher", own.weights, own.weights.shape, 1, 0)
            return vote(own, rows)

        return voting

    def naming(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return what also remembers what a budget is spent on."""

        @functools.wraps(method)
        def named(*arguments: Any, **settings: Any) -> Any:
            self.what = settings["what"]
            return method(*arguments, **settings)

        return named


def _asked_by_us() -> bool:
    """Return whether the caller of the caller is the package's own code."""
    return sys._getframe(2).f_globals.get("__name__", "").startswith("oversafe.")


def _unknown(*_: Any) -> None:
    raise AssertionError("noise was drawn by a mechanism that the replay does not know")


@contextmanager
def replayed(transcript: Transcript) -> Iterator[Transcript]:
    """Let every mechanism, and all else that is random, answer from the transcript's seed."""
    t = transcript
    swapped: dict[Any, Any] = {
        function: t.mechanism(function)
        for name, function in inspect.getmembers(mechanisms, inspect.isfunction)
        if not name.startswith("_") and "sensitivity" in inspect.signature(function).parameters
    }
    swapped[estimates.private_categories] = t.values_found(estimates.private_categories)
    for name in ("gaussian", "spherical_laplace"):
        if hasattr(noise, name):
            swapped[getattr(noise, name)] = t.continuous_noise(getattr(noise, name))
    swapped[gradients.noisy] = t.noisy_gradient
    methods = [
        (np.random, "default_rng", t.generator),
        (os, "urandom", t.random_bytes),
        (FeatureMap, "apply", t.vectors(FeatureMap.apply)),
        (PrivateLearner, "_read_labels", t.labels(PrivateLearner._read_labels)),
        (Teachers, "votes", t.votes(Teachers.votes)),
        (Measurement, "__call__", _unknown),
        (Measurement, "invoke", _unknown),
        *(
            (accountant.Accountant, name, t.naming(getattr(accountant.Accountant, name)))
            for name in ("counts", "choose", "frequent")
        ),
    ]
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in methods]
    states = np.random.get_state(), random.getstate()  # noqa: NPY002
    _swap(swapped)
    for owner, name, mine in methods:
        setattr(owner, name, mine)
    np.random.seed(t.seed)  # noqa: NPY002
    random.seed(t.seed)
    try:
        yield t
    finally:
        for owner, name, own in before:
            setattr(owner, name, own)
        # Modules that were imported meanwhile hold the stand-ins too.
        _swap({mine: own for own, mine in swapped.items()})
        np.random.set_state(states[0])  # noqa: NPY002
        random.setstate(states[1])


def _swap(others: dict[Any, Any]) -> None:
    """Put functions in the place of others under every name that they have in the package."""
    places = {id(own): other for own, other in others.items()}
    for module in [m for name, m in sys.modules.items() if name.split(".")[0] == "oversafe"]:
        for name, value in list(vars(module).items()):
            if id(value) in places:
                setattr(module, name, places[id(value)])
