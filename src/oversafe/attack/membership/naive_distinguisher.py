"""A random forest that tells real rows from made ones, as is often done to judge privacy."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from time import perf_counter
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

from oversafe._core.checks import check_count
from oversafe._core.errors import InputError
from oversafe._core.text import percent
from oversafe.attack.base import About, Attack, AttackResult, Earlier
from oversafe.attack.class_tables import ClassTables
from oversafe.attack.copies import difference_interval
from oversafe.attack.membership.similarity import beside, warn
from oversafe.attack.records import FloatArray, Records, read_records
from oversafe.data.rows import is_copy


@dataclass(eq=False, repr=False)
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

    about = About(
        question="Does a trained classifier recognise the real rows?",
        attacker="Somebody who already knows for half of the rows whether they are real.",
        method="A random forest learns the difference from that half and labels the rest.",
        risk=(
            "The share of the real rows that it recognises, less the share of the others that it takes "
            "for real. A low figure proves nothing."
        ),
        threat="similarity",
        helped_by=("reconstruction",),
        work=4.0,
    )

    n_repeats: int = 5
    _: KW_ONLY
    n_rows: int = 20_000
    classifier: Any = None
    protocol: Literal["copies", "published"] = "copies"
    random_state: int | None = None
    n_jobs: int | None = None

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
            **warn(reconstruction),
        }
        return AttackResult(
            "NaiveDistinguisher",
            "similarity",
            max(0.0, hit / n_real - wrong / n_synthetic),
            (max(0.0, low), max(0.0, high)),
            evidence,
            details,
        )

    def why_not(self, tables: ClassTables, earlier: Earlier) -> str | None:
        """Return that there are no real rows to tell from others, or none that chance does not explain."""
        copied = is_copy(tables.release, tables.real)
        if not copied.any():
            return "no released row is a real record, so there is none to be told from the others"
        if (found := earlier.get("copied")) is not None and not found.details.get(
            "more_than_chance", found.interval[0] > 0
        ):
            # In a coarse table every release holds real rows; to know those that are frequent anyway is no gain.
            return "the real rows in it are no more than chance gives, so there are none to be told apart"
        if min(0 if tables.real is None else len(tables.real), int((~copied).sum())) < 2:
            return "it needs at least two real and two other rows"
        return None

    def run_on(self, tables: ClassTables, earlier: Earlier) -> AttackResult:
        """Run it on a class, beside what was reconstructed from it."""
        return self.run(tables.release, tables.real, reconstruction=earlier.get("computed"))

    def headline(self, result: Any, label: str, certain: int = 0) -> str:
        """Return what a result means, for a reader who does not know the attack."""
        headline = (
            f"A random forest recognises {percent(result.details['recall'])} of the real rows of class {label!r} "
            f"in the release{_taken_for_real(result)}."
        )
        return f"{headline} {beside(result.details)}" if result.interval[0] <= 0 else headline


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


def _taken_for_real(result: AttackResult) -> str:
    """Return how many other rows are taken for real too: that real ones are says nothing without it."""
    if "false_positive_rate" not in result.evidence:
        return ""
    return (
        f", and takes {percent(float(result.evidence['false_positive_rate'].mean()))} of the others for real"
    )
