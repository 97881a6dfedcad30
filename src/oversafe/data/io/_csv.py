"""CSV as people send it: split into cells of text, and where nothing is declared, read as is proposed.

Every cell is split off as text first. Without a declaration encoding, separator and decimal sign are found, and a
column becomes numbers, booleans or dates only if all of its values agree, so that ``007`` or the country code ``NA`` is
never changed by a guess about one cell.
"""

import codecs
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from gzip import GzipFile
from typing import IO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from oversafe._core.errors import InputError
from oversafe.data.cells import FileFormat, check_encoding, check_separator
from oversafe.data.cells.grammar import NUMBER
from oversafe.data.cells.propose import clean, propose_decimal, read_as_proposed

# A comma is the likeliest of the four to occur inside text and numbers, so a tie goes to the others.
SEPARATORS = ("\t", ";", "|", ",")

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    # Before UTF-16: the little-endian mark of UTF-32 begins with that of UTF-16.
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_MAGIC = (
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook (.xls)", "open it in Excel and save it as CSV UTF-8"),
    (b"PAR1", "a Parquet file", "rename it to .parquet"),
    (b"\x1f\x8b", "a gzip file", "rename it to .csv.gz"),
    (b"SQLite format 3\x00", "an SQLite database", "give it as sqlite://path#table"),
    (b"%PDF-", "a PDF document", "export the table as CSV"),
    (b"ARROW1", "an Arrow file", "save it as Parquet or CSV"),
    (b"BZh", "a bzip2 file", "unpack it first"),
    (b"\xfd7zXZ", "an xz file", "unpack it first"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard file", "unpack it first"),
)
_SAMPLE_BYTES = 1 << 20
_SAMPLE_ROWS = 1000

# The beginning of a character beyond ASCII in UTF-8.
_SEQUENCE = re.compile(rb"[\xc2-\xf4][\x80-\xbf]")
_EXCEL_SEPARATOR = re.compile(rb'sep=([^"\0\r\n])(?:\r\n|\r|\n)', re.IGNORECASE)
# A quote opens a field only at the field's start; 5" in the middle of one is an inch mark.
_QUOTED = re.compile(r'(?:(?<=[\t;|,\r\n])|\A)"(?:[^"]++|"")*+"')
_LINE_END = re.compile(r"\r\n|\r|\n")
_LINE_END_BYTES = re.compile(rb"\r\n|\r|\n")

_FORMULA = r"^('*[=+\-@\t\r])"
_NEUTRALISED = r"^'('*[=+\-@\t\r])"
_GERMAN_DATE = r"^([0-9]{2})\.([0-9]{2})\.([0-9]{4})( [0-9:.]+)?$"


def parse(
    data: bytes,
    shown: str,
    *,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    as_text: bool = False,
) -> pa.Table:
    """Return the table in a CSV file's bytes, each column in the type that all of its values share.

    Its metadata say what encoding, separator and decimal sign were found.

    Parameters
    ----------
    data : bytes
        The file's content, unpacked.
    shown : str
        What error messages call the file.
    separator, decimal, encoding : str, optional
        Taken as given instead of being detected.
    as_text : bool
        Whether every cell is to stay text, whatever the others are: numbers with a point, dates as 2024-12-31.
    """
    check_options(separator, decimal, encoding)
    found = encoding
    if as_text:
        # One odd byte must not decide how the others are decoded.
        whole = _decoded(data, shown, encoding or "utf-8")
    elif encoding is None:
        whole, found = _to_utf8(data, shown)
    else:
        whole = _exactly_decoded(data, shown, encoding)
    names, columns, separator = _split_columns(whole, shown, separator, by_header=as_text)
    sign = decimal or "."
    if as_text:
        columns = [_restore(_alike(column, sign)) for column in columns]
    elif len(columns[0]):
        sign = decimal or ("." if separator == "," else propose_decimal(columns))
        columns = _convert(columns, sign)
    table = pa.table(columns, names=names)
    facts = {"encoding": found or "utf-8", "separator": separator, "decimal": sign}
    return table.replace_schema_metadata(facts)


def split(data: bytes, shown: str, file: FileFormat) -> pa.Table:
    """Return the cells of a CSV file as text, split as its format says; empty ones without quotes are missing."""
    names, columns, _ = _split_columns(_decoded(data, shown, file.encoding), shown, file.separator)
    return pa.table(columns, names=names)


def _split_columns(
    whole: bytes, shown: str, separator: str | None, *, by_header: bool = False
) -> tuple[list[str], list[pa.ChunkedArray], str]:
    """Return the columns' names, their cells, and what is between them."""
    text = whole.lstrip(b"\r\n")
    if excel := _EXCEL_SEPARATOR.match(text):
        separator = separator or excel[1].decode()
        text = text[excel.end() :].lstrip(b"\r\n")
    if not text or text.isspace():
        raise InputError(f"{shown} is empty; expected a header line and rows")
    n_lines_skipped = len(_LINE_END.findall(whole[: len(whole) - len(text)].decode()))
    if separator is None:
        # The header is public; the rows are not.
        end = _LINE_END_BYTES.search(text) if by_header else None
        separator = detect_separator(text if end is None else text[: end.start()])
    cells = _split(text, separator, shown, n_lines_skipped)
    names = [column[0].as_py() or "" for column in cells.columns]
    names = _restore(pa.array(names, pa.string())).to_pylist()
    return names, [column.slice(1) for column in cells.columns], separator


def render(
    frame: pd.DataFrame,
    sink: IO[bytes] | GzipFile,
    *,
    separator: str = ",",
    decimal: str = ".",
    mark: bool = False,
) -> None:
    """Write a table as UTF-8 CSV: text quoted, missing values as nothing, numbers in full precision.

    With ``mark`` it begins with the byte order mark by which spreadsheets know UTF-8.
    """
    names = [str(name) for name in frame.columns]
    columns = [_cells(frame.iloc[:, i], name) for i, name in enumerate(names)]
    if decimal == ",":
        columns = [_with_comma(column) for column in columns]
    if mark:
        sink.write(codecs.BOM_UTF8)
    header = _neutralise(pa.array(names, pa.string()), "the header").to_pylist()
    options = csv.WriteOptions(delimiter=separator, batch_size=1 << 14)
    csv.write_csv(pa.table(columns, names=header), sink, options)


def separator_of(data: bytes) -> str | None:
    """Return the separator of a CSV file's first bytes, None if they are no text."""
    for mark, name in _BOMS:
        if data.startswith(mark):
            # Cut anywhere, so that the last character may be half.
            data = data.decode(name, errors="ignore").removeprefix("\ufeff").encode()
            break
    text = data.lstrip(b"\r\n")
    if excel := _EXCEL_SEPARATOR.match(text):
        return excel[1].decode(errors="replace")
    return detect_separator(text) if text.strip() and b"\0" not in text else None


def check_options(separator: str | None, decimal: str | None, encoding: str | None = None) -> None:
    if separator is not None:
        check_separator(separator)
    if encoding is not None:
        check_encoding(encoding)
    if decimal not in (None, ".", ","):
        raise InputError(f"decimal is {decimal!r}; give '.' or ','")


# Encoding


def _exactly_decoded(data: bytes, shown: str, encoding: str) -> bytes:
    """Return the file as UTF-8, or refuse what its encoding does not have."""
    try:
        return data.decode(encoding).removeprefix("\ufeff").encode()
    except UnicodeError as error:
        raise InputError(
            f"{shown} cannot be read as {encoding} ({error}); leave encoding out to have it detected"
        ) from None


def _decoded(data: bytes, shown: str, encoding: str) -> bytes:
    """Return the file as UTF-8; bytes that its encoding does not have become a mark, each by itself."""
    _refuse_other_files(data, shown)
    if codecs.lookup(encoding).name == "utf-8":
        data = data.removeprefix(codecs.BOM_UTF8)
        whole = data if _is_utf8(data) else data.decode(errors="replace").encode()
    else:
        whole = data.decode(encoding, errors="replace").removeprefix("\ufeff").encode(errors="replace")
    return whole.replace(b"\0", "\ufffd".encode()) if b"\0" in whole else whole


def _to_utf8(data: bytes, shown: str) -> tuple[bytes, str]:
    """Return the file as UTF-8, and the encoding that it was found to have."""
    for mark, name in _BOMS:
        if data.startswith(mark):
            return _decode(data, name, shown).removeprefix("\ufeff").encode(), name
    _refuse_binary(data, shown)
    if _is_utf8(data):
        return data, "utf-8"
    if _SEQUENCE.search(data) is None:
        return _decode(data, "cp1252", shown).encode(), "cp1252"
    # Byte by byte, so that one odd byte does not change how the others are decoded.
    return _decode(data, "utf-8", shown, errors="oversafe-cp1252").encode(), "utf-8"


def _one_in_cp1252(error: UnicodeError) -> tuple[str, int]:
    """Return a byte that is no UTF-8 as Windows-1252 has it."""
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.start + 1].decode("cp1252"), error.start + 1


