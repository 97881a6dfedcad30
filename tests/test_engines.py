"""Work moves to a cluster, and tables come from servers, without a change here."""

import numpy as np
import pandas as pd
import pytest
from imblearn.pipeline import make_pipeline
from joblib import parallel_config
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from oversafe import audit
from oversafe.data import load_dataset, read_table, write_table
from oversafe.protect import SMOTE

pytestmark = pytest.mark.engines


def test_protectors_in_cross_validation_on_a_dask_cluster_of_processes():
    distributed = pytest.importorskip("distributed", reason="install the extra 'engines'")
    X, y = load_dataset("breast_cancer")
    pipeline = make_pipeline(SMOTE(random_state=0), LogisticRegression(max_iter=5000))
    here = cross_val_score(pipeline, X, y, cv=4, scoring="roc_auc", error_score="raise")
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
    )
    with cluster, distributed.Client(cluster), parallel_config(backend="dask"):
        there = cross_val_score(pipeline, X, y, cv=4, scoring="roc_auc", error_score="raise", n_jobs=-1)
    np.testing.assert_array_equal(here, there)


def test_a_release_in_postgresql_is_audited_where_it_lies(postgres_url):
    X, y = load_dataset("breast_cancer")
    X_new, y_new = SMOTE(random_state=0).fit_resample(X, y)
    address = f"{postgres_url}#release_to_audit"
    write_table(X_new.assign(diagnosis=y_new), address)
    report = audit(address, "diagnosis", real=X.assign(diagnosis=y))
    assert report.verdict.level == "exposed" and report.facts["name"] == "release_to_audit"


def test_a_table_in_spark_equals_the_one_in_memory(spark):
    X, y = load_dataset("breast_cancer")
    table = X.assign(diagnosis=y)
    spark.createDataFrame(table.astype({"diagnosis": object})).createOrReplaceTempView("patients")
    again = read_table("pyspark://#patients")
    key = list(X.columns)
    pd.testing.assert_frame_equal(
        again.sort_values(key, ignore_index=True),
        table.sort_values(key, ignore_index=True),
        check_dtype=False,
    )
