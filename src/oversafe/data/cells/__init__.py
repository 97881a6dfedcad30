"""The reading of cells: from the text of one, by the declaration of its column, to its value."""

from oversafe.data.cells.categories import Categories, places_of
from oversafe.data.cells.formats import MISSING_MARKERS, FileFormat, check_encoding, check_separator
from oversafe.data.cells.frames import (
    check_categories,
    check_spellings,
    dates_in,
    is_ambiguous,
    mark_by_rows,
    mark_read,
    numbers_in,
    read_texts,
    text_values,
    was_read_by,
    were_read_by_rows,
)
from oversafe.data.cells.grammar import (
    as_date,
    as_number,
    cell_key,
    cell_keys,
    is_marker,
    is_name,
    read_number,
    text_number,
)
from oversafe.data.cells.read import UNREADABLE, Cells, date_unit, read_cell, read_column

__all__ = [
    "MISSING_MARKERS",
    "UNREADABLE",
    "Categories",
    "Cells",
    "FileFormat",
    "as_date",
    "as_number",
    "cell_key",
    "cell_keys",
    "check_categories",
    "check_encoding",
    "check_separator",
    "check_spellings",
    "date_unit",
    "dates_in",
    "is_ambiguous",
    "is_marker",
    "is_name",
    "mark_by_rows",
    "mark_read",
    "numbers_in",
    "places_of",
    "read_cell",
    "read_column",
    "read_number",
    "read_texts",
    "text_number",
    "text_values",
    "was_read_by",
    "were_read_by_rows",
]
