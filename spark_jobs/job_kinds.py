"""The job kinds that this package adds.

Optimize, vacuum, checkpoint and the other kinds are delta_core's: they run on Spark when the job's
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
    help="Load Parquet or CSV files into a table under a contract.",
    params_schema=PARAMS_SCHEMA,
    needs_table=False,
)

MERGE = JobKind(
    name=MERGE_KIND,
    run=run_merge,
    help="Update, delete and insert rows of a table by the rows of a source.",
    params_schema=MERGE_SCHEMA,
)


def register(registry: JobRegistry) -> None:
    """Add our kinds; the entry-point group `deltaward.jobs` calls this."""
    registry.register(LOAD)
    registry.register(MERGE)
