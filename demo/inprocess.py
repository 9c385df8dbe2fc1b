"""Runs the DAGs in one worker process, without Airflow's services."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from demo.dag_runs import RUN_SECONDS, AnswerRecord, Report, RunRecord, TaskRecord, progress_line
from demo.environment import USER
from demo.layout import REPOSITORY, Layout
from demo.processes import MARK, DemoError, record_session, tail
from demo.profiles import YEAR


class InProcessDagRunner:
    """Sends runs to `demo.inprocess_worker`. Call `close` at the end."""

    def __init__(
        self, layout: Layout, *, environment: Mapping[str, str], seconds: float = RUN_SECONDS
    ) -> None:
        self._seconds = seconds
        self._log = layout.logs / "inprocess-worker.log"
        self._results: dict[tuple[str, str, int], Any] = {}
        reading, writing = os.pipe()
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "demo.inprocess_worker", "--reply-fd", str(writing)],
                cwd=REPOSITORY,
                env={**environment, MARK: str(layout.home)},
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=(writing,),
                start_new_session=True,
                text=True,
            )
        os.close(writing)
        record_session(layout, "inprocess-worker", self._process.pid)
        self._replies = os.fdopen(reading)
        self.dag_ids = set(self._answer()["dag_ids"])

    def run(
        self, dag_id: str, *, run_id: str, conf: dict[str, Any], report: Report, answer: str | None = None
    ) -> RunRecord:
        report(f"running {dag_id}")
        record = self._ask(dag_id, conf=conf, logical_date=None, answer=answer)
        report(progress_line(record))
        return record

    def backfill(
        self, dag_id: str, *, months: Sequence[int], conf: dict[str, Any], report: Report
    ) -> list[RunRecord]:
        records = []
        for month in months:
            # `dag.test` uses the interval that ends at the date, a backfill the interval that starts there.
            after = f"{YEAR}-{month + 1:02}-01" if month < 12 else f"{YEAR + 1}-01-01"
            records.append(self._ask(dag_id, conf=conf, logical_date=f"{after}T00:00:00Z"))
            report(progress_line(records[-1]))
        return records

    def result(self, run: RunRecord, task_id: str, *, map_index: int = -1) -> Any:
        return self._results.get((run.run_id, task_id, map_index))

    def close(self) -> None:
        """Close the worker's input, so that it ends."""
        with contextlib.suppress(BrokenPipeError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        self._replies.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=10)

    def _ask(
        self, dag_id: str, *, conf: dict[str, Any], logical_date: str | None, answer: str | None = None
    ) -> RunRecord:
        assert self._process.stdin is not None
        request = {
            "dag_id": dag_id,
            "conf": conf,
            "logical_date": logical_date,
            "answer": answer,
            "user": USER,
        }
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        done = self._answer()
        for result in done["results"]:
            key = (done["run_id"], result["task_id"], result["map_index"])
            self._results[key] = result["value"]
        return RunRecord(
            dag_id=dag_id,
            run_id=done["run_id"],
            state=done["state"],
            tasks=tuple(TaskRecord(**task) for task in done["tasks"]),
            answers=tuple(AnswerRecord(**asked) for asked in done["answers"]),
        )

    def _answer(self) -> dict[str, Any]:
        # Each request has one reply, so an earlier read leaves nothing in the buffer.
        ready, _, _ = select.select([self._replies], [], [], self._seconds)
        if not ready:
            raise DemoError(
                f"The worker did not answer in {self._seconds:.0f} s\n{tail(self._log)}\nIts log: {self._log}"
            )
        line = self._replies.readline()
        answer = json.loads(line) if line else {"error": f"The worker ended\n{tail(self._log)}"}
        if "error" in answer:
            raise DemoError(f"{answer['error']}\nIts log: {self._log}")
        return answer
