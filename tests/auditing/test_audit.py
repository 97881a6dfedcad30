"""The audit runs what the material allows, and says what it could not."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from imblearn.over_sampling import SMOTE
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from oversafe import audit
from oversafe._core.errors import InputError
from oversafe.attack import Attack, AttackResult, Linkability
from oversafe.attack.class_tables import ANOTHER_LABEL
from oversafe.attack.registry import attack_named
from oversafe.auditing.formatting import told_risk
from oversafe.auditing.plan.not_run import what_was_left_out
from oversafe.auditing.tables.align_columns import made_alike
from oversafe.auditing.tables.audit_tables import Material
from oversafe.auditing.tables.identifiers import real_identifiers
from oversafe.cli.outputs import check_page
from oversafe.cli.story import demo_schema
from oversafe.data import load_dataset
from oversafe.data.rows import is_copy
from oversafe.privacy import Guarantee, write_release
from oversafe.protect import SMOTE as OwnSMOTE
from oversafe.protect import HistogramSynthesizer, RandomOverSampler
from oversafe.protect.samplers import oversamplers


@pytest.fixture(scope="module")
def real():
    X, y = load_dataset("breast_cancer")
    return X.assign(diagnosis=y)


@pytest.fixture(scope="module")
def augmented(real):
    X, y = SMOTE(random_state=1).fit_resample(real.drop(columns="diagnosis"), real["diagnosis"])
    return X.assign(diagnosis=y)


def by_name(report):
    return {f.result.name: f for f in report.findings if not f.is_of_largest}


def test_release_alone(augmented):
    report = audit(augmented, "diagnosis")
    assert report.verdict.level == "exposed"
    found = {(f.result.name, f.result.details["class"]): f for f in report.findings}
    assert found["ReconSMOTE", "malignant"].certain_records >= 13
    assert found["ReconSMOTE", "benign"].certain_records == 0
    assert ("DistinSMOTE", "malignant") in found
    assert "real table" in report.not_run["ExactCopies"]


def test_synthetic_rows_of_one_class_alone(augmented, real):
    alone = augmented[len(real) :]
    assert set(alone["diagnosis"]) == {"malignant"}
    records = real[real["diagnosis"] == "malignant"]
    report = audit(alone, "diagnosis")
    assert report.verdict.level == "exposed"
    assert by_name(report)["ReconSMOTE"].certain_records >= 13
    for known in (real, records):
        found = by_name(audit(alone, "diagnosis", real=known))
        assert found["ReconSMOTE"].result.details["precision"] == 1.0
        assert found["ReconSMOTE"].certain_records >= 13
    # Rows of one class that nobody interpolated.
    assert audit(records, "diagnosis").verdict.level == "unproven"


def test_with_the_real_table(augmented, real):
    found = by_name(audit(augmented, "diagnosis", real=real))
    assert found["ReconSMOTE"].result.details["precision"] == 1.0
    assert found["DistinSMOTE"].result.details["precision"] == 1.0
    assert found["DistinSMOTE"].result.details["recall"] == 1.0
    assert found["ExactCopies"].result.details["copied"] == 15


def test_with_a_holdout(augmented, real):
    X, y = load_dataset("breast_cancer_holdout")
    found = by_name(audit(augmented, "diagnosis", real=real, holdout=X.assign(diagnosis=y)))
    assert found["ExactCopies"].result.details["distinct_holdout"] == 197
    assert found["ExactCopies"].result.details["copied_holdout"] == 0


LINKAGE = {
    "SinglingOut (univariate)",
    "SinglingOut (multivariate)",
    "Linkability",
    "AttributeInference",
    "ClosestRecord",
}


@pytest.fixture(scope="module")
def holdout():
    X, y = load_dataset("breast_cancer_holdout")
    return X.assign(diagnosis=y)


def test_linkage_and_similarity_with_a_holdout(augmented, real, holdout):
    report = audit(augmented, "diagnosis", real=real, holdout=holdout)
    found = by_name(report)
    assert LINKAGE | {"NaiveDistinguisher"} <= set(found)
    assert list(report.not_run) == ["every other attack on class 'benign'"]
    for name in ("Linkability", "AttributeInference", "ClosestRecord"):
        assert found[name].result.interval[0] > 0.1, name
    for name in ("ClosestRecord", "NaiveDistinguisher"):
        assert "15 of the 15 real records" in found[name].result.details["warning"], name
    assert "no evidence of privacy" in found["NaiveDistinguisher"].headline
    text = str(report)
    assert all(name in text for name in LINKAGE)
    page = report.to_html()
    assert "Low similarity is no evidence of privacy" in page and "linked through the release" in page
    again = audit(augmented, "diagnosis", real=real, holdout=holdout)
    assert [f.result.risk for f in again.findings] == [f.result.risk for f in report.findings]


def test_a_holdout_of_the_same_people_is_noticed(augmented, real, holdout):
    assert not audit(augmented, "diagnosis", real=real, holdout=holdout, time_limit=0).warnings
    same = audit(
        augmented, "diagnosis", real=real, holdout=real.sample(frac=0.5, random_state=0), time_limit=0
    )
    assert any("stand in the real table too" in warning for warning in same.warnings)


def test_linkage_is_not_run_without_a_holdout(augmented, real):
    report = audit(augmented, "diagnosis", real=real)
    assert LINKAGE & set(by_name(report)) == {"ClosestRecord"} and "NaiveDistinguisher" in by_name(report)
    reason = next(reason for name, reason in report.not_run.items() if "Linkability" in name)
    assert "--holdout" in reason and "--real" not in reason
    alone = audit(augmented, "diagnosis")
    assert any("--real" in reason and "--holdout" in reason for reason in alone.not_run.values())


def test_a_private_release_stays_protected_with_a_holdout(real, holdout):
    """The rows are seeded, so that the outcome is no chance; the guarantee is that of the unseeded method."""
    X, y = real.drop(columns="diagnosis"), real["diagnosis"]
    synthesizer = HistogramSynthesizer(1.0, schema=demo_schema(), n_bins=4).fit(X, y)
    seeded = HistogramSynthesizer(1.0, schema=demo_schema(), n_bins=4, random_state=0).fit(X, y)
    X_new, y_new = seeded.sample(class_counts={"benign": 300, "malignant": 300})
    report = audit(
        X_new.assign(diagnosis=y_new),
        "diagnosis",
        real=real,
        holdout=holdout,
        guarantee=synthesizer.guarantee_,
    )
    assert set(by_name(report)) >= LINKAGE and report.verdict.level == "protected"
    assert "no released row is a real record" in report.not_run["NaiveDistinguisher on class 'malignant'"]


def test_a_table_with_one_column(real, holdout):
    tables = [table[["mean_radius", "diagnosis"]] for table in (real, real, holdout)]
    report = audit(tables[0], "diagnosis", real=tables[1], holdout=tables[2])
    assert "one column" in report.not_run["Linkability on class 'malignant'"]
    assert "SinglingOut (univariate)" in by_name(report)


def test_what_is_done_is_kept_when_the_audit_is_stopped(augmented, real, holdout, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Linkability, "run", stop)
    report = audit(augmented, "diagnosis", real=real, holdout=holdout)
    assert "ReconSMOTE" in by_name(report) and report.verdict.level == "exposed"
    assert "stopped during" in report.not_run["Linkability on class 'malignant'"]
    assert "stopped before" in report.not_run["ClosestRecord on class 'malignant'"]
    assert report.stopped and json.loads(report.to_json())["stopped"]


def test_synthetic_rows_alone_are_enough(augmented, real):
    synthetic = augmented.iloc[len(real) :]
    report = audit(synthetic, "diagnosis", real=real)
    assert by_name(report)["ReconSMOTE"].result.details["recall"] >= 0.85
    assert "DistinSMOTE" not in by_name(report)


def test_rounded_rows_are_not_said_to_be_nobodys():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(np.round(rng.normal(50, 9, size=(400, 8)), 2), columns=list("abcdefgh"))
    X, y = SMOTE(random_state=0).fit_resample(table, np.arange(400) < 40)
    report = audit(X.round(2).assign(y=np.where(y, "ill", "well")), "y")
    assert report.verdict.level == "exposed" and "read out of this table" in report.verdict.sentence
    assert "values are rounded" in report.not_run["DistinSMOTE on class 'ill'"]


def test_copied_rows_are_exposed(real):
    X, y = RandomOverSampler(random_state=0).fit_resample(real.drop(columns="diagnosis"), real["diagnosis"])
    report = audit(X.assign(diagnosis=y), "diagnosis", real=real)
    assert report.verdict.level == "exposed"
    assert by_name(report)["ExactCopies"].result.risk == pytest.approx(1, abs=0.01)


def test_one_real_row_in_a_synthetic_release_is_certain():
    rng = np.random.default_rng(0)
    real, made = (
        pd.DataFrame(rng.normal(size=(300, 3)), columns=list("abc")).assign(y=np.arange(300) < 60)
        for _ in range(2)
    )
    clean = audit(made, "y", real=real)
    assert clean.verdict.level == "unproven"
    made.iloc[0] = real.iloc[0]
    found = audit(made, "y", real=real, guarantee=Guarantee.pure(1.0, "a theorem"))
    assert by_name(found)["ExactCopies"].certain_records == 1
    assert found.verdict.level == "exposed"
    assert (
        found.verdict.sentence == "1 real record of the attacked classes stands in the release word for word."
    )


def test_records_that_a_release_avoids_expose_it():
    """Of 512 kinds of people about two thirds are in the release; the avoided ones are all found by any seed."""
    rng = np.random.default_rng(0)
    real, holdout, made = (
        pd.DataFrame(rng.integers(0, 8, (600, 3)), columns=list("abc")).assign(
            y=np.where(rng.random(600) < 0.4, "ill", "well")
        )
        for _ in range(3)
    )
    report = audit(made[~is_copy(made, real)], "y", real=real, holdout=holdout)
    copies = {f.result.details["class"]: f for f in report.findings if f.result.name == "ExactCopies"}
    found = copies["ill"]
    others = found.result.details["copied_holdout"] / found.result.details["distinct_holdout"]
    total = found.result.details["distinct_real"]
    assert found.headline == (
        f"The release avoids the real records of class 'ill': it holds 0 of the {total} different ones, and "
        f"{round(100 * others)} % of the records of people who had no part. So a missing record hints "
        "that the person took part."
    )
    assert found.certain_records == 0 and found.result.interval[0] > 0.1
    assert report.verdict.level == "exposed" and "avoids the real records" in report.verdict.sentence
    (entry,) = [
        each
        for each in json.loads(report.to_json())["findings"]
        if each["attack"] == "ExactCopies" and each["details"]["class"] == "ill"
    ]
    assert entry["details"]["avoided"] is True and entry["threat"] == "membership"
    assert entry["criteria"] == ["linkability", "inference"]
    assert "avoids the real records" in report.to_html()
    assert "avoids the real records" in " ".join(str(report).split())
    # Rows that are missing under their own label are chosen for it, so that their absence elsewhere says nothing.
    assert "avoided" not in copies[ANOTHER_LABEL].result.details


def test_why_the_largest_class_is_not_attacked(real, augmented):
    kept = audit(augmented, "diagnosis", real=real, time_limit=0).not_run[
        "every other attack on class 'benign'"
    ]
    assert "oversampling adds rows to the smaller ones" in kept
    X, y = HistogramSynthesizer(1.0, random_state=0).fit_resample(
        real.drop(columns="diagnosis"), real["diagnosis"]
    )
    made = audit(X.assign(diagnosis=y), "diagnosis", real=real, time_limit=0).not_run
    assert "oversampling" not in made["every other attack on class 'benign'"]
    assert "without the real table every class is attacked" in made["every other attack on class 'benign'"]


def test_rows_that_agree_by_chance_are_not_held_against_a_release():
    rng = np.random.default_rng(0)
    real = pd.DataFrame(rng.integers(0, 2, (500, 4)), columns=list("abcd")).assign(y=rng.random(500) < 0.2)
    X, y = HistogramSynthesizer(5.0, random_state=0).fit_resample(real[list("abcd")], real["y"])
    report = audit(X.assign(y=y), "y", real=real)
    assert by_name(report)["ExactCopies"].result.interval[0] < 0.1
    assert report.verdict.level != "exposed"


def test_an_untouched_table_is_not_called_reconstructed(real):
    report = audit(real, "diagnosis")
    assert all(f.certain_records == 0 for f in report.findings)
    assert report.verdict.level == "unproven"


def test_guarantee_comes_from_the_manifest(real, tmp_path):
    path = tmp_path / "release.parquet"
    write_release(real, path, Guarantee.none("these are real rows"), {})
    assert audit(path, "diagnosis").guarantee == Guarantee.none("these are real rows")


def test_mixed_kinds_text_labels_three_classes_and_missing_values():
    rng = np.random.default_rng(3)
    n = 400
    real = pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "b": rng.normal(size=n),
            "c": rng.normal(size=n),
            "age": rng.integers(20, 90, n),
            "ward": rng.choice(["n", "s"], n),
            "gap": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "y": np.repeat(["common", "rare", "rarest"], [350, 30, 20]),
        }
    )
    numbers = real[["a", "b", "c", "age"]]
    X, y = SMOTE(random_state=0).fit_resample(numbers, real["y"])
    release = X.assign(ward=rng.choice(["n", "s"], len(X)), gap=np.nan, y=y)
    report = audit(release, "y", real=real)
    found = {(f.result.name, f.result.details["class"]): f for f in report.findings}
    for label in ("rare", "rarest"):
        assert found["ReconSMOTE", label].certain_records > 0, label
    assert ("ReconSMOTE", "common") not in found
    json.loads(report.to_json())


def test_time_limit(augmented):
    report = audit(augmented, "diagnosis", time_limit=0)
    assert not report.findings and all("time limit" in r for n, r in report.not_run.items() if "Recon" in n)


def test_what_is_written(augmented, real, tmp_path):
    report = audit(augmented, "diagnosis", real=real)
    page = report.to_html(tmp_path / "r.html")
    figures = json.loads(report.to_json(tmp_path / "r.json"))
    assert (tmp_path / "r.html").read_text() == page and len(page) < 3_000_000
    assert figures["release"]["classes"] == {"benign": 300, "malignant": 300}
    assert "EXPOSED" in str(report) and "\x1b" not in str(report)
    assert "srcdoc" in report._repr_html_()


def test_hostile_names_and_values_are_only_text():
    markup = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>']
    hostile = [*markup, "=cmd|'/c calc'!A1", "x" * 10_000, "😀 عربي"]
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(320, 5)), columns=hostile)
    y = pd.Series(np.where(np.arange(320) < 20, "<b>rare</b>", "{{ 7 * 7 }}"))
    X_new, y_new = SMOTE(random_state=0).fit_resample(X, y)
    page = audit(X_new.assign(label=y_new), "label", real=X.assign(label=y)).to_html()
    # One script: the page's own, which the policy names by its hash.
    assert page.count("<script") == 1 and "<script>alert" not in page
    assert "<img" not in page and "<b>rare" not in page
    assert "{{ 7 * 7 }}" in page and "x" * 200 not in page


@pytest.mark.parametrize(
    "relabel",
    [
        lambda y: (y == "malignant").astype(float),
        lambda y: y == "malignant",
        lambda y: pd.to_datetime(np.where(y == "malignant", "2021-01-01", "2022-01-01")),
        lambda y: y.astype("category"),
        lambda y: y.map({"malignant": "ill\x0b\x1b[2J", "benign": "[/b]"}),
    ],
    ids=["floats", "booleans", "dates", "categories", "control characters"],
)
def test_labels_of_any_kind(augmented, real, relabel):
    release = augmented.assign(diagnosis=relabel(augmented["diagnosis"]))
    original = real.assign(diagnosis=relabel(real["diagnosis"]))
    report = audit(release, "diagnosis", real=original)
    assert by_name(report)["ReconSMOTE"].certain_records >= 13
    assert "\x1b" not in str(report) and "\x0b" not in report.to_html()


def test_the_same_class_in_different_dtypes(augmented, real):
    release = augmented.assign(diagnosis=(augmented["diagnosis"] == "malignant").astype(float))
    original = real.assign(diagnosis=(real["diagnosis"] == "malignant").astype(int))
    assert by_name(audit(release, "diagnosis", real=original))["ReconSMOTE"].certain_records >= 13


def test_a_class_that_is_not_in_the_release(augmented, real):
    report = audit(augmented.query("diagnosis == 'benign'"), "diagnosis", real=real)
    assert "no row of it" in report.not_run["every attack on class 'malignant'"]
    assert [f.result.details["class"] for f in report.findings] == ["benign"]
    assert report.verdict.level == "exposed"


def test_without_an_attack_none_is_said_to_have_failed(augmented):
    report = audit(augmented, "diagnosis", time_limit=0)
    assert report.verdict.sentence == "No attack could be run on this table, and it carries no guarantee."
    proven = audit(augmented, "diagnosis", time_limit=0, guarantee=Guarantee.pure(1.0, "a theorem"))
    assert proven.verdict.sentence.startswith("No attack could be run, but the release carries a guarantee.")


def test_people_of_the_largest_class_are_people_too(real):
    rng = np.random.default_rng(0)
    ill = real["diagnosis"] == "malignant"
    moved = real.loc[ill].assign(
        **{name: rng.normal(real[name].mean(), real[name].std(), ill.sum()) for name in real.columns[:-1]}
    )
    report = audit(pd.concat([moved, real[~ill]]), "diagnosis", real=real)
    assert report.verdict.level == "exposed"
    assert report.verdict.sentence == (
        "300 different real records of class 'benign', the largest, stand in the release word for word."
    )
    assert report.findings[0].is_of_largest and report.findings[0].certain_records == 300
    page = report.to_html()
    assert "and 300 of the largest class, as they are" in page
    assert "ExactCopies found 300 real records in the release." in page
    # One of them is one of them.
    moved = real.assign(**{name: rng.permutation(real[name]) for name in real.columns[:-1]})
    assert audit(moved, "diagnosis", real=real).verdict.level == "unproven"
    moved.iloc[-1] = real[~ill].iloc[-1]
    report = audit(moved, "diagnosis", real=real)
    assert report.verdict.sentence == (
        "1 real record of class 'benign', the largest, stands in the release word for word."
    )


def test_of_an_oversampled_table_the_rare_class_comes_first(augmented, real):
    report = audit(augmented, "diagnosis", real=real)
    assert report.verdict.sentence == (
        "15 real records were read out of this table with certainty, in all 10 columns. 15 of the 15 real records of "
        "the attacked classes and 300 of the 300 real records of class 'benign', the largest, stand in it as they are."
    )
    read = [f.is_of_largest for f in report.findings if f.certain_records]
    assert read == sorted(read) and sum(read) == 1
    page = report.to_html()
    assert "ReconSMOTE read 15 real records out of the release." in page


def test_classes_that_are_not_everywhere(augmented, real):
    extra = augmented.assign(diagnosis=augmented["diagnosis"].where(augmented.index > 20, "other"))
    X, y = load_dataset("breast_cancer_holdout")
    holdout = X.assign(diagnosis=y).query("diagnosis == 'benign'")
    report = audit(extra, "diagnosis", real=real, holdout=holdout)
    assert "no such class" in report.not_run["every attack on class 'other'"]
    assert any("holdout has no row" in reason for reason in report.not_run.values())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: (t, "nope"), "no column 'nope'"),
        (lambda t: (t.assign(diagnosis=t["diagnosis"].where(t.index != 2)), "diagnosis"), "row 3"),
        (lambda t: (t.head(0), "diagnosis"), "no rows"),
    ],
)
def test_bad_input(real, change, message):
    with pytest.raises(InputError, match=message):
        audit(*change(real))


@pytest.mark.data
@pytest.mark.parametrize(("name", "recall"), [("yeast_me2", 0.99), ("ecoli", 0.40)])
def test_published_figures(name, recall, data_folder):
    """The paper's figures, through files as a person would use them, on a scaled table."""
    X, y = load_dataset(name)
    X = pd.DataFrame(MinMaxScaler((-1, 1)).fit_transform(X), columns=X.columns)
    real = X.assign(target=y)
    recalls = []
    for seed in range(5):
        X_new, y_new = SMOTE(random_state=seed).fit_resample(X, y)
        augmented = X_new.assign(target=y_new)
        found = by_name(audit(augmented, "target", real=real))
        assert found["DistinSMOTE"].result.details["precision"] == 1.0
        assert found["DistinSMOTE"].result.details["recall"] == 1.0
        synthetic = pd.concat([augmented.iloc[: len(X)].query("target == 0"), augmented.iloc[len(X) :]])
        recon = by_name(audit(synthetic, "target", real=real))["ReconSMOTE"].result
        assert recon.details["precision"] == 1.0
        recalls.append(recon.details["recall"])
    assert np.mean(recalls) >= recall, recalls


