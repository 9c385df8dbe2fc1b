"""Runs DAGs, and records the state of a run and of its tasks as plain data."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from demo.airflow_api import AirflowApi
from demo.processes import DemoError, Service
from demo.profiles import YEAR

Report = Callable[[str], None]

RUN_SECONDS = 300.0
"""The time limit of a run. On the slowest tested machine, every run of the demonstration was faster."""

_FINISHED = ("success", "failed")
_ASKING = "awaiting_input"
_MARKS = {
    "success": "✓",
    "failed": "✗",
    "skipped": "-",
    "upstream_failed": "✗",
    "running": "…",
    "awaiting_input": "?",
    "queued": "·",
}
_READING_SECONDS = 12.0
"""The delay before an answer. If the process of the waiting task has not ended when the answer arrives, the
scheduler fails the task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRecord:
    """One task instance; `map_index` is -1 if the task is not mapped."""

    task_id: str
    map_index: int
    state: str | None
    label: str | None = None
    """Airflow's label of a mapped task instance, such as the name of its table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRecord:
    """The question of a task to a person, and its answer.

    Attributes:
        chosen: the chosen option; None without an answer.
        by: the person who answered; None if it was not a person.
    """

    task_id: str
    subject: str
    body: str
    chosen: str | None
    by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One finished run of a DAG."""

    dag_id: str
    run_id: str
    state: str
    tasks: tuple[TaskRecord, ...]
    answers: tuple[AnswerRecord, ...] = ()


class DagRunner(Protocol):
    """Runs DAGs to their end, successful or not."""

    def run(
        self, dag_id: str, *, run_id: str, conf: dict[str, Any], report: Report, answer: str | None = None
    ) -> RunRecord:
        """Run a DAG once, without a logical date.

        Args:
            answer: the option to choose, as the demonstration's user, when a task asks.
        """
        ...

    def backfill(
        self, dag_id: str, *, months: Sequence[int], conf: dict[str, Any], report: Report
    ) -> list[RunRecord]:
        """Run a monthly DAG for consecutive months, one after the other."""
        ...

    def result(self, run: RunRecord, task_id: str, *, map_index: int = -1) -> Any:
        """The return value of a task; None if it returned nothing."""
        ...


class AirflowDagRunner:
    """Runs DAGs through the REST API of a running Airflow."""

    def __init__(self, api: AirflowApi, *, services: Sequence[Service], seconds: float = RUN_SECONDS) -> None:
        self._api = api
        self._services = services
        self._seconds = seconds

    def run(
        self, dag_id: str, *, run_id: str, conf: dict[str, Any], report: Report, answer: str | None = None
    ) -> RunRecord:
        self._api.trigger(dag_id, run_id=run_id, conf=conf)
        deadline = time.monotonic() + self._seconds
        answered: set[str] = set()
        asked: dict[str, float] = {}
        while True:
            record = self._record(dag_id, run_id)
            report(progress_line(record))
            if record.state in _FINISHED:
                return replace(record, answers=self._answers(dag_id, run_id))
            for task in record.tasks:
                if task.state == _ASKING and task.task_id not in answered:
                    if answer is None:
                        raise DemoError(f"{dag_id} {run_id}: {task.task_id} asks an unexpected question.")
                    now = time.monotonic()
                    if now - asked.setdefault(task.task_id, now) < _READING_SECONDS:
                        continue
                    self._api.answer(dag_id, run_id, task.task_id, option=answer)
                    answered.add(task.task_id)
            self._pause(deadline, f"{dag_id} {run_id}")

    def _answers(self, dag_id: str, run_id: str) -> tuple[AnswerRecord, ...]:
        return tuple(
            AnswerRecord(
                task_id=asked["task_instance"]["task_id"],
                subject=asked["subject"],
                body=asked["body"] or "",
                chosen=(asked["chosen_options"] or [None])[0],
                by=(asked["responded_by_user"] or {}).get("name"),
            )
            for asked in self._api.questions(dag_id, run_id)
        )

    def backfill(
        self, dag_id: str, *, months: Sequence[int], conf: dict[str, Any], report: Report
    ) -> list[RunRecord]:
        before = {run["dag_run_id"] for run in self._api.runs(dag_id)}
        # If SQLite refuses a write, Airflow rolls back the runs that it has created, and a scheduler that has
        # started one of them ends. The scheduler starts no runs of a paused DAG.
        self._api.pause(dag_id)
        try:
            backfill = self._api.backfill(
                dag_id, from_date=_first_of(months[0]), to_date=_first_of(months[-1]), conf=conf
            )
        finally:
            self._api.unpause(dag_id)
        deadline = time.monotonic() + self._seconds
        while True:
            # Airflow marks a backfill as completed when all its runs have ended.
            completed = self._api.backfill_completed(backfill)
            runs = [run for run in self._api.runs(dag_id) if run["dag_run_id"] not in before]
            records = [self._record(dag_id, run["dag_run_id"]) for run in reversed(runs) if run["start_date"]]
            if records:
                report(progress_line(records[-1]))
            if completed:
                return records
            self._pause(deadline, f"the backfill of {dag_id}")

    def result(self, run: RunRecord, task_id: str, *, map_index: int = -1) -> Any:
        return self._api.xcom(run.dag_id, run.run_id, task_id, map_index=map_index)

    def _record(self, dag_id: str, run_id: str) -> RunRecord:
        # Read the run before its tasks, because the tasks of a finished run no longer change.
        run = self._api.run(dag_id, run_id)
        tasks = [
            TaskRecord(
                task_id=task["task_id"],
                map_index=task["map_index"],
                state=task["state"],
                label=task["rendered_map_index"],
            )
            for task in self._api.task_instances(dag_id, run_id)
        ]
        return RunRecord(dag_id=dag_id, run_id=run_id, state=run["state"], tasks=tuple(tasks))

    def _pause(self, deadline: float, what: str) -> None:
        for service in self._services:
            service.require_alive()
        if time.monotonic() > deadline:
            raise DemoError(f"{what} did not end in {self._seconds:.0f} s.")
        time.sleep(0.4)


def progress_line(record: RunRecord) -> str:
    """The run's running and finished tasks, each with a mark for its state."""
    started = [
        f"{_MARKS.get(task.state or '', task.state)} {task.task_id.split('.')[-1]}"
        + (f"[{task.label or task.map_index}]" if task.map_index >= 0 else "")
        for task in record.tasks
        if task.state not in (None, "scheduled", "queued", "removed")
    ]
    return "  ".join(started) or record.state


def _first_of(month: int) -> str:
    return f"{YEAR}-{month:02}-01T00:00:00Z"
