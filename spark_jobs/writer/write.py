"""`spark_jobs.write`: write the rows of a DataFrame as one commit."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from delta_core.actions import SetTransaction
from delta_core.arguments import whole_number
from delta_core.boundary import public
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.data.row_plan import RowPlan
from delta_core.data.steps.identity import IdentityStep
from delta_core.dml.attempts import Attempts
from delta_core.dml.commit_files import CommitMode, commit_new_files, table_exists
from delta_core.dml.metadata_update import MetadataUpdate, TableDefinition, plan_metadata_update
from delta_core.dml.partition_overwrite import require_partitioned
from delta_core.errors import (
    CommitStateUnknownError,
    ConfigurationError,
    DeltaError,
    MetadataChangedError,
    TableNotFoundError,
)
from delta_core.expressions.ast import Expression
from delta_core.expressions.parse import parse_predicate
from delta_core.expressions.typing import resolve
from delta_core.jobs import JobMetrics, JobResult, JobStatus
from delta_core.jobs.params.engine_io import EngineIO
from delta_core.log.outer_tables import require_separate_directory
from delta_core.run import DEFAULT_RUN, Run
from delta_core.schema.types import StructType
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage import LogStore, open_store
from delta_core.table_features.feature import WriterKind
from delta_core.table_features.identity import differ_only_in_high_water_marks
from delta_core.table_features.support import require_write_support
from delta_core.transaction import NULL_OBSERVER, CommitProperties, Committed, TransactionObserver
from spark_jobs.engine_io import TableReach, engine_io_of, table_reach
from spark_jobs.expressions.checks import (
    Check,
    check_of,
    named_checks,
    not_null_checks,
    partition_name_checks,
    table_checks,
    with_checks,
)
from spark_jobs.expressions.new_rows import NewRows, given_checks
from spark_jobs.failures import ViolationToken, as_delta_error
from spark_jobs.schema import from_spark, require_fit
from spark_jobs.writer.commit_gate import OPEN_GATE, CommitGate, RowCollector
from spark_jobs.writer.commits import record_commit
from spark_jobs.writer.data_writer import discard_prefix, remove_empty_directories
from spark_jobs.writer.staged_files import StagedFiles
from spark_jobs.writer.staging import stage_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

JOB_KIND = "write"


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest:
    """The parameters of a write; see `spark_jobs.write`.

    Attributes:
        reads_table: whether the rows depend on the table's rows, so that every concurrent commit is a
            conflict.
        engine_io, storage_options: see `table_reach`.
    """

    mode: CommitMode
    definition: TableDefinition
    replace_where: str | None = None
    schema: StructType | None = None
    constraints: tuple[tuple[str, str], ...] = ()
    compression: str = "snappy"
    max_records_per_file: int | None = None
    optimized_write: bool | None = None
    job_id: str = ""
    kind: str = JOB_KIND
    show_rows: bool = True
    reads_table: bool = False
    engine_io: EngineIO = EngineIO.AUTO
    storage_options: Mapping[str, str] | None = field(default=None, hash=False, repr=False)


@public
def write(
    df: DataFrame,
    uri: str,
    *,
    mode: str,
    partition_by: Sequence[str] | None = None,
    cluster_by: Sequence[str | Sequence[str]] | None = None,
    replace_where: str | None = None,
    merge_schema: bool = False,
    overwrite_schema: bool = False,
    txn: tuple[str, int] | SetTransaction | None = None,
    user_metadata: str | None = None,
    configuration: Mapping[str, str] | None = None,
    schema: StructType | None = None,
    constraints: Iterable[tuple[str, str]] = (),
    compression: str = "snappy",
    partition_overwrite_mode: str = "static",
    max_records_per_file: int | None = None,
    optimized_write: bool | None = None,
    storage_options: Mapping[str, str] | None = None,
    engine_io: str = EngineIO.AUTO,
    job_id: str | None = None,
    observer: TransactionObserver = NULL_OBSERVER,
    clock: Clock = SYSTEM_CLOCK,
) -> JobResult:
    """Write a DataFrame's rows to a table as one commit. Creates the table when it does not exist.

    An extra column, a column of another type, and another partitioning than the table's are refused before a
    file is written. A missing column has its default, its generated values or its identity values, or else is
    null. Rows that violate a constraint fail the write while the files are written; then the files are
    deleted.

    Args:
        df: the rows.
        uri: the table's URI or path.
        mode: `append`, `overwrite`, or `error` (the table must not exist).
        partition_by: the partition columns of a new table, or with `overwrite_schema`. Otherwise they must be
            those of the table.
        cluster_by: up to four clustering columns of a new table, each given by a name or path. For an
            existing table they must match.
        replace_where: with `overwrite`: replace the rows for which this predicate is true. Every row of `df`
            must satisfy it.
        merge_schema: add columns that the table does not have.
        overwrite_schema: with `overwrite`: replace the table's schema with the data's.
        txn: (application id, version). When the table already has this `txn`, nothing is written and the
            result has `already_applied`.
        user_metadata: the commit's `userMetadata`.
        configuration: table properties of a new table.
        schema: the required schema, when it has more than the DataFrame's: column order, NOT NULL. It becomes
            the schema of a new table.
        constraints: (name, SQL predicate) pairs that every row must pass, in addition to the table's
            constraints; null passes.
        compression: the compression codec of the Parquet files.
        partition_overwrite_mode: with mode `overwrite`, `dynamic` replaces the rows of exactly the partitions
            that have new rows. No rows replace nothing. The table must be partitioned.
        max_records_per_file: the maximum number of rows of a data file; None for no maximum.
        optimized_write: exchange the rows before they are written, so that fewer and larger files arise. None
            is the table property `delta.autoOptimize.optimizeWrite`.
        storage_options: options of the table's store. Secrets among them are used in this process only.
        engine_io: how Spark writes the files: `native`, `arrow`, or `auto`, which is native where Spark has
            a connector for the store. See docs/spark.md.
        job_id: the job id of the result; None generates one.

    Returns:
        The result of a successful write; `output["engine_io"]` is `native` or `arrow`.

    Raises:
        SchemaMismatchError, ConstraintViolationError, ExpressionError: nothing was committed, and no written
            file remains.
        NestedTableError: the new table would be in a partition directory, or in the log, of another table.
        ConcurrentModificationError: another writer won, and no written file remains.
        CommitStateUnknownError: the written files are kept, because a commit may refer to them.
        JobFailedError: Spark failed.
    """
    request = WriteRequest(
        mode=commit_mode(mode, replace_where, partition_overwrite_mode),
        definition=TableDefinition(
            partition_by=partition_by,
            cluster_by=cluster_by,
            configuration=configuration,
            merge_schema=merge_schema,
            overwrite_schema=overwrite_schema,
        ),
        replace_where=replace_where,
        schema=schema,
        constraints=tuple(constraints),
        compression=compression,
        max_records_per_file=_most_records(max_records_per_file),
        optimized_write=optimized_write,
        job_id=job_id or str(uuid.uuid4()),
        engine_io=engine_io_of(engine_io),
        storage_options=storage_options,
    )
    run = Run(
        clock=clock,
        observer=observer,
        commit=CommitProperties(user_metadata=user_metadata, txn=_transaction(txn, clock)),
    )
    store = open_store(uri, storage_options=storage_options, clock=clock)
    return write_to(df, store, _snapshot(store, clock), request, run=run)


def write_to(
    df: DataFrame,
    store: LogStore,
    snapshot: Snapshot | None,
    request: WriteRequest,
    *,
    before_commit: Callable[[], None] | None = None,
    gate: CommitGate = OPEN_GATE,
    run: Run = DEFAULT_RUN,
) -> JobResult:
    """`write` with a loaded snapshot and progress events.

    `before_commit` may raise. Then nothing is committed and the written files are deleted. The `gate`
    validates the staged files and decides which rows are committed.
    """
    started = run.clock.monotonic_seconds()
    verified_at_ms = run.now_ms()
    version_from = snapshot.version if snapshot is not None else None
    if snapshot is not None:
        if run.already_applied(snapshot) is not None:
            return _result(request, version_from, version_from, was_applied=True)
        if request.mode is CommitMode.CREATE:
            raise table_exists(store.uri)
        snapshot.require_writable(writer_kind=WriterKind.SPARK_ROWS)
    else:
        require_separate_directory(store)
    data_schema = _data_schema(df, request)
    reach = table_reach(
        df.sparkSession, store, engine_io=request.engine_io, storage_options=request.storage_options
    )
    rows = NewRows(df, given=df.columns)
    attempts = Attempts(run=run)
    for _ in attempts:
        change = plan_metadata_update(
            snapshot, data_schema=data_schema, definition=request.definition, now_ms=run.now_ms()
        )
        _require_support(change)
        if request.mode is CommitMode.REPLACE_PARTITIONS:
            require_partitioned(change.partition_columns)
        try:
            committed, written = _write_once(
                rows,
                reach,
                snapshot,
                change,
                request,
                data_schema=data_schema,
                verified_at_ms=verified_at_ms,
                before_commit=before_commit,
                gate=gate,
                run=attempts.next_run() if change.plan.identity else run,
            )
        except MetadataChangedError as error:
            # Another writer has taken the same identity values. The rows are kept, and get other values.
            # Rows that depend on the table's rows must be computed again.
            depends = request.reads_table or gate is not OPEN_GATE
            if snapshot is None or depends or not rows.are_kept:
                raise
            newer = snapshot.refresh()
            if not differ_only_in_high_water_marks(snapshot.schema, newer.schema):
                raise
            if attempts.is_last:
                raise attempts.given_up(error) from error
            snapshot, verified_at_ms = newer, newer.verified_at_ms
            if run.already_applied(snapshot) is not None:
                return _result(request, version_from, snapshot.version, was_applied=True)
            continue
        if committed is None:
            return _result(request, version_from, version_from, was_applied=True)
        return _committed_result(
            request, version_from, written, committed, run.clock.monotonic_seconds() - started
        )
    raise AssertionError("the last attempt returns or raises")


def _write_once(
    rows: NewRows,
    reach: TableReach,
    snapshot: Snapshot | None,
    change: MetadataUpdate,
    request: WriteRequest,
    *,
    data_schema: StructType,
    verified_at_ms: int,
    before_commit: Callable[[], None] | None,
    gate: CommitGate,
    run: Run,
) -> tuple[Committed | None, StagedFiles]:
    """Stage the rows and commit them. There is no commit when another try has committed the rows."""
    predicate = predicate_of(request, change.schema)
    gate.prepare(change.schema)
    rejected = gate.rejected
    try:
        staged = _stage(rows, reach, change, request, predicate, rejected=rejected, run=run)
        written = _audit(gate, staged)
    finally:
        if rejected is not None:
            rejected.release()
    if written is None:
        discard_prefix(reach.store, staged.prefix)
        return None, staged
    try:
        if before_commit is not None:
            before_commit()
        gate.require_undisturbed()
    except BaseException:
        discard_prefix(reach.store, staged.prefix)
        gate.retract()
        raise
    run = run.with_commit(gate.with_outcome(run.commit))
    run.progress.emit("commit.before", files=len(written.adds), rows=written.rows)
    try:
        committed = commit_new_files(
            snapshot,
            reach.store,
            mode=request.mode,
            adds=written.adds,
            schema=data_schema,
            predicate=predicate,
            definition=request.definition,
            reads_table=request.reads_table,
            writer_kind=WriterKind.SPARK_ROWS,
            verified_at_ms=verified_at_ms,
            change=change.with_high_water_marks_of(written.high_water_marks),
            run=run,
        )
    except CommitStateUnknownError:
        raise
    except DeltaError:
        gate.retract()
        raise
    finally:
        # The commit deletes the written files if and only if no version can refer to them.
        remove_empty_directories(reach.store, written.prefix)
    run.progress.emit("commit.after", version=committed.version)
    return committed, written


def _require_support(change: MetadataUpdate) -> None:
    """Refuse before anything is written a definition that Spark's rows cannot be written for."""
    require_write_support(
        change.protocol,
        change.metadata,
        writer_kind=WriterKind.SPARK_ROWS,
        has_deletion_vectors=False,
        has_v2_checkpoint=False,
    )


