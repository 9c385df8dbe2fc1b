"""The common part of DELETE and UPDATE on Spark.

Which rows change, how files are marked or replaced, and the commit are those of `delta_core`'s row statements
(`delta_core.dml.row_statement`). Here Spark finds the rows and writes the new ones.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from delta_core.clock import SYSTEM_CLOCK
from delta_core.dml.change_files import records_changes
from delta_core.dml.find_rows import FoundRows, find_rows
from delta_core.dml.moved_rows import follow_moved_rows
from delta_core.dml.row_statement import ChangedFiles, RowStatement, RowStatementResult
from delta_core.errors import ConfigurationError, DeltaError
from delta_core.jobs import JobMetrics, JobResult, JobStatus
from delta_core.jobs.params.engine_io import EngineIO
from delta_core.run import DEFAULT_RUN, Run
from delta_core.scan import Scan
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage import open_store
from delta_core.table_features.feature import WriterKind
from delta_core.transaction import DEFAULT_COMMIT_PROPERTIES, CommitProperties
from spark_jobs.dml.condition import RowCondition, row_condition
from spark_jobs.dml.positions import rows_at, rows_counted
from spark_jobs.dml.row_values import RowValues
from spark_jobs.dml.source import Names
from spark_jobs.dml.target import TargetFiles
from spark_jobs.engine_io import TableReach, engine_io_of, table_reach
from spark_jobs.expressions.checks import Check, with_checks
from spark_jobs.failures import ViolationToken, as_delta_error
from spark_jobs.writer.changed_rows import ExtraColumns
from spark_jobs.writer.commits import record_commit
from spark_jobs.writer.staged_files import StagedFiles
from spark_jobs.writer.staging import stage_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.dml.clauses import Sql


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementRequest:
    """The parameters that DELETE and UPDATE have in common.

    Attributes:
        where: the condition; None is every row.
        alias: the table's alias in the condition and the values.
        show_rows: whether an error may show the row that caused it.
        compression: the codec of new files.
        engine_io, storage_options, allowed_roots: see `table_reach`.
        job_id: the job id of the result.
    """

    where: Sql | None = None
    alias: str | None = None
    show_rows: bool = True
    compression: str = "snappy"
    engine_io: EngineIO = EngineIO.AUTO
    storage_options: Mapping[str, str] | None = field(default=None, hash=False, repr=False)
    allowed_roots: Sequence[str | os.PathLike[str]] = ()
    job_id: str = field(default_factory=lambda: str(uuid.uuid4()))


@dataclass(slots=True, kw_only=True)
class SparkStatement:
    """One DELETE or UPDATE on Spark.

    Attributes:
        spark, request: the arguments of the statement.
        kind: the job kind of the result.
        statement: the statement, as delta_core plans and commits it.
        reach: how Spark reaches the table.
        condition: the rows that the statement changes.
        names: the names of added columns.
        matched: the matching rows, computed once; None unless `keep_matched` was used.
    """

    spark: SparkSession
    request: StatementRequest
    kind: str
    statement: RowStatement
    reach: TableReach
    condition: RowCondition
    names: Names = field(default_factory=Names)
    matched: DataFrame | None = None
    _staged: StagedFiles | None = None

    @property
    def snapshot(self) -> Snapshot:
        """The version that the statement is based on."""
        return self.statement.snapshot

    @property
    def records_changes(self) -> bool:
        """Whether the table has a change data feed."""
        return records_changes(self.snapshot.protocol, self.snapshot.metadata)

    def find(self, *, keeps_rows: bool = False) -> FoundRows:
        """Find the matching rows.

        No job runs when the log alone decides. With deletion vectors their positions are collected, otherwise
        they are counted.

        Args:
            keeps_rows: compute and keep the matching rows, with all columns, in `matched`, unless a second
                scan certainly finds the same rows.

        Raises:
            DeltaError: a file cannot be read, or Spark failed.
        """
        snapshot, condition = self.snapshot, self.condition
        if condition.uses_only(tuple(snapshot.partition_columns)):
            return find_rows(snapshot, condition.reads, allowed_roots=self.reach.access.allowed_roots)
        files = Scan(
            snapshot, predicate=condition.reads, allowed_roots=self.reach.access.allowed_roots
        ).files()
        target = TargetFiles.of(snapshot, files, self.reach)
        if not len(target):
            return FoundRows(candidates=files, matches=())
        assert condition.column is not None
        try:
            if keeps_rows and not condition.is_exact:
                self.matched = self.rows(target, with_ids=True).where(condition.column).persist()
                places = self.matched
            else:
                rows = target.scan(self.spark, self.names, strings=condition.strings)
                places = self.aliased(rows).where(condition.column)
            if self.statement.uses_deletion_vectors:
                return rows_at(places, target, self.names)
            return rows_counted(places, target, self.names)
        except Exception as error:
            raise as_delta_error(error, doing="looking for rows") from error

    def files_of(self, found: FoundRows, *, only_partial: bool = False) -> TargetFiles:
        """The files with matching rows; with `only_partial` those that also have other rows."""
        indexes = [match.index for match in found.matches if not (only_partial and match.is_whole)]
        return TargetFiles.of(self.snapshot, found.candidates.take(pa.array(indexes, pa.int64())), self.reach)

    def rows(self, target: TargetFiles, *, with_ids: bool) -> DataFrame:
        """The rows of files by the table's alias, with their places and, if asked for, their row ids."""
        tracking = self.statement.plan.row_tracking
        if with_ids and tracking is not None:
            return self.aliased(target.scan_with_row_ids(self.spark, self.names, tracking))
        return self.aliased(target.scan(self.spark, self.names))

    def aliased(self, rows: DataFrame) -> DataFrame:
        """The rows by the table's alias."""
        return rows if self.request.alias is None else rows.alias(self.request.alias)

    def stage(
        self,
        rows: DataFrame,
        rest: RowValues,
        *,
        checks: Sequence[Check],
        casts: Sequence[Check] = (),
        token: ViolationToken,
    ) -> StagedFiles:
        """Write rows of `rows_after`, completed, to new files.

        Args:
            rows: the rows.
            rest: the values with which they were completed.
            checks: checks of every row.
            casts: the checks, numbered after `checks`, that are part of the rows' expressions.
            token: marks errors of the checks.

        Raises:
            ConstraintViolationError: a row violates a check; no file remains.
            JobFailedError: Spark failed; no file remains.
        """
        plan = rest.plan
        try:
            rows = with_checks(rows, checks, token, show_rows=self.request.show_rows, shown=plan.schema.names)
        except DeltaError:
            raise
        except Exception as error:
            raise as_delta_error(error, doing=f"resolving the {self.statement.operation}") from error
        self._staged = stage_rows(
            rows,
            self.reach,
            plan,
            extra=ExtraColumns(
                hidden=rest.tracking is not None,
                kind=self.names.kind if rest.records_changes else None,
                before=self.names.before if rest.records_changes else None,
            ),
            checks=[*checks, *casts],
            token=token,
            compression=self.request.compression,
            progress=self.statement.run.progress,
        )
        return self._staged

    def commit(
        self,
        change: Callable[[FoundRows], ChangedFiles],
        *,
        find: Callable[[], FoundRows],
        before_commit: Callable[[], None] | None,
    ) -> JobResult:
        """Find the rows, change their files and commit. Arguments and errors as `RowStatement.execute`.

        `before_commit` is called right before the commit. When it raises, nothing is committed and the
        written files are deleted.
        """
        run = self.statement.run
        progress = run.progress

        def changed(found: FoundRows) -> ChangedFiles:
            progress.emit("files.planned", total=len(found.matches))
            changes = change(found)
            if before_commit is not None:
                with changes.owned.deleted_on_error(BaseException):
                    before_commit()
            progress.emit("commit.before", files=len(changes.written))
            return changes

        began = run.clock.monotonic_seconds()
        try:
            result = self.statement.execute(
                self.condition.reads, changed, find=find, condition=self.condition.text
            )
        finally:
            if self.matched is not None:
                self.matched.unpersist()
            # The commit deletes the written files if and only if no version can refer to them.
            if self._staged is not None:
                self._staged.remove_empty_directories()
        committed = result.committed
        if committed is not None and committed.already_applied:
            if self._staged is not None:
                self._staged.discard()
            return self._result(committed.version, was_applied=True)
        if committed is not None:
            progress.emit("commit.after", version=committed.version)
            record_commit(self.snapshot.store.uri, committed.version)
        return self._committed(result, run.clock.monotonic_seconds() - began)

    def applied(self, version: int) -> JobResult:
        """The result when the table had the idempotency key already."""
        return self._result(version, was_applied=True)

    def _committed(self, result: RowStatementResult, seconds: float) -> JobResult:
        version = result.version
        metrics = dict(result.history) or _no_metrics(self.statement.counted, result.metrics)
        done = self._result(
            self.snapshot.version if version is None else version,
            commits=() if version is None else (version,),
        )
        return replace(
            done,
            metrics=JobMetrics(
                files_added=metrics["numAddedFiles"],
                bytes_added=metrics["numAddedBytes"],
                files_removed=metrics["numRemovedFiles"],
                bytes_removed=metrics["numRemovedBytes"],
                rows=metrics.get(f"num{self.statement.counted.capitalize()}Rows"),
                wall_seconds=round(seconds, 6),
            ),
            output={"metrics": metrics, "engine_io": self.reach.engine_io.value},
        )

    def _result(
        self, version_to: int, *, commits: tuple[int, ...] = (), was_applied: bool = False
    ) -> JobResult:
        return JobResult(
            job_id=self.request.job_id,
            kind=self.kind,
            status=JobStatus.SUCCEEDED,
            version_from=self.snapshot.version,
            version_to=version_to,
            commits=commits,
            already_applied=was_applied,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementKind:
    """DELETE or UPDATE.

    Attributes:
        job: the job kind of the result.
        operation: the operation that `commitInfo` records.
        verb, counted: see `RowStatement`.
    """

    job: str
    operation: str
    verb: str
    counted: str


def run_statement(
    spark: SparkSession,
    snapshot: Snapshot,
    request: StatementRequest,
    *,
    kind: StatementKind,
    change_rows: Callable[[SparkStatement], JobResult],
    run: Run,
) -> JobResult:
    """Run a statement on a version of the table; again when a compaction moved the rows.

    Args:
        spark, snapshot, request, kind, run: the statement.
        change_rows: changes the rows and commits.

    Raises:
        InvalidTableError, UnsupportedTableFeatureError, ConfigurationError, ExpressionError: the table or the
            request is not valid.
        DeltaError: the errors of `change_rows`.
    """

    def attempt(version: Snapshot, attempt_run: Run) -> JobResult:
        work = _begin(spark, version, request, kind, run=attempt_run)
        return work if isinstance(work, JobResult) else change_rows(work)

    return follow_moved_rows(snapshot, run, attempt)


def _begin(
    spark: SparkSession, snapshot: Snapshot, request: StatementRequest, kind: StatementKind, *, run: Run
) -> SparkStatement | JobResult:
    """Prepare a statement, without reading a row.

    Returns:
        The statement, or the result when the table has the idempotency key already.

    Raises:
        InvalidTableError: the table is append-only.
        UnsupportedTableFeatureError: the table needs an unsupported feature.
        ConfigurationError, ExpressionError: see `row_condition` and `table_reach`.
    """
    statement = RowStatement(
        snapshot=snapshot,
        operation=kind.operation,
        verb=kind.verb,
        counted=kind.counted,
        writer_kind=WriterKind.MERGE,
        run=run,
    )
    done = statement.already_done()
    if done is not None:
        return JobResult(
            job_id=request.job_id,
            kind=kind.job,
            status=JobStatus.SUCCEEDED,
            version_from=snapshot.version,
            version_to=snapshot.version,
            already_applied=True,
        )
    condition = row_condition(
        spark, request.where, schema=snapshot.schema, alias=request.alias, operation=kind.operation
    )
    reach = table_reach(
        spark,
        snapshot.store,
        engine_io=request.engine_io,
        storage_options=request.storage_options,
        allowed_roots=request.allowed_roots,
        clock=run.clock,
    )
    statement = replace(statement, run=replace(run, allowed_roots=reach.access.allowed_roots))
    return SparkStatement(
        spark=spark,
        request=request,
        kind=kind.job,
        statement=statement,
        reach=reach,
        condition=condition,
    )


def request_of(
    where: Sql | None,
    *,
    alias: str | None,
    engine_io: str | EngineIO,
    storage_options: Mapping[str, str] | None,
    allowed_roots: Sequence[str | os.PathLike[str]],
) -> StatementRequest:
    """The request of a public call. Raises ConfigurationError when an argument is not valid."""
    return StatementRequest(
        where=where,
        alias=None if alias is None else alias_of(alias),
        engine_io=engine_io_of(engine_io),
        storage_options=storage_options,
        allowed_roots=allowed_roots,
    )


def alias_of(alias: object) -> str:
    """A table's alias. Raises ConfigurationError when it is not a string with a character."""
    if not isinstance(alias, str) or not alias:
        raise ConfigurationError(f"{alias!r} is not an alias.", fix="Pass a name such as 't', or None.")
    return alias


def newest(
    uri: str, *, storage_options: Mapping[str, str] | None, commit: CommitProperties | None
) -> tuple[Snapshot, Run]:
    """The newest version of the table of a public call, and the call's surroundings.

    Raises:
        TableNotFoundError: no table exists.
        ConfigurationError: the commit properties or the options are not valid.
    """
    run = replace(DEFAULT_RUN, commit=DEFAULT_COMMIT_PROPERTIES if commit is None else commit)
    store = open_store(uri, storage_options=storage_options, clock=SYSTEM_CLOCK)
    return Snapshot.load(store, clock=SYSTEM_CLOCK), run


def _no_metrics(counted: str, metrics: Mapping[str, int]) -> dict[str, int]:
    """The metrics of a statement that matched no row and committed nothing."""
    zero = dict.fromkeys(
        (
            "numRemovedFiles",
            "numAddedFiles",
            "numAddedChangeFiles",
            "numRemovedBytes",
            "numAddedBytes",
            f"num{counted.capitalize()}Rows",
            "numCopiedRows",
            "numDeletionVectorsAdded",
            "numDeletionVectorsRemoved",
            "numDeletionVectorsUpdated",
            "rewriteTimeMs",
        ),
        0,
    )
    scanned = metrics["scan_time_ms"]
    return {**zero, "scanTimeMs": scanned, "executionTimeMs": scanned}
