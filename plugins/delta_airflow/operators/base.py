"""The base class of the operators. It runs the JobSpec of the rendered arguments, and returns a summary."""

from __future__ import annotations

import uuid
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import Asset
from airflow.sdk.exceptions import AirflowFailException

from delta_airflow.assets import same_table
from delta_airflow.hooks.deltaward import DeltawardHook
from delta_airflow.hooks.settings import RunnerName
from delta_airflow.hooks.spark_connection import chosen_runner
from delta_airflow.links import DeltaJobResultLink, DeltaTableEventsLink
from delta_airflow.operators.clearing import differing_retries, reapplies_when_cleared
from delta_airflow.operators.job_summary import JobSummary
from delta_airflow.operators.provenance import TaskIdentity, idempotency_key, user_metadata
from delta_airflow.operators.rendered import (
    as_optional_float,
    as_optional_int,
    as_optional_string,
    as_runner,
    as_string,
)
from delta_airflow.operators.spark_base import SparkOperator
from delta_airflow.operators.summary import applied_note, summarize
from delta_airflow.runners.base import Runner
from delta_airflow.runners.run_directory import RunDirectory
from delta_core.clock import SYSTEM_CLOCK
from delta_core.errors import ConfigurationError, DeltaError
from delta_core.execution.progress import ProgressEvent
from delta_core.jobs import JobResult, JobSpec, TableRef

if TYPE_CHECKING:
    from airflow.sdk import Context


