"""Keeps the table `orders` in the state of a shop's database, from a change stream of Debezium.

The changes arrive in micro-batches, possibly late, out of order or twice. The DAG appends them unchanged to
`orders_changes`. Then a MERGE applies to each order the newest change that `orders` does not contain yet,
according to its position in the database's log (`lsn`). An older change never overwrites a newer one. The row
of a deleted order is kept and marked (`deleted`, with the lsn of its deletion), so that an older change that
arrives later cannot restore the order. Readers filter with `NOT deleted`.

A run loads the micro-batches in its parameters. Repeating a micro-batch, or loading them in another order,
has the same outcome.

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
from airflow.sdk import Param, dag, task
from airflow.sdk.exceptions import AirflowFailException

from delta_airflow.assets import table_asset
from delta_airflow.dag_defaults import CONN_ID, connection_param, default_args
from delta_airflow.decorators.delta_table import delta_table_task
from delta_airflow.operators.load import DeltaLoadOperator
from delta_airflow.operators.merge import DeltaMergeOperator
from delta_airflow.operators.verify import DeltaVerifyOperator

HOME = Path(os.environ.get("AIRFLOW_HOME") or "~/airflow").expanduser() / "deltaward"
TABLES_ROOT = os.environ.get("DELTAWARD_TABLES_ROOT") or str(HOME / "tables")
LANDING_ROOT = Path(os.environ.get("DELTAWARD_LANDING_ROOT") or HOME / "landing")
CONFIG = Path(__file__).parent / "config"
CHANGES, ORDERS = f"{TABLES_ROOT}/orders_changes", f"{TABLES_ROOT}/orders"
BATCHES, CHANGES_IN_ALL = 12, 6_000


def config(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((CONFIG / f"{name}.yaml").read_text())
    return loaded


@task(multiple_outputs=True)
def land(params: Any = None) -> dict[str, Any]:
    """Deliver the run's micro-batches as files."""
    from orders_source import land as deliver

    first, last, seed = params["first_batch"], params["last_batch"], params["seed"]
    if last < first:
        raise AirflowFailException("The parameter last_batch is less than first_batch.")
    directory = LANDING_ROOT / "orders" / f"{seed}-{first}-{last}"
    landed = deliver(
        range(first, last + 1),
        changes_in_all=CHANGES_IN_ALL,
        batches_in_all=BATCHES,
        seed=seed,
        directory=directory,
    )
    return {"uris": [directory.as_uri()], "work": f"{seed}-{first}-{last}", "changes": landed}


@delta_table_task(table_uri=ORDERS, required=False)
def create_orders(table: Any, *, params: Any = None) -> None:
    """Create the table from its contract if it does not exist, because a MERGE needs an existing table."""
    from delta_airflow.hooks.deltaward import DeltawardHook
    from delta_airflow.tables import create_table
    from delta_core.policies.contract import load_contract

    columns = load_contract(CONFIG / "orders_contract.yaml").columns
    if columns is not None and table is None:
        create_table(DeltawardHook(params["connection"]), ORDERS, columns)


@dag(
    schedule=None,
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=1,
    default_args=default_args(conn_id=CONN_ID),
    description="Apply a change stream to a table: late, repeated and deleted rows included",
    doc_md=__doc__,
    tags=["deltaward", "etl", "cdc"],
    params={
        "first_batch": Param(0, type="integer", minimum=0, maximum=BATCHES - 1),
        "last_batch": Param(2, type="integer", minimum=0, maximum=BATCHES - 1),
        "seed": Param(1, type="integer", minimum=0, description="The same seed gives the same stream"),
        "connection": connection_param(),
    },
)
def cdc_orders() -> None:
    landed = land()
    append = DeltaLoadOperator(
        task_id="append_changes",
        table_uri=CHANGES,
        source={"format": "json", "uris": landed["uris"]},
        contract=config("orders_changes_contract"),
        work_name="cdc/orders_changes {{ ti.xcom_pull(task_ids='land', key='work') }}",
        multiple_outputs=True,
        outlets=[table_asset(CHANGES, name="orders_changes")],
    )
    rule = config("orders_merge")
    merge = DeltaMergeOperator(
        task_id="merge_orders",
        table_uri=ORDERS,
        source={
            "format": "delta",
            "uris": [CHANGES],
            "version": append.output["version_to"],
            "changes_since": "recorded",
            "select": rule.pop("select"),
        },
        contract=config("orders_contract"),
        work_name="cdc/orders",
        work_version=append.output["version_to"],
        multiple_outputs=True,
        outlets=[table_asset(ORDERS, name="orders")],
        **rule,
    )
    verify = DeltaVerifyOperator(task_id="verify_orders", table_uri=ORDERS, commits=merge.output)
    [append, create_orders()] >> merge >> verify


cdc_orders()