codecs.register_error("oversafe-cp1252", _one_in_cp1252)


def _decode(data: bytes, encoding: str, shown: str, errors: str = "strict") -> str:
    try:
        return data.decode(encoding, errors)
    except UnicodeError:
        raise InputError(
            f"{shown} is neither UTF-8, UTF-16 nor Windows-1252 text; save it as UTF-8 or give its encoding"
        ) from None


def _is_utf8(data: bytes) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    view = memoryview(data)
    try:
        # In pieces, so that a large file is never held as a Python string.
        for start in range(0, len(view), 1 << 22):
            decoder.decode(view[start : start + (1 << 22)])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _refuse_other_files(data: bytes, shown: str) -> None:
    """Refuse what shows by its first bytes that it is no text."""
    if data.startswith(b"PK\x03\x04"):
        if b"xl/" in data:
            raise InputError(
                f"{shown} is named like text but is an Excel workbook; open it in Excel and save it as CSV UTF-8"
            )
        raise InputError(f"{shown} is named like text but seems to be a ZIP archive; unpack it first")
    for magic, kind, remedy in _MAGIC:
        if data.startswith(magic):
            raise InputError(f"{shown} is named like text but seems to be {kind}; {remedy}")


def _refuse_binary(data: bytes, shown: str) -> None:
    _refuse_other_files(data, shown)
    if b"\0" in data:
        raise InputError(
            f"{shown} is named like text but seems to be a binary file (it has NUL bytes); "
            "export the table as CSV or Parquet"
        )


