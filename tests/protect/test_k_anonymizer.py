"""Groups are large, diverse and close enough, and say only what all their rows share."""

import itertools

import numpy as np
import pandas as pd
import pytest

from oversafe._core.errors import InputError
from oversafe.protect import KAnonymizer

from .conformance import mixed_table

KNOWN = ["age", "ward", "grade", "admitted", "dose"]


@pytest.mark.parametrize("k", [2, 5, 20])
def test_every_combination_is_shared_by_k_rows(k):
    X, y = mixed_table(1000)
    anonymizer = KAnonymizer(k, KNOWN)
    X_new, y_new = anonymizer.fit_resample(X, y)
    assert len(X_new) == len(X) and y_new.equals(y)
    sizes = X_new.groupby(KNOWN, dropna=False, observed=True).size()
    assert sizes.min() >= k
    # Not simply one large group: Mondrian's groups have fewer than 2k rows where values differ.
    assert len(sizes) > len(X) / (4 * k)
    others = [c for c in X if c not in KNOWN]
    pd.testing.assert_frame_equal(X_new[others], X[others])


def test_two_columns_by_hand():
    X = pd.DataFrame({"a": [1, 2, 3, 10, 11, 12, 13], "b": [5, 5, 5, 5, 5, 5, 5]})
    anonymizer = KAnonymizer(3, ["a", "b"])
    X_new, _ = anonymizer.fit_resample(X, list("xyxyxyx"))
    assert X_new["a"].tolist() == [2, 2, 2, 11, 11, 11, 11]
    assert anonymizer.groups_[0] != anonymizer.groups_[-1]


def test_diversity():
    X, y = mixed_table(1000)
    for sensitive, values in ((None, y), ("town", X["town"])):
        anonymizer = KAnonymizer(4, ["age", "exact"], l_diversity=2, sensitive=sensitive)
        anonymizer.fit_resample(X, y)
        diverse = pd.DataFrame({"g": anonymizer.groups_, "v": values.fillna("missing")}).groupby("g")["v"]
        assert diverse.nunique().min() >= 2
    plain = KAnonymizer(4, ["age", "exact"])
    plain.fit_resample(X, y)
    assert pd.Series(y).groupby(plain.groups_).nunique().min() == 1
    assert any("l_diversity" in c for c in plain.guarantee_.caveats)


@pytest.mark.parametrize("sensitive", [None, "visits"])
def test_closeness(sensitive):
    X, y = mixed_table(1000, missing=False)
    values = y if sensitive is None else X["visits"].astype(int)
    overall = values.value_counts(normalize=True).sort_index()

    def distance(group):
        gap = group.value_counts(normalize=True).reindex(overall.index, fill_value=0) - overall
        return gap.abs().sum() / 2 if sensitive is None else gap.cumsum().abs().sum() / (len(gap) - 1)

    finest = {}
    for t in (0.1, 0.3):
        anonymizer = KAnonymizer(3, ["age", "exact"], t_closeness=t, sensitive=sensitive)
        anonymizer.fit_resample(X, y)
        assert values.groupby(anonymizer.groups_).apply(distance).max() <= t + 1e-9
        finest[t] = anonymizer.groups_.max()
    assert finest[0.1] < finest[0.3]


def test_hierarchies_cut_between_the_widest_terms_first():
    tree = {
        "Ulm": ("Swabia", "south"),
        "Aalen": ("Swabia", "south"),
        "Passau": ("Bavaria", "south"),
        "Kiel": ("Holstein", "north"),
        "Husum": ("Holstein", "north"),
    }
    towns = ["Ulm", "Aalen", "Passau", "Kiel", "Husum"]
    X = pd.DataFrame({"town": np.repeat(towns, [3, 3, 2, 2, 2])})
    y = ["a", "b"] * 6
    made = {
        k: KAnonymizer(k, ["town"], hierarchies={"town": tree}, output="ranges").fit_resample(X, y)[0]["town"]
        for k in (2, 3, 4, 7)
    }
    assert made[2].tolist() == X["town"].tolist()
    # Two people in Passau are too few to be told from the other southerners.
    assert set(made[3]) == set(made[4]) == {"south", "Holstein"}
    assert set(made[7]) == {"any"}
    with pytest.raises(InputError, match="lacks the category 'Husum'"):
        KAnonymizer(2, ["town"], hierarchies={"town": {t: tree[t] for t in towns[:4]}}).fit_resample(X, y)


def test_ranges_are_true_of_every_row():
    X, y = mixed_table(500)
    anonymizer = KAnonymizer(10, ["age", "ward", "visits"], output="ranges")
    X_new, _ = anonymizer.fit_resample(X, y)
    for text, age in zip(X_new["age"], X["age"], strict=True):
        low, _, high = text.partition(" to ")
        assert int(low) <= age <= int(high or low)
    for text, ward in zip(X_new["ward"], X["ward"], strict=True):
        assert (
            text == "any"
            or text == "any or missing"
            or (ward if isinstance(ward, str) else "missing") in text
        )
    for text, visits in zip(X_new["visits"], X["visits"], strict=True):
        assert ("missing" in text) if visits is pd.NA else text != "missing"
    assert X_new.groupby(["age", "ward", "visits"]).size().min() >= 10


def test_rows_with_rare_categories_may_be_left_out():
    X = pd.DataFrame({"c": ["a"] * 50 + ["b"] * 49 + ["odd"]})
    y = [0, 1] * 50
    anonymizer = KAnonymizer(5, ["c"], max_suppression=0.02)
    X_new, _ = anonymizer.fit_resample(X, y)
    assert X_new["c"].value_counts().to_dict() == {"a": 50, "b": 49}
    X_new, _ = KAnonymizer(5, ["c"]).fit_resample(X, y)
    assert len(X_new) == 100 and X_new["c"].value_counts().min() >= 5


def test_without_quasi_identifiers_every_column_is_one():
    X, y = mixed_table(300)
    anonymizer = KAnonymizer(5)
    X_new, _ = anonymizer.fit_resample(X, y)
    assert anonymizer.quasi_identifiers_ == tuple(X.columns)
    assert X_new.groupby(list(X.columns), dropna=False, observed=True).size().min() >= 5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k_anonymity": 1}, "at least 2"),
        ({"k_anonymity": 500}, "fewer than k_anonymity"),
        ({"l_diversity": 3}, "2 different values"),
        ({"t_closeness": 1.5}, "from 0 to 1"),
        ({"max_suppression": -0.1}, "from 0 to 1"),
        ({"output": "text"}, "'values' or 'ranges'"),
        ({"sensitive": "age", "quasi_identifiers": ["age"]}, "one of them"),
        ({"sensitive": "nothing"}, "no column 'nothing'"),
    ],
)
def test_bad_settings_are_one_sentence(settings, message):
    X, y = mixed_table()
    with pytest.raises(InputError, match=message) as error:
        KAnonymizer(**settings).fit_resample(X, y)
    assert "\n" not in str(error.value)


def test_small_tables_of_all_kinds_are_always_anonymous():
    for seed, k, d in itertools.product(range(10), (2, 3), (1, 3)):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame(rng.integers(0, 4, (12, d)), columns=[f"c{i}" for i in range(d)]).astype(float) / 2
        X_new, _ = KAnonymizer(k, list(X)).fit_resample(X, [0, 1] * 6)
        assert X_new.groupby(list(X)).size().min() >= k
