"""Starts the driver with spark-submit in client mode, so that the driver is a process on this worker."""

from __future__ import annotations

from pathlib import Path

from delta_airflow.hooks.settings import ConnectionSettings
from delta_airflow.runners.driver import driver_environment, driver_program, spark_binary
from delta_airflow.runners.process import Command
from delta_core.jobs import JobSpec

LOCAL_CONF = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
"""Settings for local mode, in which no other machine needs to reach the driver."""


class SparkSubmitCommand:
    """`spark-submit spark_jobs/main.py --spec FILE --result FILE`."""

    name = "spark_submit"

    def __init__(self, settings: ConnectionSettings) -> None:
        self._settings = settings

    def build(self, *, spec_path: Path, result_path: Path, spec: JobSpec) -> Command:
        settings = self._settings
        arguments = [
            spark_binary(settings) or settings.spark_binary,
            "--name",
            f"deltaward-{spec.kind}-{spec.job_id}",
        ]
        if settings.master:
            arguments += ["--master", settings.master]
        arguments += ["--deploy-mode", "client"]
        environment = driver_environment(settings)
        if (settings.master or "local").startswith("local"):
            # Binding to the first network interface would open the driver's ports to the network.
            environment.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            for name, value in LOCAL_CONF.items():
                arguments += ["--conf", f"{name}={value}"]
        arguments += [str(driver_program()), "--spec", str(spec_path), "--result", str(result_path)]
        return Command(arguments=tuple(arguments), environment=environment)
