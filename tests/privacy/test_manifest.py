"""A release travels with its guarantee, and the guarantee with the bytes it was given for."""

import json
import os
from itertools import count
from threading import Thread

import pandas as pd
import pytest

from oversafe._core.errors import InputError
from oversafe.data import read_table
from oversafe.data.io.files import write_file
from oversafe.privacy import Guarantee, Manifest, read_manifest, vouched, write_release
from oversafe.privacy.signing import manifest as module
from oversafe.privacy.signing.manifest import checksum, manifest_path

MADE, REAL = pd.DataFrame({"x": [1, 2]}), pd.DataFrame({"x": [3, 4]})
PROVEN = Guarantee.pure(1.0, "Laplace")


@pytest.fixture
def path(tmp_path, monkeypatch):
    """Where a release goes, with keys of its own."""
    monkeypatch.setenv("OVERSAFE_KEYS", str(tmp_path / "keys"))
    (tmp_path / "out").mkdir()
    return tmp_path / "out" / "release.csv"


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


@pytest.mark.parametrize("stop", ["render", "replace"])
def test_an_old_release_keeps_its_manifest_until_a_new_table_takes_its_place(path, monkeypatch, stop):
    write_release(MADE, path, PROVEN, {})
    for options in ({"separator": "ab"}, {"decimal": ";"}):
        with pytest.raises(InputError):
            write_release(REAL, path, PROVEN, {}, **options)
    with pytest.raises(InputError):
        write_release(REAL[[]], path, PROVEN, {})

    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    if stop == "render":
        monkeypatch.setattr("oversafe.data.io._csv.render", full)
    else:
        monkeypatch.setattr("pathlib.Path.replace", full)
    with pytest.raises(InputError, match="No space left"):
        write_release(REAL, path, PROVEN, {})
    assert read_table(path).equals(MADE)
    # Just before the new table takes its place the old manifest is gone.
    assert manifest_path(path).exists() == (stop == "render")
    if stop == "render":
        assert vouched(path).voucher.by == "you"


# ------------------------------------------------------------------------------------------ two writers, one path


@pytest.mark.parametrize("step", ["write_file", "write_text"])
@pytest.mark.parametrize("before", [True, False])
def test_a_manifest_is_of_the_bytes_that_its_writer_wrote(path, monkeypatch, step, before):
    """Another release is written to the path around each step; a manifest is then right, or seen to be another's."""
    own, turns = getattr(module, step), count()

    def interrupted(*arguments, **options):
        first = next(turns) == 0
        if first and before:
            write_release(REAL, path, Guarantee.none("real rows"), {})
        done = own(*arguments, **options)
        if first and not before:
            write_release(REAL, path, Guarantee.none("real rows"), {})
        return done

    monkeypatch.setattr(module, step, interrupted)
    write_release(MADE, path, PROVEN, {})
    try:
        status = vouched(path).guarantee.status
    except InputError as error:
        assert "belongs to other contents" in str(error)
    else:
        assert (status == "proven") == read_table(path).equals(MADE)


def test_writers_at_once_leave_no_manifest_that_counts_beside_other_bytes(path):
    for _ in range(40):
        writers = [
            Thread(target=write_release, args=(REAL, path, Guarantee.none("real rows"), {})),
            Thread(target=write_release, args=(MADE, path, PROVEN, {})),
        ]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        try:
            status = vouched(path).guarantee.status
        except InputError as error:
            assert "belongs to other contents" in str(error)
        else:
            assert (status == "proven") == read_table(path).equals(MADE)


@pytest.mark.parametrize("name", ["t.csv", "t.tsv.gz", "t.parquet"])
def test_what_is_hashed_is_what_lies_there(tmp_path, name):
    assert write_file(MADE, tmp_path / name) == checksum(tmp_path / name)


# ------------------------------------------------------------------------------------------ what is no manifest


@pytest.mark.parametrize(
    "settings",
    [{"x": float("inf")}, {"x": {"y": [float("nan")]}}, {("a",): 1}, {"x": "y" * 4_000_000}],
)
def test_settings_that_no_manifest_can_hold_are_refused_before_anything_is_written(path, settings):
    write_release(MADE, path, PROVEN, {})
    before = {file: file.read_bytes() for file in path.parent.iterdir()}
    with pytest.raises(InputError, match="nothing was written") as refused:
        write_release(REAL, path, PROVEN, settings)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 300
    assert {file: file.read_bytes() for file in path.parent.iterdir()} == before


@pytest.mark.parametrize("place", ['"guarantee": {', '"status": "proven"', '"sha256": "', '"value": "'])
def test_a_field_that_stands_twice_is_refused(path, place):
    write_release(MADE, path, PROVEN, {})
    text = manifest_path(path).read_text()
    name = place.partition(":")[0]
    manifest_path(path).write_text(text.replace(place, f"{name}: null, {place}", 1))
    with pytest.raises(InputError, match="stands in it twice"):
        read_manifest(path)


def test_a_folder_in_a_manifests_place_is_one_sentence_and_nothing_is_written(path):
    manifest_path(path).mkdir()
    with pytest.raises(InputError, match=r"cannot be replaced .*nothing was written"):
        write_release(MADE, path, PROVEN, {})
    assert not path.exists()


@pytest.mark.skipif(os.name != "posix", reason="links are those of Unix")
def test_links_are_replaced_and_what_they_lead_to_stays(path, tmp_path):
    for link in (path, manifest_path(path)):
        (tmp_path / f"kept-{link.name}").write_text("kept")
        link.symlink_to(tmp_path / f"kept-{link.name}")
    write_release(MADE, path, PROVEN, {})
    assert (
        vouched(path).voucher.by == "you" and not path.is_symlink() and not manifest_path(path).is_symlink()
    )
    assert all(kept.read_text() == "kept" for kept in tmp_path.glob("kept-*"))
