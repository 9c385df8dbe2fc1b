"""`write_deltalake`: writes Arrow data to a table in one commit."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import pyarrow as pa

from delta_core.arguments import name_list
from delta_core.boundary import public
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.data.file_writer import Compression
from delta_core.data.row_files import FileOptions
from delta_core.data.row_pipeline import write_rows
from delta_core.dml.attempts import Attempts
from delta_core.dml.commit_files import CommitMode, commit_new_files, resolve_predicate, table_exists
from delta_core.dml.input_data import ArrowData, Rows, as_rows
from delta_core.dml.metadata_update import MetadataUpdate, TableDefinition, plan_metadata_update
from delta_core.dml.partition_overwrite import require_partitioned
from delta_core.errors import (
    ConfigurationError,
    MetadataChangedError,
    SchemaError,
    TableExistsError,
    TableNotFoundError,
)
from delta_core.expressions.ast import Expression
from delta_core.log.outer_tables import require_separate_directory
from delta_core.run import Run
from delta_core.schema.arrow import from_arrow
from delta_core.schema.schema_arguments import SchemaLike, coerce_schema
from delta_core.schema.types import StructType
from delta_core.snapshot.same_table import require_same_table
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import LogStore
from delta_core.storage.open import open_store
from delta_core.table_features.feature import WriterKind
from delta_core.table_features.identity import differ_only_in_high_water_marks
from delta_core.table_features.parquet_format import ParquetOptions
from delta_core.transaction.commit_properties import (
    DEFAULT_COMMIT_PROPERTIES,
    CommitProperties,
    IdempotencyKey,
    idempotency_key,
    require_commit_properties,
)
from delta_core.transaction.commit_result import AlreadyApplied, Committed, already_applied
from delta_core.transaction.observer import NULL_OBSERVER, TransactionObserver

WriteMode = Literal["error", "append", "overwrite", "ignore"]
SchemaMode = Literal["merge", "overwrite"]
PartitionOverwriteMode = Literal["static", "dynamic"]

HANDLE_MAX_AGE_MS = 60_000
"""An open table that last read the log longer ago than this reads it again before an append."""


class TableHandle(Protocol):
    """An open table that shows the new version after each write through it."""

    @property
    def store(self) -> LogStore:
        """The table's store."""
        ...

    @property
    def snapshot(self) -> Snapshot:
        """The version that the handle shows."""
        ...

    @property
    def verified_at_ms(self) -> int:
        """When the snapshot was last known to be the newest, in milliseconds since the epoch."""
        ...

    def adopt_newest(self) -> None:
        """Load the newest version. Raises StaleCommitError when another table is at the location."""
        ...

    def adopt(self, snapshot: Snapshot) -> None:
        """Show `snapshot` from now on."""
        ...

    def new_run(self, commit_properties: CommitProperties = ...) -> Run:
        """The surroundings of an operation on the table, with its allowed roots."""
        ...


