"""Only a guarantee that somebody trusted vouches for makes a release protected; whoever else states one is named."""

import copy
import html
import json
from dataclasses import replace

import pytest
from jsonschema import Draft202012Validator

from oversafe import audit
from oversafe._core.errors import InputError
from oversafe.auditing import Audit, run
from oversafe.cli.story import demo_schema
from oversafe.data import load_dataset, write_table
from oversafe.privacy import (
    Guarantee,
    Keys,
    Ledger,
    UnsignedWarning,
    Vouched,
    read_manifest,
    vouched,
    write_release,
)
from oversafe.privacy.signing.keys import fingerprint
from oversafe.privacy.signing.manifest import Manifest, checksum, manifest_path
from oversafe.privacy.signing.vouching import FAULTY_VERSIONS, known_fault
from oversafe.protect import HistogramSynthesizer


@pytest.fixture(scope="module")
def real():
    X, y = load_dataset("breast_cancer")
    return X.assign(diagnosis=y)


@pytest.fixture(scope="module")
def made(real):
    """A private release in memory, of seeded rows so that no outcome is chance, and the unseeded method's guarantee."""
    X, y = real.drop(columns="diagnosis"), real["diagnosis"]
    synthesizer = HistogramSynthesizer(1.0, schema=demo_schema(), n_bins=3).fit(X, y)
    seeded = HistogramSynthesizer(1.0, schema=demo_schema(), n_bins=3, random_state=0).fit(X, y)
    X_new, y_new = seeded.sample(class_counts={"benign": 60, "malignant": 60})
    return X_new.assign(diagnosis=y_new), synthesizer.guarantee_


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """A folder for the keys of each test."""
    monkeypatch.setenv("OVERSAFE_KEYS", str(tmp_path / "own"))


@pytest.fixture
def release(made, tmp_path):
    """One's own release as a file, with its manifest."""
    path = tmp_path / "release.csv"
    write_release(made[0], path, made[1], {"method": "histograms"})
    return path


@pytest.fixture
def stranger(tmp_path):
    """Somebody else's keys."""
    keys = Keys(tmp_path / "stranger")
    keys.own_or_new("Ward 7")
    return keys


@pytest.fixture
def from_elsewhere(made, tmp_path, stranger):
    """Somebody else's release."""
    path = tmp_path / "elsewhere.csv"
    write_release(made[0], path, made[1], {"method": "histograms"}, keys=stranger)
    return path


def quickly(path, **options):
    """An audit without attacks, which leaves the verdict to the guarantee."""
    return audit(path, "diagnosis", time_limit=0, **options)


def put(release, manifest):
    manifest_path(release).write_text(manifest.to_json() if isinstance(manifest, Manifest) else manifest)


def is_unproven(report, by, *words):
    """Nobody is believed, in the verdict, in the guarantee that the report speaks of, and in all its forms."""
    assert (report.verdict.level, report.voucher.by, report.voucher.counts) == ("unproven", by, False)
    assert report.guarantee.status != "proven" and json.loads(report.to_json())["right_at_most"] is None
    text, page = " ".join(str(report).split()), html.unescape(report.to_html())
    for word in words:
        assert word in report.verdict.sentence and word in text and word in page
    assert "Proven: eps" not in text and "Proven: eps" not in page and "<dd>Proven<" not in page
    assert "bounds what any attack can gain" not in page
    Draft202012Validator(Audit.json_schema()).validate(json.loads(report.to_json()))


def test_ones_own_release_is_protected_and_the_report_says_what_that_allows(release):
    report = quickly(release)
    assert report.verdict.level == "protected" and report.voucher.by == "you"
    told = (
        "Proven: epsilon = 1 differential privacy for every record, replace-one neighbours.",
        "This is signed by you.",
        "Whoever would guess right half of the time which of two records is a person's guesses right at most 73 % of "
        "the time with the release at hand.",
    )
    text, page = " ".join(str(report).split()), html.unescape(report.to_html())
    for sentence in told:
        assert sentence in report.verdict.sentence and sentence in text and sentence in page
    for source in report.limits.sources:
        assert source in page
    assert "needs epsilon of 3 and delta of 1e-05 or less" in page
    plain = json.loads(report.to_json())
    assert plain["right_at_most"] == pytest.approx(0.7310585786)
    assert plain["vouched"] == {"by": "you", "counts": True, "sentence": "This is signed by you."}
    assert (
        plain["limits"] == {"max_epsilon": 3.0, "max_delta": 1e-5}
        and plain["settings"]["method"] == "histograms"
    )
    Draft202012Validator(Audit.json_schema()).validate(plain)


