"""Runs the jobs of a `fleet_dag`: those of tables with `engine: spark` by the connection's Spark runner."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from delta_airflow.hooks.deltaward import DeltawardHook
from delta_airflow.hooks.settings import RunnerName
from delta_airflow.operators.provenance import TaskIdentity
from delta_airflow.runners.run_directory import RunDirectory
from delta_core.errors import ConfigurationError, DeltaError
from delta_core.execution.progress import ProgressEvent
from delta_core.jobs import JobContext, JobResult, JobSpec, run_job

SPARK: Final = "spark"
"""The engine of a policy whose rewrites run on Spark."""

_LOGGER = logging.getLogger(__name__)


def job_runner(hook: DeltawardHook, task: TaskIdentity) -> Callable[[JobSpec, JobContext], JobResult]:
    """A function that runs a job: one for Spark on the connection's runner, any other in this task.

    The function returns a failed result where the connection has no Spark runner.

    Args:
        hook: the connection.
        task: the task instance, which names the directory of each run.
    """

    def run(spec: JobSpec, context: JobContext) -> JobResult:
        if spec.engine != SPARK:
            return run_job(spec, context)
        try:
            return _on_spark(spec, hook, task)
        except DeltaError as error:
            return context.failed(spec, error)

    return run


def _on_spark(spec: JobSpec, hook: DeltawardHook, task: TaskIdentity) -> JobResult:
    if hook.settings.runner is RunnerName.INLINE:
        raise ConfigurationError(
            f"The policy of the table {spec.table.uri} has engine: spark, which the connection "
            f"{hook.conn_id} does not have.",
            cause="The connection's runner is inline.",
            fix="Set its runner to spark_submit or spark_connect, or give the table another connection.",
        )
    spec = replace(spec, job_id=uuid.uuid4().hex, storage_ref=f"airflow:{hook.conn_id}")
    directory = hook.run_directory(
        dag_id=task.dag_id,
        run_id=task.run_id,
        task_id=task.task_id,
        map_index=task.map_index,
        try_number=task.try_number,
        job_id=spec.job_id,
    )
    try:
        return _run_in(directory, replace(spec, result_uri=directory.result_uri), hook)
    finally:
        directory.discard()


def _run_in(directory: RunDirectory, spec: JobSpec, hook: DeltawardHook) -> JobResult:
    runner = hook.get_runner(directory=directory)
    _LOGGER.info("Job %s (%s) on %s; files in %s", spec.job_id, spec.kind, spec.table.uri, directory.place)
    try:
        return runner.run(spec, on_event=_log_event)
    except BaseException:
        runner.cancel()
        raise


def _log_event(event: ProgressEvent) -> None:
    _LOGGER.info("%s %s/%s", event.name, event.done, event.total)
