"""The identity of rows: keys of equal ones, sketches of those that differ in one column, and a table's fingerprint."""

from oversafe.data.rows.fingerprint import table_digest
from oversafe.data.rows.keys import aligned, as_released, column_codes, is_copied, is_copy, row_keys

__all__ = ["aligned", "as_released", "column_codes", "is_copied", "is_copy", "row_keys", "table_digest"]
