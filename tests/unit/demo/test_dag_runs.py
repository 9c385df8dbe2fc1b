"""Runs through Airflow's REST API: what is answered, what is kept, what is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from demo import dag_runs
from demo.airflow_api import AirflowApi
from demo.dag_runs import AirflowDagRunner, RunRecord, TaskRecord, progress_line
from demo.processes import DemoError

Json = dict[str, Any]


class FakeApi(AirflowApi):
    """One run whose states follow each other; a question waits for its answer."""

    def __init__(self, states: Sequence[str]) -> None:
        self.states = list(states)
        self.given: list[tuple[str, str]] = []

    def trigger(self, dag_id: str, *, run_id: str, conf: Json) -> None:
        assert (dag_id, run_id) == ("d", "r")

    def run(self, dag_id: str, run_id: str) -> Json:
        if len(self.states) > 1 and (self.states[0] != "awaiting_input" or self.given):
            self.states.pop(0)
        return {"state": "success" if self.states[0] == "success" else "running"}

    def task_instances(self, dag_id: str, run_id: str) -> list[Json]:
        return [{"task_id": "ask", "map_index": -1, "state": self.states[0], "rendered_map_index": None}]

    def answer(self, dag_id: str, run_id: str, task_id: str, *, option: str) -> None:
        self.given.append((task_id, option))

    def questions(self, dag_id: str, run_id: str) -> list[Json]:
        return [
            {
                "task_instance": {"task_id": task_id},
                "subject": "Restore?",
                "body": None,
                "chosen_options": [option],
                "responded_by_user": {"id": "1", "name": "someone"},
            }
            for task_id, option in self.given
        ]


def play(api: FakeApi, *, answer: str | None) -> RunRecord:
    runner = AirflowDagRunner(api, services=[])
    return runner.run("d", run_id="r", conf={}, report=lambda line: None, answer=answer)


def test_a_question_is_answered_once_and_kept_with_who_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dag_runs, "_READING_SECONDS", 0.5)
    api = FakeApi(["running", "awaiting_input", "awaiting_input", "success"])
    record = play(api, answer="Reject")
    assert api.given == [("ask", "Reject")]
    (kept,) = record.answers
    assert (kept.task_id, kept.subject, kept.body) == ("ask", "Restore?", "")
    assert (kept.chosen, kept.by) == ("Reject", "someone")


def test_a_question_that_nobody_expects_ends_the_demonstration() -> None:
    with pytest.raises(DemoError, match="ask asks an unexpected question"):
        play(FakeApi(["awaiting_input", "success"]), answer=None)


def test_a_run_that_asks_nothing_keeps_no_answer() -> None:
    assert play(FakeApi(["running", "success"]), answer="Approve").answers == ()


def test_a_mapped_task_is_shown_by_the_name_of_its_table() -> None:
    tasks = (
        TaskRecord(task_id="tables", map_index=-1, state="success"),
        TaskRecord(task_id="maintain.verify", map_index=0, state="success", label="flights"),
        TaskRecord(task_id="maintain.verify", map_index=1, state="running"),
        TaskRecord(task_id="maintain.plan", map_index=2, state="queued"),
    )
    record = RunRecord(dag_id="d", run_id="r", state="running", tasks=tasks)
    assert progress_line(record) == "✓ tables  ✓ verify[flights]  … verify[1]"
