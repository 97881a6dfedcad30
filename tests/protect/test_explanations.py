"""Every method describes itself, and can be explained before it is used."""

import pytest

from oversafe import protect
from oversafe._core.errors import InputError
from oversafe.protect.registry import METHODS, RECOMMENDED, explain

CONTRACTS = (protect.Protector, protect.Sampler, protect.Synthesizer)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_explained_with_its_settings(method):
    text = explain(method)
    assert text.startswith(f"{method} ({METHODS[method].__name__})")
    assert "random_state" not in text
    for name in METHODS[method]._get_param_names():
        if name not in ("schema", "random_state", "n_jobs", "ledger"):
            assert f"{name}=" in text
    assert METHODS[method].explanation.does_not in text


def test_explanations_are_of_methods_that_exist():
    with pytest.raises(InputError, match="'magic' is not known"):
        explain("magic")


def test_every_protector_that_is_exported_is_a_method_under_a_name_of_its_own():
    exported = [getattr(protect, name) for name in protect.__all__]
    kinds = [kind for kind in exported if isinstance(kind, type) and kind not in CONTRACTS]
    assert list(METHODS.values()) == kinds
    assert all(METHODS[vars(kind)["method_name"]] is kind for kind in kinds)


def test_the_first_method_is_the_one_that_is_used_unless_another_is_named():
    import inspect

    from oversafe import release
    from oversafe.cli.protect import protect as command

    for call in (release, command):
        assert inspect.signature(call).parameters["method"].default == RECOMMENDED
