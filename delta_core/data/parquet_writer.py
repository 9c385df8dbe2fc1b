"""Rows to data files: Hive-style directories, bounded file sizes, statistics.

A file appears in the store whole or not at all, under a name that no other writer uses, and is no part
of the table until a commit adds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from delta_core.actions.add_file import AddFile
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.data.compression import DEFAULT, Compression, choose_compression
from delta_core.data.file_writer import ROW_GROUP_BYTES, FileTarget, PartitionedWriter, data_file_name
from delta_core.data.partitioning import Partition, split_by_partition
from delta_core.data.row_batch import HiddenIds, RowBatch
from delta_core.data.stats_columns import SkippingProperties
from delta_core.data.steps.physical import PhysicalStep
from delta_core.data.write_plan import WritePlan
from delta_core.errors import ConfigurationError
from delta_core.schema.types import StructType
from delta_core.storage.log_store import LogStore

__all__ = ["Compression", "FileOptions", "data_file_name", "write_data_files", "write_rows_to_files"]

DEFAULT_TARGET_FILE_SIZE_BYTES = 1 << 30

Rows: TypeAlias = "pa.Table | pa.RecordBatchReader | Iterable[RowBatch]"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOptions:
    """How the files of one write are made, beyond what the table says.

    Attributes:
        directory: prefix below the table root for the files, such as a job's own directory.
        target_file_size_bytes: a file is closed once it has reached this size; it can be larger by one
            row group. None takes the table's.
        max_rows_per_file: no file gets more rows.
        compression: the Parquet codec; None takes the table's.
        data_change: the `dataChange` flag of the actions.
        tight_bounds: see `stats_json`.
    """

    directory: str = ""
    target_file_size_bytes: int | None = None
    max_rows_per_file: int | None = None
    compression: Compression | None = None
    data_change: bool = True
    tight_bounds: bool | None = None


def write_rows_to_files(
    store: LogStore,
    rows: Rows,
    *,
    plan: WritePlan,
    options: FileOptions | None = None,
    keep_row_ids: bool = False,
    clock: Clock = SYSTEM_CLOCK,
) -> list[AddFile]:
    """Write rows as the files of a table and describe each as an `add` action. Commits nothing.

    This is where rows that are only copied enter: nothing is checked, computed or filled. Memory is bounded
    as in `write_data_files`.

    Args:
        store: the table's store.
        rows: all columns of the table, by logical names, in the Arrow types of its schema.
        plan: the table's.
        options: see there.
        keep_row_ids: write the hidden row-tracking columns, from the `hidden` of row batches; a table
            without stable row ids has no such columns.
        clock: gives the actions' modification time.

    Returns:
        One action per file, in the order they were closed; partition values and statistics are by physical
        name. No rows give no file.
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
    """Write rows as Parquet files and describe each as an `add` action. Commits nothing.

    For tables whose columns are not mapped; see `write_rows_to_files` for others.

    Memory is bounded by one row group per open partition, at most 64 of them, for a reader; a table is
    in memory already. If anything fails, files already finished are deleted.

    Args:
        store: the table's store.
        table: the rows, conformed to `schema`.
        schema: the table's schema.
        partition_columns: names as in `schema`.
        properties: which columns get statistics; None for the default.
        directory: prefix below the table root for the files, such as a job's own directory.
        target_file_size_bytes: a file is closed once it has reached this size; it can be larger by one
            row group.
        max_rows_per_file: no file gets more rows.
        compression: the Parquet codec.
        data_change: the `dataChange` flag of the actions.
        tight_bounds: see `stats_json`.
        clock: gives the actions' modification time.

    Returns:
        One action per file, in the order they were closed. No rows give no file.
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
    table_properties = plan.properties
    target_bytes = options.target_file_size_bytes
    if target_bytes is None:
        target_bytes = table_properties.target_file_size_bytes
    max_rows = options.max_rows_per_file
    if target_bytes <= 0 or (max_rows is not None and max_rows <= 0):
        raise ConfigurationError(
            "A data file needs a positive size and number of rows",
            cause=f"target_file_size_bytes={target_bytes}, max_rows_per_file={max_rows}",
            fix="Pass positive numbers, or leave them out",
        )
    compression = choose_compression(options.compression, table_properties)
    physical = PhysicalStep(plan, keep_row_ids=keep_row_ids)
    names = [physical.partition_name(name) for name in plan.partition_columns]
    target = FileTarget(
        store=store,
        file_schema=physical.file_schema,
        leaves=physical.leaves(properties),
        directory=options.directory.strip("/"),
        target_bytes=target_bytes,
        max_rows=max_rows,
        compression=compression,
        data_change=options.data_change,
        tight_bounds=options.tight_bounds,
        clock=clock,
    )
    with PartitionedWriter(target) as writer:
        for part in _tables(rows, keep_row_ids=physical.keeps_row_ids):
            for partition, split in _split(part, plan):
                writer.write(partition.renamed(names), physical.apply(split))
        return writer.finish()


def _split(batch: RowBatch, plan: WritePlan) -> Iterator[tuple[Partition, RowBatch]]:
    """The rows of each partition, with the hidden ids that they have."""
    table = batch.columns
    if batch.hidden is not None:
        names = _hidden_names(plan.schema)
        hidden = (batch.hidden.row_ids, batch.hidden.row_commit_versions)
        for name, values in zip(names, hidden, strict=True):
            table = table.append_column(name, values)
    for partition, rows in split_by_partition(
        table, plan.schema, plan.partition_columns, keep_columns=plan.materialise_partition_columns
    ):
        if batch.hidden is None:
            yield partition, RowBatch(columns=rows)
            continue
        ids, versions = (rows.column(name) for name in names)
        yield (
            partition,
            RowBatch(
                columns=rows.drop_columns(list(names)),
                hidden=HiddenIds(row_ids=ids, row_commit_versions=versions),
            ),
        )


def _hidden_names(schema: StructType) -> tuple[str, str]:
    """Names for the hidden columns beside those of the schema; no file has them."""
    found = []
    for name in ("row id", "row commit version"):
        while name in schema.names:
            name += "_"
        found.append(name)
    return found[0], found[1]


def _tables(rows: Rows, *, keep_row_ids: bool) -> Iterator[RowBatch]:
    """The rows in larger parts: splitting by partition costs per call, so small batches are gathered."""
    if isinstance(rows, pa.Table):
        yield RowBatch(columns=rows)
        return
    pending: list[RowBatch] = []
    pending_bytes = 0
    for item in rows:
        batch = item if isinstance(item, RowBatch) else RowBatch(columns=item)
        pending.append(batch)
        pending_bytes += batch.columns.nbytes
        if pending_bytes >= ROW_GROUP_BYTES // 4:
            yield _gathered(pending, keep_row_ids)
            pending, pending_bytes = [], 0
    if pending:
        yield _gathered(pending, keep_row_ids)


def _gathered(batches: Sequence[RowBatch], keep_row_ids: bool) -> RowBatch:
    columns = pa.concat_tables(
        [
            part if isinstance(part := batch.columns, pa.Table) else pa.Table.from_batches([part])
            for batch in batches
        ]
    )
    if not keep_row_ids:
        return RowBatch(columns=columns)
    ids, versions = [], []
    for batch in batches:
        known = batch.hidden
        ids.append(_int64(None if known is None else known.row_ids, batch.num_rows))
        versions.append(_int64(None if known is None else known.row_commit_versions, batch.num_rows))
    return RowBatch(
        columns=columns,
        hidden=HiddenIds(
            row_ids=pa.chunked_array([chunk for part in ids for chunk in part.chunks], pa.int64()),
            row_commit_versions=pa.chunked_array(
                [chunk for part in versions for chunk in part.chunks], pa.int64()
            ),
        ),
    )


def _int64(values: pa.Array | pa.ChunkedArray | None, count: int) -> pa.ChunkedArray:
    if values is None:
        values = pa.nulls(count, pa.int64())
    return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values], pa.int64())


def _canonical(schema: StructType, name: str) -> str:
    field = schema.find(name)
    if field is None:
        raise ConfigurationError(
            f"Partition column {name} is not in the schema",
            cause=f"The columns are {', '.join(schema.names)}",
            fix="Partition by one of these",
        )
    return field.name
