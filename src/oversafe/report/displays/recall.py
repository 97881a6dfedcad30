"""How many records a SMOTE release gives away as it grows, beside what the theorems say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oversafe._core.errors import InputError
from oversafe.attack import ReconSMOTE, neighbour_mutuality, reconstruction_recall_bound
from oversafe.report.displays.axes import LEAK, RELEASED, axes_for


@dataclass(eq=False, repr=False)
class RecallDisplay:
    """The share of the records that were read back against the imbalance ratio, with the bounds.

    Make one with :meth:`from_records` or :meth:`from_recalls`.

    Parameters
    ----------
    ratios : array of shape (n_ratios,)
        Majority rows per minority row; SMOTE adds rows until the classes are equal.
    recalls : array of shape (n_ratios, n_runs)
        Share of the records read back in each run.
    bounds : dict of str to array of shape (n_ratios,)
        What the theorems promise at least, by name.

    Attributes
    ----------
    ax_ : matplotlib axes
        What it was drawn on.
    figure_ : matplotlib figure
        The figure that holds it.

    See Also
    --------
    oversafe.attack.reconstruction_recall_bound : The bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from oversafe.report import RecallDisplay
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> display = RecallDisplay.from_records(X, [5, 20], n_runs=1, random_state=0)
    >>> display.recalls.shape
    (2, 1)
    """

    ratios: NDArray[Any]
    recalls: NDArray[Any]
    bounds: dict[str, NDArray[Any]]

    @classmethod
    def from_recalls(
        cls,
        ratios: Sequence[float],
        recalls: Any,
        *,
        n_minority: int,
        k_neighbors: int = 5,
        mutuality: float | None = None,
        ax: Any = None,
    ) -> RecallDisplay:
        """Return the drawn display of recalls that were measured.

        Parameters
        ----------
        ratios : sequence of float
            Majority rows per minority row.
        recalls : array of shape (n_ratios,) or (n_ratios, n_runs)
            What was read back.
        n_minority : int
            Real records of the minority class.
        k_neighbors : int
            SMOTE's.
        mutuality : float, optional
            Of the records, see :func:`oversafe.attack.neighbour_mutuality`; 0 when not given.
        ax : matplotlib axes, optional
            Where to draw; a new figure when not given.
        """
        steps = np.asarray(ratios, dtype=float)
        shares = np.asarray(recalls, dtype=float).reshape(len(steps), -1)
        if len(steps) == 0 or (steps <= 1).any():
            raise InputError(
                f"ratios = {list(ratios)!r} was given; give majority rows per minority row, above 1"
            )
        added = np.round((steps - 1) * n_minority).astype(int)
        bounds = {
            "Theorem 3": [
                reconstruction_recall_bound(n_minority, n, k_neighbors, exact=False) for n in added
            ],
            "Theorem 4": [reconstruction_recall_bound(n_minority, n, k_neighbors, mutuality) for n in added],
            "exact count": [
                reconstruction_recall_bound(n_minority, n, k_neighbors, mutuality, tight=True) for n in added
            ],
        }
        return cls(steps, shares, {name: np.array(bound) for name, bound in bounds.items()}).plot(ax)

    @classmethod
    def from_records(
        cls,
        X: Any,
        ratios: Sequence[float],
        *,
        k_neighbors: int = 5,
        n_runs: int = 3,
        random_state: int | None = None,
        ax: Any = None,
    ) -> RecallDisplay:
        """Return the drawn display of a series of SMOTE releases of the same records, each attacked.

        Parameters
        ----------
        X : array of shape (n_minority, n_columns)
            The minority records, numbers only.
        ratios : sequence of float
            Majority rows per minority row.
        k_neighbors : int
            SMOTE's.
        n_runs : int
            Releases per ratio.
        random_state : int, optional
            Makes the releases repeatable.
        ax : matplotlib axes, optional
            Where to draw; a new figure when not given.
        """
        from imblearn.over_sampling import SMOTE

        records = np.asarray(X, dtype=float)
        n = len(records)
        seeds = np.random.default_rng(random_state).integers(2**31, size=(len(ratios), n_runs))
        # imbalanced-learn wants a second class; it has no part in what is made.
        table, y = np.vstack([records, records]), np.repeat([1, 0], n)
        recalls = np.empty(seeds.shape)
        for row, ratio in enumerate(ratios):
            for run in range(n_runs):
                sampler = SMOTE(
                    sampling_strategy={1: max(n, round(ratio * n))},
                    k_neighbors=k_neighbors,
                    random_state=int(seeds[row, run]),
                )
                added = sampler.fit_resample(table, y)[0][2 * n :]
                recalls[row, run] = (
                    ReconSMOTE(k_neighbors=k_neighbors).run(added, real=records).risk if len(added) else 0.0
                )
        mutuality = neighbour_mutuality(records, k_neighbors)
        return cls.from_recalls(
            ratios, recalls, n_minority=n, k_neighbors=k_neighbors, mutuality=mutuality, ax=ax
        )

    def plot(self, ax: Any = None) -> RecallDisplay:
        """Draw on the axes, or on those of a new figure."""
        self.ax_, self.figure_ = axes_for(ax, figsize=(7, 4.5))
        for (name, bound), style in zip(self.bounds.items(), (":", "--", "-."), strict=False):
            self.ax_.plot(self.ratios, bound, style, color=RELEASED, label=f"at least, {name}")
        mean = self.recalls.mean(axis=1)
        if self.recalls.shape[1] > 1:
            low, high = self.recalls.min(axis=1), self.recalls.max(axis=1)
            self.ax_.fill_between(self.ratios, low, high, color=LEAK, alpha=0.15, linewidth=0)
        self.ax_.plot(self.ratios, mean, "o-", color=LEAK, markersize=4, label="read back")
        self.ax_.set(
            xlabel="majority rows per minority row", ylabel="share of the records", ylim=(-0.03, 1.03)
        )
        self.ax_.legend(frameon=False)
        return self
