"""`DeltaTable`: an open table, with the method names of the `deltalake` package where the job is the same."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from delta_core import checkpoint, dml, maintenance, scan, transaction
from delta_core.actions import DomainMetadata, Metadata, Protocol, SetTransaction

# What changes or scans a table loads when a method needs it: opening one must stay quick.
from delta_core.boundary import public_class, refuse_pickle, typed_iterator
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import ConfigurationError
from delta_core.expressions.ast import Expression
from delta_core.schema.given import SchemaLike, coerce_schema
from delta_core.schema.table_schema import TableSchema
from delta_core.snapshot.arguments import Instant, at_least, epoch_ms, name_list, version_or_time
from delta_core.snapshot.commit_time import first_version_since
from delta_core.snapshot.detail import table_detail
from delta_core.snapshot.history import HistoryEntry, history
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import open_allowed_roots
from delta_core.storage.log_store import LogStore
from delta_core.storage.open import open_store
from delta_core.storage.option_names import is_option, is_secret
from delta_core.storage.store_options import option_strings
from delta_core.transaction.commit_properties import (
    DEFAULT_COMMIT_PROPERTIES,
    CommitProperties,
    require_commit_properties,
)

if TYPE_CHECKING:
    from delta_core.checkpoint import CheckpointInfo, LogCleanup
    from delta_core.dml import DeleteResult, UpdateResult, Updates
    from delta_core.execution.executor import Executor
    from delta_core.maintenance import FeatureAlterer, FsckResult, RestorePlan, TableOptimizer
    from delta_core.scan import Scan
    from delta_core.transaction import Committed

Predicate = Expression | str


@public_class
class DeltaTable:
    """A table at a version.

    The handle shows one version until `update_incremental`, `load_as_version` or a write made through it
    moves it on. Its methods are not to be called from several threads at once; snapshots may be shared.
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
        """Open a table; reads its protocol and metadata, no list of files.

        Args:
            table_uri: a path or `file:` URI.
            version: the version to show; the latest when None.
            storage_options: for the store.
            timestamp_ms: show the version that was current then: epoch milliseconds, a `datetime` with a
                zone, or a text of ISO 8601 with one. A time after the newest commit is refused, as Spark
                does: it may yet get another.
            allowed_roots: paths or `file:` URIs below which absolute paths of the log may lead when rows
                are read, by a scan or to be written again: for a shallow clone, the root of the table that
                it was cloned from. Nothing is ever written or deleted there.
            clock: where time comes from.

        Raises:
            TableNotFoundError: there is no table.
            VersionNotFoundError: the version is not, or no longer, in the log, or none is for the time.
            ConfigurationError: a time without a zone, or a version and a time.
        """
        timestamp_ms = epoch_ms(timestamp_ms)
        roots = [allowed_roots] if isinstance(allowed_roots, str | os.PathLike) else allowed_roots
        self._clock = clock
        self._options = option_strings(storage_options)
        self._roots = tuple(os.fspath(root) for root in roots)
        self._store = open_store(table_uri, storage_options=storage_options, clock=clock)
        self._allowed_roots = open_allowed_roots(roots, storage_options=storage_options, clock=clock)
        self._known_at_ms = clock.now_ms()
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
        """Create an empty table and open it. The schema is a pyarrow one, or a list as of `define_column`.

        Raises:
            TableExistsError: there is one already.
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
            properties=commit_properties,
            clock=clock,
        )
        return cls(table_uri, storage_options=storage_options, clock=clock)

    @staticmethod
    def is_deltatable(
        table_uri: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None
    ) -> bool:
        """Whether there is a table. One listing."""
        return Snapshot.exists(open_store(table_uri, storage_options=storage_options))

    def __repr__(self) -> str:
        return f"DeltaTable({self.table_uri!r}, version={self.version()})"

    def __reduce__(self) -> tuple[Any, ...]:
        """The table at its version, opened again where the handle is unpickled.

        Raises:
            ConfigurationError: it was opened with an option that is a secret, which a pickle would show.
        """
        secret = sorted(name for name in self._options if is_secret(name) or not is_option(name))
        if secret:
            raise refuse_pickle(
                f"A DeltaTable with the storage option {secret[0]!r}",
                f"Pass {self.table_uri!r} and the version {self.version()}, and open the table there; or "
                "leave credentials to the environment of each process.",
            )
        arguments = (self.table_uri, self.version(), self._options or None, self._roots, self._clock)
        return (_reopened, arguments)

    # ------------------------------------------------------------ what it is

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
        """The state that the handle shows."""
        return self._snapshot

    @property
    def known_at_ms(self) -> int:
        """When the snapshot was last known to be the newest; long ago for a version asked for by number."""
        return 0 if self._pinned else self._known_at_ms

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
        """What a client must support."""
        return self._snapshot.protocol

    def history(self, limit: int | None = None) -> list[HistoryEntry]:
        """Who did what, newest first, up to the handle's version. One request for each commit.

        Args:
            limit: how many commits at most; all that the log has when None.
        """
        fix = "Ask for at least 0 commits, or leave the limit out for all."
        return history(self._snapshot, limit=at_least(0, limit, what="limit", fix=fix))

    def transactions(self) -> Mapping[str, SetTransaction]:
        """The newest `txn` of each application id."""
        return self._snapshot.transactions

    def domain_metadata(self) -> Mapping[str, DomainMetadata]:
        """Metadata domains by name."""
        return self._snapshot.domain_metadata

    def detail(self) -> dict[str, Any]:
        """What the table is, in one JSON-serialisable mapping; counts live files and bytes."""
        return table_detail(self._snapshot)

    # ------------------------------------------------------------ which version it shows

    def load_as_version(self, version: Instant | None = None, *, timestamp_ms: Instant | None = None) -> None:
        """Show another version: by number, as of a time, or the latest when neither is given.

        A `datetime` or a text in place of the number is a time, too.

        Raises:
            VersionNotFoundError: the version is not, or no longer, in the log, or none is for the time.
        """
        number, time_ms = version_or_time(version, timestamp_ms)
        self._snapshot = Snapshot.load(self._store, version=number, timestamp_ms=time_ms, clock=self._clock)
        self._known_at_ms = self._snapshot.known_at_ms
        self._pinned = number is not None or time_ms is not None

    def update_incremental(self) -> None:
        """Show the latest version; reads only the commits that are new."""
        if self._pinned:
            self.load_as_version()
        else:
            self.adopt(self._snapshot.refresh())

    def verify_serializable(self, predicate: Predicate | None = None) -> int:
        """Check that what this version shows of some rows, or of all, is still so at the newest version.

        One listing, and one request for each commit since. Nothing is written, and the handle stays.

        Returns:
            The newest version.

        Raises:
            ConcurrentModificationError: a commit since has added or removed such rows, or changed metadata.
            StaleCommitError: the table was replaced, or its commits since were cleaned up.
        """
        expression = dml.resolve_predicate(predicate, self._snapshot.schema)
        reads = (
            transaction.ReadSet(whole_table=True)
            if expression is None
            else transaction.ReadSet(predicates=(expression,))
        )
        return transaction.verify_serializable(self._snapshot, reads)

    def _adopt_result(self, committed: Committed | None) -> None:
        if committed is not None and committed.snapshot is not None:
            self.adopt(committed.snapshot)

    def adopt(self, snapshot: Snapshot) -> None:
        """Show this snapshot of the table, which was the newest when it was last known."""
        self._known_at_ms = snapshot.known_at_ms
        self._pinned = False
        self._snapshot = snapshot

    # ------------------------------------------------------------ rows and files

    def file_uris(self, predicate: Predicate | None = None) -> list[str]:
        """The URIs of the live files, or of those that may hold rows matching the predicate.

        Raises:
            UnsupportedTableFeatureError: whoever read the files as they are would see other rows than the
                table's: some are deleted by deletion vectors, or columns have other names.
        """
        self._snapshot.require_readable(operation="hand out the table's data files")
        paths = scan.Scan(self._snapshot, predicate=predicate).files(["path"]).column("path").to_pylist()
        return [path if "://" in path else f"{self.table_uri}/{path}" for path in paths]

    def get_add_actions(self, flatten: bool = False) -> pa.Table:
        """The live files with their partition values and statistics, one row each.

        Args:
            flatten: one column `partition.x`, `min.x`, ... for each instead of structs.
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
            columns: which, in this order; all when None, one when a text.
            filters: a predicate as Spark SQL text or as a tree; files that cannot match are not read.
            shard: (index, count): this reader's share of the files, for readers that work side by side on
                one version.
            row_ids: after the columns come `_row_id`, which a row keeps for its life, and
                `_row_commit_version`, the version that inserted or updated it last: what delta-spark
                calls `_metadata.row_id` and `_metadata.row_commit_version`.

        Raises:
            RowTrackingDisabledError: row ids are asked for, and row tracking is not enabled.
        """
        return self._scan(columns, filters, row_ids).to_batches(shard=shard)

    def to_pyarrow_table(
        self,
        columns: Sequence[str] | None = None,
        filters: Predicate | None = None,
        *,
        row_ids: bool = False,
    ) -> pa.Table:
        """The rows as one table in memory. Arguments and errors as those of `to_batches`."""
        return self._scan(columns, filters, row_ids).to_table()

    def _scan(self, columns: Sequence[str] | None, filters: Predicate | None, row_ids: bool) -> Scan:
        return scan.Scan(
            self._snapshot,
            predicate=filters,
            columns=name_list(columns),
            metadata_columns=scan.ROW_TRACKING_COLUMNS if row_ids else (),
            allowed_roots=self._allowed_roots,
        )

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
        `update_postimage`), `_commit_version` and `_commit_timestamp`. For tables with
        `delta.enableChangeDataFeed`; one that is only appended to has `appended_batches`, too.

        Args:
            starting_version: the first version; not looked at when there is a starting time.
            ending_version: the last version; None is the one that the handle shows.
            starting_timestamp_ms: a time; the first version committed then or later.
            ending_timestamp_ms: as that; the last version committed then or before.
            columns: which, in this order; all when None.
            predicate: on the table's columns and those three.

        Raises:
            TableChangedError: change data was not enabled for all of the versions, or their schemas do not
                fit the last one's. Raised while reading, at the version that it is about.
            VersionNotFoundError: a version is not, or no longer, in the log.
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
            predicate=predicate,
            allowed_roots=self._allowed_roots,
        )
        batches = typed_iterator(changes.to_batches(), doing="reading changes")
        return pa.RecordBatchReader.from_batches(changes.schema, batches)

    def appended_batches(
        self, since_version: int, columns: Sequence[str] | None = None, filters: Predicate | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows appended after a version, up to the one that is open, for readers that tail the table.

        Args:
            since_version: the version already seen; -1 is before the first.
            columns: as in `to_batches`.
            filters: as in `to_batches`.

        Raises:
            TableChangedError: a commit changed or removed rows, so appended rows are not the whole story.
            VersionNotFoundError: a commit in between is no longer in the log.
            ConfigurationError: the version already seen is below -1 or after the one that is open.
        """
        fix = "Pass -1 to read from the first."
        if at_least(-1, since_version, what="version already seen", fix=fix) is None:
            raise ConfigurationError("No version already seen was given.", fix=fix)
        return scan.appended_batches(
            self._snapshot,
            since_version=since_version,
            columns=name_list(columns),
            filters=filters,
            allowed_roots=self._allowed_roots,
        )

    # ------------------------------------------------------------ changing rows

    def delete(
        self,
        predicate: Expression | str | None = None,
        *,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> DeleteResult:
        """Delete the rows for which a predicate is true; where it is null, a row stays.

        By deletion vectors where the table property `delta.enableDeletionVectors` says so, else by rewriting
        the files that lose rows. The handle shows the new version after.

        Args:
            predicate: Spark SQL text or a tree; None is every row.
            commit_properties: provenance, idempotency key and limits of the commit.

        Returns:
            The commit, and metrics by deltalake's names.

        Raises:
            ExpressionError: the predicate is invalid, does not fit the schema, or fails on a row.
            InvalidTableError: the table is append-only.
            UnsupportedTableFeatureError: the table needs what is not written; nothing was.
            ConcurrentModificationError: another writer has changed or added such rows; nothing was deleted.
            CommitStateUnknownError: the store never said whether the commit landed; files were kept.
        """
        self.update_incremental()
        result = dml.delete_rows(
            self._snapshot,
            predicate,
            allowed_roots=self._allowed_roots,
            properties=commit_properties,
            clock=self._clock,
        )
        self._adopt_result(result.committed)
        return result

    def update(
        self,
        updates: Updates | None = None,
        predicate: Expression | str | None = None,
        *,
        new_values: Updates | None = None,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> UpdateResult:
        """Assign values to columns of the rows for which a predicate is true; where it is null, a row stays.

        By deletion vectors where the table property `delta.enableDeletionVectors` says so, else by rewriting
        the files that have such rows. The handle shows the new version after.

        Args:
            updates: what columns become, by name; `a.b` or `("a", "b")` is a field of a struct. Texts are
                Spark SQL over the row as it was (`DEFAULT` is the column's default); trees do, too, and any
                other Python value is itself.
            predicate: Spark SQL text or a tree; None is every row.
            new_values: as `updates`, but a text is that text.
            commit_properties: provenance, idempotency key and limits of the commit.

        Returns:
            The commit, and metrics by deltalake's names.

        Raises:
            ConfigurationError: nothing is assigned, or one column twice.
            ExpressionError: the predicate or an assignment is invalid, does not fit the schema, or fails on
                a row.
            SchemaMismatchError: an identity column is assigned.
            ConstraintViolationError: a row would break a constraint or NOT NULL; shows it.
            InvalidTableError: the table is append-only.
            UnsupportedTableFeatureError: the table needs what is not written; nothing was.
            ConcurrentModificationError: another writer has changed or added such rows; nothing was updated.
            CommitStateUnknownError: the store never said whether the commit landed; files were kept.
        """
        self.update_incremental()
        result = dml.update_rows(
            self._snapshot,
            updates,
            predicate,
            new_values=new_values,
            allowed_roots=self._allowed_roots,
            properties=commit_properties,
            clock=self._clock,
        )
        self._adopt_result(result.committed)
        return result

    # ------------------------------------------------------------ definition, files and log

    @property
    def optimize(self) -> TableOptimizer:
        """Rewriting files: `table.optimize.compact()`."""
        return maintenance.TableOptimizer(self, allowed_roots=self._allowed_roots)

    @property
    def alter(self) -> FeatureAlterer:
        """Changing the definition: `table.alter.add_columns(...)`."""
        return maintenance.FeatureAlterer(
            self, number_rows=self.optimize.number_rows, allowed_roots=self._allowed_roots
        )

    def restore(
        self,
        target: Instant | None = None,
        *,
        timestamp_ms: Instant | None = None,
        ignore_missing_files: bool = False,
        dry_run: bool = False,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> RestorePlan:
        """Make the table what it was at a version or time, as a new version.

        Applies at once, unlike `vacuum` and the command line: look at the plan of `dry_run=True` first.

        Args:
            target: the version to bring back; a `datetime` or a text here is a time.
            timestamp_ms: or the time whose version to bring back.
            ignore_missing_files: go on without files that the store no longer has; their rows are lost.
            dry_run: only say what would change; nothing is written.
            commit_properties: provenance, idempotency key and limits of the commit.

        Returns:
            The plan: files and rows that come back or go, and the commits that are undone.

        Raises:
            MissingDataFileError: data files of that version are gone.
            RestoreError: not exactly one of version and time.
        """
        require_commit_properties(commit_properties)
        version, time_ms = version_or_time(target, timestamp_ms)
        self.update_incremental()
        plan = maintenance.plan_restore(
            self._snapshot,
            version=version,
            timestamp_ms=time_ms,
            allowed_roots=self._allowed_roots,
            clock=self._clock,
        )
        if not dry_run:
            self._adopt_result(
                maintenance.apply_restore(
                    self._snapshot,
                    plan,
                    ignore_missing_files=ignore_missing_files,
                    properties=commit_properties,
                    by_timestamp=time_ms is not None,
                    allowed_roots=self._allowed_roots,
                    clock=self._clock,
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
        executor: Executor | None = None,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> list[str]:
        """Delete files that no version within the retention needs.

        Args:
            retention_hours: age from which removed files go; the table's retention when None.
            dry_run: only say what would go. The default.
            enforce_retention: refuse a retention below the table's own.
            force: with `enforce_retention=False`, really allow a shorter one.
            executor: maps the deletions; threads of this process when None.
            commit_properties: provenance of the commits that record start and end.

        Returns:
            The paths that went, or would go, relative to the table's root.

        Raises:
            RetentionTooShortError: the retention could take files that readers or writers need.
        """
        require_commit_properties(commit_properties)
        self.update_incremental()
        plan = maintenance.plan_vacuum(
            self._snapshot,
            retention_hours=retention_hours,
            enforce_retention=enforce_retention,
            force=force,
            clock=self._clock,
        )
        planned = plan.columns.paths
        if dry_run:
            return planned
        result = maintenance.apply_vacuum(
            self._snapshot, plan, properties=commit_properties, executor=executor, clock=self._clock
        )
        self.update_incremental()
        kept = set(result.kept)
        return [path for path in planned if path not in kept]

    def repair(
        self,
        dry_run: bool = True,
        *,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> FsckResult:
        """Take files out of the table whose data the store no longer has; their rows are lost.

        Only a file that the store was asked for by its name, and does not have, counts as missing. One that
        cannot be read for another reason, such as the lost file of its deletion vector, stays, and is named
        in `result.plan.unreadable`. Nothing is committed where nothing is missing.

        Args:
            dry_run: only say which files would go. The default, unlike in deltalake.
            commit_properties: provenance, idempotency key and limits of the commit.

        Returns:
            The plan and what came of it; `result.metrics` is what deltalake's `repair` returns.

        Raises:
            StorageError: the store could not say whether it has a file; nothing was committed.
            ConcurrentModificationError: another writer has removed one of the files meanwhile.
            InvalidTableError: the table is append-only.
            UnsupportedTableFeatureError: the table needs what is not written.
        """
        require_commit_properties(commit_properties)
        self.update_incremental()
        plan = maintenance.plan_fsck(self._snapshot, allowed_roots=self._allowed_roots, clock=self._clock)
        if dry_run:
            return maintenance.planned_only(plan)
        result = maintenance.apply_fsck(
            self._snapshot,
            plan,
            allowed_roots=self._allowed_roots,
            properties=commit_properties,
            clock=self._clock,
        )
        self._adopt_result(result.committed)
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
    """What `DeltaTable.__reduce__` names."""
    return DeltaTable(table_uri, version, storage_options, allowed_roots=allowed_roots, clock=clock)
