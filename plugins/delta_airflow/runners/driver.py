"""What the runners of a separate driver share: its program, its interpreter, its environment."""

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
"""JSON object of storage options, in the driver's environment: readable by its own user only."""

SPARK_CONF_VARIABLE = "DELTAWARD_SPARK_CONF"
"""JSON object of settings that the driver gives its session: secrets, and those of a Connect session."""

# Linux takes 128 KiB for a name and its value, and refuses to start a program with more.
_MAX_VARIABLE_CHARACTERS = 120 << 10

CONNECT_TOKEN_VARIABLE = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # noqa: S105 - a name, no secret
"""Where Spark's own Connect client looks for its bearer token."""


def interpreter(settings: ConnectionSettings) -> str:
    """The Python that runs the driver: the connection's, else this one."""
    return settings.python or sys.executable


def spark_binary(settings: ConnectionSettings) -> str | None:
    """Where spark-submit is: on PATH, or beside this interpreter, where pip puts pyspark's; else None."""
    beside = os.path.dirname(sys.executable)
    return shutil.which(settings.spark_binary) or shutil.which(settings.spark_binary, path=beside)


def driver_program() -> Path:
    """The path of `spark_jobs/main.py`, found without importing it or its package.

    Raises:
        ConfigurationError: it is not installed beside this package.
    """
    spec = importlib.util.find_spec("spark_jobs")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        program = Path(folder) / "main.py"
        if program.is_file():
            return program
    raise ConfigurationError(
        "The Spark driver `spark_jobs.main` is not installed on this worker",
        fix="pip install 'deltaward[spark]' where the task runs",
    )


def _options_text(options: Mapping[str, str]) -> str:
    """Storage options as the driver reads them.

    Raises:
        ConfigurationError: they are longer than a variable can be; the driver would not start.
    """
    text = json.dumps(dict(options), sort_keys=True)
    if len(text) > _MAX_VARIABLE_CHARACTERS:
        longest = max(options, key=lambda name: len(options[name]))
        raise ConfigurationError(
            f"The storage options are too long for a driver: {len(text)} characters",
            cause=f"A variable takes at most {_MAX_VARIABLE_CHARACTERS}; the longest option is {longest!r}",
            fix="Name a file with the store's own certificates alone, not all that the machine trusts",
        )
    return text


def driver_environment(
    settings: ConnectionSettings, *, base: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The driver's environment: this process's, less Airflow's own settings, plus the job's secrets.

    Airflow keeps its database URL, its Fernet key and other connections in `AIRFLOW...` variables; a
    driver needs none of them.
    """
    source = os.environ if base is None else base
    environment = {
        name: value for name, value in source.items() if not name.lstrip("_").startswith("AIRFLOW")
    }
    # The driver runs in the run directory, so relative entries would point elsewhere.
    paths = [os.path.abspath(entry) for entry in environment.pop("PYTHONPATH", "").split(os.pathsep) if entry]
    if settings.python is None:
        own = str(driver_program().parent.parent)
        paths = [*paths, own] if own not in paths else paths
    if paths:
        environment["PYTHONPATH"] = os.pathsep.join(paths)
    environment["PYTHONUNBUFFERED"] = "1"
    # Keeps the script's folder off sys.path, where modules such as `session` would be found bare.
    environment["PYTHONSAFEPATH"] = "1"
    environment["PYSPARK_PYTHON"] = environment["PYSPARK_DRIVER_PYTHON"] = interpreter(settings)
    if settings.storage_options:
        environment[STORAGE_OPTIONS_VARIABLE] = _options_text(settings.storage_options)
    if settings.connect_token:
        environment[CONNECT_TOKEN_VARIABLE] = settings.connect_token
    return environment
