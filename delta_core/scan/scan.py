"""A query on one version of a table: the files that it needs, and the rows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NoReturn

import pyarrow as pa

from delta_core import expressions
from delta_core.actions import DeletionVectorDescriptor
from delta_core.arguments import parse_shard
from delta_core.boundary import public_class, refuse_pickle
from delta_core.deletion_vectors.reader import read_deletion_vector
from delta_core.expressions.ast import TRUE, Expression
from delta_core.expressions.typing import resolve_predicate
from delta_core.replay.live_files import LiveFiles
from delta_core.scan.data_skipping import FilesOfPartitions, prune_by_partitions, prune_by_statistics
from delta_core.scan.partition_pruning import split_by_partition_columns
from delta_core.scan.record_batches import DEFAULT_BATCH_ROWS, FileReader
from delta_core.scan.row_tracking import FileRowTracking, RowTrackingReader, require_row_tracking_columns
from delta_core.schema.types import StructType
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess, ObjectLocation
from delta_core.storage.log_store import LogStore
from delta_core.table_features.feature import writer_features
from delta_core.table_features.row_tracking import RowTracking

_MAX_READERS = 8
_FILES_PER_BATCH = 1024


@public_class
class Scan:
    """Some columns of the rows of a snapshot for which a predicate is true.

    Immutable. Creating a scan loads the list of live files, because they determine whether the rows can be
    read at all. Data files are read only during iteration. Pruning happens once.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        *,
        predicate: Expression | str | None = None,
        columns: Sequence[str] | None = None,
        metadata_columns: Sequence[str] = (),
        batch_rows: int = DEFAULT_BATCH_ROWS,
        allowed_roots: Sequence[LogStore] = (),
    ) -> None:
        """Set up the scan.

        Args:
            snapshot: the version to read.
            predicate: Spark SQL or an expression; None selects every row.
            columns: names in the order of the result; None is all, in schema order.
            metadata_columns: those of ROW_TRACKING_COLUMNS to add after the columns.
            batch_rows: maximum number of rows per batch.
            allowed_roots: stores below whose roots absolute paths in the log are allowed.

        Raises:
            ExpressionError: the predicate is invalid or does not fit the schema.
            SchemaError: a column does not exist.
            UnsupportedTableFeatureError: the table cannot be read.
            CorruptLogError: a file has a deletion vector, which the protocol does not allow.
            RowTrackingDisabledError: metadata columns are requested, and row tracking is not enabled.
            ConfigurationError: a metadata column does not exist.
        """
        snapshot.require_readable(through_scan=True)
        self._snapshot = snapshot
        self._access = DataAccess(allowed_roots=tuple(allowed_roots), clock=snapshot.clock)
        schema = snapshot.schema
        if isinstance(predicate, str):
            self._predicate = expressions.parse_predicate(predicate, schema)
        else:
            self._predicate = TRUE if predicate is None else resolve_predicate(predicate, schema)
        self._partition_columns = canonical_names(schema, snapshot.partition_columns)
        reader = partial(
            FileReader,
            schema=schema,
            columns=columns,
            partition_columns=self._partition_columns,
            batch_rows=batch_rows,
            mapping=snapshot.column_mapping,
            row_tracking=_row_tracking(snapshot, metadata_columns),
            access=self._access,
        )
        _, residual = split_by_partition_columns(self._predicate, self._partition_columns)
        self._residual_reader = reader(predicate=None if residual == TRUE else residual)
        self._whole_reader = reader(predicate=None if self._predicate == TRUE else self._predicate)
        self._is_tracked = bool(metadata_columns)

    def __reduce__(self) -> NoReturn:
        """Raises ConfigurationError, which states what to pass instead."""
        raise refuse_pickle(
            "A Scan",
            "Pass the DeltaTable to the other process, and create the scan there. "
            "A DeltaTable can be pickled.",
        )

    @property
    def predicate(self) -> Expression:
        """The predicate, resolved; TRUE when none was passed."""
        return self._predicate

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows."""
        return self._residual_reader.arrow_schema

    @cached_property
    def live_files(self) -> LiveFiles:
        """The files that may contain matching rows, in columnar form. Shares the snapshot's columns."""
        return prune_by_statistics(
            self._after_partitions.files,
            self._predicate,
            self._snapshot.schema,
            self._partition_columns,
            mapping=self._snapshot.column_mapping,
        )

    @cached_property
    def report(self) -> ScanReport:
        """The effect of pruning. Reads no data file."""
        everything = self._snapshot.files
        return ScanReport(
            files_total=everything.num_files,
            files_after_partitions=self._after_partitions.files.num_files,
            files_after_statistics=self.live_files.num_files,
            bytes_total=everything.total_bytes,
            bytes_selected=self.live_files.total_bytes,
        )

    def files(self, columns: Sequence[str] | None = None) -> pa.Table:
        """The files that may contain matching rows. Reads no data file.

        Args:
            columns: names in LIVE_FILE_SCHEMA; None is all. Statistics are most of a checkpoint's data, so
                pass the names when only paths are needed.
        """
        return self.live_files.to_table(columns)

    def to_batches(self, *, shard: tuple[int, int] | None = None) -> Iterator[pa.RecordBatch]:
        """The matching rows, file by file, with at most one row group in memory.

        Args:
            shard: (index, count): only the rows of every count-th file, so that `count` readers of one
                version together read each row once. The assignment of files to shards depends only on the
                version and the predicate, not on when or where a reader opened the table.

        Raises:
            ConfigurationError: the index is not below the count.
            MissingDataFileError: a file is missing.
            PathEscapeError: a file is neither in the table nor below an allowed root.
            InvalidTableError: a file cannot be read.
            ExpressionError: the predicate fails on a row.
        """
        mine = None if shard is None else self._files_of_shard(*parse_shard(shard))
        return self._read_each(mine)

    def _read_each(self, mine: frozenset[ObjectLocation] | None) -> Iterator[pa.RecordBatch]:
        for source in self._sources():
            if mine is None or source.place in mine:
                yield from self._rows(source)

    def to_table(self) -> pa.Table:
        """The matching rows as one table. Files are read in parallel; raises as `to_batches`."""
        sources = list(self._sources())
        workers = min(len(sources), os.cpu_count() or 1, _MAX_READERS)
        if workers <= 1:
            return pa.Table.from_batches(list(self.to_batches()), schema=self.schema)
        with ThreadPoolExecutor(max_workers=workers) as pool:
            parts = list(pool.map(self._read_whole, sources))
        return pa.Table.from_batches([batch for part in parts for batch in part], schema=self.schema)

    @cached_property
    def _after_partitions(self) -> FilesOfPartitions:
        return prune_by_partitions(
            self._snapshot.files,
            self._predicate,
            self._snapshot.schema,
            self._partition_columns,
            mapping=self._snapshot.column_mapping,
            generation_enforced="generatedColumns" in writer_features(self._snapshot.protocol),
        )

    def _files_of_shard(self, index: int, count: int) -> frozenset[ObjectLocation]:
        """The files of one shard: sorted by size, largest first, and assigned to the shards in turn.

        Files are assigned before pruning by statistics: another reader may have opened the version from a
        checkpoint without statistics, and must compute the same shards.
        """
        files = self._after_partitions.files.to_table(["path", "size_bytes"])
        ordered = files.sort_by([("size_bytes", "descending"), ("path", "ascending")])
        store = self._snapshot.store
        paths = ordered.column("path").to_pylist()[index::count]
        return frozenset(self._access.locate(path, store=store) for path in paths)

    def _read_whole(self, source: _Source) -> list[pa.RecordBatch]:
        return list(self._rows(source))

    def _rows(self, source: _Source) -> Iterator[pa.RecordBatch]:
        store, access, dv = self._snapshot.store, self._access, source.deletion_vector
        deleted = (
            None
            if dv is None
            else lambda num_rows: read_deletion_vector(store, dv, num_rows=num_rows, access=access)
        )
        place = source.place
        # When `exact`, every row of the remaining files satisfies the conjuncts on partition columns.
        reader = self._residual_reader if self._after_partitions.exact else self._whole_reader
        return reader.read(
            place.store, place.path, source.partition_values, deleted=deleted, numbers=source.numbers
        )

    def _sources(self) -> Iterator[_Source]:
        store = self._snapshot.store
        columns = ["path", "partition_values", "deletion_vector"]
        columns += ["base_row_id", "default_row_commit_version"] if self._is_tracked else []
        for batch in self.live_files.batches(columns):
            for start in range(0, batch.num_rows, _FILES_PER_BATCH):
                rows = (values.to_pylist() for values in batch.slice(start, _FILES_PER_BATCH).columns)
                for path, pairs, dv, *numbers in zip(*rows, strict=True):
                    base_row_id, version = numbers or (None, None)
                    yield _Source(
                        place=self._access.locate(path, store=store),
                        partition_values=dict(pairs or ()),
                        deletion_vector=None if dv is None else DeletionVectorDescriptor(**dv),
                        numbers=FileRowTracking(base_row_id=base_row_id, default_row_commit_version=version),
                    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """A file to read: its location, partition values, deletion vector and row tracking values."""

    place: ObjectLocation
    partition_values: Mapping[str, str | None]
    deletion_vector: DeletionVectorDescriptor | None
    numbers: FileRowTracking


def _row_tracking(snapshot: Snapshot, columns: Sequence[str]) -> RowTrackingReader | None:
    if not columns:
        return None
    require_row_tracking_columns(columns, snapshot.schema)
    tracking = RowTracking.of(
        snapshot.protocol, snapshot.metadata, operation="read row ids and row commit versions"
    )
    return RowTrackingReader(tracking, columns)


def canonical_names(schema: StructType, names: Sequence[str]) -> tuple[str, ...]:
    """The names as the schema spells them; names that it lacks stay as they are."""
    fields = ((name, schema.find(name)) for name in names)
    return tuple(name if field is None else field.name for name, field in fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanReport:
    """Files and bytes before and after each kind of pruning."""

    files_total: int
    files_after_partitions: int
    files_after_statistics: int
    bytes_total: int
    bytes_selected: int

    @property
    def files_skipped(self) -> int:
        """Files that need not be opened."""
        return self.files_total - self.files_after_statistics
