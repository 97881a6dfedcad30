"""One's own key is made once and kept private; others' keys count after their fingerprint was compared."""

import json
import multiprocessing
import os

import pytest

from oversafe._core.errors import InputError
from oversafe.privacy import Keys, Ledger
from oversafe.privacy.signing.keys import UNNAMED, fingerprint, public_key_of

OTHER = "ab" * 32


@pytest.fixture
def keys(tmp_path):
    return Keys(tmp_path / "keys")


def mode(path):
    return path.stat().st_mode & 0o777


def test_the_first_use_makes_a_key_for_its_owner_alone(keys):
    assert keys.own() is None and keys.known() == []
    made = keys.own_or_new()
    assert made.name == UNNAMED and keys.own().public_key == made.public_key == keys.own_or_new().public_key
    assert mode(keys.own_file) == 0o600 and mode(keys.folder) == 0o700
    assert [path.name for path in keys.folder.iterdir()] == ["signing.key"]


def test_a_name_is_given_once(keys):
    made = keys.own_or_new()
    named = keys.own_or_new("Ward 7, Lyon")
    assert named.public_key == made.public_key and keys.own().name == "Ward 7, Lyon"
    assert mode(keys.own_file) == 0o600
    with pytest.raises(InputError, match=r"a signing key of 'Ward 7, Lyon' already"):
        keys.own_or_new("Ward 8")


def test_the_folder_is_the_given_one_or_the_variables_or_the_users(tmp_path, monkeypatch):
    monkeypatch.setenv("OVERSAFE_KEYS", str(tmp_path / "named"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert Keys(tmp_path / "given").folder == tmp_path / "given"
    assert Keys().folder == tmp_path / "named"
    monkeypatch.delenv("OVERSAFE_KEYS")
    assert Keys().folder == tmp_path / "config" / "oversafe" / "keys"


def _made_by_a_process(folder):
    return Keys(folder).own_or_new().public_key


def test_processes_that_start_together_get_one_key(keys):
    with multiprocessing.get_context("fork").Pool(8) as pool:
        assert len(set(pool.map(_made_by_a_process, [keys.folder] * 32, chunksize=1))) == 1
    assert [path.name for path in keys.folder.iterdir()] == ["signing.key"]


def test_a_key_that_another_process_made_meanwhile_stays(keys, monkeypatch):
    first, looks = keys.own_or_new().public_key, []
    own = Keys.own

    def too_early(self):
        looks.append(self)
        return None if len(looks) == 1 else own(self)

    monkeypatch.setattr(Keys, "own", too_early)
    assert keys.own_or_new().public_key == first


@pytest.mark.skipif(os.name != "posix", reason="modes are those of Unix")
@pytest.mark.parametrize("open_to", [0o640, 0o604, 0o660])
def test_a_key_that_others_can_read_is_refused(keys, open_to):
    keys.own_or_new()
    keys.own_file.chmod(open_to)
    with pytest.raises(InputError, match=rf"open to others \(mode {open_to:o}\).*run: chmod 600"):
        keys.own()


@pytest.mark.skipif(os.name != "posix", reason="modes are those of Unix")
@pytest.mark.parametrize("open_to", [0o620, 0o602])
def test_trust_that_others_could_have_written_is_refused(keys, open_to):
    keys.trust("Ward 7", OTHER, fingerprint(OTHER))
    (path,) = (keys.folder / "known").iterdir()
    path.chmod(open_to)
    with pytest.raises(InputError, match="could have you trust their keys"):
        keys.find(OTHER)


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", "null", '{"name": "a", "private_key": "ab"}', "[" * 9999]
)
def test_a_broken_key_file_is_one_sentence(keys, content):
    keys.own_or_new()
    keys.own_file.write_text(content)
    with pytest.raises(InputError, match=r"signing key|key file") as refused:
        keys.own_or_new()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "content", ["", "{}", '{"name": "a", "status": "own"}', '{"name": "<b>", "status": "trusted"}']
)
def test_a_broken_file_of_another_key_is_one_sentence(keys, content):
    keys.trust("Ward 7", OTHER, fingerprint(OTHER))
    next((keys.folder / "known").iterdir()).write_text(content)
    with pytest.raises(InputError, match=r"key file|no key as oversafe writes it"):
        keys.find(OTHER)


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(InputError, match=r"cannot be (read|written)"):
        Keys(tmp_path / "file" / "keys").own_or_new()


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "a" * 61,
        "<b>Ann</b>",
        'Ann"',
        "Ann\nLee",
        "Ann\x1b[2J",
        "Ann\u202eeel",
        "a\x00",
        "{{7*7}}",
        "a`b`",
        7,
    ],
)
def test_names_that_could_be_mistaken_for_something_else(keys, name):
    with pytest.raises(InputError, match="cannot be the name of a key's holder"):
        keys.own_or_new(name)
    with pytest.raises(InputError, match="cannot be the name of a key's holder"):
        keys.trust(name, OTHER, fingerprint(OTHER))
    assert not keys.folder.exists()


