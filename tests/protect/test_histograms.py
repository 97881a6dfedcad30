"""The class histograms pay for everything they read, and keep what they can."""

import itertools
from functools import partial

import numpy as np
import pandas as pd
import pytest

from oversafe._core.errors import InputError
from oversafe.data import Column, Schema, load_dataset
from oversafe.data.cells import mark_read
from oversafe.measure import audit_epsilon
from oversafe.privacy import Ledger, accountant
from oversafe.privacy.mechanisms import noisy_counts
from oversafe.protect import DPGAN, PATEGAN, SMOTEDP, HistogramSynthesizer, PrivateMixture, PrivBayes
from oversafe.protect.marginals import histograms
from tests.protect.conformance import mixed_table

SCHEMA = Schema(
    (
        Column("x", "continuous", "float64", bounds=(0.0, 3.0), domain="public", source="code book"),
        Column("c", "categorical", "str", True, categories=("a", "b"), domain="public", source="code book"),
    )
)


@pytest.fixture
def measured(monkeypatch):
    """Return a function that gives the counts a fit hands to the mechanism, and the sensitivity it states."""

    def measure(X, y, **parameters):
        seen = {}

        def watch(counts, *, sensitivity, epsilon, random_state=None):
            seen.update(counts=counts.copy(), sensitivity=sensitivity, epsilon=epsilon)
            return noisy_counts(counts, sensitivity=sensitivity, epsilon=epsilon, random_state=random_state)

        monkeypatch.setattr(accountant, "noisy_counts", watch)
        HistogramSynthesizer(**{"schema": SCHEMA, "classes": ["no", "yes"], "n_bins": 3, **parameters}).fit(
            X, y
        )
        return seen

    return measure


def table(*rows):
    X = pd.DataFrame([row[:2] for row in rows], columns=["x", "c"]).astype({"x": float, "c": "str"})
    return X, pd.Series([row[2] for row in rows])


RECORDS = list(itertools.product([0.5, 1.5, 99.0], ["a", "b", None, "unknown"], ["no", "yes"]))


def test_no_neighbour_moves_the_counts_by_more_than_the_sensitivity(measured):
    fixed = [(1.0, "a", "no"), (2.0, "b", "yes")]
    worst = 0
    for first, second in itertools.combinations(RECORDS, 2):
        a = measured(*table(*fixed, first))
        b = measured(*table(*fixed, second))
        moved = np.abs(a["counts"] - b["counts"]).sum()
        assert moved <= a["sensitivity"] == 6
        worst = max(worst, moved)
    assert worst == 6
    for record in RECORDS:
        a = measured(*table(*fixed, record), relation="add-remove")
        b = measured(*table(*fixed), relation="add-remove")
        assert np.abs(a["counts"] - b["counts"]).sum() == a["sensitivity"] == 3