def test_the_attacks_are_run_on_ones_own_release_too(release, real):
    report = audit(release, "diagnosis", real=real)
    assert report.verdict.level == "protected" and report.findings


# ------------------------------------------------------------------------------------------ who is not believed


def test_a_raw_table_beside_a_borrowed_manifest(release, real):
    real.to_csv(release, index=False)
    with pytest.raises(InputError, match="belongs to other contents"):
        quickly(release)
    put(release, replace(Manifest.from_json(manifest_path(release).read_text()), sha256=checksum(release)))
    is_unproven(quickly(release), "changed", "the signature does not fit the manifest")


def test_a_signature_that_was_moved_to_another_file(release, made, tmp_path):
    other = tmp_path / "other.csv"
    write_release(made[0].head(100), other, made[1], {})
    put(other, replace(read_manifest(other), signature=read_manifest(release).signature))
    is_unproven(quickly(other), "changed", "the signature does not fit the manifest")


def test_an_invented_manifest(release, made):
    plain = {"version": 1, "file": "", "sha256": checksum(release), "guarantee": made[1].to_dict()}
    put(release, json.dumps(plain))
    is_unproven(quickly(release), "unsigned", "the manifest is unsigned, so that anybody may have written it")
    put(release, json.dumps({**plain, "version": 2}))
    with pytest.raises(InputError, match="a field is missing or changed"):
        quickly(release)


def test_a_manifest_of_version_1_is_read_and_counts_as_unsigned(release):
    plain = json.loads(manifest_path(release).read_text())
    without = {key: value for key, value in plain.items() if key not in ("seal", "signature")}
    for changed in ({**without, "version": 1}, {**plain, "version": 1}, {**plain, "signature": None}):
        put(release, json.dumps(changed))
        assert read_manifest(release).signature is None
        is_unproven(quickly(release), "unsigned", "the manifest is unsigned")


def test_a_strangers_release_until_the_key_is_trusted_and_after_it_is_distrusted(from_elsewhere, stranger):
    public = stranger.own().public_key
    digits = fingerprint(public)
    report = quickly(from_elsewhere)
    is_unproven(
        report, "unknown", f"signed by an unknown key (fingerprint {digits}) that calls itself 'Ward 7'"
    )
    assert f"oversafe keys trust NAME {from_elsewhere}.manifest.json" in html.unescape(report.to_html())

    Keys().trust("Ward 7 in Lyon", public, digits)
    trusted = quickly(from_elsewhere)
    assert trusted.verdict.level == "protected" and trusted.voucher.by == "trusted"
    assert "Ward 7 in Lyon, whom you trust, states this." in trusted.verdict.sentence

    Keys().distrust("Ward 7 in Lyon")
    is_unproven(
        quickly(from_elsewhere),
        "distrusted",
        f"signed by a key that you distrust, that of 'Ward 7 in Lyon' (fingerprint {digits})",
    )


def test_a_distrusted_key_of_ones_own(release):
    Keys().distrust(Keys().own().public_key)
    is_unproven(quickly(release), "distrusted", "signed by a key that you distrust")


def test_somebody_elses_key_over_ones_own_statement(release, stranger):
    put(release, read_manifest(release).signed(stranger))
    is_unproven(quickly(release), "unknown", "signed by an unknown key")


