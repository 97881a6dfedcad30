"""A guarantee knows of the searches and pipelines that a fit is part of."""

import numpy as np
import pandas as pd
import pytest
from imblearn.pipeline import make_pipeline as make_sampling_pipeline
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from oversafe.data import Schema
from oversafe.learn import PrivateLogisticRegression, TuningWarning
from oversafe.protect import SMOTE, GaussianCopula, HistogramSynthesizer

CLASSES = ["rare", "usual"]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(400) < 0.2, "rare", "usual")
    return rng.normal(size=(400, 2)) + 2 * (y == "rare")[:, None], y


def learner(**settings):
    return PrivateLogisticRegression(data_norm=4.0, classes=CLASSES, **settings)


def synthesizer(X, **settings):
    schema = Schema.infer(pd.DataFrame(X, columns=["x0", "x1"]))
    for name in schema.names:
        schema = schema.declare(name, domain="public", source="a textbook")
    return HistogramSynthesizer(schema=schema, classes=CLASSES, **settings)


def test_steps_that_saw_the_data_are_named(data):
    X, y = data
    guarantee = make_pipeline(StandardScaler(), learner()).fit(X, y)[-1].guarantee_
    assert guarantee.status == "nominal" and guarantee.caveats[0].endswith("nobody paid for: StandardScaler")
    both = make_sampling_pipeline(StandardScaler(), SMOTE(), learner()).fit(X, y)[-1].guarantee_
    assert both.caveats[0].endswith("StandardScaler, SMOTE")
    nested = make_pipeline(StandardScaler(), make_pipeline("passthrough", learner())).fit(X, y)
    assert nested[-1][-1].guarantee_.caveats[0].endswith("StandardScaler")
    # Nominal is no proof either: a seed is known to somebody.
    seeded = make_sampling_pipeline(synthesizer(X, random_state=0), learner()).fit(X, y)[-1].guarantee_
    assert seeded.caveats[0].endswith("HistogramSynthesizer")
    early = make_sampling_pipeline(StandardScaler(), synthesizer(X), LogisticRegression()).fit(X, y)
    assert early[1].guarantee_.caveats[-1].endswith("StandardScaler")


def test_steps_that_learn_nothing_or_pay_are_not(data):
    X, y = data
    for first in (FunctionTransformer(np.tanh), "passthrough", None):
        assert make_pipeline(first, learner()).fit(X, y)[-1].guarantee_.status == "proven"
    # What comes after a private step is made of what it paid for; steps after it do not concern it.
    whole = make_sampling_pipeline(synthesizer(X), StandardScaler(), LogisticRegression()).fit(X, y)
    assert whole[0].guarantee_.status == "proven"
    chained = make_sampling_pipeline(synthesizer(X), learner()).fit(X, y)
    assert chained[-1].guarantee_.status == "proven"


def test_a_search_over_synthesizers_costs_privacy(data):
    X, y = data
    pipeline = make_sampling_pipeline(synthesizer(X), LogisticRegression())
    with pytest.warns(TuningWarning):
        search = GridSearchCV(pipeline, {"histogramsynthesizer__epsilon": [1.0, 5.0]}, cv=2).fit(X, y)
    guarantee = search.best_estimator_[0].guarantee_
    assert guarantee.status == "nominal" and "search over fits" in guarantee.caveats[-1]


@pytest.mark.filterwarnings("error::oversafe.learn.TuningWarning")
def test_what_promises_nothing_is_not_warned_of(data):
    X, y = data
    pipeline = make_sampling_pipeline(GaussianCopula(), LogisticRegression())
    GridSearchCV(pipeline, {"logisticregression__C": [1.0, 5.0]}, cv=2).fit(X, y)
    # Cross-validation alone chooses nothing.
    cross_validate(make_sampling_pipeline(synthesizer(X), LogisticRegression()), X, y, cv=2)
