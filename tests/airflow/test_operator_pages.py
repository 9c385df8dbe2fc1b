"""The page of each operator: its DAG does on real tables what the page says, and no argument is left out.

Loads and merges need Spark: test_docs.py checks their jobs and runs the load.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable as PeerTable
from deltalake import write_deltalake as peer_write

from delta_airflow.decorators.delta_table import DeltaTableDecoratedOperator
from delta_airflow.operators.approval import DeltaApprovalOperator
from delta_airflow.operators.base import DeltaTableOperator
from delta_airflow.operators.checkpoint import DeltaCheckpointOperator
from delta_airflow.operators.cleanup import DeltaCleanupOperator
from delta_airflow.operators.clone import DeltaCloneOperator
from delta_airflow.operators.convert import DeltaConvertOperator
from delta_airflow.operators.delete import DeltaDeleteOperator
from delta_airflow.operators.fsck import DeltaFsckOperator
from delta_airflow.operators.job import DeltaJobOperator
from delta_airflow.operators.load import DeltaLoadOperator
from delta_airflow.operators.merge import DeltaMergeOperator
from delta_airflow.operators.optimize import DeltaOptimizeOperator
from delta_airflow.operators.plan import DeltaPlanOperator
from delta_airflow.operators.properties import DeltaPropertiesOperator
from delta_airflow.operators.restore import DeltaRestoreOperator
from delta_airflow.operators.spark_base import SparkOperator
from delta_airflow.operators.sql import DeltaSqlOperator
from delta_airflow.operators.update import DeltaUpdateOperator
from delta_airflow.operators.vacuum import DeltaVacuumOperator
from delta_airflow.operators.verify import DeltaVerifyOperator
from delta_airflow.provider_info import get_provider_info
from delta_airflow.sensors.freshness import DeltaFreshnessSensor
from delta_airflow.sensors.partition import DeltaPartitionSensor
from delta_airflow.sensors.table_version import DeltaTableVersionSensor
from delta_airflow.task_groups.maintenance import delta_maintenance
from delta_airflow.triggers.table_version import DeltaTableVersionTrigger
from delta_core.jobs.kinds import BUILTIN_KINDS
from spark_jobs.job_kinds import DELETE, LOAD, MERGE, SQL, UPDATE
from tests.support.airflow import AirflowHome
from tests.support.documented_dags import DOCUMENT, run_examples, write_examples
from tests.support.repository import ROOT, code_blocks

PAGES = ROOT / "docs" / "operators"
PAGE_OF = {
    DeltaApprovalOperator: "approval",
    DeltaCheckpointOperator: "checkpoint",
    DeltaCleanupOperator: "cleanup",
    DeltaCloneOperator: "clone",
    DeltaConvertOperator: "convert",
    DeltaDeleteOperator: "delete",
    DeltaFreshnessSensor: "freshness_sensor",
    DeltaFsckOperator: "fsck",
    DeltaJobOperator: "job",
    DeltaLoadOperator: "load",
    DeltaMergeOperator: "merge",
    DeltaOptimizeOperator: "optimize",
    DeltaPartitionSensor: "partition_sensor",
    DeltaPlanOperator: "plan",
    DeltaPropertiesOperator: "properties",
    DeltaRestoreOperator: "restore",
    DeltaSqlOperator: "sql",
    DeltaUpdateOperator: "update",
    DeltaVacuumOperator: "vacuum",
    DeltaTableVersionSensor: "table_version_sensor",
    DeltaVerifyOperator: "verify",
}
DECORATOR_PAGES = {"delta_table": "task_delta_table", "deltaward": "task_deltaward"}
DAY_SECONDS = 24 * 3600
VISITS = ("fresh.parquet", "recent.parquet", "expired.parquet")
"""Files that the table does not reference: of now, of 10 days ago and of 40 days ago."""

LAYOUT, LAYOUT_AGAIN = "file_layout", "file_layout={}"
PREVIEW, VACUUM = "visits_vacuum", 'visits_vacuum={"dry_run": false}'
REJECTED, APPROVED = "visits_cleanup@bob:Reject", "visits_cleanup@ann"
LOG, LOG_AGAIN = "ledger_log", "ledger_log={}"
OBSERVE, WAIT = "observe_tables", "after_the_first_change"
UPKEEP, UPKEEP_AGAIN = "clicks_upkeep", "clicks_upkeep={}"
CHECKED, FSCK, SETTINGS, CLEANED = "views_checked", "views_fsck", "views_settings", "views_log"
BACKUP, CONVERT, COUNTED, ORDERED = "orders_backup", "readings_convert", "flights_counted", "hits_ordered"
DELIVERED, FRESH, LAKE = "after_january", "while_fresh", "lake_upkeep"
MORE_RUNS = [UPKEEP, UPKEEP_AGAIN, CHECKED, FSCK, SETTINGS, CLEANED, BACKUP, CONVERT, COUNTED, ORDERED]
RUNS = [OBSERVE, WAIT, LAYOUT, LAYOUT_AGAIN, PREVIEW, VACUUM, REJECTED, APPROVED, LOG, LOG_AGAIN]
RUNS += [*MORE_RUNS, DELIVERED, FRESH, LAKE]


def rows_of_table(text: str, head: str) -> list[list[str]]:
    """The cells of the Markdown table whose first column is called `head`."""
    table = text[text.index(f"| {head} |") :].split("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def names_in(text: str) -> set[str]:
    """What is written as code."""
    return set(re.findall(r"`(\w+)`", text))


def arguments(operator: type) -> set[str]:
    """An operator's own arguments, without those of its base."""
    own = vars(operator).get("__init__")
    return set() if own is None else set(inspect.signature(own).parameters) - {"self", "kwargs"}


