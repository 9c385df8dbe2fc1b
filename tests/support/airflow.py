"""A migrated Airflow for tests: one SQLite template per run, copied wherever an Airflow home is needed.

`tests/conftest.py` has set AIRFLOW_HOME before this or any other module can import Airflow.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from tests.support.repository import ROOT


@dataclass(frozen=True, slots=True, kw_only=True)
class AirflowHome:
    """An Airflow home of its own, for other processes."""

    path: Path

    @property
    def dags(self) -> Path:
        return self.path / "dags"

    def environment(self, **variables: str) -> dict[str, str]:
        """This process's environment with that home, and with this checkout importable."""
        environment = {
            name: value for name, value in os.environ.items() if not name.lstrip("_").startswith("AIRFLOW")
        }
        return {
            **environment,
            "AIRFLOW_HOME": str(self.path),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.dags),
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(self.path / "no-plugins"),
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "plugins")]),
            **variables,
        }


def connection_json(*, password: str | None = None, **extra: Any) -> str:
    """The value of an AIRFLOW_CONN_ variable for a connection of type deltaward."""
    connection: dict[str, Any] = {"conn_type": "deltaward", "extra": extra}
    if password is not None:
        connection["password"] = password
    return json.dumps(connection)


def run_python(
    code: str, *, environment: Mapping[str, str], cwd: Path, python: str = sys.executable
) -> subprocess.CompletedProcess[str]:
    """Run code in another interpreter and return what came of it."""
    return subprocess.run(
        [python, "-c", code],
        env=dict(environment),
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=1500,
    )


@pytest.fixture(scope="session")
def airflow_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with Airflow's tables and no rows: to copy, not to open. One for all workers of a run."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    home = AirflowHome(path=shared / "airflow-template")
    with FileLock(shared / "airflow-template.lock"):
        if not home.dags.exists():
            _migrate(home)
            home.dags.mkdir()
    return home.path / "airflow.db"


def _migrate(home: AirflowHome) -> None:
    home.path.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "airflow", "db", "migrate"],
        env=home.environment(),
        cwd=home.path,
        capture_output=True,
        text=True,
        check=False,
        timeout=1500,
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.fixture
def airflow_home(airflow_database: Path, tmp_path: Path) -> AirflowHome:
    """A fresh Airflow home with a migrated database, for a process that the test starts."""
    home = AirflowHome(path=tmp_path / "airflow-home")
    home.dags.mkdir(parents=True)
    shutil.copy(airflow_database, home.path / "airflow.db")
    return home


@pytest.fixture
def airflow_connection(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The connection `deltaward_default`, inline, its work_dir below tmp_path; the value is the work_dir."""
    work_dir = tmp_path / "work"
    monkeypatch.setenv("AIRFLOW_CONN_DELTAWARD_DEFAULT", connection_json(work_dir=str(work_dir)))
    return work_dir
