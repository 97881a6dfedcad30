"""The atlas: tool by tool, what a release gives away and whether it shows the tool, as is and after treatment.

Development sets and seeds: ``python -m benchmarks.atlas development`` (what decides a result was chosen there). Test
sets: ``python -m benchmarks atlas``. Cells that were run are kept and not run again.
``python -m benchmarks.atlas docs`` puts the stored figures into the documentation.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rich.console import Console
from scipy.spatial import KDTree

from benchmarks.lattice import CERTAIN, CLAIMED, table
from benchmarks.page import RESULTS, write_page
from benchmarks.runner import CHECKOUT, Cost, Side, summarize, write
from benchmarks.tables import mean, show_tables, shown, storable
from benchmarks.tools import CONTROLS, TOOLS, Release
from oversafe._core.errors import InputError
from oversafe.attack import ReconSMOTE
from oversafe.attack.geometry.identify_sampler import Kind, identify
from oversafe.attack.geometry.lattice import decode_rows
from oversafe.attack.geometry.lattice.precision import decimals_of
from oversafe.attack.geometry.sampler.boxes import own_gap_bases
from oversafe.attack.geometry.sampler.traces import Traces, between_decoded
from oversafe.experiment import run_grid

SUMMARY = "The atlas of oversampling tools: records that come back and the tool that is told"

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# A set and the class that is oversampled; None is the rarest.
DEVELOPMENT: dict[str, Any] = {"car_eval_4": None, "ecoli": None, "abalone_19": None}
TEST: dict[str, Any] = {"yeast_me2": None, "german_credit_20": None, "wine": 2}
DEVELOPMENT_SEEDS, TEST_SEEDS = (0,), (100,)
RATIOS = (1, 5, 20)
MISSING = 0.05
# Another one when attacks change: cells of an earlier one are run again.
_VERSION = "5"
# A record is right within this share of the columns' deviations, or five half units of a rounded file.
NEAR = 1e-6
PAGE, STORED = CHECKOUT / "docs" / "atlas.md", RESULTS / "atlas.json"
_BEGIN, _END = "<!-- figures -->", "<!-- end of figures -->"


# ------------------------------------------------------------------------------------------- treatments


def scaled(X: Floats, rng: np.random.Generator) -> Floats:
    """Return columns scaled to [0, 1], as before most oversampling."""
    spread = np.ptp(X, axis=0)
    return (X - X.min(axis=0)) / np.where(spread > 0, spread, 1.0)


def imputed(X: Floats, rng: np.random.Generator) -> Floats:
    """Return a table of which some cells were missing and have the column's median."""
    gone = rng.random(X.shape) < MISSING
    median = np.nanmedian(np.where(gone, np.nan, X), axis=0)
    return np.where(gone, median, X)


def rounding(X: Floats) -> NDArray[np.int64]:
    """Return the decimals to which a release of a table is rounded: two more than each column has."""
    return np.array([min(15, decimals_of(column) + 2) for column in X.T])


TREATMENTS = ("as is", "rounded", "scaled", "imputed")


def treated(data: str, target: Any, treatment: str, seed: int) -> tuple[Floats, Bools]:
    """Return a table as the tool sees it, and which rows are of the class."""
    X, minority = table(data, target)
    before: dict[str, Callable[[Floats, np.random.Generator], Floats]] = {
        "scaled": scaled,
        "imputed": imputed,
    }
    if treatment in before:
        X = before[treatment](X, np.random.default_rng(seed))
    return X, minority


# --------------------------------------------------------------------------------------------- a cell


