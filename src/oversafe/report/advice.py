"""What to do instead, with the commands to type."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oversafe._core.text import counted, listed, shorten
from oversafe.auditing.verdict import Finding, Level
from oversafe.data.infer import column_decimals
from oversafe.privacy import Voucher
from oversafe.privacy.guarantee import SEEDED, Guarantee
from oversafe.privacy.meaning import weakness
from oversafe.privacy.signing.vouching import NOBODY

_MOST_CHARACTERS = 200
# Columns that are named together, and decimals that are no longer the data's own.
_MOST_COLUMNS, _MOST_DECIMALS = 8, 9


@dataclass(frozen=True)
class Step:
    """One thing to do.

    Parameters
    ----------
    sentence : str
        What and why.
    commands : tuple of str
        What to type, one command each.
    in_terminal : bool
        Whether the terminal tells it too, which else shows the first step with commands alone.
    """

    sentence: str
    commands: tuple[str, ...] = ()
    in_terminal: bool = False


def advice(
    level: Level,
    findings: Sequence[Finding],
    guarantee: Guarantee,
    facts: Mapping[str, Any],
    settings: Mapping[str, Any],
    voucher: Voucher = NOBODY,
) -> list[Step]:
    """Return what to do after an audit, the most important first."""
    label = _argument(facts.get("label", "LABEL"))
    table = _argument(settings.get("real") or "TABLE.csv")
    release = _argument(settings.get("release") or "RELEASE.csv")
    steps = []
    if level == "protected":
        steps.append(
            Step(
                "Hand out the file together with its manifest, so that whoever receives it can check what it promises. "
                "Keep a budget for all releases of the same people, this one included: guarantees add up.",
                (
                    "oversafe budget create budget.db people --epsilon 3 --delta 1e-6",
                    f"oversafe budget charge budget.db people {release}",
                ),
            )
        )
    else:
        if SEEDED in guarantee.caveats:
            steps.append(
                Step("Make the release again without a seed: whoever knows the seed can take the noise off.")
            )
        unheard = bool(voucher.words) and not voucher.counts and guarantee.status != "none"
        if unheard:
            steps.append(_have_vouched(voucher, release))
        steps.append(Step(_proven_instead(guarantee, unheard), tuple(_commands(guarantee, facts, settings))))
        if any(f.attack.about.reads == "computed" and f.certain_records for f in findings):
            steps.append(
                Step(
                    "If the rows were only meant to help a model learn, oversample inside the training, after the "
                    "split, and keep the rows: no table has to leave the house for that."
                )
            )
        if any(_shows_lines(f) for f in findings):
            steps.append(Step(_rounded(findings), in_terminal=True))
    if facts.get("real_rows") is None or facts.get("holdout_rows") is None:
        missing = [
            f"--{name} {name.upper()}.csv"
            for name in ("real", "holdout")
            if facts.get(f"{name}_rows") is None
        ]
        given = "" if facts.get("real_rows") is None else f" --real {table}"
        steps.append(
            Step(
                "Some attacks could not be run for want of material. With the original table, and with people of the "
                "same kind who had no part in the release, the audit sees more.",
                (
                    f"oversafe audit {release} --label {label}{given} {' '.join(missing)}{_dropping(settings)} "
                    "--report audit.html",
                ),
            )
        )
    return steps


def _shows_lines(finding: Finding) -> bool:
    """Whether a finding shows that rows were interpolated, or reads the records that they lie between."""
    details = finding.result.details
    computed = finding.attack.about.reads == "computed" and finding.certain_records > 0
    return computed or bool(details.get("lines")) or bool(details.get("told_by_grids"))


def _rounded(findings: Sequence[Finding]) -> str:
    """Return how to write interpolated rows, what that stops and what it does not."""
    own = _own_decimals(findings)
    listing = "; ".join(
        f"{'whole numbers' if count == 0 else counted(count, 'decimal', 'decimals')} in {listed(names, _MOST_COLUMNS)}"
        for count, names in sorted(own.items())
    )
    return (
        f"If interpolated rows must go out, round each column to the decimals of its real values"
        f"{f' ({listing})' if listing else ''}, shuffle the rows, and set no seed, as oversafe protect does. Then one "
        "row alone no longer gives two records away. Several rows on one line still do: of our test tables they gave "
        "away 5 to 86 % of the records, more where there are more rows for each record. This is no guarantee."
    )


def _own_decimals(findings: Sequence[Finding]) -> dict[int, list[str]]:
    """Return the columns by the decimals of the records that were computed."""
    result: dict[int, list[str]] = {}
    for finding in findings:
        found = finding.result
        if finding.attack.about.reads != "computed" or found.evidence.empty or result:
            continue
        records = found.evidence.iloc[:, : found.details.get("columns", 0)].select_dtypes("number")
        values = records.to_numpy(dtype=float, na_value=float("nan"))
        for name, count in zip(records.columns, column_decimals(values.round(_MOST_DECIMALS)), strict=True):
            if count is not None and count < _MOST_DECIMALS:
                result.setdefault(count, []).append(str(name))
    return result


# What has to be changed by hand, or the same commands give the same guarantee again.
_EDIT = (
    'In schema.toml give every column the range or the categories that are publicly known, write domain = "public" in '
    'place of "data", and say in source where that is known from'
)


def _have_vouched(voucher: Voucher, release: str) -> Step:
    """Return how a guarantee comes to count that nobody trusted vouches for."""
    if voucher.by == "unknown":
        return Step(
            "If somebody else made this release, ask them by another channel, such as the telephone, for the "
            "fingerprint of their key. If it is that of the manifest, trust the key, and audit again.",
            (f"oversafe keys trust NAME {release}.manifest.json",),
        )
    return Step(
        "If somebody else made this release, ask them for a file that oversafe 0.2 or later protected, with its "
        "manifest as it was written."
    )


def _proven_instead(guarantee: Guarantee, unheard: bool) -> str:
    """Return how to come to a table with a proven guarantee."""
    if guarantee.status == "proven":
        return "Protect the original table again with a smaller epsilon, and audit the result."
    if guarantee.status == "nominal" and not unheard:
        return (
            f"The guarantee of this release is nominal, for the reasons named with it. {_EDIT}. Without these changes "
            "the same commands give a nominal guarantee again."
        )
    return (
        f"Hand out a table with a proven guarantee. {_EDIT}; then protect the original table and audit the "
        "result."
    )


def _commands(guarantee: Guarantee, facts: Mapping[str, Any], settings: Mapping[str, Any]) -> list[str]:
    label = _argument(facts.get("label", "LABEL"))
    table = _argument(settings.get("real") or "TABLE.csv")
    method, epsilon = "", "1"
    if guarantee.status == "nominal" and settings.get("method"):
        method = f" --method {_argument(settings['method'])}"
        epsilon = "1" if weakness(guarantee) or not guarantee.epsilon else f"{guarantee.epsilon:g}"
    # A table with a column that names people is refused.
    gone = dict.fromkeys((*facts.get("not_released", ()), *facts.get("naming_columns", ())))
    drop = "".join(f" --drop {_argument(name)}" for name in gone)
    return [
        f"oversafe schema init {table} --label {label} --out schema.toml",
        f"oversafe protect {table} --label {label}{drop}{method} --epsilon {epsilon} --schema schema.toml"
        f"{_dropping(settings)} --out protected.csv",
        f"oversafe audit protected.csv --label {label} --real {table}{_dropping(settings)} --report protected.html",
    ]


def _dropping(settings: Mapping[str, Any]) -> str:
    """Return the option without which tables with unlabelled rows are refused, where it was given."""
    return " --drop-unlabelled" if settings.get("drop_unlabelled") else ""


def _argument(text: Any) -> str:
    return shlex.quote(shorten(str(text), _MOST_CHARACTERS))
