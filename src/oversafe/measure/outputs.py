"""What an audit looks at: the output of a protector or a classifier on one of two neighbouring tables, as numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe._core.checks import check_choice
from oversafe._core.errors import InputError
from oversafe.attack.membership.game import is_protector, released, seeded_copy
from oversafe.attack.membership.statistics import Encoder, Statistics, Surroundings, as_frame
from oversafe.data.schema import Schema
from oversafe.privacy.guarantee import Relation

Pair = tuple[Any, Any]
Matrix = NDArray[np.float64]
Mechanism = Callable[[Pair, np.random.Generator], Matrix]

# Coefficients beyond this many tell a linear discriminant nothing that the confidences do not.
_MOST_COEFFICIENTS = 200


def as_mechanism(model: Any, table: Pair, neighbour: Pair, times: int = 1) -> Mechanism:
    """Return a protector or a classifier as a mechanism whose result is an array of numbers.

    Parameters
    ----------
    model : object
        With ``fit_resample``, or ``fit`` and ``sample``, or ``fit`` and ``predict``.
    table, neighbour : tuple (X, y)
        The two tables; what to look at follows from the record in which they differ.
    times : int, default=1
        How many times as many rows as it learned a synthesizer releases; the more, the less hides what it learned.
    """
    for pair in (table, neighbour):
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise InputError(
                "the tables of a protector or a classifier are pairs (X, y); give two such pairs"
            )
    if is_protector(model):
        return _protector_mechanism(model, table, neighbour, times)
    if hasattr(model, "fit") and hasattr(model, "predict"):
        return _classifier_mechanism(model, table, neighbour)
    raise InputError(
        f"{type(model).__name__} is no mechanism; give a function, a protector (fit_resample, or fit and sample) or a "
        "classifier (fit and predict)"
    )


def differing_records(table: Pair, neighbour: Pair) -> pd.DataFrame:
    """Return the records, labels included, that one table has and the other has not."""
    frames = [_labelled(*pair) for pair in (table, neighbour)]
    counts = [frame.groupby(list(frame.columns), dropna=False, sort=False).size() for frame in frames]
    change = counts[0].sub(counts[1], fill_value=0)
    different = change[change != 0]
    if not len(different) or different.abs().sum() > 2:
        raise InputError(
            f"the tables differ in {int(different.abs().sum())} records; neighbouring tables differ in one that is "
            "added, removed or replaced"
        )
    return different.index.to_frame(index=False)


def _labelled(X: Any, y: Any) -> pd.DataFrame:
    frame = as_frame(X).astype(object)
    frame["\x00label"] = np.asarray(y).ravel().astype(object)
    return frame


def _protector_mechanism(model: Any, table: Pair, neighbour: Pair, times: int) -> Mechanism:
    if times > 1:
        return _cells_mechanism(model, table, neighbour, times)
    records = differing_records(table, neighbour)
    labels = records.pop("\x00label").to_numpy()
    both = pd.concat([as_frame(table[0]), as_frame(neighbour[0])], ignore_index=True)
    encoder = Encoder(both)
    real = encoder.matrix(both)
    everywhere = [encoder.matrix(_like(records.iloc[[i]], both)) for i in range(len(records))]
    around = Surroundings(real, np.vstack(everywhere))
    classes = pd.unique(np.concatenate([np.asarray(pair[1]).ravel() for pair in (table, neighbour)]))
    statistics = Statistics("naive", real)

    def run(pair: Pair, rng: np.random.Generator) -> Matrix:
        X, y = released(seeded_copy(model, int(rng.integers(2**31))), *pair)
        matrix, given = encoder.matrix(as_frame(X)), np.asarray(y).ravel()
        parts = [np.array([(given == label).sum() for label in classes], dtype=float), statistics.of(matrix)]
        for at, label in enumerate(labels):
            rows = matrix[given == label]
            parts += [around.of(rows, np.array([at]))[0], statistics.of(rows)]
            parts.append(rows.max(axis=0) if len(rows) else np.zeros(matrix.shape[1]))
        return np.concatenate(parts)

    return run


def _cells_mechanism(model: Any, table: Pair, neighbour: Pair, times: int) -> Mechanism:
    """Return how many released rows each class has, and how many of them share values with the differing records."""
    if not hasattr(model, "sample"):
        raise InputError(
            f"{type(model).__name__} makes no more rows than it is asked for once; leave times out"
        )
    records = differing_records(table, neighbour)
    del records["\x00label"]
    classes = pd.unique(np.concatenate([np.asarray(pair[1]).ravel() for pair in (table, neighbour)]))

    def run(pair: Pair, rng: np.random.Generator) -> Matrix:
        fitted = seeded_copy(model, int(rng.integers(2**31))).fit(*pair)
        X, y = fitted.sample(times * int(fitted.class_counts_.sum()))
        frame, labels = as_frame(X), np.asarray(y).ravel()
        shared = np.stack([(frame == record).to_numpy() for _, record in records.iterrows()])
        # Of each class its size, the rows that share each value with each record, and each pair of values.
        both = np.concatenate([shared, shared[:, :, :-1] & shared[:, :, 1:]], axis=2)
        own = [np.append(both[:, labels == c].sum(axis=1).ravel(), (labels == c).sum()) for c in classes]
        return np.concatenate(own) / times

    return run


def _like(records: pd.DataFrame, frame: pd.DataFrame) -> pd.DataFrame:
    """Return records with the dtypes of a table."""
    return records.astype(frame.dtypes.to_dict())


def _classifier_mechanism(model: Any, table: Pair, neighbour: Pair) -> Mechanism:
    records = differing_records(table, neighbour)
    del records["\x00label"]
    both = pd.concat([as_frame(table[0]), as_frame(neighbour[0])], ignore_index=True)
    asked: Any = _like(records, both)
    if not isinstance(table[0], pd.DataFrame):
        asked = asked.to_numpy()

    def run(pair: Pair, rng: np.random.Generator) -> Matrix:
        fitted = seeded_copy(model, int(rng.integers(2**31))).fit(*pair)
        names = ("coef_", "intercept_", "means_", "class_counts_")
        parts = [np.ravel(getattr(fitted, n))[:_MOST_COEFFICIENTS] for n in names if hasattr(fitted, n)]
        if hasattr(fitted, "means_"):
            # The sums that the means were made of.
            parts.append(np.ravel(fitted.means_ * fitted.class_counts_[:, None])[:_MOST_COEFFICIENTS])
        return np.concatenate([*parts, np.ravel(confidences(fitted, asked))])

    return run


def confidences(fitted: Any, X: Any) -> Matrix:
    """Return a classifier's confidence in each class, or the nearest that it offers."""
    for method in ("predict_proba", "decision_function"):
        if hasattr(fitted, method):
            values = np.asarray(getattr(fitted, method)(X), dtype=float)
            return values.reshape(len(values), -1)
    labels = np.asarray(fitted.predict(X))
    return (labels[:, None] == fitted.classes_[None, :]).astype(float)


