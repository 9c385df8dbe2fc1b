"""A Spark cluster of one machine: a standalone master and one worker, on loopback ports."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo.class_archive import SHORT_LIVED
from spark_jobs.connect_server import HOST, free_port, spark_home
from tests.support.waiting import comes_true


@dataclass(frozen=True, slots=True, kw_only=True)
class Standalone:
    """A running cluster.

    Attributes:
        port: the master's, as in `spark://127.0.0.1:PORT`.
        page: the URL of the master's page.
    """

    port: int
    page: str

    def state(self) -> dict[str, Any]:
        """What the master says of its workers and applications."""
        state: dict[str, Any] = json.loads(read(f"{self.page}/json/"))
        return state


def read(url: str) -> str:
    """What a page on loopback says."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=60) as answer:
        return str(answer.read().decode())


def _environment() -> dict[str, str]:
    """That of the daemons and of executors: nothing is bound but loopback, and they live briefly."""
    return {
        **os.environ,
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": HOST,
        "PYSPARK_PYTHON": sys.executable,
        "JAVA_TOOL_OPTIONS": SHORT_LIVED,
        "SPARK_DAEMON_MEMORY": "256m",
    }


@contextlib.contextmanager
def standalone(folder: Path) -> Iterator[Standalone]:
    """The cluster, until the block ends."""
    folder.mkdir(parents=True, exist_ok=True)
    port, page = free_port(), free_port()
    cluster = Standalone(port=port, page=f"http://{HOST}:{page}")
    deploy = "org.apache.spark.deploy"
    commands = [
        (f"{deploy}.master.Master", "--host", HOST, "--port", str(port), "--webui-port", str(page)),
        (
            *(f"{deploy}.worker.Worker", "--host", HOST, "--webui-port", "0", "--cores", "1"),
            *("--memory", "1g", "--work-dir", str(folder / "work"), f"spark://{HOST}:{port}"),
        ),
    ]
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for number, command in enumerate(commands):
            with (folder / f"daemon-{number}.log").open("wb") as log:
                processes.append(
                    subprocess.Popen(
                        [str(spark_home() / "bin" / "spark-class"), *command],
                        cwd=folder,
                        env=_environment(),
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                    )
                )
        assert comes_true(lambda: _has_worker(cluster, processes)), _logs(folder)
        yield cluster
    finally:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _has_worker(cluster: Standalone, processes: list[subprocess.Popen[bytes]]) -> bool:
    assert all(process.poll() is None for process in processes), "a daemon of Spark has ended"
    try:
        return any(worker["state"] == "ALIVE" for worker in cluster.state()["workers"])
    except (OSError, ValueError):  # it is not listening yet, or has no pages but its front yet
        return False


def _logs(folder: Path) -> str:
    return "\n".join(path.read_text(errors="replace")[-2000:] for path in folder.glob("*.log"))
