"""What a column is called does not change what an attack finds."""

import numpy as np
import pandas as pd
import pytest

from oversafe import attack

from .releases import synthetic

PLAIN = ["a", "b", "c", "d"]
ATTACKS = {
    "ReconSMOTE": lambda release, real, holdout: attack.ReconSMOTE(n_jobs=1).run(release, real),
    "DistinSMOTE": lambda release, real, holdout: attack.DistinSMOTE(n_jobs=1).run(release),
    "ExactCopies": lambda *tables: attack.ExactCopies().run(*tables),
    "SinglingOut": lambda *tables: attack.SinglingOut(n_attacks=50, random_state=0).run(*tables),
    "Linkability": lambda *tables: attack.Linkability(n_jobs=1, random_state=0).run(*tables),
    "AttributeInference": lambda *tables: attack.AttributeInference(n_jobs=1).run(*tables),
    "ClosestRecord": lambda *tables: attack.ClosestRecord().run(*tables),
    "NaiveDistinguisher": lambda *tables: attack.NaiveDistinguisher(random_state=0).run(*tables),
}


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(0)
    real = pd.DataFrame(rng.normal(size=(40, 4)).round(2), columns=PLAIN)
    holdout = pd.DataFrame(rng.normal(size=(40, 4)).round(2), columns=PLAIN)
    made = pd.DataFrame(synthetic(real.to_numpy(), 200), columns=PLAIN)
    return pd.concat([real, made], ignore_index=True), real, holdout


@pytest.mark.parametrize(
    "names",
    [[0, None, 1.5, 2], [np.nan, 1, 2, 3], [True, False, 0.5, None], [("a", 1), ("a", 2), "", pd.NaT]],
    ids=str,
)
@pytest.mark.parametrize("name", ATTACKS)
def test_names_of_any_kind_change_nothing(name, names, tables):
    odd = pd.Index(names, tupleize_cols=False)
    expected = ATTACKS[name](*tables)
    found = ATTACKS[name](*(table.set_axis(odd, axis=1) for table in tables))
    assert (found.risk, found.interval) == (expected.risk, expected.interval)