def attacked(data: str, target: Any, tool: str, rows: int, treatment: str, seed: int) -> dict[str, Any]:
    """Return what today's attacks find in one release."""
    X, minority = treated(data, target, treatment, seed)
    n_rows = round(rows * int(minority.sum()))
    try:
        release = {**TOOLS, **CONTROLS}[tool].make(X, minority, n_rows, seed)
    except (ValueError, RuntimeError) as error:
        # KMeansSMOTE finds no cluster, ADASYN no neighbour of another class.
        return {"refused": str(error)[:80], "records": int(minority.sum())}
    written = release.rows
    near = np.maximum(NEAR * X.std(axis=0), 1e-12)
    if treatment == "rounded":
        decimals = rounding(X)
        written = np.column_stack(
            [column.round(d) for column, d in zip(release.rows.T, decimals, strict=True)]
        )
        near = np.maximum(near, 2.5 * 10.0**-decimals)
    begin = process_time()
    found, p_wrong, kind = _found(release, written, near)
    seconds = process_time() - begin
    plain = release.numbers()
    kept = np.setdiff1d(np.arange(X.shape[1]), np.array(release.categories, dtype=int))
    right, recovered = _scored(found, plain, near[kept])
    claimed = p_wrong <= CLAIMED
    certain = p_wrong < CERTAIN
    return {
        "records": len(recovered),
        "recovered": int(recovered.sum()),
        "claims": int(claimed.sum()),
        "wrong": int((claimed & ~right).sum()),
        "certain": int(certain.sum()),
        "certain wrong": int((certain & ~right).sum()),
        "told": kind.name,
        "tools": list(kind.tools),
        "error rate": kind.error_rate,
        "k": kind.k_neighbors,
        "took": seconds,
        "rows": len(written),
    }


def _found(release: Release, written: Floats, near: Floats) -> tuple[Floats, Floats, Kind]:
    """Return the records that today's attacks recover, the probability that each is wrong, and the tool they tell.

    ReconSMOTE states no probability yet; its records count as claims, not as certain ones.
    """
    frame = release.frame(written)
    numbers = release.numbers()
    kept = np.setdiff1d(np.arange(written.shape[1]), np.array(release.categories, dtype=int))
    near = near[kept]
    result = ReconSMOTE(n_jobs=1).run(frame)
    by_lines = result.records.iloc[:, kept].to_numpy(dtype=float)
    decoded = decode_rows(written[:, kept], numbers.others)
    claimed = decoded.p_wrong <= CLAIMED
    traces = between_decoded(
        written[:, kept],
        decoded.records,
        claimed,
        decoded.n_lines,
        decoded.row,
        decoded.ends,
        decoded.share,
    )
    lines = _traces_of_lines(written[:, kept], by_lines, result)
    kind = Kind(result.details["kind"], result.details["kind_reason"])
    best = traces if traces.known.mean() >= lines.known.mean() else lines
    if kind.name != "duplication":
        if not best.known.any():
            best = replace(best, rows=written[:, kept])
        kind = identify(best, np.ptp(best.rows, axis=0), bool(release.categories))
    # What both find is one claim.
    same = np.zeros(len(by_lines), dtype=bool)
    whole = decoded.records[claimed & ~np.isnan(decoded.records).any(axis=1)]
    if len(whole) and len(by_lines):
        far = np.where(np.isnan(by_lines), 1e300, by_lines / near)
        same = KDTree(whole / near).query(far, p=np.inf)[0] <= 1
    by_lines = by_lines[~same]
    found = np.vstack([decoded.records, by_lines])
    p_wrong = np.append(decoded.p_wrong, np.full(len(by_lines), CLAIMED))
    if not claimed.any() and not len(by_lines):
        found, p_wrong = _bases(written[:, kept])
    return found, p_wrong, kind


def _bases(rows: Floats) -> tuple[Floats, Floats]:
    """Return what rows that come record by record give away without lines, in all columns."""
    if (known := own_gap_bases(rows)) is None:
        return np.zeros((0, rows.shape[1])), np.zeros(0)
    values = known[0].values
    values = np.unique(values[~np.isnan(values).any(axis=1)], axis=0)
    return values, np.full(len(values), known[1].finding.p)


def _traces_of_lines(rows: Floats, records: Floats, result: Any) -> Traces:
    """Return the traces of what lines and rays recover, in the columns that all records have."""
    whole = ~np.isnan(records).any(axis=0) & (len(records) > 0)
    partial = bool((np.ptp(rows[:, ~whole], axis=0) > 0).any())
    return Traces(rows[:, whole], records[:, whole], result._segments, result._shares, partial)


def _scored(found: Floats, release: Release, near: Floats) -> tuple[Bools, Bools]:
    """Return which claims are records of any class, and which records of the class are among the claims."""
    pool = np.vstack([release.real, release.others]) / near
    right = np.zeros(len(found), dtype=bool)
    stated = ~np.isnan(found)
    for pattern in np.unique(stated, axis=0):
        here = (stated == pattern).all(axis=1)
        if pattern.any():
            tree = KDTree(pool[:, pattern])
            right[here] = tree.query((found / near)[np.ix_(here, pattern)], p=np.inf)[0] <= 1
    records = np.unique(release.real, axis=0)
    whole = found[stated.all(axis=1)]
    recovered = np.zeros(len(records), dtype=bool)
    if len(whole):
        recovered = KDTree(whole / near).query(records / near, p=np.inf)[0] <= 1
    return right, recovered


