"""The encoding of rewritten files, from that of the old files: an attempt to make a dictionary costs time."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.actions import AddFile
from delta_core.parquet.footer import MalformedFooter, check_data_file
from delta_core.schema.column_mapping import ColumnMappingMode
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess
from delta_core.table_features.parquet_format import ParquetOptions

LARGE_BYTES: Final = 16 << 20
"""Only the encoding of a file of this size is useful for other files."""

_DICTIONARY_BYTES_PER_VALUE: Final = 8.0


def parquet_like(snapshot: Snapshot, file: AddFile, *, access: DataAccess) -> ParquetOptions | None:
    """Options that try a dictionary only where the old file has a useful one; None when it gives no reason.

    Reads the footer of a large file: two or three small reads. An unreadable one is left to the reader of its
    rows.
    """
    mode = snapshot.column_mapping.mode
    if file.size_bytes < LARGE_BYTES or mode is ColumnMappingMode.ID:  # then names may differ between files
        return None
    place = access.locate(file.path, store=snapshot.store)
    try:
        with access.open(place.store, place.path) as source:
            check_data_file(source)
            source.seek(0)
            footer = pq.read_metadata(source)
    except (MalformedFooter, pa.ArrowException, OSError):
        return None
    without: set[str] = set()
    for position in range(footer.num_columns if footer.num_row_groups else 0):
        chunk = footer.row_group(0).column(position)
        per_value = chunk.total_uncompressed_size / max(1, chunk.num_values)
        if not chunk.has_dictionary_page or per_value >= _DICTIONARY_BYTES_PER_VALUE:
            without.add(chunk.path_in_schema.split(".")[0])
    return ParquetOptions(without_dictionary=frozenset(without)) if without else None
