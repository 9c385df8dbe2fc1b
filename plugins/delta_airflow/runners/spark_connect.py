"""Starts a small Python driver that is a client of a running Spark Connect server."""

from __future__ import annotations

from pathlib import Path

from delta_airflow.hooks.settings import ConnectionSettings
from delta_airflow.runners.driver import driver_environment, interpreter
from delta_airflow.runners.process import Command
from delta_core.errors import ConfigurationError
from delta_core.jobs.job_spec import JobSpec


class SparkConnectCommand:
    """`python -m spark_jobs.main --remote sc://... --spec FILE --result FILE`."""

    name = "spark_connect"

    def __init__(self, settings: ConnectionSettings) -> None:
        self._settings = settings

    def build(self, *, spec_path: Path, result_path: Path, spec: JobSpec) -> Command:
        settings = self._settings
        if not settings.connect_url:
            raise ConfigurationError(
                "The runner spark_connect needs the address of a Spark Connect server",
                fix="Set the connection's extra `connect_url`, such as sc://127.0.0.1:15002",
            )
        arguments = (
            interpreter(settings),
            "-m",
            "spark_jobs.main",
            "--spec",
            str(spec_path),
            "--result",
            str(result_path),
            "--remote",
            settings.connect_url,
        )
        return Command(
            arguments=arguments, environment=driver_environment(settings), host=settings.driver_socket
        )
