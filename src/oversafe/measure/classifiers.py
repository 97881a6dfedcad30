"""The classifiers that a release is judged by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from oversafe._core.errors import InputError, import_extra

Classifiers = Literal["quick", "paper"] | Mapping[str, Any]

# The UMAP-SMOTENC paper tunes "in a standard way" and does not print its grids; these are ours.
GRIDS: Mapping[str, dict[str, list[Any]]] = {
    "lr": {"C": [0.1, 1.0, 10.0]},
    "nb": {"var_smoothing": [1e-9, 1e-5, 1e-2]},
    "dt": {"max_depth": [5, 10, None], "min_samples_leaf": [1, 5]},
    "rf": {"max_depth": [10, None], "max_features": ["sqrt", 0.5]},
    "xgb": {"max_depth": [3, 6], "learning_rate": [0.1, 0.3]},
    "mlp": {"alpha": [1e-4, 1e-2], "hidden_layer_sizes": [(64,), (128,)]},
}


def make_classifiers(choice: Classifiers, random_state: int | None) -> dict[str, Any]:
    """Return classifiers by their short names.

    Parameters
    ----------
    choice : {"quick", "paper"} or mapping of str to classifier
        "quick" is logistic regression and a random forest; "paper" the six of the UMAP-SMOTENC paper, of which XGBoost
        needs the extra "boost".
    random_state : int, optional
        Of those that draw.
    """
    if isinstance(choice, Mapping):
        if not choice:
            raise InputError("no classifier was given; name at least one, or use 'quick' or 'paper'")
        return dict(choice)
    if choice not in ("quick", "paper"):
        raise InputError(f"classifiers = {choice!r} was given; use 'quick', 'paper' or a dict of classifiers")
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    logistic = LogisticRegression(max_iter=1000)
    forest = RandomForestClassifier(random_state=random_state)
    if choice == "quick":
        return {"lr": logistic, "rf": forest}
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neural_network import MLPClassifier
    from sklearn.tree import DecisionTreeClassifier

    boost = import_extra("xgboost", "boost", "the classifiers of the paper")
    return {
        "lr": logistic,
        "nb": GaussianNB(),
        "dt": DecisionTreeClassifier(random_state=random_state),
        "rf": forest,
        "xgb": boost.XGBClassifier(n_jobs=1, random_state=random_state),
        # A few steps at a high rate: the defaults take minutes on the larger sets for the same scores.
        "mlp": MLPClassifier(
            (64,), learning_rate_init=3e-3, max_iter=80, tol=1e-3, random_state=random_state
        ),
    }


def tuned(name: str, classifier: Any, fewest: int) -> Any:
    """Return a classifier that is tuned on the rows it is fitted to, where there is a grid for it.

    Parameters
    ----------
    name : str
        The classifier's short name.
    classifier : estimator
        Its defaults.
    fewest : int
        Rows of the smallest class, which bound the folds.
    """
    if name not in GRIDS or fewest < 2:
        return classifier
    from sklearn.model_selection import GridSearchCV

    return GridSearchCV(classifier, GRIDS[name], scoring="f1_macro", cv=min(3, fewest))
