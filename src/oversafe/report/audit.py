"""Attacking a release with whatever material is at hand."""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from oversafe.attack import AttackResult
from oversafe.attack.copies import is_copy
from oversafe.attack.release_attacks import (
    AUDIT_SEED,
    AttackStep,
    ClassTables,
    attack_steps,
    attacked_classes,
    check_attacks,
    class_tables,
    own_attack_steps,
)
from oversafe.data import Schema, read_table
from oversafe.data.column import value_key, value_keys
from oversafe.data.files import write_text
from oversafe.data.labels import check_class_count
from oversafe.errors import InputError
from oversafe.privacy import Guarantee, read_manifest
from oversafe.report.cells import percent
from oversafe.report.kept import KeptSteps
from oversafe.report.law import CRITERIA, assess
from oversafe.report.linkage import linkage_headline, why_not_at_all
from oversafe.report.picture import picture, shown_record, side_by_side
from oversafe.report.verdict import Finding, Verdict, columns_read, judge
from oversafe.text import shorten

_FORMAT = "oversafe-audit"
FORMAT_VERSION = 1
_NO_MANIFEST = "the release came without a manifest, so nothing is known of how it was made"
# How long the attacks take in comparison, for the time that is left. The first two need the release alone, the
# next two the real table too, the others also a holdout.
_WORK = {
    "ReconSMOTE": 6.0,
    "DistinSMOTE": 1.0,
    "ExactCopies": 0.5,
    "NaiveDistinguisher": 4.0,
    "SinglingOut (univariate)": 1.5,
    "SinglingOut (multivariate)": 1.5,
    "Linkability": 1.5,
    "AttributeInference": 1.5,
    "ClosestRecord": 1.0,
}
_ALONE, _WITH_REAL = 2, 4


@dataclass(frozen=True, repr=False)
class Audit:
    """What an outsider can read out of a release, and the verdict.

    Parameters
    ----------
    verdict : Verdict
        Red, amber or green, and why.
    findings : tuple of Finding
        The highest risk first.
    guarantee : Guarantee
        What the release itself promises.
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

    def to_dict(self) -> dict[str, Any]:
        """Return the audit as plain values for JSON, as :meth:`json_schema` describes them."""
        return {
            "format": _FORMAT,
            "version": FORMAT_VERSION,
            "verdict": {"level": self.verdict.level, "sentence": self.verdict.sentence},
            "release": plain(self.facts),
            "guarantee": self.guarantee.to_dict(),
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
                for c in assess(self.findings, self.guarantee)
            ],
            "not_run": dict(self.not_run),
            "warnings": list(self.warnings),
            "seconds": round(self.seconds, 3),
            "stopped": self.stopped,
            "settings": plain(self.settings),
        }

    @staticmethod
    def json_schema() -> dict[str, Any]:
        """Return the JSON Schema of :meth:`to_json`."""
        from importlib.resources import files

        text = (
            files("oversafe.report")
            .joinpath("schemas", f"audit-{FORMAT_VERSION}.schema.json")
            .read_text("utf-8")
        )
        return dict(json.loads(text))

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the audit as JSON, and write it when a path is given."""
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)
        if path is not None:
            write_text(text + "\n", path)
        return text

    def to_html(self, path: str | Path | None = None) -> str:
        """Return the audit as a page that needs no network, and write it when a path is given."""
        from oversafe.report.page import audit_page

        text = audit_page(self)
        if path is not None:
            write_text(text, path)
        return text

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
    release: pd.DataFrame | str | Path,
    label: str,
    *,
    real: pd.DataFrame | str | Path | None = None,
    holdout: pd.DataFrame | str | Path | None = None,
    guarantee: Guarantee | None = None,
    time_limit: float | None = None,
    on_progress: Callable[[str, float], None] | None = None,
    name: str | None = None,
    resume: str | Path | None = None,
    attacks: Sequence[Any] | None = None,
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
        What the release promises; read from its manifest when the release is a file that has one.
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
    own = check_attacks(attacks)
    settings = repeat_settings({"release": release, "real": real, "holdout": holdout}, label, time_limit)
    if isinstance(release, str | Path):
        if (
            guarantee is None
            and "://" not in str(release)
            and (manifest := read_manifest(release)) is not None
        ):
            guarantee = manifest.guarantee
        name = name or file_name(release)
        release = read_table(release)
    if guarantee is None:
        guarantee = Guarantee.none(_NO_MANIFEST)
    real = read_table(real) if isinstance(real, str | Path) else real
    holdout = read_table(holdout) if isinstance(holdout, str | Path) else holdout
    release, real, holdout = (_named(table) for table in (release, real, holdout))
    material = _Material.of(release, label, real, holdout)
    kept = None if resume is None else KeptSteps(Path(resume), (release, real, holdout), label)

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
        done += _WORK.get(title.partition(" on ")[0], 1.0)
        try:
            finding = _find(step) if kept is None or step.is_own else kept.run(title, partial(_find, step))
        except KeyboardInterrupt:
            # What was found so far is worth its report; what was not tried is named in it.
            not_run[title] = "the audit was stopped during it"
            stopped = True
            continue
        if finding is not None:
            findings.append(finding)
            results.append(finding.result)
    findings.sort(key=lambda f: (f.result.risk, f.result.interval[0], f.certain_records), reverse=True)
    return Audit(
        judge(findings, guarantee),
        tuple(findings),
        guarantee,
        not_run,
        material.warnings,
        {"name": name or "the release", **material.facts()},
        time.monotonic() - start,
        stopped,
        settings,
    )