def test_rows_that_chance_gives_are_not_told_from_the_others():
    rng = np.random.default_rng(0)

    def people(n):
        columns = {name: rng.choice(["a", "b", "c"], n) for name in ("one", "two", "three", "four")}
        return pd.DataFrame(columns).assign(y=np.where(np.arange(n) % 4 == 0, "rare", "usual"))

    # Nobody's rows went into the release, and every real row is in it all the same.
    found = audit(people(1200), "y", real=people(400), holdout=people(400))
    assert "no more than chance" in found.not_run["NaiveDistinguisher on class 'rare'"]
    assert found.verdict.level == "unproven"
    # Half of it are the real rows themselves, with a number that nobody else has.
    real, holdout, made = (people(400).assign(weight=lambda t: rng.normal(size=len(t))) for _ in range(3))
    kept = audit(pd.concat([real, made], ignore_index=True), "y", real=real, holdout=holdout)
    assert "NaiveDistinguisher" in [finding.result.name for finding in kept.findings]


@pytest.mark.parametrize("scaler", [StandardScaler, MinMaxScaler])
def test_a_real_table_in_other_units_does_not_clear_a_release(real, scaler):
    X, y = real.drop(columns="diagnosis"), real["diagnosis"]
    scaled = scaler().set_output(transform="pandas").fit_transform(X)
    X_new, y_new = SMOTE(random_state=0).fit_resample(scaled, y)
    release = X_new.assign(diagnosis=y_new)
    report = audit(release, "diagnosis", real=real)
    assert report.verdict == audit(release, "diagnosis").verdict and report.verdict.level == "exposed"
    assert "same units" in report.warnings[0] and "'mean_radius'" in report.warnings[0]
    # In both directions, and not where the units are the same.
    swapped = audit(
        release,
        "diagnosis",
        real=MinMaxScaler().set_output(transform="pandas").fit_transform(X).assign(diagnosis=y),
    )
    assert swapped.verdict.level == "exposed"
    assert not audit(release, "diagnosis", real=scaled.assign(diagnosis=y)).warnings