def worst_case_neighbours(
    schema: Schema,
    *,
    n_rows: int = 50,
    crowd: bool = False,
    same_class: bool = False,
    relation: Relation = "replace-one",
) -> tuple[Pair, Pair]:
    """Return two neighbouring tables that are as far apart as a schema allows.

    All records but one sit in one corner of the domain, most of them in one class; the last is in the opposite corner,
    in another class. In the neighbouring table it is removed, or replaced by one like the others. A fifth of the
    others have the last one's class, so that both tables have both classes.

    Parameters
    ----------
    schema : Schema
        With a label; every feature needs bounds or categories.
    n_rows : int, default=50
        Of the first table.
    crowd : bool, default=False
        Whether half of the others sit in the opposite corner too. A lone record is worst for methods that look
        at extremes and neighbours, a crowd for methods that clip noisy counts at zero.
    same_class : bool, default=False
        Whether the last record alone has its class, and keeps it where it is replaced; the others sit in the middle
        of the bounds. Worst for linear models: a record of a class that no other has pulls as hard as it may, from
        either corner, and nothing holds against it.
    relation : {"replace-one", "add-remove"}
        Which tables are neighbours.

    Returns
    -------
    table, neighbour : tuple (X, y)
        For :func:`audit_epsilon`.
    """
    if schema.label is None:
        raise InputError("the schema names no label; give one, as in Schema.infer(table, label='y')")
    if n_rows < 4:
        raise InputError(f"n_rows = {n_rows} was given; give at least 4")
    check_choice("relation", relation, ("replace-one", "add-remove"))
    classes = schema[schema.label].categories
    if classes is None or len(classes) < 2:
        raise InputError(f"the label {schema.label!r} needs at least two declared categories; declare them")
    corners = []
    for end in (0, -1, None):
        corner = {}
        for column in schema.features:
            values = column.categories if column.is_category else column.bounds
            if not values:
                raise InputError(
                    f"column {column.name!r} has neither bounds nor categories; declare them in the schema"
                )
            if end is not None:
                corner[column.name] = values[end]
            else:
                corner[column.name] = values[0] if column.is_category else sum(values) / 2
        corners.append(corner)
    opposite = n_rows // 2 if crowd else 1
    far = np.arange(n_rows) >= n_rows - opposite

    rare = far | (np.arange(n_rows) < max(1, n_rows // 5))
    if same_class:
        rare = np.arange(n_rows) == n_rows - 1

    def pair(is_far: NDArray[np.bool_], is_rare: NDArray[np.bool_]) -> Pair:
        middle = same_class & ~is_rare
        frame = pd.DataFrame(
            [corners[2 if mid else int(flag)] for flag, mid in zip(is_far, middle, strict=True)]
        )
        X = schema.features.conform(frame)
        return X, pd.Series([classes[-1 if flag else 0] for flag in is_rare], name=schema.label)

    if relation == "add-remove":
        return pair(far, rare), pair(far[:-1], rare[:-1])
    return pair(far, rare), pair(np.append(far[:-1], False), np.append(rare[:-1], same_class))
