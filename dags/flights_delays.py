"""Sums up the delays of a month's flights by carrier, with SQL.

The table `flights_delays` has one row for each month and carrier. A run creates the table if it does not
exist, and merges the month's sums into it: they are updated, added, or deleted with their last flight.
Summing up the same month again changes nothing.

Environment: DELTAWARD_TABLES_ROOT (default: `tables` under `deltaward` in Airflow's home), and the variables
of every DAG (docs/dags/README.md). The connection needs a runner with Spark.
"""

from __future__ import annotations

import os
from pathlib import Path

import pendulum
from airflow.sdk import Param, dag

from delta_airflow.assets import table_asset
from delta_airflow.dag_defaults import CONN_ID, connection_param, default_args
from delta_airflow.operators.sql import DeltaSqlOperator

HOME = Path(os.environ.get("AIRFLOW_HOME") or "~/airflow").expanduser() / "deltaward"
TABLES_ROOT = os.environ.get("DELTAWARD_TABLES_ROOT") or str(HOME / "tables")
FLIGHTS, DELAYS = f"{TABLES_ROOT}/flights", f"{TABLES_ROOT}/flights_delays"

CREATE = """
CREATE TABLE IF NOT EXISTS target (
  year BIGINT NOT NULL, month BIGINT NOT NULL, carrier STRING NOT NULL,
  flights BIGINT COMMENT 'all flights, also those that did not leave',
  delayed BIGINT COMMENT 'flights that left more than 15 minutes late',
  minutes BIGINT COMMENT 'sum of the delays at departure')
TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')
"""

MERGE = """
MERGE INTO target USING (
  SELECT year, month, carrier, count(*) AS flights,
    count_if(dep_delay > 15) AS delayed, sum(greatest(dep_delay, 0)) AS minutes
  FROM flights WHERE year = :year AND month = :month GROUP BY year, month, carrier) AS sums
ON target.year = sums.year AND target.month = sums.month AND target.carrier = sums.carrier
WHEN MATCHED THEN UPDATE SET *
WHEN NOT MATCHED THEN INSERT *
WHEN NOT MATCHED BY SOURCE AND target.year = :year AND target.month = :month THEN DELETE
"""


@dag(
    schedule=None,
    start_date=pendulum.datetime(2013, 1, 1, tz="UTC"),
    max_active_runs=1,
    default_args=default_args(conn_id=CONN_ID),
    description="Sum up the delays of a month's flights by carrier, with SQL",
    doc_md=__doc__,
    tags=["deltaward", "etl", "sql"],
    params={
        "year": Param(2013, type="integer", minimum=1900, maximum=9999, description="The year"),
        "month": Param(1, type="integer", minimum=1, maximum=12, description="The month"),
        "connection": connection_param(),
    },
)
def flights_delays() -> None:
    create = DeltaSqlOperator(task_id="create", table_uri=DELAYS, statement=CREATE)
    merge = DeltaSqlOperator(
        task_id="merge",
        table_uri=DELAYS,
        statement=MERGE,
        tables={"flights": FLIGHTS},
        parameters='{"year": {{ params.year }}, "month": {{ params.month }}}',
        on_clear="reapply",
        outlets=[table_asset(DELAYS, name="flights_delays")],
    )
    create >> merge


flights_delays()
