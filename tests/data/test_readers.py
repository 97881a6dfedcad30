"""All readers of a cell say the same of it, and what is proposed for a file is what it is read by."""

import pytest

from oversafe.data import Schema, read_table
from tests.data.readers import DECLARATIONS, SPELLINGS, disagreements, write_csv

FILES = {
    "points": {"x": ["1.5", "-2"], "n": ["1'234", "7"], "y": ["a", "b"]},
    "commas": {"x": ["1,5", "-2"], "n": ["1.234", "7"], "y": ["a", "1.5"]},
    "a comma that groups": {"x": ["1,234", "12,345"], "n": ["0.5", "1.5"], "y": ["a", "b"]},
    "a comma that may do both": {"x": ["1,234", "12,345"], "n": ["1", "2"], "y": ["a", "b"]},
    "both signs": {"x": ["1,5", "2,5"], "n": ["0.5", "1.5"], "m": ["1.25", "2"]},
    "as many of both": {"x": ["1,5", "2,5"], "n": ["0.5", "1.5"], "y": ["a", "b"]},
    "shares": {"x": ["63,4 %", "7 %"], "n": ["1'000 %", "2 %"], "y": ["5 %", "6"]},
    "spaces": {"x": ["1 234,5", "1\u00a0234"], "n": [" 5", "6\u202f"], "y": ["12 345", "x"]},
    "dates": {"x": ["1.2.2024", "2024-02-03"], "n": ["2024-01-01 10:20", "2024-01-02"], "y": ["2024", "2025"]},
    "words": {"x": ["true", "FALSE"], "n": ["true", "1"], "y": ["tRUE", "false"]},
    "codes": {"x": ["007", "1"], "n": ["00.5", "1"], "y": ["9" * 19, "9" * 20]},
    "marks": {"x": ["NA", "1.5"], "n": ["NA", "a"], "y": ["", "true"]},
}  # fmt: skip


def test_readers_of_a_cell_agree(tmp_path):
    assert len(SPELLINGS) >= 300 and len(SPELLINGS) * len(DECLARATIONS) >= 3000
    found = disagreements(tmp_path)
    assert not found, f"{len(found)} disagreements, such as {next(iter(found.items()))}"


@pytest.mark.parametrize("columns", FILES.values(), ids=FILES)
def test_a_file_is_read_as_the_schema_that_is_proposed_for_it_says(tmp_path, columns):
    write_csv(tmp_path / "t.csv", columns)
    found = read_table(tmp_path / "t.csv")
    again = read_table(tmp_path / "t.csv", schema=Schema.infer(found))
    for name in columns:
        values, expected = (
            table[name].astype(object).where(table[name].notna(), None) for table in (again, found)
        )
        assert values.tolist() == expected.tolist()
