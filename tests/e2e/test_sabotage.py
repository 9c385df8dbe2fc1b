"""The demonstration's checks find what was spoiled, and find nothing when nothing was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from demo.layout import Layout
from demo.processes import running
from demo.sabotage import NAMES
from spark_jobs.connect_server import ConnectServer
from tests.support.airflow import airflow_database
from tests.support.repository import ROOT

__all__ = ["airflow_database"]

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.airflow,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(400),
]

# What each sabotage must be found by, at least; a part of the check's name.
FOUND_BY = {
    "skip-month": ["flights: each month has the rows of the raw file"],
    "commit-twice": ["flights: no row twice", "flights: every version names the successful run that made it"],
    "compact-noop": ["flights: compaction left one file per month"],
    "verify-dropped": ["each maintenance task ran and succeeded for each table"],
    "exit-code-swallowed": ["bad batch wrong_type: its load failed", "bad batch null_key: its load failed"],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    code: int
    output: str
    failed: tuple[str, ...]
    held: tuple[str, ...]


Player = Callable[..., Outcome]


@pytest.fixture(scope="module")
def connect_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One Spark Connect server for all: starting it is what takes long."""
    with ConnectServer.start(master="local[2]", directory=tmp_path_factory.mktemp("spark")) as server:
        yield server.url


@pytest.fixture
def play(tmp_path: Path, connect_url: str, airflow_database: Path) -> Player:
    return partial(_play, tmp_path / "home", connect_url, airflow_database)


def _play(home: Path, connect_url: str, database: Path, *, sabotage: str | None) -> Outcome:
    command = [sys.executable, "-m", "demo", "--home", str(home), "run", "--fast"]
    command += ["--connect-url", connect_url, "--database", str(database)]
    if sabotage:
        command += ["--sabotage", sabotage]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    output = done.stdout[-12000:] + done.stderr[-3000:]
    report = Layout(home=home).report
    assert report.exists(), output
    checks = json.loads(report.read_text())["checks"]
    assert running(Layout(home=home)) == []
    return Outcome(
        code=done.returncode,
        output=output,
        failed=tuple(check["name"] for check in checks if not check["held"]),
        held=tuple(check["name"] for check in checks if check["held"]),
    )


def test_an_honest_run_passes_every_check(play: Player) -> None:
    outcome = play(sabotage=None)
    assert outcome.failed == (), outcome.output
    assert outcome.code == 0
    assert len(outcome.held) > 25


@pytest.mark.parametrize("name", NAMES)
def test_a_sabotaged_run_fails_the_check_that_looks_for_it(play: Player, name: str) -> None:
    outcome = play(sabotage=name)
    assert outcome.code == 1, outcome.output
    for expected in FOUND_BY[name]:
        assert any(failed.startswith(expected) for failed in outcome.failed), (expected, outcome.failed)
    # The story went on to its end: it is a check that failed, not the run that broke.
    assert "both rollback runs planned, restored and verified" in outcome.held
