"""Comparisons measure what they say, resume after any stop, and run on a cluster that loses a worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

from oversafe._core.errors import InputError
from oversafe.attack import Attack, AttackResult
from oversafe.attack.class_tables import ANOTHER_LABEL
from oversafe.auditing.comparing.trials import CompareCell, compare
from oversafe.data import Schema, load_dataset
from oversafe.experiment.memory import PeakMemory
from oversafe.measure import train_on_synthetic
from oversafe.protect import GaussianCopula, HistogramSynthesizer

QUICK = {"n_repeats": 1, "membership": False}
# What differs from run to run.
COSTS = ["seconds", "fit_seconds", "fit_memory"]


def clinic(n: int = 240, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    ill = rng.random(n) < 0.2
    return pd.DataFrame(
        {
            "age": rng.normal(50 + 8 * ill, 9).round(),
            "marker": rng.normal(2.0 * ill, 1.0).round(3),
            "ward": pd.Categorical(rng.choice(["A", "B"], n)),
            "smoker": rng.random(n) < 0.4,
            "dose": np.where(rng.random(n) < 0.1, np.nan, rng.integers(1, 6, n)),
            "state": np.where(ill, "ill", "healthy"),
        }
    )


def same(first: pd.DataFrame, second: pd.DataFrame) -> None:
    """The same figures, cell by cell, but for what they cost."""
    assert list(first.columns) == list(second.columns)
    for name in first.columns.difference(COSTS):
        for a, b in zip(first[name], second[name], strict=True):
            if isinstance(a, pd.DataFrame):
                pd.testing.assert_frame_equal(a, b)
            else:
                assert a == b or (pd.isna(a) and pd.isna(b)), name


def test_the_figures_are_those_of_the_measures():
    table = clinic()
    cells = compare(table, "state", methods=["gaussian-copula", "histograms"], epsilons=[1, 4], **QUICK)
    assert cells["method"].tolist() == ["original", "gaussian-copula", "histograms", "histograms"]
    assert cells["epsilon"].tolist()[2:] == [1.0, 4.0] and cells["epsilon"].isna().tolist() == [
        True,
        True,
        False,
        False,
    ]
    assert (cells["status"] == "done").all()
    utility = train_on_synthetic(
        GaussianCopula(), table.drop(columns="state"), table["state"], n_folds=3, random_state=0
    )
    assert cells.loc[1, "auc"] == pytest.approx(utility.overall.loc["auc", "mean"])
    assert cells.loc[1, "f1_low"] == pytest.approx(utility.overall.loc["f1", "low"])
    attacks = cells.loc[1, "attacks"]
    assert {"ReconSMOTE", "ExactCopies", "Linkability", "AttributeInference", "ClosestRecord"} <= set(
        attacks["attack"]
    )
    # The rarer class is attacked; of the other one copies are looked for.
    assert set(attacks.loc[~attacks["is_largest_class"], "class"]) == {"ill"}
    assert attacks.loc[attacks["is_largest_class"], "attack"].tolist() == ["ExactCopies"]
    assert cells.loc[0, "attacks"].empty
    assert cells.loc[1, "guarantee"]["status"] == "none"
    assert cells.loc[2, "guarantee"]["status"] == "nominal" and cells.loc[2, "guarantee"]["epsilon"] == 1.0
    assert (cells["fit_seconds"][1:] > 0).all()


def test_the_membership_game_is_played_on_made_rows():
    cells = compare(clinic(150), "state", methods=["random-over"], n_repeats=1)
    attacks = cells.loc[1, "attacks"].set_index("attack")
    assert attacks.loc["GroundHog", "threat"] == "membership"
    assert attacks.loc["GroundHog", "class"] == "ill"


def test_a_guarantee_is_that_of_a_release_without_a_seed():
    table = clinic()
    schema = Schema.infer(table, label="state")
    for column in schema:
        schema = schema.declare(column.name, domain="public", source="the codebook")
    cells = compare(table, "state", methods=["histograms"], epsilons=[2], schema=schema, **QUICK)
    assert cells.loc[1, "guarantee"]["status"] == "proven"
    assert cells.loc[1, "guarantee"]["epsilon"] == 2.0


def test_finished_cells_are_never_run_again(tmp_path: Path, monkeypatch):
    first = compare(clinic(), "state", methods=["histograms"], store=tmp_path, **QUICK)

    def never(self, **settings):
        raise AssertionError("run again")

    with monkeypatch.context() as patch:
        patch.setattr(CompareCell, "__call__", never)
        again = compare(clinic(), "state", methods=["histograms"], store=tmp_path, **QUICK)
        same(first, again)
        assert (again["status"] == "done").all()
        # Another table, seed or label is another cell.
        for changed in ({"random_state": 1}, {"n_folds": 2}):
            assert (
                compare(clinic(), "state", methods=["histograms"], store=tmp_path, **QUICK, **changed)[
                    "status"
                ]
                == "failed"
            ).all()
        other = clinic().assign(age=lambda t: t["age"] + 1)
        assert (
            compare(other, "state", methods=["histograms"], store=tmp_path, **QUICK)["status"] == "failed"
        ).all()


def test_own_protectors_and_one_that_fails():
    class Broken(HistogramSynthesizer):
        def fit_resample(self, X, y):
            raise ValueError("out of order")

    cells = compare(
        clinic(), "state", methods={"mine": HistogramSynthesizer(epsilon=3.0), "broken": Broken()}, **QUICK
    )
    assert cells["status"].tolist() == ["done", "done", "failed"]
    assert cells.loc[1, "epsilon"] == 3.0
    assert "out of order" in cells.loc[2, "error"]


class Jitter(BaseEstimator):
    """Rows with noise as arrays; parts of them word for word."""

    def __init__(self, noise=1.0, kept=0, random_state=None):
        self.noise = noise
        self.kept = kept
        self.random_state = random_state

    def fit_resample(self, X, y):
        rng = np.random.default_rng(self.random_state)
        array = X.to_numpy(dtype=float)
        made = array + rng.normal(size=array.shape) * self.noise
        rare = np.flatnonzero((y == y.value_counts().index[-1]).to_numpy())[: self.kept]
        made[rare] = array[rare]
        return made, y.to_numpy()


class Model(BaseEstimator):
    """Learns and draws; says nothing of arrays or columns."""

    def fit(self, X, y):
        self.X_, self.y_ = X.to_numpy(), y.to_numpy()

    def sample(self):
        return self.X_ + 0.5, self.y_


class OneClass(BaseEstimator):
    def fit_resample(self, X, y):
        return X[y == y.mode()[0]], y[y == y.mode()[0]]


def numbers(n: int = 240) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    ill = rng.random(n) < 0.2
    return pd.DataFrame(rng.normal(size=(n, 3)) + 2 * ill[:, None], columns=list("abc")).assign(
        state=np.where(ill, "ill", "healthy")
    )


def test_own_methods_of_any_make():
    found = compare(numbers(), "state", methods=["random-over", Jitter(), Jitter(2.0), Model()], **QUICK)
    assert found["method"].tolist() == ["original", "random-over", "Jitter", "Jitter (2)", "Model"]
    assert found["error"].isna().all()
    assert found.loc[2, "auc"] > 0.6 and found.loc[4, "auc"] > 0.6
    assert found.loc[2, "guarantee"]["status"] == "none"


def test_a_release_without_a_class_is_noticed():
    found = compare(numbers(), "state", methods={"one": OneClass()}, **QUICK)
    assert found.loc[1, "status"] == "done" and found.loc[1, "missing_classes"] == ["ill"]
    assert found.loc[0, "missing_classes"] == []


def test_real_rows_in_a_release_are_read_out():
    methods = {"one": Jitter(kept=1), "none": Jitter(), "smote": "smote", "all": "random-over"}
    cells = compare(numbers(), "state", methods=methods, **QUICK).set_index("method")
    copied = {
        name: part[part["attack"] == "ExactCopies"].set_index("is_largest_class")["certain_records"].to_dict()
        for name, part in cells["attacks"].items()
        if len(part)
    }
    # One row in thirty, of numbers with sixteen digits, is no chance.
    assert copied["one"] == {True: 0, False: 1} and copied["none"] == {True: 0, False: 0}
    # Those of the largest class stand there too.
    assert copied["smote"] == copied["all"] and copied["all"][True] > copied["all"][False] > 20


class OtherLabels(BaseEstimator):
    """The real rows, with each other's labels."""

    def fit_resample(self, X, y):
        return X, y.map({"ill": "healthy", "healthy": "ill"})


