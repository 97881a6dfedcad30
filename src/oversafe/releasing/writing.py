"""The release itself: where it may be written, how large it may be, and its rows and columns in order."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from oversafe._core.errors import InputError
from oversafe._core.outputs import check_file, check_kept
from oversafe.data.io.files import TABLE_ENDINGS
from oversafe.privacy.signing.manifest import manifest_path


def check_release(
    out: Path, *, overwrite: bool, table: str | None = None, schema: str | Path | None = None
) -> None:
    """Refuse a release, with its manifest beside it, that cannot be written or would destroy something."""
    remedy = "name a .csv, .tsv, .txt (also .gz) or .parquet file"
    if out.suffix.lower().startswith((".xls", ".ods")):
        remedy = "name a .csv file, which Excel opens (see --out-separator), or a .parquet file"
    check_file("--out", out, TABLE_ENDINGS, remedy)
    manifest = manifest_path(out)
    check_file("--out", manifest)
    check_kept(out, overwrite=overwrite, table=table, schema=schema, beside=(manifest,))


def check_style(out: Path, separator: str | None, decimal: str | None) -> None:
    """Refuse a way of writing a release that its file cannot have, or that could not be read again."""
    if separator is None and decimal is None:
        return
    if out.suffix.lower() == ".parquet":
        raise InputError("--out-separator and --out-decimal are for CSV; leave them out, or name a .csv file")
    if separator is not None and (len(separator) != 1 or not separator.isascii() or separator in '"\r\n\0'):
        raise InputError(f"--out-separator {separator!r} was given; give one character, such as ';'")
    if decimal not in (None, ".", ","):
        raise InputError(f"--out-decimal {decimal!r} was given; give '.' or ','")
    if separator is not None and separator == (decimal or "."):
        raise InputError(
            f"--out-separator and --out-decimal are both {separator!r}; give --out-separator ';' with --out-decimal ','"
        )


def check_fits(rows: int | None, n_columns: int) -> None:
    """Refuse more rows than memory holds, before a budget is charged for them."""
    # Windows does not tell.
    if rows is None or not hasattr(os, "sysconf"):
        return
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    # A number has eight bytes.
    if (needed := 8 * rows * n_columns) > memory:
        raise InputError(
            f"--rows {rows} was given, which takes {needed / 1e9:,.0f} GB or more, and the machine has "
            f"{memory / 1e9:,.0f} GB; ask for fewer rows"
        )


def with_labels(X: pd.DataFrame, label: str, y: Any, position: int) -> pd.DataFrame:
    """Return a table with the labels where they stood; of columns by the thousand, each is moved once."""
    labels = pd.Series(y, name=label).set_axis(X.index)
    return pd.concat([X.iloc[:, :position], labels, X.iloc[:, position:]], axis=1)


def shuffled(release: pd.DataFrame, random_state: int | None) -> pd.DataFrame:
    """Return the rows in random order: that of the table is often that of its people's numbers."""
    return release.sample(frac=1, random_state=np.random.default_rng(random_state), ignore_index=True)
