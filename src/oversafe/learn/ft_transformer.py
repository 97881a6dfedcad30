"""The FT-Transformer under differential privacy: a transformer over the columns of a table, with noisy gradients."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oversafe._core.checks import check_count, check_positive
from oversafe._core.errors import InputError, import_extra
from oversafe.data.encode import column_codes, domain_codes
from oversafe.data.schema import Schema
from oversafe.learn.base import (
    CLASS_COUNTS,
    SCALE,
    PrivateLearner,
    plan_features,
    private_counts,
    split_epsilon,
)
from oversafe.learn.features import learn_features, resolve_scaling
from oversafe.privacy.call_context import TUNED, CallContext
from oversafe.privacy.gradients import NoisyGradient, noise_for_steps, seeded_torch
from oversafe.privacy.guarantee import Guarantee, check_delta, check_epsilon
from oversafe.privacy.noise import random_source

if TYPE_CHECKING:
    import torch

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_BASIS = (
    "noisy sums of clipped gradients over Poisson samples, by their privacy loss distribution for replaced records "
    "(the docs page 'Guarantees, proofs and errata', section 'Noisy gradients')"
)
_NOT_PRIVATE = "epsilon = None was given, so the model is trained without noise"
_EPOCHS, _EPOCHS_WITHOUT_NOISE = 20, 100
# Without noise a tenth of the rows tells when to stop: after so many epochs that did not help.
_HELD_OUT, _PATIENCE = 0.1, 16
# Scaled numbers beyond it are moved to it when the scale is the data's own.
_LIMIT = 10.0
_PREDICTED_AT_ONCE = 4096


@dataclass(eq=False, repr=False)
class PrivateFTTransformer(PrivateLearner):
    """A transformer over the columns of a table (FT-Transformer), trained with noisy gradients.

    Every column becomes a vector: a number times a vector of its column, a category's own vector, or the vector of
    what is missing. A transformer mixes them, and the scores are read from one more. It is trained by DP-SGD: each
    step takes every record with the same small chance, shortens the gradient of each to a norm and adds discrete
    Gaussian noise to their sum. Opacus computes the gradients. Needs the extra ``deep``.

    A network of some sixty thousand weights, all of which get noise, needs many records; with a few thousand, try
    :class:`PrivateLogisticRegression` first.

    Parameters
    ----------
    epsilon : float or None, default=1.0
        The budget of the whole fit, under replace-one neighbours. None trains without noise and promises nothing.
    delta : float, default=1e-9
        The budget's delta, above 0.
    class_weight : {"balanced", "threshold"}, dict or None, default="balanced"
        "balanced" weighs the loss of each record by the inverse of its class's share; "threshold" gives the class
        shares to the fit as an offset that is left out of the scores. Both pay a twentieth of epsilon for the class
        counts. A dict has public weights. None takes the classes as they are.
    epochs : int, optional
        How often each record is seen on average: 20. Without noise up to 100, with a tenth of the records held out to
        tell when to stop.
    batch_size : int, default=512
        How many records a step sees on average.
    learning_rate : float, default=0.002
        Of Adam.
    max_grad_norm : float, default=1.0
        The norm to which the gradient of each record is shortened.
    dimension : int, default=32
        Of the vectors; a multiple of ``heads``.
    depth : int, default=6
        Layers of the transformer.
    heads : int, default=8
        Of its attention.
    dropout : float, default=0.1
        Share of activations that are left out in training.
    random_state : int, optional
        Makes the fit repeatable, for experiments; the guarantee is then nominal.
    scaling : {"auto", "private", "none", "standard"}, default="auto"
        How columns of numbers are scaled when there is no schema. "private" (also "auto") pays a fifth of epsilon for
        their ranges, "none" takes them as they are, "standard" standardises by the data, which makes the guarantee
        nominal. With a schema, numbers are scaled from their bounds to [-1, 1]. Without noise they are standardised.
    schema : Schema, optional
        What the columns are, with public bounds and categories.
    classes : sequence, optional
        The labels that exist, when they are public; also taken from the schema's label.
    ledger : optional
        A budget that is charged before any noise is drawn.
    call_context : {"checked", "vouched"}, default="checked"
        What is done to the data around a fit: "checked" makes the guarantee nominal inside of anything that is not
        known; with "vouched" you state that nothing of that kind looks at them, and the guarantee says so.

    Attributes
    ----------
    guarantee_ : Guarantee
        What the model promises.
    classes_ : array
        The labels.
    class_counts_ : array
        Their noisy counts, where they were paid for.
    noise_multiplier_ : float
        The deviation of the noise, relative to ``max_grad_norm``.
    sample_rate_, n_steps_ : float, int
        The chance of a record to be in a step, and the number of steps.
    weights_ : dict of str to array
        The weights of the network.
    features_ : TokenMap
        How records become numbers and tokens.

    See Also
    --------
    PrivateLogisticRegression : For tables of a few thousand records.

    References
    ----------
    .. [1] Y. Gorishniy et al., "Revisiting Deep Learning Models for Tabular Data", NeurIPS 2021.
    .. [2] M. Abadi et al., "Deep Learning with Differential Privacy", CCS 2016.
    .. [3] L. Rosenblatt et al., "Differential Privacy Under Class Imbalance: Methods and Empirical Insights", 2025,
       section 4.3 and Appendix D.
    """

    # Records are not shortened; only their gradients are.
    data_norm = None

    epsilon: float | None = 1.0  # type: ignore[assignment]
    delta: float = 1e-9
    class_weight: Any = "balanced"
    epochs: int | None = None
    batch_size: int = 512
    learning_rate: float = 0.002
    max_grad_norm: float = 1.0
    random_state: int | None = None
    _: KW_ONLY
    dimension: int = 32
    depth: int = 6
    heads: int = 8
    dropout: float = 0.1
    scaling: str = "auto"
    schema: Schema | None = None
    classes: Sequence[Any] | None = None
    ledger: Any = None
    call_context: CallContext = "checked"

    # ------------------------------------------------------------------------------------------- the fit

    def _check_budget(self) -> None:
        if self.epsilon is None:
            if self.ledger is not None:
                raise InputError(
                    "epsilon = None was given with a ledger, which cannot charge it; give an epsilon"
                )
            return
        check_epsilon(self.epsilon)
        check_delta(self.delta)
        if self.delta == 0:
            raise InputError("delta = 0 was given; noisy gradients need a delta above 0, such as 1e-9")

    def _fit(self, table: Any, codes: IntArray, schema: Schema | None, caveats: list[str]) -> Guarantee:
        self._check_settings()
        resolve_scaling(self.scaling, schema, self.data_norm)
        # Before anything is paid for.
        import_extra("torch", "deep", type(self).__name__)
        import_extra("opacus", "deep", type(self).__name__)
        rng = random_source(self.random_state)
        n, n_classes = len(codes), len(self.classes_)
        if self.epsilon is None:
            self.ledger_entry_ = None
            self.features_ = TokenMap.standardised(table, schema)
            counts = np.maximum(np.bincount(codes, minlength=n_classes), 1).astype(np.float64)
            self._train(table, codes, counts, _EPOCHS_WITHOUT_NOISE, 0.0, rng)
            # What was read without paying for it matters only where something is promised.
            return Guarantee.none(_NOT_PRIVATE, *(caveat for caveat in caveats if caveat == TUNED))
        scaling, costs, found = plan_features(self, table, schema)
        spent, fit_epsilon = split_epsilon(
            float(self.epsilon),
            scale=costs and scaling == "private",
            counts=self.class_weight in ("balanced", "threshold"),
        )
        # The number of rows is public, so the noise is known before anything is looked at.
        rate, steps = self._plan(n, _EPOCHS)
        noise = noise_for_steps(fit_epsilon, float(self.delta), rate=rate, steps=steps)
        looks = [*spent.items(), ("the steps", fit_epsilon)]
        promised = self._promise(looks, float(self.delta), _BASIS, [*caveats, *found])
        if schema is not None:
            self.features_ = TokenMap.of_schema(schema)
        else:
            self.features_ = TokenMap.of_numbers(table, scaling, spent.get(SCALE, 0.0), rng)
        counts = np.full(n_classes, n / n_classes)
        if CLASS_COUNTS in spent:
            counts = self.class_counts_ = private_counts(codes, n_classes, spent[CLASS_COUNTS], rng)
        self._train(table, codes, counts, _EPOCHS, noise, rng)
        return promised

    def _plan(self, n: int, epochs: int) -> tuple[float, int]:
        rate = min(1.0, self.batch_size / n)
        return rate, math.ceil((self.epochs or epochs) / rate)

    def _check_settings(self) -> None:
        for name in ("batch_size", "dimension", "depth", "heads"):
            check_count(name, getattr(self, name), 1)
        if self.epochs is not None:
            check_count("epochs", self.epochs, 1)
        if self.dimension % self.heads:
            raise InputError(
                f"dimension = {self.dimension} was given with heads = {self.heads}; it is a multiple of that"
            )
        for name in ("learning_rate", "max_grad_norm"):
            check_positive(name, getattr(self, name))
        if not (isinstance(self.dropout, int | float) and 0 <= self.dropout < 1):
            raise InputError(f"dropout = {self.dropout!r} was given; it is a number from 0 to below 1")
        self._check_class_weight(self.class_weight)

    def _class_weights(self, counts: FloatArray) -> FloatArray:
        if isinstance(self.class_weight, Mapping):
            return np.array([float(self.class_weight.get(label, 1.0)) for label in self.classes_.tolist()])
        if self.class_weight == "balanced":
            return counts.sum() / (len(counts) * counts)
        return np.ones(len(counts))

    def _train(
        self,
        table: Any,
        codes: IntArray,
        counts: FloatArray,
        epochs: int,
        noise: float,
        rng: np.random.Generator | None,
    ) -> None:
        import torch

        numbers, places = (torch.as_tensor(part) for part in self.features_.apply(table))
        targets = torch.as_tensor(codes)
        weights = torch.as_tensor(self._class_weights(counts), dtype=torch.float32)
        logs = torch.as_tensor(np.log(counts / counts.sum()), dtype=torch.float32)
        offset = logs if self.class_weight == "threshold" else torch.zeros_like(logs)

        def losses(network: Any, rows: IntArray) -> torch.Tensor:
            scores = _both(network(numbers[rows], places[rows])) + offset
            # One loss per record and no mean of weights, in which a record would move the others' share.
            each = torch.nn.functional.cross_entropy(scores, targets[rows], reduction="none")
            return weights[targets[rows]] * each

        with seeded_torch(rng):
            if noise:
                network = self._train_with_noise(losses, len(codes), noise, rng)
            else:
                network = self._train_without(losses, len(codes), epochs, rng)
        self.weights_ = {name: value.detach().numpy().copy() for name, value in network.state_dict().items()}

    def _train_with_noise(self, losses: Any, n: int, noise: float, rng: np.random.Generator | None) -> Any:
        import torch

        network = self._network().train()
        self.sample_rate_, self.n_steps_ = self._plan(n, _EPOCHS)
        self.noise_multiplier_ = noise
        optimizer = torch.optim.Adam(network.parameters(), lr=self.learning_rate)
        gradient = NoisyGradient(
            network, clip=float(self.max_grad_norm), noise=noise, n_rows=n, rate=self.sample_rate_, rng=rng
        )
        for _ in range(self.n_steps_):
            gradient.step(losses, gradient.sample(n))
            optimizer.step()
        return network

    def _train_without(self, losses: Any, n: int, epochs: int, rng: np.random.Generator | None) -> Any:
        import torch

        network = self._network()
        optimizer = torch.optim.AdamW(network.parameters(), lr=self.learning_rate, weight_decay=1e-5)
        order = np.random.default_rng(rng)
        rows = order.permutation(n)
        held = rows[: int(_HELD_OUT * n)] if self.epochs is None else rows[:0]
        rows = rows[len(held) :]
        best, best_weights, waited = math.inf, None, 0
        self.n_steps_ = 0
        size = max(1, min(self.batch_size, math.ceil(len(rows) / 10)))
        for _ in range(self.epochs or epochs):
            network.train()
            for batch in np.array_split(order.permutation(rows), math.ceil(len(rows) / size)):
                optimizer.zero_grad()
                losses(network, batch).mean().backward()
                optimizer.step()
                self.n_steps_ += 1
            if not len(held):
                continue
            network.eval()
            with torch.no_grad():
                now = float(losses(network, held).mean())
            waited += 1
            if now < best:
                best, waited = now, 0
                best_weights = {name: value.clone() for name, value in network.state_dict().items()}
            elif waited >= _PATIENCE:
                break
        if best_weights is not None:
            network.load_state_dict(best_weights)
        return network

    def _network(self) -> torch.nn.Module:
        from oversafe.learn.ft_network import NetworkShape, build_network

        n_classes = len(self.classes_)
        shape = NetworkShape(
            n_numbers=self.features_.n_numbers,
            n_tokens=self.features_.n_tokens,
            n_outputs=1 if n_classes == 2 else n_classes,
            dimension=int(self.dimension),
            depth=int(self.depth),
            heads=int(self.heads),
            dropout=float(self.dropout),
        )
        return build_network(shape)

    def _scores(self, table: Any) -> FloatArray:
        import torch

        numbers, places = (torch.as_tensor(part) for part in self.features_.apply(table))
        with seeded_torch(np.random.default_rng(0)), torch.no_grad():
            network = self._network().eval()
            network.load_state_dict({k: torch.as_tensor(v) for k, v in self.weights_.items()})
            # In double precision a record's scores do not depend on those beside it.
            network, numbers = network.double(), numbers.double()
            parts = [
                network(
                    numbers[first : first + _PREDICTED_AT_ONCE], places[first : first + _PREDICTED_AT_ONCE]
                )
                for first in range(0, len(numbers), _PREDICTED_AT_ONCE)
            ]
        return torch.cat(parts).numpy()


@dataclass(frozen=True)
class TokenMap:
    """How a record becomes numbers and tokens; a function of one record, fixed before the fit.

    Parameters
    ----------
    centre, spread : array of shape (n_numbers,)
        Taken off the columns of numbers, and divided by.
    limit : float
        Scaled numbers beyond it are moved to it.
    schema : Schema, optional
        Columns of mixed kinds; without one, all are numbers.
    """

    centre: FloatArray
    spread: FloatArray
    limit: float
    schema: Schema | None = None

    @classmethod
    def of_schema(cls, schema: Schema) -> TokenMap:
        """Return the map that scales numbers from their bounds to [-1, 1]."""
        ends = np.array([domain_codes(column) for column in schema if not column.is_category]).reshape(-1, 2)
        half = (ends[:, 1] - ends[:, 0]) / 2
        return cls(ends.mean(axis=1), np.where(half > 0, half, 1.0), 1.0, schema)

    @classmethod
    def of_numbers(
        cls, X: FloatArray, scaling: Any, epsilon: float, rng: np.random.Generator | None
    ) -> TokenMap:
        """Return the map of a table of numbers, paid for where need be."""
        if scaling == "none":
            return cls(np.zeros(X.shape[1]), np.ones(X.shape[1]), 1e6)
        if scaling == "standard":
            return cls.standardised(X, None)
        known = learn_features(X, schema=None, scaling=scaling, data_norm=None, epsilon=epsilon, rng=rng)
        assert known.centre is not None and known.spread is not None
        return cls(known.centre, known.spread, known.limit)

    @classmethod
    def standardised(cls, table: Any, schema: Schema | None) -> TokenMap:
        """Return the map by the data's own means and deviations."""
        codes = table if schema is None else _number_codes(table, schema)
        codes = np.where(np.isfinite(codes), codes, np.nan)
        known = ~np.isnan(codes).all(axis=0)
        centre, spread = np.zeros(codes.shape[1]), np.ones(codes.shape[1])
        with np.errstate(over="ignore", invalid="ignore"):
            centre[known], spread[known] = (
                np.nanmean(codes[:, known], axis=0),
                np.nanstd(codes[:, known], axis=0),
            )
        usable = np.isfinite(centre) & np.isfinite(spread) & (spread > 0)
        return cls(np.where(usable, centre, 0.0), np.where(usable, spread, 1.0), _LIMIT, schema)

    @property
    def n_numbers(self) -> int:
        """How many columns of numbers there are."""
        return len(self.centre)

    @property
    def n_tokens(self) -> int:
        """How many tokens there are: the one to be read, two per number, one per category and one for missing."""
        return 1 + 2 * self.n_numbers + sum(width + 1 for width in self._widths())

    def apply(self, table: Any) -> tuple[NDArray[np.float32], IntArray]:
        """Return the scaled numbers, and where the tokens of each record are, the one to be read first."""
        codes = table if self.schema is None else _number_codes(table, self.schema)
        gaps = np.isnan(codes)
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = (codes - self.centre) / self.spread
        numbers = np.where(gaps, 0.0, np.clip(np.nan_to_num(scaled), -self.limit, self.limit))
        places = [np.zeros((len(codes), 1), dtype=np.int64), 1 + 2 * np.arange(self.n_numbers) + gaps]
        start = 1 + 2 * self.n_numbers
        for column in self.schema or ():
            if not column.is_category:
                continue
            width = len(column.categories or ())
            found = column_codes(column, table[column.name], strict=False)
            places.append((start + np.where(np.isnan(found), width, found).astype(np.int64))[:, None])
            start += width + 1
        return numbers.astype(np.float32), np.hstack(places)

    def _widths(self) -> list[int]:
        return [len(column.categories or ()) for column in self.schema or () if column.is_category]


def _number_codes(table: Any, schema: Schema) -> FloatArray:
    columns = [column_codes(c, table[c.name], strict=False) for c in schema if not c.is_category]
    return np.column_stack(columns) if columns else np.zeros((len(table), 0))


def _both(scores: torch.Tensor) -> torch.Tensor:
    """Return one score per class: of two classes the first one's is 0."""
    from torch.nn import functional

    return scores if scores.shape[1] > 1 else functional.pad(scores, (1, 0))
