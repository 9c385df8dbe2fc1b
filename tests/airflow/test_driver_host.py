"""The driver host where a new process has no counterpart; what both have is in test_process_runner.py."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from delta_airflow.hooks.settings import ConnectionSettings
from delta_airflow.runners import keeper
from delta_airflow.runners.driver import driver_environment
from spark_jobs.driver_requests import code_on_disk
from tests.support.host_script import RunningHost, script_host
from tests.support.repository import ROOT
from tests.support.waiting import PATIENCE_SECONDS, comes_true

SLEEPS = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"


@pytest.fixture
def host(tmp_path: Path) -> Iterator[RunningHost]:
    with script_host(tmp_path / "drivers.sock") as running:
        yield running


def request_for(script: str, folder: Path, **changes: Any) -> dict[str, Any]:
    path = folder / f"script-{len(list(folder.iterdir()))}.py"
    path.write_text(script)
    request = {
        "command": [sys.executable, "-m", "spark_jobs.main", str(path)],
        "environment": dict(os.environ),
        "directory": str(folder),
        "umask": 0o22,
    }
    return {**request, **changes}


class Client:
    """One connection to a host, with a pipe for the driver's output."""

    def __init__(self, host: RunningHost) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(PATIENCE_SECONDS)
        self._socket.connect(host.socket)
        self._output, self._written = os.pipe()

    def send(self, text: str | bytes) -> None:
        data = text.encode() if isinstance(text, str) else text
        sent = socket.send_fds(self._socket, [data], [self._written] * 2)
        if sent < len(data):
            self._socket.sendall(data[sent:])

    def ask(self, request: Any) -> str:
        self.send(json.dumps(request) + "\n")
        return self.hear()

    def tell(self, text: str) -> None:
        self._socket.sendall(text.encode())

    def hear(self) -> str:
        answer = b""
        while not answer.endswith(b"\n"):
            received = self._socket.recv(1)
            if not received:
                break
            answer += received
        return answer.decode().strip()

    def printed(self) -> str:
        os.close(self._written)
        self._written = -1
        with os.fdopen(os.dup(self._output)) as stream:
            return stream.read()

    def leave(self) -> None:
        self._socket.close()

    def close(self) -> None:
        self.leave()
        for end in {self._output, self._written} - {-1}:
            os.close(end)


Connect = Callable[[RunningHost], Client]


@pytest.fixture
def connect() -> Iterator[Connect]:
    clients: list[Client] = []

    def make(host: RunningHost) -> Client:
        clients.append(Client(host))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