# Separator and cells


def detect_separator(text: bytes) -> str:
    """Return the separator that splits most rows into as many fields as the header.

    Examples
    --------
    >>> detect_separator(b"height;weight\\n1,80;75,5\\n")
    ';'
    """
    sample = text[:_SAMPLE_BYTES].decode("utf-8", errors="ignore")
    lines = [line for line in _LINE_END.split(_QUOTED.sub("q", sample)) if line]
    if len(text) > _SAMPLE_BYTES and len(lines) > 1:
        lines.pop()
    lines = lines[:_SAMPLE_ROWS]
    agreement = {}
    for separator in SEPARATORS:
        n_fields = [line.count(separator) for line in lines]
        if n_fields[0]:
            agreement[separator] = n_fields.count(n_fields[0])
    if agreement:
        return max(agreement, key=lambda separator: agreement[separator])
    # One column: a separator that its values do not contain, so that 1,5 can be a decimal comma.
    return next((s for s in (",", ";", "\t", "|") if not any(s in line for line in lines)), ",")


def _split(text: bytes, separator: str, shown: str, n_lines_skipped: int) -> pa.Table:
    """Return every cell as text, the header as first row; only an empty cell without quotes is missing."""
    n_columns, block_size = _header_width(text, separator, shown)
    bad_rows: list[csv.InvalidRow] = []

    def refuse(row: csv.InvalidRow) -> str:
        bad_rows.append(row)
        return "error"

    names = [str(i) for i in range(n_columns)]
    parse_options = csv.ParseOptions(
        delimiter=separator,
        newlines_in_values=True,
        # In a table of one column, a missing value is an empty line.
        ignore_empty_lines=n_columns > 1,
        invalid_row_handler=refuse,
    )
    convert_options = csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )

    def read(use_threads: bool, block_size: int) -> pa.Table:
        read_options = csv.ReadOptions(column_names=names, use_threads=use_threads, block_size=block_size)
        return csv.read_csv(pa.BufferReader(text), read_options, parse_options, convert_options)

    try:
        try:
            table = read(True, block_size)
        except pa.ArrowInvalid as error:
            if bad_rows or "straddl" not in str(error):
                raise
            # A single row is longer than a block.
            table = read(True, _whole(text))
    except pa.ArrowInvalid as error:
        if not bad_rows:
            raise InputError(
                f"{shown} is not a CSV file that can be read ({_first_line(error)}); export it again"
            ) from None
        bad_rows.clear()
        # Row numbers are only known when the rows are read one after the other.
        with suppress(pa.ArrowInvalid):
            read(False, _whole(text))
        raise InputError(_ragged(bad_rows[0], separator, shown, n_lines_skipped)) from None

    last = table.column(n_columns - 1)[-1].as_py() or ""
    if _LINE_END.search(last) and not text.rstrip(b"\r\n").endswith(b'"'):
        raise InputError(
            f"{shown} has a quoted value that is never closed; close it or double quotes within text"
        )
    return table


