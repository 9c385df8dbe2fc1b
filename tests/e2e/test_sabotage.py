"""The demonstration's checks find what was spoiled, and find nothing when nothing was."""

from __future__ import annotations

import json
import os
import random
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
from tests.support.soak import SEED, SOAKING
from tests.support.spark import FEW_PARTITIONS

__all__ = ["airflow_database"]

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.airflow,
    pytest.mark.spark,
    pytest.mark.slow,
]

MONTHS_WHOLE = "flights: each month has the rows of the raw file"
REFUSED = "bad batch many_bad_rows: its load"
STEPS_DONE = "each maintenance task ran and succeeded for each table"

# What each sabotage must be found by, at least; the beginnings of the checks' names.
FOUND_BY = {
    "skip-month": [MONTHS_WHOLE],
    "commit-twice": [
        MONTHS_WHOLE,
        "flights: no key is repeated",
        "flights: every version records the successful run that committed it",
    ],
    "compact-noop": ["weather: compaction left one file per month", STEPS_DONE],
    "verify-dropped": [STEPS_DONE],
    "exit-code-swallowed": [
        "bad batch wrong_type: its load",
        "bad batch null_key: its load",
        REFUSED,
    ],
    "gate-off": [
        "gate: the published rows are the good rows of the delivery",
        "gate: every bad row, and no other, is in quarantine",
        "no row of a bad batch is visible at any version",
        REFUSED,
    ],
    "quarantine-dropped": ["gate: every bad row, and no other, is in quarantine"],
    "correction-lost": ["corrections: the rows are those of an independent model of the delivered file"],
    "zorder-noop": ["flights: after clustering, month = 3 AND dest = 'SFO' skips a larger share", STEPS_DONE],
    "approval-ignored": [
        "the rejected rollback was rejected by admin",
        "the rejected rollback changed nothing",
        "both applied rollbacks were approved by admin",
    ],
}

# Each run is spoiled in several ways that no check of another way sees.
MIXTURES = [
    ("skip-month", "verify-dropped", "quarantine-dropped"),
    ("commit-twice", "compact-noop", "gate-off", "approval-ignored"),
    ("exit-code-swallowed", "zorder-noop", "correction-lost"),
]


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
    with ConnectServer.start(
        master="local[2]", conf=FEW_PARTITIONS, directory=tmp_path_factory.mktemp("spark")
    ) as server:
        yield server.url


@pytest.fixture
def play(tmp_path: Path, connect_url: str, airflow_database: Path) -> Player:
    return partial(_play, tmp_path / "home", connect_url, airflow_database)


def _play(home: Path, connect_url: str, database: Path, *sabotages: str, profile: str = "fast") -> Outcome:
    command = [sys.executable, "-m", "demo", "--home", str(home), "run", "--profile", profile]
    command += ["--connect-url", connect_url, "--database", str(database)]
    for name in sabotages:
        command += ["--sabotage", name]
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
    outcome = play(profile="least")
    assert outcome.failed == (), outcome.output
    assert outcome.code == 0
    assert len(outcome.held) > 60


def test_every_sabotage_is_in_one_mixture() -> None:
    assert sorted(name for mixture in MIXTURES for name in mixture) == sorted(NAMES) == sorted(FOUND_BY)


# One of them, drawn by the seed; `make soak-sabotage` plays them all.
# That each check finds what it looks for is shown on a small world by tests/unit/demo/test_checks.py.
DRAWN = MIXTURES if SOAKING else [random.Random(SEED).choice(MIXTURES)]


@pytest.mark.soak
@pytest.mark.parametrize("mixture", DRAWN, ids="+".join)
def test_a_sabotaged_run_fails_the_checks_that_look_for_it(play: Player, mixture: tuple[str, ...]) -> None:
    outcome = play(*mixture)
    assert outcome.code == 1, outcome.output
    looked_for = {check for name in mixture for check in FOUND_BY[name]}
    for name in mixture:
        for check in FOUND_BY[name]:
            assert _among(check, outcome.failed), (name, check, outcome.failed)
    # What other sabotages are found by held, so it is not just anything that makes those checks fail.
    for check in {check for found_by in FOUND_BY.values() for check in found_by} - looked_for:
        assert _among(check, outcome.held), (check, outcome.failed)
    # The story went on to its end: it is a check that failed, not the run that broke.
    assert "both rollback runs planned, restored and verified" in outcome.held


def _among(check: str, names: tuple[str, ...]) -> bool:
    return any(name.startswith(check) for name in names)
