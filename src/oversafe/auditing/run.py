"""Attacking a release with whatever material is at hand."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from oversafe._core.errors import InputError, was_interrupted
from oversafe._core.text import shorten
from oversafe.attack import Attack, AttackResult
from oversafe.attack.geometry.reconstruction import ReconstructionResult
from oversafe.attack.registry import UNKNOWN, own_attacks
from oversafe.auditing.anonymisation_criteria import CRITERIA, assess
from oversafe.auditing.certainty import with_certain_records
from oversafe.auditing.checkpoint import KeptSteps
from oversafe.auditing.picture import picture, shown_record, side_by_side
from oversafe.auditing.plan.attack_steps import AttackStep, warn_of_own_attacks
from oversafe.auditing.plan.not_run import what_was_left_out, why_not_at_all, why_not_the_largest
from oversafe.auditing.sources import file_name, repeat_settings
from oversafe.auditing.tables.audit_tables import Material
from oversafe.auditing.to_json import as_json, plain, written
from oversafe.auditing.verdict import Finding, Verdict, in_order, judge
from oversafe.data.infer_objects import settle_table
from oversafe.data.io.files import FileTable, read_file
from oversafe.privacy import Guarantee, Ledger, Vouched, Voucher, vouched
from oversafe.privacy.meaning import LIMITS, Limits, allows_in_all, right_at_most
from oversafe.privacy.signing.vouching import CALLER, NOBODY

_FORMAT = "oversafe-audit"
FORMAT_VERSION = 1
_NO_MANIFEST = "the release came without a manifest, so nothing is known of how it was made"


@dataclass(frozen=True, repr=False)
class Audit:
    """What an outsider can read out of a release, and the verdict.

    Parameters
    ----------
    verdict : Verdict
        Red, amber or green, and why.
    findings : tuple of Finding
        The highest risk first; copies of the largest class after what was read out of the others.
    guarantee : Guarantee
        What counts of what the release promises: not proven where nobody trusted vouches for it.
    not_run : mapping of str to str
        Attacks that were not run, and why.
    warnings : tuple of str
        What was noticed about the table.
    facts : mapping
        The release: name, rows, columns, label, classes.
    seconds : float
        How long the audit took.
    stopped : bool
        Whether it was ended by Ctrl-C, so that attacks are missing.
    settings : mapping
        What it takes to repeat the audit: versions, files with their SHA-256, limits, and the command if there was
        one.
    voucher : Voucher
        Who vouches for the guarantee.
    limits : Limits
        What a guarantee had to keep to.
    total : str
        What all releases that the data set's budget covers allow, where a ledger says so.
    """

    verdict: Verdict
    findings: tuple[Finding, ...]
    guarantee: Guarantee
    not_run: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    stopped: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    voucher: Voucher = NOBODY
    limits: Limits = LIMITS
    total: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the audit as plain values for JSON, as :meth:`json_schema` describes them."""
        return {
            "format": _FORMAT,
            "version": FORMAT_VERSION,
            "verdict": {"level": self.verdict.level, "sentence": self.verdict.sentence},
            "release": plain(self.facts),
            "guarantee": self.guarantee.to_dict(),
            "vouched": {
                "by": self.voucher.by,
                "counts": self.voucher.counts,
                "sentence": self.voucher.sentence,
            },
            "right_at_most": self._right_at_most(),
            "total": self.total,
            "limits": {"max_epsilon": self.limits.max_epsilon, "max_delta": self.limits.max_delta},
            "findings": [
                {
                    "attack": f.result.name,
                    "threat": f.result.threat,
                    "headline": f.headline,
                    "risk": plain(f.result.risk),
                    "interval": plain(f.result.interval),
                    "certain_records": f.certain_records,
                    "details": plain(f.result.details),
                    "evidence": plain(f.result.evidence),
                    "criteria": list(CRITERIA[f.result.threat]),
                }
                for f in self.findings
            ],
            "criteria": [
                {
                    "criterion": c.criterion,
                    "answer": c.answer,
                    "sentence": c.sentence,
                    "attacks": list(c.attacks),
                }
                for c in assess(self.findings, self.guarantee, self.limits)
            ],
            "not_run": dict(self.not_run),
            "warnings": list(self.warnings),
            "seconds": round(self.seconds, 3),
            "stopped": self.stopped,
            "settings": plain(self.settings),
        }

    def _right_at_most(self) -> float | None:
        """Return how often a guess is right at most, where that is proven."""
        if self.guarantee.status != "proven":
            return None
        return right_at_most(self.guarantee.epsilon or 0.0, self.guarantee.delta or 0.0)

    @staticmethod
    def json_schema() -> dict[str, Any]:
        """Return the JSON Schema of :meth:`to_json`."""
        from importlib.resources import files

        text = (
            files("oversafe.auditing")
            .joinpath("schemas", f"audit-{FORMAT_VERSION}.schema.json")
            .read_text("utf-8")
        )
        return dict(json.loads(text))

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the audit as JSON, and write it when a path is given, for its owner alone."""
        return written(as_json(self.to_dict()), path, end="\n", private=True)

    def to_html(self, path: str | Path | None = None) -> str:
        """Return the audit as a page that needs no network, and write it when a path is given, for its owner alone."""
        from oversafe.report.page import audit_page

        return written(audit_page(self), path, private=True)

    def _repr_html_(self) -> str:
        from oversafe.report.page import framed

        return framed("Privacy audit", self.to_html())

    def __repr__(self) -> str:
        name = shorten(str(self.facts.get("name", "a release")), 60)
        return f"<Audit of {name!r}: {self.verdict.level}, {len(self.findings)} findings>"

    def __str__(self) -> str:
        from oversafe.report.terminal import as_text

        return as_text(self)


def audit(
    release: pd.DataFrame | FileTable | str | Path,
    label: str,
    *,
    real: pd.DataFrame | FileTable | str | Path | None = None,
    holdout: pd.DataFrame | FileTable | str | Path | None = None,
    guarantee: Guarantee | Vouched | None = None,
    time_limit: float | None = None,
    on_progress: Callable[[str, float], None] | None = None,
    name: str | None = None,
    resume: str | Path | None = None,
    attacks: Sequence[Any] | None = None,
    ledger: Ledger | None = None,
    max_epsilon: float = LIMITS.max_epsilon,
) -> Audit:
    """Attack a release and say what an outsider gets out of it.

    Parameters
    ----------
    release : DataFrame or path
        The table that is, or will be, handed out.
    label : str
        The column that holds the class.
    real : DataFrame or path, optional
        The table it was made from; the attacks do not use it, but their success is measured against it.
    holdout : DataFrame or path, optional
        Real rows that were not used for the release: what agrees with them agrees by chance.
    guarantee : Guarantee, optional
        What the release promises, by your own word, and the report says so. Without it a manifest beside the file is
        read, and counts where you, somebody you trust or the ledger vouches for it. What
        :func:`oversafe.privacy.vouched` returns is your own word as well, unless ``release`` is that very file.
    time_limit : float, optional
        Seconds after which no further attack is started. Ctrl-C ends the attacks as well; the audit then
        tells what was found until then.
    on_progress : callable, optional
        Called with the name of each step as it starts, and the share of the work that is done, as far as it can be
        told beforehand.
    name : str, optional
        What the report calls the release; a file's own name when not given.
    resume : path, optional
        A folder that keeps what each attack found as it ends, readable by its owner alone. The same audit
        with the same folder goes on where it ended.
    attacks : sequence of Attack, optional
        Attacks of your own, run beside the others on each attacked class: objects of :class:`oversafe.attack.Attack`
        whose ``run(release, real, holdout=None)`` returns an :class:`oversafe.attack.AttackResult`. They need ``real``,
        and are always run anew.
    ledger : Ledger, optional
        A ledger of yours: a manifest that it sealed counts, and the report tells what the data set's budget allows.
    max_epsilon : float
        The weakest guarantee, under replace-one, that may be called protected; one under add-remove is converted.

    Examples
    --------
    >>> from oversafe import audit
    >>> from oversafe.data import load_dataset
    >>> from oversafe.protect import SMOTE
    >>> X, y = load_dataset("breast_cancer")
    >>> X_new, y_new = SMOTE(random_state=0).fit_resample(X, y)
    >>> report = audit(X_new.assign(diagnosis=y_new), "diagnosis", real=X.assign(diagnosis=y))
    >>> report.verdict.level
    'exposed'
    """
    start = time.monotonic()
    own = own_attacks(attacks)
    limits = Limits(max_epsilon)
    given = {"release": release, "real": real, "holdout": holdout}
    given = {what: read_file(t) if isinstance(t, str | Path) else t for what, t in given.items()}
    settings = repeat_settings(given, label, time_limit, max_epsilon)
    sha256 = None
    if isinstance(file := given["release"], FileTable):
        name, sha256 = name or file_name(file.source), file.sha256
        if guarantee is None and sha256 is not None:
            # By the bytes that were read, whatever stands at the path by now.
            guarantee = vouched(file.source, ledger=ledger, sha256=sha256)
    stated = _stated(guarantee, sha256)
    guarantee = stated.guarantee
    if stated.method is not None:
        settings["method"] = stated.method
    total = "" if stated.balance is None else allows_in_all(stated.balance)
    release, real, holdout = (_named(t.table if isinstance(t, FileTable) else t) for t in given.values())
    material = Material.of(release, label, real, holdout)
    tables = (material.release, material.real, material.holdout)
    kept = None if resume is None else KeptSteps(Path(resume), tables, label)

    findings: list[Finding] = []
    results: list[AttackResult] = []
    not_run: dict[str, str] = {}
    stopped = False
    done, all_work = 0.0, material.work()
    for step in _steps(material, results, not_run, own):
        title = step.title
        if stopped:
            not_run[title] = "the audit was stopped before"
            continue
        if time_limit is not None and time.monotonic() - start > time_limit:
            not_run[title] = f"the time limit of {time_limit:g} s had passed"
            continue
        if on_progress is not None:
            on_progress(title, min(1.0, done / all_work))
        done += step.attack.about.work
        try:
            finding = _find(step) if kept is None or step.is_own else kept.run(title, partial(_find, step))
        except (KeyboardInterrupt, SystemError) as error:
            if not was_interrupted(error):
                raise
            # What was found so far is worth its report; what was not tried is named in it.
            not_run[title] = "the audit was stopped during it"
            stopped = True
            continue
        if finding is not None:
            findings.append(finding)
            results.append(finding.result)
    findings = in_order(findings)
    warn_of_own_attacks(own, not_run)
    return Audit(
        judge(
            findings,
            guarantee,
            material.naming,
            material.real_identifiers,
            voucher=stated.voucher,
            limits=limits,
            total=total,
        ),
        tuple(findings),
        guarantee,
        not_run,
        (*material.warnings, *what_was_left_out(results)),
        {"name": name or "the release", **material.facts()},
        time.monotonic() - start,
        stopped,
        settings,
        stated.voucher,
        limits,
        total,
    )


def _stated(guarantee: Guarantee | Vouched | None, sha256: str | None) -> Vouched:
    """Return what counts of a guarantee: the caller's word does, and that there is none needs nobody's."""
    if guarantee is None:
        return Vouched(Guarantee.none(_NO_MANIFEST), NOBODY)
    if isinstance(guarantee, Vouched):
        if guarantee.voucher.counts and (guarantee.sha256 is None or guarantee.sha256 != sha256):
            # Somebody vouches for the bytes of a file; that these are of it is the caller's word.
            return Vouched(guarantee.guarantee, CALLER)
        return guarantee
    if not isinstance(guarantee, Guarantee):
        raise InputError(
            f"guarantee = {guarantee!r} was given; give a Guarantee, such as a protector's guarantee_ or a manifest's"
        )
    return Vouched(guarantee, CALLER)


def _named(table: Any) -> Any:
    """Return a table of settled kinds whose columns are named by text, as schemas and reports name them."""
    if not isinstance(table, pd.DataFrame):
        return table
    table = settle_table(table)
    if all(isinstance(name, str) for name in table.columns):
        return table
    return table.set_axis([str(name) for name in table.columns], axis=1)


def _steps(
    material: Material, results: list[AttackResult], not_run: dict[str, str], own: Sequence[Any]
) -> Iterator[AttackStep]:
    not_run |= why_not_at_all(material.real is not None, material.holdout is not None)
    for each in material.attacked.largest_tables:
        not_run[f"every other attack on class {each.label!r}"] = why_not_the_largest(each)
    yield from material.attacked.steps(results, not_run, own)


def _find(step: AttackStep) -> Finding | None:
    """Run an attack and say what it found."""
    result, tables = step.run(), step.tables
    if result is None:
        return None
    if step.is_own:
        attack, told = _own_words(step.attack, result, tables.label)
        return Finding(result, told, _attack=attack)
    result, certain = with_certain_records(result, tables)
    told = step.attack.headline(result, tables.label, certain)
    finding = Finding(result, told, certain, _attack=step.attack)
    if not isinstance(result, ReconstructionResult):
        return finding
    record = shown_record(tables.release, result)
    return replace(
        finding,
        points=picture(tables.release, result, tables.truth, record),
        record=side_by_side(result, tables.truth, record),
    )


def _own_words(attack: Attack, result: AttackResult, label: str) -> tuple[Attack, str]:
    """Return an attack and what it says of its result, or one that says nothing of itself where that fails."""
    try:
        attack.rates(result)
        return attack, attack.headline(result, label)
    except Exception:
        # Somebody else's code: what it found is worth its place in the report all the same.
        return UNKNOWN, UNKNOWN.headline(result, label)
