"""A release travels with its guarantee, and the guarantee with the bytes it was given for."""

import json

import pandas as pd
import pytest

from oversafe._core.errors import InputError
from oversafe.privacy import Guarantee, Manifest, read_manifest, write_release


def test_release_and_manifest(tmp_path):
    path = tmp_path / "release.csv"
    table = pd.DataFrame({"x": [1, 2], "y": ["a", "b"]})
    written = write_release(table, path, Guarantee.pure(1.0, "Laplace"), {"method": "histograms"})
    assert read_manifest(path) == written
    plain = json.loads((tmp_path / "release.csv.manifest.json").read_text())
    assert plain["version"] == 2 and plain["file"] == "release.csv" and len(plain["sha256"]) == 64
    assert plain["guarantee"]["epsilon"] == 1.0 and plain["settings"] == {"method": "histograms"}


def test_a_manifest_does_not_vouch_for_other_bytes(tmp_path):
    path = tmp_path / "release.csv"
    write_release(pd.DataFrame({"x": [1]}), path, Guarantee.none("real rows"), {})
    path.write_text("x\n2\n")
    with pytest.raises(InputError, match="belongs to other contents"):
        read_manifest(path)


def test_no_manifest(tmp_path):
    assert read_manifest(tmp_path / "alone.csv") is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 1}', '{"version": 2}', '{"version": 3}'])
def test_broken_manifest(text):
    with pytest.raises(InputError, match="manifest"):
        Manifest.from_json(text)


def test_a_manifest_of_another_version_is_refused(tmp_path):
    path = tmp_path / "release.csv"
    written = write_release(pd.DataFrame({"x": [1]}), path, Guarantee.pure(1.0, "Laplace"), {})
    plain = json.loads(written.to_json())
    assert Manifest.from_json(json.dumps(plain)) == written
    for version in (0, 3, None, "2"):
        with pytest.raises(InputError, match="version that this oversafe does not read"):
            Manifest.from_json(json.dumps({**plain, "version": version}))


def test_no_old_manifest_is_left_where_a_new_table_cannot_be_written(tmp_path, monkeypatch):
    path = tmp_path / "release.csv"
    write_release(pd.DataFrame({"x": [1]}), path, Guarantee.pure(1.0, "Laplace"), {})

    def half_written(table, path, **settings):
        path.write_text("x\n2\n")
        raise InputError("the disk is full")

    monkeypatch.setattr("oversafe.privacy.signing.manifest.write_table", half_written)
    with pytest.raises(InputError, match="full"):
        write_release(pd.DataFrame({"x": [2]}), path, Guarantee.pure(1.0, "Laplace"), {})
    assert not (tmp_path / "release.csv.manifest.json").exists()
    assert read_manifest(path) is None