def test_other_units_that_cover_the_same_range_do_not_clear_a_release():
    rng = np.random.default_rng(1)
    y = pd.Series(np.where(rng.random(600) < 0.12, "ill", "well"))
    X = pd.DataFrame(rng.beta(2, 2, (600, 5)).round(4), columns=list("abcde"))
    scaled = MinMaxScaler().set_output(transform="pandas").fit_transform(X)
    for table in (scaled, X.assign(a=X["a"] * 1.05)):
        made, labels = SMOTE(random_state=0).fit_resample(table, y)
        report = audit(made.assign(y=labels), "y", real=X.assign(y=y))
        assert report.verdict.level == "exposed" and "same units" in report.warnings[0]
    # What was rounded is where it was, and noise is no unit.
    made, labels = SMOTE(random_state=0).fit_resample(X, y)
    for moved in (made.round(2), made + rng.normal(size=made.shape) * 0.01):
        assert Material.of(moved.assign(y=labels), "y", X.assign(y=y), None).same_units


def test_one_column_in_other_units(augmented, real):
    report = audit(augmented.assign(mean_radius=augmented["mean_radius"] * 100), "diagnosis", real=real)
    assert report.verdict.level == "exposed" and "'mean_radius', so this" in report.warnings[0]
    # In the other columns the records are the same.
    assert by_name(report)["ExactCopies"].result.details["copied"] == 15