def _audit(gate: CommitGate, staged: StagedFiles) -> StagedFiles | None:
    """The files that the gate accepts; None when another try has already committed the rows."""
    try:
        return gate.audit(staged)
    except BaseException:
        discard_prefix(staged.store, staged.prefix)
        gate.retract()
        raise


def write_checks(change: MetadataUpdate, request: WriteRequest, predicate: Expression | None) -> list[Check]:
    """All checks of each row: of the table, of the requested schema and constraints, and of `replace_where`.

    Raises:
        ExpressionError: a constraint cannot be parsed or does not fit the schema.
    """
    checks = [
        *table_checks(change.schema, change.configuration),
        *(not_null_checks(request.schema) if request.schema is not None else ()),
        *named_checks(request.constraints, change.schema),
        *partition_name_checks(change.schema, change.partition_columns, change.plan.mapping),
    ]
    if predicate is not None:
        checks.append(
            check_of("replaceWhere", predicate, change.schema, text=request.replace_where, null_passes=False)
        )
    return checks


def _stage(
    rows: NewRows,
    reach: TableReach,
    change: MetadataUpdate,
    request: WriteRequest,
    predicate: Expression | None,
    *,
    rejected: RowCollector | None,
    run: Run,
) -> StagedFiles:
    plan = RowPlan.of(change.plan, given=rows.given, now_us=run.now_ms() * 1000)
    checks = [*given_checks(plan), *write_checks(change, request, predicate)]
    token = ViolationToken()
    step = IdentityStep(change.plan)
    try:
        frame = rows.complete(plan, step)
        if rejected is None:
            frame = with_checks(frame, checks, token, show_rows=request.show_rows)
        else:
            frame = rejected.split(frame, checks)
    except Exception as error:
        raise as_delta_error(error, doing="resolving the columns") from error
    staged = stage_rows(
        frame,
        reach,
        change.plan,
        checks=checks,
        token=token,
        compression=request.compression,
        max_records_per_file=request.max_records_per_file,
        optimized_write=request.optimized_write,
        progress=run.progress,
    )
    if rejected is not None:
        rejected.staged(staged.rows)
    return replace(staged, high_water_marks=step.high_water_marks)


