"""Every method of the command line can be explained before it is used."""

import pytest

from oversafe._core.errors import InputError
from oversafe.protect.explanations import EXPLANATIONS, explain
from oversafe.protect.registry import METHODS


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_explained_with_its_settings(method):
    text = explain(method)
    assert text.startswith(f"{method} ({METHODS[method].__name__})")
    assert "random_state" not in text
    for name in METHODS[method]._get_param_names():
        if name not in ("schema", "random_state", "n_jobs", "ledger"):
            assert f"{name}=" in text
    if method in EXPLANATIONS:
        assert EXPLANATIONS[method].does_not in text


def test_explanations_are_of_methods_that_exist():
    assert set(EXPLANATIONS) == set(METHODS)
    with pytest.raises(InputError, match="'magic' is not known"):
        explain("magic")
