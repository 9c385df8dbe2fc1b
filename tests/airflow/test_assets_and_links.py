from __future__ import annotations

from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
from airflow.sdk.types import TaskInstanceKey

from delta_airflow.assets import asset_uri, same_table, sanitize_uri, table_asset
from delta_airflow.links import DeltaJobResultLink, DeltaTableEventsLink
from delta_airflow.operators.checkpoint import DeltaCheckpointOperator


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("delta://local/data/flights", "delta://local/data/flights"),
        ("delta://Local/data//flights/", "delta://local/data/flights"),
        ("delta://bucket/a/./b#x", "delta://bucket/a/b"),
    ],
)
def test_asset_uris_have_one_spelling(given: str, expected: str) -> None:
    assert sanitize_uri(urlsplit(given)).geturl() == expected


@pytest.mark.parametrize(
    "uri",
    ["delta:///data/t", "delta:/data/t", "delta://local", "delta://local/", "delta://l/a?b=c", "delta://u@l/a",
     "delta://local/a/../b"],
)  # fmt: skip
def test_other_asset_uris_are_refused(uri: str) -> None:
    with pytest.raises(ValueError, match="delta asset URI"):
        sanitize_uri(urlsplit(uri))


def test_a_table_has_one_asset_however_it_is_spelled() -> None:
    assert asset_uri("/data/a b/") == asset_uri("file:///data/a%20b") == "delta://local/data/a%20b"
    assert table_asset("/data/t", name="trips").name == "trips"
    assert same_table("delta://local/data/t", "file:///data//t/")
    assert not same_table("delta://local/data/t2", "/data/t")
    assert not same_table("delta://local/data/t2", "s3://bucket/t2")


@pytest.mark.parametrize("uri", ["data/t", "s3://bucket/t", "file://host/t"])
def test_what_has_no_asset_is_refused(uri: str) -> None:
    with pytest.raises(ValueError, match=r"absolute path|host"):
        asset_uri(uri)


def key(**changes: object) -> TaskInstanceKey:
    values = {"dag_id": "d", "task_id": "g.t", "run_id": "manual__2026-01-01T00:00:00+00:00", **changes}
    return TaskInstanceKey(**values)  # type: ignore[arg-type]


def test_the_result_link_leads_to_the_task_instances_xcom() -> None:
    operator = DeltaCheckpointOperator(task_id="t", table_uri="/data/t")
    link = DeltaJobResultLink()
    run = "manual__2026-01-01T00%3A00%3A00%2B00%3A00"
    assert urlsplit(link.get_link(operator, ti_key=key())).path == f"/dags/d/runs/{run}/tasks/g.t/xcom"
    mapped = link.get_link(operator, ti_key=key(map_index=3))
    assert mapped.endswith("/tasks/g.t/mapped/3/xcom")


def test_the_events_link_leads_to_the_tables_asset_or_nowhere() -> None:
    asset = table_asset("/data/t", name="trips & more")
    operator = DeltaCheckpointOperator(task_id="t", table_uri="/data/t", outlets=[asset])
    link = DeltaTableEventsLink()
    assert link.get_link(operator, ti_key=key()).endswith("/assets?name_pattern=trips+%26+more")
    bare = DeltaCheckpointOperator(task_id="t", table_uri="/data/t")
    assert link.get_link(bare, ti_key=key()) == ""
    stranger = SimpleNamespace(outlets=None)
    assert link.get_link(stranger, ti_key=key()) == ""  # type: ignore[arg-type]
