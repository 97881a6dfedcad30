"""SMOTEDP states both figures, keeps the promised one when asked to, and searches neighbours by public facts."""

import numpy as np
import pandas as pd
import pytest

from oversafe._core.errors import InputError
from oversafe.data import Column, Schema
from oversafe.privacy import smote_cost
from oversafe.protect import SMOTEDP, GaussianCopula, HistogramSynthesizer, PrivBayes
from oversafe.protect.samplers.smote_dp import _located
from tests.protect.conformance import mixed_table, public_schema


@pytest.fixture
def table():
    return mixed_table()


def test_without_public_sizes_the_epsilon_is_nominal(table):
    X, y = table
    model = SMOTEDP(random_state=0).fit(X, y)
    assert model.guarantee_.status == "nominal" and model.guarantee_.epsilon == pytest.approx(50.0)
    assert model.whole_ is None
    assert any("class sizes" in caveat for caveat in model.guarantee_.caveats)


def test_both_figures_are_stated_with_public_sizes(table):
    X, y = table
    sizes = {label: 60 for label in sorted(y.unique())}
    model = SMOTEDP(HistogramSynthesizer(), epsilon=2.0, class_sizes=sizes, schema=public_schema(X)).fit(X, y)
    assert model.guarantee_.status == "nominal" and model.guarantee_.epsilon == pytest.approx(2.0)
    assert model.whole_.status == "proven" and model.whole_.epsilon > 50
    assert any(f"{model.whole_.epsilon:.4g}" in caveat for caveat in model.guarantee_.caveats)


def test_the_whole_keeps_the_promised_epsilon_when_asked_to(table):
    X, y = table
    sizes = {label: 60 for label in sorted(y.unique())}
    model = SMOTEDP(
        PrivBayes(), epsilon=3.0, delta=1e-6, class_sizes=sizes, run_at="proven", schema=public_schema(X)
    ).fit(X, y)
    assert model.guarantee_.status == "proven"
    assert model.guarantee_.epsilon <= 3.0 * (1 + 1e-6)
    inner = model.synthesizer_.epsilon
    assert inner < 0.3
    again = smote_cost(
        inner,
        n_minority={str(c): n - 1 for c, n in sizes.items()},
        n_added={str(c): n for c, n in sizes.items()},
        dimensions=model._settings(model.schema_, list(sizes), list(sizes.values()), PrivBayes())[
            "dimensions"
        ],
        k_neighbors=1,
        keep_originals=False,
        target_delta=1e-6,
    )
    assert again.epsilon == pytest.approx(model.guarantee_.epsilon)
    # A larger budget of the synthesizer would break the promise.
    assert not model.synthesizer_.guarantee_.epsilon > inner * (1 + 1e-9)


def test_a_seeded_whole_is_not_proven(table):
    X, y = table
    sizes = {label: 60 for label in sorted(y.unique())}
    model = SMOTEDP(
        HistogramSynthesizer(),
        epsilon=3.0,
        delta=1e-6,
        class_sizes=sizes,
        run_at="proven",
        schema=public_schema(X),
        random_state=0,
    ).fit(X, y)
    assert model.guarantee_.status == "nominal"
    assert any("random_state" in caveat for caveat in model.guarantee_.caveats)


def test_the_synthesizers_own_delta_is_paid_for_too(table):
    X, y = table
    sizes = {label: 60 for label in sorted(y.unique())}
    settings = {
        "epsilon": 3.0,
        "delta": 1e-3,
        "class_sizes": sizes,
        "run_at": "proven",
        "schema": public_schema(X),
    }
    pure = SMOTEDP(PrivBayes(), **settings).fit(X, y)
    loose = SMOTEDP(PrivBayes(delta=1e-6), **settings).fit(X, y)
    assert loose.guarantee_.status == "proven" and loose.guarantee_.delta == 1e-3
    assert loose.synthesizer_.epsilon < pure.synthesizer_.epsilon
    # A delta of its own that is as large as the whole's leaves nothing to prove.
    with pytest.raises(InputError):
        SMOTEDP(PrivBayes(delta=1e-3), **settings).fit(X, y)
    nominal = SMOTEDP(PrivBayes(delta=1e-3), **{**settings, "run_at": "nominal"}).fit(X, y)
    assert nominal.whole_ is None and any("nothing is proven" in c for c in nominal.guarantee_.caveats)
    with pytest.raises(InputError, match="rows_per_person"):
        SMOTEDP(PrivBayes(rows_per_person=2), **settings).fit(X, y)


def test_rows_between_neighbours_vary_less_than_the_records():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(2000, 2)), columns=["a", "b"])
    y = pd.Series(np.repeat([0, 1], 1000))
    model = SMOTEDP(k_neighbors=5, random_state=0)
    made, of = model._interpolate(X, y, Schema.infer(X), {0: 1000, 1: 1000}, rng)
    assert made.shape == (2000, 2) and of.value_counts().tolist() == [1000, 1000]
    for label in (0, 1):
        # With factors that are uniform a row has about two thirds of the variance across, all of it along; here
        # neighbours are near, so that the whole shrinks a little and never grows by more than chance.
        assert np.linalg.det(made[of == label].cov()) < 1.1 * np.linalg.det(X[y == label].cov())