def test_a_signature_that_names_another_signer(release, from_elsewhere, stranger):
    """Neither may a stranger's signature stand under one's own key, nor one's own value under a stranger's."""
    own = read_manifest(release).signature
    for changed in ({"public_key": own.public_key}, {"name": own.name}, {"value": own.value}):
        manifest = read_manifest(from_elsewhere)
        put(from_elsewhere, replace(manifest, signature=replace(manifest.signature, **changed)))
        is_unproven(quickly(from_elsewhere), "changed", "the signature does not fit")
        put(from_elsewhere, manifest)


def changes_of(plain, path=()):
    """Yield every place of a manifest with another value of its kind in it, and with the place left out."""
    for key, value in plain.items() if isinstance(plain, dict) else enumerate(plain):
        yield (*path, key), None
        if isinstance(value, dict | list) and value:
            yield from changes_of(value, (*path, key))
        elif isinstance(value, bool) or value is None:
            yield (*path, key), "x"
        elif isinstance(value, int | float):
            yield (*path, key), value / 2 if value else 0.5
        else:
            yield (
                (*path, key),
                "add-remove" if value == "replace-one" else "person" if value == "record" else f"{value}0",
            )


def test_every_field_that_is_edited_or_left_out_is_seen(release, made):
    write_release(
        made[0], release, made[1].assuming("the sun rises"), {"method": "histograms", "n_bins": 3}, "a:1"
    )
    plain = json.loads(manifest_path(release).read_text())
    changes = list(changes_of(plain))
    assert len(changes) > 40 and vouched(release).voucher.counts
    believed = []
    for path, value in changes:
        changed = copy.deepcopy(plain)
        place = changed
        for key in path[:-1]:
            place = place[key]
        if value is None:
            place.pop(path[-1])
        else:
            place[path[-1]] = value
        put(release, json.dumps(changed))
        try:
            if vouched(release).guarantee.status == "proven":
                believed.append((path, value))
        except InputError as error:
            assert "\n" not in str(error)
    assert believed == []


def test_a_field_more_is_refused(release):
    plain = json.loads(manifest_path(release).read_text())
    for place in ((), ("guarantee",), ("signature",)):
        changed = copy.deepcopy(plain)
        target = changed
        for key in place:
            target = target[key]
        target["protected"] = True
        put(release, json.dumps(changed))
        with pytest.raises(InputError, match=r"manifest|guarantee"):
            quickly(release)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: text + " " * 4_000_001,
        lambda text: "[" * 100_000,
        lambda text: text.replace('"epsilon": 1.0', '"epsilon": 1e999'),
        lambda text: text.replace('"settings": {', '"settings": {"a": NaN, '),
        lambda text: text.replace('"version": 2', '"version": true'),
        lambda text: text.replace('"name": "unnamed"', '"name": "<script>alert(1)</script>"'),
        lambda text: text.replace('"name": "unnamed"', '"name": "\\u202eyou"'),
        lambda text: text.replace('"value": "', '"value": "zz'),
        lambda text: text.replace('"public_key": "', '"public_key": ["').replace('",\n    "value', '"],\n    "value'),
    ],
)  # fmt: skip
def test_what_is_no_manifest_is_refused_in_one_sentence(release, spoil):
    put(release, spoil(manifest_path(release).read_text()))
    with pytest.raises(InputError, match=r"manifest|guarantee|epsilon|holder") as refused:
        quickly(release)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 500


@pytest.mark.parametrize("depth", [10, 300, 600, 900, 990])
def test_what_is_nested_deeply_is_refused_or_not_believed(release, depth):
    text = manifest_path(release).read_text()
    put(release, text.replace('"settings": {', '"settings": {"a": ' + "[" * depth + "]" * depth + ", "))
    try:
        assert vouched(release).voucher.by == "changed"
    except InputError as error:
        assert "manifest" in str(error)


def test_versions_with_known_faults_do_not_count_whoever_signs(release):
    manifest = read_manifest(release)
    for version in ("0.1.0", "0.1.7", "0.1"):
        put(release, replace(manifest, oversafe=version).signed())
        is_unproven(
            quickly(release), "faulty", f"the release was made by oversafe {version}, and its guarantees have"
        )
    for version in ("", "new", "<b>"):
        put(release, replace(manifest, oversafe=version).signed())
        is_unproven(quickly(release), "faulty", "does not say which version of oversafe made the release")
    for version in ("0.2.0.dev0", "0.2.0", "0.10.1", "1.0"):
        put(release, replace(manifest, oversafe=version).signed())
        assert quickly(release).verdict.level == "protected"
    assert set(FAULTY_VERSIONS) == {"0.1"} and known_fault("0.1.0") and not known_fault("0.2.0")