class DeltaTableOperator(SparkOperator):
    """Runs one job on one table. Subclasses define the job kind and its parameters.

    If a task is retried, or a driver outlives its task, the work is still applied only once. A cleared task
    applies its work again if the work replaces data: see `operators.provenance.idempotency_key`. A retryable
    error is raised unchanged, so that Airflow retries the task. Any other error becomes AirflowFailException.

    Args:
        table_uri: absolute path or URI of the table (templated).
        table_id: the `metaData.id` that the table must have; None accepts any (templated).
        conn_id: connection of type `deltaward` (templated).
        runner: `inline`, `spark_submit` or `spark_connect`. None uses the type of `spark_conn_id`, or else
            the default of the job kind, or else the connection's runner (templated).
        work_name: a name for the work. It replaces the task instance in the idempotency key, so that the
            work is applied once across runs (templated).
        work_version: the number of this delivery of the work. If the table has recorded this number or a
            higher one for the name, the job applies nothing. This fences off repeated and outdated
            deliveries (templated).
        on_clear: the behaviour of a cleared task whose work the table already has: `reapply` applies it
            again, `keep` does nothing. None reapplies work that replaces data (an overwrite, a merge,
            maintenance) and keeps work that adds data (templated).
        lease: name of a lease that the job holds on the table while it runs. Only one job at a time can hold
            a lease. None takes no lease (templated).
        approver: the person who approved the work, for the provenance of the commit (templated).
        deadline_seconds: the time after which the job is stopped; None uses the connection's limit
            (templated).
        kwargs: those of `SparkOperator` and of Airflow's BaseOperator.
    """

    template_fields: Sequence[str] = (
        "table_uri",
        "table_id",
        "conn_id",
        "runner",
        "work_name",
        "work_version",
        "on_clear",
        "lease",
        "approver",
        "deadline_seconds",
        *SparkOperator.template_fields,
    )
    operator_extra_links = (DeltaJobResultLink(), DeltaTableEventsLink())
    ui_color = "#d5ece4"

    default_runner: ClassVar[RunnerName | None] = None
    """The runner of the job kind if the operator chooses none; None: the connection decides."""

    def __init__(
        self,
        *,
        table_uri: str,
        table_id: str | None = None,
        conn_id: str = DeltawardHook.default_conn_name,
        runner: str | None = None,
        work_name: str | None = None,
        work_version: int | str = 0,
        on_clear: str | None = None,
        lease: str | None = None,
        approver: str | None = None,
        deadline_seconds: float | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.table_uri = table_uri
        self.table_id = table_id
        self.conn_id = conn_id
        self.runner = runner
        self.work_name = work_name
        self.work_version = work_version
        self.on_clear = on_clear
        self.lease = lease
        self.approver = approver
        self.deadline_seconds = deadline_seconds
        self._running: Runner | None = None
        self._killed = False

    @abstractmethod
    def job_kind(self) -> str:
        """The job kind, from the rendered arguments."""

    @abstractmethod
    def job_params(self) -> Mapping[str, Any]:
        """The job's parameters, from the rendered arguments.

        Raises:
            ConfigurationError: an argument is not valid.
        """

    def commits(self) -> bool:
        """False when the job cannot commit with these arguments and so needs no idempotency key."""
        return True

    def execute(self, context: Context) -> JobSummary:
        """Run the job.

        Returns:
            A summary of the result. The complete result is at its `result_uri`.

        Raises:
            AirflowFailException: the job failed with a permanent error.
            DeltaError: the job failed with a retryable error.
        """
        try:
            summary = self._run(context)
        except DeltaError as error:
            if error.retryable:
                raise
            raise AirflowFailException(f"{error.code}: {error}") from error
        return summary

    def on_kill(self) -> None:
        """Stop the job. Airflow calls this when the task is killed or times out."""
        self._killed = True
        if self._running is not None:
            self.log.warning("Stopping the job")
            self._running.cancel()

    def build_spec(self, task: TaskIdentity, *, hook: DeltawardHook) -> JobSpec:
        """The JobSpec for the rendered arguments, without its result_uri. Contains no secret.

        Raises:
            ConfigurationError: an argument or the connection is not valid.
        """
        table = TableRef(
            uri=hook.table_uri(as_string("table_uri", self.table_uri)),
            id=as_optional_string("table_id", self.table_id),
        )
        name = as_optional_string("work_name", self.work_name)
        version = as_optional_int("work_version", self.work_version, minimum=0)
        if version is None:
            # Reading it as 0 would silently fence off every delivery except the first.
            raise ConfigurationError(
                "The work_version is empty after rendering.",
                fix="Give a whole number, or leave work_version out.",
            )
        if version and name is None:
            raise ConfigurationError(
                "A work_version is given without a work_name.",
                cause="Without a name, the work belongs to one task instance and has only one delivery.",
                fix="Set work_name.",
            )
        kind, params = self.job_kind(), self.job_params()
        reapplies = reapplies_when_cleared(self.on_clear, kind, params)
        hook.require_allowed(params)
        seconds = as_optional_float("deadline_seconds", self.deadline_seconds, minimum=1)
        seconds = hook.settings.deadline_seconds if seconds is None else seconds
        return JobSpec(
            kind=kind,
            table=table,
            params=params,
            idempotency=idempotency_key(task, table, name=name, version=version, reapplies=reapplies)
            if self.commits()
            else None,
            lease=as_optional_string("lease", self.lease),
            deadline_ms=None if seconds is None else SYSTEM_CLOCK.now_ms() + int(seconds * 1000),
            storage_ref=f"airflow:{hook.conn_id}",
            trace_id=f"{task.dag_id}/{task.run_id}/{task.task_id}/{task.map_index}/{task.try_number}",
            user_metadata=user_metadata(task, approver=as_optional_string("approver", self.approver)),
            # Unique per try: two drivers of one task must never write under the same job prefix.
            job_id=uuid.uuid4().hex,
        )

    def _run(self, context: Context) -> JobSummary:
        spark = self.spark_arguments()
        hook = DeltawardHook(as_string("conn_id", self.conn_id), spark=spark)
        task = TaskIdentity.of(context)
        if warning := differing_retries(
            try_number=task.try_number,
            max_tries=getattr(context["ti"], "max_tries", None),
            retries=self.retries,
        ):
            self.log.warning("%s", warning)
        spec = self.build_spec(task, hook=hook)
        chosen = chosen_runner(
            spark,
            named=as_runner("runner", self.runner),
            otherwise=self.default_runner or hook.settings.runner,
        )
        directory = hook.run_directory(
            dag_id=task.dag_id,
            run_id=task.run_id,
            task_id=task.task_id,
            map_index=task.map_index,
            try_number=task.try_number,
            job_id=spec.job_id,
        )
        try:
            spec = replace(spec, result_uri=directory.result_uri)
            return self._run_in(directory, spec, context, hook=hook, chosen=chosen)
        finally:
            directory.discard()

    def _run_in(
        self,
        directory: RunDirectory,
        spec: JobSpec,
        context: Context,
        *,
        hook: DeltawardHook,
        chosen: RunnerName,
    ) -> JobSummary:
        runner = hook.get_runner(chosen, directory=directory)
        self._running = runner
        if self._killed:
            runner.cancel()
        self.log.info(
            "Job %s (%s) on %s; files in %s", spec.job_id, spec.kind, spec.table.uri, directory.place
        )
        result = runner.run(spec, on_event=self._log_event)
        self._log_result(result)
        summary = summarize(result, result_uri=directory.result_uri)
        self._annotate_outlets(context, result)
        return summary

    def _log_event(self, event: ProgressEvent) -> None:
        if event.total is None:
            self.log.info("%s", event.name)
        else:
            self.log.info("%s %s/%s", event.name, event.done, event.total)

    def _log_result(self, result: JobResult) -> None:
        for warning in result.warnings:
            self.log.warning("%s", warning)
        if note := applied_note(result):
            self.log.info("The work was %s", note)
        self.log.info("Version %s -> %s", result.version_from, result.version_to)

    def _annotate_outlets(self, context: Context, result: JobResult) -> None:
        """Record the resulting version in the event of the table's asset, for the asset's consumers."""
        for outlet in self.outlets or []:
            if isinstance(outlet, Asset) and same_table(outlet.uri, self.table_uri):
                context["outlet_events"][outlet].extra = {
                    "kind": result.kind,
                    "version_from": result.version_from,
                    "version": result.version_to,
                    "commits": list(result.commits),
                }
