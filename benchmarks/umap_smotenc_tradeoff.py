"""Utility against distance, as in the UMAP-SMOTENC paper: ``python -m benchmarks.umap_smotenc_tradeoff``.

One fold of five and one seed for each data set. Six classifiers are trained on each synthetic table and scored
on the real test fold (F1, macro-averaged for more than two classes). The three distance figures are those of
Section 4.2, over the numbers as in the paper (``--all-columns`` counts differing categories as 1), and the test
fold's own figures are the baseline. The trade-off score is equation 5.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold, train_test_split

from benchmarks.runner import CHECKOUT
from oversafe import protect
from oversafe.attack import ClosestRecord
from oversafe.data import load_dataset
from oversafe.experiment.papers.umap_smotenc import smotenc
from oversafe.measure import tradeoff, train_on_release

SETS = ["personal_loan", "dry_bean", "magic_gamma", "letter_recognition", "occupancy", "covertype_25k"]
Table = tuple[pd.DataFrame, pd.Series]


def umap_learn(X: pd.DataFrame, y: pd.Series) -> Table:
    """Return the paper's table: umap-learn's fit with its own settings, SMOTE-NC, its inverse transform."""
    import umap
    from imblearn.over_sampling import SMOTE, SMOTENC

    numbers = X.select_dtypes("number").columns
    others = [name for name in X.columns if name not in numbers]
    low, high = X[numbers].min(), X[numbers].max()
    width = (high - low).where(high > low, 1)
    codes, classes = pd.factorize(y, sort=True)
    model = umap.UMAP(random_state=0, n_jobs=1)
    embedding = model.fit_transform(((X[numbers] - low) / width).to_numpy(np.float32), codes)
    coded = np.column_stack([embedding, *(X[name].cat.codes for name in others)])
    settings: dict[str, Any] = {
        "sampling_strategy": {c: 2 * n for c, n in enumerate(np.bincount(codes))},
        "random_state": 0,
    }
    places = list(range(2, 2 + len(others)))
    sampler = SMOTENC(places, **settings) if others else SMOTE(**settings)
    made, labels = (part[len(X) :] for part in sampler.fit_resample(coded, codes))
    back = (
        pd.DataFrame(model.inverse_transform(made[:, :2].astype(np.float32)), columns=numbers) * width + low
    )
    whole = [name for name in numbers if X[name].dtype.kind in "iu"]
    back[whole] = back[whole].round()
    for place, name in zip(places, others, strict=True):
        back[name] = pd.Categorical.from_codes(made[:, place].astype(int), dtype=X[name].dtype)
    return back[X.columns], pd.Series(classes[labels])


def generators() -> dict[str, Callable[[pd.DataFrame, pd.Series], Table]]:
    def synthesizer(**settings: Any) -> Callable[[pd.DataFrame, pd.Series], Table]:
        kind = getattr(protect, settings.pop("kind"))
        return lambda X, y: kind(random_state=0, **settings).fit_resample(X, y)

    return {
        "UMAPSMOTENC": synthesizer(kind="UMAPSMOTENC"),
        "UMAPSMOTENC, voted categories": synthesizer(kind="UMAPSMOTENC", categories="vote"),
        "umap-learn's inverse transform": umap_learn,
        "SMOTE-NC": smotenc,
        "GaussianCopula": synthesizer(kind="GaussianCopula"),
        "CTGAN": synthesizer(kind="CTGAN"),
        "TVAE": synthesizer(kind="TVAE"),
    }


def f1_scores(train: Table, test: Table, real: pd.DataFrame) -> dict[str, float]:
    scores = train_on_release(train, test, train=real, classifiers="paper", random_state=0)
    return scores.set_index("classifier")["f1"].to_dict()


def distances(release: Table, train: Table, test: Table, all_columns: bool) -> dict[str, list[float]]:
    columns = list(train[0].columns) if all_columns else list(train[0].select_dtypes("number").columns)
    result = ClosestRecord(n_rows=5000, random_state=0).run(
        release[0][columns], train[0][columns], test[0][columns]
    )
    figures = ["closest_distance", "ratio_to_2nd", "ratio_to_10th"]
    evidence = result.evidence.set_index("figure").loc[figures]
    return {
        "release": evidence["release"].tolist(),
        "baseline": evidence["baseline"].tolist(),
        "identical": [float(result.details["identical_share_release"])],
    }


def add_tradeoffs(rows: dict[str, dict[str, Any]], original: float) -> None:
    """Add equation 5 to each generator's row; the scales run over the generators that are there."""
    figures = pd.DataFrame({name: row["distances"] for name, row in rows.items()}).T
    utility = pd.Series({name: row["mean_f1"] for name, row in rows.items()})
    for name, row in tradeoff(figures, utility, original_utility=original).iterrows():
        rows[str(name)] |= row[["privacy", "utility", "tradeoff"]].to_dict()


