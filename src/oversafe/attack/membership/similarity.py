"""How close a release is to the real table: the usual figures, and why they prove nothing."""

from __future__ import annotations

from time import perf_counter
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

from oversafe._core.checks import check_count
from oversafe._core.errors import InputError
from oversafe.attack.base import Attack, AttackResult, wilson_interval
from oversafe.attack.copies import difference_interval
from oversafe.attack.records import FloatArray, IntArray, Records, nearest, read_records
from oversafe.data.rows import is_copy

WARNING = (
    "low similarity is no evidence of privacy: these figures compare distributions, and a release can look "
    "harmless in all of them while records can be computed from it"
)
_NEIGHBOURS = 10
# A row is next to a record if it is closer by this ratio to it than to the second, and closer than this share of the
# records are to one another.
_NEXT_TO, _UNCOMMON = 0.05, 0.01
_SHOWN = 100


class ClosestRecord(Attack):
    """Measure how close released rows come to their closest real records, against people who are not in it.

    For each released row: the distance to its closest real record, the ratios of that distance to those
    of the 2nd and the 10th closest (near 0 when the row belongs to one record rather than to a
    neighbourhood), and whether it is identical to a record. The same for the rows of a holdout, which is
    what new people of the same kind would give ([1]_, Section 4.2).

    The risk says how much more often than chance a released row is closer to the real table than to the
    holdout, where chance is the real table's share of both. It is 0 for rows that have nothing to do with
    the records in particular, wherever they lie.

    Parameters
    ----------
    n_rows : int
        At most so many released, and holdout, rows are measured, drawn at random.
    metric : {"euclidean", "gower"}
        Root of the sum of squared differences, as in the paper, or the sum of the differences. Numbers are
        divided by their range; categories, and a missing value and a known one, differ by 1.
    random_state : int, optional
        For the choice of rows.
    n_jobs : int, optional
        Number of threads, as in joblib.

    See Also
    --------
    ReconSMOTE : Computes records from releases that look harmless here.

    References
    ----------
    .. [1] "UMAP-SMOTENC: a simple, efficient, and consistent alternative for privacy-aware synthetic data
       generation".

    Examples
    --------
    >>> import numpy as np
    >>> from oversafe.attack import ClosestRecord
    >>> rng = np.random.default_rng(0)
    >>> people = rng.normal(size=(400, 4))
    >>> real, holdout = people[:200], people[200:]
    >>> result = ClosestRecord(random_state=0).run(real + 0.01, real, holdout)
    >>> result.risk
    1.0
    """

    def __init__(
        self,
        n_rows: int = 2000,
        *,
        metric: Literal["euclidean", "gower"] = "euclidean",
        random_state: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_rows = n_rows
        self.metric = metric
        self.random_state = random_state
        self.n_jobs = n_jobs

    def run(
        self, release: Any, real: Any, holdout: Any = None, *, reconstruction: AttackResult | None = None
    ) -> AttackResult:
        """Measure the released rows against the real records.

        Parameters
        ----------
        release : DataFrame or array
            The released rows.
        real : DataFrame or array
            The real rows. Only columns that all tables share are used.
        holdout : DataFrame or array, optional
            Rows of the same kind that had no part in the release. Without it the risk is the share of the released
            rows, but for identical ones, that are next to one record: twenty times closer to it than to any other, and
            closer than all but one in a hundred records are to their closest other one; less what chance gives.
        reconstruction : AttackResult, optional
            Of an attack that recovers records from the same release; its figure is put beside these.

        Returns
        -------
        AttackResult
            ``evidence`` holds one row per figure: its mean over the release, over the baseline, and the
            difference with its interval; ``details["closest"]`` the 100 closest pairs of rows.

        Raises
        ------
        InputError
            If a table is empty, the tables share no column, or a setting makes no sense.
        """
        started = perf_counter()
        check_count("n_rows", self.n_rows)
        if self.metric not in ("euclidean", "gower"):
            raise InputError(f"metric is {self.metric!r}; use 'euclidean' or 'gower'")
        records = read_records({"release": release, "real": real, "holdout": holdout})
        scaled = records.scaled()
        rng = np.random.default_rng(self.random_state)
        measured = {name: self._sample(scaled[name].shape[1], rng) for name in scaled}
        closest, distances = self._nearest(records, scaled["real"], scaled["release"], measured["release"])
        base = "real" if holdout is None else "holdout"
        # Without a holdout a record stands for a new person, and must not find itself.
        skip = measured["real"] if holdout is None else None
        _, usual = self._nearest(records, scaled["real"], scaled[base], measured[base], skip)
        evidence = _figures(distances, usual)

        if holdout is None:
            risk, interval = _next_to_one(distances, closest[:, 0], usual)
        else:
            risk, interval = self._closer_to_real(records, scaled, measured["release"])
        order = np.argsort(distances[:, 0], kind="stable")[:_SHOWN]
        details: dict[str, Any] = {
            "rows": len(distances),
            "baseline": "holdout" if holdout is not None else "other real records",
            **{f"{row.figure}_release": row.release for row in evidence.itertuples()},
            **{f"{row.figure}_baseline": row.baseline for row in evidence.itertuples()},
            "closest": pd.DataFrame(
                {
                    "released_row": measured["release"][order],
                    "real_row": closest[order, 0],
                    "distance": distances[order, 0],
                }
            ),
            "seconds": perf_counter() - started,
            **_warn(reconstruction),
        }
        return AttackResult("ClosestRecord", "similarity", risk, interval, evidence, details)

    def _sample(self, n: int, rng: np.random.Generator) -> IntArray:
        return np.arange(n) if n <= self.n_rows else np.sort(rng.choice(n, self.n_rows, replace=False))

    def _nearest(
        self,
        records: Records,
        table: FloatArray,
        others: FloatArray,
        rows: IntArray,
        skip: IntArray | None = None,
        k: int = _NEIGHBOURS,
    ) -> tuple[IntArray, FloatArray]:
        """Return the closest records of a table to some rows, and their distances."""
        found, distances = nearest(
            table,
            records.n_numbers,
            np.ascontiguousarray(others.T[rows]),
            np.ones((len(rows), len(records.names)), dtype=bool),
            k,
            skip=skip,
            squared=self.metric == "euclidean",
            n_jobs=self.n_jobs,
        )
        return found, np.sqrt(distances) if self.metric == "euclidean" else distances

    def _closer_to_real(
        self, records: Records, scaled: dict[str, FloatArray], rows: IntArray
    ) -> tuple[float, tuple[float, float]]:
        """Return the risk: how often a released row is closer to the real table than to the holdout."""
        sizes = [scaled[name].shape[1] for name in ("real", "holdout")]
        (real, holdout), (far, far_holdout) = zip(
            *(
                self._nearest(records, scaled[name], scaled["release"], rows, k=1)
                for name in ("real", "holdout")
            ),
            strict=True,
        )
        far, far_holdout = far[:, 0], far_holdout[:, 0]
        by_chance = sizes[0] / sum(sizes)
        closer = (far < far_holdout) + by_chance * (far == far_holdout)
        person = np.where(far <= far_holdout, real[:, 0], sizes[0] + holdout[:, 0])
        return _above_chance(closer, by_chance, person)


def _figures(release: FloatArray, baseline: FloatArray) -> pd.DataFrame:
    """Return the four figures of the release and of the baseline, and the difference with its interval."""
    rows = []
    for figure, values, usual in zip(
        ("closest_distance", "ratio_to_2nd", "ratio_to_10th"),
        _measures(release),
        _measures(baseline),
        strict=True,
    ):
        mean, usual_mean = (float(v.mean()) if len(v) else np.nan for v in (values, usual))
        error = np.sqrt(sum(v.var(ddof=1) / len(v) if len(v) > 1 else np.nan for v in (values, usual)))
        difference = mean - usual_mean
        rows.append(
            (figure, mean, usual_mean, difference, difference - 1.96 * error, difference + 1.96 * error)
        )
    same, usual_same = (int((d[:, 0] == 0).sum()) for d in (release, baseline))
    shares = same / len(release), usual_same / len(baseline)
    interval = difference_interval(same, len(release), usual_same, len(baseline))
    rows.append(("identical_share", *shares, shares[0] - shares[1], *interval))
    return pd.DataFrame(rows, columns=["figure", "release", "baseline", "difference", "low", "high"])


def _measures(distances: FloatArray) -> list[FloatArray]:
    """Return the distance to the closest record and its ratios to the 2nd and 10th, where there are as many."""
    measures = []
    for neighbour in (0, 1, _NEIGHBOURS - 1):
        known = distances[np.isfinite(distances[:, neighbour])]
        if neighbour == 0:
            measures.append(known[:, 0])
        else:
            # A row on top of several equal records is as exposed as one of them: 0 to 0 counts as 1.
            with np.errstate(invalid="ignore"):
                measures.append(np.where(known[:, neighbour] == 0, 1.0, known[:, 0] / known[:, neighbour]))
    return measures


def _above_chance(
    closer: FloatArray, by_chance: float, person: IntArray
) -> tuple[float, tuple[float, float]]:
    """Return how far a share is above chance, 0 to 1, with its interval over the people behind the rows."""
    share = float(closer.mean())
    # Which table a person is in was drawn once, for all the rows nearest to that person: the variance is that
    # of as many equally weighted people (Kish's effective sample size).
    rows = np.bincount(person)
    trials = max(1, round(float(rows.sum() ** 2 / (rows**2).sum())))
    risk, low, high = (
        max(0.0, (value - by_chance) / (1 - by_chance))
        for value in (share, *wilson_interval(share * trials, trials))
    )
    return risk, (low, high)


def _next_to_one(
    release: FloatArray, record: IntArray, usual: FloatArray
) -> tuple[float, tuple[float, float]]:
    """Return how many released rows are next to one record, beyond chance.

    Around a place that has nothing to do with the records in particular, the ratio of the distances to the closest two
    of them, to the power of the dimension, is uniform: in one dimension or more it is below a limit no more often than
    the limit itself, wherever the place is. Distances as large as are common among the records do not count, so that a
    row which alone shares a record's categories is not next to it. Identical rows, which are frequent in coarse tables,
    are left to :class:`ExactCopies`.
    """
    apart = usual[(usual[:, 0] > 0) & np.isfinite(usual[:, 1])]
    others = (release[:, 0] > 0) & np.isfinite(release[:, 1])
    if not len(apart) or not others.any():
        return 0.0, (0.0, 1.0)
    limit = np.quantile(apart[:, 0], _UNCOMMON)
    closest, second = release[others, 0], release[others, 1]
    near = (closest < limit) & (closest < _NEXT_TO * second)
    return _above_chance(near.astype(float), _NEXT_TO, record[others])


class NaiveDistinguisher(Attack):
    """Let a random forest tell real rows from synthetic ones, as is often done to judge privacy.

    Half of the real and half of the synthetic rows train the forest, which then labels the rest ([1]_,
    Section 5.1). It sees whether the two come from different distributions, and nothing else: on a table
    that SMOTE augmented it finds next to no real row, while every one of them can be named.

    Parameters
    ----------
    n_repeats : int
        How many forests, each on other halves.
    n_rows : int
        At most so many rows of each kind take part, drawn at random.
    classifier : scikit-learn classifier, optional
        Instead of the random forest.
    protocol : {"copies", "published"}
        Released rows equal to a real row are real ("copies"), or count as synthetic whatever they are, as in
        [1]_ ("published"; give the synthetic rows alone). SMOTE makes such rows from records that
        occur twice.
    random_state : int, optional
        For the halves and the forests.
    n_jobs : int, optional
        Number of processors, as in joblib.

    See Also
    --------
    DistinSMOTE : Names the real rows of a table that SMOTE augmented.

    References
    ----------
    .. [1] "SMOTE and Mirrors: Exposing Privacy Leakage from Synthetic Minority Oversampling".

    Examples
    --------
    >>> import numpy as np
    >>> from imblearn.over_sampling import SMOTE
    >>> from oversafe.attack import NaiveDistinguisher
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(520, 4))
    >>> y = np.repeat([0, 1], [500, 20])
    >>> X_augmented, y_augmented = SMOTE(random_state=0).fit_resample(X, y)
    >>> result = NaiveDistinguisher(random_state=0).run(X_augmented[y_augmented == 1], X[y == 1])
    >>> result.details["recall"]
    0.0
    """

    def __init__(
        self,
        n_repeats: int = 5,
        *,
        n_rows: int = 20_000,
        classifier: Any = None,
        protocol: Literal["copies", "published"] = "copies",
        random_state: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_repeats = n_repeats
        self.n_rows = n_rows
        self.classifier = classifier
        self.protocol = protocol
        self.random_state = random_state
        self.n_jobs = n_jobs

    def run(
        self, release: Any, real: Any, holdout: Any = None, *, reconstruction: AttackResult | None = None
    ) -> AttackResult:
        """Train forests on halves and label the other halves.

        Parameters
        ----------
        release : DataFrame or array
            The released rows; unless they are copies of a real row, they are the synthetic ones.
        real : DataFrame or array
            The real rows. Only columns that both tables share are used.
        holdout : DataFrame or array, optional
            Not used, since the released rows are what the real ones are told from; every attack on a release and
            the real table takes one.
        reconstruction : AttackResult, optional
            Of an attack on the same release; its figure is put beside these.

        Returns
        -------
        AttackResult
            The risk is the share of the real rows that are labelled real, minus that of the synthetic rows;
            ``details`` has the precision and the recall of the label "real" and the area under the ROC
            curve; ``evidence`` one row per forest.

        Raises
        ------
        InputError
            If there are fewer than two real or two synthetic rows.
        """
        from sklearn.base import clone
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.metrics import roc_auc_score
        from sklearn.model_selection import train_test_split

        started = perf_counter()
        check_count("n_repeats", self.n_repeats)
        check_count("n_rows", self.n_rows)
        if self.protocol not in ("copies", "published"):
            raise InputError(f"protocol is {self.protocol!r}; use 'copies' or 'published'")
        records = read_records({"release": release, "real": real})
        n_released = records.codes["release"].shape[1]
        copied = is_copy(release, real) if self.protocol == "copies" else np.zeros(n_released, dtype=bool)
        synthetic = np.flatnonzero(~copied)
        for what, count in (("real", records.codes["real"].shape[1]), ("synthetic", len(synthetic))):
            if count < 2:
                raise InputError(f"there are {count} {what} rows to tell apart; give at least 2")
        rng = np.random.default_rng(self.random_state)
        parts = [records.codes["release"].T[synthetic], records.codes["real"].T]
        parts = [
            p if len(p) <= self.n_rows else p[rng.choice(len(p), self.n_rows, replace=False)] for p in parts
        ]
        X, y = _spread(np.vstack(parts), records), np.repeat([False, True], [len(p) for p in parts])
        forest = RandomForestClassifier(n_jobs=self.n_jobs) if self.classifier is None else self.classifier

        found = np.zeros(4, dtype=np.int64)
        rows = []
        for _ in range(self.n_repeats):
            seed = int(rng.integers(2**31))
            X_train, X_test, y_train, y_test = train_test_split(
                X, y, test_size=0.5, stratify=y, random_state=seed
            )
            model = clone(forest)
            if "random_state" in model.get_params():
                model.set_params(random_state=seed)
            model.fit(X_train, y_train)
            scores = model.predict_proba(X_test)[:, list(model.classes_).index(True)]
            labelled = model.predict(X_test).astype(bool)
            counts = np.array(
                [(labelled & y_test).sum(), y_test.sum(), (labelled & ~y_test).sum(), (~y_test).sum()]
            )
            found += counts
            rows.append((*_rates(counts), roc_auc_score(y_test, scores)))
        evidence = pd.DataFrame(rows, columns=["precision", "recall", "false_positive_rate", "auc"])
        hit, n_real, wrong, n_synthetic = (int(v) for v in found)
        # Over the repeats a row is tested several times, and counts once.
        trials = min(n_real, len(parts[1])), min(n_synthetic, len(parts[0]))
        low, high = difference_interval(
            hit / n_real * trials[0], trials[0], wrong / n_synthetic * trials[1], trials[1]
        )
        details: dict[str, Any] = {
            "precision": float(evidence["precision"].mean()),
            "recall": float(evidence["recall"].mean()),
            "auc": float(evidence["auc"].mean()),
            "real_rows": len(parts[1]),
            "synthetic_rows": len(parts[0]),
            "seconds": perf_counter() - started,
            **_warn(reconstruction),
        }
        return AttackResult(
            "NaiveDistinguisher",
            "similarity",
            max(0.0, hit / n_real - wrong / n_synthetic),
            (max(0.0, low), max(0.0, high)),
            evidence,
            details,
        )


def _rates(counts: NDArray[np.int64]) -> tuple[float, float, float]:
    hit, n_real, wrong, n_synthetic = (int(v) for v in counts)
    # Without a row labelled real there is no precision; the published figures count it as 0.
    return hit / (hit + wrong) if hit + wrong else 0.0, hit / n_real, wrong / n_synthetic


def _spread(codes: FloatArray, records: Records) -> FloatArray:
    """Return codes as columns for a classifier: categories one by one, gaps marked beside their column."""
    columns = []
    for column in range(len(records.names)):
        values = codes[:, column]
        gaps = np.isnan(values)
        texts = records.columns[column].texts
        if column >= records.n_numbers and texts is not None and len(texts) <= 50:
            columns += [(values == code).astype(np.float64) for code in range(len(texts))]
        else:
            filled = np.where(gaps, 0.0 if gaps.all() else np.nanmedian(values), values)
            # Forests keep numbers in single precision, and ask only for their order.
            columns.append(filled if np.abs(filled).max() < 1e38 else rankdata(filled))
        if gaps.any():
            columns.append(gaps.astype(np.float64))
    return np.column_stack(columns)


def _warn(reconstruction: AttackResult | None) -> dict[str, Any]:
    """Return the warning, with the figure of a reconstruction where it succeeded."""
    if reconstruction is None:
        return {"warning": WARNING}
    figures = {"reconstruction": reconstruction.name, "reconstruction_risk": reconstruction.risk}
    if reconstruction.risk <= 0:
        return {"warning": WARNING, **figures}
    recovered, total = (reconstruction.details.get(key) for key in ("recovered", "distinct_real"))
    what = (
        f"{recovered} of the {total} real records"
        if recovered is not None and total is not None
        else f"at a risk of {reconstruction.risk:.0%}"
    )
    verb = "recovers" if recovered is not None else "succeeds"
    return {"warning": f"{WARNING}; from this one {reconstruction.name} {verb} {what}", **figures}
