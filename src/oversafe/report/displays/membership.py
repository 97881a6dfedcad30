"""ROC curves of a membership attack, one per target."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oversafe._core.errors import InputError
from oversafe.attack.membership.game import MembershipResult
from oversafe.report.displays.axes import LEAK, RELEASED, axes_for

_STEPS = np.linspace(0, 1, 201)


@dataclass(eq=False, repr=False)
class MembershipDisplay:
    """How well the releases with a record are told from those without it, for each target.

    Make one with :meth:`from_result`.

    Parameters
    ----------
    curves : list of tuple of array
        False and true positive rates of each target.
    auc : array of shape (n_targets,)
        The areas under them.
    targets : array of int
        Which records they are.
    n_highlighted : int
        How many of the most exposed are drawn in colour.

    Attributes
    ----------
    ax_ : matplotlib axes
        What it was drawn on.
    figure_ : matplotlib figure
        The figure that holds it.

    Examples
    --------
    >>> import numpy as np
    >>> from oversafe.attack import GroundHog
    >>> from oversafe.protect import SMOTE
    >>> from oversafe.report import MembershipDisplay
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(220, 3)), np.repeat([0, 1], [200, 20])
    >>> result = GroundHog(n_targets=3, n_train=60, n_test=60, random_state=0).run(SMOTE(), X, y)
    >>> len(MembershipDisplay.from_result(result).curves)
    3
    """

    curves: list[tuple[NDArray[Any], NDArray[Any]]]
    auc: NDArray[Any]
    targets: NDArray[Any]
    _: KW_ONLY
    n_highlighted: int = 5

    @classmethod
    def from_result(
        cls, result: MembershipResult, *, n_highlighted: int = 5, ax: Any = None
    ) -> MembershipDisplay:
        """Return the drawn display of what GroundHog or ShadowClassifier found.

        Parameters
        ----------
        result : MembershipResult
            With the judge's scores.
        n_highlighted : int
            How many of the most exposed targets to draw in colour.
        ax : matplotlib axes, optional
            Where to draw; a new figure when not given.
        """
        from sklearn.metrics import roc_curve

        if not result.scores_inside.size:
            raise InputError("the result holds no scores, so there is no curve; run the attack again")
        curves = []
        for inside, outside in zip(result.scores_inside, result.scores_outside, strict=True):
            truth = np.repeat([1, 0], [len(inside), len(outside)])
            curves.append(roc_curve(truth, np.concatenate([inside, outside]))[:2])
        return cls(curves, result.auc, result.targets, n_highlighted=n_highlighted).plot(ax)

    def plot(self, ax: Any = None) -> MembershipDisplay:
        """Draw on the axes, or on those of a new figure."""
        self.ax_, self.figure_ = axes_for(ax, figsize=(5.5, 5.2))
        order = np.argsort(-self.auc, kind="stable")
        for rank, at in reversed(list(enumerate(order))):
            shown = rank < self.n_highlighted
            self.ax_.plot(
                *self.curves[at],
                color=LEAK if shown else RELEASED,
                alpha=0.9 if shown else 0.35,
                linewidth=1.2 if shown else 0.7,
                label=f"row {self.targets[at]}, AUC {self.auc[at]:.2f}" if shown else None,
            )
        mean = np.mean([np.interp(_STEPS, x, y) for x, y in self.curves], axis=0)
        self.ax_.plot(_STEPS, mean, color="black", linewidth=2, label=f"mean, AUC {self.auc.mean():.2f}")
        self.ax_.plot([0, 1], [0, 1], ":", color="black", linewidth=1, label="guessing")
        self.ax_.set(
            xlabel="wrong claims that the record is in",
            ylabel="right claims",
            aspect="equal",
            xlim=(0, 1),
            ylim=(0, 1),
        )
        self.ax_.legend(frameon=False, loc="lower right", fontsize="small")
        return self