def test_records_that_are_not_in_the_real_table_are_told(augmented, real):
    other = real.assign(**{c: real[c].sample(frac=1, random_state=0).to_numpy() for c in real.columns[:5]})
    found = by_name(audit(augmented, "diagnosis", real=other))["ReconSMOTE"]
    assert found.certain_records == 0 and "another table" in found.headline


@pytest.mark.parametrize(
    ("wrong", "told"),
    [(1, "1 record was computed and is not in"), (2, "2 records were computed and are not in")],
)
def test_one_record_is_told_in_the_singular(wrong, told):
    evidence = pd.DataFrame({"age": 1.0, "columns_read": 1, "real_row": [-1] * wrong})
    details = {"distinct_real": 5, "columns": 1, "columns_estimated": ()}
    result = AttackResult("ReconSMOTE", "reconstruction", 0.0, (0.0, 0.5), evidence, details)
    assert f"{told} the real table" in attack_named(result.name).headline(result, "ill", 0)


@pytest.mark.parametrize("changed", [lambda x: x.round(1), lambda x: x * 1.001], ids=["rounded", "scaled"])
def test_near_copies_are_exposed_without_a_holdout(real, changed):
    numbers = list(real.columns[:-1])
    report = audit(real.assign(**changed(real[numbers])), "diagnosis", real=real)
    assert report.verdict.level == "exposed", report.verdict


