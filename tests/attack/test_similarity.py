"""The similarity figures are right, and say themselves that they prove nothing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from imblearn.over_sampling import SMOTE as PlainSMOTE
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from oversafe._core.errors import InputError
from oversafe.attack import ClosestRecord, NaiveDistinguisher, ReconSMOTE
from oversafe.attack.membership.similarity import WARNING
from oversafe.data import load_dataset
from tests.attack.people import assert_nothing_found, people


def figures(result) -> pd.DataFrame:
    return result.evidence.set_index("figure")


def test_figures_by_hand() -> None:
    real = pd.DataFrame({"a": [0.0, 4.0, 10.0]})
    release = pd.DataFrame({"a": [1.0, 10.0]})
    holdout = pd.DataFrame({"a": [6.0]})
    table = figures(ClosestRecord().run(release, real, holdout))
    # Distances over the range of 10: 0.1 and 0.3 of the first row, 0 and 0.6 of the second; 0.2 and 0.4.
    assert table.loc["closest_distance", ["release", "baseline"]].tolist() == pytest.approx([0.05, 0.2])
    assert table.loc["ratio_to_2nd", ["release", "baseline"]].tolist() == pytest.approx([1 / 6, 0.5])
    assert np.isnan(table.loc["ratio_to_10th", "release"])
    assert table.loc["identical_share", ["release", "baseline", "difference"]].tolist() == [0.5, 0.0, 0.5]


def test_euclid_and_gower() -> None:
    real = pd.DataFrame({"a": [0.0, 10.0], "b": [0.0, 10.0], "c": ["x", "y"]})
    row = pd.DataFrame({"a": [3.0], "b": [4.0], "c": ["z"]})
    for metric, distance in (("euclidean", np.sqrt(0.09 + 0.16 + 1)), ("gower", 1.7)):
        table = figures(ClosestRecord(metric=metric).run(row, real, row))
        assert table.loc["closest_distance", "release"] == pytest.approx(distance)


def test_rows_near_records_are_a_risk_and_fresh_ones_are_not() -> None:
    real, holdout = people(400, 0), people(300, 1)
    noisy = real.assign(income=real["income"] + 1.0)
    near = ClosestRecord(random_state=0).run(noisy, real, holdout)
    assert near.threat == "similarity" and near.risk > 0.8 and near.interval[0] > 0.7
    assert near.details["closest"]["distance"].is_monotonic_increasing and len(near.details["closest"]) == 100
    assert_nothing_found(lambda seed: ClosestRecord().run(*(people(300, 10 * seed + i) for i in range(3))))


@pytest.mark.parametrize("spread", [1.0, 0.3], ids=["everywhere", "typical"])
def test_many_rows_on_few_records_do_not_make_a_narrow_interval(spread: float) -> None:
    """A dense fresh release says no more about fifteen people than fifteen rows do."""

    def run(seed: int):
        rng = np.random.default_rng(seed)
        tables = spread * rng.normal(size=(2000, 3)), rng.normal(size=(15, 3)), rng.normal(size=(15, 3))
        return ClosestRecord().run(*tables)

    assert_nothing_found(run)
    assert run(0).interval[1] - run(0).interval[0] > 0.2


@pytest.mark.parametrize("changed", [lambda x: x * 1.001, lambda x: x + 0.003, lambda x: np.round(x, 2)])
def test_rows_next_to_one_record_are_found_without_a_holdout(changed) -> None:
    real = np.random.default_rng(0).normal(50, 10, size=(300, 6))
    alone = ClosestRecord().run(changed(real), real)
    assert alone.details["baseline"] == "other real records" and alone.interval[0] > 0.9


@pytest.mark.parametrize("columns", [1, 2, 6])
@pytest.mark.parametrize("spread", [1.0, 0.3], ids=["everywhere", "typical"])
def test_independent_rows_are_next_to_no_record(spread: float, columns: int) -> None:
    """At most one row in twenty is next to a record by chance: three in ten of 500 have a chance below 1e-6."""
    rng = np.random.default_rng(0)
    real = pd.DataFrame(rng.normal(size=(400, columns))).assign(kind=rng.integers(0, 3, 400).astype(str))
    release = pd.DataFrame(spread * rng.normal(size=(500, columns)))
    for kind in (rng.integers(0, 3, 500).astype(str), "0"):
        assert ClosestRecord().run(release.assign(kind=kind), real).interval[0] < 0.1


def test_rows_that_alone_share_a_records_category_are_not_next_to_it() -> None:
    # Beside another category the numbers hardly differ, since a few of them are very large.
    rng = np.random.default_rng(0)
    release, real = (
        pd.DataFrame({"town": rng.integers(0, 300, 300).astype(str), "income": rng.standard_cauchy(300)})
        for _ in range(2)
    )
    assert ClosestRecord().run(release, real).interval[0] < 0.1


def test_coarse_rows_are_next_to_no_record() -> None:
    rng = np.random.default_rng(0)
    release, real = (pd.DataFrame(rng.integers(0, 4, size=(300, 5))) for _ in range(2))
    assert ClosestRecord().run(release, real).interval[0] == 0
    assert ClosestRecord().run(real, real).interval == (0.0, 1.0)


def test_large_tables_are_sampled() -> None:
    result = ClosestRecord(n_rows=50, random_state=0).run(people(400, 0), people(400, 1), people(400, 2))
    assert result.details["rows"] == 50
    again = ClosestRecord(n_rows=50, random_state=0).run(people(400, 0), people(400, 1), people(400, 2))
    assert again.risk == result.risk and again.evidence.equals(result.evidence)


def test_edges() -> None:
    one = pd.DataFrame({"a": [1.0], "b": ["x"]})
    assert ClosestRecord().run(one, one, one).interval[0] == 0
    assert ClosestRecord().run(one, one).interval == (0.0, 1.0)
    constant = pd.DataFrame({"a": [1.0] * 20, "b": [None] * 20})
    result = ClosestRecord().run(constant, constant, constant)
    assert result.risk == 0 and figures(result).loc["identical_share", "difference"] == 0
    assert figures(result).loc["ratio_to_10th", "release"] == 1.0
    with pytest.raises(InputError, match="metric is 'cosine'"):
        ClosestRecord(metric="cosine").run(one, one)


def smote(seed: int, n: int = 20):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(400 + n, 4)), np.repeat([0, 1], [400, n])
    return PlainSMOTE(random_state=seed).fit_resample(X, y)[0][400 + n :], X[y == 1]


def test_smote_rows_are_closer_than_new_people_in_every_figure() -> None:
    """As in Table 6 of the UMAP-SMOTENC paper; each difference is many standard errors from 0."""
    rng = np.random.default_rng(0)
    synthetic, real = smote(0, n=60)
    table = figures(ClosestRecord(random_state=0).run(synthetic, real, rng.normal(size=(200, 4))))
    for figure in ("closest_distance", "ratio_to_2nd", "ratio_to_10th"):
        assert table.loc[figure, "high"] < 0, figure
    assert table.loc["identical_share", "release"] == 0


def test_the_warning_puts_the_reconstruction_beside() -> None:
    synthetic, real = smote(0)
    found = ReconSMOTE().run(synthetic, real=real)
    assert found.risk > 0.5
    for result in (
        ClosestRecord().run(synthetic, real, reconstruction=found),
        NaiveDistinguisher(n_repeats=1, random_state=0).run(synthetic, real, reconstruction=found),
    ):
        warning = result.details["warning"]
        assert (
            warning.startswith(WARNING) and f"{found.details['recovered']} of the 20 real records" in warning
        )
        assert result.details["reconstruction_risk"] == found.risk
    assert ClosestRecord().run(synthetic, real).details["warning"] == WARNING
    without_truth = ReconSMOTE().run(synthetic)
    assert (
        "at a risk of"
        in ClosestRecord().run(synthetic, real, reconstruction=without_truth).details["warning"]
    )
    nothing = ReconSMOTE().run(np.random.default_rng(0).normal(size=(50, 4)), real=real)
    assert ClosestRecord().run(synthetic, real, reconstruction=nothing).details["warning"] == WARNING


def test_a_forest_sees_other_distributions_and_nothing_else() -> None:
    synthetic, real = smote(1, n=40)
    blind = NaiveDistinguisher(random_state=0).run(synthetic, real)
    assert blind.details["recall"] <= 0.1 and blind.interval[0] == 0
    seen = NaiveDistinguisher(random_state=0).run(synthetic + 5, real)
    assert seen.details["recall"] > 0.9 and seen.details["precision"] > 0.9 and seen.interval[0] > 0.5
    assert len(seen.evidence) == 5 and seen.details["auc"] > 0.99


def test_mixed_kinds_gaps_and_another_classifier() -> None:
    real, other = people(100, 0), people(100, 1).assign(ward="centre")
    classifier = make_pipeline(StandardScaler(), LogisticRegression())
    result = NaiveDistinguisher(classifier=classifier, random_state=0).run(other, real)
    assert result.details["auc"] > 0.9
    assert NaiveDistinguisher(random_state=0, n_rows=30).run(other, real).details["real_rows"] == 30


def test_released_copies_are_real() -> None:
    real = people(60, 0)
    release = pd.concat([real, people(60, 1)], ignore_index=True)
    assert NaiveDistinguisher(n_repeats=1).run(release, real).details["synthetic_rows"] == 60
    assert (
        NaiveDistinguisher(n_repeats=1, protocol="published").run(release, real).details["synthetic_rows"]
        == 120
    )
    with pytest.raises(InputError, match="0 synthetic rows"):
        NaiveDistinguisher().run(real, real)
    with pytest.raises(InputError, match="protocol is 'x'"):
        NaiveDistinguisher(protocol="x").run(release, real)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "precision", "recall"),
    [
        ("ecoli", 0.00, 0.00),
        ("car_eval_34", 0.01, 0.01),
        ("solar_flare_m0", 0.01, 0.00),
        ("yeast_me2", 0.00, 0.00),
    ],
)
def test_published_figures(name: str, precision: float, recall: float, data_folder) -> None:
    """Table 3 of SMOTE and Mirrors, its two leftmost columns; seeds are fixed."""
    X, y = load_dataset(name)
    X, y = np.asarray(X, dtype=float), np.asarray(y)
    minority = pd.Series(y).value_counts().index[-1]
    evidence = []
    for seed in range(2):
        synthetic = PlainSMOTE(random_state=seed).fit_resample(X, y)[0][len(X) :]
        attack = NaiveDistinguisher(protocol="published", random_state=seed)
        evidence.append(attack.run(synthetic, X[y == minority]).evidence)
    means = pd.concat(evidence).mean()
    assert abs(means["precision"] - precision) <= 0.05 and abs(means["recall"] - recall) <= 0.02