# ------------------------------------------------------------------------------------------- the tables

# How the kind names a tool that the atlas names otherwise.
TRUTH = {
    "SMOTE, k = 1": "SMOTE",
    "SMOTE, 3 classes": "SMOTE",
    "Spark": "Spark's SMOTE",
    "Weka, Chawla": "Weka's SMOTE",
}


def verdict(tool: str, told: str, tools: Sequence[str]) -> str:
    """Return whether the tool that was told is right ("named", or "in a group"), wrong, or not told."""
    if not tools:
        return "not told"
    if TRUTH.get(tool, tool) not in tools:
        return "wrong"
    return "named" if len(tools) == 1 else "in a group"


def run_cells(
    sets: dict[str, Any],
    seeds: Sequence[int],
    tools: Sequence[str],
    store: Path,
    *,
    ratios: Sequence[int] = RATIOS,
    treatments: Sequence[str] = TREATMENTS,
) -> pd.DataFrame:
    """Return the figures of all cells; those that were run before are read."""
    cells = [
        {"data": data, "target": target, "tool": tool, "rows": rows, "treatment": treatment, "seed": seed}
        for (data, target), rows, treatment, seed, tool in product(
            sets.items(), ratios, treatments, seeds, tools
        )
    ]
    # Figures have names of their own, for "rows" is a setting.
    done = run_grid(_cell, cells, store=store, version=_VERSION, progress=False)
    if failed := done["error"].dropna().tolist():
        raise RuntimeError(f"{len(failed)} cells failed, the first: {failed[0]}")
    return done


def _cell(**settings: Any) -> dict[str, Any]:
    found = attacked(**settings)
    found["made"] = found.pop("rows", 0)
    # A store keeps no empty figure.
    return {key: value for key, value in found.items() if value is not None}


