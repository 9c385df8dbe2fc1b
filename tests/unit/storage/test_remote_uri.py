"""URIs of remote tables: one spelling each, nothing secret, nothing that climbs."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_core.errors import InvalidUriError, PathEscapeError
from delta_core.storage.uri import (
    canonical_log_path,
    canonical_table_uri,
    resolve_data_location,
    resolve_data_path,
)
from tests.support.hostile_paths import hostile_paths

ROOT = "s3://bucket/some/table"


@pytest.mark.parametrize(
    ("uri", "canonical"),
    [
        ("s3://bucket/a/b/", "s3://bucket/a/b"),
        ("s3a://bucket/a/b", "s3://bucket/a/b"),
        ("S3N://bucket/a/b", "s3://bucket/a/b"),
        ("s3://bucket", "s3://bucket"),
        ("s3://bucket/", "s3://bucket"),
        ("s3://bucket/my table/ü%20%25", "s3://bucket/my%20table/%C3%BC%20%25"),
        ("gs://bucket/t", "gs://bucket/t"),
        ("azure://container/t", "az://container/t"),
        (
            "abfs://Data@Account.dfs.core.windows.net/t",
            "abfss://data@account.dfs.core.windows.net/t",
        ),
        ("hdfs://namenode:8020/user/t", "hdfs://namenode:8020/user/t"),
    ],
)
def test_every_table_has_one_spelling(uri: str, canonical: str) -> None:
    assert canonical_table_uri(uri) == canonical
    assert canonical_table_uri(canonical) == canonical


@pytest.mark.parametrize(
    "uri",
    [
        "s3:/bucket/t",
        "s3:///t",
        "s3://",
        "s3://key:hunter2@bucket/t",
        "s3://bucket/t?X-Amz-Signature=hunter2",
        "az://container/t#hunter2",
        "s3://bucket/a/../b",
        "s3://bucket/a/%2e%2e/b",
        "s3://bucket/a//b",
        "s3://bucket/a%00b",
        "s3://bucket a/t",
    ],
)
def test_what_names_no_table_is_refused_without_repeating_secrets(uri: str) -> None:
    with pytest.raises(InvalidUriError) as caught:
        canonical_table_uri(uri)
    assert caught.value.fix
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        ("part-1.parquet", "part-1.parquet"),
        ("p=a%20b/x.parquet", "p=a b/x.parquet"),
        ("s3://bucket/some/table/p=1/x.parquet", "p=1/x.parquet"),
        ("s3a://bucket/some/table/p=a%2520b/x", "p=a%20b/x"),
    ],
)
def test_paths_of_the_log_below_a_remote_root(raw: str, path: str) -> None:
    assert resolve_data_path(raw, root_uri=ROOT) == path


@pytest.mark.parametrize(
    "raw",
    [
        "s3://other/some/table/x",
        "s3://bucket/some/tablex/x",
        "s3://bucket/some/table",
        "s3://bucket/some/table/../other/x",
        "gs://bucket/some/table/x",
        "file:///some/table/x",
        "/some/table/x",
        "../x",
        "a%2F..%2F..%2Fx",
        "a/%00",
        "",
    ],
)
def test_paths_that_leave_a_remote_root(raw: str) -> None:
    with pytest.raises(PathEscapeError):
        resolve_data_path(raw, root_uri=ROOT)


def test_hostile_paths_never_leave_a_remote_root() -> None:
    for raw in hostile_paths(Path("/some/table"), Path("/some/other/x.parquet")):
        try:
            path = resolve_data_path(raw, root_uri=ROOT)
        except PathEscapeError:
            continue
        assert path, raw
        assert not path.startswith("/"), raw
        assert ".." not in path.split("/"), raw


def test_a_clone_s_files_lie_below_a_root_that_is_allowed() -> None:
    found = resolve_data_location(
        "s3a://source/t/x.parquet", root_uri=ROOT, allowed_root_uris=["file:///data", "s3://source/t"]
    )
    assert found == ("s3://source/t", "x.parquet")
    with pytest.raises(PathEscapeError):
        resolve_data_location("s3://source/u/x.parquet", root_uri=ROOT, allowed_root_uris=["s3://source/t"])


def test_hadoop_s_names_of_a_scheme_are_one_path() -> None:
    assert canonical_log_path("s3a://b/x%20y") == canonical_log_path("s3://b/x y")
