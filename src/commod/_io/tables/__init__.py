"""Read and write tables on disk through DuckDB. A bad file is refused in one sentence."""

from commod._io.tables.table import (
    TABLE_SUFFIXES,
    SourceTable,
    check_output,
    check_outputs,
    open_tables,
    read_frame,
    write_table,
)
