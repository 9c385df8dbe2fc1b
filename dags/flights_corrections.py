"""Merges delivered corrections of flights that were loaded before: changes, deletions and late rows.

A delivered CSV file has the columns of the table `flights`, a `correction` (change, add or delete) and a
`sequence`; `config/flights_corrections.yaml` says how the rows meet the table's. Nothing is merged when one
row breaks the contract. Merging the same file again changes nothing.

Environment: DELTAWARD_TABLES_ROOT (default: `tables` under `deltaward` in Airflow's home). Connection:
`deltaward_default`, with a runner that has Spark.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pendulum
import yaml
from airflow.sdk import Param, dag

from delta_airflow.assets import table_asset
from delta_airflow.operators.job import DeltaJobOperator
from delta_airflow.operators.merge import DeltaMergeOperator

HOME = Path(os.environ.get("AIRFLOW_HOME") or "~/airflow").expanduser() / "deltaward"
TABLE_URI = f"{os.environ.get('DELTAWARD_TABLES_ROOT') or HOME / 'tables'}/flights"
CONFIG = Path(__file__).parent / "config"


def merge_arguments() -> dict[str, Any]:
    """How corrections are merged; their contract is the table's, with the columns that corrections add."""
    merge = yaml.safe_load((CONFIG / "flights_corrections.yaml").read_text())
    table = yaml.safe_load((CONFIG / "flights_contract.yaml").read_text())
    merge["contract"] = {name: table[name] + merge["contract"][name] for name in ("columns", "constraints")}
    return merge


@dag(
    schedule=None,
    start_date=pendulum.datetime(2013, 1, 1, tz="UTC"),
    max_active_runs=1,
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
    verify = DeltaJobOperator(
        task_id="verify",
        table_uri=TABLE_URI,
        kind="verify",
        runner="inline",
        job_parameters={"version_to": merge.output["version_to"]},
    )
    merge >> verify


flights_corrections()
