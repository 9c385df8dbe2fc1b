"""Running DAGs, and what is kept of a run: its state and its tasks', as plain data."""

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
"""No run of the demonstration takes that long on the slowest machine it was played on."""

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
"""Nobody answers faster. A task that is answered while its process still ends is failed by the scheduler."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRecord:
    """One task instance; `map_index` is -1 for one that is not mapped."""

    task_id: str
    map_index: int
    state: str | None
    label: str | None = None
    """What Airflow calls a mapped one, such as the table that it is for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRecord:
    """What a task asked of a person, and what was answered.

    Attributes:
        chosen: the option; None when nobody answered.
        by: who answered; None when it was not a person.
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
    """Runs DAGs to their end, whatever that is."""

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
        """What a task returned; None when it returned nothing."""
        ...


class AirflowDagRunner:
    """Through the REST API of a running Airflow."""

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
                        raise DemoError(f"{dag_id} {run_id}: {task.task_id} asks what nobody is to answer")
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
        # When SQLite refuses one of its writes, Airflow takes back the runs it had made already, and a
        # scheduler that has begun one of them ends. It begins none of a paused DAG.
        self._api.pause(dag_id)
        try:
            backfill = self._api.backfill(
                dag_id, from_date=_first_of(months[0]), to_date=_first_of(months[-1]), conf=conf
            )
        finally:
            self._api.unpause(dag_id)
        deadline = time.monotonic() + self._seconds
        while True:
            # Airflow marks a backfill completed once all its runs have ended.
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
        # The run before its tasks: tasks of a finished run do not change any more.
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
            raise DemoError(f"{what} did not end in {self._seconds:.0f} s")
        time.sleep(0.4)


def progress_line(record: RunRecord) -> str:
    """The run's tasks that run or have ended, each with a mark for how it stands."""
    begun = [
        f"{_MARKS.get(task.state or '', task.state)} {task.task_id.split('.')[-1]}"
        + (f"[{task.label or task.map_index}]" if task.map_index >= 0 else "")
        for task in record.tasks
        if task.state not in (None, "scheduled", "queued", "removed")
    ]
    return "  ".join(begun) or record.state


def _first_of(month: int) -> str:
    return f"{YEAR}-{month:02}-01T00:00:00Z"
