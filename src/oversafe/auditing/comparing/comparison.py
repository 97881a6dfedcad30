"""Which protection to choose on one's own table: the cells of a comparison, judged and put into words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from oversafe._core.checks import check_choice
from oversafe.attack import AttackResult
from oversafe.attack.class_tables import rows_in_words
from oversafe.auditing.comparing.trials import ORIGINAL
from oversafe.auditing.comparing.trials import compare as run_cells
from oversafe.auditing.plan.attack_steps import warn_of_own_attacks
from oversafe.auditing.sources import file_name
from oversafe.auditing.to_json import as_json, plain, written
from oversafe.auditing.verdict import (
    EXPOSED_FROM,
    Finding,
    Verdict,
    copies_of_largest,
    judge,
    records_read_out,
)
from oversafe.data.io.files import read_table
from oversafe.measure.fidelity import FIGURES
from oversafe.measure.scores import SCORES
from oversafe.measure.tradeoff import frontier
from oversafe.measure.utility import half_width
from oversafe.privacy import Guarantee

_FORMAT = "oversafe-comparison"
_VERSION = 1
# Settings whose utility differs by less are alike, and the safer one is recommended.
_ALIKE = 0.01
# The AUC of a coin.
_COIN = 0.5
_LEVELS = ("protected", "unproven", "exposed")


@dataclass(frozen=True)
class Setting:
    """One protector with its setting, as it did on the table.

    Parameters
    ----------
    name : str
        The method, and its epsilon if it has one.
    method : str
        The method alone.
    epsilon : float or None
        Its privacy parameter.
    status : str
        "done", "failed" or "pending".
    error : str or None
        Why it failed.
    utility : tuple of float
        The score of classifiers on real rows that were not used, and its 95 % interval.
    privacy : tuple of float
        1 - the risk of the gravest attack, and its interval.
    gravest : str
        That attack and the class.
    verdict : Verdict or None
        As an audit judges it; None for the original table.
    certain_records : int
        Real records of all classes but the largest that were read out of the release with certainty: reconstructed, or
        standing in it as they are.
    guarantee : Guarantee or None
        What a release promises.
    on_frontier : bool
        Whether no other setting is better in both.
    figures : mapping
        All scores, fidelity, seconds and memory.
    attacks : DataFrame
        All attacks with their risks.
    not_run : mapping
        Attacks that were not run, and why.
    useless : str or None
        Why a release is not worth taking, whatever its risk: a class is missing in it, or classifiers learn nothing
        from it.
    suspicion : str or None
        The attack that seems to succeed, where one gains 10 % or more and the interval of its gain is above 0.
    by_fold : Series or None
        The utility of each fold, by "repeat" and "fold".
    copies_of_largest : int
        Real records of the largest class that stand in the release as they are, more than chance explains.
    """

    name: str
    method: str
    epsilon: float | None
    status: str
    error: str | None
    utility: tuple[float, float, float]
    privacy: tuple[float, float, float]
    gravest: str
    verdict: Verdict | None
    certain_records: int
    guarantee: Guarantee | None
    on_frontier: bool
    figures: Mapping[str, Any]
    attacks: pd.DataFrame = field(repr=False)
    not_run: Mapping[str, str] = field(default_factory=dict, repr=False)
    useless: str | None = None
    suspicion: str | None = None
    by_fold: pd.Series | None = field(default=None, repr=False)
    copies_of_largest: int = 0


@dataclass(frozen=True)
class Recommendation:
    """Which setting to take, and why.

    Parameters
    ----------
    setting : str or None
        Its name; None when none can be recommended.
    sentence : str
        The advice in plain words.
    reasons : tuple of str
        Why this one, and why none of those with more utility.
    """

    setting: str | None
    sentence: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """Protectors on one table: utility, risk, guarantee and cost of each, and a recommendation.

    Parameters
    ----------
    settings : tuple of Setting
        Those that were compared, in the order of the grid.
    recommendation : Recommendation
        Which to take.
    original : tuple of float
        The utility of the real table itself, with its interval.
    score : str
        What utility is.
    facts : mapping
        The table: name, rows, columns, label, classes.
    cells : DataFrame
        Everything as it was measured; see :func:`oversafe.auditing.comparing.trials.compare`.
    """

    settings: tuple[Setting, ...]
    recommendation: Recommendation
    original: tuple[float, float, float]
    score: str
    facts: Mapping[str, Any]
    cells: pd.DataFrame = field(repr=False)

    @property
    def table(self) -> pd.DataFrame:
        """One row per setting, for a person to read and sort."""
        rows = []
        for s in self.settings:
            rows.append(
                {
                    "setting": s.name,
                    "verdict": s.status if s.verdict is None else s.verdict.level,
                    self.score: s.utility[0],
                    "low": s.utility[1],
                    "high": s.utility[2],
                    "privacy": s.privacy[0],
                    "gravest attack": s.gravest,
                    "records read out": s.certain_records,
                    "of the largest class": s.copies_of_largest,
                    "guarantee": "-" if s.guarantee is None else s.guarantee.status,
                    "frontier": s.on_frontier,
                    **{name: s.figures.get(name) for name in FIGURES},
                    "seconds": s.figures.get("fit_seconds"),
                    "megabytes": None
                    if s.figures.get("fit_memory") is None
                    else s.figures["fit_memory"] / 2**20,
                }
            )
        return pd.DataFrame(rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain values for JSON."""
        return {
            "format": _FORMAT,
            "version": _VERSION,
            "table": plain(self.facts),
            "score": self.score,
            "original": plain(self.original),
            "recommendation": {
                "setting": self.recommendation.setting,
                "sentence": self.recommendation.sentence,
                "reasons": list(self.recommendation.reasons),
            },
            "settings": [
                {
                    "name": s.name,
                    "method": s.method,
                    "epsilon": s.epsilon,
                    "status": s.status,
                    "error": s.error,
                    "utility": plain(s.utility),
                    "privacy": plain(s.privacy),
                    "gravest_attack": s.gravest,
                    "useless": s.useless,
                    "suspicion": s.suspicion,
                    "verdict": None
                    if s.verdict is None
                    else {"level": s.verdict.level, "sentence": s.verdict.sentence},
                    "certain_records": s.certain_records,
                    "copies_of_largest": s.copies_of_largest,
                    "guarantee": None if s.guarantee is None else s.guarantee.to_dict(),
                    "on_frontier": s.on_frontier,
                    "figures": plain(s.figures),
                    "attacks": plain(s.attacks),
                    "not_run": dict(s.not_run),
                }
                for s in self.settings
            ],
        }

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the comparison as JSON, and write it when a path is given."""
        return written(as_json(self.to_dict()), path, end="\n")

    def to_html(self, path: str | Path | None = None) -> str:
        """Return the comparison as a page that needs no network, and write it when a path is given."""
        from oversafe.report.comparison_page import comparison_page

        return written(comparison_page(self), path)

    def _repr_html_(self) -> str:
        from oversafe.report.page import framed

        return framed("Protections compared", self.to_html())

    def __str__(self) -> str:
        from oversafe.report.comparison_page import comparison_text

        return comparison_text(self)


def compare(
    table: pd.DataFrame | str | Path,
    label: str,
    *,
    score: str = "auc",
    name: str | None = None,
    **options: Any,
) -> Comparison:
    """Run protectors on your table and say which gives the most utility for which risk.

    Parameters
    ----------
    table : DataFrame or path
        The real table.
    label : str
        The column that holds the class.
    score : str, default="auc"
        What utility is: a score of :func:`oversafe.measure.imbalance_scores`.
    name : str, optional
        What the page calls the table; a file's own name when not given.
    **options
        Methods, epsilons, attacks, schema, store, n_jobs and the others of
        :func:`oversafe.auditing.comparing.trials.compare`.
        ``methods`` takes names, objects under names of your own (``{"mine": MyMethod()}``), or a list of both. An
        object of yours inherits from ``sklearn.base.BaseEstimator`` and has ``fit_resample(X, y)``, or ``fit(X, y)``
        and ``sample()``, which return a table and its labels.

    Returns
    -------
    Comparison
        With ``settings``, ``table``, ``recommendation``, ``to_html`` and ``to_json``.

    Notes
    -----
    A setting whose release gave up a real record with certainty, or on which an attack surely gains 10 % or more (the
    lower end of its 95 % interval), is never recommended; nor is one whose release lacks a class, or from which
    classifiers learn nothing (the interval of their AUC reaches 0.5). Among the others those with a proven guarantee
    come first; among settings of the same standing those on which no attack seems to succeed (it gains 10 % or more,
    and its interval is above 0); among these the most useful is taken. Of settings whose utility differs by less than
    0.01, or by no more than the noise of the folds, it is the one with the smaller proven epsilon, or else the one of
    which the gravest attack may gain the least.

    Examples
    --------
    >>> from oversafe import compare
    >>> from oversafe.data import load_dataset
    >>> table = load_dataset("breast_cancer").frame
    >>> result = compare(table, "diagnosis", methods="smote", n_repeats=1, membership=False)
    >>> result.recommendation.sentence
    'Release none of these: every setting that was tried is exposed.'
    """
    check_choice("score", score, SCORES)
    if isinstance(table, str | Path):
        name = name or file_name(table)
        table = read_table(table, schema=options.get("schema"))
    cells = run_cells(table, label, **options)
    reasons = [row for row in cells.get("not_run", ()) if isinstance(row, Mapping)]
    warn_of_own_attacks(options.get("attacks") or (), *reasons)
    person = getattr(options.get("schema"), "person", None)
    facts = {
        "name": name or "the table",
        "label": label,
        "rows": len(table),
        "columns": sum(column not in (label, person) for column in table.columns),
        "classes": {str(k): int(v) for k, v in table[label].value_counts().items()},
    }
    return judged(cells, score, facts)


def judged(cells: pd.DataFrame, score: str, facts: Mapping[str, Any]) -> Comparison:
    """Return the comparison of measured cells."""
    first = cells.iloc[0]
    assert first["method"] == ORIGINAL
    original = _interval(first, score)
    settings = [_setting(row, score) for _, row in cells.iloc[1:].iterrows()]
    best = frontier([s.privacy[0] for s in settings], [s.utility[0] for s in settings])
    settings = [replace(s, on_frontier=bool(on)) for s, on in zip(settings, best, strict=True)]
    return Comparison(
        tuple(settings), recommend(settings, original, score), original, score, dict(facts), cells
    )


def recommend(
    settings: Sequence[Setting], original: tuple[float, float, float], score: str
) -> Recommendation:
    """Return which setting to take: never one whose release was read out."""
    done = [s for s in settings if s.verdict is not None and np.isfinite(s.utility[0])]
    safe = [
        s
        for s in done
        if s.verdict is not None
        and s.verdict.level != "exposed"
        and not (s.certain_records or s.copies_of_largest)
    ]
    what = _score_name(score)
    worthy = [s for s in safe if s.useless is None]
    if not worthy:
        return _none_of(settings, done, safe)
    withstood, safe = safe, worthy
    level = min((s.verdict.level for s in safe if s.verdict is not None), key=_LEVELS.index)
    standing = [s for s in safe if s.verdict is not None and s.verdict.level == level]
    standing = [s for s in standing if s.suspicion is None] or standing
    best = max(standing, key=lambda s: s.utility[0])
    alike = [s for s in standing if _are_alike(s, best)]
    chosen = min(alike, key=_caution)
    reasons = [
        f"{what} {_shown(chosen.utility)} on real rows that it never saw, against {_shown(original)} for the "
        "real table itself.",
        f"The gravest attack, {chosen.gravest}, gains "
        f"{1 - chosen.privacy[0]:.0%} over chance (95 % interval {1 - chosen.privacy[2]:.0%} to "
        f"{1 - chosen.privacy[1]:.0%})."
        if chosen.gravest
        else "No attack could be run on it.",
        str(chosen.guarantee),
    ]
    if level == "unproven":
        reasons.append(
            "None of the settings that withstood the attacks has a proven guarantee, and other attacks may succeed. "
            'Write a schema file (oversafe schema init), correct it and write domain = "public" with a source for the '
            "columns whose ranges and categories are publicly known, and compare again with --schema."
        )
    others = sorted(alike, key=lambda s: -s.utility[0])
    if len(others) > 1:
        named = ", ".join(s.name for s in others if s is not chosen)
        reasons.append(f"As useful within {_ALIKE:g} or the noise of the folds, and less cautious: {named}.")
    for s in sorted(done, key=lambda s: -s.utility[0]):
        if s.utility[0] > chosen.utility[0] and s not in alike and s.verdict is not None:
            against = s.verdict.sentence
            if s in withstood:
                against = s.useless or s.suspicion or against
            reasons.append(f"Not {s.name} ({what} {s.utility[0]:.3f}): {against}")
    sentence = f"Take {chosen.name}."
    if chosen.suspicion is not None:
        sentence = f"Take {chosen.name} with great care, if at all: {chosen.suspicion}"
    elif level == "unproven" and chosen.verdict is not None:
        sentence += f" {chosen.verdict.sentence}"
    return Recommendation(chosen.name, sentence, tuple(reasons))


def _are_alike(s: Setting, best: Setting) -> bool:
    """Return whether the utilities differ by next to nothing, or by no more than chance makes them fold by fold."""
    apart = best.utility[0] - s.utility[0]
    if apart <= _ALIKE:
        return True
    if s.by_fold is None or best.by_fold is None:
        return False
    n_folds = s.by_fold.index.get_level_values("fold").nunique()
    return bool(apart <= half_width(best.by_fold - s.by_fold, n_folds))


def _none_of(settings: Sequence[Setting], done: Sequence[Setting], safe: Sequence[Setting]) -> Recommendation:
    """Return why there is nothing to take."""
    if not done and any(s.status == "pending" for s in settings):
        reason = (
            "the time limit came before a setting had ended; run it again to go on, or with a longer limit"
        )
    elif not done:
        reason = "no setting ended without an error, so that there is nothing to choose from"
    elif not safe:
        reason = "every setting that was tried is exposed"
    elif len(safe) == len(done):
        reason = "what they release is of no use"
    else:
        reason = "those that are of use are exposed, and those that are not exposed are of no use"
    words = {s.name: s.verdict.sentence for s in done if s.verdict is not None}
    words |= {s.name: s.useless for s in safe if s.useless is not None}
    return Recommendation(
        None, f"Release none of these: {reason}.", tuple(f"{name}: {why}" for name, why in words.items())
    )


def _useless(row: pd.Series) -> str | None:
    """Return why nobody should take a release, however safe: a class is missing, or nothing is learned from it."""
    missing = row.get("missing_classes")
    if isinstance(missing, list) and missing:
        return f"its release has no row of class {missing[0]!r}."
    low, high = float(row["auc_low"]), float(row["auc_high"])
    if low > _COIN:
        return None
    return (
        f"what classifiers learn from it is not clearly better than a coin (AUC {_shown(_interval(row, 'auc'))})"
        + ("; more repetitions (n_repeats) may tell." if high > _COIN and float(row["auc"]) > _COIN else ".")
    )


def _caution(s: Setting) -> tuple[float, float, float]:
    # An epsilon that is not proven may be no more than a noise level; then what attacks may gain at most decides.
    proven = s.guarantee is not None and s.guarantee.status == "proven"
    epsilon = s.guarantee.epsilon if proven and s.guarantee is not None else None
    return (np.inf if epsilon is None else epsilon, 1 - s.privacy[1], -s.utility[0])


def _setting(row: pd.Series, score: str) -> Setting:
    epsilon = None if pd.isna(row["epsilon"]) else float(row["epsilon"])
    name = str(row["method"]) + ("" if epsilon is None else f", epsilon {epsilon:g}")
    unknown = (np.nan, np.nan, np.nan)
    if row["status"] != "done":
        # A table of texts has NaN where a cell has none.
        error = row["error"] if isinstance(row["error"], str) else None
        return Setting(
            name, str(row["method"]), epsilon, str(row["status"]), error, unknown, unknown, "", None, 0, None,
            False, {}, pd.DataFrame(),
        )  # fmt: skip
    attacks, scores = row["attacks"], row.get("scores")
    guarantee = Guarantee.from_dict(row["guarantee"])
    findings = [_found(attack) for attack in attacks.to_dict("records")]
    # One that reads records out counts before all others; where no attack is sure of anything, one that names people
    # before one that compares distances.
    gravest = max(
        findings,
        key=lambda f: (
            f.result.risk if f.certain_records and not f.is_of_largest else 0.0,
            f.result.risk if f.certain_records else 0.0,
            f.result.interval[0],
            f.result.threat != "similarity",
            f.result.risk,
        ),
        default=None,
    )
    privacy = (1.0, 0.0, 1.0)
    if gravest is not None:
        low, high = gravest.result.interval
        privacy = (1 - gravest.result.risk, 1 - high, 1 - low)
    figures = {
        key: row[key]
        for key in (*SCORES, *FIGURES, "released_rows", "fit_seconds", "fit_memory", "seconds")
        if key in row.index
    }
    return Setting(
        name,
        str(row["method"]),
        epsilon,
        "done",
        None,
        _interval(row, score),
        privacy,
        "" if gravest is None else _attack_on(gravest.result),
        judge(findings, guarantee),
        records_read_out(findings),
        guarantee,
        False,
        figures,
        attacks,
        row["not_run"],
        _useless(row),
        _suspicion(findings),
        None if not isinstance(scores, pd.DataFrame) else scores.groupby(["repeat", "fold"])[score].mean(),
        copies_of_largest(findings),
    )


def _suspicion(findings: Sequence[Finding]) -> str | None:
    """Return the attack that seems to succeed, if one does: a gain that would expose, and not by chance alone."""
    found = [f.result for f in findings if f.result.risk >= EXPOSED_FROM and f.result.interval[0] > 0]
    if not found:
        return None
    gravest = max(found, key=lambda result: result.interval[0])
    low, high = gravest.interval
    return (
        f"{_attack_on(gravest)} gains {gravest.risk:.0%} over chance (95 % interval {low:.0%} to {high:.0%}), so that "
        "it may well give people away."
    )


def _attack_on(result: AttackResult) -> str:
    return f"{result.name} on {rows_in_words(result.details['class'])}"


def _found(attack: Mapping[str, Any]) -> Finding:
    result = AttackResult(
        attack["attack"],
        attack["threat"],
        attack["risk"],
        (attack["low"], attack["high"]),
        pd.DataFrame(),
        {"class": attack["class"], "is_largest_class": bool(attack.get("is_largest_class", False))},
    )
    return Finding(
        result, f"there is a risk for {rows_in_words(attack['class'])}.", int(attack["certain_records"])
    )


def _interval(row: pd.Series, score: str) -> tuple[float, float, float]:
    if row["status"] != "done":
        return np.nan, np.nan, np.nan
    return float(row[score]), float(row[f"{score}_low"]), float(row[f"{score}_high"])


def _shown(interval: tuple[float, float, float]) -> str:
    return f"{interval[0]:.3f} ({interval[1]:.3f} to {interval[2]:.3f})"


def _score_name(score: str) -> str:
    return {"auc": "AUC", "f1": "F1", "mcc": "MCC"}.get(score, score.replace("_", " "))