@pytest.mark.parametrize(
    ("paid", "breaks"),
    [
        (lambda sensitivity: sensitivity, False),
        (lambda sensitivity: sensitivity // 2, True),  # noise halved
        (lambda sensitivity: sensitivity - 2, True),  # class counts not paid for
    ],
    ids=["as it is", "noise halved", "class counts not paid for"],
)
def test_audit_of_the_worst_neighbours(measured, paid, breaks):
    # The right mechanism is accused with probability at most 1e-6; the broken ones were caught with this seed.
    fixed = [(1.0, "a", "no")] * 3
    a = measured(*table(*fixed, (0.5, "a", "no")))
    b = measured(*table(*fixed, (2.5, "b", "yes")))

    def run(counts, rng):
        noisy = noisy_counts(counts, sensitivity=paid(a["sensitivity"]), epsilon=1.0, random_state=rng)
        # The log-likelihood ratio of the two tables up to a factor: the strongest statistic there is.
        return np.abs(noisy - b["counts"]).sum() - np.abs(noisy - a["counts"]).sum()

    audit = audit_epsilon(run, a["counts"], b["counts"], trials=100_000, confidence=1 - 1e-6, random_state=1)
    assert (audit.lower_bound > 1.0) == breaks


def test_guarantee_is_proven_only_when_everything_is_public():
    X, y = table(*RECORDS)
    proven = HistogramSynthesizer(schema=SCHEMA, classes=["no", "yes"]).fit(X, y).guarantee_
    assert proven.status == "proven" and proven.epsilon == 1.0 and proven.delta == 0.0
    for parameters, caveat in [
        ({"schema": SCHEMA}, "set of labels"),
        ({"classes": ["no", "yes"]}, "read from the data without noise: 'x', 'c'"),
        ({"schema": SCHEMA, "classes": ["no", "yes"], "random_state": 1}, "random_state"),
    ]:
        clean = X.assign(c=X["c"].where(X["c"] != "unknown"))
        guarantee = HistogramSynthesizer(**parameters).fit(clean, y).guarantee_
        assert guarantee.status == "nominal" and guarantee.epsilon == 1.0
        assert any(caveat in sentence for sentence in guarantee.caveats)


def test_a_private_estimate_that_nobody_paid_for_is_not_proven():
    schema = SCHEMA.declare("x", domain="private estimate")
    guarantee = HistogramSynthesizer(schema=schema, classes=["no", "yes"]).fit(*table(*RECORDS)).guarantee_
    assert guarantee.status == "nominal" and "not paid" in guarantee.caveats[0]


@pytest.mark.parametrize("form", [pd.Series, np.array, list])
def test_one_missing_or_odd_label_moves_no_other(measured, form):
    schema = Schema((SCHEMA["x"],))
    X = pd.DataFrame({"x": [0.5] * 100})
    for odd in (np.nan, 7, 1.0):
        synthesizer = HistogramSynthesizer(1e6, schema=schema, classes=[0, 1])
        counts = synthesizer.fit(X, form([1] * 60 + [0] * 39 + [odd])).class_counts_
        assert counts.tolist() == ([39, 61] if odd == 1.0 else [40, 60])


@pytest.mark.filterwarnings("ignore::oversafe.data.MisfitWarning")
@pytest.mark.parametrize("odd", ["x", None, [1, 2], 1j])
def test_one_odd_cell_of_a_list_changes_no_other(measured, odd):
    facts = {"domain": "public", "source": "code book"}
    schema = Schema(
        (
            Column("x0", "integer", "int64", bounds=(0, 1), **facts),
            Column("x1", "continuous", "float64", bounds=(0.0, 1.0), **facts),
        )
    )
    rows, y = [[True, 0.9]] * 20, [1] * 20
    plain = measured(rows, y, schema=schema, classes=[0, 1])["counts"]
    for X, labels in (([*rows[:-1], [True, odd]], y), (rows, [*y[:-1], odd])):
        other = measured(X, labels, schema=schema, classes=[0, 1])
        assert np.abs(plain - other["counts"]).sum() <= other["sensitivity"] == 6
    with pytest.raises(InputError, match="rows of 1 to 2 cells"):
        measured([*rows, [True]], [*y, 1], schema=schema, classes=[0, 1])


@pytest.mark.filterwarnings("ignore::oversafe.data.MisfitWarning")
@pytest.mark.parametrize(
    "make",
    [
        HistogramSynthesizer,
        PrivBayes,
        PrivateMixture,
        pytest.param(partial(PATEGAN, n_rounds=2), marks=pytest.mark.extras),
    ],
)
@pytest.mark.parametrize("n_rows", [0, 1])
def test_a_table_without_rows_is_a_neighbour_where_their_number_is_private(make, n_rows):
    X, y = table((0.5, "a", "yes"))
    synthesizer = make(schema=SCHEMA, classes=["no", "yes"], relation="add-remove").fit(
        X[:n_rows], y[:n_rows]
    )
    assert synthesizer.guarantee_.status == "proven" and len(synthesizer.sample(3)[0]) == 3
    with pytest.raises(InputError, match="no rows"):
        make(schema=SCHEMA, classes=["no", "yes"]).fit(X[:0], y[:0])


def test_nothing_of_the_data_shows_in_the_dtypes_of_a_proven_result():
    import pickle

    schema = Schema(
        (Column("x0", "categorical", "str", categories=("a", "bbbbbbb"), domain="public", source="s"),)
    )
    states = []
    for texts in (["a"] * 10, ["a"] * 9 + ["bbbbbbb"]):
        synthesizer = HistogramSynthesizer(schema=schema, classes=["ben", "malignant"])
        _, y_new = synthesizer.fit_resample(np.array(texts)[:, None], np.array(["ben"] * 10))
        assert set(y_new) <= {"ben", "malignant"} and synthesizer.guarantee_.status == "proven"
        states.append(vars(synthesizer._shape))
    assert states[0] == states[1]
    y = pd.Series(pd.Categorical(["a"] * 5, categories=["a", "SECRET"]))
    synthesizer = HistogramSynthesizer(schema=SCHEMA, classes=["a"]).fit(table(*RECORDS[:5])[0], y)
    assert synthesizer.guarantee_.status == "proven" and b"SECRET" not in pickle.dumps(synthesizer)


def test_very_small_budgets():
    X, y = table(*RECORDS)
    assert len(
        HistogramSynthesizer(1e-15, schema=SCHEMA, classes=["no", "yes"]).fit_resample(X, y)[0]
    ) == len(X)


def test_labels_are_public_when_declared_by_the_schema_and_not_by_the_categories_of_y():
    X, y = table(*RECORDS)
    assert HistogramSynthesizer(schema=SCHEMA).fit(X, y.astype("category")).guarantee_.status == "nominal"
    label = Column("y", "categorical", "str", categories=("no", "yes"), domain="public", source="code book")
    schema = Schema((*SCHEMA.columns, label), label="y")
    assert HistogramSynthesizer(schema=schema).fit(X, y).guarantee_.status == "proven"


def test_without_noise_the_shares_of_each_class_are_kept():
    # At epsilon 1e6 the noise is zero but with probability below 1e-6.
    X, y = table(*[(0.5, "a", "no")] * 30, *[(2.5, "b", "no")] * 10, *[(1.5, None, "yes")] * 5)
    synthesizer = HistogramSynthesizer(1e6, schema=SCHEMA, classes=["no", "yes"], n_bins=3).fit(X, y)
    assert synthesizer.class_counts_.tolist() == [40, 5]
    assert synthesizer.histograms_["x"].tolist() == [[0.75, 0.0, 0.25], [0.0, 1.0, 0.0]]
    assert synthesizer.histograms_["c"].tolist() == [[0.75, 0.25, 0.0], [0.0, 0.0, 1.0]]
    X_new, y_new = synthesizer.sample(class_counts={"yes": 50})
    assert (y_new == "yes").all() and X_new["x"].between(1, 2).all() and X_new["c"].isna().all()


def test_class_counts():
    X, y = table(*RECORDS)
    synthesizer = HistogramSynthesizer(
        1e6, schema=SCHEMA, classes=["no", "yes", "never"], random_state=0
    ).fit(X, y)
    assert len(synthesizer.sample()[0]) == len(X)
    assert len(synthesizer.sample(1000)[0]) == 1000
    _, y_new = synthesizer.sample(class_counts={"never": 7, "yes": 2})
    assert y_new.value_counts().to_dict() == {"never": 7, "yes": 2}
    balanced = synthesizer.set_params(sampling_strategy="auto").sample(300)[1]
    assert balanced.value_counts().tolist() == [100, 100, 100]
    for bad in ({"perhaps": 1}, {"yes": -1}):
        with pytest.raises(InputError):
            synthesizer.sample(class_counts=bad)
    with pytest.raises(InputError, match="one of them"):
        synthesizer.sample(3, class_counts={"yes": 1})


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epsilon": 0}, "epsilon = 0"),
        ({"epsilon": float("nan")}, "epsilon = nan"),
        ({"n_bins": 0}, "n_bins = 0"),
        ({"relation": "swap"}, "relation = 'swap'"),
        ({"sampling_strategy": "not minority"}, "sampling_strategy = 'not minority'"),
    ],
)
def test_bad_parameters(parameters, message):
    X, y = load_dataset("breast_cancer")
    with pytest.raises(InputError, match=message):
        HistogramSynthesizer(**parameters).fit(X, y)