@public
def write_deltalake(
    table_or_uri: str | os.PathLike[str] | TableHandle,
    data: ArrowData,
    *,
    mode: WriteMode = "error",
    partition_by: Sequence[str] | str | None = None,
    cluster_by: Sequence[str | Sequence[str]] | str | None = None,
    schema_mode: SchemaMode | None = None,
    predicate: Expression | str | None = None,
    partition_overwrite_mode: PartitionOverwriteMode = "static",
    configuration: Mapping[str, str] | None = None,
    commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    storage_options: Mapping[str, str] | None = None,
    name: str | None = None,
    description: str | None = None,
    target_file_size: int | None = None,
    max_rows_per_file: int | None = None,
    compression: Compression | None = None,
    parquet: ParquetOptions | None = None,
    schema: SchemaLike | None = None,
    txn: IdempotencyKey | None = None,
    observer: TransactionObserver = NULL_OBSERVER,
    clock: Clock = SYSTEM_CLOCK,
) -> Committed | None:
    """Write Arrow data to a table in one commit. The table is created when it does not exist.

    Readers see all of the rows or none. Three rules apply to the schema: a column that the table does not
    have is refused, a different type is refused unless it widens without loss, and a missing column is null.

    Args:
        table_or_uri: the location, or an open `DeltaTable`. An open table saves reading the log, and shows
            the new version afterwards.
        data: a pyarrow Table, RecordBatch or RecordBatchReader (streamed, in bounded memory), any object
            with the Arrow C interface, such as a data frame of pandas or polars, or a list of such parts with
            the same columns.
        mode: what to do when the table exists: `error`, `append`, `overwrite` its rows, or `ignore`.
        partition_by: partition columns of a new table. For an existing table they must match.
        cluster_by: up to four clustering columns of a new table, each given by a name or path. For an
            existing table they must match.
        schema_mode: `merge` adds the data's new columns; `overwrite`, with mode `overwrite` and no
            predicate, replaces the schema.
        predicate: with mode `overwrite`, replace only the rows that match (replaceWhere); every written
            row must match too.
        partition_overwrite_mode: with mode `overwrite`, `dynamic` replaces the rows of exactly the partitions
            that have new rows. Empty data replaces nothing. The table must be partitioned.
        configuration: table properties of a new table.
        commit_properties: provenance, idempotency key and limits of the commit.
        storage_options: options of the store.
        name: the name of a new table.
        description: the description of a new table.
        target_file_size: the size in bytes at which a data file is closed; the table's target when None.
        max_rows_per_file: the number of rows at which a data file is closed.
        compression: the compression of the data files; None takes the table's
            (`delta.parquet.compression.codec`).
        parquet: the encoding of the data files, beside the table's properties.
        schema: the schema of a new table, with columns of `define_column` for defaults and generation
            expressions; that of the data when None. Ignored for an existing table.
        txn: idempotency key, `(app_id, version)`; the same as `commit_properties.txn`. The key is already
            applied when the table has its application id at this version or a later one.
        observer: is called at each phase of the commit.
        clock: the source of time.

    Returns:
        The commit, with the new snapshot; `AlreadyApplied` when the table already had the idempotency key;
        None when mode is `ignore` and the table exists.

    Raises:
        TableExistsError: mode is `error`, and the table exists without the idempotency key.
        NestedTableError: the new table would be in a partition directory, or in the log, of another table.
        SchemaError: the data does not fit.
        UnsupportedTableFeatureError: the table needs an unsupported feature. No file was written.
        ConstraintViolationError: rows violate a constraint or the predicate.
        ConcurrentModificationError: another writer's commit conflicts. Nothing was committed.
        CommitStateUnknownError: it is not known whether the commit landed. The written files were kept.
        ConfigurationError: the arguments contradict each other.
    """
    _check_arguments(mode, schema_mode, predicate, partition_overwrite_mode)
    run = Run(clock=clock, observer=observer, commit=_with_key(commit_properties, txn))
    handle, store, snapshot, verified_at_ms = _open(table_or_uri, mode, storage_options, clock)
    if handle is not None:
        run = replace(run, allowed_roots=handle.new_run().allowed_roots)
    if snapshot is not None:
        if mode == "ignore":
            return None
        applied = run.already_applied(snapshot)
        if applied is not None:
            return applied
        if mode == "error":
            raise table_exists(store.uri, cause="The mode is 'error', the default.")
        # The commit checks this again. The check here avoids writing files that could not be committed.
        snapshot.require_writable(writer_kind=WriterKind.ARROW_ROWS)
    else:
        require_separate_directory(store)
    rows = as_rows(data)
    definition = TableDefinition(
        partition_by=name_list(partition_by, what="partition_by"),
        cluster_by=[cluster_by] if isinstance(cluster_by, str) else cluster_by,
        configuration=configuration,
        name=name,
        description=description,
        merge_schema=schema_mode == "merge",
        overwrite_schema=schema_mode == "overwrite",
    )
    write = _Write(
        store=store,
        rows=rows,
        schema=None if schema is None else coerce_schema(schema),
        mode=_commit_mode(mode, predicate, replaces_partitions=partition_overwrite_mode == "dynamic"),
        definition=definition,
        predicate=predicate,
        options=FileOptions(
            target_file_size_bytes=target_file_size,
            max_rows_per_file=max_rows_per_file,
            compression=compression,
            parquet=parquet,
        ),
        run=run,
        may_be_behind=handle is not None and mode == "append",
    )
    try:
        committed = write.commit(snapshot, verified_at_ms)
    except TableExistsError:
        if mode == "ignore":
            return None
        raise
    if handle is not None and committed.snapshot is not None:
        handle.adopt(committed.snapshot)
    return committed