def tables_of(done: pd.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """Return the tables of the page: recall, claims, and tools told."""
    done = done.copy()
    made = done["recovered"].notna() if "recovered" in done else np.zeros(len(done), dtype=bool)
    done = done[made]
    done["recall"] = done["recovered"] / done["records"]
    done["verdict"] = [
        verdict(tool, told, tools)
        for tool, told, tools in zip(done["tool"], done["told"], done["tools"], strict=True)
    ]
    tools = [tool for tool in TOOLS if (done["tool"] == tool).any()]
    recall, told, claims = [], [], []
    for tool in tools:
        part = done[done["tool"] == tool]
        line: dict[str, Any] = {"tool": tool}
        for treatment, rows in product(TREATMENTS, RATIOS):
            here = part[(part["treatment"] == treatment) & (part["rows"] == rows)]
            line[f"{treatment} {rows}"] = mean(list(here["recall"]))
        recall.append(line)
        told.append(
            {"tool": tool}
            | {
                name: int((part["verdict"] == name).sum())
                for name in ("named", "in a group", "not told", "wrong")
            }
            | {"told most often": part["told"].mode().iloc[0]}
        )
    of_tools = done[done["tool"].isin(tools)]
    for treatment, part in of_tools.groupby("treatment", sort=False):
        claims.append({"treatment": treatment, **_claims(part)})
    by_tool = [{"tool": tool, **_claims(of_tools[of_tools["tool"] == tool])} for tool in tools]
    controls = [
        {
            "release": name,
            "releases": len(part),
            "claims": int(part["claims"].sum()),
            "certain": int(part["certain"].sum()),
            "wrong": int(part["wrong"].sum()),
            "tool named": int((part["verdict"] != "not told").sum()),
        }
        for name in CONTROLS
        if len(part := done[done["tool"] == name])
    ]
    return {
        "share of the records recovered, by treatment and rows per record": recall,
        "claims by treatment": claims,
        "claims by tool": by_tool,
        "the tool that was told, in releases": told,
        "releases that no tool interpolated": controls,
    }


def _claims(part: pd.DataFrame) -> dict[str, Any]:
    counts = {name: int(part[name].sum()) for name in ("claims", "wrong", "certain", "certain wrong")}
    return {
        **counts,
        "precision": 1 - counts["wrong"] / counts["claims"] if counts["claims"] else np.nan,
        "seconds / 1000 rows": float(1000 * part["took"].sum() / max(1, part["made"].sum())),
    }


def run(quick: bool, folder: Path, rounds: int | None) -> dict[str, Any]:
    """Make the atlas on the test sets; a round is a seed. A quick run takes one set that needs no folder."""
    sets = {"breast_cancer": None} if quick else TEST
    seeds = DEVELOPMENT_SEEDS if quick else tuple(TEST_SEEDS[0] + i for i in range(rounds or 1))
    if quick:
        few = ("SMOTE", "smotefamily", "noise")
        done = run_cells(sets, seeds, few, folder / "atlas", ratios=(1,), treatments=("as is", "rounded"))
    else:
        done = run_cells(sets, seeds, (*TOOLS, *CONTROLS), RESULTS / "atlas.local")
    return _summary(done, seeds, quick)


def _summary(done: pd.DataFrame, seeds: Sequence[int], quick: bool) -> dict[str, Any]:
    side = Side("ours", lambda: Cost(0.0), ["oversafe", "imbalanced-learn", "numba"])
    spent = [
        Cost(float(done.loc[done["seed"] == seed, "took"].sum()) if "took" in done else 0.0) for seed in seeds
    ]
    summary = summarize("atlas", [side], [spent], quick)
    summary["tables"] = storable(tables_of(done))
    summary["data"] = sorted(done["data"].unique())
    summary["notes"] = [
        "Recall: distinct real records of the class, mean over sets and seeds; the attacker has the synthetic rows in "
        "the tool's order and the rows of the other classes. Claims: records with p_wrong <= .05 and those of "
        "ReconSMOTE; certain: p_wrong < 1e-6. A claim is right if it equals a real record of any class. 'Rounded': to "
        "each column's own decimals and two more. 'Scaled': to [0, 1] before the tool runs. 'Imputed': 5 % of the "
        "cells have the column's median before the tool runs."
    ]
    return summary


def markdown(summary: dict[str, Any]) -> str:
    """Return the tables of a summary for the documentation."""
    parts = [f"Sets: {', '.join(summary['data'])}; {summary['rounds']} seed{'s' * (summary['rounds'] > 1)}."]
    for title, rows in summary["tables"].items():
        if rows:
            heads = list(rows[0])
            parts.append(f"**{title[0].upper()}{title[1:]}**")
            lines = [f"| {' | '.join(heads)} |", f"|{'|'.join(['---'] * len(heads))}|"]
            lines += [f"| {' | '.join(_short(row[head]) for head in heads)} |" for row in rows]
            parts.append("\n".join(lines))
    basis = ["**What the releases were made with**", "", "| tool | basis |", "|---|---|"]
    basis += [f"| {name} | {tool.basis} |" for name, tool in TOOLS.items()]
    return "\n\n".join([*parts, *summary["notes"], "\n".join(basis)])


def _short(value: Any) -> str:
    return f"{value:.2f}" if isinstance(value, float) else shown(value)


def with_figures(text: str, summary: dict[str, Any]) -> str:
    """Return the page of the documentation with the tables between its marks."""
    head, rest = text.split(_BEGIN)
    return f"{head}{_BEGIN}\n\n{markdown(summary)}\n\n{_END}{rest.split(_END)[1]}"


def main(which: str) -> None:
    """Run the development sets, or put stored figures into the documentation."""
    if which == "development":
        done = run_cells(
            DEVELOPMENT, DEVELOPMENT_SEEDS, (*TOOLS, *CONTROLS), RESULTS / "atlas-development.local"
        )
        outcome = _summary(done, DEVELOPMENT_SEEDS, False)
        outcome["notes"].append("These are the sets and the seed on which the attacks were developed.")
        show_tables(outcome, Console(width=220))
        write(outcome, STORED)
        write_page()
    elif which != "docs":
        raise InputError(f"{which!r} is no part of the atlas; it has 'development' and 'docs'")
    summary = json.loads(STORED.read_text(encoding="utf-8"))
    PAGE.write_text(with_figures(PAGE.read_text(encoding="utf-8"), summary), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