def test_projection_and_rounding():
    assert histograms.project(np.array([3.0, -1.0, 2.0]), 4.0).tolist() == [2.5, 0.0, 1.5]
    assert histograms.project(np.array([3.0, 1.0]), 0.0).tolist() == [0.0, 0.0]
    assert histograms.whole_shares(np.array([1.6, 2.4, 0.0]), 4).tolist() == [2, 2, 0]


def visits(n_persons=400, seed=0):
    """Return a table of persons with one to nine rows each, and its schema."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(n_persons), rng.integers(1, 10, n_persons))
    X = pd.DataFrame({"who": [f"p{i}" for i in person], "x": rng.uniform(0, 3, len(person))})
    schema = Schema((Column("who", "identifier", "str"), SCHEMA["x"]), person="who")
    return X, pd.Series(np.where(person % 5, "no", "yes")), schema


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_a_guarantee_for_persons(delta, relation):
    X, y, schema = visits()
    synthesizer = HistogramSynthesizer(
        5.0, delta=delta, schema=schema, classes=["no", "yes"], relation=relation, rows_per_person=2
    ).fit(X, y)
    guarantee = synthesizer.guarantee_
    assert guarantee.status == "proven" and guarantee.unit == "person" and guarantee.rows_per_unit == 2
    X_new, y_new = synthesizer.sample()
    assert list(X_new.columns) == ["x"] and len(X_new) == len(y_new)
    kept = np.minimum(X["who"].value_counts(), 2).sum()
    # The total is noisy too: about a hundred standard deviations of the noise fit between the two bounds.
    assert 0.5 * kept < len(X_new) < 1.5 * kept
    assert "for every person (at most 2 rows each)" in str(guarantee)


def test_a_person_needs_a_bound_and_a_bound_a_person(tmp_path):
    X, y, schema = visits(20)
    ledger = Ledger(tmp_path / "budget.db")
    ledger.create("visits", epsilon=1.0, unit="person", rows_per_unit=2)
    charged = partial(HistogramSynthesizer, ledger=ledger.for_dataset("visits"))
    with pytest.raises(InputError, match="no column says whose row each is"):
        charged(schema=SCHEMA, rows_per_person=2).fit(*table(*RECORDS))
    for rows in (0, 1.5, True, "2"):
        with pytest.raises(InputError, match=r"rows_per_person = .* whole number of at least 1"):
            charged(schema=schema, rows_per_person=rows).fit(X, y)
    # By the schema alone, so also where the table does not have the column.
    for given in (X, X.drop(columns="who")):
        with pytest.raises(
            InputError, match=r"\('who'\), and no bound .* --rows-per-person N \(rows_per_person=N"
        ):
            charged(schema=schema).fit(given, y)
    with pytest.raises(InputError, match="no column 'who'"):
        charged(schema=schema, rows_per_person=2).fit(X.drop(columns="who"), y)
    for dtype in ("bool", "datetime64[ns]"):
        with pytest.raises(InputError, match=r"ids are whole numbers .* or text"):
            charged(schema=schema.declare("who", dtype=dtype), rows_per_person=2).fit(X, y)
    with pytest.raises(InputError, match="limited in memory only"):
        charged(schema=schema).fit_source(tmp_path / "nowhere.parquet", "y")
    assert ledger.remaining("visits").charges == 0


@pytest.mark.parametrize("method", [DPGAN, PATEGAN, SMOTEDP])
def test_a_method_for_records_alone_refuses_a_person(method):
    X, y, schema = visits(20)
    for given in (X, X.drop(columns="who")):
        with pytest.raises(
            InputError, match=f"{method.__name__} promises for every record only; use a synth"
        ):
            method(schema=schema).fit(given, y)


@pytest.mark.filterwarnings("ignore::oversafe.data.MisfitWarning")
def test_ids_that_are_one_as_floats_are_nobodys(measured):
    # Eighty people whose ids end in a zero or do not: as floats forty, unless one id is text.
    ids = [f"{i}.{end}" for i in range(12, 52) for end in ("1", "10")]
    schema = Schema((SCHEMA["x"], Column("who", "identifier", "str")), person="who")
    y = pd.Series(["no", "yes"] * 40 + ["no"])
    counts = []
    for last in ("99.5", "Z"):
        text = pd.Series([*ids, last])
        who = text.astype(float) if last != "Z" else text
        X = pd.DataFrame({"x": 0.5, "who": who})
        counts.append(measured(X, y, schema=schema, rows_per_person=1, random_state=0))
    assert np.abs(counts[0]["counts"] - counts[1]["counts"]).sum() <= counts[0]["sensitivity"] == 4
    # As our own reader marks what it has read by the schema, the ids are told apart.
    X["who"] = X["who"].astype("category")
    mark_read(X, schema)
    exact = measured(X, y, schema=schema, rows_per_person=1, random_state=0)["counts"]
    assert exact.sum() == 2 * 81
    for mark in ({"who": "another digest"}, {"x": X.attrs["oversafe:read"]["who"]}, ["who"]):
        X.attrs["oversafe:read"] = mark
        assert measured(X, y, schema=schema, rows_per_person=1, random_state=0)["counts"].sum() == 2


def test_no_person_moves_the_counts_by_more_than_the_sensitivity(measured):
    # Whoever has rows beyond the limit: what is kept of the others is the same with the same seed if they stand first.
    schema = Schema((*SCHEMA.columns, Column("who", "identifier", "str")), person="who")

    def counts_of(rows):
        Z, z = table(*[(0.5, "a", "no"), (1.5, "b", "yes")] * 3, *rows)
        Z["who"] = [*"aabbcc", *"d" * len(rows)]
        return measured(Z, z, schema=schema, rows_per_person=2, random_state=0)

    for rows in ([(0.5, "a", "no")] * 5, [(2.5, "b", "yes")] * 3, [(2.5, "b", "yes")]):
        other = counts_of([(99.0, None, "no")] * 4)
        mine = counts_of(rows)
        assert np.abs(mine["counts"] - other["counts"]).sum() <= mine["sensitivity"] == 12


@pytest.mark.filterwarnings("ignore::oversafe.data.MisfitWarning")
@pytest.mark.parametrize("start", [0, 2**60])
def test_an_id_that_is_missing_merges_no_others(measured, start):
    schema = Schema((SCHEMA["x"], Column("who", "identifier", "int64")), person="who")
    y = pd.Series(["no", "yes"] * 100)
    counts = []
    for last in (start + 199, None, "x", [3]):
        X = pd.DataFrame({"x": 0.5, "who": [*range(start, start + 199), last]})
        counts.append(measured(X, y, schema=schema, rows_per_person=1, random_state=0)["counts"])
    # Ids from 2^53 on say of nobody's row whose it is, so that none is left.
    assert all(np.abs(counts[0] - other).sum() <= 2 for other in counts)
    assert counts[0].sum() == (400 if start == 0 else 0)


@pytest.mark.slow
@pytest.mark.parametrize("domains", ["private", "data"])
def test_audit_with_domains_paid_for_and_read(domains):
    # Paid for, it is accused with probability at most 1e-6; the unpaid bounds of an outlier were caught with this seed.
    inside = pd.DataFrame({"x": np.linspace(1.0, 2.0, 30)})
    outlier = inside.copy()
    outlier.loc[29, "x"] = 1e6
    y = pd.Series(["no", "yes"] * 15)
    declared = Schema((Column("x", "continuous", "float64", domain="private estimate"),))

    def run(X, rng):
        synthesizer = HistogramSynthesizer(
            1.0,
            domains=domains,
            schema=declared if domains == "private" else None,
            classes=["no", "yes"],
            n_bins=4,
            random_state=int(rng.integers(2**31)),
        ).fit(X, y)
        return [*np.arcsinh(synthesizer.schema_["x"].bounds), *synthesizer.class_counts_]

    audit = audit_epsilon(run, inside, outlier, trials=600, confidence=1 - 1e-6, random_state=0)
    assert (audit.lower_bound > 1.0) == (domains == "data")


def test_classes_that_a_strategy_does_not_name_stay_as_they_are():
    X, y = mixed_table()
    made = HistogramSynthesizer(1000.0, sampling_strategy={"ill": 7}, random_state=0).fit_resample(X, y)[1]
    assert made.value_counts().to_dict() == {"healthy": 192, "ill": 7}


def test_too_few_rows_to_vote_on_kinds_are_refused_before_anything_is_paid(tmp_path):
    ledger = Ledger(tmp_path / "budget.db", key_file=tmp_path / "key")
    ledger.create("patients", 1.0)
    X, y = mixed_table()
    model = HistogramSynthesizer(
        1.0,
        delta=1e-6,
        domains="private",
        classes=["healthy", "ill"],
        ledger=ledger.for_dataset("patients"),
    )
    with pytest.raises(InputError, match="240 rows at epsilon = 1 are too few to find out privately"):
        model.fit(X, y)
    assert ledger.remaining("patients").epsilon == 1.0


@pytest.mark.parametrize(
    ("strategy", "counts"),
    [
        ("auto", [60, 60, 60]),
        ("not majority", [60, 60, 60]),
        ("all", [60, 60, 60]),
        ("minority", [60, 30, 60]),
    ],
)
def test_words_of_imbalanced_learn(strategy, counts):
    X, y = np.random.default_rng(0).random((100, 2)), np.repeat(list("abc"), [60, 30, 10])
    model = HistogramSynthesizer(1e6, sampling_strategy=strategy, random_state=0).fit(X, y)
    made = [model.sampling_strategy_[label] for label in "abc"]
    assert made == counts
    assert len(model.sample(40)[1]) == 40


def test_a_ratio_of_two_classes_is_taken_from_the_counts_that_were_paid_for():
    X, y = np.random.default_rng(0).random((100, 2)), np.repeat(["no", "yes"], [90, 10])
    model = HistogramSynthesizer(1.0, sampling_strategy=0.5, classes=["no", "yes"]).fit(X, y)
    rare, other = sorted(model.class_counts_)
    assert sorted(model.sampling_strategy_.values()) == sorted([round(0.5 * other), other]) and rare <= other
    labels = model.sample(90)[1]
    assert abs(sorted(np.unique(labels, return_counts=True)[1])[0] - 30) <= 1
    for strategy, words in (
        (0.0, "a ratio is above 0 and at most 1"),
        (1.5, "a ratio is above 0 and at most 1"),
        ("not minority", "'minority' .the rarest alone"),
        (True, "'minority' .the rarest alone"),
        (lambda y: {"no": 5}, "would see the classes without paying"),
    ):
        with pytest.raises(InputError, match=words):
            HistogramSynthesizer(sampling_strategy=strategy).fit(X, y)
    with pytest.raises(InputError, match="with 3 classes; a ratio is for two classes"):
        HistogramSynthesizer(sampling_strategy=0.5, classes=["no", "yes", "perhaps"]).fit(X, y)
    with pytest.raises(InputError, match="with 4 classes; a ratio is for two classes"):
        HistogramSynthesizer(sampling_strategy=0.5).fit(X, np.arange(100) % 4)


def test_numbers_of_rows_are_whole():
    X, y = np.random.default_rng(0).random((100, 2)), np.repeat(["no", "yes"], [90, 10])
    model = HistogramSynthesizer(random_state=0).fit(X, y)
    for n in ("5", 2.5, -1, True):
        with pytest.raises(InputError, match=f"n = {n!r} was given; use a whole number of at least 0"):
            model.sample(n)
    for count in (2.7, "3", -1):
        with pytest.raises(InputError, match=f"class 'yes' = {count!r} was given; use a whole number"):
            model.sample(class_counts={"yes": count})
    assert len(model.sample(np.int64(5))[1]) == 5