@dataclass(frozen=True, slots=True, kw_only=True)
class _Write:
    """The rows and arguments of one call, for all of its attempts.

    Attributes:
        may_be_behind: whether the snapshot comes from an open table and may be older than the log.
    """

    store: LogStore
    rows: Rows
    schema: StructType | None
    mode: CommitMode
    definition: TableDefinition
    predicate: Expression | str | None
    options: FileOptions
    run: Run
    may_be_behind: bool

    def commit(self, snapshot: Snapshot | None, verified_at_ms: int) -> Committed:
        """Write and commit, and repeat both when another writer only advanced identity columns.

        The rows are then written again with new identity values. A stream can be read only once, so its
        conflict is raised, like every other conflict.
        """
        attempts = Attempts(run=self.run)
        for attempt in attempts:
            try:
                change = self._planned(snapshot)
            except SchemaError:
                if snapshot is None or not self.may_be_behind:
                    raise
                # Data that does not fit the opened version may fit the newest version.
                newer = require_same_table(snapshot, snapshot.refresh())
                if newer.version == snapshot.version:
                    raise
                snapshot, verified_at_ms = newer, newer.verified_at_ms
                if (applied := self._applied(snapshot, attempt)) is not None:
                    return applied
                change = self._planned(snapshot)
            if self.mode is CommitMode.REPLACE_PARTITIONS:
                require_partitioned(change.partition_columns)
            written = write_rows(
                self.store,
                change.plan,
                self.rows,
                predicate=resolve_predicate(self.predicate, change.schema),
                options=self.options,
                clock=self.run.clock,
            )
            try:
                return commit_new_files(
                    snapshot,
                    self.store,
                    writer_kind=WriterKind.ARROW_ROWS,
                    mode=self.mode,
                    adds=written.adds,
                    schema=from_arrow(self.rows.schema),
                    predicate=self.predicate,
                    definition=self.definition,
                    target_file_size_bytes=self.options.target_file_size_bytes,
                    verified_at_ms=verified_at_ms,
                    change=change.with_high_water_marks_of(written.high_water_marks),
                    run=attempts.next_run(),
                )
            except MetadataChangedError as error:
                if snapshot is None or not isinstance(self.rows, pa.Table):
                    raise
                newer = require_same_table(snapshot, snapshot.refresh())
                if not differ_only_in_high_water_marks(snapshot.schema, newer.schema):
                    raise
                if attempts.is_last:
                    raise attempts.given_up(error) from error
                snapshot, verified_at_ms = newer, newer.verified_at_ms
                if (applied := self._applied(snapshot, attempt)) is not None:
                    return applied
        raise AssertionError("the last attempt returns or raises")

    def _applied(self, snapshot: Snapshot, attempts: int) -> AlreadyApplied | None:
        return already_applied(snapshot, self.run.commit.txn, attempts=attempts)

    def _planned(self, snapshot: Snapshot | None) -> MetadataUpdate:
        defined = self.schema if snapshot is None else None
        return plan_metadata_update(
            snapshot,
            data_schema=from_arrow(self.rows.schema) if defined is None else defined,
            definition=self.definition,
            now_ms=self.run.now_ms(),
        )


def _open(
    table_or_uri: str | os.PathLike[str] | TableHandle,
    mode: WriteMode,
    storage_options: Mapping[str, str] | None,
    clock: Clock,
) -> tuple[TableHandle | None, LogStore, Snapshot | None, int]:
    verified_at_ms = clock.now_ms()
    if isinstance(table_or_uri, str | os.PathLike):
        store = open_store(table_or_uri, storage_options=storage_options, clock=clock)
        return None, store, _latest(store, clock), verified_at_ms
    handle = open_handle(table_or_uri, storage_options)
    # An append does not depend on the table's rows, so it can start from the version that the handle shows.
    # Other modes must replace the rows of the newest version.
    # After a clock was set back, the age of the version is not known.
    if mode != "append" or not 0 <= verified_at_ms - handle.verified_at_ms <= HANDLE_MAX_AGE_MS:
        handle.adopt_newest()
    return handle, handle.store, handle.snapshot, handle.verified_at_ms