# ------------------------------------------------------------------------------------------ whose word it is


def test_the_callers_word_counts_and_is_called_theirs(made):
    report = quickly(made[0], guarantee=made[1])
    assert report.verdict.level == "protected" and report.voucher.by == "caller"
    assert "You state this." in report.verdict.sentence and "You state this." in str(report)
    alone = quickly(made[0])
    assert alone.verdict.level == "unproven" and alone.voucher.by == "nobody"


def test_a_weak_guarantee_is_not_protected_unless_the_setting_says_so(made):
    weak = Guarantee.pure(10.0, "a theorem")
    report = quickly(made[0], guarantee=weak)
    assert report.verdict.level == "unproven"
    assert "its guarantee is weak: epsilon = 10, and 3 or less is asked." in report.verdict.sentence
    assert "at most 99.995 % of the time" in report.verdict.sentence
    assert "bounds what any attack can gain" not in report.to_html()
    allowed = quickly(made[0], guarantee=weak, max_epsilon=10)
    assert allowed.verdict.level == "protected" and "needs epsilon of 10" in allowed.to_html()
    assert json.loads(allowed.to_json())["settings"]["max_epsilon"] == 10
    assert quickly(made[0], guarantee=Guarantee.pure(1.0, "a"), max_epsilon=0.5).verdict.level == "unproven"
    with pytest.raises(InputError, match="max_epsilon = 0 was given"):
        quickly(made[0], max_epsilon=0)


def test_under_add_remove_the_guarantee_is_converted(made):
    for epsilon, level in ((1.5, "protected"), (1.6, "unproven")):
        stated = Guarantee.pure(epsilon, "a theorem", relation="add-remove")
        report = quickly(made[0], guarantee=stated)
        assert report.verdict.level == level
        assert "whether a person's record is in the table" in report.verdict.sentence
        assert "in the table or missing" in html.unescape(report.to_html())


def test_a_holders_name_is_only_text(made, tmp_path):
    path = tmp_path / "r.csv"
    keys = Keys(tmp_path / "firm")
    keys.own_or_new("Smith & Sons' (you)")
    write_release(made[0], path, made[1], {}, keys=keys)
    page = quickly(path).to_html()
    assert "Smith &amp; Sons" in page and "Smith & Sons" not in page


# ------------------------------------------------------------------------------------------ of which bytes


@pytest.mark.parametrize("name", ["release.csv", "release.csv.gz", "release.parquet"])
def test_what_is_vouched_for_is_what_was_read(made, real, tmp_path, monkeypatch, name):
    """The real table stands at the path while the audit reads it, and the release while its manifest is looked at."""
    path, kept = tmp_path / name, tmp_path / f"kept-{name}"
    write_release(made[0], path, made[1], {})
    path.rename(kept)
    write_table(real, path)
    read = run.read_file

    def read_then_swapped(source):
        found = read(source)
        kept.replace(path)
        return found

    monkeypatch.setattr(run, "read_file", read_then_swapped)
    with pytest.raises(InputError, match="belongs to other contents"):
        quickly(path)
    monkeypatch.undo()
    monkeypatch.setenv("OVERSAFE_KEYS", str(tmp_path / "own"))
    report = quickly(path)
    assert report.verdict.level == "protected" and report.voucher.by == "you"
    assert report.settings["sha256"] == {"release": checksum(path)}


def test_the_release_may_be_gone_once_it_was_read(release, real, monkeypatch):
    read = run.read_file

    def read_then_swapped(source):
        found = read(source)
        real.to_csv(source, index=False)
        return found

    monkeypatch.setattr(run, "read_file", read_then_swapped)
    report = quickly(release)
    assert report.voucher.by == "you" and report.facts["rows"] == 120