def _data_schema(df: DataFrame, request: WriteRequest) -> StructType:
    """The schema of the written rows: the requested schema, or else the data's."""
    found = from_spark(df.schema)
    if request.schema is None:
        return found
    require_fit(found, request.schema)
    return request.schema


def predicate_of(request: WriteRequest, schema: StructType) -> Expression | None:
    """The predicate for the rows that the request replaces; None without `replace_where`.

    Raises:
        ExpressionError: the predicate cannot be parsed or does not fit the schema.
    """
    predicate = request.replace_where
    return None if predicate is None else resolve(parse_predicate(predicate, schema), schema)


def _snapshot(store: LogStore, clock: Clock) -> Snapshot | None:
    try:
        return Snapshot.load(store, clock=clock)
    except TableNotFoundError:
        return None


def commit_mode(mode: str, replace_where: str | None, partition_overwrite_mode: str) -> CommitMode:
    """The commit's mode for the arguments of `write`, which a load has too.

    Raises:
        ConfigurationError: an argument has an unknown value, or two arguments exclude each other.
    """
    if mode not in ("append", "overwrite", "error"):
        raise ConfigurationError(
            f"The mode {mode!r} does not exist.", fix="Choose 'append', 'overwrite' or 'error'."
        )
    if partition_overwrite_mode not in ("static", "dynamic"):
        raise ConfigurationError(
            f"The partition_overwrite_mode {partition_overwrite_mode!r} does not exist.",
            fix="Choose 'static' or 'dynamic'.",
        )
    if partition_overwrite_mode == "dynamic":
        if mode != "overwrite" or replace_where is not None:
            raise ConfigurationError(
                "partition_overwrite_mode='dynamic' needs mode='overwrite' without replace_where.",
                fix="Use mode='overwrite' alone, or leave out partition_overwrite_mode.",
            )
        return CommitMode.REPLACE_PARTITIONS
    if replace_where is None:
        return CommitMode.CREATE if mode == "error" else CommitMode(mode)
    if mode != "overwrite":
        raise ConfigurationError(
            f"replace_where cannot be combined with mode {mode!r}.", fix="Use mode='overwrite'."
        )
    return CommitMode.REPLACE_WHERE