def _named(table: Any) -> Any:
    """Return a table whose columns are named by text, as schemas and reports name them."""
    if not isinstance(table, pd.DataFrame) or all(isinstance(name, str) for name in table.columns):
        return table
    return table.set_axis([str(name) for name in table.columns], axis=1)


def repeat_settings(sources: Mapping[str, Any], label: str, time_limit: float | None) -> dict[str, Any]:
    """Return what it takes to repeat an audit; of a database's address, without its password."""
    import platform
    from importlib.metadata import version

    named = {what: source for what, source in sources.items() if isinstance(source, str | Path)}
    return {
        "oversafe": version("oversafe"),
        "python": platform.python_version(),
        **{package: version(package) for package in ("numpy", "pandas", "scikit-learn")},
        "label": label,
        "time_limit": time_limit,
        "seed": AUDIT_SEED,
        **_method_of(named.get("release")),
        **{what: without_password(source) for what, source in named.items()},
        "sha256": {what: digest for what, source in named.items() if (digest := _sha256(source)) is not None},
    }


def _method_of(release: str | Path | None) -> dict[str, str]:
    """Return how a release was made, if its manifest says so."""
    if release is None or "://" in str(release):
        return {}
    try:
        manifest = read_manifest(release)
    except InputError:
        # Told when the guarantee is read from it.
        return {}
    method = None if manifest is None else manifest.settings.get("method")
    return {} if method is None else {"method": str(method)}


def without_password(source: str | Path) -> str:
    """Return a file's name, or a database's address without its password."""
    return re.sub(r"(://[^/:@]*):[^/@]*@", r"\1@", str(source))