def test_identifiers_are_in_the_verdict(real):
    named = real.assign(patient=[f"P{100000 + i}" for i in range(len(real))])
    report = audit(named, "diagnosis")
    assert "'patient'" in report.verdict.sentence and "no release should" in report.verdict.sentence
    exposed = audit(named, "diagnosis", real=real)
    assert exposed.verdict.sentence.startswith("15 different real records of the attacked classes")
    assert "'patient'" in exposed.verdict.sentence


def test_every_column_that_a_table_lacks_is_named(augmented, real):
    report = audit(augmented, "diagnosis", real=real.drop(columns=["mean_radius", "mean_area"]))
    assert "'mean_radius', 'mean_area'" in report.warnings[0]


def test_the_table_without_the_label_is_named(augmented, real):
    with pytest.raises(InputError, match="the real table has no column 'diagnosis'"):
        audit(augmented, "diagnosis", real=real.rename(columns={"diagnosis": "label"}))
    with pytest.raises(InputError, match="guarantee = 'proven'"):
        audit(augmented, "diagnosis", guarantee="proven")


def test_an_audit_is_written_for_its_owner_alone(augmented, tmp_path):
    report = audit(augmented, "diagnosis")
    report.to_html(tmp_path / "a.html")
    report.to_json(tmp_path / "a.json")
    assert all((tmp_path / name).stat().st_mode & 0o077 == 0 for name in ("a.html", "a.json"))
    # What it replaces the next time is its own.
    check_page("--report", tmp_path / "a.html")


