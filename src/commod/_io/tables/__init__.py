"""Read and write tables on disk through DuckDB. A bad file is refused in one sentence."""

from commod._io.tables.table import SourceTable, open_tables, read_frame
from commod._io.tables.writing import TABLE_SUFFIXES, check_output, check_outputs, write_table

__all__ = [
    "TABLE_SUFFIXES",
    "SourceTable",
    "check_output",
    "check_outputs",
    "open_tables",
    "read_frame",
    "write_table",
]
