"""Where a WebHDFS store is, as its URI and options say."""

from __future__ import annotations

import sys

import pytest

from delta_core.errors import ConfigurationError, InvalidUriError
from delta_core.storage.open import open_store
from delta_core.storage.uri import canonical_table_uri
from delta_core.storage.webhdfs import WebHdfsLogStore
from delta_core.storage.webhdfs_address import webhdfs_address


@pytest.mark.parametrize(
    ("uri", "canonical", "root", "endpoint"),
    [
        ("webhdfs://h:9870/a/b/", "webhdfs://h:9870/a/b", "/a/b", "http://h:9870"),
        ("webhdfs://h/a%20b", "webhdfs://h/a%20b", "/a b", "http://h:9870"),
        ("swebhdfs://h/a", "swebhdfs://h/a", "/a", "https://h:9871"),
        ("hdfs://h:8020/a", "hdfs://h:8020/a", "/a", "http://h:9870"),
        ("hdfs://h/", "hdfs://h", "", "http://h:9870"),
    ],
)
def test_uris(uri: str, canonical: str, root: str, endpoint: str) -> None:
    address = webhdfs_address(uri, {})
    assert (address.uri, address.root, address.endpoints) == (canonical, root, (endpoint,))
    assert webhdfs_address(canonical, {}) == address


@pytest.mark.parametrize(
    "uri",
    [
        "s3://h/a",
        "webhdfs:///a",
        "/a",
        "hdfs://ann@h/a",
        "hdfs://ann:pw@h/a",
        "hdfs://h/a/../b",
        "hdfs://h/a?op=x",
    ],
)
def test_uris_that_name_no_place_in_hdfs(uri: str) -> None:
    with pytest.raises(InvalidUriError) as caught:
        webhdfs_address(uri, {})
    assert "pw" not in str(caught.value)


def test_several_endpoints_and_a_gateway() -> None:
    address = webhdfs_address("hdfs://ha/t", {"webhdfs_endpoint": "http://a:1, https://b/gw/webhdfs/v1/"})
    assert address.endpoints == ("http://a:1", "https://b:9871/gw")


def test_unknown_options_are_named_with_the_known() -> None:
    with pytest.raises(ConfigurationError, match=r"'colour'.*delegation_token, timeout_seconds, user"):
        webhdfs_address("hdfs://h/t", {"colour": "red"})


@pytest.mark.parametrize(
    "options",
    [
        {"timeout_seconds": "soon"},
        {"timeout_seconds": "-1"},
        {"timeout_seconds": "nan"},
        {"webhdfs_endpoint": " , "},
        {"webhdfs_endpoint": "ftp://h"},
        {"webhdfs_endpoint": "http://ann:pw@h"},
        {"webhdfs_endpoint": "http://h:port"},
    ],
)
def test_options_that_are_not_valid(options: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        webhdfs_address("hdfs://h/t", options)
    assert "pw" not in str(caught.value)


def test_without_httpx_the_package_to_install_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(ConfigurationError, match=r"pip install deltaward\[hdfs\]"):
        WebHdfsLogStore("hdfs://h/t")


def test_the_store_is_opened_by_its_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DELTAWARD_CACHE_BYTES", "0")
    for uri in ("hdfs://h/t", "webhdfs://h:9870/t", "swebhdfs://h/t"):
        store = open_store(uri, storage_options={"user": "ann"})
        assert store.uri == uri == canonical_table_uri(uri)
        assert store.remote
