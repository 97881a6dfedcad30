"""Tables and what their columns are: schema, encoding, files and the data sets of the papers."""

from oversafe.data.bins import Bins
from oversafe.data.cells import FileFormat
from oversafe.data.column import Column
from oversafe.data.counts import Counts
from oversafe.data.datasets import Dataset, load_dataset
from oversafe.data.domain_warnings import MisfitWarning
from oversafe.data.io.files import read_table, write_table
from oversafe.data.one_hot import fold_one_hot
from oversafe.data.schema import Schema

__all__ = [
    "Bins",
    "Column",
    "Counts",
    "Dataset",
    "FileFormat",
    "MisfitWarning",
    "Schema",
    "fold_one_hot",
    "load_dataset",
    "read_table",
    "write_table",
]
