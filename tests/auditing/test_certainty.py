"""Real rows in a release are held against it where chance does not explain them, and only there."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from oversafe.attack import AttackResult, ExactCopies
from oversafe.attack.class_tables import ClassTables
from oversafe.auditing.certainty import others_copied, with_certain_records
from oversafe.auditing.plan.attack_steps import attack_steps, class_tables
from oversafe.data import load_dataset
from oversafe.data.rows import is_copy, row_keys
from oversafe.protect import HistogramSynthesizer, PrivateMixture


def certain(release, real, holdout=None):
    tables = ClassTables("ill", release, real, holdout)
    return with_certain_records(ExactCopies().run(release, real, holdout), tables)


def people(seed, n=300):
    """Columns that go together: a town says the region, a job the income group."""
    rng = np.random.default_rng(seed)
    town, job = rng.integers(0, 12, n), rng.integers(0, 8, n)
    return pd.DataFrame(
        {"town": town, "region": town // 3, "job": job, "income": job // 2, "sex": rng.integers(0, 2, n)}
    ).astype(str)


@pytest.mark.parametrize("holdout", [None, people(2)])
def test_other_people_with_the_same_values_are_no_copies(holdout):
    # The release is made of other people, who are of 192 kinds.
    result, count = certain(people(0), people(1), holdout)
    assert result.details["copied"] > 100
    assert count == 0 and result.interval[0] < 0.1


def test_avoided_records_are_a_risk_and_none_is_read_out():
    real, release = kinds(1, 5000), kinds(0, 5000)
    # A few copies stand beside all that is avoided.
    left = pd.concat([release[~is_copy(release, real)], real.drop_duplicates().head(5)])
    result, count = certain(left, real, kinds(2, 5000))
    assert count == 0 and result.details["copied"] == 5 and not result.details["more_than_chance"]
    assert result.details["avoided"] and result.interval[0] > 0.1


@pytest.mark.data
@pytest.mark.parametrize("name", ["employee", "letter_recognition", "solar_flare_m0"])
def test_one_half_of_a_class_is_no_copy_of_the_other(name, data_folder):
    X, y = load_dataset(name)
    rows = X[(y == y.value_counts().index[-1]).to_numpy()].sample(frac=1, random_state=0)
    half = len(rows) // 2
    result, count = certain(rows.head(half), rows.tail(half))
    assert result.details["copied"] and count == 0 and result.interval[0] < 0.1


def kinds(seed, n):
    """Five answers, of which some are common."""
    shares = 1 / np.arange(1, 7)
    answers = np.random.default_rng(seed).choice(6, (n, 5), p=shares / shares.sum())
    return pd.DataFrame(answers, columns=list("abcde")).astype(str)


@pytest.mark.parametrize("n_others", [2500, 5000])
def test_what_others_of_the_holdout_lack_is_not_only_copied_from_the_real_table(n_others):
    # Of a large class the rest of a holdout is rare kinds of people, whom any release has fewer of.
    result, count = certain(kinds(0, 5000), kinds(1, 5000), kinds(2, n_others))
    assert result.details["copied"] > 1000 and count == 0 and result.interval[0] < 0.05
    real = kinds(1, 5000)
    result, count = certain(real, real, kinds(2, n_others))
    assert count == result.details["distinct_real"] and result.interval[0] > 0.5
    half = pd.concat([real.head(2500), kinds(0, 2500)])
    assert certain(half, real, kinds(2, n_others))[1] > 1000


@pytest.mark.data
@pytest.mark.parametrize("name", ["employee", "car_eval_4", "solar_flare_m0"])
@pytest.mark.parametrize("kind", [HistogramSynthesizer, PrivateMixture])
@pytest.mark.parametrize("seed", range(4))
def test_a_private_release_has_no_copies_of_the_largest_class(name, kind, seed, data_folder):
    X, y = load_dataset(name)
    order = np.random.default_rng(seed).permutation(len(X))
    largest = y.value_counts().index[0]

    def of_class(X, y):
        return X[(np.asarray(y) == largest)].reset_index(drop=True)

    for n_held in (0, len(X) // 3):
        rows, held = order[n_held:], order[:n_held]
        made = kind(1.0, random_state=seed).fit_resample(X.iloc[rows], y.iloc[rows])
        holdout = of_class(X.iloc[held], y.iloc[held]) if n_held else None
        result, count = certain(of_class(*made), of_class(X.iloc[rows], y.iloc[rows]), holdout)
        assert count == 0 and result.interval[0] < 0.1


def test_all_rows_copied_are_certain_also_in_a_coarse_table():
    real = people(1, n=60)
    result, count = certain(pd.concat([real, people(0, n=20)]), real, people(2))
    assert count == result.details["copied"] == result.details["distinct_real"]


@pytest.mark.parametrize("with_holdout", [False, True])
def test_one_copy_of_many_digits_is_certain(with_holdout):
    rng = np.random.default_rng(0)
    real, fresh, holdout = (pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc")) for _ in range(3))
    given = holdout if with_holdout else None
    result, count = certain(pd.concat([fresh, real.head(1)]), real, given)
    assert count == 1 and result.interval[0] < 0.1
    assert certain(fresh, real, given)[1] == 0


def test_a_holdout_that_stands_in_the_release_as_often_speaks_against_copies():
    rng = np.random.default_rng(0)
    real, holdout = (pd.DataFrame(rng.normal(size=(100, 3)), columns=list("abc")) for _ in range(2))
    result, count = certain(pd.concat([real.head(12), holdout.head(4)]), real, holdout)
    # Values of sixteen digits that agree with other people's too are no chance, but neither is who is in the data.
    assert result.details["copied"] == 12 and count == 0
    assert certain(pd.concat([real.head(30), holdout.head(4)]), real, holdout)[1] == 30


def test_who_is_there_by_chance_is_not_told_from_the_others():
    # Of four hundred releases made of other people some have an interval just above 0, one in forty by its own account.
    for seed in range(400):
        tables = ClassTables("ill", people(3 * seed), people(3 * seed + 1), people(3 * seed + 2))
        result, count = certain(tables.release, tables.real, tables.holdout)
        if result.interval[0] > 0 and not count:
            break
    else:
        pytest.fail("no release has more real rows than other people's, which was to be looked at")
    results, not_run = [], {}
    for step in attack_steps([tables], results, not_run):
        if (found := step.run()) is not None:
            results.append(with_certain_records(found, tables)[0])
    assert "no more than chance" in not_run["NaiveDistinguisher on class 'ill'"]


def test_records_of_which_nothing_was_read_are_not_counted():
    evidence = pd.DataFrame({"columns_read": 7.5, "count": [3, 0, 2, 0, 0]})
    evidence.columns = ["columns_read", "columns_read"]
    alone = AttackResult("ReconSMOTE", "reconstruction", 0.5, (0.4, 0.6), evidence)
    tables = ClassTables("ill", people(0))
    assert with_certain_records(alone, tables)[1] == 2
    # Of those that are real the first was read, and estimated again; the fourth was only estimated.
    held = AttackResult(
        "ReconSMOTE",
        "reconstruction",
        0.5,
        (0.4, 0.6),
        evidence.assign(real_row=[8, 8, -1, 5, -1]),
        {"recovered": 2},
    )
    assert with_certain_records(held, ClassTables("ill", people(0), people(1)))[1] == 1


def test_rows_of_other_classes_show_how_often_chance_copies():
    rng = np.random.default_rng(0)
    real, fresh, holdout = (pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc")) for _ in range(3))
    tables = ClassTables("a", pd.concat([fresh, real.head(2)]), real, holdout)
    result = ExactCopies().run(tables.release, real, holdout)
    assert with_certain_records(result, tables)[1] == 2
    assert with_certain_records(result, replace(tables, others_copied=0.02))[1] == 0
    many = replace(tables, release=pd.concat([fresh, real.head(20)]), others_copied=0.02)
    assert with_certain_records(ExactCopies().run(many.release, real, holdout), many)[1] == 20


def of_two_kinds(seed, n=1000):
    """Healthy people of 720 kinds, and ill ones who were measured."""
    rng = np.random.default_rng(seed)
    ill = rng.random(n) < 0.15
    table = pd.DataFrame(
        {"age": rng.integers(0, 12, n), "sex": rng.integers(0, 2, n), "town": rng.integers(0, 30, n)}
    )
    return table.assign(
        **{name: np.where(ill, rng.normal(size=n), 0.0) for name in "abc"}, ill=ill.astype(int)
    )


def test_common_rows_of_another_class_do_not_excuse_copies_of_rare_ones():
    real, fresh, holdout = map(of_two_kinds, range(3))
    columns = [name for name in real if name != "ill"]
    for n_copies in (1, 8):
        release = pd.concat([fresh, real[real["ill"] == 1].head(n_copies)], ignore_index=True)
        given = (release, real, holdout)
        others = others_copied("ill", columns, given)
        assert others < 0.01
        for label, expected in (("1", n_copies), ("0", 0)):
            tables = class_tables(label, "ill", columns, given, others_copied=others)
            result = ExactCopies().run(tables.release, tables.real, tables.holdout)
            assert with_certain_records(result, tables)[1] == expected


@pytest.mark.parametrize("with_holdout", [True, False])
def test_what_many_people_of_another_class_have_is_nobodys_record(with_holdout):
    def measured(seed, n=900):
        # Where nothing is seen, all measures are at their floor; so it is for most of the healthy and one ill person.
        rng = np.random.default_rng(seed)
        table = pd.DataFrame(rng.normal(size=(n, 4)).round(6), columns=list("abcd")).assign(ill=0)
        table.loc[:299, list("abcd")] = -1.0
        table.loc[299:400, "ill"] = 1
        return table

    real, fresh, holdout = map(measured, range(3))
    columns = list("abcd")
    kinds = row_keys(real[columns])
    for copies, expected in ((0, 0), (2, 3)):
        # The floor's row counts beside records that are somebody's alone.
        release = pd.concat([fresh, real[real["ill"] == 1].tail(copies)], ignore_index=True)
        given = (release, real, holdout[holdout["a"] != -1] if with_holdout else None)
        tables = class_tables("1", "ill", columns, given, kinds=kinds)
        assert tables.shared.sum() == 1
        result = ExactCopies().run(tables.release, tables.real, tables.holdout)
        assert result.details["copied"] == copies + 1
        assert with_certain_records(result, tables)[1] == expected
        assert with_certain_records(result, replace(tables, shared=None))[1] == copies + 1