def gone(process_id: int) -> bool:
    try:
        return bool(psutil.Process(process_id).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


@pytest.mark.parametrize(
    "changes",
    [
        {"environment": None},
        {"environment": [1]},
        {"environment": {"A": 1}},
        {"environment": {"A=B": "1"}},
        {"directory": None},
        {"directory": "/no/such/folder"},
        {"umask": "022"},
        {"command": []},
        {"command": [1, 2]},
        {"command": None},
        {"command": ["/bin/sh", "-c", "true"]},
    ],
    ids=repr,
)
def test_what_is_no_request_is_refused(
    host: RunningHost, connect: Connect, tmp_path: Path, changes: dict[str, Any]
) -> None:
    assert connect(host).ask(request_for("pass", tmp_path, **changes)).startswith("refused ")
    assert connect(host).ask(request_for("pass", tmp_path)).startswith("started ")


@pytest.mark.slow
def test_garbage_signals_and_silence_harm_no_driver(
    host: RunningHost, connect: Connect, tmp_path: Path
) -> None:
    steady = connect(host)
    started = steady.ask(request_for(SLEEPS, tmp_path))
    for text in (b"\xff\xfe\n", b"[" * 50_000 + b"\n", b"3\n", b"null\n"):
        client = connect(host)
        client.send(text)
        assert client.hear().startswith("refused ")
    steady.tell("signal 9999\nsignal -1\nsignal x\nsignal " + "9" * 40 + "\nnonsense\n")
    # One after the other they would take 5 seconds each.
    silent = [connect(host) for _ in range(30)]
    begun = time.monotonic()
    assert connect(host).ask(request_for("pass", tmp_path)).startswith("started ")
    assert time.monotonic() - begun < 100, "clients that say nothing made this one wait"
    assert all(client.hear().startswith("refused the request did not come") for client in silent)
    assert host.process.poll() is None
    assert psutil.pid_exists(int(started.split()[1]))


def test_a_driver_is_like_a_new_process(host: RunningHost, connect: Connect, tmp_path: Path) -> None:
    script = (
        "import json, os\nprint(json.dumps({'cwd': os.getcwd(), 'own': os.environ.get('OWN'),"
        " 'home': os.environ.get('HOME'), 'umask': os.umask(0), 'group': os.getpgid(0) == os.getpid(),"
        " 'held': sorted(os.listdir('/proc/self/fd'))[:-1]}))"
    )
    other = connect(host)
    other.ask(request_for(SLEEPS, tmp_path))
    client = connect(host)
    environment = {"OWN": "x", "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    client.ask(request_for(script, tmp_path, environment=environment, umask=0o77))
    assert client.hear() == "exit 0"
    told = json.loads(client.printed())
    assert told == {
        "cwd": str(tmp_path), "own": "x", "home": None, "umask": 0o77, "group": True, "held": ["0", "1", "2"]
    }  # fmt: skip


@pytest.mark.parametrize(
    ("script", "code", "printed"),
    [
        ("import sys; sys.exit()", 0, ""),
        ("import sys; sys.exit(7)", 7, ""),
        ("import sys; sys.exit(2 ** 40)", 255, None),
        ("import sys; sys.exit('why it failed')", 1, "why it failed\n"),
        ("raise ValueError('bad')", 1, None),
        ("import atexit; atexit.register(print, 'at the end')", 0, "at the end\n"),
        ("import os; print('last words'); os.kill(os.getpid(), 9)", 137, "last words\n"),
    ],
)
def test_a_driver_ends_as_it_says(
    host: RunningHost, connect: Connect, tmp_path: Path, script: str, code: int, printed: str | None
) -> None:
    client = connect(host)
    client.ask(request_for(script, tmp_path))
    ended = client.hear()
    assert ended == f"exit {code}" or (code == 255 and ended.startswith("exit "))
    assert printed is None or client.printed() == printed
    assert host.process.poll() is None
    assert Path(host.socket).exists()


def test_no_signal_is_lost_however_early(host: RunningHost, connect: Connect, tmp_path: Path) -> None:
    for _ in range(20):
        client = connect(host)
        client.ask(request_for(SLEEPS, tmp_path))
        client.tell(f"signal {int(signal.SIGTERM)}\n")
        assert client.hear() == "exit 143"


def test_a_driver_ends_with_its_connection_and_with_its_host(
    host: RunningHost, connect: Connect, tmp_path: Path
) -> None:
    left = connect(host)
    first = int(left.ask(request_for(SLEEPS, tmp_path)).split()[1])
    left.leave()
    assert comes_true(lambda: gone(first))
    for _ in range(3):
        second = int(connect(host).ask(request_for(SLEEPS, tmp_path)).split()[1])
    host.process.kill()
    assert comes_true(lambda: gone(second))


def test_a_request_whose_sender_has_gone_is_not_carried_out(
    host: RunningHost, connect: Connect, tmp_path: Path
) -> None:
    host.process.send_signal(signal.SIGSTOP)
    client = connect(host)
    marker = tmp_path / "was-here"
    client.send(json.dumps(request_for(f"open({str(marker)!r}, 'w')", tmp_path)) + "\n")
    client.leave()
    host.process.send_signal(signal.SIGCONT)
    assert connect(host).ask(request_for("pass", tmp_path)).startswith("started ")
    assert not marker.exists()
    assert "no longer waits" in host.log_path.read_text()


def test_the_environment_of_a_connection_fits_a_host_of_this_checkout(
    tmp_path: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with script_host(tmp_path / "drivers.sock") as host:
        environment = driver_environment(ConnectionSettings())
        assert connect(host).ask(request_for("pass", tmp_path, environment=environment)).startswith("started")
        other = {**environment, "PYTHONPATH": "/elsewhere"}
        assert "PYTHONPATH" in connect(host).ask(request_for("pass", tmp_path, environment=other))


def test_a_socket_is_replaced_only_when_nobody_answers(
    host: RunningHost, connect: Connect, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "tests.support.host_script"]
    second = subprocess.run([*command, host.socket], cwd=ROOT, capture_output=True, text=True, check=False)
    assert second.returncode != 0
    assert "Another driver host answers" in second.stderr
    precious = tmp_path / "precious.txt"
    precious.write_text("x")
    third = subprocess.run([*command, str(precious)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert third.returncode != 0
    assert precious.read_text() == "x"
    assert os.stat(host.socket).st_mode & 0o777 == 0o600
    host.process.kill()
    host.process.wait()
    with script_host(Path(host.socket)) as again:
        assert connect(again).ask(request_for("pass", tmp_path)).startswith("started ")
    assert not Path(host.socket).exists()


def test_changed_code_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "some_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    before = code_on_disk(["some_package"])
    assert code_on_disk(["some_package"]) == before
    (package / "__init__.py").write_text("x = 1")
    assert code_on_disk(["some_package"]) != before


def test_a_keeper_whose_task_has_gone_starts_nothing(tmp_path: Path) -> None:
    marker = tmp_path / "was-here"
    command = [sys.executable, "-c", f"open({str(marker)!r}, 'w')"]
    done = subprocess.run(
        [sys.executable, "-I", "-S", keeper.__file__, "1", "--host", f"{tmp_path}/none", "--", *command],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == keeper.LOST
    assert "No driver host answers" in done.stderr
    assert not marker.exists()


def test_a_file_that_goes_while_the_code_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An editor's lock is a link to nothing; it once ended the host and with it every driver."""
    package = tmp_path / "package_with_a_lock"
    package.mkdir()
    (package / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    before = code_on_disk(["package_with_a_lock"])
    (package / ".#module.py").symlink_to("nobody@nowhere:1")
    assert code_on_disk(["package_with_a_lock"]) != before


def test_descriptors_that_nobody_asked_for_are_closed(
    host: RunningHost, connect: Connect, tmp_path: Path
) -> None:
    client = connect(host)
    assert client.ask(request_for(SLEEPS, tmp_path)).startswith("started")
    count = len(os.listdir(f"/proc/{host.process.pid}/fd"))
    for _ in range(50):
        client.send("x")
    assert comes_true(lambda: len(os.listdir(f"/proc/{host.process.pid}/fd")) <= count)
