"""Running the job driver as its own process, undisturbed or with a signal at one of its events."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from delta_core.execution.sinks import event_from_json
from delta_core.jobs.codec import spec_to_json
from delta_core.jobs.job_spec import JobSpec
from spark_jobs.main import EVENT_PREFIX
from tests.support.repository import ROOT, import_path

TIMEOUT_SECONDS = 1200


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverRun:
    """How one driver ended: exit code (negative: by that signal), its events' names, its result."""

    code: int
    events: tuple[str, ...]
    result: dict[str, Any] | None
    output: str


class Driver:
    """A driver process that is working on one spec."""

    def __init__(
        self, spec: JobSpec, folder: Path, *, remote: str, at: int | None = None, send: str = "SIGKILL"
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._result = folder / "result.json"
        (folder / "spec.json").write_text(spec_to_json(spec))
        arguments = ["--spec", str(folder / "spec.json"), "--result", str(self._result), "--remote", remote]
        module = ["spark_jobs.main"]
        if at is not None:
            module = ["tests.support.interrupting_driver", str(at), send, "--"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", *module, *arguments],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": import_path("plugins")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def finish(self, *, timeout_seconds: float = TIMEOUT_SECONDS) -> DriverRun:
        """Wait for its end."""
        try:
            output, _ = self.process.communicate(timeout=timeout_seconds)
        finally:
            self.process.kill()
        lines = output.splitlines()
        strings = [line.removeprefix(EVENT_PREFIX) for line in lines if line.startswith(EVENT_PREFIX)]
        events = [event for event in map(event_from_json, strings) if event is not None]
        return DriverRun(
            code=self.process.returncode,
            events=tuple(event.name for event in events),
            result=json.loads(self._result.read_text()) if self._result.exists() else None,
            output=output,
        )

    def wait_until_stopped(self) -> None:
        """Block until the process has been stopped by a signal."""
        _, status = os.waitpid(self.process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), f"the driver ended instead of stopping: status {status}"
        assert os.WSTOPSIG(status) == signal.SIGSTOP


def rows_by_peer(table: Path, version: int | None = None) -> Counter[tuple[Any, ...]]:
    """The rows as the deltalake package reads them: a multiset, so a doubled row shows."""
    peer = DeltaTable(str(table), version=version)
    # deltalake's Arrow datasets refuse deletion vectors; its queries read them.
    rows = pa.table(QueryBuilder().register("t", peer).execute("SELECT * FROM t").read_all())
    names = sorted(rows.column_names)
    return Counter(zip(*(rows.column(name).to_pylist() for name in names), strict=True))


def commits_with(table: Path, app_id: str) -> list[int]:
    """The versions whose commit files hold a `txn` of that application, straight from the files."""
    found = []
    for path in sorted((table / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in path.read_text().splitlines() if line]
        if any(action.get("txn", {}).get("appId") == app_id for action in actions):
            found.append(int(path.stem))
    return found
