"""Rows as they come, to the files of a table: gathered, split by partition, laid out as files lay them out.

Rows enter here as the table has them; nothing is checked, computed or filled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import pyarrow as pa

from delta_core.actions.add_file import AddFile
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.data.compression import Compression, choose_compression
from delta_core.data.file_writer import ROW_GROUP_BYTES, FileTarget, PartitionedWriter
from delta_core.data.partitioning import Partition, split_by_partition
from delta_core.data.row_batch import MaterializedRowIds, RowBatch
from delta_core.data.stats_columns import SkippingProperties
from delta_core.data.steps.physical import PhysicalStep
from delta_core.data.write_plan import WritePlan
from delta_core.errors import ConfigurationError
from delta_core.schema.types import StructType
from delta_core.snapshot.arguments import whole_bytes
from delta_core.snapshot.commit_time import whole_number
from delta_core.storage.log_store import LogStore
from delta_core.table_features.parquet_format import page_version_of


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
        name_prefix: how the files' names begin.
    """

    directory: str = ""
    target_file_size_bytes: int | None = None
    max_rows_per_file: int | None = None
    compression: Compression | None = None
    data_change: bool = True
    tight_bounds: bool | None = None
    name_prefix: str = "part"


class RowFileWriter:
    """Writes rows that are pushed as the files of a table, each described by an `add` action.

    A context: when it ends with an error, nothing is left in the store. Memory is bounded by one row group
    per open partition, at most 64 of them.
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
        """Prepare; nothing is written yet.

        Args:
            store: the table's store.
            plan: the table's.
            options: see there.
            properties: which columns get statistics; None for the default.
            keep_row_ids: write the hidden row-tracking columns, from the `hidden` of row batches; a table
                without stable row ids has no such columns.
            clock: gives the actions' modification time.

        Raises:
            ConfigurationError: a size or number of rows that is not positive.
            InvalidTablePropertyError: the table's properties ask for a codec or pages that there are not.
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
                "A data file needs a positive size and number of rows",
                cause=f"target_file_size_bytes={target_bytes}, max_rows_per_file={max_rows}",
                fix="Pass positive numbers, or leave them out",
            )
        physical = PhysicalStep(plan, keep_row_ids=keep_row_ids)
        target = FileTarget(
            store=store,
            file_schema=physical.file_schema,
            leaves=physical.leaves(properties),
            directory=options.directory.strip("/"),
            target_bytes=target_bytes,
            max_rows=max_rows,
            compression=choose_compression(options.compression, table_properties),
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
        """Leave nothing behind after an error."""
        self._files.__exit__(kind, error, trace)

    def write(self, batch: RowBatch) -> None:
        """Take rows: all columns of the table, by logical names, in the Arrow types of its schema.

        Splitting by partition costs per call, so small batches are gathered first.
        """
        if isinstance(batch.columns, pa.Table) and not self._pending and not self._physical.keeps_row_ids:
            self._put(batch)
            return
        self._pending.append(batch)
        self._pending_bytes += batch.columns.nbytes
        if self._pending_bytes >= ROW_GROUP_BYTES // 4:
            self._flush()

    def finish(self) -> list[AddFile]:
        """Close all files; returns one action per file, in the order they were closed.

        Partition values and statistics are by physical name. No rows give no file.
        """
        self._flush()
        return self._files.finish()

    def _flush(self) -> None:
        if self._pending:
            self._put(_gathered(self._pending, self._physical.keeps_row_ids))
            self._pending, self._pending_bytes = [], 0

    def _put(self, batch: RowBatch) -> None:
        for partition, split in _split(batch, self._plan):
            self._files.write(partition.renamed(self._names), self._physical.apply(split))


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
                hidden=MaterializedRowIds(row_ids=ids, row_commit_versions=versions),
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