# ------------------------------------------------------------ what the pages say


def test_every_public_operator_and_sensor_has_its_page() -> None:
    info = get_provider_info()
    public = set()
    for section in ("operators", "sensors"):
        for name in (name for entry in info[section] for name in entry["python-modules"]):
            module = vars(importlib.import_module(name))
            public |= {
                value for value in module.values() if inspect.isclass(value) and value.__module__ == name
            }
    assert public == PAGE_OF.keys()
    pages = {*PAGE_OF.values(), *DECORATOR_PAGES.values()}
    assert {path.stem for path in PAGES.glob("*.md")} == pages
    listed = rows_of_table((ROOT / DOCUMENT).read_text(), "Operator")
    assert {row[0] for row in listed} == {
        f"[{operator.__name__}](operators/{page}.md)" for operator, page in PAGE_OF.items()
    }


@pytest.mark.parametrize(("operator", "page"), PAGE_OF.items())
def test_a_page_lists_every_argument_and_uses_its_operator(operator: type, page: str) -> None:
    text = (PAGES / f"{page}.md").read_text()
    if own := arguments(operator):
        assert {name for row in rows_of_table(text, "Argument") for name in names_in(row[0])} == own
    else:
        assert "no arguments of its own" in text
    blocks = [block for block in code_blocks(f"docs/operators/{page}.md") if block.language == "python"]
    assert any(f"{operator.__name__}" in block.body for block in blocks)


def test_every_public_decorator_has_its_page() -> None:
    public = {entry["name"] for entry in get_provider_info()["task-decorators"]}
    assert public == DECORATOR_PAGES.keys()
    listed = rows_of_table((ROOT / DOCUMENT).read_text(), "Decorator")
    assert {row[0] for row in listed} == {
        f"[@task.{name}](operators/{page}.md)" for name, page in DECORATOR_PAGES.items()
    }
    for name, page in DECORATOR_PAGES.items():
        blocks = [block for block in code_blocks(f"docs/operators/{page}.md") if block.language == "python"]
        assert any(f"@task.{name}(" in block.body for block in blocks)
    rows = rows_of_table((PAGES / "task_delta_table.md").read_text(), "Argument")
    own = arguments(DeltaTableDecoratedOperator) - {"python_callable"}
    assert {name for row in rows for name in names_in(row[0])} == own


def test_the_maintenance_page_lists_the_arguments_of_its_factory() -> None:
    text = (ROOT / "docs" / "dags" / "table_maintenance.md").read_text()
    rows = rows_of_table(text, "Argument of `delta_maintenance`")
    expected = set(inspect.signature(delta_maintenance).parameters) - {"arguments"}
    assert {name for row in rows for name in names_in(row[0])} == expected