def test_real_rows_under_other_labels_are_read_out():
    attacks = compare(numbers(), "state", methods={"swapped": OtherLabels()}, **QUICK).loc[1, "attacks"]
    of = attacks.set_index("class")["certain_records"]
    assert of[ANOTHER_LABEL] == len(numbers()) * 2 // 3 and of.drop(ANOTHER_LABEL).eq(0).all()


def test_chance_copies_nobody():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.integers(0, 2, size=(300, 4)), columns=list("abcd")).astype(str)
    table["state"] = np.where(rng.random(300) < 0.3, "ill", "healthy")
    cells = compare(table, "state", methods=["histograms", "gaussian-copula"], epsilons=[1], **QUICK)
    for attacks in cells["attacks"][1:]:
        # Every release of four yes-or-no columns holds all sixteen rows.
        assert (attacks.loc[attacks["attack"] == "ExactCopies", "certain_records"] == 0).all()


class SharedMaximum(Attack):
    def __init__(self, risk):
        self.risk = risk

    def run(self, release, real, holdout=None):
        assert holdout is not None and "state" not in release
        return AttackResult("SharedMaximum", "attribute", self.risk, (0.1, 0.9), pd.DataFrame())


class Failing(Attack):
    def run(self, release, real, holdout=None):
        raise ValueError("out of order")


