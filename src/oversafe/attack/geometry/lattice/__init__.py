"""The lattice attack: real records from single interpolated rows, because real values lie on grids."""

from oversafe.attack.geometry.lattice.decode import DecodedRows, decode_rows
from oversafe.attack.geometry.lattice.grids import Grids, grids_of_known, grids_of_repeats
from oversafe.attack.geometry.lattice.precision import Precision

__all__ = ["DecodedRows", "Grids", "Precision", "decode_rows", "grids_of_known", "grids_of_repeats"]
