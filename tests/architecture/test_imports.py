"""The one direction, and that importing stays cheap."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.repository import ROOT, python_files

HEAVY = ("pyarrow", "numpy", "pandas", "pyspark", "airflow", "sqlglot", "pydantic", "rich", "typer")
MAX_MODULES_OF_IMPORT_DELTA_CORE = 60
FORBIDDEN_UNDER_AIRFLOW = ("pyspark", "pandas", "great_expectations")
PATHS = os.pathsep.join([str(ROOT), str(ROOT / "plugins")])


def _loaded_by(statement: str, **environment: str) -> set[str]:
    """The modules that a fresh interpreter has after a statement, less those it starts with."""
    program = (
        "import sys, json; before = set(sys.modules)\n"
        f"{statement}\n"
        "print('\\n' + json.dumps(sorted(set(sys.modules) - before)))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": PATHS, **environment},
    )
    assert answer.returncode == 0, answer.stderr
    return set(json.loads(answer.stdout.splitlines()[-1]))


def _lint_imports(directory: Path) -> subprocess.CompletedProcess[str]:
    """Check the import contracts of the checkout in a directory."""
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    return subprocess.run(
        [sys.executable, "-c", program, "--no-cache"],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(directory), str(directory / "plugins")])},
    )


def test_the_import_contracts_hold() -> None:
    answer = _lint_imports(ROOT)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "0 broken" in answer.stdout


def test_importing_delta_core_is_light() -> None:
    loaded = _loaded_by("import delta_core")
    assert {name for name in loaded if name.split(".")[0] in HEAVY} == set()
    assert len(loaded) <= MAX_MODULES_OF_IMPORT_DELTA_CORE, sorted(loaded)


@pytest.mark.slow
@pytest.mark.airflow
def test_what_airflow_imports_loads_no_data_library() -> None:
    modules = [
        ".".join(path.with_suffix("").parts[1:]).removesuffix(".__init__")
        for path in python_files("plugins")
        if path.parts[1] == "delta_airflow"
    ]
    loaded = _loaded_by("\n".join(f"import {module}" for module in modules))
    assert {
        name for name in loaded if name.split(".")[0] in ("pyspark", "pandas", "great_expectations")
    } == set()


@pytest.mark.slow
@pytest.mark.airflow
def test_parsing_the_dags_loads_no_data_library() -> None:
    dags = [path for path in python_files("dags") if len(path.parts) == 2]
    loaded = _loaded_by(
        "import runpy\n" + "\n".join(f"runpy.run_path({str(ROOT / path)!r})" for path in dags),
    )
    assert {
        name for name in loaded if name.split(".")[0] in ("pyspark", "pandas", "great_expectations")
    } == set()


def test_the_dags_reach_data_only_through_the_plugin() -> None:
    forbidden = {"spark_jobs", "pyspark", "pandas", "great_expectations", "deltalake", "duckdb", "obstore"}
    reached = []
    for path in python_files("dags"):
        for node in ast.walk(ast.parse((ROOT / path).read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            reached += [f"{path}: {name}" for name in names if name.split(".")[0] in forbidden]
    assert not reached, "\n".join(reached)


@pytest.mark.parametrize(
    ("path", "statement", "contract"),
    [
        ("delta_core/storage/local.py", "import delta_core.table", "the layers of delta_core"),
        ("delta_core/scan/scan.py", "import pandas", "no pandas"),
        ("delta_core/jobs/registry.py", "import spark_jobs.main", "never between the two"),
        ("spark_jobs/session.py", "import delta_airflow.plugin", "never between the two"),
        ("spark_jobs/writer/write.py", "import spark_jobs.quality.gate", "the layers of spark_jobs"),
        ("spark_jobs/quality/row_tests.py", "import spark_jobs.quality.rules", "no circles"),
        ("plugins/delta_airflow/links.py", "import pyspark.sql", "what Airflow imports"),
        ("delta_core/scan/scan.py", "import sqlglot", "sqlglot only"),
        ("delta_core/jobs/codec.py", "import pydantic", "pydantic only"),
        ("delta_core/table/delta_table.py", "import rich.console", "typer and rich only"),
    ],
)
def test_the_import_contracts_catch_what_breaks_them(
    tmp_path: Path, path: str, statement: str, contract: str
) -> None:
    for folder in ("delta_core", "spark_jobs", "plugins"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with (tmp_path / path).open("a") as file:
        file.write(f"\n{statement}\n")
    answer = _lint_imports(tmp_path)
    assert answer.returncode == 1
    broken = [line for line in answer.stdout.splitlines() if " BROKEN" in line]
    assert any(contract in line for line in broken), answer.stdout
