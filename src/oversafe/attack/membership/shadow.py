"""ShadowClassifier: whether a record was among the data, from a model that was trained on it."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from oversafe._core.checks import check_choice
from oversafe._core.errors import InputError
from oversafe.attack.base import About, Attack
from oversafe.attack.membership.game import (
    IntArray,
    Matrix,
    MembershipResult,
    Scores,
    Targets,
    check_game,
    choose_targets,
    membership_result,
    released,
    seeded_copy,
    without,
)
from oversafe.attack.membership.statistics import Encoder, as_frame, check_numbers

# Passes over the training data. Without a bound a perceptron goes on for hundreds of them on augmented tables.
_EPOCHS = 25
# Larger numbers are computed in double precision, and scaled.
_LARGEST_SINGLE = 1e15
# Keeps the logit of a confidence of exactly 0 or 1 finite.
_CERTAIN = 1e-6


@dataclass(eq=False, repr=False)
class ShadowClassifier(Attack):
    """Tell from a classifier whether a record was among its training data.

    The repeated game of [1]_: half of the classifiers are trained on the table with the record, half without it,
    and the outsider looks at the confidence that they give to the record's class. The classifiers with the
    record are the same for all targets, so they are trained once.

    Parameters
    ----------
    classifier : scikit-learn classifier, optional
        What is trained. By default a perceptron with two hidden layers of 100 and at most 25 passes over the data,
        behind a scaler where the table is not made of numbers alone.
    n_targets : int or None, default=20
        How many records to attack, at most; None is every record of the class.
    n_models : int, default=200
        Classifiers per target, half of them with the record.
    score : {"confidence", "likelihood-ratio"}, default="confidence"
        What tells the two apart: the confidence itself, or the ratio of the likelihoods of its logit under the
        Gaussians fitted to the other classifiers with and without the record (LiRA [2]_).
    targets : {"random", "outliers"} or sequence of int, default="random"
        Which records: random ones, random ones outside the 95 % range of a column, or given positions.
    time_limit : float, optional
        Seconds after which no further target is started; the result is about those that were.
    random_state : int, optional
        Makes the attack repeatable.
    n_jobs : int, optional
        As in joblib.

    See Also
    --------
    GroundHog : The same game on a released table.

    References
    ----------
    .. [1] "SMOTE and Mirrors: Exposing Privacy Leakage from Synthetic Minority Oversampling", Section 5.1.
    .. [2] Carlini et al., "Membership Inference Attacks From First Principles", IEEE S&P 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from oversafe.attack import ShadowClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 2))
    >>> y = np.repeat([0, 1], [80, 20])
    >>> attack = ShadowClassifier(KNeighborsClassifier(1), n_targets=None, n_models=10, random_state=0)
    >>> attack.run(X, y).details["auc"] > 0.8
    True
    """

    about = About(
        question="Does a model betray whether a person was among its training data?",
        attacker="Somebody who can question the model, and train similar ones.",
        method="Models are trained with the person and without, and the answers about the person compared.",
        risk="Twice the area under the ROC curve, less one: 0 is a coin, 1 is certainty.",
        threat="membership",
        needs=("real", "generator"),
        helped_by=(),
    )

    classifier: Any = None
    n_targets: int | None = 20
    n_models: int = 200
    _: KW_ONLY
    score: Literal["confidence", "likelihood-ratio"] = "confidence"
    targets: Targets = "random"
    time_limit: float | None = None
    random_state: int | None = None
    n_jobs: int | None = None

    def run(self, X: Any, y: Any, protector: Any = None, *, label: Any = None) -> MembershipResult:
        """Play the game on classifiers trained on the table, or on what a protector makes of it.

        Parameters
        ----------
        X : DataFrame or array of shape (n_rows, n_features)
            The real table.
        y : Series or array of shape (n_rows,)
            The class of each row.
        protector : object, optional
            With ``fit_resample(X, y)``, or ``fit(X, y)`` and ``sample()``; a classifier is trained on its whole
            result, the rows that it passes through included. It is copied for every classifier, with another
            ``random_state`` where it takes one.
        label : optional
            The attacked class; the rarest when not given.

        Returns
        -------
        MembershipResult
            ``risk`` is 2 AUC - 1 for the mean AUC over all targets. ``details`` holds "auc_per_target" with
            intervals and the other figures of :class:`GroundHog`'s result. The privacy gain takes the threshold
            half way between the mean scores with and without the record, measured on the other half of
            the classifiers.

        Raises
        ------
        InputError
            If the table or the settings do not allow the game.
        """
        if self.n_models < 8 or self.n_models % 2:
            raise InputError(f"n_models = {self.n_models} was given; give an even number of at least 8")
        check_choice("score", self.score, ("confidence", "likelihood-ratio"))
        deadline = math.inf if self.time_limit is None else time.monotonic() + self.time_limit
        _, label, members = check_game(X, y, label)
        root = np.random.SeedSequence(self.random_state)
        choice_seed, inside_seed, outside_seed, bootstrap_seed = root.spawn(4)
        frame = as_frame(X)
        check_numbers(frame)
        # A classifier of the user's takes the table as it is, ours takes numbers.
        encoder = Encoder(frame) if self.classifier is None or self.targets == "outliers" else None
        matrix = np.empty((len(members), 0)) if encoder is None else encoder.matrix(frame.iloc[members])
        rng = np.random.default_rng(choice_seed)
        targets = choose_targets(self.targets, self.n_targets, matrix, members, rng)
        classifier = self._classifier(frame)
        trainer = _Trainer(classifier, protector, X, y, label, encoder if self.classifier is None else None)
        n_each = self.n_models // 2
        workers = Parallel(n_jobs=self.n_jobs)
        seeds = [int(seed >> 1) for seed in inside_seed.generate_state(n_each)]
        inside = np.array(workers(delayed(trainer)(None, targets, seed) for seed in seeds)).T
        outside_seeds = outside_seed.spawn(len(targets))
        outside = np.full((len(targets), n_each), np.nan)
        # At random, so that those whom the time allows are a random choice; the first is always attacked.
        for turn, at in enumerate(rng.permutation(len(targets))):
            if turn and time.monotonic() > deadline:
                break
            target = int(targets[at])
            seeds = [int(seed >> 1) for seed in outside_seeds[at].generate_state(n_each)]
            outside[at] = np.ravel(workers(delayed(trainer)(target, targets[[at]], seed) for seed in seeds))
        done = ~np.isnan(outside).any(axis=1)
        n_given_up = int((~done).sum())
        inside, outside, targets = inside[done], outside[done], targets[done]
        if self.score == "likelihood-ratio":
            inside, outside = likelihood_ratios(inside, outside)
        scores = Scores(inside, outside)
        return membership_result(
            "ShadowClassifier",
            scores,
            targets,
            X,
            all_records=len(targets) == len(members),
            rng=np.random.default_rng(bootstrap_seed),
            details={
                "label": label,
                "score": self.score,
                "n_models": n_each * (1 + len(targets)),
                "n_targets_without_time": n_given_up,
                "classifier": type(classifier).__name__,
                "protector": None if protector is None else type(protector).__name__,
            },
            claims=_claims(scores),
        )

    def _classifier(self, frame: pd.DataFrame) -> Any:
        if self.classifier is not None:
            if not hasattr(self.classifier, "fit"):
                raise InputError(
                    f"{type(self.classifier).__name__} has no fit; give a scikit-learn classifier, not fitted"
                )
            return self.classifier
        from sklearn.neural_network import MLPClassifier
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        perceptron = MLPClassifier(hidden_layer_sizes=(100, 100), max_iter=_EPOCHS)
        if all(pd.api.types.is_float_dtype(dtype) for dtype in frame.dtypes) and (
            np.nanmax(np.abs(frame.to_numpy(dtype=np.float64)), initial=0.0) < _LARGEST_SINGLE
        ):
            return perceptron
        return make_pipeline(StandardScaler(), perceptron)


@dataclass(frozen=True)
class _Trainer:
    """Trains one classifier, with a record or without, and returns its confidence in the targets' class."""

    classifier: Any
    protector: Any
    X: Any
    y: Any
    label: Any
    encoder: Encoder | None

    def __call__(self, position: int | None, targets: IntArray, seed: int) -> Matrix:
        X, y = without(self.X, position), without(self.y, position)
        if self.protector is not None:
            X, y = released(seeded_copy(self.protector, seed), X, y)
        asked = self.X.iloc[targets] if isinstance(self.X, pd.DataFrame) else np.asarray(self.X)[targets]
        if self.encoder is not None:
            # Half the precision takes half the time, and a perceptron has no use for more.
            X = self.encoder.matrix(as_frame(X))
            asked = self.encoder.matrix(as_frame(asked))
            if np.abs(X).max(initial=0.0) < _LARGEST_SINGLE:
                X, asked = X.astype(np.float32), asked.astype(np.float32)
        with warnings.catch_warnings():
            # The length of the training is bounded on purpose.
            warnings.filterwarnings("ignore", message=".*Maximum iterations.*")
            fitted = seeded_copy(self.classifier, seed).fit(X, np.asarray(y).ravel())
        place = np.flatnonzero(fitted.classes_ == self.label)
        if not len(place):
            return np.zeros(len(targets))
        if hasattr(fitted, "predict_proba"):
            return fitted.predict_proba(asked)[:, place[0]]
        margins = fitted.decision_function(asked)
        if margins.ndim == 1:
            margins = np.column_stack([-margins, margins])
        return 1 / (1 + np.exp(-margins[:, place[0]]))


