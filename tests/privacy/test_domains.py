"""Every column's domain is public, paid for, or named in a caveat; and one record is one vote."""

import numpy as np
import pandas as pd
import pytest

from oversafe._core.errors import InputError
from oversafe.data import Column, Schema
from oversafe.privacy import Accountant, resolve_domains
from oversafe.privacy.domains import drawn_values
from oversafe.privacy.kinds import private_kinds
from oversafe.protect import HistogramSynthesizer
from tests.privacy.transcript import RecordingAccountant
from tests.protect.conformance import mixed_table, public_schema

ODD = [
    *(None, np.nan, pd.NaT, pd.NA, "unknown", "1.0", "nan", "", 10**30, -(10**30), True, 2.5, 1e-9, np.inf),
    *([1], {"a": 1}, 1 + 2j, b"x", "2020-13-99", "2021-05-01", pd.Timestamp("9999-12-31"), 2**70),
    *(
        np.datetime64("1500-01-01"),
        pd.Timestamp("2020-01-01", tz="UTC"),
        pd.Timedelta("1D"),
        np.array([1, 2]),
    ),
]


@pytest.fixture(scope="module")
def table():
    return mixed_table(20_000)


def test_public_domains_cost_nothing(table):
    X, y = table
    accountant = Accountant(1.0)
    domains = resolve_domains(
        X, y, public_schema(X), accountant, classes=sorted(y.unique()), estimate="private"
    )
    assert accountant.charges == [] and domains.caveats == ()
    assert {column.domain for column in domains.schema} == {"public"}
    assert list(domains.bins) == list(X.columns)


def test_the_datas_own_domains_are_named_in_a_caveat(table):
    X, y = table
    accountant = Accountant(1.0)
    domains = resolve_domains(X, y, None, accountant)
    assert accountant.charges == []
    assert any("set of labels" in c for c in domains.caveats)
    assert any("read from the data without noise" in c for c in domains.caveats)


def test_the_delta_of_sets_of_values_does_not_depend_on_the_answers(table):
    X, y = table
    one = X[["dose", "ward"]]
    # The same column names, and other kinds: what is voted for must not decide what is left of delta.
    two = one.assign(dose=X["town"], ward=X["age"])
    left = []
    for frame in (one, two):
        accountant = Accountant(3.0, 1e-6, random_state=1)
        resolve_domains(frame, y, None, accountant, estimate="private")
        left.append((accountant.failure, accountant.total))
    assert left[0] == left[1] and left[0][0] == pytest.approx(1e-7)


def test_categories_of_the_labels_are_not_public(table):
    X, y = table
    labels = y.astype("category")
    read = resolve_domains(X, labels, public_schema(X), Accountant(1.0))
    assert any("set of labels" in c for c in read.caveats)
    paying = Accountant(3.0, 1e-6, random_state=1)
    paid = resolve_domains(X, labels, public_schema(X), paying, estimate="private")
    assert paid.caveats == () and "the set of labels" in [charge.what for charge in paying.charges]


def test_private_domains_take_a_tenth_and_find_the_columns(table):
    X, y = table
    accountant = Accountant(3.0, 1e-6, random_state=1)
    domains = resolve_domains(X, y, None, accountant, estimate="private")
    # What is left over from columns that needed no estimate stays in the budget.
    assert 0.9 - 1e-6 <= accountant.left < 0.95
    assert domains.caveats == () and {c.domain for c in domains.schema} == {"private estimate"}
    assert domains.classes.tolist() == sorted(y.unique())
    inferred = Schema.infer(X)
    for column in domains.schema:
        truth = inferred[column.name]
        assert column.kind == {"ordinal": "categorical"}.get(truth.kind, truth.kind), column.name
        if column.is_number:
            assert column.decimals == truth.decimals and column.resolution == truth.resolution
            assert column.bounds[0] <= column.bounds[1]
        elif column.kind == "categorical":
            assert sorted(column.categories) == sorted(truth.categories)
        assert column.missing or not truth.missing
    cells = domains.cells(X)
    again = drawn_values(domains.bins, cells.T, np.random.default_rng(0))
    assert list(again.columns) == list(X.columns) and len(again) == len(X)
    assert domains.cells(again).tolist() == cells.tolist()


