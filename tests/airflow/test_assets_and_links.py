from __future__ import annotations

from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
from airflow.providers.common.compat.openlineage import facet
from airflow.sdk import Asset
from airflow.sdk.lineage import HookLineageCollector
from airflow.sdk.types import TaskInstanceKey

from delta_airflow.assets import (
    asset_uri,
    convert_asset_to_openlineage,
    create_asset,
    same_table,
    sanitize_uri,
    table_asset,
    table_uri_of,
)
from delta_airflow.links import DeltaJobResultLink, DeltaTableEventsLink
from delta_airflow.operators.checkpoint import DeltaCheckpointOperator
from delta_core.errors import InvalidUriError
from delta_core.storage.open import _OPENERS
from delta_core.storage.uri import canonical_table_uri


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


@pytest.mark.parametrize(
    ("uri", "asset"),
    [
        ("s3://bucket/t", "delta://s3/bucket/t"),
        ("s3a://bucket/a%20b/t/", "delta://s3/bucket/a%20b/t"),
        ("s3://bucket", "delta://s3/bucket"),
        ("gs://Bucket_1/t", "delta://gs/Bucket_1/t"),
        ("az://container/t", "delta://az/container/t"),
        ("abfs://c@a.dfs.core.windows.net/t", "delta://abfss/c@a.dfs.core.windows.net/t"),
        ("hdfs://nn:8020/data/t", "delta://hdfs/nn:8020/data/t"),
        ("webhdfs://nn:9870/t", "delta://webhdfs/nn:9870/t"),
        ("mine://place/t", "delta://mine/place/t"),
        ("file:///data/t", "delta://local/data/t"),
    ],
)
def test_a_table_of_every_store_has_an_asset(uri: str, asset: str) -> None:
    # Airflow normalises what it is given; the asset must be found under the name that an outlet has.
    assert table_asset(uri).uri == asset == Asset(name="x", uri=asset).uri
    assert same_table(table_asset(uri).uri, uri)
    assert not same_table(asset, "/data/other")


_PATHS = ("/t", "/a b/t", "/100%25/ä€", "/run=1/x+y;z@w", "/a%3Fb%23c", "/Mixed/CASE", "/a..b/.c")
_AUTHORITIES = {"hdfs": "nn:8020", "webhdfs": "nn", "swebhdfs": "nn.example.com:9871"} | dict.fromkeys(
    ("abfs", "abfss"), "container@account.dfs.core.windows.net"
)


@pytest.mark.parametrize("scheme", sorted(scheme for scheme in _OPENERS if scheme))
@pytest.mark.parametrize("path", _PATHS)
def test_an_asset_names_its_table_in_every_store(scheme: str, path: str) -> None:
    authority = "" if scheme == "file" else _AUTHORITIES.get(scheme, "Bucket_1")
    uri = f"{scheme}://{authority}{path}"
    canonical = canonical_table_uri(uri)
    asset = table_asset(uri)
    assert table_uri_of(asset) == table_uri_of(asset.uri) == canonical
    # Airflow normalises an asset again wherever it is read.
    assert Asset(name="x", uri=asset.uri).uri == asset.uri == asset_uri(canonical)
    assert create_asset(table_uri=uri, extra=None) == asset


@pytest.mark.parametrize("uri", ["s3://bucket/t", "file:///data/t", "delta://s3/", "delta://u:p@s3/b/t"])
def test_what_is_no_tables_asset_names_none(uri: str) -> None:
    with pytest.raises(InvalidUriError):
        table_uri_of(uri)


@pytest.mark.parametrize(
    ("uri", "namespace", "name"),
    [
        ("/data/a b", "file", "/data/a b"),
        ("s3a://bucket/a%20b/t", "s3://bucket", "a b/t"),
        ("s3://bucket", "s3://bucket", "/"),
        ("gs://bucket/t", "gs://bucket", "t"),
        ("az://container/t", "az://container", "t"),
        ("abfs://c@a.dfs.core.windows.net/t", "abfss://c@a.dfs.core.windows.net", "t"),
        ("hdfs://nn:8020/data/t", "hdfs://nn:8020", "/data/t"),
    ],
)
def test_a_table_is_the_data_set_that_others_name(
    monkeypatch: pytest.MonkeyPatch, uri: str, namespace: str, name: str
) -> None:
    monkeypatch.setattr(facet, "Dataset", SimpleNamespace)
    found = convert_asset_to_openlineage(table_asset(uri), None)
    assert (found.namespace, found.name) == (namespace, name)


def test_airflow_makes_assets_of_hook_lineage_by_the_factory() -> None:
    collector = HookLineageCollector()  # type: ignore[no-untyped-call]
    # Where the distribution is not installed, Airflow knows no factory of the scheme.
    collector._asset_factories = {"delta": create_asset}
    asset = collector.create_asset(
        scheme="delta", asset_kwargs={"table_uri": "s3://bucket/t"}, asset_extra={"version": 3}
    )
    assert asset is not None
    assert (asset.uri, asset.extra) == ("delta://s3/bucket/t", {"version": 3})


def test_no_two_tables_have_one_asset() -> None:
    uris = ["/s3/bucket/t", "s3://bucket/t", "gs://bucket/t", "s3://bucket-t", "/bucket/t", "az://bucket/t"]
    assert len({asset_uri(uri) for uri in uris}) == len(uris)


@pytest.mark.parametrize(
    "uri",
    [
        "data/t",
        "~/t",
        "/",
        "",
        "file://host/t",
        "file:///",
        "s3:///t",
        "s3://u:secret@bucket/t",
        "s3://b/a/../t",
    ],
)
def test_what_has_no_asset_is_refused(uri: str) -> None:
    with pytest.raises(InvalidUriError) as caught:
        asset_uri(uri)
    assert caught.value.fix
    assert "secret" not in str(caught.value)


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