def test_the_sensors_page_lists_the_arguments_of_its_trigger() -> None:
    _, text = (PAGES / "table_version_sensor.md").read_text().split("`DeltaTableVersionTrigger`")
    listed = {name for row in rows_of_table(text, "Argument") for name in names_in(row[0])}
    assert listed == arguments(DeltaTableVersionTrigger)


def test_the_shared_arguments_are_listed_once_for_all() -> None:
    rows = rows_of_table((ROOT / DOCUMENT).read_text(), "Shared argument")
    assert {name for row in rows for name in names_in(row[0])} == arguments(DeltaTableOperator)
    assert set(DeltaTableOperator.template_fields) == arguments(DeltaTableOperator) | arguments(SparkOperator)


def test_what_operators_say_to_spark_is_listed_once_for_all() -> None:
    rows = rows_of_table((ROOT / "docs" / "spark-connections.md").read_text(), "Spark argument")
    assert {name for row in rows for name in names_in(row[0])} == arguments(SparkOperator)


def test_the_jobs_page_lists_every_kind_and_the_parameters_of_those_without_a_page() -> None:
    text = (PAGES / "job.md").read_text()
    rows = rows_of_table(text, "Kind")
    kinds = {kind.name: kind for kind in (*BUILTIN_KINDS, LOAD, MERGE, DELETE, UPDATE, SQL)}
    assert {name for row in rows for name in names_in(row[0])} == kinds.keys()
    for cell, _, parameters in rows:
        for name in names_in(cell) - set(PAGE_OF.values()):
            assert names_in(parameters) == kinds[name].params_schema["properties"].keys(), name


def test_job_parameters_as_a_template_of_json_keep_their_types() -> None:
    (template,) = re.findall(r"`'(\{\"version_from.*\})'`", (PAGES / "job.md").read_text())
    operator = DeltaJobOperator(task_id="t", table_uri="/t", kind="verify", job_parameters=template)
    operator.render_template_fields({"params": {"version": 3}})  # type: ignore[typeddict-item]
    assert operator.job_params() == {"version_from": 3}


# ------------------------------------------------------------ what the DAGs do


def age(path: Path, *, days: float) -> None:
    then = time.time() - days * DAY_SECONDS
    os.utime(path, (then, then))


def make_tables(data: Path) -> None:
    """What the pages' DAGs work on."""
    for month in (1, 2, 3):
        peer_write(data / "flights", pa.table({"month": [month] * 4}), mode="append")
    peer_write(data / "orders", pa.table({"id": [1, 2]}))
    for month in ("2026-01", "2026-01", "2026-01", "2026-02", "2026-02"):
        events = pa.table({"id": [1, 2], "month": [month] * 2})
        peer_write(data / "events", events, mode="append", partition_by=["month"])
    for day in range(3):
        trips = pa.table({"origin": ["EWR", "JFK"], "dest": ["ORD", "LAX"], "day": [day, day]})
        peer_write(data / "trips", trips, mode="append")
    for name in ("clicks", "views", "hits"):
        for number in range(3):
            rows = pa.table({"page": [f"p{number}", "p9"], "day": [number, number]})
            peer_write(data / name, rows, mode="append")
    for number in (1, 2):
        folder = data / "readings" / f"day=2026-01-0{number}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"value": [number, number]}), folder / "a.parquet")
    (data / "policies.yaml").write_text(f"tables: {{views: {{uri: {data}/views}}}}")
    peer_write(data / "visits", pa.table({"id": [1]}))
    for live in (data / "visits").glob("*.parquet"):
        age(live, days=50)
    for name, days in zip(VISITS, (0, 10, 40), strict=True):
        (data / "visits" / name).write_bytes(b"x" * 100)
        age(data / "visits" / name, days=days)
    for amount in (1, 2, 3):
        peer_write(data / "ledger", pa.table({"amount": [amount]}), mode="append")
    PeerTable(data / "ledger").create_checkpoint()
    expired = list((data / "ledger" / "_delta_log").iterdir())
    peer_write(data / "ledger", pa.table({"amount": [4]}), mode="append")
    for file in expired:
        age(file, days=40)


