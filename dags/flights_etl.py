"""Loads the flights that left New York in 2013, and the weather there, month by month.

A scheduled run, or a run of Airflow's backfill, loads the month of its data interval. A manual run loads the
months in its parameters. Each load replaces exactly its months, so repeating a load is safe. A batch whose
columns differ from the table's contract (`config/*_contract.yaml`) is refused as a whole. If a feed has a
suite of expectations (`config/*_suite.yaml`), rows that fail the suite or violate the contract go to a
quarantine table, and too many of them fail the load. Without a suite, a single such row fails the load. No
version of the table contains bad rows.

Environment: DELTAWARD_TABLES_ROOT and DELTAWARD_LANDING_ROOT (default: `tables` and `landing` under
`deltaward` in Airflow's home), and the variables of every DAG (docs/dags/README.md). The connection needs a
runner with Spark.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pendulum
import yaml
from airflow.sdk import CronDataIntervalTimetable, Param, dag, task
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from delta_airflow.assets import table_asset
from delta_airflow.dag_defaults import CONN_ID, connection_param, default_args
from delta_airflow.operators.load import DeltaLoadOperator
from delta_airflow.operators.verify import DeltaVerifyOperator

HOME = Path(os.environ.get("AIRFLOW_HOME") or "~/airflow").expanduser() / "deltaward"
TABLES_ROOT = os.environ.get("DELTAWARD_TABLES_ROOT") or str(HOME / "tables")
LANDING_ROOT = Path(os.environ.get("DELTAWARD_LANDING_ROOT") or HOME / "landing")
CONFIG = Path(__file__).parent / "config"
FEEDS = ["flights", "weather"]
MONTH: dict[str, Any] = {"type": ["null", "string"], "pattern": "^2013-(0[1-9]|1[0-2])$"}


@task(multiple_outputs=True)
def extract(feed: str, *, params: Any = None, dag_run: Any = None) -> dict[str, Any]:
    """Land the feed's rows of the run's months as files; return the predicate of the rows to replace."""
    from nycflights_source import land

    if feed not in params["feeds"]:
        raise AirflowSkipException(f"This run does not load {feed}.")
    start = dag_run.data_interval_start  # a manual run has neither a logical date nor an interval
    first = params["first_month"] or (start.strftime("%Y-%m") if start else "")
    last = params["last_month"] or first
    if not first or first > last:
        raise AirflowFailException("Set first_month to the month to load. last_month must not be before it.")
    months = range(int(first[5:]), int(last[5:]) + 1)
    directory = LANDING_ROOT / feed / re.sub(r"[^\w.-]", "-", dag_run.run_id)
    rows = land(feed, months=months, source=params["source"], directory=directory)
    if not rows:
        raise AirflowFailException(f"The source has no rows of {feed} from {first} to {last}.")
    where = f"year = 2013 AND month >= {months[0]} AND month <= {months[-1]}"
    # The directory instead of its files: Spark lists one directory much faster than it checks hundreds of
    # files.
    return {"source": {"format": "csv", "uris": [directory.as_uri()]}, "where": where, "rows": rows}


@dag(
    schedule=CronDataIntervalTimetable("@monthly", timezone="UTC"),
    start_date=pendulum.datetime(2013, 1, 1, tz="UTC"),
    end_date=pendulum.datetime(2013, 12, 31, tz="UTC"),
    catchup=False,
    max_active_runs=1,
    default_args=default_args(conn_id=CONN_ID),
    description="Load the months of a data interval, or of a manual run, under a contract",
    doc_md=__doc__,
    tags=["deltaward", "etl"],
    params={
        "first_month": Param(None, **MONTH, description="For a manual run: the first month, such as 2013-01"),
        "last_month": Param(None, **MONTH, description="The last month; default: first_month"),
        "feeds": Param(FEEDS, type="array", items={"enum": FEEDS}, description="The tables to load"),
        "source": Param(
            None, type=["null", "string"], description="A CSV file that replaces the published one"
        ),
        "connection": connection_param(),
    },
)
def flights_etl() -> None:
    for feed in FEEDS:
        table_uri = f"{TABLES_ROOT}/{feed}"
        landed = extract.override(task_id=f"extract_{feed}")(feed)
        suite = CONFIG / f"{feed}_suite.yaml"
        load = DeltaLoadOperator(
            task_id=f"load_{feed}",
            table_uri=table_uri,
            source=landed["source"],
            mode="replace_where",
            replace_where=landed["where"],
            partition_by=["year", "month"],
            contract=yaml.safe_load((CONFIG / f"{feed}_contract.yaml").read_text()),
            quality=yaml.safe_load(suite.read_text()) if suite.exists() else None,
            multiple_outputs=True,
            outlets=[table_asset(table_uri, name=feed)],
        )
        verify = DeltaVerifyOperator(task_id=f"verify_{feed}", table_uri=table_uri, commits=load.output)
        load >> verify


flights_etl()
