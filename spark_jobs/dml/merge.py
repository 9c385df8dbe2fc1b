"""MERGE into a table: one commit that updates, deletes and inserts rows.

Phase one joins the source with the key columns of the files that can match, and chooses a clause for each
row. Phase two writes rows in one Spark job: with deletion vectors the updated and inserted rows, otherwise
all remaining rows of the touched files too. Both phases read the same persisted source.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from delta_core.boundary import public
from delta_core.clock import Clock
from delta_core.dml.change_files import records_changes
from delta_core.dml.find_rows import FoundRows
from delta_core.dml.metadata_update import MetadataUpdate, TableDefinition, plan_metadata_update
from delta_core.dml.moved_rows import follow_moved_rows
from delta_core.dml.row_statement import RowStatement, uses_deletion_vectors
from delta_core.errors import ConfigurationError, DeltaError, InvalidTableError
from delta_core.execution.progress import ProgressReporter
from delta_core.expressions.ast import TRUE, Expression
from delta_core.expressions.columns import disjunction
from delta_core.jobs import JobMetrics, JobResult, JobStatus
from delta_core.jobs.params.engine_io import EngineIO
from delta_core.jobs.params.merge import KIND
from delta_core.run import DEFAULT_RUN, Run
from delta_core.scan import Scan
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.feature import WriterKind
from delta_core.table_features.support import require_write_support
from delta_core.transaction import CommitProperties
from delta_core.transaction.deletion_vector_merger import DeletionVectorMerger
from spark_jobs.dml.changed_rows import changed_rows, keeps_columns
from spark_jobs.dml.clauses import MergeClauses, merge_parameters, sql_text
from spark_jobs.dml.commit import OPERATION, RowChange, commit_change, replaced_files, total_bytes
from spark_jobs.dml.matching import Matches, find_matches
from spark_jobs.dml.merge_metrics import merge_metrics
from spark_jobs.dml.pruning import by_source_predicate, match_facts, target_predicate
from spark_jobs.dml.rewrite import MergeRows, merged_rows
from spark_jobs.dml.row_values import RowValues
from spark_jobs.dml.source import (
    MergeSource,
    Names,
    as_column,
    checked_columns,
    find_alias,
    fix_source,
    require_deterministic,
)
from spark_jobs.dml.statement import alias_of, newest
from spark_jobs.dml.target import TargetFiles
from spark_jobs.dml.values import Assignments, Caster, assignments, evolved_schema
from spark_jobs.engine_io import TableReach, engine_io_of, table_reach
from spark_jobs.expressions.checks import Check, partition_name_checks, table_checks, with_checks
from spark_jobs.expressions.sql_semantics import SqlSemantics
from spark_jobs.failures import ViolationToken, as_delta_error
from spark_jobs.schema import to_spark
from spark_jobs.writer.changed_rows import ExtraColumns
from spark_jobs.writer.commits import record_commit
from spark_jobs.writer.staged_files import StagedFiles
from spark_jobs.writer.staging import stage_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.dml.clauses import Sql


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRequest:
    """The parameters of a merge.

    Attributes:
        on: the condition. A null result is not a match.
        target_alias: the table's alias in the condition and the clauses.
        source_alias: the source's alias; None takes the DataFrame's alias.
        merge_schema: whether the source may add columns to the table.
        source_checks: checks that every source row must pass.
        show_rows: whether an error may show the row that caused it.
        engine_io, storage_options, allowed_roots: see `table_reach`.
    """

    on: Sql
    clauses: MergeClauses
    target_alias: str = "t"
    source_alias: str | None = None
    merge_schema: bool = False
    source_checks: Sequence[Check] = ()
    show_rows: bool = True
    compression: str = "snappy"
    engine_io: EngineIO = EngineIO.AUTO
    storage_options: Mapping[str, str] | None = field(default=None, hash=False, repr=False)
    allowed_roots: Sequence[str | os.PathLike[str]] = ()
    job_id: str = field(default_factory=lambda: str(uuid.uuid4()))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """The plan of the merge, made before any data file of the table is read."""

    source_alias: str
    change: MetadataUpdate
    values: Assignments
    rest: RowValues
    match_predicate: Expression
    read_predicate: Expression
    source: MergeSource
    uses_vectors: bool


@public
def merge(
    spark: SparkSession,
    uri: str,
    source: DataFrame,
    on: Sql,
    clauses: MergeClauses,
    *,
    merge_schema: bool = False,
    storage_options: Mapping[str, str] | None = None,
    allowed_roots: Sequence[str | os.PathLike[str]] = (),
    engine_io: str = EngineIO.AUTO,
    commit_properties: CommitProperties | None = None,
    alias: str | None = None,
) -> JobResult:
    """Merge a DataFrame's rows into the newest version of a table.

    Args:
        spark: the session of `source`.
        uri: the table's URI or path.
        source: the rows. Give the DataFrame an alias (`updates.alias("s")`) when source and table have the
            same column names.
        on: the condition for a match: Spark SQL, or a Column that refers to columns by name.
        clauses: what happens to rows.
        merge_schema: allow the source to add columns to the table.
        storage_options, allowed_roots, engine_io, commit_properties: as in `spark_jobs.delete`.
        alias: the table's alias in the condition and the clauses; `t` when None.

    Returns:
        The result; `output["metrics"]` has the metrics, named as in delta-spark.

    Raises:
        TableNotFoundError: no table exists.
        DeltaError: see `merge_into`.
    """
    if not isinstance(clauses, MergeClauses):
        raise ConfigurationError(
            f"The clauses of a merge cannot be a {type(clauses).__name__}.", fix="Pass a MergeClauses."
        )
    request = MergeRequest(
        on=on,
        clauses=clauses,
        target_alias="t" if alias is None else alias_of(alias),
        merge_schema=merge_schema,
        engine_io=engine_io_of(engine_io),
        storage_options=storage_options,
        allowed_roots=allowed_roots,
    )
    snapshot, run = newest(uri, storage_options=storage_options, commit=commit_properties)
    return merge_into(source, snapshot, request, run=run)


def merge_into(
    frame: DataFrame,
    snapshot: Snapshot,
    request: MergeRequest,
    *,
    before_commit: Callable[[], None] | None = None,
    run: Run = DEFAULT_RUN,
) -> JobResult:
    """Merge a DataFrame's rows into a version of a table. It runs again when a compaction moved the rows.

    `before_commit` is called right before the commit. When it raises, nothing is committed and the written
    files are deleted.

    Returns:
        A successful result; `output["metrics"]` has the operation's metrics, named as in delta-spark.

    Raises:
        MergeDuplicateMatchError: several source rows match one target row, and the clauses do not allow it.
        SchemaMismatchError, ConstraintViolationError, ConfigurationError: the source's columns, a row or the
            request is not valid; no written file remains.
        ConcurrentModificationError: another writer changed the read set; no written file remains.
        CommitStateUnknownError: the written files are kept, because a commit may refer to them.
        JobFailedError: Spark failed.
    """

    def attempt(version: Snapshot, attempt_run: Run) -> JobResult:
        return _merge_once(frame, version, request, before_commit=before_commit, run=attempt_run)

    return follow_moved_rows(snapshot, run, attempt)


def _merge_once(
    frame: DataFrame,
    snapshot: Snapshot,
    request: MergeRequest,
    *,
    before_commit: Callable[[], None] | None,
    run: Run,
) -> JobResult:
    clock, progress = run.clock, run.progress
    began, verified_at_ms = clock.monotonic_seconds(), clock.now_ms()
    if run.already_applied(snapshot) is not None:
        return _result(request, snapshot.version, snapshot.version, was_applied=True)
    _require_mergeable(snapshot, request.clauses)
    spark = frame.sparkSession
    reach = table_reach(
        spark,
        snapshot.store,
        engine_io=request.engine_io,
        storage_options=request.storage_options,
        allowed_roots=request.allowed_roots,
        clock=clock,
    )
    names = Names()
    plan = _plan(frame, snapshot, request, names, clock)
    source_read = clock.monotonic_seconds()
    candidates = TargetFiles.of(snapshot, Scan(snapshot, predicate=plan.read_predicate).files(), reach)
    progress.emit("rows.comparing", total=len(candidates), source_rows=plan.source.rows)
    try:
        matches = find_matches(
            spark,
            plan.source,
            candidates,
            on=request.on,
            clauses=request.clauses,
            match_predicate=plan.match_predicate,
            target_alias=request.target_alias,
            names=names,
            keeps_rows=plan.uses_vectors,
            keeps_columns=plan.uses_vectors
            and keeps_columns(
                request.clauses,
                plan.values,
                plan.rest,
                source_rows=plan.source.rows,
                files=len(candidates),
            ),
            tracking=plan.rest.tracking,
        )
    except Exception as error:
        raise as_delta_error(error, doing="looking for matches") from error
    scanned = clock.monotonic_seconds()
    statement = RowStatement(
        snapshot=snapshot,
        operation=OPERATION,
        verb="merge",
        counted="merged",
        writer_kind=WriterKind.MERGE,
        run=replace(run, allowed_roots=reach.access.allowed_roots),
    )
    try:
        candidates.require_known(matches.touched)
        touched = candidates.select(matches.touched)
        progress.emit("files.planned", total=len(touched), matches=matches.number)
        found = None
        if plan.uses_vectors and len(touched):
            found = _deleted_rows(matches, touched, names)
        staged = _stage(frame, reach, request, plan, touched, matches, names, progress)
    finally:
        matches.unpersist()
    try:
        written = clock.monotonic_seconds()
        removed = touched
        if found is not None:
            whole = {touched.keys[match.index] for match in found.matches if match.is_whole}
            removed = touched.select(whole)
        metrics = merge_metrics(
            snapshot,
            clauses=request.clauses,
            source=plan.source,
            removed=removed,
            matches=matches,
            staged=staged,
            found=found,
        )
        metrics |= {
            "materializeSourceTimeMs": _ms(source_read - began),
            "scanTimeMs": _ms(scanned - source_read),
            "rewriteTimeMs": _ms(written - scanned),
            "executionTimeMs": _ms(written - began),
        }
        if before_commit is not None:
            before_commit()
    except BaseException:
        staged.discard()
        raise
    progress.emit("commit.before", files=len(staged.adds), rows=metrics["numOutputRows"])
    try:
        if found is None:
            files = replaced_files(snapshot, touched.live, added=staged.adds, changes=staged.changes, run=run)
        else:
            files = statement.with_deletion_vectors(found, written=staged.adds, changes=staged.changes)
        committed = commit_change(
            snapshot,
            RowChange(
                files=files,
                read=candidates.live,
                predicate=plan.read_predicate,
                definition=plan.change.with_high_water_marks_of(staged.high_water_marks).actions,
                resolver=_resolver(statement, plan.read_predicate, request.clauses, matches),
            ),
            parameters=merge_parameters(request.on, request.clauses),
            metrics=metrics,
            verified_at_ms=verified_at_ms,
            run=run,
        )
    finally:
        # The commit deletes the written files if and only if no version can refer to them.
        staged.remove_empty_directories()
    progress.emit("commit.after", version=committed.version)
    if committed.already_applied:
        # Another run of the same work committed the files that it wrote, so no version refers to these files.
        staged.discard()
        return _result(request, snapshot.version, committed.version, was_applied=True)
    record_commit(snapshot.store.uri, committed.version)
    result = _result(request, snapshot.version, committed.version)
    return replace(
        result,
        metrics=JobMetrics(
            files_added=len(staged.adds),
            bytes_added=total_bytes(staged.adds),
            files_removed=len(removed),
            bytes_removed=metrics["numTargetBytesRemoved"],
            rows=metrics["numOutputRows"],
            wall_seconds=round(clock.monotonic_seconds() - began, 6),
        ),
        output={"metrics": metrics, "engine_io": reach.engine_io.value},
    )


def _require_mergeable(snapshot: Snapshot, clauses: MergeClauses) -> None:
    """Refuse early a merge that the commit would refuse."""
    snapshot.require_writable(writer_kind=WriterKind.MERGE, operation="merge into the table")
    if snapshot.properties.append_only and not clauses.is_insert_only:
        raise InvalidTableError(
            "The table is append-only, so a merge can only insert rows.",
            cause="The table property delta.appendOnly is true.",
            fix="Leave out the clauses that update or delete, or set delta.appendOnly to false first.",
        )


def _plan(frame: DataFrame, snapshot: Snapshot, request: MergeRequest, names: Names, clock: Clock) -> _Plan:
    """Run all checks that need no data, then read the source."""
    clauses, target_alias = request.clauses, request.target_alias
    schema = checked_columns(frame)
    alias = request.source_alias
    if alias is None:
        strings = [sql_text(request.on), *clauses.strings()]
        alias = find_alias(frame, strings, target_alias=target_alias) or f"{names.row}_source"
    if alias.casefold() == target_alias.casefold():
        raise ConfigurationError(
            f"The table and the source have the same alias {alias!r}.",
            fix="Give the table and the source different aliases.",
        )
    table = snapshot.schema
    evolved = evolved_schema(table, schema, clauses) if request.merge_schema else table
    change = plan_metadata_update(
        snapshot,
        data_schema=evolved,
        definition=TableDefinition(merge_schema=request.merge_schema),
        now_ms=clock.now_ms(),
    )
    require_write_support(
        change.protocol, change.metadata, writer_kind=WriterKind.MERGE, operation="merge into the table"
    )
    values = assignments(
        clauses,
        plan=change.plan,
        source=schema,
        source_alias=alias,
        merge_schema=request.merge_schema,
    )
    rest = RowValues.of(
        change.plan,
        values,
        names,
        records_changes=records_changes(change.protocol, change.metadata),
        now_us=clock.now_ms() * 1000,
    )
    empty = frame.sparkSession.createDataFrame([], to_spark(table)).alias(target_alias)
    require_deterministic(empty, frame.alias(alias), as_column(request.on))
    meaning = SqlSemantics.of(frame.sparkSession)
    facts = match_facts(
        sql_text(request.on),
        target=table,
        source=schema,
        target_alias=target_alias,
        source_alias=alias,
        partition_columns=snapshot.partition_columns,
        meaning=meaning,
    )
    source = fix_source(
        frame, schema=schema, alias=alias, facts=facts, names=names, checks=request.source_checks
    )
    match_predicate = target_predicate(facts, source.values, source_rows=source.rows, schema=table)
    read_predicate = match_predicate
    if clauses.not_matched_by_source:
        changed = by_source_predicate(
            clauses.not_matched_by_source, target=table, target_alias=target_alias, meaning=meaning
        )
        read_predicate = disjunction([match_predicate, changed])
    return _Plan(
        source_alias=alias,
        change=change,
        values=values,
        rest=rest,
        match_predicate=match_predicate,
        read_predicate=read_predicate,
        source=source,
        uses_vectors=uses_deletion_vectors(snapshot),
    )


def _deleted_rows(matches: Matches, touched: TargetFiles, names: Names) -> FoundRows:
    """The rows that the merge updates or deletes, for deletion vectors."""
    try:
        return matches.changed_rows(touched, names)
    except Exception as error:
        raise as_delta_error(error, doing="collecting the matches") from error


def _resolver(
    statement: RowStatement, predicate: Expression, clauses: MergeClauses, matches: Matches
) -> DeletionVectorMerger | None:
    """The resolver for winners that delete rows of the same files.

    A source row that matched a row without changing it was not inserted. If a winner deleted the matched row,
    the source row would have to be inserted, so no conflict of such a merge is settled. The same holds for a
    row that both delete: `may_insert`.
    """
    may_insert = bool(clauses.not_matched)
    return statement.resolver(
        None if predicate == TRUE else predicate,
        may_insert=may_insert,
        settles=not may_insert or matches.acted == matches.number,
    )


def _stage(
    frame: DataFrame,
    reach: TableReach,
    request: MergeRequest,
    plan: _Plan,
    touched: TargetFiles,
    matches: Matches,
    names: Names,
    progress: ProgressReporter,
) -> StagedFiles:
    """Stage the new rows of the touched files and the inserted rows."""
    change, rest = plan.change, plan.rest
    token = ViolationToken()
    checks = [
        *rest.checks(),
        *table_checks(change.schema, change.configuration),
        *partition_name_checks(change.schema, change.partition_columns, rest.plan.mapping),
    ]
    # Where no file is rewritten, the added files alone describe the changes.
    rest = replace(rest, records_changes=rest.records_changes and len(touched) > 0)
    caster = Caster(token, first=len(checks))
    try:
        work = MergeRows(
            spark=frame.sparkSession,
            source=plan.source,
            touched=touched,
            matches=matches,
            clauses=request.clauses,
            values=plan.values,
            rest=rest,
            target_alias=request.target_alias,
            names=names,
            caster=caster,
        )
        rows = changed_rows(work) if plan.uses_vectors else merged_rows(work)
        if rows is not None:
            rows = with_checks(rows, checks, token, show_rows=request.show_rows, shown=change.schema.names)
    except DeltaError:
        raise
    except Exception as error:
        raise as_delta_error(error, doing="resolving the clauses of the merge") from error
    extra = ExtraColumns(
        hidden=rest.tracking is not None,
        kind=names.kind if rest.records_changes else None,
        before=names.before if rest.records_changes else None,
    )
    staged = stage_rows(
        rows,
        reach,
        change.plan,
        extra=extra,
        checks=[*checks, *caster.checks],
        token=token,
        compression=request.compression,
        progress=progress,
    )
    return replace(staged, high_water_marks=rest.identity.high_water_marks)


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _result(
    request: MergeRequest, version_from: int, version_to: int, *, was_applied: bool = False
) -> JobResult:
    return JobResult(
        job_id=request.job_id,
        kind=KIND,
        status=JobStatus.SUCCEEDED,
        version_from=version_from,
        version_to=version_to,
        commits=() if was_applied else (version_to,),
        already_applied=was_applied,
    )
