"""Tables at the ends of what a table can be: a result that holds, or one sentence, and never numpy's own warnings."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from oversafe import attack, audit, compare, protect
from oversafe._core.errors import InputError
from oversafe.cli.program import main
from oversafe.data import FileFormat, Schema, read_table, write_table
from oversafe.data.column import Column
from oversafe.data.encode import _conform_column
from oversafe.data.io.parse_warnings import row_of
from oversafe.protect.marginals.network import affordable_degree
from oversafe.releasing.writing import with_labels
from tests.protect.conformance import CASES

N_ROWS = 60
LONGEST_SENTENCE = 1500


def _labels(n: int) -> list[str]:
    return ["ill"] * (n // 5) + ["well"] * (n - n // 5)


def _tables() -> dict[str, pd.DataFrame]:
    rng, n = np.random.default_rng(0), N_ROWS
    plain, other = rng.normal(size=n), rng.normal(size=n)
    mixed = [[1, "x", 2.5, True, None][i % 5] for i in range(n)]
    columns: dict[str, dict[str, Any]] = {
        "one feature": {"a": plain},
        "all constant": {"a": np.full(n, 7.5), "b": ["x"] * n, "c": np.full(n, 3)},
        "all missing": {"a": np.full(n, np.nan), "b": [None] * n},
        "one value in a column": {"a": np.where(np.arange(n) == 3, 1.0, np.nan), "b": plain},
        "infinities": {"a": rng.choice([np.inf, -np.inf, 1.0, 2.5], n), "b": plain},
        "one infinity": {"a": np.where(np.arange(n) == 50, np.inf, plain), "b": other},
        "1e300": {"a": plain * 1e300, "b": other * 1e300, "c": rng.normal(size=n)},
        "1e308": {"a": rng.choice([1.7e308, -1.7e308, 0.0], n), "b": plain},
        "1e-300": {"a": plain * 1e-300, "b": other * 1e-300, "c": rng.normal(size=n)},
        "1e-320": {"a": rng.choice([5e-324, 1e-320, 0.0], n), "b": plain},
        "1e300 and 1e-300": {"a": rng.choice([1e300, 1e-300, -1e300], n), "b": plain * 1e-300},
        "whole numbers of 64 bits": {"a": rng.choice([2**63 - 1, -(2**63), 2**53 + 1], n), "b": plain},
        "mixed types": {"a": pd.Series(mixed, dtype=object), "b": plain},
        "a value for every row": {"a": [f"v{i}" for i in range(n)], "b": plain},
        "numbers as names": {0: plain, 1.5: other},
        "an empty name": {"": plain, "b": other},
        "names of 10 kB": {"n" * 10_000: plain, "m" * 10_000: rng.choice(["x", "z"], n)},
    }
    tables = {name: pd.DataFrame(made).assign(label=_labels(n)) for name, made in columns.items()}
    tables["no feature"] = pd.DataFrame({"label": _labels(n)})
    tables["one row"] = pd.DataFrame({"a": [1.5], "b": ["x"], "label": ["ill"]})
    tables["two rows"] = pd.DataFrame({"a": [1.5, 2.5], "b": ["x", "z"], "label": ["ill", "well"]})
    tables["all duplicates"] = pd.DataFrame({"a": np.full(n, 1.25), "b": ["x"] * n, "label": ["ill"] * n})
    two = pd.DataFrame({"a": [1.25, 2.5], "b": ["x", "z"], "label": ["ill", "well"]})
    tables["two rows repeated"] = two.iloc[np.arange(n) % 5 // 4].reset_index(drop=True)
    repeated = pd.DataFrame(np.column_stack([plain, other]), columns=["a", "a"]).assign(label=_labels(n))
    tables["repeated names"] = repeated
    tables["a label for every row"] = pd.DataFrame(
        {"a": plain, "b": other, "label": [f"k{i}" for i in range(n)]}
    )
    tables["more columns than rows"] = (
        pd.DataFrame(rng.normal(size=(20, 40))).add_prefix("c").assign(label=_labels(20))
    )
    return tables


TABLES = _tables()


def used_or_refused(work: Callable[[], Any]) -> Any:
    """Return what the work gives, None where it is refused in one sentence; a warning of numpy is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("error", pd.errors.PerformanceWarning)
        try:
            return work()
        except InputError as error:
            assert "\n" not in str(error) and 0 < len(str(error)) <= LONGEST_SENTENCE
            return None


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.package is None])
def test_a_protector_gives_a_whole_release_or_one_sentence(name, table):
    X, y = TABLES[table].drop(columns="label"), TABLES[table]["label"]
    made = used_or_refused(lambda: CASES[name].make(random_state=0).fit_resample(X, y))
    if made is None:
        return
    release, labels = made
    assert list(release.columns) == list(X.columns) and len(release) == len(labels)
    assert set(labels) <= set(y)
    for i in range(X.shape[1]):
        real, new = X.iloc[:, i], release.iloc[:, i]
        assert real.isna().any() or not new.isna().any()
        if real.dtype.kind == "f" and not np.isinf(real).any():
            assert not np.isinf(new).any()


