"""What the demonstration starts ends with it, wherever it hides."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from demo.layout import Layout
from demo.processes import MARK, DemoError, Service, answers, free_port, running, start, stop_all
from tests.support.waiting import PATIENCE_SECONDS

# A child in the same session but another group that ignores SIGTERM, and one in a session of its own.
FAMILY = """
    import os, signal, subprocess, sys, time
    ignore = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "print('ready', flush=True); time.sleep(600)"
    )
    for options in ({"process_group": 0}, {"start_new_session": True}):
        child = subprocess.Popen([sys.executable, "-c", ignore], stdout=subprocess.PIPE, **options)
        child.stdout.readline()
    print("family complete", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def layout(tmp_path: Path) -> Iterator[Layout]:
    layout = Layout(home=tmp_path / "home")
    layout.make()
    yield layout
    stop_all(layout, patience_seconds=0)


Starter = Callable[..., Service]


@pytest.fixture
def start_python() -> Iterator[Starter]:
    services = []

    def begin(layout: Layout, program: str) -> Service:
        command = [sys.executable, "-c", textwrap.dedent(program)]
        services.append(
            start("service", command, layout=layout, environment={"PATH": os.defpath}, cwd=layout.home)
        )
        return services[-1]

    yield begin
    for service in services:
        service.process.kill()
        service.process.wait()


def wait_for_text(path: Path, text: str, process: subprocess.Popen[bytes]) -> None:
    while text not in path.read_text():
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.05)


def test_stopping_reaches_other_groups_and_other_sessions(start_python: Starter, layout: Layout) -> None:
    service = start_python(layout, FAMILY)
    wait_for_text(service.log, "family complete", service.process)
    assert len(running(layout)) == 3

    assert stop_all(layout, patience_seconds=0.5) == []
    assert running(layout) == []
    assert list(layout.pids.iterdir()) == []


def test_what_others_started_is_left_alone(start_python: Starter, layout: Layout, tmp_path: Path) -> None:
    other = Layout(home=tmp_path / "other")
    other.make()
    kept = start_python(other, "import time; time.sleep(600)")
    try:
        start_python(layout, "import time; time.sleep(600)")
        assert stop_all(layout, patience_seconds=2) == []
        assert kept.process.poll() is None
    finally:
        assert stop_all(other, patience_seconds=2) == []


def test_a_pid_file_of_a_number_that_was_given_away_stops_nobody(
    start_python: Starter, layout: Layout
) -> None:
    service = start_python(layout, "import time; time.sleep(600)")
    with leaderless_session() as (session, member):
        pid_file = layout.pids / "service.json"
        for taken in (session, os.getsid(0)):
            pid_file.write_text(f'{{"session": {taken}, "started": 1.0}}')
            # Other people's sessions, with or without a leader: only the mark finds the service.
            assert [process.pid for process in running(layout)] == [service.process.pid]

        assert stop_all(layout, patience_seconds=2) == []
        assert psutil.Process(member).is_running()


def test_a_session_whose_leader_ended_is_stopped_whole(layout: Layout) -> None:
    with leaderless_session(environment={MARK: str(layout.home)}) as (session, member):
        unmarked = psutil.Process(member).children()
        assert len(unmarked) == 1
        (layout.pids / "service.json").write_text(f'{{"session": {session}, "started": 1.0}}')
        assert {process.pid for process in running(layout)} == {member, unmarked[0].pid}
        assert stop_all(layout, patience_seconds=2) == []


@contextlib.contextmanager
def leaderless_session(environment: dict[str, str] | None = None) -> Iterator[tuple[int, int]]:
    """A session whose leader has ended: its number, and a member, whose child has an empty environment."""
    child = "import time; time.sleep(600)"
    member = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {child!r}], env={{}}).wait()"
    leader = f"""
import subprocess, sys
quiet = {{"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}}
print(subprocess.Popen([sys.executable, "-c", {member!r}], **quiet).pid)
"""
    ended = subprocess.run(
        ["setsid", "--wait", sys.executable, "-c", leader],
        env=environment or {},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_SECONDS,
    )
    number = int(ended.stdout)
    process = psutil.Process(number)
    family: list[psutil.Process] = []
    try:
        while process.is_running() and not (family := process.children()):
            time.sleep(0.02)
        yield os.getsid(number), number
    finally:
        for one in (process, *family):
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()


def test_a_service_that_ends_is_reported_with_the_end_of_its_log(
    start_python: Starter, layout: Layout
) -> None:
    service = start_python(layout, "print('no such port'); raise SystemExit(7)")
    service.process.wait()
    with pytest.raises(DemoError, match=r"(?s)ended with code 7.*no such port"):
        service.require_alive()


def test_an_orphan_is_found_by_its_mark_without_any_pid_file(layout: Layout) -> None:
    orphan = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"],
        env={MARK: str(layout.home)},
        start_new_session=True,
    )
    try:
        assert stop_all(layout) == []
        assert orphan.wait() == -signal.SIGTERM
    finally:
        orphan.kill()
        orphan.wait()


def test_a_free_port_answers_nobody() -> None:
    assert not answers(free_port())