def open_handle(table: TableHandle, storage_options: Mapping[str, str] | None) -> TableHandle:
    """Return the argument when it is an open table.

    Raises:
        ConfigurationError: the argument is not an open table, or storage options are given. An open table
            already has a store with options.
    """
    if not hasattr(table, "verified_at_ms"):
        kind = type(table)
        raise ConfigurationError(
            f"A {kind.__name__} is not a Delta table.",
            cause=f"The argument is of type {kind.__module__}.{kind.__qualname__}.",
            fix="Pass a path, a URI or an open delta_core.DeltaTable.",
        )
    if storage_options:
        raise ConfigurationError(
            "Storage options cannot be changed on an open table.", fix="Pass the URI, or omit the options."
        )
    return table


def _latest(store: LogStore, clock: Clock) -> Snapshot | None:
    try:
        return Snapshot.load(store, clock=clock)
    except TableNotFoundError:
        return None


def _commit_mode(
    mode: WriteMode, predicate: Expression | str | None, *, replaces_partitions: bool
) -> CommitMode:
    if mode in ("error", "ignore"):
        return CommitMode.CREATE
    if mode == "append":
        return CommitMode.APPEND
    if replaces_partitions:
        return CommitMode.REPLACE_PARTITIONS
    return CommitMode.OVERWRITE if predicate is None else CommitMode.REPLACE_WHERE


def _with_key(properties: CommitProperties, txn: IdempotencyKey | None) -> CommitProperties:
    require_commit_properties(properties)
    if txn is None:
        return properties
    txn = idempotency_key(txn)
    if txn == properties.txn:
        return properties
    if properties.txn is not None:
        raise ConfigurationError(
            "Two different idempotency keys were passed.", fix="Pass txn or commit_properties.txn, not both."
        )
    return replace(properties, txn=txn)


def _check_arguments(
    mode: str, schema_mode: str | None, predicate: Expression | str | None, partition_overwrite_mode: str
) -> None:
    if mode not in ("error", "append", "overwrite", "ignore"):
        raise ConfigurationError(
            f"{mode!r} is not a write mode.", fix="Use 'error', 'append', 'overwrite' or 'ignore'."
        )
    if schema_mode not in (None, "merge", "overwrite"):
        raise ConfigurationError(
            f"{schema_mode!r} is not a schema mode.", fix="Use 'merge', 'overwrite' or None."
        )
    if partition_overwrite_mode not in ("static", "dynamic"):
        raise ConfigurationError(
            f"{partition_overwrite_mode!r} is not a partition overwrite mode.",
            fix="Use 'static' or 'dynamic'.",
        )
    if partition_overwrite_mode == "dynamic" and (
        mode != "overwrite" or predicate is not None or schema_mode == "overwrite"
    ):
        raise ConfigurationError(
            "partition_overwrite_mode='dynamic' does not fit the other arguments.",
            cause="It needs mode='overwrite' without a predicate and without schema_mode='overwrite'. The "
            "new rows determine the partitions that are replaced.",
            fix="Pass only mode='overwrite' with it, or omit partition_overwrite_mode.",
        )
    if predicate is not None and mode != "overwrite":
        raise ConfigurationError(
            "A predicate selects the rows to replace, so it needs mode='overwrite'.",
            fix="Pass mode='overwrite', or omit the predicate.",
        )
    if schema_mode == "overwrite" and (mode != "overwrite" or predicate is not None):
        raise ConfigurationError(
            "The schema can only be overwritten together with all rows.",
            cause="Rows that are kept would not fit the new schema.",
            fix="Use mode='overwrite' without a predicate, or schema_mode='merge'.",
        )