ATTACKS: dict[str, Callable[[pd.DataFrame, pd.DataFrame, pd.DataFrame], Any]] = {
    "ReconSMOTE": lambda release, real, holdout: attack.ReconSMOTE(n_jobs=1).run(release, real),
    "RecoverSeed": lambda release, real, holdout: attack.RecoverSeed(max_work=1e6).run(release, real),
    "DistinSMOTE": lambda release, real, holdout: attack.DistinSMOTE(n_jobs=1).run(release),
    "ExactCopies": lambda *tables: attack.ExactCopies().run(*tables),
    "ClosestRecord": lambda *tables: attack.ClosestRecord().run(*tables),
    "ClosestRecord, Gower": lambda *tables: attack.ClosestRecord(metric="gower").run(*tables),
    "Linkability": lambda *tables: attack.Linkability(n_jobs=1).run(*tables),
    "SinglingOut": lambda *tables: attack.SinglingOut(n_jobs=1).run(*tables),
    "SinglingOut, univariate": lambda *tables: attack.SinglingOut("univariate", n_jobs=1).run(*tables),
    "AttributeInference": lambda *tables: attack.AttributeInference(n_jobs=1).run(*tables),
    "NaiveDistinguisher": lambda release, real, holdout: attack.NaiveDistinguisher().run(release, real),
}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_gives_a_risk_or_one_sentence(name, table):
    real = TABLES[table].drop(columns="label")
    half, others = (real.iloc[start::2].reset_index(drop=True) for start in (0, 1))
    for release, holdout in ((real, real), (half, others)):
        result = used_or_refused(lambda r=release, h=holdout: ATTACKS[name](r, real, h))
        if result is not None:
            assert 0 <= result.risk <= 1 and 0 <= result.interval[0] <= result.interval[1] <= 1


GAMES: dict[str, Callable[[pd.DataFrame, pd.Series], Any]] = {
    "GroundHog": lambda X, y: attack.GroundHog(1, 4, 4, per_record=True, random_state=0, n_jobs=1).run(
        protect.SMOTE(), X, y
    ),
    "GroundHog, ensemble": lambda X, y: attack.GroundHog(
        1, 4, 4, features="ensemble", random_state=0, n_jobs=1
    ).run(protect.HistogramSynthesizer(), X, y),
    "ShadowClassifier": lambda X, y: attack.ShadowClassifier(
        n_targets=1, n_models=8, random_state=0, n_jobs=1
    ).run(X, y),
}
# One of each way to fail: the games take their time.
PLAYED = (
    "no feature",
    "all constant",
    "infinities",
    "1e300",
    "1e308",
    "1e-320",
    "two rows",
    "names of 10 kB",
)


@pytest.mark.parametrize("table", PLAYED)
@pytest.mark.parametrize("name", GAMES)
def test_the_membership_game_is_played_or_refused_in_one_sentence(name, table):
    X, y = TABLES[table].drop(columns="label"), TABLES[table]["label"]
    result = used_or_refused(lambda: GAMES[name](X, y))
    assert result is None or 0 <= result.risk <= 1


@pytest.mark.parametrize("table", TABLES)
def test_bounds_for_given_records_are_shares_or_one_sentence(table):
    X = TABLES[table].drop(columns="label")
    for bound in (attack.neighbour_mutuality, lambda X: attack.identifiable_share(X, 100)):
        share = used_or_refused(lambda own=bound: own(X))
        assert share is None or 0 <= share <= 1


