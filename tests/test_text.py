"""Texts that are shown hold nothing that must not be."""

import pytest

from oversafe._core.text import without_password


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://ann:secret@db/x#t", "postgresql://ann@db/x#t"),
        ("postgresql://ann:se/cr@et@db/x#t", "postgresql://ann@db/x#t"),
        ("postgresql://db/x?user=ann&password=secret#t", "postgresql://db/x?user=ann&password=***#t"),
        ("duckdb://folder/file.ddb#t", "duckdb://folder/file.ddb#t"),
        ("a:b@c.csv", "a:b@c.csv"),
    ],
)
def test_a_password_is_not_shown(address, shown):
    assert without_password(address) == shown