def _most_records(value: int | None) -> int | None:
    fix = "Pass a number of rows such as 1000000."
    number = whole_number(value, what="max_records_per_file", fix=fix)
    if number is not None and number <= 0:
        raise ConfigurationError(f"A data file cannot have at most {number} rows.", fix=fix)
    return number


def _transaction(txn: tuple[str, int] | SetTransaction | None, clock: Clock) -> SetTransaction | None:
    if txn is None or isinstance(txn, SetTransaction):
        return txn
    match txn:
        case (str() as app_id, int() as version) if not isinstance(version, bool):
            pass
        case _:
            raise ConfigurationError(
                f"{txn!r} is not an idempotency key.",
                fix="Pass an application id and an integer, such as txn=('job', 9).",
            )
    return SetTransaction(app_id=app_id, version=version, last_updated_ms=clock.now_ms())


def _committed_result(
    request: WriteRequest,
    version_from: int | None,
    written: StagedFiles,
    committed: Committed,
    wall_seconds: float,
) -> JobResult:
    if committed.already_applied:
        return _result(request, version_from, committed.version, was_applied=True)
    record_commit(written.store.uri, committed.version)
    metrics = committed.operation_metrics
    removed = metrics.get("numRemovedFiles")
    removed_bytes = metrics.get("numRemovedBytes")
    return _result(
        request,
        version_from,
        committed.version,
        metrics=JobMetrics(
            files_added=len(written.adds),
            bytes_added=sum(add.size_bytes for add in written.adds),
            files_removed=int(removed) if removed is not None else 0,
            bytes_removed=int(removed_bytes) if removed_bytes is not None else 0,
            rows=written.rows,
            wall_seconds=round(wall_seconds, 6),
        ),
        output={"engine_io": written.reach.engine_io.value},
    )


def _result(
    request: WriteRequest,
    version_from: int | None,
    version_to: int | None,
    *,
    was_applied: bool = False,
    metrics: JobMetrics | None = None,
    output: Mapping[str, str] | None = None,
) -> JobResult:
    return JobResult(
        job_id=request.job_id,
        kind=request.kind,
        status=JobStatus.SUCCEEDED,
        version_from=version_from,
        version_to=version_to,
        commits=() if was_applied or version_to is None else (version_to,),
        already_applied=was_applied,
        metrics=metrics or JobMetrics(),
        output=output or {},
    )
