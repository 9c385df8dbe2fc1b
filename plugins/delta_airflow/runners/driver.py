"""The program, the interpreter and the environment of a driver in a separate process."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from delta_airflow.hooks.settings import ConnectionSettings
from delta_core.errors import ConfigurationError

STORAGE_OPTIONS_VARIABLE = "DELTAWARD_STORAGE_OPTIONS"
"""JSON object of storage options, in the driver's environment, which only its own user can read."""

SPARK_CONF_VARIABLE = "DELTAWARD_SPARK_CONF"
"""JSON object of settings that the driver sets in its session: secrets, and those of a Connect session."""

# Linux limits a name with its value to 128 KiB, and does not start a program with a longer variable.
_MAX_VARIABLE_CHARACTERS = 120 << 10

CONNECT_TOKEN_VARIABLE = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # noqa: S105 - a name, no secret
"""The variable from which Spark's own Connect client reads its bearer token."""


def interpreter(settings: ConnectionSettings) -> str:
    """The Python interpreter of the driver: that of the connection, or else the current one."""
    return settings.python or sys.executable


def spark_binary(settings: ConnectionSettings) -> str | None:
    """The path of spark-submit on PATH, or beside this interpreter, where pip installs it, or None."""
    beside = os.path.dirname(sys.executable)
    return shutil.which(settings.spark_binary) or shutil.which(settings.spark_binary, path=beside)


def driver_program() -> Path:
    """The path of `spark_jobs/main.py`, found without importing it or its package.

    Raises:
        ConfigurationError: the package is not installed.
    """
    spec = importlib.util.find_spec("spark_jobs")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        program = Path(folder) / "main.py"
        if program.is_file():
            return program
    raise ConfigurationError(
        "The Spark driver `spark_jobs.main` is not installed on this worker.",
        fix="Run `pip install 'deltaward[spark]'` on the workers.",
    )


def _options_text(options: Mapping[str, str]) -> str:
    """The storage options as JSON text for the driver.

    Raises:
        ConfigurationError: the options are too long for an environment variable, so the driver cannot start.
    """
    text = json.dumps(dict(options), sort_keys=True)
    if len(text) > _MAX_VARIABLE_CHARACTERS:
        longest = max(options, key=lambda name: len(options[name]))
        raise ConfigurationError(
            f"The storage options are too long for a driver: {len(text)} characters.",
            cause=f"An environment variable can have at most {_MAX_VARIABLE_CHARACTERS} characters. The "
            f"longest option is {longest!r}.",
            fix="Use a certificate file that contains only the store's own certificates.",
        )
    return text


def driver_environment(
    settings: ConnectionSettings, *, base: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The driver's environment: that of this process without Airflow's settings, plus the job's secrets.

    The `AIRFLOW...` variables may contain the database URL, the Fernet key and other connections. A driver
    needs none of them.
    """
    source = os.environ if base is None else base
    environment = {
        name: value for name, value in source.items() if not name.lstrip("_").startswith("AIRFLOW")
    }
    # The driver's working directory is the run directory, so relative entries would be wrong.
    paths = [os.path.abspath(entry) for entry in environment.pop("PYTHONPATH", "").split(os.pathsep) if entry]
    if settings.python is None:
        own = str(driver_program().parent.parent)
        paths = [*paths, own] if own not in paths else paths
    if paths:
        environment["PYTHONPATH"] = os.pathsep.join(paths)
    environment["PYTHONUNBUFFERED"] = "1"
    # Keeps the script's folder off sys.path, so that its modules cannot be imported as top-level modules.
    environment["PYTHONSAFEPATH"] = "1"
    environment["PYSPARK_PYTHON"] = environment["PYSPARK_DRIVER_PYTHON"] = interpreter(settings)
    if settings.storage_options:
        environment[STORAGE_OPTIONS_VARIABLE] = _options_text(settings.storage_options)
    if settings.connect_token:
        environment[CONNECT_TOKEN_VARIABLE] = settings.connect_token
    return environment
