"""`DeltaTable`: an open table. Methods have the names of the `deltalake` package where they do the same."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

# The modules of these packages load when a method needs them: opening a table must stay quick.
from delta_core import checkpoint, dml, maintenance, merge, scan, table, transaction
from delta_core.actions import DomainMetadata, Metadata, Protocol, SetTransaction
from delta_core.arguments import Instant, at_least, epoch_ms, name_list, version_or_time
from delta_core.boundary import public_class, refuse_pickle, typed_iterator
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import ConfigurationError
from delta_core.expressions.ast import Expression
from delta_core.run import Run
from delta_core.schema.schema_arguments import SchemaLike, coerce_schema
from delta_core.schema.table_schema import TableSchema
from delta_core.snapshot.commit_time import first_version_since
from delta_core.snapshot.detail import table_detail
from delta_core.snapshot.history import HistoryEntry, history
from delta_core.snapshot.same_table import require_same_table
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import open_allowed_roots
from delta_core.storage.log_store import LogStore
from delta_core.storage.open import open_store
from delta_core.storage.option_names import is_option, is_secret
from delta_core.storage.store_options import option_strings
from delta_core.table.conversions import Predicate, TableConversions
from delta_core.table.following import TableFollowing
from delta_core.transaction.commit_properties import DEFAULT_COMMIT_PROPERTIES, CommitProperties

if TYPE_CHECKING:
    from delta_core.checkpoint import CheckpointInfo, LogCleanup
    from delta_core.dml import DeleteResult, UpdateResult, Updates
    from delta_core.execution.executor import Executor
    from delta_core.maintenance import FsckResult, RestorePlan
    from delta_core.merge import MergeRequest, MergeResult, TableMerger
    from delta_core.table import TableAlterer, TableOptimizer
    from delta_core.transaction import Committed


@public_class
class DeltaTable(TableFollowing, TableConversions):
    """A table at a version.

    The handle shows one version. `update_incremental`, `load_as_version` and writes through the handle move
    it to another version. Do not call methods of one handle from several threads at once; snapshots may be
    shared.
    """

    def __init__(
        self,
        table_uri: str | os.PathLike[str],
        version: int | None = None,
        storage_options: Mapping[str, str] | None = None,
        *,
        timestamp_ms: Instant | None = None,
        allowed_roots: Sequence[str | os.PathLike[str]] = (),
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """Open a table. Reads its protocol and metadata, but not its list of files.

        Args:
            table_uri: a path or URI.
            version: the version to show; the latest when None.
            storage_options: options of the store.
            timestamp_ms: show the version that was current at this time: epoch milliseconds, a `datetime`
                with a time zone, or an ISO 8601 string with one. A time after the newest commit is refused,
                as in Spark: another commit may still be made before that time.
            allowed_roots: paths or `file:` URIs. Absolute paths in the log may lead below them when rows are
                read, by a scan or for a rewrite. For a shallow clone, pass the root of the source table.
                Nothing is ever written or deleted there.
            clock: the source of the time.

        Raises:
            TableNotFoundError: the URI does not contain a Delta table.
            VersionNotFoundError: the log does not contain the version, or no version has the timestamp.
            ConfigurationError: a time has no time zone, or both a version and a time are given.
        """
        timestamp_ms = epoch_ms(timestamp_ms)
        roots = [allowed_roots] if isinstance(allowed_roots, str | os.PathLike) else allowed_roots
        self._clock = clock
        self._options = option_strings(storage_options)
        self._roots = tuple(os.fspath(root) for root in roots)
        self._store = open_store(table_uri, storage_options=storage_options, clock=clock)
        self._allowed_roots = open_allowed_roots(roots, storage_options=storage_options, clock=clock)
        self._verified_at_ms = clock.now_ms()
        self._snapshot = Snapshot.load(self._store, version=version, timestamp_ms=timestamp_ms, clock=clock)
        self._pinned = version is not None or timestamp_ms is not None

    @classmethod
    def create(
        cls,
        table_uri: str | os.PathLike[str],
        schema: SchemaLike,
        *,
        partition_by: Sequence[str] = (),
        cluster_by: Sequence[str | Sequence[str]] | None = None,
        configuration: Mapping[str, str] | None = None,
        name: str | None = None,
        description: str | None = None,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
        storage_options: Mapping[str, str] | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> DeltaTable:
        """Create an empty table and open it. The schema is a pyarrow schema or `define_column` results.

        Raises:
            TableExistsError: a table exists already at the URI.
            NestedTableError: the URI is in a partition directory, or in the log, of another table.
            SchemaError: the schema, the partitioning or the clustering is not valid.
            InvalidTablePropertyError: a property is unknown or has a value that it cannot take.
        """
        store = open_store(table_uri, storage_options=storage_options, clock=clock)
        dml.create_table(
            store,
            schema=coerce_schema(schema),
            partition_by=name_list(partition_by, what="partition_by") or (),
            cluster_by=cluster_by,
            configuration=configuration,
            name=name,
            description=description,
            run=Run(clock=clock, commit=commit_properties),
        )
        return cls(table_uri, storage_options=storage_options, clock=clock)

    @staticmethod
    def is_deltatable(
        table_uri: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None
    ) -> bool:
        """Whether there is a Delta table at the URI. One listing."""
        return Snapshot.exists(open_store(table_uri, storage_options=storage_options))

    def __repr__(self) -> str:
        return f"DeltaTable({self.table_uri!r}, version={self.version()})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the URI and version of the table; it is opened again when the handle is unpickled.

        Raises:
            ConfigurationError: the table was opened with a secret option, which a pickle would reveal.
        """
        secret = sorted(name for name in self._options if is_secret(name) or not is_option(name))
        if secret:
            raise refuse_pickle(
                f"A DeltaTable with the storage option {secret[0]!r}",
                f"Pass {self.table_uri!r} and the version {self.version()}, and open the table there. Or "
                "set credentials in the environment of each process.",
            )
        arguments = (self.table_uri, self.version(), self._options or None, self._roots, self._clock)
        return (_reopened, arguments)

    # ------------------------------------------------------------ properties of the table

    @property
    def table_uri(self) -> str:
        """The table's canonical URI."""
        return self._store.uri

    @property
    def store(self) -> LogStore:
        """The table's store."""
        return self._store

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot that the handle shows."""
        return self._snapshot

    @property
    def verified_at_ms(self) -> int:
        """When the snapshot was last read as the newest version; 0 for a version opened by number or time."""
        return 0 if self._pinned else self._verified_at_ms

    def version(self) -> int:
        """The version that the handle shows."""
        return self._snapshot.version

    def schema(self) -> TableSchema:
        """The schema."""
        return TableSchema(self._snapshot.schema.fields)

    def metadata(self) -> Metadata:
        """Name, description, partition columns, properties."""
        return self._snapshot.metadata

    def protocol(self) -> Protocol:
        """The reader and writer requirements of the table."""
        return self._snapshot.protocol

    def history(self, limit: int | None = None) -> list[HistoryEntry]:
        """The commits up to the handle's version, newest first. One request for each commit.

        Args:
            limit: the maximum number of commits; None returns all commits in the log.
        """
        fix = "Ask for at least 0 commits, or leave out the limit to get all commits."
        return history(self._snapshot, limit=at_least(0, limit, what="limit", fix=fix))

    def transactions(self) -> Mapping[str, SetTransaction]:
        """The newest `txn` of each application id."""
        return self._snapshot.transactions

    def domain_metadata(self) -> Mapping[str, DomainMetadata]:
        """Metadata domains by name."""
        return self._snapshot.domain_metadata

    def detail(self) -> dict[str, Any]:
        """A description of the table as a JSON-serialisable mapping. Counts live files and bytes."""
        return table_detail(self._snapshot)

    # ------------------------------------------------------------ the version that the handle shows

    def load_as_version(self, version: Instant | None = None, *, timestamp_ms: Instant | None = None) -> None:
        """Show another version: by number, as of a time, or the latest when neither is given.

        A `datetime` or a string in place of the version number is a time.

        Raises:
            VersionNotFoundError: the log does not contain the version, or no version has the timestamp.
        """
        number, time_ms = version_or_time(version, timestamp_ms)
        self._snapshot = Snapshot.load(self._store, version=number, timestamp_ms=time_ms, clock=self._clock)
        self._verified_at_ms = self._snapshot.verified_at_ms
        self._pinned = number is not None or time_ms is not None

    def update_incremental(self) -> None:
        """Show the latest version. Reads only the new commits."""
        self.adopt(self._newest())

    def adopt_newest(self) -> None:
        """Show the latest version, for a change. Raises StaleCommitError when the table was replaced."""
        self.adopt(require_same_table(self._snapshot, self._newest()))

    def _newest(self) -> Snapshot:
        return Snapshot.load(self._store, clock=self._clock) if self._pinned else self._snapshot.refresh()

    def verify_serializable(self, predicate: Predicate | None = None) -> int:
        """Check that the rows that match a predicate, or all rows, are the same in the newest version.

        One listing, and one request for each newer commit. Writes nothing. The handle keeps its version.

        Returns:
            The newest version.

        Raises:
            ConcurrentModificationError: a newer commit added or removed such rows, or changed metadata.
            StaleCommitError: the table was replaced, or the newer commits were cleaned up.
        """
        expression = dml.resolve_predicate(self._predicate(predicate), self._snapshot.schema)
        reads = (
            transaction.ReadSet(whole_table=True)
            if expression is None
            else transaction.ReadSet(predicates=(expression,))
        )
        return transaction.verify_serializable(self._snapshot, reads)

    def adopt(self, snapshot: Snapshot) -> None:
        """Show a snapshot of this table that was the newest when it was read."""
        self._verified_at_ms = snapshot.verified_at_ms
        self._pinned = False
        self._snapshot = snapshot

    def advance_to(self, committed: Committed | None) -> None:
        """Show the version that a commit made. None, and a commit without a snapshot, change nothing."""
        if committed is not None and committed.snapshot is not None:
            self.adopt(committed.snapshot)

    def new_run(
        self,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
        executor: Executor | None = None,
    ) -> Run:
        """The surroundings of an operation on this table: its clock, its allowed roots, and the arguments.

        Raises:
            ConfigurationError: the commit properties are not `CommitProperties`.
        """
        return Run(
            clock=self._clock,
            executor=executor,
            commit=commit_properties,
            allowed_roots=self._allowed_roots,
        )

    # ------------------------------------------------------------ rows and files

    def file_uris(self, predicate: Predicate | None = None) -> list[str]:
        """The URIs of the live files, or of the live files that may contain rows that match the predicate.

        The predicate may also be a list of tuples such as `[("day", ">=", "2026-01-01")]`.

        Raises:
            UnsupportedTableFeatureError: the bare files do not show the rows of the table: deletion vectors
                delete some of the rows, or columns have other names in the files.
        """
        self._snapshot.require_readable(operation="return the URIs of the data files")
        paths = (
            scan.Scan(self._snapshot, predicate=self._predicate(predicate))
            .files(["path"])
            .column("path")
            .to_pylist()
        )
        return [path if "://" in path else f"{self.table_uri}/{path}" for path in paths]

    def get_add_actions(self, flatten: bool = False) -> pa.Table:
        """The live files with their partition values and statistics, one row each.

        Args:
            flatten: return columns `partition.x`, `min.x`, ... instead of structs.
        """
        return scan.add_actions_table(self._snapshot, flatten=flatten)

    def to_batches(
        self,
        columns: Sequence[str] | None = None,
        filters: Predicate | None = None,
        *,
        shard: tuple[int, int] | None = None,
        row_ids: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """The rows as a stream in bounded memory.

        Args:
            columns: the columns to return, in this order; None returns all; a string is one column.
            filters: a predicate as Spark SQL text, as an expression tree, or as a list of tuples such as
                `[("x", ">", 1)]` (AND), or of such lists (OR). Files that cannot match are not read.
            shard: (index, count): the part of the files that this reader reads, for several readers that
                share one version.
            row_ids: append the columns `_row_id`, which stays the same for the life of a row, and
                `_row_commit_version`, the version that last inserted or updated the row. delta-spark calls
                them `_metadata.row_id` and `_metadata.row_commit_version`.

        Raises:
            RowTrackingDisabledError: `row_ids` is set, but row tracking is not enabled.
        """
        return self._scan(columns, filters, row_ids).to_batches(shard=shard)

    def to_pyarrow_table(
        self,
        columns: Sequence[str] | None = None,
        filters: Predicate | None = None,
        *,
        row_ids: bool = False,
    ) -> pa.Table:
        """The rows as one table in memory. For arguments and errors see `to_batches`."""
        return self._scan(columns, filters, row_ids).to_table()

    def load_cdf(
        self,
        starting_version: int = 0,
        ending_version: int | None = None,
        starting_timestamp_ms: Instant | None = None,
        ending_timestamp_ms: Instant | None = None,
        columns: Sequence[str] | None = None,
        predicate: Predicate | None = None,
    ) -> pa.RecordBatchReader:
        """The rows that changed between two versions, both included, as a stream in bounded memory.

        After the table's columns come `_change_type` (`insert`, `delete`, `update_preimage`,
        `update_postimage`), `_commit_version` and `_commit_timestamp`. The table needs
        `delta.enableChangeDataFeed`. For a table with appends only, see also `appended_batches`.

        Args:
            starting_version: the first version; ignored when there is a starting time.
            ending_version: the last version; None is the version that the handle shows.
            starting_timestamp_ms: start at the first version that was committed at this time or later.
            ending_timestamp_ms: end at the last version that was committed at this time or before.
            columns: the columns to return, in this order; None returns all.
            predicate: a predicate on the table's columns and these three columns.

        Raises:
            TableChangedError: change data was not enabled for all of the versions, or the schema of a
                version is not compatible with the schema of the last version. Raised when the scan
                reaches that version.
            VersionNotFoundError: the log does not contain a version, or no longer contains it.
        """
        last = self._snapshot
        ending_ms, starting_ms = epoch_ms(ending_timestamp_ms), epoch_ms(starting_timestamp_ms, up=True)
        if ending_ms is not None:
            last = Snapshot.load(self._store, timestamp_ms=ending_ms, clock=self._clock)
        elif ending_version is not None and ending_version != last.version:
            last = Snapshot.load(self._store, version=ending_version, clock=self._clock)
        first = starting_version
        if starting_ms is not None:
            first = first_version_since(self._store, starting_ms)
        changes = scan.ChangeDataScan(
            last,
            starting_version=first,
            columns=name_list(columns),
            predicate=self._predicate(predicate),
            allowed_roots=self._allowed_roots,
        )
        batches = typed_iterator(changes.to_batches(), doing="reading changes")
        return pa.RecordBatchReader.from_batches(changes.schema, batches)

    def appended_batches(
        self, since_version: int, columns: Sequence[str] | None = None, filters: Predicate | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows appended after a version, up to the version of the handle, for readers that tail a table.

        Args:
            since_version: the last version that the reader has seen; -1 reads from version 0.
            columns: as in `to_batches`.
            filters: as in `to_batches`.

        Raises:
            TableChangedError: a commit changed or removed rows, so the appended rows are not all changes.
            VersionNotFoundError: a commit in between is no longer in the log.
            ConfigurationError: `since_version` is below -1 or after the handle's version.
        """
        fix = "Pass -1 to read from the first version."
        if at_least(-1, since_version, what="version already seen", fix=fix) is None:
            raise ConfigurationError("`since_version` is missing.", fix=fix)
        return scan.appended_batches(
            self._snapshot,
            since_version=since_version,
            columns=name_list(columns),
            filters=self._predicate(filters),
            allowed_roots=self._allowed_roots,
        )

    # ------------------------------------------------------------ changing rows

    def delete(
        self,
        predicate: Expression | str | None = None,
        *,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> DeleteResult:
        """Delete the rows for which a predicate is true. Rows for which it is null stay.

        Writes deletion vectors when the table property `delta.enableDeletionVectors` is true, else rewrites
        the files that lose rows. The handle shows the new version afterwards.

        Args:
            predicate: Spark SQL text or an expression tree; None deletes every row.
            commit_properties: provenance, idempotency key and limits of the commit.

        Returns:
            The commit, and metrics with the names of the deltalake package.

        Raises:
            ExpressionError: the predicate is invalid, does not fit the schema, or fails on a row.
            InvalidTableError: the table is append-only.
            UnsupportedTableFeatureError: the table needs an unsupported feature; nothing was written.
            ConcurrentModificationError: another writer changed or added such rows; nothing was deleted.
            CommitStateUnknownError: the outcome of the commit is not known; its files were kept.
        """
        run = self.new_run(commit_properties)
        self.adopt_newest()
        result = dml.delete_rows(self._snapshot, predicate, run=run)
        self.advance_to(result.committed)
        return result

    def update(
        self,
        updates: Updates | None = None,
        predicate: Expression | str | None = None,
        *,
        new_values: Updates | None = None,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> UpdateResult:
        """Assign values to columns of the rows for which a predicate is true. Other rows stay unchanged.

        Writes deletion vectors when the table property `delta.enableDeletionVectors` is true, else rewrites
        the files that have such rows. Rows for which the predicate is null do not match. The handle shows the
        new version afterwards.

        Args:
            updates: the new values by column name; `a.b` or `("a", "b")` is a field of a struct. Strings are
                Spark SQL over the row before the update (`DEFAULT` is the column's default), as are
                expression trees. Any other Python value is a constant.
            predicate: Spark SQL text or an expression tree; None updates every row.
            new_values: as `updates`, but a string is a constant.
            commit_properties: provenance, idempotency key and limits of the commit.

        Returns:
            The commit, and metrics with the names of the deltalake package.

        Raises:
            ConfigurationError: nothing is assigned, or one column twice.
            ExpressionError: the predicate or an assignment is invalid, does not fit the schema, or fails on
                a row.
            SchemaMismatchError: an identity column is assigned.
            ConstraintViolationError: a row would break a constraint or NOT NULL; the message shows the row.
            InvalidTableError: the table is append-only.
            UnsupportedTableFeatureError: the table needs an unsupported feature; nothing was written.
            ConcurrentModificationError: another writer changed or added such rows; nothing was updated.
            CommitStateUnknownError: the outcome of the commit is not known; its files were kept.
        """
        run = self.new_run(commit_properties)
        self.adopt_newest()
        result = dml.update_rows(self._snapshot, updates, predicate, new_values=new_values, run=run)
        self.advance_to(result.committed)
        return result

    def merge(
        self,
        source: Any,
        predicate: str | Expression,
        source_alias: str | None = None,
        target_alias: str | None = None,
        merge_schema: bool = False,
        error_on_type_mismatch: bool = True,
        *,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> TableMerger:
        """A builder of a MERGE, whose clauses update, delete and insert rows: `...execute()` runs it.

        Args:
            source: Arrow data, a stream, a dataset or a data frame. A stream is read once.
            predicate: which source row matches which row, such as `target.id = source.id`. It must be true.
            source_alias: the name of the source in expressions; `source` when None.
            target_alias: the name of the table in expressions; `target` when None.
            merge_schema: add columns of the source that clauses use to the table.
            error_on_type_mismatch: refuse a value that cannot be cast to its column's type; else it is null.
            commit_properties: provenance, idempotency key and limits of the commit.

        Raises:
            ConfigurationError: the commit properties are not `CommitProperties`.
        """
        run = self.new_run(commit_properties)

        def execute(request: MergeRequest) -> MergeResult:
            self.adopt_newest()
            result = merge.merge_rows(self._snapshot, source, request, run=run)
            self.advance_to(result.committed)
            return result

        return merge.TableMerger(
            on=predicate,
            source_alias=source_alias,
            target_alias=target_alias,
            merge_schema=merge_schema,
            refuses_misfits=error_on_type_mismatch,
            execute=execute,
        )

    # ------------------------------------------------------------ definition, files and log

    @property
    def optimize(self) -> TableOptimizer:
        """Operations that rewrite files: `table.optimize.compact()`."""
        return table.TableOptimizer(self)

    @property
    def alter(self) -> TableAlterer:
        """Operations that change the table definition: `table.alter.add_columns(...)`."""
        return table.TableAlterer(self)

    def restore(
        self,
        target: Instant | None = None,
        *,
        timestamp_ms: Instant | None = None,
        ignore_missing_files: bool = False,
        dry_run: bool = False,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> RestorePlan:
        """Restore the table to a version or time, as a new version.

        Unlike `vacuum` and the command line, this applies at once: check the plan of `dry_run=True` first.

        Args:
            target: the version to restore; a `datetime` or a string is a time.
            timestamp_ms: the time to restore, instead of a version.
            ignore_missing_files: continue without files that the store no longer has; their rows are lost.
            dry_run: only return the plan; nothing is written.
            commit_properties: provenance, idempotency key and limits of the commit.

        Returns:
            The plan: the files and rows that are added and removed, and the commits that are undone.

        Raises:
            MissingDataFileError: data files of that version are missing.
            RestoreError: neither a version nor a time is given, or both.
        """
        run = self.new_run(commit_properties)
        version, time_ms = version_or_time(target, timestamp_ms)
        self.adopt_newest()
        plan = maintenance.plan_restore(self._snapshot, version=version, timestamp_ms=time_ms, run=run)
        if not dry_run:
            self.advance_to(
                maintenance.apply_restore(
                    self._snapshot,
                    plan,
                    ignore_missing_files=ignore_missing_files,
                    by_timestamp=time_ms is not None,
                    run=run,
                ).committed
            )
        return plan

    def vacuum(
        self,
        retention_hours: float | None = None,
        *,
        dry_run: bool = True,
        enforce_retention: bool = True,
        force: bool = False,
        lite: bool = False,
        executor: Executor | None = None,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> list[str]:
        """Delete files that no version within the retention needs.

        Args:
            retention_hours: removed files older than this are deleted; None uses the table's retention.
            dry_run: only return the files that would be deleted. The default.
            enforce_retention: refuse a retention that is shorter than the table's.
            force: required together with `enforce_retention=False` for a shorter retention.
            lite: delete only files that the log names as removed, without a listing of the directory. Files
                of unfinished writes stay, and so do files whose removal is no longer in the log.
            executor: runs the deletions; threads of this process when None.
            commit_properties: provenance of the commits that record the start and the end.

        Returns:
            The paths that were deleted, or would be deleted, relative to the table's root.

        Raises:
            RetentionTooShortError: the retention could delete files that readers or writers need.
        """
        run = self.new_run(commit_properties, executor)
        self.adopt_newest()
        plan = maintenance.plan_vacuum(
            self._snapshot,
            retention_hours=retention_hours,
            enforce_retention=enforce_retention,
            force=force,
            lite=lite,
            clock=self._clock,
        )
        planned = plan.columns.paths
        if dry_run:
            return planned
        result = maintenance.apply_vacuum(self._snapshot, plan, run=run)
        self.update_incremental()
        kept = set(result.kept)
        return [path for path in planned if path not in kept]

    def repair(
        self,
        dry_run: bool = True,
        *,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> FsckResult:
        """Remove live files from the table whose data is missing in the store. Their rows are lost.

        A file is missing only when the store, asked for it by name, does not have it. A file that cannot be
        read for another reason, such as a lost deletion vector file, stays live and is listed in
        `result.plan.unreadable`. When no file is missing, nothing is committed.

        Args:
            dry_run: only report which files would be removed. The default, unlike in deltalake.
            commit_properties: provenance, idempotency key and limits of the commit.

        Returns:
            The plan and its outcome; `result.metrics` has the form that deltalake's `repair` returns.

        Raises:
            StorageError: the store did not report whether it has a file; nothing was committed.
            ConcurrentModificationError: another writer removed one of the files at the same time.
            InvalidTableError: the table is append-only.
            UnsupportedTableFeatureError: the table needs an unsupported feature.
        """
        run = self.new_run(commit_properties)
        self.adopt_newest()
        plan = maintenance.plan_fsck(self._snapshot, run=run)
        if dry_run:
            return maintenance.planned_only(plan)
        result = maintenance.apply_fsck(self._snapshot, plan, run=run)
        self.advance_to(result.committed)
        return result

    def create_checkpoint(self) -> CheckpointInfo:
        """Write a checkpoint of the handle's version."""
        return checkpoint.write_checkpoint(self._snapshot)

    def cleanup_metadata(self, *, dry_run: bool = False) -> LogCleanup:
        """Delete log files that the table's log retention no longer needs."""
        return checkpoint.cleanup_expired_logs(self._snapshot, clock=self._clock, dry_run=dry_run)


def _reopened(
    table_uri: str,
    version: int,
    storage_options: Mapping[str, str] | None,
    allowed_roots: Sequence[str],
    clock: Clock,
) -> DeltaTable:
    """Rebuild a handle from its pickle."""
    return DeltaTable(table_uri, version, storage_options, allowed_roots=allowed_roots, clock=clock)