def test_a_risk_that_may_be_chance_is_told_as_that():
    result = AttackResult("SinglingOut", "singling-out", 0.08, (0.0, 0.2), pd.DataFrame())
    assert told_risk(result) == "8 % (not surely above chance)"
    assert told_risk(replace(result, interval=(0.01, 0.2))) == "8 %"


@pytest.fixture(scope="module")
def with_gaps():
    """A real table with gaps, text and two large classes, and what SMOTE makes of it."""
    rng = np.random.default_rng(0)
    n = 460
    table = pd.DataFrame(
        {
            "height": rng.normal(170, 10, n).round(1),
            "dose": rng.exponential(3, n).round(2),
            "cost": rng.exponential(1000, n).round(2),
        }
    ).mask(rng.random((n, 3)) < 0.05)
    table["town"] = rng.choice(["A", "B"], n)
    table["group"] = np.repeat(["x", "y", "z"], [200, 200, 60])
    with pytest.MonkeyPatch.context() as patched:
        # All digits, as imbalanced-learn has them.
        patched.setattr(oversamplers, "_decimals", lambda column: None)
        X, y = OwnSMOTE(random_state=0).fit_resample(table.drop(columns="group"), table["group"])
    return table, X.assign(group=y)


def test_gaps_do_not_hide_which_rows_are_real(with_gaps):
    _, release = with_gaps
    report = audit(release, "group")
    assert report.verdict.level == "exposed"
    found = {(f.result.name, f.result.details["class"]): f for f in report.findings}
    told = found["DistinSMOTE", "z"]
    # A row with one value left would not be told.
    assert told.result.risk > 0.9
    assert "'height', 'dose', 'cost'): the former are real, the latter were added." in told.headline
    # What was not used is told, where it is read.
    note = "ReconSMOTE and DistinSMOTE made no use of the column 'town' (not a number)"
    assert note in report.warnings
    assert note in " ".join(str(report).split())
    assert "made no use of the column &#39;town&#39;" in report.to_html()


