"""cdc_orders as Airflow reads it, and its micro-batches run in another order than theirs."""

from __future__ import annotations

import pytest

from delta_core import DeltaTable
from tests.support.airflow import AirflowHome
from tests.support.dag_modules import dag_module
from tests.support.example_runs import run_example, tables_of

pytestmark = pytest.mark.airflow


@pytest.mark.slow
def test_changes_are_kept_before_they_are_merged(parsed: dict) -> None:
    tasks = parsed["dags"]["cdc_orders"]["tasks"]
    assert tasks["land"] == ["append_changes"]
    assert "merge_orders" in tasks["append_changes"]
    assert tasks["create_orders"] == ["merge_orders"]
    assert tasks["merge_orders"] == ["verify_orders"]


@pytest.mark.slow
@pytest.mark.soak
def test_batches_in_another_order_and_one_twice_give_the_newest_state(
    airflow_home: AirflowHome, engine: dict[str, str]
) -> None:
    # test_cdc_jobs.py shows it too, without Airflow, in each run of the tests.
    ranges = [(6, 11), (0, 5), (6, 11)]
    confs = [{"first_batch": first, "last_batch": last, "seed": 4} for first, last in ranges]
    runs = run_example(airflow_home, "cdc_orders", *confs, engine=engine)
    assert [run["state"] for run in runs] == ["success"] * len(ranges), runs
    for again in runs[2:]:
        assert again["results"]["merge_orders"]["already_applied"] is True
    happened = dag_module("orders_source").changes(seed=4, count=6_000)
    newest = {(change["after"] or change["before"])["id"]: change for change in happened}
    rows = DeltaTable(str(tables_of(airflow_home) / "orders")).to_pyarrow_table().to_pylist()
    assert {row["id"]: (row["lsn"], row["deleted"], row["status"]) for row in rows} == {
        order: (change["source"]["lsn"], change["op"] == "d", (change["after"] or {}).get("status"))
        for order, change in newest.items()
    }
