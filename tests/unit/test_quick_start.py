"""What a process imports before it needs it: a sensor, a command, a scheduled task pays for it each time."""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest

import delta_core
from delta_core import (
    checkpoint,
    dml,
    expressions,
    jobs,
    maintenance,
    scan,
    schema,
    snapshot,
    storage,
    table,
    transaction,
    variants,
    write_deltalake,
)
from tests.support.soak import rounds

PACKAGES = (
    checkpoint,
    dml,
    expressions,
    jobs,
    maintenance,
    scan,
    schema,
    snapshot,
    storage,
    table,
    transaction,
    variants,
)


def loaded_by(program: str, *arguments: str) -> set[str]:
    """The modules that a fresh process has loaded after a program, and the packages that these are of."""
    listing = "\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    answer = subprocess.run(
        [sys.executable, "-c", program + listing, *arguments], capture_output=True, text=True, check=True
    )
    modules = json.loads(answer.stdout.splitlines()[-1])
    return {*modules, *(name.partition(".")[0] for name in modules)}


def test_opening_a_table_loads_nothing_that_changes_or_scans_it() -> None:
    loaded = loaded_by("from delta_core import DeltaTable")
    assert "delta_core.snapshot.snapshot" in loaded
    unwanted = {"sqlglot", "pandas", "obstore", "pydantic", "rich", "typer", "pyspark", "airflow"}
    assert not loaded & unwanted
    assert not {name for name in loaded if name.startswith(("delta_core.dml.", "delta_core.maintenance."))}
    assert not {name for name in loaded if name.startswith(("delta_core.scan.", "delta_core.policies"))}


@pytest.mark.parametrize("predicate", ["y = 'b'", "x > 1", "x = 1 OR y IN ('a', 'b')", "y < 'z' AND x <> 2"])
def test_a_predicate_loads_no_writer_and_no_pandas(predicate: str, tmp_path: Path) -> None:
    rows = pa.table({"x": [1, 2, 3], "y": ["a", "b", "c"], "d": [1.0, 2.0, 3.0]})
    write_deltalake(tmp_path, rows, mode="append")
    loaded = loaded_by(
        "import sys; from delta_core import DeltaTable\n"
        "assert DeltaTable(sys.argv[1]).to_pyarrow_table(filters=sys.argv[2]).num_rows",
        str(tmp_path),
        predicate,
    )
    assert "sqlglot" in loaded
    assert not loaded & {
        "pandas",
        "obstore",
        "pydantic",
        "delta_core.dml.write",
        "delta_core.transaction.committer",
    }


def test_the_help_loads_no_command() -> None:
    loaded = loaded_by(
        "import sys; sys.argv[1:] = ['--help']\n"
        "from delta_core.cli.app import app\n"
        "app(standalone_mode=False)"
    )
    assert "typer" in loaded
    assert not loaded & {"pyarrow", "numpy", "sqlglot", "rich", "pydantic", "spark_jobs"}


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_every_name_on_demand_is_there_and_hidden_by_no_module(package: ModuleType) -> None:
    names = dir(package)
    assert names
    folder = Path(str(package.__file__)).parent
    for name in names:
        if (folder / f"{name}.py").exists():
            importlib.import_module(f"{package.__name__}.{name}")
        assert getattr(package, name) is not None
        assert not isinstance(getattr(package, name), ModuleType)
        assert not (folder / name).exists()


@pytest.mark.parametrize("package", [delta_core, *PACKAGES], ids=lambda package: package.__name__)
def test_a_type_checker_knows_each_name_on_demand_and_no_other(package: object) -> None:
    """A `__getattr__` that it saw would give it any name."""
    tree = ast.parse(Path(str(package.__file__)).read_text())  # type: ignore[attr-defined]
    always = [node for node in tree.body if not isinstance(node, ast.If)]
    assert not any("__getattr__" in ast.dump(node) for node in always)
    (checked,) = [
        node.body
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    known = {name.asname or name.name for node in checked for name in node.names}  # type: ignore[attr-defined]
    assert known >= set(getattr(package, "__all__", dir(package)))


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'delta_core\.dml' has no attribute 'no_such_name'"):
        dml.no_such_name  # noqa: B018
    assert "DeltaTable" in dir(delta_core)


_THREADS = """
import threading
from delta_core import maintenance

names = ["RestorePlan", "apply_restore", "plan_restore"]
together = threading.Barrier(len(names))
failed = []

def load(name):
    together.wait()
    try:
        getattr(maintenance, name)
    except BaseException as error:
        failed.append(f"{name}: {error!r}")

threads = [threading.Thread(target=load, args=(name,)) for name in names]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not failed, failed
"""


@pytest.mark.parametrize("_again", range(rounds(usual=2, soak=100)))
def test_threads_that_load_names_of_one_package_at_once_all_get_them(_again: int) -> None:
    """Before packages were imported first, two of three such processes failed."""
    answer = subprocess.run([sys.executable, "-c", _THREADS], capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stderr) == (0, "")


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_a_star_gives_the_names_on_demand_and_no_other(package: object) -> None:
    given: dict[str, object] = {}
    exec(f"from {package.__name__} import *", given)  # type: ignore[attr-defined]
    assert sorted(given.keys() - {"__builtins__"}) == dir(package)
