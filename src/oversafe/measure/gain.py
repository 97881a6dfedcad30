"""Privacy gain: how much less an outsider learns about a record from a release than from the real table."""

from __future__ import annotations

from typing import Any

import pandas as pd

from oversafe.attack.membership.game import Targets
from oversafe.attack.membership.ground_hog import GroundHog
from oversafe.attack.membership.statistics import FeatureSet


def privacy_gain(
    protector: Any,
    X: Any,
    y: Any,
    *,
    targets: Targets = "outliers",
    n_targets: int | None = 5,
    n_train: int = 400,
    n_test: int = 200,
    features: FeatureSet = "correlation",
    label: Any = None,
    random_state: int | None = None,
    n_jobs: int | None = None,
) -> pd.DataFrame:
    """Return the privacy gain of records: 1 - the advantage of an outsider who sees the release (Stadler et al. 2022).

    With the real table the advantage is 1: whoever has it sees whether a record is in it. With a release it is
    the share of right minus the share of wrong claims "the record was among the data" in the membership game. A
    gain of 1 is full protection; figures somewhat above 1 are chance.

    Parameters
    ----------
    protector : object
        With ``fit_resample(X, y)``, or ``fit(X, y)`` and ``sample()``.
    X, y
        The real table and its labels.
    targets : {"outliers", "random"} or sequence of int, default="outliers"
        Records outside the 95 % range of a column, which are the most exposed; random ones; or given positions.
    n_targets : int or None, default=5
        How many, at most; None is all of them.
    n_train, n_test : int
        Releases per target to learn from and to test on, half of them with the record.
    features : str, default="correlation"
        What the outsider looks at; see :class:`oversafe.attack.GroundHog`.
    label : optional
        The class of the records; the rarest when not given.
    random_state : int, optional
        Makes the result repeatable.
    n_jobs : int, optional
        As in joblib.

    Returns
    -------
    DataFrame
        One row per target, the least protected first: its position, the gain with its 95 % interval, the AUC,
        and the record.

    Examples
    --------
    >>> import numpy as np
    >>> from oversafe.measure import privacy_gain
    >>> from oversafe.protect import SMOTE
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(220, 3)), np.repeat([0, 1], [200, 20])
    >>> gains = privacy_gain(SMOTE(), X, y, n_targets=2, n_train=60, n_test=60, random_state=0)
    >>> gains.columns[:2].tolist()
    ['row', 'privacy_gain']
    """
    attack = GroundHog(
        n_targets,
        n_train,
        n_test,
        features=features,
        targets=targets,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    result = attack.run(protector, X, y, label=label)
    evidence = result.evidence
    # By place, because a table may have columns of these names itself.
    places = {name: at for at, name in reversed(list(enumerate(evidence.columns)))}
    figures = [places[name] for name in ("row", "privacy_gain", "gain_low", "gain_high", "auc")]
    record = range(places["gain_high"] + 1, evidence.shape[1])
    order = evidence.iloc[:, places["privacy_gain"]].to_numpy().argsort(kind="stable")
    return evidence.iloc[order, [*figures, *record]].reset_index(drop=True)