def test_a_pure_budget_reads_sets_of_values_and_says_so(table):
    X, y = table
    accountant = Accountant(3.0, random_state=1)
    domains = resolve_domains(X, y, None, accountant, classes=sorted(y.unique()), estimate="private")
    assert len(domains.caveats) == 1 and "pure" in domains.caveats[0] and "'town'" in domains.caveats[0]
    assert domains.schema["town"].domain == "data" and domains.schema["age"].domain == "private estimate"
    numbers = [c.name for c in domains.schema if c.is_number]
    pure = resolve_domains(X[numbers], y, None, Accountant(3.0), classes=["a", "b"], estimate="private")
    assert pure.caveats == ()


def test_declared_kinds_are_taken_as_declared(table):
    X, y = table
    schema = Schema(
        (
            Column("age", "continuous", "float64", domain="private estimate"),
            Column("grade", "ordinal", "str", categories=("low", "mid", "high"), domain="private estimate"),
            Column("smoker", "boolean", "bool", domain="private estimate"),
            Column("admitted", "datetime", "datetime64[us]", True, resolution="D", domain="private estimate"),
        )
    )
    accountant = Accountant(3.0, 1e-6, random_state=1)
    domains = resolve_domains(X[list(schema.names)], y, schema, accountant, classes=["a"], estimate="private")
    assert not any(charge.what.startswith("kinds") for charge in accountant.charges)
    assert domains.schema["age"].kind == "continuous" and not domains.schema["grade"].missing
    assert domains.schema["grade"].categories == ("low", "mid", "high")
    assert domains.schema["grade"].kind == "ordinal"
    assert domains.schema["smoker"].categories == (False, True)
    low, high = domains.schema["admitted"].bounds
    assert low >= pd.Timestamp("2023-01-01") and high <= pd.Timestamp("2026-01-01")


@pytest.mark.parametrize("kind", ["continuous", "integer"])
def test_quantile_bins_hold_about_as_many_rows_each(kind):
    rng = np.random.default_rng(0)
    values = rng.lognormal(3, 1, 20_000)
    if kind == "integer":
        values = np.rint(10 * values)
    X, y = pd.DataFrame({"x": values}), pd.Series(rng.integers(0, 2, len(values)))
    column = Column("x", kind, "float64", bounds=(0, 5_000), domain="public", source="code book")
    for binning, even in (("uniform", False), ("quantile", True)):
        accountant = Accountant(5.0, random_state=0)
        domains = resolve_domains(
            X, y, Schema((column,)), accountant, classes=[0, 1], n_bins=8, binning=binning
        )
        bins = domains.bins["x"]
        counts = np.bincount(domains.cells(X)[:, 0], minlength=bins.n_cells)
        assert bins.n_cells <= 8 and (counts.max() < 0.45 * len(X)) == even
        assert (accountant.left < 1) == even
        drawn = bins.draw(np.arange(bins.n_cells), rng)
        assert bins.assign(drawn).tolist() == list(range(bins.n_cells))


def neighbours(rng, relation):
    """Return two neighbouring tables with columns of every kind and a record of odd values."""
    n = 60
    plain = {
        "number": list(rng.normal(3, 1, n).round(2)),
        "whole": list(rng.integers(0, 90, n)),
        "flag": list(rng.integers(0, 2, n)),
        "text": list(rng.choice(["a", "b"], n)),
        "day": list(pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), unit="D")),
    }
    labels = list(rng.choice(["no", "yes"], n))
    tables = []
    for changed in (True, relation == "replace-one"):
        odd = {name: ODD[rng.integers(len(ODD))] for name in plain}
        # Built from lists: pandas stores the whole column differently because of one value.
        rows = {
            name: pd.Series([*values, odd[name]] if changed else values) for name, values in plain.items()
        }
        label = pd.Series([*labels, ODD[rng.integers(4, 12)]] if changed else labels)
        tables.append((pd.DataFrame(rows), label))
    return tables


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("binning", ["uniform", "quantile"])
def test_no_neighbour_moves_a_question_by_more_than_is_paid(relation, delta, binning):
    rng = np.random.default_rng(0)
    compared = 0
    for seed in range(30):
        transcripts, found = [], []
        for X, y in neighbours(rng, relation):
            accountant = RecordingAccountant(1.0, delta, relation=relation, seed=seed, random_state=0)
            names = ["number", "whole", "flag", "day"] if delta == 0 else list(X.columns)
            classes = ["no", "yes"] if delta == 0 else None
            domains = resolve_domains(
                X[names], y, None, accountant, classes=classes, estimate="private", binning=binning
            )
            # What a synthesizer asks next.
            cells = np.concatenate(
                [
                    np.bincount(bins.assign(X[name]), minlength=bins.n_cells)
                    for name, bins in domains.bins.items()
                ]
            )
            accountant.counts(cells, accountant.left, what="cells", tables=len(names))
            transcripts.append(accountant.transcript)
            found.append((domains.schema, domains.label, dict(domains.bins), domains.caveats))
        # A set of values that a pure budget could not find is read from the data, and the guarantee says so.
        if any(caveats for *_, caveats in found):
            assert delta == 0
            continue
        compared += 1
        assert transcripts[0].moved_beyond(transcripts[1]) == []
        # With the same answers the two come to the same domains: nothing else was read from the data.
        assert found[0] == found[1]
    assert compared >= 5


