"""Starts the services of the DAGs: a Spark Connect server and Airflow; on loopback only.

Airflow's services are started one by one instead of by `airflow standalone`, which opens two log servers on
every network interface.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from demo.airflow_api import AirflowApi
from demo.class_archive import submit_options
from demo.environment import Login
from demo.layout import REPOSITORY, Layout
from demo.processes import LOOPBACK, MARK, DemoError, Service, answers, free_port, start, tail

Report = Callable[[str], None]

_SERVICES: Mapping[str, Sequence[str]] = {
    "api-server": ("api-server",),
    "scheduler": ("scheduler", "--skip-serve-logs"),
    "dag-processor": ("dag-processor",),
    "triggerer": ("triggerer", "--skip-serve-logs"),
}


def start_spark_connect(layout: Layout, *, environment: Mapping[str, str]) -> tuple[Service, str]:
    """Start a Spark Connect server; returns it and its URL. It answers once `wait_for_port` has returned."""
    port = free_port()
    directory = layout.home / "spark"
    directory.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "spark_jobs.connect_server", "--port", str(port), "--master", "local[2]"]
    # With Spark's default of 200, a job with a few rows takes twice as long.
    command += ["--conf", "spark.sql.shuffle.partitions=2"]
    service = start(
        "spark-connect",
        [*command, "--directory", str(directory)],
        layout=layout,
        environment={**environment, "SPARK_SUBMIT_OPTS": submit_options()},
        cwd=directory,
    )
    return service, f"sc://{LOOPBACK}:{port}"


def wait_for_port(service: Service, port: int, *, seconds: float) -> None:
    """Wait for the port; raise a DemoError if the service ends or does not answer in time."""
    deadline = time.monotonic() + seconds
    while not answers(port):
        service.require_alive()
        if time.monotonic() > deadline:
            raise DemoError(f"{service.name} did not answer in {seconds:.0f} s.\n{tail(service.log)}")
        time.sleep(0.2)


def migrate(layout: Layout, *, environment: Mapping[str, str]) -> None:
    """Create or migrate Airflow's own database, an SQLite file."""
    log = layout.logs / "db-migrate.log"
    with log.open("wb") as output:
        done = subprocess.run(
            [sys.executable, "-m", "airflow", "db", "migrate"],
            env={**environment, MARK: str(layout.home)},
            cwd=layout.airflow_home,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode:
        raise DemoError(f"`airflow db migrate` ended with code {done.returncode}.\n{tail(log)}")


def start_airflow(layout: Layout, *, environment: Mapping[str, str], triggerer: bool) -> dict[str, Service]:
    """Start Airflow's services. `wait_for_airflow` returns when they are ready.

    Args:
        triggerer: True also starts the triggerer. Only users' own DAGs need it, because the DAGs here defer
            no tasks.
    """
    return {
        name: start(
            f"airflow-{name}",
            [sys.executable, "-m", "airflow", *arguments],
            layout=layout,
            environment=environment,
            cwd=REPOSITORY,
        )
        for name, arguments in _SERVICES.items()
        if triggerer or name != "triggerer"
    }


def wait_for_airflow(
    services: Mapping[str, Service],
    login: Login,
    *,
    dag_ids: Sequence[str],
    seconds: float,
    report: Report,
) -> AirflowApi:
    """Wait until every service is healthy and the DAGs are known, and unpause the DAGs.

    Raises:
        DemoError: a service ended, a DAG file cannot be imported, or the time limit has passed.
    """
    deadline = time.monotonic() + seconds
    api = AirflowApi(login)
    required = {"metadatabase", "scheduler", "dag_processor"} | ({"triggerer"} & set(services))
    missing = list(required)
    while missing:
        for service in services.values():
            service.require_alive()
        if time.monotonic() > deadline:
            raise DemoError(f"Airflow was not ready in {seconds:.0f} s: waiting for {', '.join(missing)}.")
        time.sleep(0.3)
        health = api.health()
        missing = sorted(name for name in required if health.get(name, {}).get("status") != "healthy")
        if not missing:
            if errors := api.import_errors():
                raise DemoError("A DAG file cannot be imported:\n" + "\n".join(errors))
            missing = sorted(set(dag_ids) - api.dag_ids())
        report("waiting for " + ", ".join(missing) if missing else "healthy")
    for dag_id in dag_ids:
        api.unpause(dag_id)
    return api
