import os
from urllib.error import URLError

import imblearn.datasets
import numpy as np
import pandas as pd
import pytest
import sklearn.datasets
from sklearn.utils import Bunch

from oversafe._core.errors import InputError
from oversafe.data import datasets
from oversafe.data.datasets import Dataset, load_dataset
from oversafe.data.io.files import read_table, write_table


@pytest.fixture(autouse=True)
def no_folders(monkeypatch, tmp_path, request):
    """Neither the environment's data sets nor the user's cache, and no network."""
    if request.node.get_closest_marker("data"):
        return

    def refuse(*args, **kwargs):
        raise AssertionError("this test must not download")

    monkeypatch.delenv("OVERSAFE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(imblearn.datasets, "fetch_datasets", refuse)
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", refuse)


def ecoli_download(n=336):
    data = np.random.default_rng(0).normal(size=(n, 7))
    return {"ecoli": Bunch(data=data, target=np.where(np.arange(n) < 35, 1, -1))}


# The embedded set


def test_breast_cancer_is_embedded_and_its_subsample_fixed():
    X, y = load_dataset("breast_cancer")
    assert X.shape == (315, 10)
    assert list(X.columns[:3]) == ["mean_radius", "mean_texture", "mean_perimeter"]
    assert "mean_concave_points" in X.columns
    assert y.name == "diagnosis"
    assert y.value_counts().to_dict() == {"benign": 300, "malignant": 15}
    assert X.index.equals(y.index)
    whole = sklearn.datasets.load_breast_cancer()
    malignant = [i for i in np.random.default_rng(0).permutation(569) if whole.target[i] == 0][:15]
    np.testing.assert_array_equal(X[y == "malignant"].to_numpy(), whole.data[np.sort(malignant), :10])
    # The order of the rows is that of the original.
    position = {tuple(row): i for i, row in enumerate(whole.data[:, :10])}
    positions = [position[tuple(row)] for row in X.to_numpy()]
    assert positions == sorted(positions)


def test_the_holdout_has_everybody_else():
    X, y = load_dataset("breast_cancer")
    X_other, y_other = load_dataset("breast_cancer_holdout")
    assert y_other.value_counts().to_dict() == {"malignant": 197, "benign": 57}
    both = pd.concat([X.assign(y=y), X_other.assign(y=y_other)])
    assert len(both) == 569 and not both.duplicated().any()


def test_frame_has_the_label_as_last_column():
    dataset = load_dataset("breast_cancer")
    assert isinstance(dataset, Dataset)
    assert list(dataset.frame.columns) == [*dataset.X.columns, "diagnosis"]
    assert "diagnosis" not in dataset.X.columns


# Where a set is looked for


def test_the_named_folder_comes_before_the_cache(monkeypatch, tmp_path):
    (tmp_path / "cache" / "oversafe").mkdir(parents=True)
    write_table(pd.DataFrame({"x": [1], "target": [0]}), tmp_path / "cache" / "oversafe" / "employee.parquet")
    X, y = load_dataset("employee")
    assert X["x"].tolist() == [1]
    assert y.name == "target"
    monkeypatch.setenv("OVERSAFE_DATA", str(tmp_path))
    write_table(pd.DataFrame({"x": [2], "target": [0]}), tmp_path / "employee.parquet")
    assert load_dataset("employee").X["x"].tolist() == [2]


def test_a_set_that_cannot_be_downloaded_says_where_it_was_looked_for(monkeypatch, tmp_path):
    monkeypatch.setenv("OVERSAFE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="cannot be downloaded; set OVERSAFE_DATA") as caught:
        load_dataset("employee")
    assert str(tmp_path / "nowhere") in str(caught.value)
    assert str(tmp_path / "cache" / "oversafe") in str(caught.value)


def test_without_a_home_nothing_crashes(monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(datasets.Path, "home", staticmethod(no_home))
    with pytest.raises(InputError, match="cannot be downloaded"):
        load_dataset("employee")
    folders = []

    def fetch(data_home, **kwargs):
        folders.append(data_home)
        return ecoli_download()

    monkeypatch.setattr(imblearn.datasets, "fetch_datasets", fetch)
    assert load_dataset("ecoli").X.shape == (336, 7)
    assert not os.path.exists(folders[0])  # noqa: PTH110


@pytest.mark.parametrize("name", ["ecolli", "../ecoli", "", "Ecoli"])
def test_an_unknown_name_lists_the_names(name):
    with pytest.raises(InputError, match="choose one of abalone, abalone_19, adult") as caught:
        load_dataset(name)
    if name == "ecolli":
        assert "did you mean 'ecoli'?" in str(caught.value)


# Downloads


def test_a_download_gets_names_and_labels_and_is_kept(monkeypatch, tmp_path):
    calls = []

    def fetch(**kwargs):
        calls.append(kwargs)
        return ecoli_download()

    monkeypatch.setattr(imblearn.datasets, "fetch_datasets", fetch)
    first = load_dataset("ecoli")
    assert calls[0]["filter_data"] == ("ecoli",)
    assert calls[0]["shuffle"] is False
    assert list(first.X.columns) == ["mcg", "gvh", "lip", "chg", "aac", "alm1", "alm2"]
    assert first.y.dtype == "int8"
    assert first.y.sum() == 35
    again = load_dataset("ecoli")
    assert len(calls) == 1
    pd.testing.assert_frame_equal(first.frame, again.frame)
    assert (tmp_path / "cache" / "oversafe" / "ecoli.parquet").exists()


def test_a_download_that_cannot_be_kept_is_returned_all_the_same(monkeypatch, tmp_path):
    monkeypatch.setattr(imblearn.datasets, "fetch_datasets", lambda **kwargs: ecoli_download())
    (tmp_path / "cache").write_text("a file where the folder should be")
    assert load_dataset("ecoli").y.sum() == 35


@pytest.mark.parametrize("error", [URLError("Name or service not known"), TimeoutError("timed out")])
@pytest.mark.parametrize("name", ["ecoli", "adult"])
def test_no_network_is_one_sentence(monkeypatch, name, error):
    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr(imblearn.datasets, "fetch_datasets", fail)
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fail)
    with pytest.raises(
        InputError, match=rf"download failed .*; set OVERSAFE_DATA .* {name}.parquet$"
    ) as caught:
        load_dataset(name)
    assert "\n" not in str(caught.value)


def test_a_changed_download_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(imblearn.datasets, "fetch_datasets", lambda **kwargs: ecoli_download(300))
    with pytest.raises(InputError, match="has 300 rows and 8 columns instead of 336 and 8"):
        load_dataset("ecoli")
    assert not (tmp_path / "cache" / "oversafe" / "ecoli.parquet").exists()


def test_adult_from_openml(monkeypatch):
    n = 48842
    categories = [
        "workclass",
        "education",
        "marital-status",
        "occupation",
        "relationship",
        "race",
        "sex",
        "native-country",
    ]
    columns = ["age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation"]
    columns += [
        "relationship",
        "race",
        "sex",
        "capital-gain",
        "capital-loss",
        "hours-per-week",
        "native-country",
    ]
    data = pd.DataFrame(
        {
            name: pd.Categorical(["b", None] * (n // 2)) if name in categories else np.arange(n, dtype=float)
            for name in columns
        }
    )
    target = pd.Series(pd.Categorical([">50K", "<=50K"] * (n // 2)), name="class")

    def fetch(data_id, data_home, as_frame):
        assert data_id == 1590
        return Bunch(data=data, target=target)

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    X, y = load_dataset("adult")
    assert list(X.columns) == columns
    assert X["age"].dtype == "int64"
    assert list(X["workclass"].cat.categories) == ["?", "b"]
    assert X["workclass"].tolist()[:2] == ["b", "?"]
    assert y.tolist()[:2] == [1, 0]
    assert y.dtype == "int8"


def test_letters_and_gamma_rays_from_openml(monkeypatch):
    def fetch(data_id, data_home, as_frame):
        n, d = {6: (20000, 16), 1120: (19020, 10)}[data_id]
        names = [f"x{i}" if data_id == 6 else f"x{i}:" for i in range(d)]
        labels = ["B", "A"] if data_id == 6 else ["g", "h"]
        return Bunch(
            data=pd.DataFrame(np.zeros((n, d)), columns=names),
            target=pd.Series(pd.Categorical(labels * (n // 2)), name="class"),
        )

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    X, y = load_dataset("letter_recognition")
    assert set(X.dtypes) == {np.dtype("int64")}
    assert list(y.cat.categories) == ["A", "B"]
    X, y = load_dataset("magic_gamma")
    assert X.columns[0] == "x0"
    assert y.tolist()[:2] == [0, 1]


# The real sets


@pytest.mark.data
@pytest.mark.parametrize("name", sorted(datasets._SOURCES))
def test_the_real_sets_have_the_stated_shape_and_names(name, data_folder):
    dataset = load_dataset(name)
    assert dataset.frame.shape == datasets._SOURCES[name].shape
    pd.testing.assert_frame_equal(dataset.frame, read_table(data_folder / f"{name}.parquet"))
    if name in datasets._COLUMNS:
        assert list(dataset.X.columns) == datasets._COLUMNS[name]
