"""The decision boundaries of a private classifier over several fits: how far its noise moves them."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe._core.errors import InputError
from oversafe.report.displays.axes import LEAK, REAL, RELEASED, axes_for

_GRID = 80
_MOST_POINTS = 500


@dataclass(eq=False, repr=False)
class PrivateBoundaryDisplay:
    """Boundaries of several fits of one classifier to the same two columns.

    Make one with :meth:`from_estimator`. Without privacy all fits agree; the smaller epsilon is, the more they scatter.

    Parameters
    ----------
    xx, yy : array of shape (n, n)
        The grid.
    heights : array of shape (n_fits, n, n)
        The decision function of each fit on the grid, or for more than two classes the number of the class.
    points : array of shape (n_points, 2)
        Records to show.
    rare : array of bool
        Which of them are of the rarest class.
    columns : tuple of str
        What the two columns are called.

    Attributes
    ----------
    ax_ : matplotlib axes
        What it was drawn on.
    figure_ : matplotlib figure
        The figure that holds it.

    Examples
    --------
    >>> import numpy as np
    >>> from oversafe.learn import PrivateLogisticRegression
    >>> from oversafe.report import PrivateBoundaryDisplay
    >>> rng = np.random.default_rng(0)
    >>> y = (rng.random(500) < 0.1).astype(int)
    >>> X = rng.normal(size=(500, 2)) + 2 * y[:, None]
    >>> model = PrivateLogisticRegression(1.0, data_norm=3.0, classes=[0, 1])
    >>> display = PrivateBoundaryDisplay.from_estimator(model, X, y, n_fits=3)
    >>> display.heights.shape
    (3, 80, 80)
    """

    xx: NDArray[Any]
    yy: NDArray[Any]
    heights: NDArray[Any]
    points: NDArray[Any]
    rare: NDArray[Any]
    _: KW_ONLY
    columns: tuple[str, str] = ("", "")

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        n_fits: int = 15,
        random_state: int | None = None,
        ax: Any = None,
    ) -> PrivateBoundaryDisplay:
        """Return the drawn display of a classifier, fitted anew several times.

        Parameters
        ----------
        estimator : classifier
            Each fit is made on a clone of it, with fresh noise unless it is seeded.
        X : DataFrame or array of shape (n_rows, 2)
            The records.
        y : array of shape (n_rows,)
            Their classes.
        n_fits : int
            How many fits.
        random_state : int, optional
            Chooses the records that are shown.
        ax : matplotlib axes, optional
            Where to draw; a new figure when not given.
        """
        from sklearn.base import clone

        table = np.asarray(X, dtype=float)
        if table.ndim != 2 or table.shape[1] != 2:
            raise InputError(f"X has the shape {table.shape}; a boundary is drawn over two columns")
        if n_fits < 1:
            raise InputError(f"n_fits = {n_fits} was given; give at least 1")
        labels, codes, counts = np.unique(np.asarray(y), return_inverse=True, return_counts=True)
        low, high = table.min(axis=0), table.max(axis=0)
        margin = 0.05 * (high - low)
        xx, yy = np.meshgrid(
            *(np.linspace(a, b, _GRID) for a, b in zip(low - margin, high + margin, strict=True))
        )
        places: Any = np.column_stack([xx.ravel(), yy.ravel()])
        columns = ("", "")
        if isinstance(X, pd.DataFrame):
            columns = (str(X.columns[0]), str(X.columns[1]))
            places = pd.DataFrame(places, columns=X.columns)
        heights = []
        for _ in range(n_fits):
            model = clone(estimator).fit(X, y)
            if len(labels) == 2 and hasattr(model, "decision_function"):
                height = np.asarray(model.decision_function(places), dtype=float)
            else:
                height = np.searchsorted(labels, model.predict(places)).astype(float)
            heights.append(height.reshape(xx.shape))
        chosen = np.random.default_rng(random_state).permutation(len(table))[:_MOST_POINTS]
        rare = codes[chosen] == int(np.argmin(counts))
        return cls(xx, yy, np.array(heights), table[chosen], rare, columns=columns).plot(ax)

    def plot(self, ax: Any = None) -> PrivateBoundaryDisplay:
        """Draw on the axes, or on those of a new figure."""
        self.ax_, self.figure_ = axes_for(ax, figsize=(5.5, 5))
        self.ax_.scatter(*self.points[~self.rare].T, s=6, color=RELEASED, alpha=0.6)
        self.ax_.scatter(*self.points[self.rare].T, s=9, color=LEAK)
        for height in self.heights:
            # Classes are numbered, so that their borders are at the halves; a decision function changes its sign.
            whole = np.array_equal(height, np.round(height)) and height.min() >= 0
            levels = np.arange(0.5, height.max()) if whole else np.array([0.0])
            levels = levels[(levels > height.min()) & (levels < height.max())]
            if len(levels):
                self.ax_.contour(self.xx, self.yy, height, levels, colors=REAL, linewidths=0.8)
        self.ax_.set(xlabel=self.columns[0], ylabel=self.columns[1])
        return self
