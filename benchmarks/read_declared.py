"""Reading a CSV file of mixed kinds by a schema, cell by cell, beside finding out what the columns are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.read_csv import check_agreement, mixed_table
from benchmarks.runner import Side, in_a_fresh_process, in_this_process
from oversafe.data import Schema, read_table

SUMMARY = (
    "`read_table(file, schema=...)`, every cell by its declaration, against `read_table(file)`, which guesses"
)


def sides(quick: bool, folder: Path) -> list[Side]:
    """Write the file and its schema, check that both ways agree on it, and return them."""
    file, described = folder / "mixed.csv", folder / "mixed.toml"
    mixed_table(5_000 if quick else 1_000_000).to_csv(file, index=False)
    schema = Schema.infer(read_table(file))
    schema = replace(schema, columns=tuple(replace(c, domain="public", source="a benchmark") for c in schema))
    schema.to_toml(described)
    check_agreement(read_table(file, schema=schema), read_table(file))

    def memory(work: str) -> int | None:
        setup = f"from oversafe.data import Schema, read_table\nschema = Schema.from_toml({str(described)!r})"
        return in_a_fresh_process(work.format(str(file)), setup)().peak_memory

    return [
        Side(
            "with a schema",
            in_this_process(lambda: read_table(file, schema=schema)),
            ["oversafe", "pyarrow"],
            lambda: memory("read_table({!r}, schema=schema)"),
        ),
        Side(
            "without one",
            in_this_process(lambda: read_table(file)),
            ["oversafe", "pyarrow"],
            lambda: memory("read_table({!r})"),
        ),
    ]
