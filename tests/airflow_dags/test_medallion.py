"""medallion_logs as Airflow reads it, and some hours of it run."""

from __future__ import annotations

import re

import pytest

from delta_core import DeltaTable
from tests.support.airflow import AirflowHome
from tests.support.example_runs import run_example, tables_of
from tests.support.soak import rounds

pytestmark = pytest.mark.airflow


def test_each_table_is_made_of_the_one_before(parsed: dict) -> None:
    tasks = parsed["dags"]["medallion_logs"]["tasks"]
    for before, after in [
        ("land", "bronze"),
        ("bronze", "silver"),
        ("silver", "changed_days"),
        ("changed_days", "z_order_silver"),
        ("changed_days", "gold"),
        ("z_order_silver", "verify_silver"),
        ("gold", "verify_gold"),
    ]:
        assert after in tasks[before], (before, after)


@pytest.mark.parametrize("hour", ["2026-01-01", "2026-13-01T00", "2026-01-01T24", "2026-01-01T00:00"])
def test_only_an_hour_is_accepted(parsed: dict, hour: str) -> None:
    pattern = parsed["dags"]["medallion_logs"]["params"]["hour"]["pattern"]
    assert not re.search(pattern, hour)
    assert re.search(pattern, "2026-01-01T23")


@pytest.mark.slow
@pytest.mark.soak  # test_medallion_jobs.py runs its jobs, and every DAG is parsed
def test_an_hour_another_one_and_it_again(airflow_home: AirflowHome, engine: dict[str, str]) -> None:
    # What runs again changes nothing: test_backfill.py shows it too, in each run of the tests.
    hours = ["2026-01-01T23", "2026-01-02T00", *["2026-01-02T00"] * rounds(usual=0, soak=1)]
    confs = [{"hour": hour, "events": 800, "seed": 2} for hour in hours]
    first, second, *again = runs = run_example(airflow_home, "medallion_logs", *confs, engine=engine)
    assert [run["state"] for run in runs] == ["success"] * len(hours), runs
    assert first["results"]["silver"]["output"]["quality"]["outcome"] == "quarantined"
    # Late events of the second hour belong to the day before.
    assert set(re.findall(r"\d{4}-\d\d-\d\d", second["results"]["changed_days"]["where"])) == {
        "2026-01-01",
        "2026-01-02",
    }
    for run in again:
        assert run["results"]["bronze"]["already_applied"] is True
        assert run["tasks"]["gold"] == "skipped"
    silver, gold = (DeltaTable(str(tables_of(airflow_home) / f"logs_{name}")) for name in ("silver", "gold"))
    events = silver.to_pyarrow_table(columns=["eventId"]).column("eventId").to_pylist()
    assert len(events) == len(set(events)) == sum(gold.to_pyarrow_table().column("events").to_pylist())