def _header_width(text: bytes, separator: str, shown: str) -> tuple[int, int]:
    """Return the number of columns, and the size of the blocks that the header fits in."""
    parse_options = csv.ParseOptions(
        delimiter=separator, newlines_in_values=True, invalid_row_handler=lambda row: "skip"
    )
    reason = ""
    for block_size in (1 << 20, _whole(text)):
        # Without threads: one that still reads ahead when the process ends aborts it (apache/arrow issue 43604).
        read_options = csv.ReadOptions(
            autogenerate_column_names=True, block_size=block_size, use_threads=False
        )
        try:
            with csv.open_csv(pa.BufferReader(text), read_options, parse_options) as reader:
                return len(reader.schema), block_size
        except pa.ArrowInvalid as error:
            reason = _first_line(error)
    raise InputError(f"{shown} is not a CSV file that can be read ({reason}); export it again")


def _whole(text: bytes) -> int:
    return min(len(text) + 1, 2**31 - 1)


def _ragged(row: csv.InvalidRow, separator: str, shown: str, n_lines_skipped: int) -> str:
    remedy = "quote values that contain it, or give the separator"
    if _LINE_END.search(row.text):
        remedy = "close the quote that was opened in this row, or give the separator"
    return (
        f"row {row.number + n_lines_skipped} of {shown} has {row.actual_columns} fields, the header has "
        f"{row.expected_columns} (separator {separator!r}, the header is row {1 + n_lines_skipped}); {remedy}"
    )


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


# From text to types


def _convert(columns: list[pa.ChunkedArray], decimal: str) -> list[pa.ChunkedArray]:
    """Return the columns as the kinds that are proposed for them; the others as text."""

    def convert(column: pa.ChunkedArray) -> pa.ChunkedArray:
        found = read_as_proposed(column, decimal)
        return _restore(column) if found is None else found

    with ThreadPoolExecutor(max_workers=pa.cpu_count()) as pool:
        return list(pool.map(convert, columns))


