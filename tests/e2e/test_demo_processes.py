"""What `make up` opens, and that `make down` and an interrupted `make demo` leave nothing behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from demo.layout import Layout
from demo.processes import running, stop_all
from tests.support.airflow import airflow_database
from tests.support.repository import ROOT
from tests.support.services import listening

__all__ = ["airflow_database"]

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.airflow,
    pytest.mark.spark,
    pytest.mark.slow,
]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "home"
    stop_all(Layout(home=tmp_path / "home"), patience_seconds=1)


def command(home: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "demo", "--home", str(home), *arguments]


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}


def demo(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(home, *arguments),
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def test_up_leaves_a_login_that_is_needed_and_down_stops_everything(home: Path) -> None:
    done = demo(home, "up")
    assert done.returncode == 0, done.stdout + done.stderr
    shown = dict(re.findall(r"^  (address|user|password) +(\S+)$", done.stdout, flags=re.MULTILINE))
    address = shown["address"]
    assert address.startswith("http://127.0.0.1:")

    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{address}/api/v2/dags", timeout=300)
    refused.value.close()
    assert refused.value.code == 401
    assert _token(address, shown["user"], shown["password"])
    with pytest.raises(urllib.error.HTTPError) as wrong:
        _token(address, shown["user"], "wrong")
    wrong.value.close()
    assert wrong.value.code == 401

    addresses = listening(running(Layout(home=home)))
    assert addresses
    assert addresses <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}

    again = demo(home, "up")
    assert (again.returncode, address in again.stdout) == (0, True)
    assert demo(home, "down").returncode == 0
    assert running(Layout(home=home)) == []


# Each end of a demonstration stops the same list of processes, and CI looks at it after two other ends.
@pytest.mark.soak
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_leaves_no_process(
    home: Path, airflow_database: Path, number: signal.Signals
) -> None:
    with subprocess.Popen(
        command(home, "run", "--profile", "fast", "--database", str(airflow_database)),
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "running flights_etl" in line:
                break
        while not drivers(home):
            assert process.poll() is None
            time.sleep(0.2)
        # What a terminal does at Ctrl-C: the signal goes to the whole foreground group.
        os.killpg(process.pid, number)
        rest = process.stdout.read()
        assert process.wait() == 130, rest
    assert running(Layout(home=home)) == []


def drivers(home: Path) -> list[int]:
    """The processes that run a job of the demonstration at `home`."""
    found = []
    for process in psutil.process_iter(["pid", "cmdline"]):
        arguments = process.info["cmdline"] or []
        if "spark_jobs.main" in arguments and any(part.startswith(str(home)) for part in arguments):
            found.append(process.info["pid"])
    return found


def _token(address: str, user: str, password: str) -> str:
    request = urllib.request.Request(
        f"{address}/auth/token",
        data=json.dumps({"username": user, "password": password}).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=300) as answer:
        return json.loads(answer.read())["access_token"]