def test_own_attacks(tmp_path: Path):
    found = compare(
        numbers(),
        "state",
        methods="random-over",
        attacks=[SharedMaximum(0.5), Failing()],
        store=tmp_path,
        **QUICK,
    )
    attacks = found.loc[1, "attacks"].set_index("attack")
    assert attacks.loc["SharedMaximum", ["risk", "class"]].tolist() == [0.5, "ill"]
    assert found.loc[1, "not_run"]["Failing on class 'ill'"] == "it failed with ValueError: out of order"
    # Another setting of an attack is another cell.
    other = compare(
        numbers(), "state", methods="random-over", attacks=[SharedMaximum(0.6)], store=tmp_path, **QUICK
    )
    assert other.loc[1, "attacks"].set_index("attack").loc["SharedMaximum", "risk"] == 0.6


class Bare:
    def fit_resample(self, X, y):
        return X, y


class Forgetful(BaseEstimator):
    def __init__(self, noise=1.0):
        self.level = noise

    def fit_resample(self, X, y):
        return X, y


def test_a_release_made_from_the_test_rows_fails():
    table = clinic().drop(columns=["smoker", "ward"]).assign(exact=np.random.default_rng(1).normal(size=240))

    class Leaking(HistogramSynthesizer):
        def fit_resample(self, X, y):
            return table.drop(columns="state"), table["state"]

    cells = compare(table, "state", methods={"leaking": Leaking()}, **QUICK)
    assert cells.loc[1, "status"] == "failed" and "tested on" in cells.loc[1, "error"]


def test_more_than_two_classes():
    table = clinic(360).assign(state=np.tile(["a", "a", "a", "b", "b", "c"], 60))
    cells = compare(table, "state", methods=["smote"], **QUICK)
    assert cells.loc[1, "status"] == "done"
    attacks = cells.loc[1, "attacks"]
    assert set(attacks["class"]) == {"a", "b", "c"}
    assert attacks.loc[attacks["class"] == "a", "attack"].tolist() == ["ExactCopies"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"methods": ["smoke"]}, "is not known"),
        ({"methods": "smoke"}, "'smoke' is not known"),
        ({"methods": {"mine": "smoke"}}, "'smoke' is not known"),
        ({"methods": {"mine": Jitter}}, r"is the class Jitter; give an object of it: Jitter\(\)"),
        ({"methods": ["smote", Jitter]}, "is the class Jitter"),
        ({"methods": {"mine": Bare()}}, "let it inherit from sklearn.base.BaseEstimator"),
        ({"methods": {"mine": Forgetful()}}, "'mine' cannot be copied"),
        ({"methods": {"mine": 5}}, "neither fit_resample nor fit and sample"),
        ({"methods": {"original": Jitter()}}, "which is the table itself"),
        ({"methods": {}}, "no method"),
        ({"attacks": [Failing]}, "is the class Failing"),
        ({"attacks": [5]}, "which is not an Attack"),
        ({"epsilons": []}, "no epsilon"),
        ({"n_folds": 100}, "folds needs one"),
        ({"quasi_identifiers": ["town"]}, "no feature column"),
    ],
)
def test_bad_use(changes, message, monkeypatch):
    def never(self, **settings):
        raise AssertionError("something was run")

    monkeypatch.setattr(CompareCell, "__call__", never)
    with pytest.raises(InputError, match=message):
        compare(clinic(), "state", **{**QUICK, **changes})


