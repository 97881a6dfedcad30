"""``python -m benchmarks NAME ...|all [--quick] [--json FILE]``; without a name, the list of names."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from rich.console import Console

from benchmarks import (
    app_start,
    atlas,
    attacked,
    balanced_auc,
    counts,
    counts_large,
    diffprivlib_logistic,
    distin,
    distin_cases,
    everyday,
    groundhog,
    imbalance_baselines,
    import_time,
    lattice,
    linkability,
    logistic_large,
    mechanisms,
    private_choice,
    private_logistic,
    private_ranks,
    private_smote,
    privbayes,
    read_csv,
    read_declared,
    recon,
    recon_cases,
    recon_large,
    report_page,
    seed,
    shadow,
    singling_out,
    synthesizers,
    tight,
    umap_five,
    umap_smotenc,
)
from benchmarks.page import RESULTS, write_page
from benchmarks.runner import CHECKOUT, measure, show, summarize, write
from benchmarks.tables import show_tables
from oversafe._core.errors import InputError

# Each module says in SUMMARY what it compares and makes its sides, ours first, in sides(quick, folder); or, if it has
# many cases, does all of it in run(quick, folder, rounds). A module with PEER needs an environment of its own for it,
# which benchmarks.peers makes. A module may also have figures(quick): rows that are stored and shown beside the times.
BENCHMARKS: dict[str, ModuleType] = {
    "app": app_start,
    "counts": counts,
    "counts-large": counts_large,
    "atlas": atlas,
    "attacked": attacked,
    "balanced-auc": balanced_auc,
    "diffprivlib": diffprivlib_logistic,
    "distin": distin,
    "distin-cases": distin_cases,
    "everyday": everyday,
    "groundhog": groundhog,
    "imbalance-baselines": imbalance_baselines,
    "import": import_time,
    "lattice": lattice,
    "linkability": linkability,
    "logistic-large": logistic_large,
    "mechanisms": mechanisms,
    "private-choice": private_choice,
    "private-logistic": private_logistic,
    "private-ranks": private_ranks,
    "private-smote": private_smote,
    "privbayes": privbayes,
    "read-csv": read_csv,
    "read-declared": read_declared,
    "recon": recon,
    "recon-cases": recon_cases,
    "recon-large": recon_large,
    "report": report_page,
    "seed": seed,
    "shadow": shadow,
    "singling-out": singling_out,
    "synthesizers": synthesizers,
    "tight": tight,
    "umap-five": umap_five,
    "umap-smotenc": umap_smotenc,
}
ALL = "all"


def default_file(name: str, quick: bool) -> Path:
    # A quick run must not take the place of figures that somebody cites; Git ignores *.local.json.
    return RESULTS / f"{name}{'.local' if quick else ''}.json"


def run_each(names: Sequence[str], quick: bool, rounds: int | None, console: Console) -> int:
    """Run benchmarks one after the other, each in a process of its own, and return 1 if any of them failed.

    What ended already in a run that was stopped is not run again where a benchmark keeps its cells; the times are.
    """
    settings = ["--quick"] * quick + ([] if rounds is None else ["--rounds", str(rounds)])
    failed = []
    for name in names:
        console.rule(name)
        done = subprocess.run([sys.executable, "-m", "benchmarks", name, *settings], cwd=CHECKOUT)
        if done.returncode:
            failed.append(name)
    if failed:
        console.print(f"these ended with an error: {', '.join(failed)}", highlight=False, soft_wrap=True)
    return int(bool(failed))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Time oversafe against its peers."
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="one or more; leave out to list them; all takes hours",
    )
    parser.add_argument(
        "--quick", action="store_true", help="small input and few rounds: does it work at all"
    )
    parser.add_argument(
        "--rounds", type=int, help="turns of each side (7, or 2 with --quick) or seeds of an attack"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the figures go (benchmarks/results)")
    options = parser.parse_args(arguments)
    console = Console()
    if unknown := sorted({*options.names} - {*BENCHMARKS, ALL}):
        parser.error(f"no benchmark is named {', '.join(unknown)}; without a name they are listed")
    if not options.names:
        for name, module in sorted(BENCHMARKS.items()):
            console.print(f"{name:14} {module.SUMMARY}", highlight=False, soft_wrap=True)
        return 0
    if options.rounds is not None and options.rounds < 1:
        parser.error(f"--rounds must be at least 1, not {options.rounds}")
    names = sorted(BENCHMARKS) if ALL in options.names else options.names
    if len(names) > 1:
        if options.json is not None:
            parser.error("--json takes one file, and each of several writes its own; leave it out")
        return run_each(names, options.quick, options.rounds, console)
    [name] = names
    with tempfile.TemporaryDirectory() as folder:
        module = BENCHMARKS[name]
        if hasattr(module, "run"):
            try:
                summary = module.run(options.quick, Path(folder), options.rounds)
            except InputError as error:  # a data set that is not there
                parser.error(str(error))
        else:
            sides = module.sides(options.quick, Path(folder))
            costs = measure(sides, options.rounds or (2 if options.quick else 7))
            summary = summarize(name, sides, costs, options.quick)
            if hasattr(module, "figures"):
                summary["figures"] = module.figures(options.quick)
    show(summary, console)
    show_tables(summary, console)
    file = options.json or default_file(name, options.quick)
    write(summary, file)
    if file.parent == RESULTS and not options.quick:
        write_page()
    console.print(f"figures in {file}", highlight=False, soft_wrap=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