def _alike(column: pa.ChunkedArray, decimal: str) -> pa.ChunkedArray:
    """Return text in which a number or a date reads as in a column of its own kind, whatever the other cells are."""
    text = clean(column)
    is_number = pc.match_substring_regex(text, f"^(?:{NUMBER[decimal]})$")
    plain = pc.replace_substring_regex(text, r"[^0-9eE+.,\-]", "")
    plain = pc.replace_substring(plain, "." if decimal == "," else ",", "")
    text = pc.if_else(is_number, pc.replace_substring(plain, ",", "."), text)
    padded = pc.replace_substring_regex(
        pc.replace_substring_regex(text, r"^([0-9])\.", r"0\1."), r"\.([0-9])\.", r".0\1."
    )
    is_date = pc.match_substring_regex(padded, _GERMAN_DATE)
    return pc.if_else(is_date, pc.replace_substring_regex(padded, _GERMAN_DATE, r"\3-\2-\1\4"), text)


def _restore(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Take away the apostrophe that keeps a spreadsheet from running text as a formula."""
    if not _any(pc.starts_with(text, "'")):
        return text
    return pc.replace_substring_regex(text, _NEUTRALISED, r"\1")


# From types to text


def _cells(series: pd.Series, name: str) -> pa.Array:
    """Return a column in a type that the CSV writer prints exactly and the reader recognises."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        codes = series.cat.codes.to_numpy()
        return _cells(series.cat.categories.to_series(), name).take(pa.array(codes, mask=codes < 0))
    try:
        array = pa.array(series, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        array = None
    if array is not None:
        kind = array.type
        if pa.types.is_floating(kind):
            return _float_cells(array)
        if pa.types.is_timestamp(kind):
            return _timestamp_cells(array)
        if pa.types.is_null(kind) or _is_text(kind):
            return _neutralise(array.cast(pa.large_string()), f"column {name!r}")
        if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_date(kind):
            return array
        if pa.types.is_decimal(kind):
            return array
    texts = [None if missing else str(value) for value, missing in zip(series, series.isna(), strict=True)]
    try:
        return _neutralise(pa.array(texts, pa.large_string()), f"column {name!r}")
    except UnicodeEncodeError:
        raise InputError(f"column {name!r} has text that is not valid Unicode; repair or remove it") from None


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def _float_cells(array: pa.Array) -> pa.Array:
    if pa.types.is_float16(array.type):
        array = array.cast(pa.float32())
    array = pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)
    values = array.drop_null().to_numpy(zero_copy_only=False)
    # The writer prints 2.0 as 2, which would be read as an integer unless another value shows otherwise:
    # a fraction, the exponent that it gives every value beyond 1e15, or the sign of a negative zero.
    shows_otherwise = (
        (values != np.trunc(values)) | (np.abs(values) >= 1e15) | ((values == 0) & np.signbit(values))
    )
    if len(values) and not shows_otherwise.any():
        return array.cast(pa.int64()).cast(pa.decimal128(20, 1))
    return array


def _with_comma(array: pa.Array) -> pa.Array:
    """Return numbers with a decimal comma as text, everything else as it is."""
    if not (pa.types.is_floating(array.type) or pa.types.is_decimal(array.type)):
        return array
    return pc.replace_substring(array.cast(pa.string()), ".", ",")


def _timestamp_cells(array: pa.Array) -> pa.Array:
    zone = array.type.tz
    if zone is None:
        days = array.cast(pa.date32())
        if _all(pc.equal(days.cast(array.type), array)):
            return days
    for unit in ("s", "ms", "us"):
        try:
            return array.cast(pa.timestamp(unit, zone and "UTC"))
        except pa.ArrowInvalid:
            continue
    return array.cast(pa.timestamp("ns", zone and "UTC"))


def _neutralise(text: pa.Array, where: str) -> pa.Array:
    """Put an apostrophe before text that a spreadsheet would run as a formula."""
    if _any(pc.match_substring(text, "\0")):
        raise InputError(
            f"{where} has text with a NUL character, which CSV cannot hold; remove it or use Parquet"
        )
    return pc.replace_substring_regex(text, _FORMULA, r"'\1")


def _any(mask: pa.ChunkedArray | pa.Array) -> bool:
    return pc.any(mask, min_count=0).as_py()


def _all(mask: pa.ChunkedArray | pa.Array) -> bool:
    return pc.all(mask, min_count=0).as_py()