def test_tables_that_cannot_be_compared():
    with pytest.raises(InputError, match="no label"):
        compare(clinic().assign(state=lambda t: t["state"].where(t.index > 0)), "state")
    with pytest.raises(InputError, match="which a release must not carry"):
        compare(clinic().assign(mail=[f"p{i}@example.org" for i in range(240)]), "state")


def test_memory_is_watched():
    with PeakMemory() as memory:
        block = np.ones(40_000_000)
        time.sleep(0.1)
    del block
    if sys.platform == "linux":
        assert memory.bytes is not None and memory.bytes > 200_000_000


_RUN = """
import sys
from oversafe.data import load_dataset
from oversafe.auditing.comparing.trials import compare
if __name__ == "__main__":
    table = load_dataset("breast_cancer").frame
    methods = ["random-over", "gaussian-copula", "histograms", "private-smote"]
    cells = compare(table, "diagnosis", methods=methods, epsilons=[1, 5], store=sys.argv[1], n_repeats=1,
                    membership=False, n_jobs=int(sys.argv[2]))
"""


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize(("how", "n_jobs"), [(signal.SIGKILL, 2), (signal.SIGINT, 1)])
def test_a_killed_run_goes_on_and_ends_with_the_same_table(tmp_path: Path, how: signal.Signals, n_jobs: int):
    store = tmp_path / "cells"
    command = [sys.executable, "-c", _RUN, str(store), str(n_jobs)]
    process = subprocess.Popen(
        command,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 300
    while process.poll() is None and len(list(store.glob("*.json"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    # The whole session, workers too: as a machine that goes down takes them all.
    os.killpg(process.pid, how)
    process.wait(60)
    finished = {path.name: path.stat().st_mtime_ns for path in store.glob("*.json")}
    assert 2 <= len(finished) < 7
    options = {
        "methods": ["random-over", "gaussian-copula", "histograms", "private-smote"],
        "epsilons": [1, 5],
        **QUICK,
    }
    table = load_dataset("breast_cancer").frame
    resumed = compare(table, "diagnosis", store=store, **options)
    assert {name: (store / name).stat().st_mtime_ns for name in finished} == finished
    same(resumed, compare(table, "diagnosis", **options))


@pytest.mark.engines
def test_on_a_dask_cluster_that_loses_a_worker(tmp_path: Path):
    distributed = pytest.importorskip("distributed", reason="install the extra 'engines'")
    from threading import Thread

    from joblib import parallel_config

    table = load_dataset("breast_cancer").frame
    options = {
        "methods": ["random-over", "gaussian-copula", "histograms", "private-smote"],
        "epsilons": [1, 5],
        **QUICK,
    }
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
    )
    store = tmp_path / "cells"
    killed = []
    with cluster, distributed.Client(cluster) as client:
        pids = sorted(client.run(os.getpid).values())
        assert len(set(pids)) == 2 and os.getpid() not in pids

        def kill_one() -> None:
            deadline = time.monotonic() + 300
            while not list(store.glob("*.json")) and time.monotonic() < deadline:
                time.sleep(0.05)
            os.kill(pids[0], signal.SIGKILL)
            killed.append(len(list(store.glob("*.json"))))

        killer = Thread(target=kill_one)
        killer.start()
        with parallel_config(backend="dask"):
            there = compare(table, "diagnosis", store=store, n_jobs=2, **options)
        killer.join()
    # It died while cells were still to be run.
    assert killed and killed[0] < len(there)
    assert (there["status"] == "done").all()
    same(there, compare(table, "diagnosis", **options))
