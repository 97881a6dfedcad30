"""A release travels with its guarantee, and the guarantee with the bytes it was given for."""

import json

import pandas as pd
import pytest

from oversafe.errors import InputError
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
