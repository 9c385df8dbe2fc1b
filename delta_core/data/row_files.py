"""Writing of row batches as the files of a table: collected, split by partition, in the files' layout.

`RowFileWriter` takes rows in parts, `write_rows_to_files` takes a table or a stream. Rows must be complete
rows of the table; nothing is checked, computed or filled here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeAlias, cast

import pyarrow as pa

from delta_core.actions.add_file import AddFile
from delta_core.arguments import whole_bytes, whole_number
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.data.file_writer import (
    DEFAULT_COMPRESSION,
    ROW_GROUP_BYTES,
    Compression,
    FileTarget,
    PartitionedWriter,
    choose_compression,
)
from delta_core.data.partition_groups import PartitionGroups, partition_rows
from delta_core.data.row_batch import MaterializedRowIds, RowBatch
from delta_core.data.steps.physical import PhysicalStep
from delta_core.data.write_plan import WritePlan
from delta_core.errors import ConfigurationError
from delta_core.schema.types import StructType
from delta_core.storage.log_store import LogStore
from delta_core.table_features.parquet_format import ParquetOptions, page_version_of
from delta_core.table_features.stats_leaves import SkippingProperties


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOptions:
    """Options of the files of one write, in addition to the table's properties.

    Attributes:
        directory: prefix below the table root, such as a job's own directory.
        target_file_size_bytes: a file is closed when it reaches this size; it can be larger by one row
            group. None uses the table's property.
        max_rows_per_file: the maximum number of rows of a file.
        compression: the Parquet codec; None uses the table's property.
        parquet: the encoding that the caller chooses; None takes the table's.
        data_change: the `dataChange` flag of the actions.
        tight_bounds: see `stats_json`.
        name_prefix: the start of the file names.
    """

    directory: str = ""
    target_file_size_bytes: int | None = None
    max_rows_per_file: int | None = None
    compression: Compression | None = None
    parquet: ParquetOptions | None = None
    data_change: bool = True
    tight_bounds: bool | None = None
    name_prefix: str = "part"


class RowFileWriter:
    """Writes row batches as the files of a table, and returns an `add` action for each file.

    A context manager: when it ends with an error, nothing remains in the store. Memory is limited to one row
    group per open partition, with at most 64 open partitions.
    """

    def __init__(
        self,
        store: LogStore,
        *,
        plan: WritePlan,
        options: FileOptions | None = None,
        properties: SkippingProperties | None = None,
        keep_row_ids: bool = False,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """Prepare the writer. Writes nothing yet.

        Args:
            store: the table's store.
            plan: the write plan of the table.
            options: see `FileOptions`.
            properties: which columns get statistics; None for the default.
            keep_row_ids: write the hidden row-tracking columns, from the `hidden` of row batches. Ignored
                for a table without row tracking.
            clock: source of the modification time of the actions.

        Raises:
            ConfigurationError: a size or a number of rows is not positive.
            InvalidTablePropertyError: the table's properties have an unknown codec or page version.
            InvalidTableError, SchemaError: see `PhysicalStep`.
        """
        options = FileOptions() if options is None else options
        table_properties = plan.properties
        target_bytes = whole_bytes(options.target_file_size_bytes, what="target_file_size")
        if target_bytes is None:
            target_bytes = table_properties.target_file_size_bytes
        max_rows = whole_number(
            options.max_rows_per_file, what="max_rows_per_file", fix="Pass a number of rows such as 1000000."
        )
        if target_bytes <= 0 or (max_rows is not None and max_rows <= 0):
            raise ConfigurationError(
                "A data file needs a positive size and number of rows.",
                cause=f"target_file_size_bytes={target_bytes}, max_rows_per_file={max_rows}.",
                fix="Pass positive numbers, or leave out the arguments.",
            )
        parquet = options.parquet or ParquetOptions()
        codec = options.compression if parquet.codec is None else parquet.codec
        physical = PhysicalStep(plan, keep_row_ids=keep_row_ids)
        target = FileTarget(
            store=store,
            file_schema=physical.file_schema,
            leaves=physical.leaves(properties),
            directory=options.directory.strip("/"),
            target_bytes=target_bytes,
            max_rows=max_rows,
            compression=choose_compression(cast("Compression | None", codec), table_properties),
            parquet=parquet,
            data_change=options.data_change,
            tight_bounds=options.tight_bounds,
            clock=clock,
            page_version=page_version_of(table_properties),
            name_prefix=options.name_prefix,
        )
        self._plan = plan
        self._physical = physical
        self._names = [physical.partition_name(name) for name in plan.partition_columns]
        self._files = PartitionedWriter(target)
        self._pending: list[RowBatch] = []
        self._pending_bytes = 0

    def __enter__(self) -> Self:
        """The writer itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove all files after an error."""
        self._files.__exit__(kind, error, trace)

    def write(self, batch: RowBatch) -> None:
        """Write rows with all columns of the table, logical names, and the Arrow types of its schema.

        Splitting by partition has a cost per call, so small batches are collected first.
        """
        if isinstance(batch.columns, pa.Table) and not self._pending and not self._physical.keeps_row_ids:
            self._put(batch)
            return
        self._pending.append(batch)
        self._pending_bytes += batch.columns.nbytes
        if self._pending_bytes >= ROW_GROUP_BYTES // 4:
            self._flush()

    def finish(self) -> list[AddFile]:
        """Close all files. Returns one action per file, in the order in which they were closed.

        Partition values and statistics use physical names. Writes no file without rows.
        """
        self._flush()
        return self._files.finish()

    def _flush(self) -> None:
        if self._pending:
            self._put(_concatenated(self._pending, self._physical.keeps_row_ids))
            self._pending, self._pending_bytes = [], 0

    def _put(self, batch: RowBatch) -> None:
        plan, hidden = self._plan, _hidden_names(self._plan.schema)
        rows = partition_rows(
            _with_hidden(batch, hidden),
            plan.schema,
            plan.partition_columns,
            keep_columns=plan.materialise_partition_columns,
        )
        known = None if batch.hidden is None else hidden
        if self._files.takes_groups(rows):
            groups = rows.grouped()
            self._files.write_groups(
                PartitionGroups(
                    rows=self._physical.apply(_without_hidden(groups.rows, known)),
                    partitions=[partition.renamed(self._names) for partition in groups.partitions],
                    bounds=groups.bounds,
                )
            )
            return
        for partition, part in rows.split():
            self._files.write(
                partition.renamed(self._names), self._physical.apply(_without_hidden(part, known))
            )


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
    compression: Compression = DEFAULT_COMPRESSION,
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


def _with_hidden(batch: RowBatch, names: tuple[str, str]) -> pa.Table:
    """The rows, with their hidden row ids as columns of these names."""
    table = batch.columns
    if batch.hidden is not None:
        hidden = (batch.hidden.row_ids, batch.hidden.row_commit_versions)
        for name, values in zip(names, hidden, strict=True):
            table = table.append_column(name, values)
    return table


def _without_hidden(rows: pa.Table, names: tuple[str, str] | None) -> RowBatch:
    """The reverse of `_with_hidden`; without names, the rows have no hidden columns."""
    if names is None:
        return RowBatch(columns=rows)
    ids, versions = (rows.column(name) for name in names)
    return RowBatch(
        columns=rows.drop_columns(list(names)),
        hidden=MaterializedRowIds(row_ids=ids, row_commit_versions=versions),
    )


def _hidden_names(schema: StructType) -> tuple[str, str]:
    """Unused names for the hidden columns in memory; files do not contain these names."""
    names = []
    for name in ("row id", "row commit version"):
        while name in schema.names:
            name += "_"
        names.append(name)
    return names[0], names[1]


def _concatenated(batches: Sequence[RowBatch], keep_row_ids: bool) -> RowBatch:
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
        hidden=MaterializedRowIds(
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
