"""The job kinds that this package adds.

Optimize, vacuum, checkpoint and the other kinds belong to delta_core. They run on Spark when the job's
executor is a `SparkExecutor`.
"""

from __future__ import annotations

from delta_core.jobs import JobContext, JobKind, JobRegistry, JobResult, JobSpec
from delta_core.jobs.params import delete, load, merge, sql, update
from delta_core.on_demand import imported
from spark_jobs.dml.job import run_merge
from spark_jobs.dml.statement_jobs import run_delete, run_update
from spark_jobs.loading.load import run_load


def _run_sql(spec: JobSpec, context: JobContext) -> JobResult:
    """Run a `sql` job. Its package is loaded here, because it imports pyspark."""
    result: JobResult = imported("spark_jobs.sql_statements.job").run_sql(spec, context)
    return result


LOAD = JobKind(
    name=load.KIND,
    run=run_load,
    help="Load files into a table, validated by a contract.",
    params_schema=load.LOAD_SCHEMA,
    needs_table=False,
)

MERGE = JobKind(
    name=merge.KIND,
    run=run_merge,
    help="Merge the rows of a source into a table: update, delete and insert rows.",
    params_schema=merge.MERGE_SCHEMA,
)

DELETE = JobKind(
    name=delete.KIND,
    run=run_delete,
    help="Delete the rows of a table that meet a condition.",
    params_schema=delete.DELETE_SCHEMA,
)

UPDATE = JobKind(
    name=update.KIND,
    run=run_update,
    help="Set columns of the rows of a table that meet a condition.",
    params_schema=update.UPDATE_SCHEMA,
)

SQL = JobKind(
    name=sql.KIND,
    run=_run_sql,
    help="Run one SQL statement on tables.",
    params_schema=sql.SQL_SCHEMA,
    needs_table=False,
)


def register(registry: JobRegistry) -> None:
    """Register the kinds of this package. The entry-point group `deltaward.jobs` calls this function."""
    registry.register(LOAD)
    registry.register(MERGE)
    registry.register(DELETE)
    registry.register(UPDATE)
    registry.register(SQL)
