"""A long-lived local Spark Connect server, so that jobs need not start a JVM each.

`python -m spark_jobs.connect_server --port 15002 --pid-file server.pid` runs a server in the foreground.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import JobError
from spark_jobs.installed_spark import check_installed

HOST = "127.0.0.1"
SERVER_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_DEFAULT_CONF = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": HOST,
    "spark.driver.host": HOST,
    "spark.sql.session.timeZone": "UTC",
    "spark.connect.grpc.binding.address": HOST,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectServer:
    """A running server. Create it with `start`; end it with `stop` or a `with` block.

    Attributes:
        process: the server process. With `own_group` it leads a process group, so that `stop` also ends the
            processes that it started.
        port: the loopback port of the server.
        log_path: the file with the server's standard output and error.
    """

    process: subprocess.Popen[bytes]
    port: int
    log_path: Path
    own_group: bool = True
    clock: Clock = SYSTEM_CLOCK

    @classmethod
    def start(
        cls,
        *,
        port: int = 0,
        master: str = "local[*]",
        driver_memory: str = "1g",
        conf: Mapping[str, str] | None = None,
        directory: Path | str = ".",
        timeout_seconds: float = 120.0,
        own_group: bool = True,
        clock: Clock = SYSTEM_CLOCK,
    ) -> ConnectServer:
        """Start a server on a loopback port and return when it answers.

        The server does not authenticate clients. It binds only 127.0.0.1.

        Args:
            port: the port; 0 picks a free port.
            directory: directory for the server's log and scratch files; it is created.
            timeout_seconds: how long the server may take to answer.
            own_group: False keeps the server in this process's group, so that a signal to the group ends the
                server too.

        Raises:
            JobError: the server ended or did not answer in time; the cause is the end of the log.
            ConfigurationError: pyspark is not installed, or `check_installed` refuses it.
        """
        chosen_port = port or free_port()
        folder = Path(directory).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        log_path = folder / f"connect-server-{chosen_port}.log"
        command = server_command(
            port=chosen_port, master=master, driver_memory=driver_memory, conf=conf or {}
        )
        with log_path.open("wb") as log:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=server_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=own_group,
            )
        server = cls(process=process, port=chosen_port, log_path=log_path, own_group=own_group, clock=clock)
        try:
            server.wait_until_ready(timeout_seconds=timeout_seconds)
        except BaseException:
            server.stop()
            raise
        return server

    @property
    def url(self) -> str:
        """The server's URL for clients, `sc://host:port`."""
        return f"sc://{HOST}:{self.port}"

    def wait_until_ready(self, *, timeout_seconds: float) -> None:
        """Return once the port accepts a connection.

        Raises:
            JobError: the server ended, or the timeout passed.
        """
        deadline = self.clock.monotonic_seconds() + timeout_seconds
        while not answers(self.port):
            if self.process.poll() is not None:
                raise self._failure(f"The Spark Connect server ended with code {self.process.returncode}.")
            if self.clock.monotonic_seconds() > deadline:
                raise self._failure(f"The Spark Connect server did not answer in {timeout_seconds:.0f} s.")
            self.clock.sleep(0.1)

    def stop(self, *, timeout_seconds: float = 20.0) -> None:
        """End the server and its child processes: with SIGTERM, and after the timeout with SIGKILL."""
        self._signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=timeout_seconds)
        self._signal(signal.SIGKILL)
        self.process.wait()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self.own_group:
                os.killpg(self.process.pid, number)
            else:
                self.process.send_signal(number)

    def __enter__(self) -> ConnectServer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def _failure(self, problem: str) -> JobError:
        lines = self.log_path.read_text(errors="replace").splitlines()[-5:]
        return JobError(problem, cause=" | ".join(lines), fix=f"Read the server's log, {self.log_path}.")


def server_command(*, port: int, master: str, driver_memory: str, conf: Mapping[str, str]) -> list[str]:
    """The command that runs a server in the foreground."""
    settings = {**_DEFAULT_CONF, **conf, "spark.connect.grpc.binding.port": str(port)}
    options = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    submit = str(spark_home() / "bin" / "spark-submit")
    return [
        submit,
        "--master",
        master,
        "--driver-memory",
        driver_memory,
        "--class",
        SERVER_CLASS,
        *options,
        "spark-internal",
    ]


def server_environment() -> dict[str, str]:
    """This process's environment, with this interpreter as the Python of Spark's workers.

    SPARK_REMOTE is removed, because it would make the server a client of itself.
    """
    environment = {
        k: v for k, v in os.environ.items() if k not in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")
    }
    environment["SPARK_HOME"] = str(spark_home())
    environment["PYSPARK_PYTHON"] = sys.executable
    environment["SPARK_LOCAL_IP"] = HOST
    return environment


def spark_home() -> Path:
    """The Spark distribution inside the installed pyspark package."""
    return check_installed(with_jvm=True)


def free_port() -> int:
    """A loopback port that is free at the time of the call."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    """Whether a process accepts connections on the loopback port."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((HOST, port)) == 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run a server until the server ends or this process is interrupted. Returns the server's exit code."""
    parser = argparse.ArgumentParser(prog="python -m spark_jobs.connect_server", description=main.__doc__)
    parser.add_argument("--port", type=int, default=0, help="loopback port; 0 picks a free port")
    parser.add_argument(
        "--pid-file", type=Path, help="file to write '<pid> <port>' to when the server answers"
    )
    parser.add_argument("--master", default="local[*]")
    parser.add_argument("--driver-memory", default="1g")
    parser.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="a Spark setting; can be repeated"
    )
    parser.add_argument(
        "--directory", type=Path, default=Path("."), help="directory for the server's log and scratch files"
    )
    arguments = parser.parse_args(argv)
    if invalid := [entry for entry in arguments.conf if not entry.partition("=")[0] or "=" not in entry]:
        parser.error(f"--conf {invalid[0]} is not KEY=VALUE")

    def end(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, end)
    server = ConnectServer.start(
        port=arguments.port,
        master=arguments.master,
        driver_memory=arguments.driver_memory,
        conf=dict(entry.split("=", 1) for entry in arguments.conf),
        directory=arguments.directory,
        own_group=False,
    )
    try:
        if arguments.pid_file is not None:
            scratch = arguments.pid_file.with_suffix(".tmp")
            scratch.write_text(f"{server.process.pid} {server.port}\n")
            scratch.replace(arguments.pid_file)
        print(f"Spark Connect server answers at {server.url}", flush=True)
        return server.process.wait()
    except KeyboardInterrupt:
        return 130
    finally:
        server.stop()
        if arguments.pid_file is not None:
            arguments.pid_file.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