def _sha256(source: str | Path) -> str | None:
    """Return the fingerprint of a file; a folder or a database has none."""
    if "://" in str(source) or not Path(source).is_file():
        return None
    with Path(source).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class _Material:
    """The tables of an audit, checked against one another."""

    release: pd.DataFrame
    label: str
    real: pd.DataFrame | None
    holdout: pd.DataFrame | None
    columns: list[str]
    warnings: tuple[str, ...]

    @classmethod
    def of(
        cls, release: pd.DataFrame, label: str, real: pd.DataFrame | None, holdout: pd.DataFrame | None
    ) -> _Material:
        tables = {"release": release, "real table": real, "holdout": holdout}
        schema = Schema.infer(release, label=label)
        warnings = [
            f"column {name!r} seems to hold {schema[name].naming}; "
            "no release should carry it, and it was left out of the attacks"
            for name in schema.naming_columns
        ]
        columns = [c.name for c in schema.features if c.name not in schema.naming_columns]
        for what, table in tables.items():
            if table is None:
                continue
            if what != "release":
                Schema.infer(table, label=label)
                missing = [c for c in columns if c not in table.columns]
                if missing:
                    warnings.append(
                        f"the {what} has no column {missing[0]!r}; only shared columns were compared"
                    )
                    columns = [c for c in columns if c in table.columns]
            for name in table.select_dtypes("number").columns.intersection(columns):
                if np.isinf(table[name].to_numpy(dtype=float, na_value=np.nan)).any():
                    raise InputError(
                        f"column {name!r} of the {what} has infinite values; remove them or mark them as missing"
                    )
            if (gaps := table[label].isna()).any():
                raise InputError(
                    f"{int(gaps.sum())} rows of the {what} have no label in {label!r} "
                    f"(first: row {int(np.argmax(gaps)) + 1}); drop or label them"
                )
        if not columns:
            raise InputError(
                "the tables share no column besides the label; give tables with the same columns"
            )
        classes = {what: set(value_keys(t[label])) for what, t in tables.items() if t is not None}
        for what, found in classes.items():
            if what != "holdout":
                check_class_count(
                    len(found), len(tables[what]), f"the label column {label!r} of the {what} has"
                )
        if real is not None and len(classes["real table"]) < 2:
            raise InputError(
                f"the real table has one class only ({_shown_class(real[label].iloc[0])}); give it with all its classes"
            )
        if real is None and len(classes["release"]) < 2:
            raise InputError(
                f"the label column {label!r} has one class only ({_shown_class(release[label].iloc[0])}); "
                "give the release with all its classes, or the real table too (--real)"
            )
        if real is not None and not classes["release"] & classes["real table"]:
            raise InputError(
                f"the release and the real table share no class in {label!r}; give the same label column"
            )
        if real is not None and holdout is not None:
            named = [*columns, label]
            again = int(is_copy(holdout[named], real[named]).sum())
            if again > len(holdout) / 2:
                warnings.append(
                    f"{again} of the {len(holdout)} rows of the holdout stand in the real table too; if they are the "
                    "same people, the holdout cannot show what chance gives"
                )
        return cls(release, label, real, holdout, columns, tuple(warnings))

    def facts(self) -> dict[str, Any]:
        counts = self.release[self.label].value_counts()
        return {
            "rows": len(self.release),
            "columns": len(self.columns),
            "label": self.label,
            "classes": {str(k): int(v) for k, v in counts.items()},
            "real_rows": None if self.real is None else len(self.real),
            "holdout_rows": None if self.holdout is None else len(self.holdout),
            "not_released": [c for c in self.real.columns if c not in self.release.columns]
            if self.real is not None
            else [],
        }

    def attacked_classes(self) -> list[str]:
        """The classes whose records are at risk."""
        return attacked_classes(
            self.release[self.label], None if self.real is None else self.real[self.label]
        )

    def work(self) -> float:
        """How much the attacks will take together, if all can be run."""
        n = _ALONE if self.real is None else _WITH_REAL if self.holdout is None else len(_WORK)
        return max(1, len(self.attacked_classes())) * sum(list(_WORK.values())[:n])


