"""The DAG files as Airflow reads them: they import, cheaply and without looking at any table."""

from __future__ import annotations

import itertools
import os
import re

import pytest

from tests.support.airflow import AirflowHome
from tests.support.repository import ROOT

pytestmark = pytest.mark.airflow

DAGS = ROOT / "dags"


def test_every_dag_imports_and_nothing_else_is_taken_for_one(parsed: dict) -> None:
    assert parsed["errors"] == {}
    assert {"flights_corrections", "flights_etl", "table_maintenance", "table_rollback"} <= set(
        parsed["dags"]
    )


def test_parsing_opens_no_table_no_connection_and_no_process(parsed: dict) -> None:
    assert parsed["events"] == []


def test_parsing_loads_nothing_heavy(parsed: dict) -> None:
    assert parsed["heavy"] == []


def test_each_dag_says_what_it_is_for_and_runs_once_at_a_time(parsed: dict) -> None:
    for dag in parsed["dags"].values():
        assert dag["doc"]
        assert dag["catchup"] is False
        assert dag["max_active_runs"] == 1


def test_each_feed_is_extracted_loaded_and_verified(parsed: dict) -> None:
    tasks = parsed["dags"]["flights_etl"]["tasks"]
    for feed in ("flights", "weather"):
        assert f"load_{feed}" in tasks[f"extract_{feed}"]
        assert f"verify_{feed}" in tasks[f"load_{feed}"]
        assert tasks[f"verify_{feed}"] == []


def test_maintenance_plans_applies_and_verifies_each_table(parsed: dict) -> None:
    tasks = parsed["dags"]["table_maintenance"]["tasks"]
    # What a check compares with is gone after a vacuum.
    order = ["plan", "compact", "cluster", "verify", "checkpoint", "vacuum"]
    for before, after in itertools.pairwise(order):
        assert f"maintain.{after}" in tasks[f"maintain.{before}"]
    assert tasks["maintain.vacuum"] == ["record"]
    assert set(tasks) == {"tables", "record", *(f"maintain.{step}" for step in order)}


def test_every_task_retries_what_can_pass_in_a_pool_that_exists(parsed: dict) -> None:
    for dag in parsed["dags"].values():
        assert set(dag["retries"].values()) == {2}
        assert set(dag["policies"].values()) == {"DeltaRetryPolicy"}
        assert set(dag["pools"].values()) == {"default_pool"}
        assert set(dag["callbacks"].values()) == {False}


def test_every_task_that_opens_a_table_goes_through_the_runs_connection(parsed: dict) -> None:
    seen = 0
    for dag in parsed["dags"].values():
        assert dag["params"]["connection"]["type"] == "string"
        assert set(dag["connections"].values()) == {"{{ params.connection }}"}
        seen += len(dag["connections"])
    assert seen > 15


def test_what_rewrites_a_table_takes_its_lease(parsed: dict) -> None:
    leases = parsed["dags"]["table_maintenance"]["leases"]
    assert {task for task, lease in leases.items() if lease == "maintenance"} == {
        f"maintain.{step}" for step in ("compact", "cluster", "checkpoint", "vacuum")
    }
    assert parsed["dags"]["table_rollback"]["leases"]["restore"] == "maintenance"
    assert parsed["dags"]["medallion_logs"]["leases"]["z_order_silver"] == "maintenance"


def test_corrections_are_merged_and_verified(parsed: dict) -> None:
    assert parsed["dags"]["flights_corrections"]["tasks"] == {"merge": ["verify"], "verify": []}


def test_a_rollback_is_planned_and_approved_before_and_verified_after(parsed: dict) -> None:
    tasks = parsed["dags"]["table_rollback"]["tasks"]
    assert tasks["dry_run"] == ["apply"]
    assert "approve" in tasks["apply"]
    assert "restore" in tasks["approve"]
    assert "verify" in tasks["restore"]


@pytest.mark.parametrize("month", ["2013-00", "2013-13", "2014-01", "2013-1", "2013-01-01"])
def test_only_months_of_the_year_are_accepted(parsed: dict, month: str) -> None:
    pattern = parsed["dags"]["flights_etl"]["params"]["first_month"]["pattern"]
    assert not re.search(pattern, month)
    assert re.search(pattern, "2013-09")


def test_dag_files_name_no_path_of_a_machine(airflow_home: AirflowHome) -> None:
    for path in DAGS.glob("*.py"):
        literals = re.findall(r"[\"'](/[a-z]+/[^\"']*)[\"']", path.read_text())
        assert literals == [], f"{path.name}: {literals}"
        assert os.fspath(airflow_home.path) not in path.read_text()
