"""`make demo` as a newcomer runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.layout import Layout
from demo.processes import running, stop_all
from tests.support.emulators.installation import require
from tests.support.repository import ROOT

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.airflow,
    pytest.mark.spark,
    pytest.mark.slow,
    # The story and its checks are run by test_sabotage.py, the services by test_services.py.
    pytest.mark.soak,
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


@pytest.mark.parametrize("profile", ["brief", "full"])
def test_the_demo_passes_and_leaves_no_process(home: Path, profile: str) -> None:
    """More months and tables bring rows and minutes, and no other kind of check."""
    require_success(demo(home, "run", "--profile", profile), home)


@pytest.mark.extra
def test_the_demo_passes_with_its_tables_on_s3(home: Path) -> None:
    require("versitygw")
    require_success(demo(home, "--store", "s3", "run", "--profile", "fast"), home)
    layout = Layout(home=home, store="s3")
    assert (layout.table("flights") / "_delta_log" / f"{0:020}.json").is_file()
    assert not (home / "tables").exists()


def require_success(done: subprocess.CompletedProcess[str], home: Path) -> None:
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-3000:]
    assert running(Layout(home=home)) == []
    checks = json.loads(Layout(home=home).report.read_text())["checks"]
    assert len(checks) >= 60
    assert all(check["held"] for check in checks)