def test_a_declared_class_without_records_is_no_error(table):
    X, y = table
    sizes = {label: 60 for label in [*sorted(y.unique()), "never seen"]}
    model = SMOTEDP(HistogramSynthesizer(), class_sizes=sizes, schema=public_schema(X)).fit(X, y)
    assert len(model.sample(class_counts={"never seen": 7})[0]) == 7


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"run_at": "both"}, "run_at = 'both'"),
        ({"run_at": "proven"}, "class_sizes="),
        ({"k_neighbors": 0}, "k_neighbors = 0"),
        ({"epsilon": -1.0}, "epsilon = -1"),
        ({"class_sizes": {"healthy": 1, "ill": 50}}, "class_sizes"),
        ({"class_sizes": {"healthy": 50}}, "names 1 class"),
        ({"synthesizer": GaussianCopula()}, "no parameter 'epsilon'"),
        ({"synthesizer": HistogramSynthesizer(relation="add-remove")}, "add-remove"),
    ],
)
def test_bad_use_is_refused(table, parameters, words):
    X, y = table
    with pytest.raises(InputError, match=words):
        SMOTEDP(**parameters).fit(X, y)


@pytest.mark.filterwarnings("ignore::oversafe.data.MisfitWarning")
@pytest.mark.parametrize("odd", ["x", None, np.nan, pd.NA, [1], 7])
def test_one_odd_label_moves_no_other(odd):
    schema = Schema(
        (Column("x", "continuous", "float64", bounds=(0.0, 1.0), domain="public", source="protocol"),)
    )
    settings = {"epsilon": 500.0, "delta": 1e-6, "class_sizes": {0: 200, 1: 200}, "run_at": "proven"}
    y = [int(i >= 200) for i in range(399)]
    nullable = pd.Series([*y, pd.NA], dtype="Int64")
    for labels in ([*y, odd], pd.Series([*y, odd]), nullable):
        model = SMOTEDP(HistogramSynthesizer(n_bins=2), schema=schema, **settings)
        model.fit(pd.DataFrame({"x": [0.9] * 400}), labels)
        assert model.guarantee_.status == "proven"
        # Nobody lies in the lower half, where the record lies that stands in for a class without any.
        assert model.synthesizer_.histograms_["x"][:, 1].min() > 0.9


def _neighbour_of_all(column, first, other):
    """Return SMOTE's rows of a class whose records, but for the first, are equal; the first is nearest to them all."""
    schema = Schema((column,))
    table = pd.DataFrame({column.name: pd.Series([first] + [other] * 199, dtype=object)})
    model = SMOTEDP(k_neighbors=1)
    made, _ = model._interpolate(table, pd.Series([0] * 200), schema, {0: 200}, np.random.default_rng(0))
    return (
        HistogramSynthesizer(schema=schema, classes=[0], n_bins=2, random_state=0, epsilon=1e9)
        .fit(made, [0] * 200)
        .histograms_[column.name][0]
    )


@pytest.mark.parametrize(
    ("facts", "first", "instead", "other"),
    [
        # What is missing where nothing may be lies in the middle of the range for the search no more.
        ({"kind": "continuous", "bounds": (0.0, 100.0)}, 50.0, np.nan, 50.0),
        ({"kind": "continuous", "bounds": (0.0, 100.0)}, 50.0, "no number", 50.0),
        ({"kind": "integer", "dtype": "int64", "bounds": (0, 100)}, 50, None, 50),
        # So wide a range that numbers on both sides of its middle are scaled to one place.
        ({"kind": "continuous", "bounds": (-1e17, 1e17)}, 1.0, -5.0, 0.5),
    ],
)
def test_a_record_in_the_place_of_others_changes_no_row_of_theirs(facts, first, instead, other):
    column = Column(**{"name": "x", "dtype": "float64", "domain": "public", "source": "a test", **facts})
    before, after = (_neighbour_of_all(column, value, other) for value in (first, instead))
    # A replaced record that is nobody's only neighbour moves a row or two of the 200; all of these would move by half.
    assert np.abs(before - after).max() < 0.1


@pytest.mark.parametrize("bounds", [(0.0, 10.0), (-3.0, 0.1), (0.0, 1e-3), (7.0, 7.0), (-1e17, 1e17)])
def test_a_number_keeps_its_digits_as_far_as_its_place_has_them(bounds):
    column = Column("x", "continuous", "float64", bounds=bounds, domain="public", source="a test")
    codes = np.clip(np.round(np.random.default_rng(0).uniform(*bounds, 1000), 4), *bounds)
    kept, places = _located(column, codes)
    # By its place alone: records of one place have one number.
    assert len(np.unique(np.column_stack([kept, places]), axis=0)) == len(np.unique(places))
    assert bounds[1] == 1e17 or (kept == codes).all()
