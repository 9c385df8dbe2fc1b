"""`spark_jobs.DeltaTable`: a table with delta-spark's method names."""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import delta_core
from delta_core.actions import SetTransaction
from delta_core.boundary import public_class
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.jobs import JobResult
from delta_core.jobs.params.engine_io import EngineIO
from delta_core.jobs.params.merge_clauses import MergeAction
from delta_core.run import Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage import open_store
from delta_core.transaction import DEFAULT_COMMIT_PROPERTIES, CommitProperties
from spark_jobs.dml.clauses import MergeClause, MergeClauses
from spark_jobs.dml.merge import MergeRequest, merge_into
from spark_jobs.engine_io import engine_io_of, table_reach
from spark_jobs.reader.read import read_snapshot, to_epoch_ms
from spark_jobs.spark_executor import SparkExecutor

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.dml.clauses import Sql


@public_class
class DeltaTable:
    """A Delta table in a Spark session. Every operation uses its newest version.

    Create one with `DeltaTable.forPath`.
    """

    def __init__(
        self,
        spark: SparkSession,
        uri: str,
        *,
        storage_options: Mapping[str, str] | None = None,
        allowed_roots: Sequence[str | os.PathLike[str]] = (),
        engine_io: str = EngineIO.AUTO,
        alias: str | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._spark = spark
        self._uri = uri
        self._storage_options = storage_options
        self._allowed_roots = allowed_roots
        self._engine_io = engine_io_of(engine_io)
        self._alias = alias
        self._clock = clock

    @classmethod
    def forPath(  # noqa: N802 - the name that delta-spark gives it
        cls,
        spark: SparkSession,
        uri: str,
        *,
        storage_options: Mapping[str, str] | None = None,
        allowed_roots: Sequence[str | os.PathLike[str]] = (),
        engine_io: str = EngineIO.AUTO,
    ) -> DeltaTable:
        """Open the table at a path or URI. For `engine_io` see `spark_jobs.read`.

        Args:
            allowed_roots: paths or URIs. Absolute paths in the log, as those of a shallow clone, may lead
                below them when rows are read.

        Raises:
            TableNotFoundError: no table exists at the path.
        """
        table = cls(
            spark,
            uri,
            storage_options=storage_options,
            allowed_roots=allowed_roots,
            engine_io=engine_io,
        )
        table._snapshot()
        return table

    @staticmethod
    def isDeltaTable(spark: SparkSession, uri: str) -> bool:  # noqa: N802
        """Whether there is a Delta table at the path."""
        return delta_core.DeltaTable.is_deltatable(uri)

    def alias(self, name: str) -> DeltaTable:
        """The same table with an alias for the conditions and values of a merge."""
        return DeltaTable(
            self._spark,
            self._uri,
            storage_options=self._storage_options,
            allowed_roots=self._allowed_roots,
            engine_io=self._engine_io,
            alias=name,
            clock=self._clock,
        )

    def toDF(self) -> DataFrame:  # noqa: N802
        """The rows of the newest version as a DataFrame, with the table's alias if it has one."""
        snapshot = self._snapshot()
        reach = table_reach(
            self._spark,
            snapshot.store,
            engine_io=self._engine_io,
            storage_options=self._storage_options,
            allowed_roots=self._allowed_roots,
            clock=self._clock,
        )
        frame = read_snapshot(self._spark, snapshot, reach)
        return frame if self._alias is None else frame.alias(self._alias)

    def merge(self, source: DataFrame, condition: Sql) -> DeltaMergeBuilder:
        """Start a merge of a DataFrame's rows into the table.

        Args:
            source: the rows. Give the DataFrame an alias (`updates.alias("s")`) when source and target have
                the same column names.
            condition: the condition for a match: Spark SQL, or a Column that refers to columns by name
                (`col("s.id") == col("t.id")`, not `frame["id"]`).
        """
        return DeltaMergeBuilder(self, source, condition)

    def optimize(self) -> DeltaOptimizeBuilder:
        """Start to compact or Z-order the table's files. The table's rows stay the same."""
        return DeltaOptimizeBuilder(self)

    def history(self, limit: int | None = None) -> DataFrame:
        """The table's commits as a DataFrame, newest first."""
        entries = self._core().history(limit)
        rows = [
            (
                entry.version,
                dt.datetime.fromtimestamp(entry.timestamp_ms / 1000, tz=dt.UTC),
                entry.commit_info.operation,
                dict(entry.commit_info.operation_parameters or {}),
                dict(entry.commit_info.operation_metrics or {}),
                entry.commit_info.user_metadata,
                entry.commit_info.engine_info,
            )
            for entry in entries
        ]
        schema = (
            "version bigint, timestamp timestamp_ltz, operation string, "
            "operationParameters map<string,string>, operationMetrics map<string,string>, "
            "userMetadata string, engineInfo string"
        )
        return self._spark.createDataFrame(rows, schema)

    def vacuum(self, retentionHours: float | None = None) -> list[str]:  # noqa: N803
        """Delete files that no version within the retention needs.

        Args:
            retentionHours: removed files older than this are deleted; None uses the table's retention.

        Returns:
            The paths of the deleted files, relative to the table.

        Raises:
            RetentionTooShortError: with this retention, files that readers or writers need could be deleted.
        """
        return self._core().vacuum(retentionHours, dry_run=False, executor=self._executor())

    def restoreToVersion(self, version: int) -> DataFrame:  # noqa: N802
        """Restore the table to a version, as a new commit. Returns the metrics as a DataFrame."""
        return self._restore_metrics(self._core().restore(version))

    def restoreToTimestamp(self, timestamp: str | dt.datetime | int) -> DataFrame:  # noqa: N802
        """Restore the table to a time (a string without a zone is UTC), as a new commit."""
        return self._restore_metrics(self._core().restore(timestamp_ms=to_epoch_ms(timestamp)))

    def _restore_metrics(self, plan: Any) -> DataFrame:
        row = [(plan.target_version, len(plan.added), len(plan.removed))]
        schema = "restored_version bigint, num_restored_files bigint, num_removed_files bigint"
        return self._spark.createDataFrame(row, schema)

    def _core(self) -> delta_core.DeltaTable:
        return delta_core.DeltaTable(
            self._uri,
            storage_options=self._storage_options,
            allowed_roots=self._allowed_roots,
            clock=self._clock,
        )

    def _executor(self) -> SparkExecutor:
        return SparkExecutor(self._spark, storage_options=self._storage_options)

    def _snapshot(self) -> Snapshot:
        store = open_store(self._uri, storage_options=self._storage_options, clock=self._clock)
        return Snapshot.load(store, clock=self._clock)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    matched: tuple[MergeClause, ...] = ()
    not_matched: tuple[MergeClause, ...] = ()
    not_matched_by_source: tuple[MergeClause, ...] = ()
    merge_schema: bool = False
    properties: CommitProperties = field(default=DEFAULT_COMMIT_PROPERTIES)


@public_class
class DeltaMergeBuilder:
    """A builder for a merge. Each method returns a builder with one more clause; `execute` runs the merge.

    There are three lists of clauses: for matched rows, for source rows without a match, and for target rows
    without a match. In each list, the first clause whose condition is true applies to a row.
    """

    def __init__(
        self, table: DeltaTable, source: DataFrame, condition: Sql, draft: _Draft | None = None
    ) -> None:
        self._table = table
        self._source = source
        self._condition = condition
        self._draft = draft or _Draft()

    def whenMatchedUpdate(  # noqa: N802
        self, condition: Sql | None = None, set: Mapping[str, Sql] | None = None
    ) -> DeltaMergeBuilder:
        """Set columns of matched rows. Other columns are unchanged."""
        return self._matched(MergeAction.UPDATE, condition, set)

    def whenMatchedUpdateAll(self, condition: Sql | None = None) -> DeltaMergeBuilder:  # noqa: N802
        """Set every column of matched rows to the source's column of the same name."""
        return self._matched(MergeAction.UPDATE_ALL, condition)

    def whenMatchedDelete(self, condition: Sql | None = None) -> DeltaMergeBuilder:  # noqa: N802
        """Delete matched rows."""
        return self._matched(MergeAction.DELETE, condition)

    def whenNotMatchedInsert(  # noqa: N802
        self, condition: Sql | None = None, values: Mapping[str, Sql] | None = None
    ) -> DeltaMergeBuilder:
        """Insert source rows without a match. Columns without a value are null."""
        return self._not_matched(MergeAction.INSERT, condition, values)

    def whenNotMatchedInsertAll(self, condition: Sql | None = None) -> DeltaMergeBuilder:  # noqa: N802
        """Insert source rows without a match. Each column gets the source's column of the same name."""
        return self._not_matched(MergeAction.INSERT_ALL, condition)

    def whenNotMatchedBySourceUpdate(  # noqa: N802
        self, condition: Sql | None = None, set: Mapping[str, Sql] | None = None
    ) -> DeltaMergeBuilder:
        """Set columns of target rows that no source row matches."""
        return self._by_source(MergeAction.UPDATE, condition, set)

    def whenNotMatchedBySourceDelete(self, condition: Sql | None = None) -> DeltaMergeBuilder:  # noqa: N802
        """Delete target rows that no source row matches."""
        return self._by_source(MergeAction.DELETE, condition)

    def withSchemaEvolution(self) -> DeltaMergeBuilder:  # noqa: N802
        """Allow the source to add columns to the table."""
        return self._with(merge_schema=True)

    def withCommitProperties(  # noqa: N802
        self, *, txn: tuple[str, int] | None = None, user_metadata: str | None = None
    ) -> DeltaMergeBuilder:
        """Set properties of the commit.

        Args:
            txn: (application id, version). When the table already has this `txn`, the merge does nothing.
            user_metadata: the commit's `userMetadata`.
        """
        key = None if txn is None else SetTransaction(app_id=txn[0], version=txn[1])
        return self._with(properties=CommitProperties(user_metadata=user_metadata, txn=key))

    def execute(self) -> JobResult:
        """Run the merge as one commit.

        Returns:
            The result; `output["metrics"]` has the operation's metrics.

        Raises:
            DeltaError: see `spark_jobs.dml.merge.merge_into`. Nothing was committed, except that the commit
                may exist after a CommitStateUnknownError.
        """
        draft = self._draft
        clauses = MergeClauses(
            matched=draft.matched,
            not_matched=draft.not_matched,
            not_matched_by_source=draft.not_matched_by_source,
        )
        request = MergeRequest(
            on=self._condition,
            clauses=clauses,
            target_alias=self._table._alias or "target",
            merge_schema=draft.merge_schema,
            engine_io=self._table._engine_io,
            storage_options=self._table._storage_options,
            allowed_roots=self._table._allowed_roots,
        )
        run = Run(clock=self._table._clock, commit=draft.properties)
        return merge_into(self._source, self._table._snapshot(), request, run=run)

    def _matched(
        self, action: MergeAction, condition: Sql | None, values: Mapping[str, Sql] | None = None
    ) -> DeltaMergeBuilder:
        clause = MergeClause(action=action, condition=condition, values=values)
        return self._with(matched=(*self._draft.matched, clause))

    def _not_matched(
        self, action: MergeAction, condition: Sql | None, values: Mapping[str, Sql] | None = None
    ) -> DeltaMergeBuilder:
        clause = MergeClause(action=action, condition=condition, values=values)
        return self._with(not_matched=(*self._draft.not_matched, clause))

    def _by_source(
        self, action: MergeAction, condition: Sql | None, values: Mapping[str, Sql] | None = None
    ) -> DeltaMergeBuilder:
        clause = MergeClause(action=action, condition=condition, values=values)
        return self._with(not_matched_by_source=(*self._draft.not_matched_by_source, clause))

    def _with(self, **changes: Any) -> DeltaMergeBuilder:
        return DeltaMergeBuilder(self._table, self._source, self._condition, replace(self._draft, **changes))


@public_class
class DeltaOptimizeBuilder:
    """A builder for rewriting files of the whole table, or of the partitions that match `where`."""

    def __init__(self, table: DeltaTable, predicate: str | None = None) -> None:
        self._table = table
        self._predicate = predicate

    def where(self, partitionFilter: str) -> DeltaOptimizeBuilder:  # noqa: N803
        """Restrict the rewrite to partitions for which the filter is true."""
        return DeltaOptimizeBuilder(self._table, partitionFilter)

    def executeCompaction(self) -> DataFrame:  # noqa: N802
        """Compact small files. Returns the metrics as a DataFrame with one row."""
        core, executor = self._table._core(), self._table._executor()
        return self._as_frame(core.optimize.compact(self._predicate, executor=executor))

    def executeZOrderBy(self, *columns: str | Sequence[str]) -> DataFrame:  # noqa: N802
        """Rewrite files in Z-order, so that files contain rows with similar values of these columns."""
        names = [
            name for argument in columns for name in ([argument] if isinstance(argument, str) else argument)
        ]
        core, executor = self._table._core(), self._table._executor()
        return self._as_frame(core.optimize.z_order(names, predicate=self._predicate, executor=executor))

    def _as_frame(self, metrics: Mapping[str, Any]) -> DataFrame:
        row = [(self._table._uri, json.dumps(dict(metrics)))]
        return self._table._spark.createDataFrame(row, "path string, metrics string")