@pytest.mark.parametrize("name", ["Ann O'Neil & Co.", "Klinikum Nürnberg (Süd)", "مريم", "आदित्य", "a" * 60])
def test_names_of_people_are_names(keys, name):
    assert keys.own_or_new(name).name == name


def test_trust_asks_for_the_right_fingerprint(keys):
    right = fingerprint(OTHER)
    assert len(right.split()) == 8 and right != fingerprint("ac" * 32)
    for wrong in (fingerprint("ac" * 32), "", right[:-1], right + "0"):
        with pytest.raises(InputError, match="is not that of this key"):
            keys.trust("Ward 7", OTHER, wrong)
    assert keys.find(OTHER) is None
    assert keys.trust("Ward 7", OTHER, right.replace(" ", "").upper()).status == "trusted"
    assert keys.find(OTHER).name == "Ward 7"


def test_a_name_belongs_to_one_trusted_key(keys):
    keys.own_or_new("Ann")
    keys.trust("Ward 7", OTHER, fingerprint(OTHER))
    for name in ("ward 7", "ann"):
        with pytest.raises(InputError, match="is the name of another key"):
            keys.trust(name, "ac" * 32, fingerprint("ac" * 32))
    keys.distrust("WARD 7")
    assert keys.find(OTHER).status == "distrusted"
    keys.trust("Ward 7", "ac" * 32, fingerprint("ac" * 32))
    assert keys.find("ac" * 32).status == "trusted" and keys.find(OTHER).status == "distrusted"
    # Of two keys under one name the one that still counts is meant.
    assert keys.distrust("Ward 7").public_key == "ac" * 32


@pytest.mark.parametrize(
    "who", ["Ann", OTHER, fingerprint(OTHER), fingerprint(OTHER).upper().replace(" ", "")]
)
def test_a_key_is_distrusted_by_name_fingerprint_or_itself(keys, who):
    keys.trust("Ann", OTHER, fingerprint(OTHER))
    assert keys.distrust(who).status == "distrusted"
    with pytest.raises(InputError, match="no key of 'Bob' is known here"):
        keys.distrust("Bob")


def test_ones_own_key_can_be_distrusted(keys):
    own = keys.own_or_new("Ann")
    assert keys.find(own.public_key).status == "own"
    keys.distrust("Ann")
    assert [key.status for key in keys.known()] == ["distrusted"]
    keys.trust("Ann", own.public_key, fingerprint(own.public_key))
    assert keys.find(own.public_key).status == "own"


def test_a_public_key_comes_as_text_or_in_a_file(tmp_path):
    (tmp_path / "key.txt").write_text(f"{OTHER.upper()}\n")
    (tmp_path / "r.csv.manifest.json").write_text(json.dumps({"signature": {"public_key": OTHER}}))
    for given in (OTHER, OTHER.upper(), tmp_path / "key.txt", tmp_path / "r.csv.manifest.json"):
        assert public_key_of(str(given)) == OTHER
    (tmp_path / "other.json").write_text(json.dumps({"signature": {"public_key": 7}}))
    for given in ("abc", tmp_path, tmp_path / "absent", tmp_path / "other.json", "a\0b", "x" * 9999):
        with pytest.raises(InputError, match="is no public key and no file with one"):
            public_key_of(str(given))


# ------------------------------------------------------------------------------------------ whose files they are


def as_somebody_else(monkeypatch):
    """Let the files of the tests belong to a user that is neither this one nor root."""
    uid = os.geteuid()
    for module in ("privacy.signing.keys", "_core.folders"):
        monkeypatch.setattr(f"oversafe.{module}.ROOT", -1)
    monkeypatch.setattr(os, "geteuid", lambda: uid + 1)