def test_columns_with_too_many_gaps_are_told_with_how_many():
    def result(name, **why):
        return AttackResult(name, "reconstruction", 0.0, (0.0, 0.0), pd.DataFrame(), {"why_left_out": why})

    gaps = {"crp": "too many missing values: 80 of 90", "bmi": "too many missing values: 70 of 90"}
    assert what_was_left_out(
        [result("ReconSMOTE", **gaps), result("DistinSMOTE", **gaps, town="not a number")]
    ) == [
        "ReconSMOTE and DistinSMOTE made no use of the columns 'crp', 'bmi' (too many missing values: 80 of 90, 70 "
        "of 90)",
        "DistinSMOTE made no use of the column 'town' (not a number)",
    ]


def test_a_class_without_added_rows_has_none_to_tell_from_the_real_ones(with_gaps):
    real, release = with_gaps
    report = audit(release, "group", real=real)
    assert [f.result.details["class"] for f in report.findings if f.result.name == "DistinSMOTE"] == ["z"]
    assert report.not_run["DistinSMOTE on class 'y'"].startswith("all its rows are real")
    # Real records are counted in the columns that were compared, and the sentence says so.
    reconstructed = next(f for f in report.findings if f.result.name == "ReconSMOTE")
    distinct = reconstructed.result.details["distinct_real"]
    told = f"of the {distinct} real records of class 'z' that differ in the 3 columns compared"
    assert told in reconstructed.headline


def test_what_may_be_chance_is_not_called_nothing():
    details = {"risk_basis": "truth", "recall": 0.5, "precision": 0.4}
    result = AttackResult("DistinSMOTE", "distinguishing", 0.49, (0.0, 0.53), pd.DataFrame(), details)
    assert attack_named(result.name).headline(result, "a", 0) == (
        "50 % of the real rows of class 'a' are recognised in the released table, and 1 % of the added ones are taken "
        "for real; with so few rows that may be chance."
    )


class Failing(Attack):
    def run(self, release, real, holdout=None):
        raise ValueError("no such column")


def test_an_own_attack_that_fails_is_told():
    X, y = load_dataset("breast_cancer")
    table = X.assign(diagnosis=y)
    with pytest.warns(UserWarning, match="the attack Failing was left out: .*no such column"):
        audit(table.head(60), "diagnosis", real=table.head(60), attacks=[Failing()], time_limit=20)
    with pytest.raises(InputError, match="give a list"):
        audit(table.head(60), "diagnosis", real=table.head(60), attacks=Failing())


@pytest.mark.parametrize("with_holdout", [False, True])
def test_copies_are_found_under_other_labels(real, with_holdout):
    held = np.arange(len(real)) % 3 == 0
    table, holdout = real[~held], real[held] if with_holdout else None
    names = {"benign": "malignant", "malignant": "benign"}
    for release in (table.replace({"diagnosis": names}), table.replace({"diagnosis": {"malignant": "ill"}})):
        report = audit(release, "diagnosis", real=table, holdout=holdout)
        assert report.verdict.level == "exposed" and "under another label" in report.verdict.sentence
    # 1 and "1" are one label, whatever the others are.
    coded = table.assign(diagnosis=(table["diagnosis"] == "benign").astype(int))
    shuffled = coded.assign(
        **{c: coded[c].sample(frac=1, random_state=0).to_numpy() for c in coded.columns[:5]}
    )
    report = audit(shuffled, "diagnosis", real=coded.astype({"diagnosis": str}), holdout=None)
    assert "label" not in report.verdict.sentence


@pytest.mark.parametrize(
    "written",
    [
        lambda t: t.assign(ward=t["ward"] + " "),
        lambda t: t.assign(ward=t["ward"].map({"A1": "x", "A2": "y"})),
        lambda t: t.assign(at=t["at"].dt.tz_localize("Europe/Berlin")),
        lambda t: t.assign(at=t["at"].dt.normalize()),
        lambda t: t.assign(ward=None),
        lambda t: t.assign(at=pd.NaT),
        lambda t: t.assign(mean_radius=np.nan),
        lambda t: t.assign(mean_radius=t["mean_radius"].mean()),
        lambda t: t.assign(ward=t["ward"].map({"A1": "A2", "A2": "A1"})),
        lambda t: t.assign(at=t["at"] - pd.Timedelta(hours=2)),
        lambda t: t.assign(mean_radius=t["mean_radius"] * 1.1).sample(frac=0.9, random_state=0),
    ],
    ids=[
        "space",
        "codes",
        "zone",
        "day",
        "no text",
        "no date",
        "no number",
        "mean",
        "swapped",
        "UTC",
        "units",
    ],
)
def test_one_column_that_is_written_otherwise_hides_no_copies(real, written):
    rng = np.random.default_rng(0)
    at = pd.Timestamp("2024-05-01") + pd.to_timedelta(rng.integers(1, 10**7, len(real)), unit="s")
    real = real.assign(ward=rng.choice(["A1", "A2"], len(real)), at=at)
    report = audit(written(real), "diagnosis", real=real)
    copied = by_name(report)["ExactCopies"].result.details["copied"]
    assert report.verdict.level == "exposed" and "word for word" in report.verdict.sentence and copied >= 12
    assert any("so this was not compared" in warning for warning in report.warnings)