def test_what_is_vouched_for_another_file_is_the_callers_word(release, real, tmp_path, made):
    raw, said = tmp_path / "raw.csv", vouched(release)
    real.to_csv(raw, index=False)
    own = quickly(release, guarantee=said)
    assert own.voucher.by == "you" and own.settings["method"] == "histograms"
    by_hand = Vouched(made[1], said.voucher)
    for table, stated in ((raw, said), (real, said), (made[0], said), (raw, by_hand), (made[0], by_hand)):
        report = quickly(table, guarantee=stated)
        assert report.voucher.by == "caller" and "You state this." in report.verdict.sentence
        assert "signed by you" not in str(report) and "method" not in report.settings and not report.total


def test_what_does_not_count_does_not_count_for_another_file_either(from_elsewhere, made):
    is_unproven(quickly(made[0], guarantee=vouched(from_elsewhere)), "unknown", "signed by an unknown key")


# ------------------------------------------------------------------------------------------ the ledger


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path / "budget.db", key_file=tmp_path / "ledger.key")
    ledger.create("patients", epsilon=2.5, delta=1e-6)
    return ledger


@pytest.fixture
def paid(made, tmp_path, ledger, stranger):
    """A release that a colleague made, who has the same ledger."""
    path = tmp_path / "paid.csv"
    entry = ledger.charge("patients", made[1])
    write_release(made[0], path, made[1], {}, entry.id, ledger=ledger, keys=stranger)
    return path


def test_the_ledger_vouches_for_what_it_sealed(paid, ledger):
    is_unproven(quickly(paid), "unknown", "signed by an unknown key")
    report = quickly(paid, ledger=ledger)
    assert report.verdict.level == "protected" and report.voucher.by == "ledger"
    total = "With all releases that the budget of 'patients' covers (epsilon = 2.5, delta = 1e-06 in all"
    assert (
        f"The ledger states this, in its entry {read_manifest(paid).ledger_entry}." in report.verdict.sentence
    )
    assert total in report.verdict.sentence and "at most 92 %" in report.verdict.sentence
    assert total in html.unescape(report.to_html()) and json.loads(report.to_json())["total"].startswith(
        total
    )
    put(paid, replace(read_manifest(paid), signature=None))
    assert quickly(paid, ledger=ledger).voucher.by == "ledger"


def test_ones_own_signature_comes_before_the_ledger_which_still_tells_the_total(paid, ledger):
    put(paid, read_manifest(paid).signed())
    report = quickly(paid, ledger=ledger)
    assert report.voucher.by == "you" and "the budget of 'patients'" in report.verdict.sentence


def test_the_ledger_does_not_vouch_for_other_files(paid, ledger, real):
    manifest = read_manifest(paid)
    real.to_csv(paid, index=False)
    for seal in (manifest.seal, None, "0" * 64, "é"):
        put(paid, replace(manifest, sha256=checksum(paid), signature=None, seal=seal))
        is_unproven(
            quickly(paid, ledger=ledger), "unsigned", "and the ledger's seal is not that of this file"
        )


def test_the_ledger_does_not_vouch_where_the_entry_is_another(paid, ledger, made):
    manifest = replace(read_manifest(paid), signature=None)
    other = replace(made[1], caveats=("one more",))
    put(paid, replace(manifest, guarantee=other).sealed(ledger))
    is_unproven(quickly(paid, ledger=ledger), "unsigned", "the ledger's entry states another guarantee")
    unproven = ledger.charge("patients", made[1].weaken("seeded"), unproven="record")
    put(paid, replace(manifest, ledger_entry=unproven.id).sealed(ledger))
    is_unproven(quickly(paid, ledger=ledger), "unsigned", "the ledger's entry has no proven guarantee")
    for entry in (None, "", manifest.ledger_entry + "0"):
        put(paid, replace(manifest, ledger_entry=entry).sealed(ledger))
        is_unproven(quickly(paid, ledger=ledger), "unsigned", "the ledger has no entry for it")


