"""Writing of rows as data files: Hive-style directories, limited file sizes, statistics.

Readers see a complete file or no file, under a name that no other writer uses. A file is not part of the
table until a commit adds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import pyarrow as pa

from delta_core.actions.add_file import AddFile
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.data.compression import DEFAULT, Compression
from delta_core.data.file_writer import data_file_name
from delta_core.data.row_batch import RowBatch
from delta_core.data.row_files import FileOptions, RowFileWriter
from delta_core.data.stats_columns import SkippingProperties
from delta_core.data.write_plan import WritePlan
from delta_core.errors import ConfigurationError
from delta_core.schema.types import StructType
from delta_core.storage.log_store import LogStore

__all__ = ["Compression", "FileOptions", "data_file_name", "write_data_files", "write_rows_to_files"]

DEFAULT_TARGET_FILE_SIZE_BYTES = 1 << 30

Rows: TypeAlias = "pa.Table | pa.RecordBatchReader | Iterable[RowBatch]"


def write_rows_to_files(
    store: LogStore,
    rows: Rows,
    *,
    plan: WritePlan,
    options: FileOptions | None = None,
    keep_row_ids: bool = False,
    clock: Clock = SYSTEM_CLOCK,
) -> list[AddFile]:
    """Write rows as data files of a table and return an `add` action for each. Commits nothing.

    For rows that are only copied: nothing is checked, computed or filled. Memory is limited as in
    `write_data_files`.

    Args:
        store: the table's store.
        rows: all columns of the table, by logical names, in the Arrow types of its schema.
        plan: the write plan of the table.
        options: see `FileOptions`.
        keep_row_ids: write the hidden row-tracking columns, from the `hidden` of row batches. Ignored for a
            table without row tracking.
        clock: source of the modification time of the actions.

    Returns:
        One action per file, in the order in which the files were closed. Partition values and statistics use
        physical names. Writes no file without rows.
    """
    return _write(
        store,
        rows,
        plan=plan,
        options=options or FileOptions(),
        properties=plan.properties,
        keep_row_ids=keep_row_ids,
        clock=clock,
    )


def write_data_files(
    store: LogStore,
    table: pa.Table | pa.RecordBatchReader,
    *,
    schema: StructType,
    partition_columns: Sequence[str] = (),
    properties: SkippingProperties | None = None,
    directory: str = "",
    target_file_size_bytes: int = DEFAULT_TARGET_FILE_SIZE_BYTES,
    max_rows_per_file: int | None = None,
    compression: Compression = DEFAULT,
    data_change: bool = True,
    tight_bounds: bool | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> list[AddFile]:
    """Write rows as Parquet files and return an `add` action for each. Commits nothing.

    For tables without column mapping. Use `write_rows_to_files` for other tables.

    For a reader, memory is limited to one row group per open partition, with at most 64 open partitions; a
    table is in memory already. After an error, files that are already finished are deleted.

    Args:
        store: the table's store.
        table: the rows, conformed to `schema`.
        schema: the table's schema.
        partition_columns: names as in `schema`.
        properties: which columns get statistics; None for the default.
        directory: prefix below the table root such as a job's own directory.
        target_file_size_bytes: a file is closed when it reaches this size; it can be larger by one row
            group.
        max_rows_per_file: the maximum number of rows of a file.
        compression: the Parquet codec.
        data_change: the `dataChange` flag of the actions.
        tight_bounds: see `stats_json`.
        clock: source of the modification time of the actions.

    Returns:
        One action per file, in the order in which the files were closed. Writes no file without rows.
    """
    plan = WritePlan.plain(schema, partition_columns=[_canonical(schema, name) for name in partition_columns])
    return _write(
        store,
        table,
        plan=plan,
        options=FileOptions(
            directory=directory,
            target_file_size_bytes=target_file_size_bytes,
            max_rows_per_file=max_rows_per_file,
            compression=compression,
            data_change=data_change,
            tight_bounds=tight_bounds,
        ),
        properties=properties,
        keep_row_ids=False,
        clock=clock,
    )


def _write(
    store: LogStore,
    rows: Rows,
    *,
    plan: WritePlan,
    options: FileOptions,
    properties: SkippingProperties | None,
    keep_row_ids: bool,
    clock: Clock,
) -> list[AddFile]:
    with RowFileWriter(
        store, plan=plan, options=options, properties=properties, keep_row_ids=keep_row_ids, clock=clock
    ) as writer:
        if isinstance(rows, pa.Table):
            writer.write(RowBatch(columns=rows))
        else:
            for item in rows:
                writer.write(item if isinstance(item, RowBatch) else RowBatch(columns=item))
        return writer.finish()


def _canonical(schema: StructType, name: str) -> str:
    field = schema.find(name)
    if field is None:
        raise ConfigurationError(
            f"The partition column {name} is not in the schema.",
            cause=f"The columns are {', '.join(schema.names)}.",
            fix="Partition by one of these columns.",
        )
    return field.name