def test_dates_are_not_said_to_be_written_otherwise_for_the_zone_of_a_holdout(real):
    def dated(seed):
        at = np.random.default_rng(seed).integers(1, 10**7, len(real))
        return real.assign(at=pd.Timestamp("2024-05-01") + pd.to_timedelta(at, unit="s"))

    zoned = dated(2).assign(at=lambda t: t["at"].dt.tz_localize("UTC"))
    assert made_alike(dated(0), dated(1), zoned, "diagnosis").why_apart == ()


def test_identifiers_of_real_people_expose_a_release(real):
    rng = np.random.default_rng(0)
    mixed = real.assign(
        **{c: real[c].sample(frac=1, random_state=i).to_numpy() for i, c in enumerate(real.columns[:-1])}
    )
    accounts = [f"DE{number}" for number in rng.integers(10**15, 10**16, len(real))]
    report = audit(mixed.assign(account=accounts[::-1]), "diagnosis", real=real.assign(account=accounts))
    assert report.verdict.level == "exposed" and "315 identifiers of real people" in report.verdict.sentence
    numbers = pd.Series(rng.integers(10**17, 10**18, len(real)))
    report = audit(mixed.assign(account=numbers), "diagnosis", real=real.assign(account=numbers.astype(str)))
    assert "315 identifiers of real people" in report.verdict.sentence
    # Numbers that run from 1 are in every table.
    numbered = [f"P{i:05d}" for i in range(len(real))]
    report = audit(mixed.assign(account=numbered), "diagnosis", real=real.assign(account=numbered))
    assert report.verdict.level != "exposed" and "identifiers of real people" not in report.verdict.sentence


def names(numbers):
    """Names of three words with a number behind them."""
    letters = "abcdefghijklmnopqrst"
    return [f"{letters[n % 20]}a {letters[n // 20 % 20]}e {letters[n // 400 % 20]}o{n % 89}" for n in numbers]


@pytest.mark.parametrize("kind", [names, lambda n: [t.replace(" ", ".") + "@mail.de" for t in names(n)]])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_names_and_addresses_of_real_people_expose_a_release(kind, share):
    drawn = np.random.default_rng(0).permutation(8000)
    real, others = kind(drawn[:400]), kind(drawn[400:800])
    n = int(share * 400)
    release, table = pd.DataFrame({"who": real[:n] + others[n:]}), pd.DataFrame({"who": real})
    told = real_identifiers(release, table, ["who"])
    assert told == ((f"{n} identifiers of real people in 'who'",) if n else ())
    upper = release.assign(who=release["who"].str.upper() + " ")
    assert real_identifiers(upper, table, ["who"]) == told


def test_numbers_of_rows_codes_and_blanks_are_no_identifiers_of_real_people():
    counted = pd.DataFrame({"id": np.arange(1, 601)})
    for numbers in (np.r_[1:501, 90001:90101], np.r_[1:600, 99999]):
        assert real_identifiers(counted, pd.DataFrame({"id": numbers}), ["id"]) == ()
        # Of people, if those of the far end stand there too.
        assert real_identifiers(pd.DataFrame({"id": numbers[50:]}), pd.DataFrame({"id": numbers}), ["id"])
    rng = np.random.default_rng(0)
    codes = rng.choice(90000, 500, replace=False)
    release, table = pd.DataFrame({"code": codes[:40]}), pd.DataFrame({"code": np.repeat(codes, 4)})
    assert real_identifiers(release, table, ["code"]) == ()
    # Customers have several rows, and their accounts longer numbers.
    accounts = [
        frame.astype(object).map(lambda code: f"DE{code * 98_765_432_101:020d}") for frame in (release, table)
    ]
    assert real_identifiers(*accounts, ["code"]) == ("40 identifiers of real people in 'code'",)
    assert real_identifiers(counted, pd.DataFrame({"id": [np.nan] * 30}), ["id"]) == ()
    zeros = pd.DataFrame({"id": [f"{code:07d}" for code in codes]})
    assert real_identifiers(zeros, pd.DataFrame({"id": codes}), ["id"])
