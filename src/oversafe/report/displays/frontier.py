"""Privacy against utility: which methods no other beats in both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from oversafe._core.checks import check_choice
from oversafe._core.errors import InputError
from oversafe._core.text import shorten
from oversafe.measure.tradeoff import frontier
from oversafe.report.displays.axes import LEAK, RELEASED, axes_for

if TYPE_CHECKING:
    from oversafe.auditing.comparing.comparison import Comparison


@dataclass(eq=False, repr=False)
class FrontierDisplay:
    """Methods by privacy and utility with their intervals, and the frontier of those that no other beats in both.

    Make one with :meth:`from_comparison` or :meth:`from_arrays`.

    Parameters
    ----------
    names : list of str
        The methods.
    privacy, utility : array of shape (n_methods,)
        Their figures.
    privacy_intervals, utility_intervals : array of shape (n_methods, 2), optional
        Ends of their intervals.
    lower_is_more_private : bool
        Whether a low figure is the private one, as an attacker's advantage or an epsilon is.
    privacy_label, utility_label : str
        What the axes are called.

    Attributes
    ----------
    on_frontier : array of bool
        Which methods no other beats in both.
    ax_ : matplotlib axes
        What it was drawn on.
    figure_ : matplotlib figure
        The figure that holds it.

    Examples
    --------
    >>> from oversafe.report import FrontierDisplay
    >>> display = FrontierDisplay.from_arrays(["A", "B", "C"], [0.1, 0.5, 0.6], [0.7, 0.9, 0.8])
    >>> display.on_frontier.tolist()
    [True, True, False]
    """

    names: list[str]
    privacy: NDArray[Any]
    utility: NDArray[Any]
    _: KW_ONLY
    privacy_intervals: NDArray[Any] | None = None
    utility_intervals: NDArray[Any] | None = None
    lower_is_more_private: bool = True
    privacy_label: str = "attacker's advantage over chance"
    utility_label: str = "utility"

    @property
    def on_frontier(self) -> NDArray[np.bool_]:
        """Which methods no other is at least as good in both, and better in one."""
        return frontier(-self.privacy if self.lower_is_more_private else self.privacy, self.utility)

    @classmethod
    def from_arrays(
        cls,
        names: Sequence[str],
        privacy: Any,
        utility: Any,
        *,
        privacy_intervals: Any = None,
        utility_intervals: Any = None,
        more_private: Literal["lower", "higher"] = "lower",
        privacy_label: str = "attacker's advantage over chance",
        utility_label: str = "utility",
        ax: Any = None,
    ) -> FrontierDisplay:
        """Return the drawn display of figures from anywhere.

        Parameters
        ----------
        names : sequence of str
            The methods.
        privacy, utility : array of shape (n_methods,)
            Their figures; a higher utility is better.
        privacy_intervals, utility_intervals : array of shape (n_methods, 2), optional
            Ends of their intervals.
        more_private : {"lower", "higher"}
            Which figures are the private ones.
        privacy_label, utility_label : str
            What the axes are called.
        ax : matplotlib axes, optional
            Where to draw; a new figure when not given.
        """
        check_choice("more_private", more_private, ("lower", "higher"))
        figures = {"privacy": np.asarray(privacy, dtype=float), "utility": np.asarray(utility, dtype=float)}
        for what, values in figures.items():
            if values.shape != (len(names),):
                raise InputError(
                    f"{what} has the shape {values.shape}; give one figure for each of {len(names)} names"
                )
        intervals = {}
        for what, given in (
            ("privacy_intervals", privacy_intervals),
            ("utility_intervals", utility_intervals),
        ):
            ends = None if given is None else np.asarray(given, dtype=float)
            if ends is not None and ends.shape != (len(names), 2):
                raise InputError(
                    f"{what} has the shape {ends.shape}; give two ends for each of {len(names)} names"
                )
            intervals[what] = ends
        return cls(
            [str(name) for name in names],
            figures["privacy"],
            figures["utility"],
            lower_is_more_private=more_private == "lower",
            privacy_label=privacy_label,
            utility_label=utility_label,
            **intervals,
        ).plot(ax)

    @classmethod
    def from_comparison(cls, comparison: Comparison, *, ax: Any = None) -> FrontierDisplay:
        """Return the drawn display of the settings of :func:`oversafe.compare` that were measured.

        Parameters
        ----------
        comparison : Comparison
            What :func:`oversafe.compare` returned.
        ax : matplotlib axes, optional
            Where to draw; a new figure when not given.
        """
        settings = [s for s in comparison.settings if s.status == "done"]
        if not settings:
            raise InputError("no setting of the comparison was measured; look at the errors in its table")
        return cls.from_arrays(
            [s.name for s in settings],
            [s.privacy[0] for s in settings],
            [s.utility[0] for s in settings],
            privacy_intervals=[s.privacy[1:] for s in settings],
            utility_intervals=[s.utility[1:] for s in settings],
            more_private="higher",
            privacy_label="privacy: 1 - the gravest attack's advantage over chance",
            utility_label=comparison.score.replace("_", " "),
            ax=ax,
        )

    def plot(self, ax: Any = None) -> FrontierDisplay:
        """Draw on the axes, or on those of a new figure."""
        self.ax_, self.figure_ = axes_for(ax, figsize=(7, 4.8))
        best = self.on_frontier
        for at, name in enumerate(self.names):
            self.ax_.errorbar(
                self.privacy[at],
                self.utility[at],
                xerr=_lengths(self.privacy[at], self.privacy_intervals, at),
                yerr=_lengths(self.utility[at], self.utility_intervals, at),
                fmt="o",
                color=LEAK if best[at] else RELEASED,
                elinewidth=1,
                markersize=6,
            )
            self.ax_.annotate(
                shorten(name, 40),
                (self.privacy[at], self.utility[at]),
                xytext=(6, 6),
                textcoords="offset points",
                fontsize="small",
                color="black" if best[at] else "0.35",
            )
        order = np.flatnonzero(best)[np.argsort(self.privacy[best], kind="stable")]
        # Between two methods only the worse of their figures is known to be within reach.
        where: Any = "post" if self.lower_is_more_private else "pre"
        self.ax_.step(
            self.privacy[order], self.utility[order], where=where, color=LEAK, linewidth=1, alpha=0.5
        )
        self.ax_.set(xlabel=self.privacy_label, ylabel=self.utility_label)
        return self


def _lengths(value: float, intervals: NDArray[Any] | None, at: int) -> NDArray[Any] | None:
    """Return how far an interval reaches below and above its figure, as matplotlib wants it."""
    if intervals is None or not np.isfinite(intervals[at]).all():
        return None
    return np.maximum(0.0, [[value - intervals[at][0]], [intervals[at][1] - value]])