@pytest.mark.parametrize("trusted", [False, True])
def test_a_budget_is_told_of_what_the_ledger_paid_for_alone(paid, ledger, real, stranger, trusted):
    """Whoever can read an entry's name can write it into a manifest."""
    manifest = read_manifest(paid)
    real.to_csv(paid, index=False)
    put(paid, replace(manifest, sha256=checksum(paid)).signed(None if trusted else stranger))
    report = quickly(paid, ledger=ledger)
    assert report.voucher.counts == trusted and report.total == "" and "patients" not in str(report)


def test_another_ledger_does_not_vouch(paid, tmp_path, made):
    other = Ledger(tmp_path / "other.db", key_file=tmp_path / "other.key")
    other.create("patients", epsilon=2.5)
    other.charge("patients", made[1])
    is_unproven(quickly(paid, ledger=other), "unknown", "the ledger has no entry for it")


def test_ledgers_that_share_a_key_seal_differently(tmp_path):
    seals = set()
    for name in ("a.db", "b.db"):
        ledger = Ledger(tmp_path / name, key_file=tmp_path / "shared.key")
        ledger.create("patients", epsilon=1.0)
        seals.add(ledger.seal(b"a manifest"))
    assert len(seals) == 2


def test_a_ledger_that_was_tampered_with_does_not_vouch(paid, ledger, tmp_path, monkeypatch):
    import sqlite3

    connection = sqlite3.connect(tmp_path / "budget.db")
    with connection:
        connection.execute("DROP TRIGGER no_update")
        connection.execute("UPDATE entries SET body = replace(body, '2.5', '9.5') WHERE number = 1")
    connection.close()
    is_unproven(quickly(paid, ledger=ledger), "unknown", "the ledger was tampered with")


def test_no_ledger_vouches_for_a_changed_or_distrusted_signature_or_a_faulty_version(paid, ledger, stranger):
    manifest = read_manifest(paid)
    put(paid, replace(manifest, signature=replace(manifest.signature, name="Ann")))
    is_unproven(quickly(paid, ledger=ledger), "changed", "the signature does not fit")
    put(paid, replace(manifest, oversafe="0.1.0", signature=None).sealed(ledger))
    is_unproven(quickly(paid, ledger=ledger), "faulty", "made by oversafe 0.1.0")
    put(paid, manifest)
    Keys().trust("Ward 7", manifest.signature.public_key, manifest.signature.fingerprint)
    Keys().distrust("Ward 7")
    is_unproven(quickly(paid, ledger=ledger), "distrusted", "a key that you distrust")


# ------------------------------------------------------------------------------------------ writing


def test_where_no_key_can_be_kept_a_release_is_unsigned_and_that_is_said(made, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("OVERSAFE_KEYS", str(tmp_path / "file" / "keys"))
    path = tmp_path / "r.csv"
    with pytest.warns(
        UnsignedWarning, match="is not signed, so that no audit will count its guarantee"
    ) as said:
        write_release(made[0], path, made[1], {})
    assert len(said) == 1 and read_manifest(path).signature is None
    monkeypatch.setenv("OVERSAFE_KEYS", str(tmp_path / "own"))
    is_unproven(quickly(path), "unsigned", "the manifest is unsigned")


def test_where_the_ledgers_key_is_gone_the_manifest_is_written_all_the_same(made, tmp_path, ledger):
    entry = ledger.charge("patients", made[1])
    (tmp_path / "ledger.key").unlink()
    with pytest.warns(UnsignedWarning, match="the key of the ledger"):
        write_release(made[0], tmp_path / "r.csv", made[1], {}, entry.id, ledger=ledger)
    assert read_manifest(tmp_path / "r.csv").ledger_entry == entry.id


def test_settings_of_any_kind_are_signed_as_they_are_read_again(made, tmp_path):
    path = tmp_path / "r.csv"
    settings = {
        "a": 1,
        "b": (1.5, None),
        "c": {3: {1}},
        "d": Keys,
        "é": "ü\ud800",
        "f": 0.1 + 0.2,
        "g": 2**70,
    }
    write_release(made[0], path, made[1], settings)
    assert vouched(path).voucher.by == "you"
