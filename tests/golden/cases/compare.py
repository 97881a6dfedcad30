"""Comparisons: the cells of the grid, and the settings, verdicts and recommendation made of them."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from typing import Any

import pandas as pd

from oversafe import compare
from oversafe.auditing import Comparison
from oversafe.auditing.comparing.trials import compare as run_cells
from oversafe.experiment import run_grid
from oversafe.protect import GaussianCopula
from tests.golden.case import case
from tests.golden.cases.audit import _Mine, _shape, _small, _visible
from tests.golden.output import Output
from tests.golden.tables import declared, mixed

# What a cell cost.
COSTS = ["seconds", "fit_seconds", "fit_memory"]
QUICK: dict[str, Any] = {"n_repeats": 1, "n_folds": 2, "membership": False}


def _without_costs(found: Comparison) -> Comparison:
    """Return a comparison whose fits took no time and no memory, for its page."""
    settings = tuple(
        replace(s, figures={key: 0.0 if key in COSTS else value for key, value in s.figures.items()})
        for s in found.settings
    )
    return replace(found, settings=settings)


def _keep(out: Output, cells: pd.DataFrame, name: str = "cells") -> None:
    for number, row in enumerate(cells.drop(columns=COSTS, errors="ignore").to_dict("records")):
        attacks = row.pop("attacks")
        out.number(f"{name}, {number}", row)
        if isinstance(attacks, pd.DataFrame):
            out._keep("findings", f"{name}, {number}", attacks)


@case("compare/cells")
def _cells(out: Output) -> None:
    X, y = mixed(160, seed=1)
    table = X.assign(state=y)
    cells = run_cells(
        table, "state", methods=["random-over", "gaussian-copula", "histograms"], epsilons=[1, 4],
        schema=declared(X, y), **QUICK,
    )  # fmt: skip
    out.number("columns", list(cells.columns))
    _keep(out, cells)


@case("compare/cells, quasi-identifiers and an attack of one's own")
def _more_cells(out: Output) -> None:
    X, y = mixed(160, seed=2)
    cells = run_cells(
        X.assign(state=y), "state", methods=["private-smote", "k-anonymizer", "smotenc", GaussianCopula()],
        epsilons=[2], quasi_identifiers=["age", "ward"], attacks=[_Mine()], **QUICK,
    )  # fmt: skip
    _keep(out, cells)


@case("compare/cells with the membership game")
def _game(out: Output) -> None:
    real, _ = _small()
    _keep(out, run_cells(real, "diagnosis", methods=["smote"], **{**QUICK, "membership": True}))


@case(
    "compare/comparison",
    covers=("auditing.compare", "auditing.Comparison", "auditing.Setting", "auditing.Recommendation"),
)
def _comparison(out: Output) -> None:
    X, y = mixed(160, seed=3)
    found = compare(
        X.assign(state=y), "state", methods=["random-over", "gaussian-copula", "histograms"], epsilons=[1],
        schema=declared(X, y), **QUICK,
    )  # fmt: skip
    for setting in found.settings:
        plain = {
            name: getattr(setting, name)
            for name in (
                "method", "epsilon", "status", "error", "utility", "privacy", "gravest", "verdict",
                "certain_records", "on_frontier", "useless", "suspicion", "copies_of_largest", "not_run",
            )
        }  # fmt: skip
        out.number(setting.name, plain)
        if setting.guarantee is not None:
            out.guarantee(setting.guarantee, setting.name)
        out.number(f"{setting.name}, attacks", setting.attacks)
    out.number("order", [setting.name for setting in found.settings])
    out.number("recommended", found.recommendation.setting)
    out.text("recommendation", [found.recommendation.sentence, *found.recommendation.reasons])
    out.number("original", found.original)
    out.number("facts", found.facts)
    out.number("JSON", _shape(json.loads(found.to_json())))
    found = _without_costs(found)
    out.text("terminal", str(found))
    out.text("page", _visible(found.to_html()))
    out.table("table", found.table)


@case("compare/run_grid", covers=("experiment.run_grid",), quick=True)
def _grid(out: Output) -> None:
    def cell(a: int, b: str) -> dict[str, float]:
        if a == 3:
            raise ValueError("three is too many")
        return {"value": a * len(b)}

    with tempfile.TemporaryDirectory() as folder:
        for name in ("first", "again"):
            found = run_grid(cell, {"a": [1, 2, 3], "b": ["x", "yy"]}, store=folder, retry_failed=False)
            out.table(name, found.drop(columns="seconds", errors="ignore"))


@case("compare/what is refused", quick=True)
def _refused(out: Output) -> None:
    X, y = mixed(80)
    table = X.assign(state=y)
    for name, call in {
        "method": lambda: run_cells(table, "state", methods=["smite"]),
        "label": lambda: run_cells(table, "nothing"),
        "epsilon": lambda: run_cells(table, "state", methods=["histograms"], epsilons=[-1]),
        "quasi-identifier": lambda: run_cells(table, "state", quasi_identifiers=["postcode"]),
        "score": lambda: compare(table, "state", score="x", **QUICK),
        "folds": lambda: run_cells(table, "state", methods=["random-over"], n_folds=1),
    }.items():
        out.error(name, call)
