"""GroundHog: whether a record was among the data, from the statistics of a release."""

from __future__ import annotations

import math
import time
from dataclasses import KW_ONLY, InitVar, dataclass
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

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
    made_rows,
    membership_result,
    seeded_copy,
    without,
)
from oversafe.attack.membership.smote_releases import Neighbors, SmoteReleases, n_added, smote_neighbors
from oversafe.attack.membership.statistics import (
    Encoder,
    FeatureSet,
    Statistics,
    Surroundings,
    as_frame,
    check_numbers,
)

_PROBES = 3


@dataclass(eq=False, repr=False)
class GroundHog(Attack):
    """Tell from the statistics of a release whether a record was among the data (Stadler et al. 2022).

    The repeated game of [1]_ and [2]_: for each target the protector is run many times on the table with the
    record and without it. A classifier learns from one part of the releases to tell the two apart, by the
    statistics of their columns, and is tested on the others. The releases with the record are the same for
    all targets, so they are made once. Only the made rows of the target's class are looked at, and releases
    of different sizes are cut to one, so that the number of rows gives nothing away.

    Plain SMOTE on float columns (imbalanced-learn's, and :class:`oversafe.protect.SMOTE` on columns of full precision)
    takes a compiled path that draws releases with the same distribution and sums them up without building them.

    Parameters
    ----------
    n_targets : int or None, default=100
        How many records to attack, at most; None is every record of the class.
    n_train : int, default=400
        Releases per target to learn from, half of them with the record.
    n_test : int, default=200
        Releases per target to test on, half of them with the record.
    features : {"paper", "naive", "histogram", "correlation", "ensemble"}, default="paper"
        Statistics of the columns: minimum, quartiles, mean, median, maximum and covariances as in [2]_; or
        Stadler et al.'s sets.
    per_record : bool, default=False
        Whether the classifier also sees the distance from the target to the nearest released row and the
        number of rows around it. Stronger where a record stands apart.
    targets : {"random", "outliers"} or sequence of int, default="random"
        Which records: random ones, random ones outside the 95 % range of a column, or given positions.
    classifier : scikit-learn classifier, optional
        The judge; a random forest of 100 trees when not given.
    time_limit : float, optional
        Seconds after which no further target is started; the result is about those that were.
    random_state : int, optional
        Makes the attack repeatable.
    n_jobs : int, optional
        As in joblib.

    See Also
    --------
    ShadowClassifier : The same game on a model that was trained on the data.
    oversafe.measure.privacy_gain : The game's figures as Stadler et al. state them.

    References
    ----------
    .. [1] Stadler, Oprisanu and Troncoso, "Synthetic Data - Anonymisation Groundhog Day", USENIX Security 2022.
    .. [2] "SMOTE and Mirrors: Exposing Privacy Leakage from Synthetic Minority Oversampling", Section 5.2.

    Examples
    --------
    >>> import numpy as np
    >>> from oversafe.attack import GroundHog
    >>> from oversafe.protect import SMOTE
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(220, 3))
    >>> y = np.repeat([0, 1], [200, 20])
    >>> attack = GroundHog(n_targets=3, n_train=100, n_test=100, random_state=0)
    >>> result = attack.run(SMOTE(), X, y)
    >>> result.threat, len(result.auc)
    ('membership', 3)
    >>> result.details["auc"] > 0.6
    True
    """

    about = About(
        question="Can an outsider tell whether a person was in the data?",
        attacker="Somebody who can run the same method on similar data.",
        method=(
            "The release is made many times with the person and without. A classifier learns to tell "
            "which it was from the statistics of the released columns."
        ),
        risk="Twice the area under the ROC curve, less one: 0 is a coin, 1 is certainty.",
        threat="membership",
        needs=("real", "generator"),
        helped_by=(),
    )

    n_targets: int | None = 100
    n_train: int = 400
    n_test: int = 200
    _: KW_ONLY
    features: FeatureSet = "paper"
    per_record: bool = False
    targets: Targets = "random"
    classifier: Any = None
    time_limit: float | None = None
    random_state: int | None = None
    n_jobs: int | None = None

    def run(self, protector: Any, X: Any, y: Any, *, label: Any = None) -> MembershipResult:
        """Play the game against a protector.

        Parameters
        ----------
        protector : object
            With ``fit_resample(X, y)``, or ``fit(X, y)`` and ``sample()``. It is copied for every release, with
            another ``random_state`` where it takes one.
        X : DataFrame or array of shape (n_rows, n_features)
            The real table.
        y : Series or array of shape (n_rows,)
            The class of each row.
        label : optional
            The attacked class; the rarest when not given.

        Returns
        -------
        MembershipResult
            ``risk`` is 2 AUC - 1 for the mean AUC over all targets. ``details`` holds, besides, "auc" and
            "auc_per_target" with bootstrap intervals, the means over the ten and over the fifty most exposed
            targets ("auc_ten_most_exposed", "auc_fifty_most_exposed"; the published figures are the latter), that
            of the ten without the bias of choosing them by the same releases ("auc_ten_most_exposed_fresh"), and
            "privacy_gain_per_target". ``evidence`` lists the targets, the most exposed first.

        Raises
        ------
        InputError
            If the table or the settings do not allow the game.
        """
        for name, value in (("n_train", self.n_train), ("n_test", self.n_test)):
            if value < 4 or value % 2:
                raise InputError(f"{name} = {value} was given; give an even number of at least 4")
        deadline = math.inf if self.time_limit is None else time.monotonic() + self.time_limit
        labels, label, members = check_game(X, y, label)
        root = np.random.SeedSequence(self.random_state)
        choice_seed, inside_seed, outside_seed, judge_seed, bootstrap_seed = root.spawn(5)
        frame = as_frame(X)
        check_numbers(frame)
        k_neighbors = smote_neighbors(protector, X)
        encoder = None if k_neighbors is not None else Encoder(frame)
        # The compiled path sees the columns as they are, like imbalanced-learn.
        matrix = frame.to_numpy()[members] if encoder is None else encoder.matrix(frame.iloc[members])
        targets = choose_targets(
            self.targets, self.n_targets, matrix, members, np.random.default_rng(choice_seed)
        )
        places = np.searchsorted(members, targets)
        statistics = Statistics(self.features, matrix)
        around = Surroundings(matrix, matrix[places]) if self.per_record else None
        source: _Smote | _General
        if k_neighbors is not None:
            source = _Smote(protector, labels, label, matrix, places, k_neighbors, statistics, around)
        else:
            assert encoder is not None
            source = _General(
                protector, X, y, label, targets, encoder, statistics, around, self.n_jobs, inside_seed
            )
        n_each = (self.n_train + self.n_test) // 2
        inside, inside_local = source.inside(n_each, inside_seed)
        judge = self._judge()
        judge_seeds = judge_seed.spawn(len(targets))

        outside_seeds = outside_seed.spawn(len(targets))
        # At random, so that those whom the time allows are a random choice; the first is always attacked.
        order = np.random.default_rng(choice_seed.spawn(1)[0]).permutation(len(targets))

        def attack(at: int) -> tuple[Matrix, Matrix] | None:
            if time.monotonic() > deadline and at != order[0]:
                return None
            outside, outside_local = source.outside(at, n_each, outside_seeds[at])
            features = [np.hstack([inside, inside_local[:, at]]), np.hstack([outside, outside_local[:, 0]])]
            return _judge_target(judge, features, self.n_train // 2, judge_seeds[at])

        if isinstance(source, _Smote):
            # Threads: the compiled loops and the trees let go of Python's lock.
            found = Parallel(n_jobs=self.n_jobs, prefer="threads")(delayed(attack)(int(at)) for at in order)
        else:
            # Here the releases of each target go through joblib.
            found = [attack(int(at)) for at in order]
        results = {int(at): scores for at, scores in zip(order, found, strict=True) if scores is not None}
        done = np.sort(np.array(list(results)))
        n_given_up = len(targets) - len(done)
        targets = targets[done]
        scores = Scores(np.array([results[at][0] for at in done]), np.array([results[at][1] for at in done]))
        return membership_result(
            "GroundHog",
            scores,
            targets,
            X,
            all_records=len(targets) == len(members),
            rng=np.random.default_rng(bootstrap_seed),
            details={
                "label": label,
                "features": self.features,
                "per_record": self.per_record,
                "n_releases": n_each * (1 + len(targets)),
                "n_targets_without_time": n_given_up,
                "compiled": isinstance(source, _Smote),
            },
        )

    def _judge(self) -> Any:
        if self.classifier is not None:
            return self.classifier
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(n_estimators=100, n_jobs=1)


def _judge_target(
    judge: Any, features: list[Matrix], n_train: int, seed: np.random.SeedSequence
) -> tuple[Matrix, Matrix]:
    """Return the scores of the test releases with and without the record."""
    X = np.vstack([part[:n_train] for part in features])
    # Forests compute in single precision, in which large figures (dates, sums of money) would all look alike.
    center, deviation = X.mean(axis=0), X.std(axis=0)
    scale = np.where(deviation > 0, deviation, 1.0)
    X, *test = ((part - center) / scale for part in (X, features[0][n_train:], features[1][n_train:]))
    fitted = seeded_copy(judge, int(seed.generate_state(1)[0] >> 1)).fit(X, np.repeat([1, 0], n_train))
    if hasattr(fitted, "predict_proba"):
        place = list(fitted.classes_).index(1)
        return fitted.predict_proba(test[0])[:, place], fitted.predict_proba(test[1])[:, place]
    # A margin of 0 is a probability of 1/2.
    inside, outside = (1 / (1 + np.exp(-fitted.decision_function(part))) for part in test)
    return inside, outside


class _Smote:
    """Releases of plain SMOTE, compiled."""

    def __init__(
        self,
        protector: Any,
        labels: Any,
        label: Any,
        matrix: Matrix,
        places: IntArray,
        k_neighbors: int,
        statistics: Statistics,
        around: Surroundings | None,
    ) -> None:
        self.neighbors = Neighbors(matrix, k_neighbors)
        fewer = np.delete(labels, np.flatnonzero(labels == label)[0])
        # The larger release loses a random row; rows are independent, so it is as well not drawn.
        self.n_rows = min(n_added(protector, labels, label), n_added(protector, fewer, label))
        if self.n_rows < 2:
            raise InputError(
                f"SMOTE adds {self.n_rows} rows to class {label!r}; attack another class with label=, or ask "
                "for more rows in sampling_strategy"
            )
        self.places = places
        self.statistics = statistics
        self.around = around

    def inside(self, n_releases: int, seed: np.random.SeedSequence) -> tuple[Matrix, Matrix]:
        releases = SmoteReleases(*self.neighbors.segments(), self.n_rows, self.statistics)
        everyone = np.arange(len(self.places)) if self.around is not None else None
        features, local = releases.draw(n_releases, seed, self.around, everyone)
        if everyone is None:
            local = np.zeros((n_releases, len(self.places), 0))
        return features, local

    def outside(self, at: int, n_releases: int, seed: np.random.SeedSequence) -> tuple[Matrix, Matrix]:
        releases = SmoteReleases(
            *self.neighbors.segments(without=int(self.places[at])), self.n_rows, self.statistics
        )
        alone = np.array([at]) if self.around is not None else None
        features, local = releases.draw(n_releases, seed, self.around, alone)
        return features, local if alone is not None else np.zeros((n_releases, 1, 0))


@dataclass
class _General:
    """Releases of any protector, made one by one through joblib."""

    protector: Any
    X: Any
    y: Any
    label: Any
    targets: IntArray
    encoder: Encoder
    statistics: Statistics
    around: Surroundings | None
    n_jobs: int | None
    seed: InitVar[np.random.SeedSequence]

    def __post_init__(self, seed: np.random.SeedSequence) -> None:
        self.most_rows = self._common_size(seed.spawn(1)[0])

    def _common_size(self, seed: np.random.SeedSequence) -> int | None:
        """Return the size to cut releases to; None where the sizes are random, and so no certain sign."""
        sizes = []
        for position in (None, int(self.targets[0])):
            seeds = seed.generate_state(_PROBES)
            made = [len(self._rows(position, int(s >> 1))) for s in seeds]
            if len(set(made)) > 1:
                return None
            sizes.append(made[0])
        return min(sizes)

    def inside(self, n_releases: int, seed: np.random.SeedSequence) -> tuple[Matrix, Matrix]:
        return self._features(None, np.arange(len(self.targets)), n_releases, seed)

    def outside(self, at: int, n_releases: int, seed: np.random.SeedSequence) -> tuple[Matrix, Matrix]:
        return self._features(int(self.targets[at]), np.array([at]), n_releases, seed)

    def _features(
        self, position: int | None, targets: IntArray, n_releases: int, seed: np.random.SeedSequence
    ) -> tuple[Matrix, Matrix]:
        seeds = [int(s >> 1) for s in seed.generate_state(n_releases)]
        made = Parallel(n_jobs=self.n_jobs)(delayed(self._one)(position, targets, s) for s in seeds)
        return np.array([m[0] for m in made]), np.array([m[1] for m in made])

    def _one(self, position: int | None, targets: IntArray, seed: int) -> tuple[Matrix, Matrix]:
        rows = self._rows(position, seed)
        if self.most_rows is not None and len(rows) > self.most_rows:
            dropped = np.random.default_rng(seed).choice(len(rows), len(rows) - self.most_rows, replace=False)
            rows = np.delete(rows, dropped, axis=0)
        local = np.zeros((len(targets), 0)) if self.around is None else self.around.of(rows, targets)
        return self.statistics.of(rows), local

    def _rows(self, position: int | None, seed: int) -> Matrix:
        table, labels = made_rows(
            seeded_copy(self.protector, seed), without(self.X, position), without(self.y, position)
        )
        chosen = np.asarray(labels).ravel() == self.label
        if not isinstance(table, pd.DataFrame):
            names = self.X.columns if isinstance(self.X, pd.DataFrame) else None
            table = pd.DataFrame(np.asarray(table), columns=names) if names is not None else np.asarray(table)
        return self.encoder.matrix(as_frame(table[chosen]))
