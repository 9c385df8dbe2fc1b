"""The built wheel in a virtual environment of its own, used by a DAG in a folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable as PeerTable
from deltalake import write_deltalake as peer_write

from tests.support.clean_environment import build_wheel, make_environment
from tests.support.repository import code_blocks

pytestmark = [pytest.mark.e2e, pytest.mark.airflow]


def _run(command: list[str], *, cwd: Path, environment: dict[str, str] | None = None) -> str:
    answer = subprocess.run(
        command,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        stdin=subprocess.DEVNULL,
    )
    assert answer.returncode == 0, f"{command}\n{answer.stdout[-6000:]}\n{answer.stderr[-6000:]}"
    return answer.stdout


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `venv/`, into which only the wheel with the airflow extra was installed."""
    folder = tmp_path_factory.mktemp("elsewhere")
    make_environment(folder, [f"{build_wheel(folder)}[airflow]"])
    return folder


@pytest.fixture(scope="module")
def environment(elsewhere: Path) -> dict[str, str]:
    """What a user's shell has, plus an Airflow home; nothing of this checkout."""
    return {
        "PATH": os.pathsep.join([str(elsewhere / "venv" / "bin"), "/usr/bin", "/bin"]),
        "HOME": str(elsewhere),
        "LANG": "C.UTF-8",
        "AIRFLOW_HOME": str(elsewhere / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(elsewhere / "my_dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW_CONN_DELTAWARD_DEFAULT": json.dumps({"conn_type": "deltaward"}),
    }


def _python(elsewhere: Path, environment: dict[str, str], program: str) -> str:
    return _run([str(elsewhere / "venv/bin/python"), "-c", program], cwd=elsewhere, environment=environment)


def test_the_wheel_holds_our_packages_and_nothing_else(elsewhere: Path, environment: dict[str, str]) -> None:
    program = (
        "from importlib.metadata import files\n"
        "print(*sorted({str(f).split('/')[0] for f in files('deltaward') if '..' not in str(f)}))"
    )
    names = _python(elsewhere, environment, program).split()
    packages = [name for name in names if not name.endswith(".dist-info")]
    assert packages == ["delta_airflow", "delta_core", "pyspark_deltaward", "spark_jobs"]


def test_airflow_finds_the_provider(elsewhere: Path, environment: dict[str, str]) -> None:
    program = (
        "from airflow.providers_manager import ProvidersManager\n"
        "manager = ProvidersManager()\n"
        "print('deltaward' in manager.providers, 'deltaward' in manager.hooks)"
    )
    assert _python(elsewhere, environment, program).splitlines()[-1] == "True True"


def test_a_dag_in_another_folder_runs_the_operators(elsewhere: Path, environment: dict[str, str]) -> None:
    table = elsewhere / "flights"
    for month in (1, 2, 3):
        peer_write(str(table), pa.table({"month": [month] * 4, "delay": [1.0, 2.0, 3.0, 4.0]}), mode="append")
    (shown,) = [block for block in code_blocks("README.md") if "airflow" in block.tags]
    (elsewhere / "my_dags").mkdir()
    (elsewhere / "my_dags" / "flights.py").write_text(shown.body.replace("/data/flights", str(table)))

    airflow = str(elsewhere / "venv/bin/airflow")
    _run([airflow, "db", "migrate"], cwd=elsewhere, environment=environment)
    _run([airflow, "dags", "test", "keep_flights_healthy"], cwd=elsewhere, environment=environment)

    maintained = PeerTable(str(table))
    assert maintained.version() == 3
    assert len(maintained.file_uris()) == 1
    assert maintained.to_pyarrow_table().num_rows == 12
    (latest,) = maintained.history(1)
    assert latest["operation"] == "OPTIMIZE"
    provenance = json.loads(latest["userMetadata"])
    assert provenance["dag"] == "keep_flights_healthy"
    assert provenance["task"] == "optimize"


def test_the_scheduler_side_loads_no_data_library(elsewhere: Path, environment: dict[str, str]) -> None:
    program = (
        "import importlib, pkgutil, sys, delta_airflow\n"
        "for module in pkgutil.walk_packages(delta_airflow.__path__, 'delta_airflow.'):\n"
        "    importlib.import_module(module.name)\n"
        "print(sorted({'pyspark', 'pandas', 'great_expectations'} & set(sys.modules)))"
    )
    assert _python(elsewhere, environment, program).splitlines()[-1] == "[]"