class Ran:
    """The runs of the pages' DAGs, and what they left."""

    def __init__(self, seen: dict[str, Any], data: Path) -> None:
        self.seen = seen
        self.data = data

    def result(self, run: str, task: str) -> Any:
        """What a task of a run returned."""
        return self.seen[run]["xcoms"][f"{task}[-1]"]

    def rows(self, table: str) -> list[dict[str, Any]]:
        """The table's rows, read by another engine."""
        return PeerTable(self.data / table).to_pyarrow_table().to_pylist()  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def ran(airflow_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    home = AirflowHome(path=tmp_path_factory.mktemp("pages"))
    home.dags.mkdir()
    shutil.copy(airflow_database, home.path / "airflow.db")
    data = home.path / "data"
    make_tables(data)
    write_examples(home, data=data)
    return Ran(run_examples(home, *RUNS, data=data), data)


@pytest.mark.slow
def test_every_run_ends_well_without_spark(ran: Ran) -> None:
    assert {run: ran.seen[run]["state"] for run in RUNS} == dict.fromkeys(RUNS, "success")
    assert ran.seen["spark_loaded"] is False


@pytest.mark.slow
def test_a_job_of_any_kind_is_mapped_over_tables(ran: Ran) -> None:
    report = {(ran.data / "flights").as_uri(): 3, (ran.data / "orders").as_uri(): 1}
    assert ran.result(OBSERVE, "report") == report


@pytest.mark.slow
def test_the_sensor_returns_the_latest_version(ran: Ran) -> None:
    assert ran.result(WAIT, "changed") == 2


@pytest.mark.slow
def test_optimizing_changes_the_files_and_no_row_and_only_once(ran: Ran) -> None:
    compact, order = (ran.result(LAYOUT, task) for task in ("compact", "order"))
    assert (compact["commits"], order["commits"]) == ([5], [3])
    assert (compact["actual"]["files_removed"], compact["actual"]["files_added"]) == (3, 1)
    assert (order["actual"]["files_removed"], order["actual"]["files_added"]) == (3, 1)
    for task in ("compact", "order"):
        again = ran.result(LAYOUT_AGAIN, task)
        assert again["commits"] == []
        assert again["version_to"] == again["version_from"]
    files = PeerTable(ran.data / "events").file_uris()
    assert [sum(f"month={month}" in file for file in files) for month in ("2026-01", "2026-02")] == [1, 2]
    assert len(ran.rows("events")) == 10
    trips = sorted((row["origin"], row["dest"], row["day"]) for row in ran.rows("trips"))
    assert trips == [(o, d, day) for o, d in (("EWR", "ORD"), ("JFK", "LAX")) for day in range(3)]


@pytest.mark.slow
def test_a_vacuum_plans_and_then_deletes_what_the_retention_allows(ran: Ran) -> None:
    plan, deleted = ran.result(PREVIEW, "vacuum"), ran.result(VACUUM, "vacuum")
    (file,) = plan["output"]["plan"]["files"]
    assert file["path"] == "expired.parquet"
    assert {"size_bytes", "age_hours", "reason"} <= file.keys()
    assert plan["commits"] == []
    assert plan["actual"] == {}
    assert deleted["commits"] == [1, 2]
    assert plan["predicted"] == deleted["predicted"]
    assert plan["predicted"].keys() == {"files_deleted", "bytes_deleted", "files_kept", "bytes_kept"}
    assert deleted["actual"] == {"files_deleted": 1, "bytes_deleted": 100, "files_kept_after_all": 0}
    assert ran.rows("visits") == [{"id": 1}]


@pytest.mark.slow
def test_nothing_is_deleted_before_a_person_approves(ran: Ran) -> None:
    assert ran.seen[REJECTED]["states"] == {
        "plan[-1]": "success",
        "approve[-1]": "success",
        "delete[-1]": "skipped",
    }
    # Rejected, the file of 10 days ago was still there for the second run to ask about.
    for run in (REJECTED, APPROVED):
        assert ran.result(run, "plan")["predicted"]["files_deleted"] == 1
    assert ran.result(APPROVED, "delete")["commits"] == [3, 4]
    assert {path.name for path in (ran.data / "visits").iterdir()} & set(VISITS) == {"fresh.parquet"}
    (end,) = PeerTable(ran.data / "visits").history(1)
    assert end["operation"] == "VACUUM END"
    assert json.loads(end["userMetadata"])["approver"] == "ann"


@pytest.mark.slow
def test_a_checkpoint_is_written_once_and_the_log_behind_an_old_one_goes(ran: Ran) -> None:
    first, second = (ran.result(run, "checkpoint") for run in (LOG, LOG_AGAIN))
    assert first["actual"]["written"] is True
    assert first["actual"]["version"] == first["version_to"] == 3
    assert second["actual"] == {"written": False}
    log = ran.data / "ledger" / "_delta_log"
    assert json.loads((log / "_last_checkpoint").read_text())["version"] == 3
    assert ran.result(LOG, "cleanup")["actual"]["files_deleted"] == 2
    left = {f"{2:020}.checkpoint.parquet", f"{3:020}.checkpoint.parquet", f"{2:020}.json", f"{3:020}.json"}
    assert {path.name for path in log.iterdir()} >= left
    assert not {f"{0:020}.json", f"{1:020}.json"} & {path.name for path in log.iterdir()}
    assert sorted(row["amount"] for row in ran.rows("ledger")) == [1, 2, 3, 4]


@pytest.mark.slow
def test_a_plan_leads_to_what_is_due_and_to_nothing_the_next_time(ran: Ran) -> None:
    first, again = (ran.seen[run]["states"]["compact[-1]"] for run in (UPKEEP, UPKEEP_AGAIN))
    assert (first, again) == ("success", "skipped")
    assert ran.result(UPKEEP, "plan")["output"]["due"][:1] == ["optimize"]
    assert len(PeerTable(ran.data / "clicks").file_uris()) == 1


@pytest.mark.slow
def test_what_was_committed_is_verified_and_the_whole_table_checked(ran: Ran) -> None:
    assert ran.result(CHECKED, "compact")["commits"] == [3]
    for run, task in ((CHECKED, "verify"), (FSCK, "fsck")):
        assert ran.result(run, task)["actual"]["failed"] == []
        assert ran.result(run, task)["actual"]["checks"] >= 3


@pytest.mark.slow
def test_properties_are_set_and_nothing_of_the_log_is_cleaned_up_yet(ran: Ran) -> None:
    assert ran.result(SETTINGS, "settings")["output"]["set"] == {
        "delta.checkpointInterval": "20",
        "delta.appendOnly": "true",
    }
    assert PeerTable(ran.data / "views").metadata().configuration["delta.appendOnly"] == "true"
    assert ran.result(CLEANED, "cleanup")["actual"] == {}


@pytest.mark.slow
def test_a_clone_and_a_conversion_make_tables(ran: Ran) -> None:
    assert ran.rows("backup/orders") == ran.rows("orders")
    assert sorted(row["value"] for row in ran.rows("readings")) == [1, 1, 2, 2]
    assert PeerTable(ran.data / "readings").metadata().partition_columns == ["day"]


@pytest.mark.slow
def test_functions_get_a_table_and_say_what_a_job_does(ran: Ran) -> None:
    assert ran.result(COUNTED, "count") == 4
    assert ran.result(ORDERED, "order")["commits"] == [3]


@pytest.mark.slow
def test_sensors_return_what_they_waited_for(ran: Ran) -> None:
    delivered = ran.result(DELIVERED, "delivered")
    assert (delivered["rows"], delivered["files"] >= 1) == (6, True)
    assert ran.result(FRESH, "fresh")["version"] == 2


@pytest.mark.slow
def test_maintenance_is_part_of_another_dag(ran: Ran) -> None:
    states = ran.seen[LAKE]["states"]
    assert states["upkeep.maintain.plan[0]"] == states["upkeep.record[-1]"] == "success"
    assert states["fsck[-1]"] == "success"
    assert [table["name"] for table in ran.result(LAKE, "upkeep.record")] == ["views"]
