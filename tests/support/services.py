"""The services of docker/compose.yaml as processes of this machine, on loopback ports.

Commands, environment, secrets, order of start and health checks are those of the compose file. Hosts, ports
and folders are put in other words, nothing is scheduled, and PostgreSQL is Debian's.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import yaml

from demo.class_archive import SHORT_LIVED, submit_options
from demo.layout import Layout
from demo.processes import LOOPBACK, MARK, DemoError, Service, free_port, start, stop_all, tail
from tests.support.postgres import PostgresServer
from tests.support.repository import ROOT

DOCKER = ROOT / "docker"

HOST_SETTINGS = frozenset(
    {
        "AIRFLOW__API__HOST",
        "DELTAWARD_CONNECT_BIND",
        "DELTAWARD_DRIVER_BIND",
        "DELTAWARD_DRIVER_HOST",
        "SPARK_MASTER_HOST",
    }
)
"""Variables that hold a host and nothing else."""

PORT_SETTINGS = {
    "AIRFLOW__API__PORT": "airflow-api-server:8080",
    "SPARK_MASTER_PORT": "spark-master:7077",
    "SPARK_MASTER_WEBUI_PORT": "spark-master:8080",
    "SPARK_WORKER_WEBUI_PORT": "{service}:8081",
    "DELTAWARD_CONNECT_PORT": "spark-connect:15002",
}
"""Variables that hold a port and nothing else, with the address that it is part of."""

_OTHER_SETTINGS = {"DELTAWARD_MAINTENANCE_SCHEDULE": ""}
"""A DAG that is unpaused gets the run that its schedule has missed, beside the one that a test asks for."""

_NOT_PASSED_ON = ("AIRFLOW", "_AIRFLOW", "SPARK_", "PYSPARK_", "DELTAWARD_", "POSTGRES_")
_CI_MARK = "DELTAWARD_RUN_MARK"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSpec:
    """One service as the compose file has it."""

    name: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    secrets: tuple[str, ...]
    conditions: Mapping[str, str]
    health: tuple[str, ...]


def read_compose() -> dict[str, Any]:
    """The compose file, its anchors and merges resolved."""
    return yaml.safe_load((DOCKER / "compose.yaml").read_text())


def read_environment(path: Path) -> dict[str, str]:
    """A compose environment file: lines of NAME=VALUE, comments and nothing else."""
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def service_specs() -> dict[str, ServiceSpec]:
    """The services that start without a profile, by name."""
    specs = {}
    for name, service in read_compose()["services"].items():
        if service.get("profiles"):
            continue
        environment: dict[str, str] = {}
        for file in service.get("env_file", []):
            environment |= read_environment(DOCKER / file)
        environment |= service.get("environment", {})
        entry = service.get("entrypoint", ["tini", "--", "/opt/services/airflow.sh"])
        specs[name] = ServiceSpec(
            name=name,
            arguments=(*entry[2:], *service.get("command", [])),
            environment=environment,
            secrets=tuple(service.get("secrets", [])),
            conditions={other: wish["condition"] for other, wish in service.get("depends_on", {}).items()},
            health=tuple(service["healthcheck"].get("test", [])[1:]),
        )
    return specs


class Deployment:
    """Starts all services below one folder and ends them again."""

    def __init__(self, home: Path) -> None:
        self.layout = Layout(home=home)
        self.layout.make()
        self.specs = service_specs()
        self.services: dict[str, Service] = {}
        self.postgres = PostgresServer(port=0)
        self.addresses = self._addresses()
        self.postgres = PostgresServer(port=self.port("postgres:5432"))
        self.folders = {
            "/opt/services": DOCKER / "services",
            "/opt/deltaward/bin": Path(sys.executable).parent,
            "/opt/dags": home / "dags",
            "/data": home / "data",
            "/var/log/airflow": self.layout.logs / "tasks",
        }

    def port(self, address: str) -> int:
        """The port in place of a compose address, such as `spark-master:7077`."""
        return int(self.addresses[address].rpartition(":")[2])

    def folder(self, path: str) -> Path:
        """The folder in place of one that all containers share."""
        return self.folders[path]

    def environment(self, service: str) -> dict[str, str]:
        """Everything that a service's process gets as its environment."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(_NOT_PASSED_ON) and name.upper() != "NO_PROXY"
        }
        if _CI_MARK in os.environ:
            kept[_CI_MARK] = os.environ[_CI_MARK]
        programs = [str(Path(sys.executable).parent), kept.get("PATH", os.defpath)]
        return {
            **kept,
            "PATH": os.pathsep.join(programs),
            "NO_PROXY": f"{LOOPBACK},localhost",
            "no_proxy": f"{LOOPBACK},localhost",
            # A short life does not repay what the second compiler costs.
            "JAVA_TOOL_OPTIONS": SHORT_LIVED,
            "SPARK_SUBMIT_OPTS": submit_options(),
            # What a container's own network does: nothing is bound but what the service is reached by.
            "SPARK_LOCAL_IP": LOOPBACK,
            "DELTAWARD_SPARK_HOST": LOOPBACK,
            **self.settings(service),
        }

    def settings(self, service: str) -> dict[str, str]:
        """What compose.yaml and its environment files say, with this machine's hosts, ports and folders."""
        return {
            name: self._translated(service, name, value)
            for name, value in self.specs[service].environment.items()
        }

    def start(self, *, seconds: float) -> None:
        """Start every service once those it depends on are ready; return when all are healthy.

        Raises: DemoError: a service ended or the time is over.
        """
        self._make_secrets()
        deadline = time.monotonic() + seconds
        ready: set[str] = set()
        while len(ready) < len(self.specs):
            for name, spec in self.specs.items():
                if name not in self.services and set(spec.conditions) <= ready:
                    self._launch(spec)
                elif name in self.services and name not in ready and self._ready(spec):
                    ready.add(name)
            if time.monotonic() > deadline:
                raise DemoError(f"Not ready in {seconds:.0f} s: {self.tails(set(self.specs) - ready)}")
            time.sleep(1)

    def tails(self, names: set[str]) -> str:
        """The ends of the services' logs."""
        logs = [(name, self.services[name].log) for name in sorted(names) if name in self.services]
        return "\n".join(f"{name}\n{tail(log, lines=30)}" for name, log in logs) or "nothing was started"

    def stop(self) -> list[str]:
        """End everything, PostgreSQL last; returns a line for each process that could not be ended."""
        services = dict(self.services)
        database = services.pop("postgres", None)
        for service in services.values():
            if service.process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(service.process.pid, signal.SIGTERM)
        _wait_for_end([service.process for service in services.values()], seconds=20)
        if database is not None and database.process.poll() is None:
            # Asked this way it ends its clients; SIGTERM would wait for them.
            database.process.send_signal(signal.SIGINT)
            _wait_for_end([database.process], seconds=10)
        left = stop_all(self.layout, patience_seconds=5)
        self.postgres.remove()
        return left

    def _addresses(self) -> dict[str, str]:
        wanted = {"postgres:5432"} | {
            address.format(service=name)
            for name, spec in self.specs.items()
            for variable, address in PORT_SETTINGS.items()
            if variable in spec.environment
        }
        ports: set[int] = set()
        while len(ports) < len(wanted):
            ports.add(free_port())
        addresses = {
            address: f"{LOOPBACK}:{port}" for address, port in zip(sorted(wanted), ports, strict=True)
        }
        for name, service in read_compose()["services"].items():
            for published in service.get("ports", []) if name in self.specs else []:
                outside, _, inside = published.rpartition(":")
                addresses[outside] = addresses[f"{name}:{inside}"]
        return addresses

    def _translated(self, service: str, name: str, value: str) -> str:
        if name in HOST_SETTINGS:
            return LOOPBACK
        if name in _OTHER_SETTINGS:
            return _OTHER_SETTINGS[name]
        if name in PORT_SETTINGS:
            return str(self.port(PORT_SETTINGS[name].format(service=service)))
        for address, ours in self.addresses.items():
            value = value.replace(address, ours)
        private = self.layout.home / "services" / service
        folders = {
            **self.folders,
            "/run/secrets": private / "secrets",
            "/run/deltaward": private / "run",
            "/opt/airflow": private / "airflow",
            "/var/lib/spark": private / "spark",
        }
        for inside, outside in folders.items():
            value = value.replace(inside, str(outside))
        return value

    def _make_secrets(self) -> None:
        """Made as for a deployment; each service finds those that compose.yaml gives it."""
        source = self.layout.home / "secrets"
        subprocess.run([DOCKER / "secrets.sh", source], check=True, capture_output=True)
        for name, spec in self.specs.items():
            folder = self.layout.home / "services" / name / "secrets"
            folder.mkdir(parents=True)
            for secret in spec.secrets:
                text = (source / secret).read_text()
                (folder / secret).write_text(text.replace("postgres:5432", self.addresses["postgres:5432"]))

    def secrets(self) -> dict[str, str]:
        """Each secret's text by its file's name."""
        return {path.name: path.read_text().strip() for path in (self.layout.home / "secrets").iterdir()}

    def _launch(self, spec: ServiceSpec) -> None:
        environment = self.environment(spec.name)
        if spec.name == "postgres":
            password = (self.layout.home / "services/postgres/secrets/postgres-password").read_text()
            command: Sequence[str] = self.postgres.prepare(spec.environment, password=password)
        else:
            command = [self._translated(spec.name, "", argument) for argument in spec.arguments]
        private = self.layout.home / "services" / spec.name
        (private / "airflow" / "plugins").mkdir(parents=True, exist_ok=True)
        self.services[spec.name] = start(
            spec.name, command, layout=self.layout, environment=environment, cwd=private
        )

    def _ready(self, spec: ServiceSpec) -> bool:
        service = self.services[spec.name]
        if not spec.health:
            code = service.process.poll()
            if code:
                raise DemoError(f"{spec.name} ended with code {code}\n{tail(service.log, lines=40)}")
            return code == 0
        service.require_alive()
        if spec.name == "postgres":
            return self.postgres.ready()
        command = [self._translated(spec.name, "", argument) for argument in spec.health]
        command[0] = sys.executable
        done = subprocess.run(
            command,
            env={**self.environment(spec.name), MARK: str(self.layout.home)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        return done.returncode == 0


def _wait_for_end(processes: Sequence[subprocess.Popen[bytes]], *, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    for process in processes:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=max(0.1, deadline - time.monotonic()))


def listening(processes: Sequence[psutil.Process]) -> set[str]:
    """The addresses that the processes listen on."""
    found: set[str] = set()
    for process in processes:
        with contextlib.suppress(psutil.Error):
            found |= {
                connection.laddr.ip
                for connection in process.net_connections(kind="inet")
                if connection.status == psutil.CONN_LISTEN
            }
    return found
