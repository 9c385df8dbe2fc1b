"""Running a `sql` job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from delta_core import DeltaTable
from delta_core.jobs import JobContext, JobResult, JobSpec
from delta_core.jobs.params.sql import KIND, TARGET, parse_sql
from delta_core.snapshot.snapshot import Snapshot
from spark_jobs.session import get_session
from spark_jobs.spark_executor import SparkExecutor
from spark_jobs.sql_statements.sql import sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST_ROWS: Final = 100
"""The maximum number of rows of a statement in the result of its job."""


def run_sql(spec: JobSpec, context: JobContext) -> JobResult:
    """Run one statement. `target` is the job's table in it.

    Returns:
        The result. `output` has the `columns` and the first rows of the statement as strings, and whether
        there are more.

    Raises:
        InvalidJobSpecError: the parameters are not valid.
        PathEscapeError: the statement names a table that the job may not use.
        DeltaError: see `spark_jobs.sql`.
    """
    params = parse_sql(spec.params)
    before = context.snapshot
    commit = context.commit_properties(spec)
    run = context.run.with_commit(commit)
    if before is not None and run.already_applied(before) is not None:
        return context.succeeded(spec, already_applied=True)
    frame = sql(
        _session(context),
        params.statement,
        dict(params.parameters),
        storage_options=context.storage_options or None,
        allowed_roots=params.allowed_root_uris,
        engine_io=params.engine_io,
        table_roots=(spec.table.uri, *params.tables.values(), *params.allowed_root_uris),
        tables={TARGET: spec.table.uri, **params.tables},
        commit_properties=commit,
    )
    output = _output(frame)
    version_from = None if before is None else before.version
    store = context.require_store()
    after = Snapshot.load(store, clock=context.clock).version if Snapshot.exists(store) else None
    return context.succeeded(
        spec,
        version_from=version_from,
        version_to=after,
        commits=_commits(spec, context, version_from, after),
        output=output,
    )


def _commits(
    spec: JobSpec, context: JobContext, version_from: int | None, version_to: int | None
) -> tuple[int, ...]:
    """The versions that this job has committed, by the provenance in them."""
    own = context.commit_properties(spec).user_metadata
    first = 0 if version_from is None else version_from + 1
    if own is None or version_to is None or version_to < first:
        return ()
    table = DeltaTable(spec.table.uri, storage_options=context.storage_options or None)
    entries = table.history(version_to - first + 1)
    return tuple(
        sorted(
            entry.version
            for entry in entries
            if entry.version >= first and entry.commit_info.user_metadata == own
        )
    )


def _output(frame: DataFrame) -> dict[str, Any]:
    """The first rows of a result. A query runs here."""
    if not frame.columns:
        return {"columns": [], "rows": [], "has_more": False}
    rows = frame.limit(MOST_ROWS + 1).collect()
    return {
        "columns": list(frame.columns),
        "rows": [[None if value is None else str(value) for value in row] for row in rows[:MOST_ROWS]],
        "has_more": len(rows) > MOST_ROWS,
    }


def _session(context: JobContext) -> SparkSession:
    if isinstance(context.executor, SparkExecutor):
        return context.executor.spark
    return get_session(app_name=f"deltaward {KIND}")