@pytest.mark.parametrize(
    ("values", "kind", "facts"),
    [
        ([1.25, 2.5, 3.75], "continuous", {"decimals": 2}),
        ([1.0, 2.0, 3.0], "integer", {}),
        (["1", "2", "3"], "integer", {}),
        ([True, False, True], "boolean", {}),
        ([0, 1, 0], "boolean", {}),
        (["x", "y", "z"], "categorical", {}),
        (["2020-01-01", "2021-02-03", "2020-05-05"], "datetime", {"resolution": "D"}),
        (pd.to_datetime(["2020-01-01 10:30", "2021-02-03 11:45"]), "datetime", {"resolution": "min"}),
        ([np.pi, np.e, np.sqrt(2)], "continuous", {"decimals": None}),
    ],
)
def test_kinds_by_the_vote_of_the_rows(values, kind, facts):
    series = pd.Series(list(values) * 3_000)
    for column_values, missing in (
        (series, False),
        (pd.Series([*series, "odd"], dtype=object), False),
        (pd.Series([*series, *[None] * 3_000]), True),
        # Marks that a reader keeps where no other row is a number.
        (pd.Series([*series, *["NA", "nan", "#N/A"] * 1_000], dtype=object), True),
    ):
        X = pd.DataFrame({"x": column_values})
        found = private_kinds(X, ["x"], accountant=Accountant(1.0, random_state=0), share=1.0)["x"]
        assert found.kind == kind and found.missing == missing
        for fact, value in facts.items():
            assert getattr(found, fact) == value


def test_too_few_labels():
    X, y = pd.DataFrame({"x": np.arange(40.0)}), pd.Series(["a"] * 39 + ["b"])
    with pytest.raises(InputError, match="classes="):
        resolve_domains(X, y, None, Accountant(1.0, 1e-9), estimate="private")


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"estimate": "guess"}, "estimate = 'guess'"),
        ({"binning": "equal"}, "binning = 'equal'"),
        ({"n_bins": 0}, "n_bins = 0"),
        ({"estimate": "private", "share": 1.5}, "a share of 1.5"),
    ],
)
def test_bad_use_costs_nothing(table, facts, message):
    X, y = table
    accountant = Accountant(1.0)
    with pytest.raises(InputError, match=message):
        resolve_domains(X, y, None, accountant, **facts)
    assert accountant.charges == []
    accountant.counts(np.zeros(2, dtype=int), 0.95, what="counts")
    with pytest.raises(InputError, match="estimating the domains costs more"):
        resolve_domains(X, y, None, accountant, estimate="private")
    assert len(accountant.charges) == 1


def test_without_a_schema_a_synthesizer_can_be_proven(table):
    X, y = table
    synthesizer = HistogramSynthesizer(3.0, delta=1e-6, domains="private").fit(X, y)
    assert synthesizer.guarantee_.status == "proven"
    assert (synthesizer.guarantee_.epsilon, synthesizer.guarantee_.delta) == (3.0, 1e-6)
    X_new, y_new = synthesizer.sample(500)
    assert list(X_new.columns) == list(X.columns) and set(y_new) <= set(y)
    # Saved and loaded, the estimates are not taken for public.
    again = Schema.from_toml(synthesizer.schema_.to_toml())
    later = HistogramSynthesizer(3.0, schema=again, classes=sorted(y.unique())).fit(X, y)
    assert later.guarantee_.status == "nominal" and "not paid" in later.guarantee_.caveats[0]
