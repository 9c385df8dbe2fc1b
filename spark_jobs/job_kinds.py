"""The job kinds that this package adds.

Optimize, vacuum, checkpoint and the other kinds belong to delta_core. They run on Spark when the job's
executor is a `SparkExecutor`.
"""

from __future__ import annotations

from delta_core.jobs.registry import JobKind, JobRegistry
from spark_jobs.dml.job import MERGE_SCHEMA, run_merge
from spark_jobs.dml.merge import KIND as MERGE_KIND
from spark_jobs.loading.load import KIND, run_load
from spark_jobs.loading.params import PARAMS_SCHEMA

LOAD = JobKind(
    name=KIND,
    run=run_load,
    help="Load files into a table, validated by a contract.",
    params_schema=PARAMS_SCHEMA,
    needs_table=False,
)

MERGE = JobKind(
    name=MERGE_KIND,
    run=run_merge,
    help="Merge the rows of a source into a table: update, delete and insert rows.",
    params_schema=MERGE_SCHEMA,
)


def register(registry: JobRegistry) -> None:
    """Register the kinds of this package. The entry-point group `deltaward.jobs` calls this function."""
    registry.register(LOAD)
    registry.register(MERGE)
