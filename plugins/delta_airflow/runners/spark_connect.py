"""Starts a small Python driver as a client of a running Spark Connect server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from delta_airflow.hooks.settings import ConnectionSettings
from delta_airflow.runners.driver import SPARK_CONF_VARIABLE, driver_environment, interpreter
from delta_airflow.runners.process import Command
from delta_core.errors import ConfigurationError
from delta_core.jobs import JobSpec


class SparkConnectCommand:
    """`python -m spark_jobs.main --remote sc://... --spec FILE --result FILE`.

    Args:
        settings: the settings of the connection.
        conf: settings of the session. They reach the driver through its environment.
        app_name: the name of the session; None: the driver chooses one.
    """

    name = "spark_connect"

    def __init__(
        self,
        settings: ConnectionSettings,
        *,
        conf: Mapping[str, str] | None = None,
        app_name: str | None = None,
    ) -> None:
        self._settings = settings
        self._conf = dict(conf or {})
        self._app_name = app_name

    def build(self, *, spec_path: Path, result_path: Path, spec: JobSpec) -> Command:
        settings = self._settings
        if not settings.connect_url:
            raise ConfigurationError(
                "The runner spark_connect needs the address of a Spark Connect server.",
                fix="Set the connection's extra `connect_url`, such as sc://127.0.0.1:15002.",
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
            *(() if self._app_name is None else ("--app-name", self._app_name)),
        )
        environment = driver_environment(settings)
        if self._conf:
            environment[SPARK_CONF_VARIABLE] = json.dumps(self._conf, sort_keys=True)
        return Command(arguments=arguments, environment=environment)
