"""The protocol of "Differential Privacy Under Class Imbalance"."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from benchmarks.imbalance_baselines import COMPARED

from oversafe._core.errors import InputError
from oversafe.papers.base import EIGHT, published
from oversafe.papers.imbalance import (
    BASELINES,
    RANKED,
    baseline_scores,
    mean_ranks,
    private_scores,
    published_weights,
    split_of,
)

PRINTED = published("dp_imbalance_nonprivate").set_index(["dataset", "approach"])


def test_a_split_keeps_the_shares_and_no_row_is_on_both_sides() -> None:
    split = split_of("breast_cancer", 3)
    assert len(split.X) == len(split.y) == 4 * len(split.X_test) + len(split.X) % 4
    assert abs(split.y.mean() - split.y_test.mean()) < 0.01
    assert set(split.X.index).isdisjoint(split.X_test.index)
    assert split.y.mean() < 0.5
    again = split_of("breast_cancer", 3)
    assert (again.y == split.y).all()
    assert again.X.equals(split.X)


@pytest.mark.data
def test_one_hot_columns_are_folded_on_request(data_folder: Path) -> None:
    assert split_of("car_eval_4", 0).X.shape[1] == 21
    assert split_of("car_eval_4", 0, folded=True).X.shape[1] == 6


def test_weights_favour_the_rare_class_by_about_half_the_ratio() -> None:
    y = np.repeat([0, 1], [990, 10])
    weights = published_weights(y)
    assert weights[1] / weights[0] == pytest.approx(99 / 2, rel=0.03)
    assert published_weights(np.repeat([0, 1], 50)) == {0: 0.5, 1: 1.0}


def test_weighting_finds_more_of_the_rare_class() -> None:
    plain = baseline_scores("breast_cancer", "Identity + NonPriv. LogReg", 0)
    weighted = baseline_scores("breast_cancer", "Identity + NonPriv. Weighted LogReg", 0)
    assert weighted["recall"] >= plain["recall"]
    assert weighted != plain


def test_an_unknown_approach_is_named() -> None:
    with pytest.raises(InputError, match="approach = 'magic' was given"):
        baseline_scores("breast_cancer", "magic", 0)


def test_every_approach_has_published_figures_for_every_set() -> None:
    missing = [(name, own) for name in EIGHT for own in BASELINES if (name, own) not in PRINTED.index]
    assert not missing


@pytest.mark.data
@pytest.mark.parametrize("name", ["ecoli", "yeast_me2", "car_eval_4"])
def test_the_published_figures_come_out(name: str, data_folder: Path) -> None:
    # Five splits of ten: wider than the 0.05 that ten splits give, for three sets and the quick learners.
    for approach in [own for own in BASELINES if "LogReg" in own and "Weighted" not in own]:
        found = [baseline_scores(name, approach, split) for split in range(5)]
        for score in COMPARED:
            expected = PRINTED.loc[(name, approach), score]
            assert np.mean([own[score] for own in found]) == pytest.approx(expected, abs=0.12)


def test_ranks_are_means_and_ties_share_them() -> None:
    rows = [
        {"name": name, "epsilon": 1.0, "split": 0, "method": method} | dict.fromkeys(RANKED, score)
        for name, scores in {"one": (0.9, 0.5, 0.5), "two": (0.2, 0.1, 0.3)}.items()
        for method, score in zip("abc", scores, strict=True)
    ]
    ranks = mean_ranks(pd.DataFrame(rows), ["a", "b", "c"])
    assert ranks["auc"].tolist() == [1.5, 2.75, 1.75]
    assert mean_ranks(pd.DataFrame(rows), ["a", "b"])["f1"].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("method", ["Priv. LogReg", "Priv. Weighted LogReg", "PrivateClassifier"])
def test_private_learners_are_scored(method: str) -> None:
    scores = private_scores("breast_cancer", method, 1000.0, 0)
    assert set(RANKED) <= set(scores)
    assert 0.5 < scores["auc"] <= 1.0
    with pytest.raises(InputError, match="method = 'none of them'"):
        private_scores("breast_cancer", "none of them", 1.0, 0)