def _steps(
    material: _Material, results: list[AttackResult], not_run: dict[str, str], own: Sequence[Any]
) -> Iterator[AttackStep]:
    if material.real is None:
        not_run["ExactCopies"] = "it needs the real table (--real)"
    attacked = material.attacked_classes()
    for label in sorted(set(value_keys(material.release[material.label])) - set(attacked)):
        not_run[f"every attack on class {label!r}"] = (
            "it is the largest class of the real table, and oversampling adds rows to the smaller ones; its real rows, "
            "if they stand in the release, stand there as they are"
        )
    not_run |= why_not_at_all(material.real is not None, material.holdout is not None)
    tables = (material.release, material.real, material.holdout)
    classes = [class_tables(label, material.label, material.columns, tables) for label in attacked]
    yield from attack_steps(classes, results, not_run)
    yield from own_attack_steps(own, classes, not_run)


def _find(step: AttackStep) -> Finding | None:
    """Run an attack and say what it found."""
    result = step.run()
    if result is None:
        return None
    if step.is_own:
        gain = f"{result.risk:.0%} over guessing (95 % interval {result.interval[0]:.0%} to {result.interval[1]:.0%})"
        return Finding(result, f"An attack of your own gains {gain} on class {step.tables.label!r}.")
    known = {"ReconSMOTE": _reconstructed, "DistinSMOTE": _distinguished, "ExactCopies": _copied}
    if result.name in known:
        return known[result.name](result, step.tables)
    return Finding(result, linkage_headline(result, step.tables.label))


def _reconstructed(result: Any, tables: ClassTables) -> Finding:
    found, label = len(result.records), tables.label
    if tables.real is None:
        certain = found
        headline = f"{_people(found)} of class {label!r} can be computed from the released rows alone"
    else:
        certain, total = result.details["recovered"], result.details["distinct_real"]
        headline = (
            f"{certain} of the {total} real records of class {label!r} "
            "can be computed from the released rows alone"
        )
    if columns := columns_read([Finding(result, headline, certain)]):
        headline += f", {columns}"
    if (wrong := found - int((result.evidence.get("real_row", np.zeros(found)) >= 0).sum())) and certain:
        headline += f"; {wrong} more that were computed are no real records"
    headline += "."
    shown = shown_record(tables.release, result)
    return Finding(
        result,
        headline,
        certain,
        picture(tables.release, result, tables.real, shown),
        side_by_side(result, tables.real, shown),
    )


def _distinguished(result: AttackResult, tables: ClassTables) -> Finding:
    details = result.details
    if details["risk_basis"] == "estimate":
        headline = (
            f"{details['certain']} of the {details['labelled_real']} rows of class {tables.label!r} that look real "
            "are so with certainty: lines of added rows end in them."
        )
    else:
        headline = (
            f"{percent(details['recall'])} of the real rows of class {tables.label!r} are recognised in the released "
            f"table, and {percent(max(0.0, details['recall'] - result.risk))} of the added ones are taken for real."
        )
    if result.interval[0] <= 0:
        headline = f"The rows of class {tables.label!r} do not show which of them are real."
    return Finding(result, headline)


def _copied(result: AttackResult, tables: ClassTables) -> Finding:
    copied, total = result.details["copied"], result.details["distinct_real"]
    return Finding(
        result,
        f"{copied} of the {total} real records of class {tables.label!r} stand in the release as they are.",
    )


def _people(count: int) -> str:
    return "No real record" if count == 0 else "1 real record" if count == 1 else f"{count} real records"


def _shown_class(label: Any) -> str:
    return repr(value_key(label))


def file_name(source: str | Path) -> str:
    """Return what a report calls a file, or a table in a database, whose address may hold a password."""
    return str(source).rpartition("#")[2] if "://" in str(source) else Path(source).name


def plain(value: Any) -> Any:
    """Return a value as JSON holds it; what is not a finite number becomes null."""
    if isinstance(value, pd.DataFrame):
        return [
            dict(zip(map(str, value.columns), map(plain, row), strict=True))
            for row in value.itertuples(index=False, name=None)
        ]
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | np.ndarray):
        return [plain(v) for v in value]
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    if value is None or value is pd.NaT or value is pd.NA:
        return None
    return str(value)
