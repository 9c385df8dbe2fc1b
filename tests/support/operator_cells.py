"""What operators do on a table of any store, reached by a connection that says how in one of two ways."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa

from delta_airflow.assets import table_asset, table_uri_of
from delta_airflow.operators.optimize import DeltaOptimizeOperator
from delta_airflow.operators.restore import DeltaRestoreOperator
from delta_airflow.operators.vacuum import DeltaVacuumOperator
from delta_airflow.sensors.table_version import DeltaTableVersionSensor
from delta_airflow.triggers.table_version import DeltaTableVersionTrigger
from delta_core import DeltaTable, write_deltalake
from delta_core.storage.uri import canonical_table_uri
from tests.support.emulators.places import Place
from tests.support.waiting import PATIENCE_SECONDS

WAYS = ("options", "referenced")
"""Options of the connection itself, and `storage_conn_id`."""


def connections(place: Place, way: str, **extra: Any) -> dict[str, str]:
    """The variables of the environment that hold the connections for a place."""
    if way == "options":
        found = {"conn_type": "deltaward", "extra": {**extra, "storage_options": dict(place.options)}}
        return {"AIRFLOW_CONN_DELTAWARD_DEFAULT": json.dumps(found)}
    found = {"conn_type": "deltaward", "extra": {**extra, "storage_conn_id": "the_companys"}}
    return {
        "AIRFLOW_CONN_DELTAWARD_DEFAULT": json.dumps(found),
        "AIRFLOW_CONN_THE_COMPANYS": json.dumps(_companys(place)),
    }


def _companys(place: Place) -> dict[str, Any]:
    """The connection that Airflow's own operators would have for the place."""
    options = place.options
    address = urlsplit(place.endpoint or "")
    if place.name == "gcs":
        key = json.loads(options["service_account_key"])
        extra = {"keyfile_dict": {**key, "gcs_base_url": place.endpoint}, "project": "tests"}
        return {"conn_type": "google_cloud_platform", "extra": extra}
    if place.name == "azure":
        names = {"login": options["account_name"], "password": options["account_key"]}
        return {"conn_type": "wasb", "host": place.endpoint, **names}
    if place.name == "hdfs":
        where = {"host": address.hostname, "port": address.port}
        return {"conn_type": "webhdfs", "login": options["user"], **where}
    # A connection may be for tables in the store and on this machine.
    extra = {"region_name": "us-east-1", "endpoint_url": place.endpoint or "http://127.0.0.1:9"}
    keys = {
        "login": options.get("AWS_ACCESS_KEY_ID", "of-another-store"),
        "password": options.get("AWS_SECRET_ACCESS_KEY", "of-another-store"),
    }
    return {"conn_type": "aws", **keys, "extra": extra}


def context() -> Any:
    """What a task is given."""
    instance = SimpleNamespace(
        dag_id="d", task_id="t", run_id="manual__2026-01-01T00:00:00+00:00", map_index=-1, try_number=1
    )
    return {"ti": instance, "logical_date": datetime(2026, 1, 1, tzinfo=UTC), "outlet_events": {}}


def new_table(place: Place) -> str:
    """A table of three versions of two rows each."""
    uri = place.new_table()
    for number in range(3):
        data = pa.table({"id": [2 * number, 2 * number + 1]})
        write_deltalake(uri, data, mode="append", storage_options=dict(place.options))
    return uri


def opened(place: Place, uri: str) -> DeltaTable:
    """The table as it is now."""
    return DeltaTable(uri, storage_options=dict(place.options))


def ids(place: Place, uri: str) -> list[int]:
    """What the table holds."""
    return sorted(opened(place, uri).to_pyarrow_table()["id"].to_pylist())


def optimize(place: Place, uri: str) -> None:
    """Compaction puts three files together and keeps every row."""
    value = DeltaOptimizeOperator(task_id="t", table_uri=uri).execute(context())
    assert value["commits"] == [3]
    assert ids(place, uri) == list(range(6))
    assert len(opened(place, uri).file_uris()) == 1


def vacuum_plan(place: Place, uri: str) -> None:
    """A plan deletes nothing and commits nothing."""
    value = DeltaVacuumOperator(task_id="t", table_uri=uri).execute(context())
    assert (value["status"], value["commits"]) == ("succeeded", [])
    assert opened(place, uri).version() == 2
    assert ids(place, uri) == list(range(6))


def restore(place: Place, uri: str) -> None:
    """Version 0 is brought back by a new version."""
    value = DeltaRestoreOperator(task_id="t", table_uri=uri, version=0, dry_run=False).execute(context())
    assert value["commits"] == [3]
    assert ids(place, uri) == [0, 1]


def sensor(place: Place, uri: str) -> None:
    """A version is found by the worker and by the triggerer."""
    here = DeltaTableVersionSensor(task_id="t", table_uri=uri, version=2)
    assert here.execute(context()) == 2
    trigger = DeltaTableVersionTrigger(
        table_uri=canonical_table_uri(uri), minimum_version=1, conn_id="deltaward_default", poll_seconds=1
    )

    async def events() -> list[Any]:
        return [event.payload async for event in trigger.run()]

    assert asyncio.run(asyncio.wait_for(events(), PATIENCE_SECONDS)) == [{"version": 2}]
    assert not DeltaTableVersionSensor(task_id="t", table_uri=uri, version=3).poke(context()).is_done


def asset_event(place: Place, uri: str) -> None:
    """Consumers of the table's asset are told the version, and the asset names the table."""
    asset = table_asset(uri)
    assert table_uri_of(asset) == canonical_table_uri(uri)
    where = context()
    where["outlet_events"][asset] = SimpleNamespace(extra={})
    DeltaOptimizeOperator(task_id="t", table_uri=uri, outlets=[asset]).execute(where)
    assert where["outlet_events"][asset].extra["version"] == 3


CELLS: Mapping[str, Callable[[Place, str], None]] = {
    "optimize": optimize,
    "vacuum plan": vacuum_plan,
    "restore": restore,
    "sensor": sensor,
    "asset event": asset_event,
}
"""What runs in the worker's own process. Loads and merges are Spark's, which opens shared paths alone."""
