"""The provider as Airflow's own processes see it: found by entry points, light, registered once."""

from __future__ import annotations

import json
import tomllib
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from delta_airflow.provider_info import get_provider_info
from tests.support.airflow import AirflowHome, run_python
from tests.support.repository import ROOT

_DAG = """
from __future__ import annotations
from airflow.sdk import DAG
from delta_airflow.assets import table_asset
from delta_airflow.operators.checkpoint import DeltaCheckpointOperator
from delta_airflow.operators.job import DeltaJobOperator
from delta_airflow.operators.load import DeltaLoadOperator
from delta_airflow.operators.optimize import DeltaOptimizeOperator
from delta_airflow.operators.restore import DeltaRestoreOperator
from delta_airflow.operators.vacuum import DeltaVacuumOperator
from airflow.sdk import task
from delta_airflow.operators.clone import DeltaCloneOperator
from delta_airflow.operators.convert import DeltaConvertOperator
from delta_airflow.operators.fsck import DeltaFsckOperator
from delta_airflow.operators.properties import DeltaPropertiesOperator
from delta_airflow.operators.verify import DeltaVerifyOperator
from delta_airflow.sensors.freshness import DeltaFreshnessSensor
from delta_airflow.sensors.partition import DeltaPartitionSensor
from delta_airflow.sensors.table_version import DeltaTableVersionSensor


@task.delta_table(table_uri="/data/t")
def count(table, at_least: int):
    return at_least


@task.deltaward(kind="optimize", table_uri="/data/t")
def compacted(size: int):
    return {"target_size_bytes": size}


with DAG("all_of_them", schedule=None):
    table = "/data/t"
    source = {"format": "parquet", "uris": ["/in"]}
    load = DeltaLoadOperator(task_id="load", table_uri=table, source=source, outlets=[table_asset(table)])
    wait = DeltaTableVersionSensor(task_id="wait", table_uri=table, version=1, deferrable=True)
    load >> wait
    wait >> DeltaOptimizeOperator.partial(task_id="optimize").expand(table_uri=[table, "/data/u"])
    wait >> DeltaVacuumOperator(task_id="vacuum", table_uri=table)
    wait >> DeltaRestoreOperator(task_id="restore", table_uri=table, version="{{ params.version }}")
    wait >> DeltaCheckpointOperator(task_id="checkpoint", table_uri=table)
    wait >> DeltaJobOperator(task_id="observe", table_uri=table, kind="observe")
    wait >> DeltaVerifyOperator(task_id="verify", table_uri=table, commits=load.output)
    wait >> DeltaFsckOperator(task_id="fsck", table_uri=table)
    wait >> DeltaCloneOperator(task_id="clone", table_uri="/data/c", source_uri=table)
    wait >> DeltaConvertOperator(task_id="convert", table_uri="/data/d", partition_by={"day": "date"})
    unset = ["delta.appendOnly"]
    wait >> DeltaPropertiesOperator(task_id="properties", table_uri=table, unset=unset)
    wait >> DeltaPartitionSensor(task_id="partition", table_uri=table, partition={"day": "{{ ds }}"})
    wait >> DeltaFreshnessSensor(task_id="freshness", table_uri=table, max_age_minutes=5)
    wait >> count(1) >> compacted.expand(size=[1, 2])
"""

_SEEN = """
import importlib, json, pkgutil, sys
import delta_airflow

# The inline runner brings the job code and with it what pyarrow loads for data. Only a task that runs
# inline imports it, by name; if any other module did, it would be in sys.modules at the end.
INLINE = "delta_airflow.runners.inline"
# So does what reads partitions; a trigger imports it when it runs.
PARTITIONS = "delta_airflow.conditions.partition"
modules = [
    module.name
    for module in pkgutil.walk_packages(delta_airflow.__path__, "delta_airflow.")
    if module.name not in (INLINE, PARTITIONS)
]
for module in modules:
    importlib.import_module(module)

from airflow.dag_processing.dagbag import DagBag
from airflow.plugins_manager import get_import_errors, _get_plugins
from airflow.providers_manager import ProvidersManager
from airflow.sdk import Asset
from airflow.serialization.serialized_objects import DagSerialization

manager = ProvidersManager()
manager.initialize_providers_hooks()
fields = {
    name: widget.field
    for name, widget in manager.connection_form_widgets.items()
    if name.startswith("extra__deltaward__")
}
bag = DagBag(sys.argv[1] if len(sys.argv) > 1 else None)
dag = bag.dags["all_of_them"]
serialized = DagSerialization.from_dict(DagSerialization.to_dict(dag))
plugins = [plugin for plugin in _get_plugins()[0] if plugin.name == "deltaward"]
print("SEEN " + json.dumps({
    "modules": modules,
    "hook": manager.hooks["deltaward"].hook_class_name,
    "testable": manager.hooks["deltaward"].connection_testable,
    "fields": sorted(fields),
    "behaviour": manager.field_behaviours["deltaward"],
    "provider": manager.providers["deltaward"].data["name"],
    "asset": Asset("delta://LOCAL/data//t/").uri,
    "factory": manager.asset_factories["delta"](table_uri="s3://b/t", extra=None).uri,
    "converter": manager.asset_to_openlineage_converters["delta"].__name__,
    "import_errors": {str(key): str(value) for key, value in bag.import_errors.items()},
    "tasks": sorted(dag.task_ids),
    "links": sorted(serialized.get_task("load").extra_links),
    "mapped_links": sorted(serialized.get_task("optimize").extra_links),
    "plugins": len(plugins),
    "plugin_errors": {str(key): str(value) for key, value in get_import_errors().items()},
    "heavy": sorted({"pyspark", "pandas", "great_expectations", INLINE, PARTITIONS} & set(sys.modules)),
    "bare": sorted({"plugin", "links", "assets", "keeper", "provider_info"} & set(sys.modules)),
}))
"""