def run(name: str, chosen: list[str], rows: int | None, all_columns: bool) -> dict[str, Any]:
    X, y = load_dataset(name)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    train_rows, test_rows = next(folds.split(X, y))
    if rows is not None and rows < len(train_rows):
        train_rows, _ = train_test_split(
            train_rows, train_size=rows, stratify=y.iloc[train_rows], random_state=0
        )
    train = X.iloc[train_rows].reset_index(drop=True), y.iloc[train_rows].reset_index(drop=True)
    test = X.iloc[test_rows].reset_index(drop=True), y.iloc[test_rows].reset_index(drop=True)
    original = f1_scores(train, test, train[0])
    mean = float(np.mean(list(original.values())))
    print(f"{name}: {len(train[0])} rows; trained on the original: {mean:.3f}", flush=True)
    result: dict[str, Any] = {"rows": len(train[0]), "original_f1": original, "original_mean_f1": mean}
    made: dict[str, dict[str, Any]] = {}
    for generator, make in generators().items():
        if generator not in chosen or ("vote" in generator and not len(X.select_dtypes("category").columns)):
            continue
        begin = perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            release = make(*train)
        seconds = perf_counter() - begin
        scores = f1_scores(release, test, train[0])
        figures = distances(release, train, test, all_columns)
        result["baseline_distances"] = figures["baseline"]
        made[generator] = {
            "seconds": seconds,
            "f1": scores,
            "mean_f1": float(np.mean(list(scores.values()))),
            "distances": figures["release"],
            "identical": figures["identical"][0],
        }
        made[generator]["f1_loss"] = mean - made[generator]["mean_f1"]
        made[generator]["above_baseline"] = bool(np.all(np.array(figures["release"]) > figures["baseline"]))
    add_tradeoffs(made, mean)
    result["generators"] = made
    print("  test-set baseline " + " ".join(f"{v:.4f}" for v in result["baseline_distances"]))
    for generator, row in made.items():
        shown = " ".join(f"{v:.4f}" for v in row["distances"])
        print(
            f"  {generator:31} F1 {row['mean_f1']:.3f} (loss {row['f1_loss']:+.3f})  distances {shown} "
            f"{'above' if row['above_baseline'] else 'BELOW'}  trade-off {row['tradeoff']:.3f}  {row['seconds']:.0f} s",
            flush=True,
        )
    return result


def main() -> None:
    names = list(generators())
    parser = argparse.ArgumentParser(prog="python -m benchmarks.umap_smotenc_tradeoff", description=__doc__)
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--generators", nargs="+", default=names[:5], choices=names)
    parser.add_argument("--rows", type=int, help="at most so many training rows")
    parser.add_argument("--all-columns", action="store_true", help="distances over categories too")
    parser.add_argument(
        "--json", type=Path, default=CHECKOUT / "benchmarks" / "results" / "umap-smotenc-tradeoff.json"
    )
    options = parser.parse_args()
    stored = json.loads(options.json.read_text()) if options.json.exists() else {}
    for name in options.sets:
        stored[name] = run(name, options.generators, options.rows, options.all_columns)
        options.json.write_text(json.dumps(stored, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
