"""Refines a raw access log in three tables: bronze as delivered, silver as checked events, gold as sums.

*Bronze* contains every line: all fields are strings, new fields become columns, and lines that are not JSON
are stored in `_corrupt`. *Silver* continues where its last run stopped (its commits record the bronze version
up to which it has read). It has typed columns and each event once; impossible events go to quarantine. Its
files are in Z-order, so that a search for a source or a destination opens few of them. *Gold* has events and
bytes per source and hour. Days with changes are replaced as a whole.

A scheduled run refines the hour of its data interval, a manual run the hour in its parameters. Repeating a
run changes nothing.

Environment: DELTAWARD_TABLES_ROOT and DELTAWARD_LANDING_ROOT (default: `tables` and `landing` under
`deltaward` in Airflow's home), and the variables of every DAG (docs/dags/README.md). The connection needs a
runner with Spark.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pendulum
import yaml
from airflow.sdk import CronDataIntervalTimetable, Param, dag, task
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from delta_airflow.assets import table_asset
from delta_airflow.dag_defaults import CONN_ID, connection_param, default_args
from delta_airflow.decorators.delta_table import delta_table_task
from delta_airflow.operators.load import DeltaLoadOperator
from delta_airflow.operators.optimize import DeltaOptimizeOperator
from delta_airflow.operators.verify import DeltaVerifyOperator

HOME = Path(os.environ.get("AIRFLOW_HOME") or "~/airflow").expanduser() / "deltaward"
TABLES_ROOT = os.environ.get("DELTAWARD_TABLES_ROOT") or str(HOME / "tables")
LANDING_ROOT = Path(os.environ.get("DELTAWARD_LANDING_ROOT") or HOME / "landing")
CONFIG = Path(__file__).parent / "config"
BRONZE, SILVER, GOLD = (f"{TABLES_ROOT}/logs_{layer}" for layer in ("bronze", "silver", "gold"))


def config(name: str) -> dict[str, Any]:
    return dict(yaml.safe_load((CONFIG / f"{name}.yaml").read_text()))


def delta(name: str, table_uri: str, **rows: Any) -> dict[str, Any]:
    """A source that reads rows of a table, with the filter and expressions of a configuration file."""
    return {"format": "delta", "uris": [table_uri], **rows, **config(name)}


def load(layer: str, table_uri: str, **arguments: Any) -> DeltaLoadOperator:
    return DeltaLoadOperator(
        task_id=layer,
        table_uri=table_uri,
        contract=config(f"{layer}_logs_contract"),
        multiple_outputs=True,
        outlets=[table_asset(table_uri, name=f"logs_{layer}")],
        **arguments,
    )


@task(multiple_outputs=True)
def land(*, params: Any = None, dag_run: Any = None) -> dict[str, Any]:
    """Deliver the hour's log as files."""
    from access_log_source import land as deliver

    start = dag_run.data_interval_start  # a manual run has neither a logical date nor an interval
    hour = params["hour"] or (start.strftime("%Y-%m-%dT%H") if start else "")
    if not hour:
        raise AirflowFailException("Set the parameter hour to the hour to refine, such as 2026-01-01T00.")
    directory = LANDING_ROOT / "access_log" / hour
    begins = pendulum.from_format(hour, "YYYY-MM-DDTHH", tz="UTC")
    counts = deliver(begins, events=params["events"], seed=params["seed"], directory=directory)
    return {"hour": hour, "uris": [directory.as_uri()], **counts}


@delta_table_task(table_uri=SILVER, multiple_outputs=True)
def changed_days(silver: Any, *, params: Any = None) -> dict[str, Any]:
    """A predicate for the days of silver that have changed since gold was last written."""
    from delta_airflow.hooks.deltaward import DeltawardHook
    from delta_airflow.tables import recorded_work
    from delta_core.scan import changed_partitions

    recorded = recorded_work(DeltawardHook(params["connection"]), GOLD, "medallion/gold")
    changed = changed_partitions(silver.snapshot, since_version=-1 if recorded is None else recorded)
    days = ", ".join(f"DATE'{values['day']}'" for values in changed)
    if not days:
        raise AirflowSkipException(f"Gold already contains silver up to version {silver.version()}.")
    return {"where": f"day IN ({days})"}


@dag(
    schedule=CronDataIntervalTimetable("@hourly", timezone="UTC"),
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=1,
    default_args=default_args(conn_id=CONN_ID),
    description="Refine raw access logs to checked events and sums, in three tables",
    doc_md=__doc__,
    tags=["deltaward", "etl", "medallion"],
    params={
        "hour": Param(
            None,
            type=["null", "string"],
            pattern=r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3])$",
            description="For a manual run: the hour (UTC), such as 2026-01-01T00",
        ),
        "events": Param(30_000, type="integer", minimum=1, maximum=5_000_000, description="Events per hour"),
        "seed": Param(1, type="integer", minimum=0, description="The same seed gives the same log"),
        "connection": connection_param(),
    },
)
def medallion_logs() -> None:
    bronze = load(
        "bronze",
        BRONZE,
        source={"format": "json", "uris": land()["uris"], "corrupt_column": "_corrupt"},
        work_name="medallion/bronze {{ ti.xcom_pull(task_ids='land', key='hour') }}",
    )
    bronze_version = bronze.output["version_to"]
    silver = load(
        "silver",
        SILVER,
        source=delta("silver_logs_source", BRONZE, version=bronze_version, changes_since="recorded"),
        deduplicate={"keys": ["eventId"], "against_table": True},
        quality=config("silver_logs_suite"),
        partition_by=["day"],
        work_name="medallion/silver",
        work_version=bronze_version,
    )
    silver_version = silver.output["version_to"]
    changed = changed_days.override(version=silver_version)()
    z_order = DeltaOptimizeOperator(
        task_id="z_order_silver",
        table_uri=SILVER,
        predicate=changed["where"],
        z_order_by=["sourceIP", "sourcePort", "destIP", "destPort"],
        min_new_fraction=0.2,
        lease="maintenance",
    )
    gold = load(
        "gold",
        GOLD,
        source=delta("gold_logs_source", SILVER, version=silver_version, where=changed["where"]),
        mode="replace_where",
        replace_where=changed["where"],
        partition_by=["day"],
        work_name="medallion/gold",
        work_version=silver_version,
    )
    rewritten = [silver.output, z_order.output]
    z_order >> DeltaVerifyOperator(task_id="verify_silver", table_uri=SILVER, commits=rewritten)
    gold >> DeltaVerifyOperator(task_id="verify_gold", table_uri=GOLD, commits=gold.output)


medallion_logs()