def install_metadata(folder: Path) -> None:
    """Make the checkout look installed where it is not: its distribution metadata, from pyproject.toml."""
    if next(distributions(name="deltaward"), None) is not None:
        return
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    info = folder / f"deltaward-{project['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    groups = {"console_scripts": project.get("scripts", {}), **project["entry-points"]}
    (info / "entry_points.txt").write_text(
        "\n".join(
            f"[{group}]\n" + "\n".join(f"{name} = {target}" for name, target in entries.items())
            for group, entries in groups.items()
        )
    )


@pytest.fixture(scope="module")
def seen(airflow_database: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a fresh process sees that imports everything, with the plugins folder set to ours."""
    home = AirflowHome(path=tmp_path_factory.mktemp("provider"))
    home.dags.mkdir()
    (home.dags / "all_of_them.py").write_text(_DAG)
    (home.path / "airflow.db").write_bytes(airflow_database.read_bytes())
    install_metadata(home.path / "metadata")
    environment = home.environment(AIRFLOW__CORE__PLUGINS_FOLDER=str(ROOT / "plugins"))
    environment["PYTHONPATH"] = f"{home.path / 'metadata'}:{environment['PYTHONPATH']}"
    done = run_python(_SEEN, environment=environment, cwd=home.path)
    lines = [line for line in done.stdout.splitlines() if line.startswith("SEEN ")]
    assert lines, done.stderr[-4000:]
    value: dict[str, Any] = json.loads(lines[0].removeprefix("SEEN "))
    return value


def test_the_provider_info_fits_airflows_schema() -> None:
    import airflow

    schema = json.loads((Path(airflow.__path__[0]) / "provider_info.schema.json").read_text())
    jsonschema.validate(get_provider_info(), schema)


def test_everything_the_provider_info_names_exists() -> None:
    import importlib

    info = get_provider_info()
    for section in ("operators", "sensors", "hooks", "triggers"):
        for entry in info[section]:
            for module in entry["python-modules"]:
                importlib.import_module(module)
    parts = ("handler", "factory", "to_openlineage_converter")
    names = [*info["extra-links"], *(entry[part] for entry in info["asset-uris"] for part in parts)]
    names += [entry["hook-class-name"] for entry in info["connection-types"]]
    names += [entry["class-name"] for entry in info["task-decorators"]]
    for name in names:
        module, _, attribute = name.rpartition(".")
        assert getattr(importlib.import_module(module), attribute)


@pytest.mark.slow
def test_nothing_a_scheduler_imports_loads_spark_pandas_or_great_expectations(seen: dict[str, Any]) -> None:
    assert seen["heavy"] == []
    assert "delta_airflow.operators.load" in seen["modules"]
    assert "delta_airflow.runners.process" in seen["modules"]


def test_airflow_finds_the_connection_type_and_its_form(seen: dict[str, Any]) -> None:
    assert seen["provider"] == "Deltaward"
    assert seen["hook"] == "delta_airflow.hooks.deltaward.DeltawardHook"
    assert seen["testable"] is True
    assert "extra__deltaward__runner" in seen["fields"]
    assert seen["behaviour"]["relabeling"] == {"password": "Spark Connect token"}


def test_airflow_finds_the_asset_scheme(seen: dict[str, Any]) -> None:
    assert seen["asset"] == "delta://local/data/t"
    assert seen["factory"] == "delta://s3/b/t"
    assert seen["converter"] == "convert_asset_to_openlineage"


def test_a_dag_with_every_operator_parses_and_keeps_its_links(seen: dict[str, Any]) -> None:
    assert seen["import_errors"] == {}
    assert len(seen["tasks"]) == 16
    assert seen["links"] == seen["mapped_links"] == ["Job result", "Table events"]


def test_the_plugin_is_loaded_once_even_from_our_plugins_folder(seen: dict[str, Any]) -> None:
    assert seen["plugins"] == 1
    assert seen["plugin_errors"] == {}
    assert seen["bare"] == []