@pytest.mark.parametrize("table", ["no feature", "infinities", "1e300", "one row", "all duplicates"])
def test_a_comparison_that_nothing_can_come_of_is_refused_before_it_begins(table):
    with pytest.raises(InputError):
        compare(TABLES[table], "label", methods=["smote"], membership=False, n_jobs=1)


# Files that cannot be made from a table.
TEXTS = {
    "nothing": "",
    "a heading alone": "a,b,label\n",
    "one cell": "label\n1\n",
    "repeated names": "a,a,label\n" + "1,2,x\n3,4,z\n" * 20,
    "repeated names of 10 kB": f"{'n' * 10_000},{'n' * 10_000},label\n" + "1,2,x\n3,4,z\n" * 20,
    "no names": ",,\n" + "1,2,x\n3,4,z\n" * 20,
    "infinite words": "a,b,label\n" + "inf,1,x\n-Infinity,2,z\n1e999,3,x\n" * 20,
    "a number of 60 digits": "a,b,label\n" + f"{'9' * 60},1,x\n1,2,z\n" * 20,
    "a cell of 1 MB": f"a,b,label\n{'x' * 1_000_000},1,ill\n" + "z,2,well\n" * 20,
    "empty cells": "a,b,label\n" + ",,\n" * 20,
}
COMMANDS = {
    "schema init": ["schema", "init", "table.csv", "--out", "schema.toml"],
    "audit": ["audit", "table.csv", "--label", "label", "--report", "report.html"],
    "audit --real": ["audit", "table.csv", "--label", "label", "--real", "table.csv", "--report", "report.html"],
    "protect": ["protect", "table.csv", "--label", "label", "--method", "histograms", "--out", "out.csv"],
    "protect --method smote": ["protect", "table.csv", "--label", "label", "--method", "smote", "--out", "out.csv"],
}  # fmt: skip


@pytest.mark.parametrize("table", [*TEXTS, *TABLES])
def test_a_command_ends_well_or_with_one_sentence_and_leaves_nothing_half_written(
    table, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    if table in TEXTS:
        Path("table.csv").write_text(TEXTS[table])
    else:
        TABLES[table].to_csv("table.csv", index=False)
    for command in COMMANDS.values():
        monkeypatch.setattr(sys, "argv", ["oversafe", *command])
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            warnings.simplefilter("error", pd.errors.PerformanceWarning)
            try:
                main()
                code = 0
            except SystemExit as end:
                code = end.code or 0
        said = capsys.readouterr().err
        assert code in (0, 2), f"{command}: {code}, {said}"
        made = {path.name for path in tmp_path.iterdir()} - {"table.csv", "schema.toml"}
        if code == 2:
            assert said.count("\n") == 1 and len(said) <= LONGEST_SENTENCE and not made
        elif "out.csv" in made:
            assert len(read_table("out.csv")) and made == {"out.csv", "out.csv.manifest.json"}
        for name in made:
            (tmp_path / name).unlink()


def test_a_quoted_name_of_10_kB_is_cut_and_a_path_is_not():
    path = "/folder" * 100
    assert str(InputError(f"{path!r} is no table")) == f"{path!r} is no table"
    assert len(str(InputError(f"column {'n' * 10_000!r} is missing"))) < 200


def test_reconstruction_does_not_depend_on_the_unit_of_the_columns():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 4)), columns=list("abcd"))
    y = np.repeat(["ill", "well"], [10, 30])
    released = []
    for unit in (1.0, 2.0**-990, 2.0**990):
        X_new, y_new = protect.SMOTE(random_state=0, sampling_strategy={"ill": 400}).fit_resample(X * unit, y)
        ill = X_new[np.asarray(y_new) == "ill"].iloc[10:]
        np.testing.assert_array_equal(ill / unit, released[0] if released else ill)
        released.append(ill / unit)
        found = attack.ReconSMOTE(n_jobs=1).run(ill)
        assert found.score(X[:10] * unit)[1] == 1.0