def likelihood_ratios(inside: Matrix, outside: Matrix) -> tuple[Matrix, Matrix]:
    """Return the log likelihood ratios of confidences, each under Gaussians fitted without it.

    Parameters
    ----------
    inside, outside : array of shape (n_targets, n_models)
        Confidences of the classifiers with and without the record.
    """
    a, b = (np.log(p / (1 - p)) for p in (np.clip(c, _CERTAIN, 1 - _CERTAIN) for c in (inside, outside)))
    return (
        _log_density(a, *_others(a)) - _log_density(a, *_all(b)),
        _log_density(b, *_all(a)) - _log_density(b, *_others(b)),
    )


def _all(values: Matrix) -> tuple[Matrix, Matrix]:
    return values.mean(axis=1, keepdims=True), _spread(values.var(axis=1, keepdims=True))


def _others(values: Matrix) -> tuple[Matrix, Matrix]:
    """Return mean and variance of the other values, for each value of a row."""
    n = values.shape[1]
    total, squares = values.sum(axis=1, keepdims=True), (values**2).sum(axis=1, keepdims=True)
    mean = (total - values) / (n - 1)
    return mean, _spread((squares - values**2) / (n - 1) - mean**2)


def _spread(variance: Matrix) -> Matrix:
    # A deterministic classifier gives one value with the record and one without.
    return np.maximum(variance, 1e-6)


def _log_density(values: Matrix, mean: Matrix, variance: Matrix) -> Matrix:
    return -0.5 * ((values - mean) ** 2 / variance + np.log(variance))


def _claims(scores: Scores) -> tuple[Matrix, Matrix]:
    """Return the shares of claims above a threshold that the other half of the classifiers gives."""
    right, wrong = [], []
    for parity in (0, 1):
        learn, test = slice(parity, None, 2), slice(1 - parity, None, 2)
        middle = (scores.inside[:, learn].mean(axis=1) + scores.outside[:, learn].mean(axis=1))[:, None] / 2
        halves = Scores(scores.inside[:, test], scores.outside[:, test], middle).claims
        right.append(halves[0])
        wrong.append(halves[1])
    return np.mean(right, axis=0), np.mean(wrong, axis=0)
