"""Only a guarantee that somebody trusted vouches for makes a release protected; whoever else states one is named."""

import json

import pytest

from oversafe import audit
from oversafe.data import load_dataset
from oversafe.privacy import write_release
from oversafe.privacy.manifest import checksum, manifest_path
from oversafe.protect import HistogramSynthesizer
from oversafe.report.demo import demo_schema


@pytest.fixture(scope="module")
def real():
    X, y = load_dataset("breast_cancer")
    return X.assign(diagnosis=y)


@pytest.fixture(scope="module")
def made(real):
    """A private release in memory, and its guarantee."""
    X, y = real.drop(columns="diagnosis"), real["diagnosis"]
    synthesizer = HistogramSynthesizer(1.0, schema=demo_schema(), n_bins=3).fit(X, y)
    X_new, y_new = synthesizer.sample(class_counts={"benign": 60, "malignant": 60})
    return X_new.assign(diagnosis=y_new), synthesizer.guarantee_


@pytest.fixture
def release(made, tmp_path):
    """One's own release as a file, with its manifest."""
    path = tmp_path / "release.csv"
    write_release(made[0], path, made[1], {"method": "histograms"})
    return path


def quickly(path, **options):
    return audit(path, "diagnosis", attacks=None, time_limit=0, **options)


def test_a_raw_table_beside_a_borrowed_manifest_is_not_protected(release, real):
    plain = json.loads(manifest_path(release).read_text())
    real.to_csv(release, index=False)
    plain["sha256"] = checksum(release)
    manifest_path(release).write_text(json.dumps(plain))
    assert audit(release, "diagnosis", time_limit=0).verdict.level != "protected"


def test_an_invented_manifest_is_not_protected(release, made):
    plain = {"version": 1, "file": "release.csv", "sha256": checksum(release), "guarantee": made[1].to_dict()}
    manifest_path(release).write_text(json.dumps(plain))
    assert audit(release, "diagnosis", time_limit=0).verdict.level != "protected"


@pytest.mark.parametrize("epsilon", [3.1, 10.0])
def test_a_weak_guarantee_is_not_protected(made, epsilon):
    from oversafe.privacy import Guarantee

    report = audit(made[0], "diagnosis", guarantee=Guarantee.pure(epsilon, "a theorem"), time_limit=0)
    assert report.verdict.level == "unproven"