@pytest.mark.skipif(os.name != "posix", reason="owners are those of Unix")
def test_a_key_file_of_another_user_is_refused(keys, monkeypatch):
    keys.own_or_new("Ann")
    keys.trust("Ward 7", OTHER, fingerprint(OTHER))
    as_somebody_else(monkeypatch)
    with pytest.raises(InputError, match=r"belongs to another user .* could sign in your name"):
        keys.own()
    keys.own_file.unlink()
    with pytest.raises(InputError, match=r"others can write to the folder"):
        keys.find(OTHER)
    monkeypatch.setattr("oversafe.privacy.signing.keys.check_private", lambda folder: None)
    with pytest.raises(InputError, match=r"belongs to another user .* could have you trust their keys"):
        keys.find(OTHER)


@pytest.mark.skipif(os.name != "posix", reason="modes are those of Unix")
@pytest.mark.parametrize("open_to", [0o777, 0o770, 0o702])
@pytest.mark.parametrize("which", ["above", "keys", "known"])
def test_a_folder_that_others_can_write_is_refused(tmp_path, open_to, which):
    keys = Keys(tmp_path / "above" / "keys")
    keys.own_or_new("Ann")
    keys.trust("Ward 7", OTHER, fingerprint(OTHER))
    folders = {"above": tmp_path / "above", "keys": keys.folder, "known": keys.folder / "known"}
    (keys.folder / "link").symlink_to(keys.folder)
    for seen in (keys, Keys(keys.folder / "link")):
        folders[which].chmod(open_to)
        with pytest.raises(
            InputError, match=rf"others can write to the folder .*\(mode {open_to:o}.*chmod go-w"
        ) as e:
            seen.find(OTHER)
        assert "\n" not in str(e.value)
        if which != "known":
            with pytest.raises(InputError, match="others can write to the folder"):
                seen.own()
        # Nobody can take away what is not theirs from a sticky folder, such as /tmp.
        folders[which].chmod(open_to | 0o1000)
        assert seen.find(OTHER).status == "trusted"
        folders[which].chmod(0o755)
        assert seen.find(OTHER).status == "trusted"


@pytest.mark.skipif(os.name != "posix", reason="modes are those of Unix")
def test_no_key_is_made_in_a_folder_that_others_can_write(tmp_path):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(InputError, match="others can write to the folder"):
        Keys(tmp_path / "open").own_or_new()
    assert not any((tmp_path / "open").iterdir())


@pytest.mark.skipif(os.name != "posix", reason="modes are those of Unix")
@pytest.mark.parametrize("mask", [0o000, 0o002, 0o022])
def test_folders_are_made_for_their_owner_alone_however_open_new_ones_are(tmp_path, monkeypatch, mask):
    before = os.umask(mask)
    try:
        # A ledger's key is kept beside the folder of these.
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
        monkeypatch.delenv("OVERSAFE_KEYS", raising=False)
        Ledger(tmp_path / "budget.db").create("patients", 1.0)
        keys = Keys()
        assert keys.own_or_new("Ann").public_key == keys.own().public_key
    finally:
        os.umask(before)
    assert {mode(folder) for folder in (keys.folder, *keys.folder.parents[:2])} == {0o700}


# ------------------------------------------------------------------------------------------ two of one name


def test_ones_own_key_takes_no_name_of_anothers(keys):
    keys.trust("Ward 7", OTHER, fingerprint(OTHER))
    for name in ("Ward 7", "ward  7", "WARD 7", "\uff37ard 7"):
        with pytest.raises(InputError, match="'Ward 7' is the name of another key"):
            keys.own_or_new(name)
    assert keys.own() is None
    made = keys.own_or_new()
    with pytest.raises(InputError, match="'Ward 7' is the name of another key"):
        keys.own_or_new("Ward 7")
    assert keys.own_or_new("Ann").public_key == made.public_key
    with pytest.raises(InputError, match="'Ann' is the name of another key"):
        keys.trust("ann", "ac" * 32, fingerprint("ac" * 32))


def test_of_two_keys_of_one_name_none_is_distrusted_by_the_name(keys):
    """Names are told apart when a key is trusted; a folder may be older than that, or come from elsewhere."""
    keys.trust("Ward 7", OTHER, fingerprint(OTHER))
    own = keys.own_or_new()
    keys.own_file.write_text(keys.own_file.read_text().replace(UNNAMED, "Ward 7"))
    with pytest.raises(InputError, match="is the name of 2 keys, and nothing was changed") as refused:
        keys.distrust("ward 7")
    assert fingerprint(OTHER) in str(refused.value) and fingerprint(own.public_key) in str(refused.value)
    assert {key.status for key in keys.known()} == {"own", "trusted"}
    assert keys.distrust(fingerprint(OTHER)).public_key == OTHER
    assert keys.find(own.public_key).status == "own"