def test_labels_that_are_no_classes_are_refused():
    X = pd.DataFrame({"a": np.arange(3000.0) % 7})
    with pytest.raises(InputError, match="1500 different values in 3000 rows"):
        protect.SMOTE().fit_resample(X, np.arange(3000) // 2)


def test_categories_by_the_thousand_are_no_matrix_of_their_square():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"cat": [f"v{i}" for i in rng.integers(0, 30_000, 100_000)], "a": rng.normal(size=100_000)}
    )
    schema = Schema.infer(table)
    assert schema["cat"].is_category
    # As zeros and ones 24 GB, by which it would be known only once they are asked for.
    with pytest.raises(InputError, match=r"column 'cat' has .* categories"):
        schema.encode(table, one_hot=True)
    y = np.where(rng.random(len(table)) < 0.1, "ill", "well")
    with pytest.raises(InputError, match="PrivateMixture takes at most"):
        protect.PrivateMixture().fit(table, y)
    release, _ = protect.HistogramSynthesizer(random_state=0).fit(table, y).sample(100)
    assert set(release["cat"]) <= set(table["cat"])


def test_networks_of_many_columns_have_fewer_parents_rather_than_take_hours():
    assert [affordable_degree(n, 2) for n in (2, 144, 145, 1000, 1001, 10_000)] == [2, 2, 1, 1, 0, 0]
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 2, size=(40, 1001))).add_prefix("c")
    network = protect.BayesianNetwork(random_state=0).fit(X, np.repeat(["ill", "well"], 20)).network_
    assert {parents for _, parents in network} == {(None,)}


@pytest.mark.slow
def test_a_table_of_10000_columns_is_read_described_and_released(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(200, 10_000)).round(3)).add_prefix("c").assign(label=_labels(200))
    write_table(table, tmp_path / "wide.csv")
    read = read_table(tmp_path / "wide.csv")
    X, y = read.drop(columns="label"), read["label"]
    assert len(Schema.infer(read, label="label")) == 10_001
    assert protect.HistogramSynthesizer(random_state=0).fit(X, y).sample()[0].shape == X.shape
    with pytest.raises(InputError, match="PrivateMixture takes at most"):
        protect.PrivateMixture().fit(X, y)


@pytest.mark.slow
def test_a_release_of_10000_columns_is_audited():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(100, 10_000)).round(3)).add_prefix("c")
    X, y = protect.SMOTE(random_state=0).fit_resample(table, pd.Series(["ill"] * 15 + ["well"] * 85))
    assert audit(X.assign(label=y), "label").verdict.level == "exposed"


@pytest.mark.slow
def test_a_table_of_1e7_rows_is_read_and_released(tmp_path):
    rng, n = np.random.default_rng(0), 10_000_000
    table = pd.DataFrame(
        {
            "a": rng.normal(size=n).round(3),
            "c": rng.integers(0, 100, n),
            "d": rng.choice(["x", "z"], n),
            "label": np.where(rng.random(n) < 0.01, "ill", "well"),
        }
    )
    write_table(table, tmp_path / "long.parquet")
    read = read_table(tmp_path / "long.parquet")
    synthesizer = protect.HistogramSynthesizer(random_state=0).fit(read.drop(columns="label"), read["label"])
    assert int(synthesizer.class_counts_.sum()) == n and len(synthesizer.sample(1000)[0]) == 1000


def test_labels_are_put_back_into_a_wide_table_without_a_warning():
    X = pd.DataFrame({f"c{i}": [float(i), 1.0] for i in range(150)}, copy=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = with_labels(X, "label", pd.Series(["ill", "well"]), 7)
    assert list(made.columns) == [*X.columns[:7], "label", *X.columns[7:]]
    assert made["label"].tolist() == ["ill", "well"]


def test_text_that_is_what_the_schema_says_is_not_written_anew():
    values = pd.Series(["x", None, "1"], dtype="str", name="cat")
    column = Column("cat", "categorical", "str", missing=True, categories=("1", "x"))
    assert _conform_column(column, values, FileFormat(), row_of) is values
    # Numbers are the same category however they are printed, and are then printed as the schema has them.
    other = pd.Series(["x", None, "1.0"], dtype="str", name="cat")
    assert _conform_column(column, other, FileFormat(), row_of).dropna().tolist() == ["x", "1"]
