"""Runs the jobs of a fleet whose policy has `engine: spark`, each in a driver process of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from uuid import uuid4

from delta_core.cli.option_string import ENVIRONMENT_VARIABLE
from delta_core.errors import ConfigurationError, DeltaError, JobFailedError
from delta_core.fleet.plan import Entry
from delta_core.jobs.codec import result_from_json, spec_to_json
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobResult
from delta_core.jobs.job_spec import JobSpec
from delta_core.jobs.run_job import run_job

SPARK: Final = "spark"
"""The engine of a policy whose rewrites run on Spark."""

_DRIVER: Final = "spark_jobs.main"
_TAIL: Final = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkDriver:
    """Runs jobs: those for Spark in a driver process, the others in this process.

    Attributes:
        remote: URL of a Spark Connect server, `sc://host:port`.
        master: Spark master, such as `local[2]`, without a Connect server.
    """

    remote: str | None = None
    master: str | None = None

    def run(self, spec: JobSpec, context: JobContext) -> JobResult:
        """Run a job; a driver that ends without a result becomes a failed one. Never raises a DeltaError."""
        if spec.engine != SPARK:
            return run_job(spec, context)
        try:
            return self._driven(spec, context)
        except (DeltaError, OSError) as error:
            failed = error if isinstance(error, DeltaError) else _failed(spec, f"{error}.")
            return context.failed(spec, failed)

    def _driven(self, spec: JobSpec, context: JobContext) -> JobResult:
        place = [("--remote", self.remote), ("--master", self.master)]
        options = [part for name, value in place if value for part in (name, value)]
        with tempfile.TemporaryDirectory(prefix="deltaward-fleet-") as folder:
            described, result = Path(folder) / "spec.json", Path(folder) / "result.json"
            described.write_text(spec_to_json(spec if spec.job_id else _named(spec)), encoding="utf-8")
            done = subprocess.run(
                [sys.executable, "-m", _DRIVER, "--spec", str(described), "--result", str(result), *options],
                # The options may hold secrets, so they are not arguments.
                env={**os.environ, ENVIRONMENT_VARIABLE: json.dumps(dict(context.storage_options))},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
            if not result.exists():
                raise _failed(spec, f"The driver ended with code {done.returncode}: {done.stderr[-_TAIL:]}")
            return result_from_json(result.read_text(encoding="utf-8"))


def require_spark(entries: Iterable[Entry]) -> None:
    """Check that verbs for Spark can run in this environment.

    Raises:
        ConfigurationError: a verb has the engine `spark`, and PySpark is not installed.
    """
    wanted = next((entry for entry in entries if entry.engine == SPARK), None)
    if wanted is not None and importlib.util.find_spec("pyspark") is None:
        raise ConfigurationError(
            f"The policy of {wanted.name!r} has engine: spark, and PySpark is not installed.",
            fix="Install deltaward[spark], or use a fleet_dag whose connection has a Spark runner.",
        )


def _named(spec: JobSpec) -> JobSpec:
    return replace(spec, job_id=uuid4().hex)


def _failed(spec: JobSpec, cause: str) -> JobFailedError:
    return JobFailedError(f"The {spec.kind} job on Spark left no result.", cause=cause)
