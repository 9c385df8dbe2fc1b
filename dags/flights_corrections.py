"""Merges delivered corrections of flights that were loaded before: changes, deletions and late rows.

A delivered CSV file has the columns of the table `flights`, a `correction` (change, add or delete) and a
`sequence`. `config/flights_corrections.yaml` defines how the rows are merged. If a row violates the contract,
nothing is merged. Merging the same file again changes nothing.

Environment: DELTAWARD_TABLES_ROOT (default: `tables` under `deltaward` in Airflow's home), and the variables
of every DAG (docs/dags/README.md). The connection needs a runner with Spark.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pendulum
import yaml
from airflow.sdk import Param, dag

from delta_airflow.assets import table_asset
from delta_airflow.dag_defaults import CONN_ID, connection_param, default_args
from delta_airflow.operators.merge import DeltaMergeOperator
from delta_airflow.operators.verify import DeltaVerifyOperator

HOME = Path(os.environ.get("AIRFLOW_HOME") or "~/airflow").expanduser() / "deltaward"
TABLE_URI = f"{os.environ.get('DELTAWARD_TABLES_ROOT') or HOME / 'tables'}/flights"
CONFIG = Path(__file__).parent / "config"


def merge_arguments() -> dict[str, Any]:
    """The arguments of the merge. Its contract is that of the table plus the extra columns of corrections."""
    merge = yaml.safe_load((CONFIG / "flights_corrections.yaml").read_text())
    table = yaml.safe_load((CONFIG / "flights_contract.yaml").read_text())
    merge["contract"] = {name: table[name] + merge["contract"][name] for name in ("columns", "constraints")}
    return merge


@dag(
    schedule=None,
    start_date=pendulum.datetime(2013, 1, 1, tz="UTC"),
    max_active_runs=1,
    default_args=default_args(conn_id=CONN_ID),
    description="Merge delivered corrections of flights: changes, deletions, late rows",
    doc_md=__doc__,
    tags=["deltaward", "etl"],
    params={
        "corrections": Param(
            type="array",
            minItems=1,
            items={"type": "string", "minLength": 1},
            description="The delivered CSV files: absolute paths or URIs",
        ),
        "connection": connection_param(),
    },
)
def flights_corrections() -> None:
    merge = DeltaMergeOperator(
        task_id="merge",
        table_uri=TABLE_URI,
        source='{"format": "csv", "uris": {{ params.corrections | tojson }}}',
        multiple_outputs=True,
        outlets=[table_asset(TABLE_URI, name="flights")],
        **merge_arguments(),
    )
    verify = DeltaVerifyOperator(task_id="verify", table_uri=TABLE_URI, commits=merge.output)
    merge >> verify


flights_corrections()
