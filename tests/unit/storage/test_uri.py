"""Canonical URIs, and paths of the log that try to leave the table."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import ConfigurationError, InvalidUriError, PathEscapeError
from delta_core.storage.open import open_store
from delta_core.storage.uri import (
    absolute_log_path,
    ascii_data_path,
    canonical_log_path,
    canonical_table_uri,
    encode_data_path,
    local_path_of_uri,
    resolve_data_path,
)

ROOT = "file:///data/table"


def test_all_spellings_of_a_local_table_are_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "a b%20ü"
    table.mkdir()
    (tmp_path / "link").symlink_to(table)
    monkeypatch.chdir(tmp_path)
    expected = canonical_table_uri(table)
    spellings = [
        str(table) + "/",
        "a b%20ü",
        "./link/../link",
        f"file://{tmp_path}/a%20b%2520%C3%BC/",
        f"file:{tmp_path}/a%20b%2520%C3%BC",
        f"file://localhost{tmp_path}/link",
        expected,
    ]
    assert {canonical_table_uri(text) for text in spellings} == {expected}
    assert local_path_of_uri(expected) == table
    assert expected.endswith("/a%20b%2520%C3%BC")


def test_a_tilde_in_front_is_a_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, here = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    here.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(here)
    write_deltalake("~/t", pa.table({"a": [1]}))
    assert [path.name for path in home.iterdir()] == ["t"]
    assert not list(here.iterdir())
    assert DeltaTable(Path("~/t")).table_uri == DeltaTable("~//./t/").table_uri == f"file://{home}/t"
    assert canonical_table_uri("~") == f"file://{home}"
    assert canonical_table_uri("~root/t") == "file://" + os.path.expanduser("~root/t")


@pytest.mark.parametrize("path", ["a/~/t", "./~/t", "a~", "%7E/t"])
def test_any_other_tilde_is_a_letter(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert local_path_of_uri(canonical_table_uri(path)) == Path(os.path.normpath(tmp_path / path))
    assert canonical_table_uri("file:///~/t") == "file:///~/t"
    assert canonical_table_uri("s3://bucket/~/t") == "s3://bucket/~/t"


@pytest.mark.parametrize("path", ["~no-such-user-here/t", "~~", "~\udcff/t"])
def test_the_home_of_nobody_is_refused(path: str) -> None:
    with pytest.raises(InvalidUriError, match="home directory that does not exist"):
        canonical_table_uri(path)


@pytest.mark.parametrize("uri", ["", "dbfs:/t", "file://host/t", "a\0b"])
def test_unsupported_uris(uri: str) -> None:
    with pytest.raises(InvalidUriError) as caught:
        canonical_table_uri(uri)
    assert caught.value.fix


def test_open_store_names_the_supported_schemes() -> None:
    with pytest.raises(InvalidUriError, match=r"'ftp'.*abfss.*file.*gs.*hdfs.*s3"):
        open_store("ftp://host/table")
    with pytest.raises(ConfigurationError, match="region"):
        open_store("/tmp/x", storage_options={"region": "x"})


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        ("part-1.parquet", "part-1.parquet"),
        ("p=a%20b/x.parquet", "p=a b/x.parquet"),
        ("p=a%2520b/x", "p=a%20b/x"),
        ("p=%252e%252e/x", "p=%2e%2e/x"),
        ("./a//b", "a/b"),
        ("file:///data/table/a%20b", "a b"),
        ("file:/data/table/x/y", "x/y"),
        ("/data/table/x", "x"),
        ("t=12:30/x", "t=12:30/x"),
        ("%252e%252e/x", "%2e%2e/x"),
    ],
)
def test_paths_below_the_root(raw: str, path: str) -> None:
    assert resolve_data_path(raw, root_uri=ROOT) == path


@pytest.mark.parametrize(
    "raw",
    [
        "../x",
        "a/../../x",
        "%2e%2e/x",
        "a/%2E%2E/%2e%2e/x",
        "..%2fx",
        "..\\x",
        "a\\..\\..\\x",
        "/etc/passwd",
        "%2fetc/passwd",
        "//host/x",
        "file:///etc/passwd",
        "file:///data/table/../x",
        "file:///data/table%2f..%2fx",
        "file://host/data/table/x",
        "file:///data/table",
        "file:///data/tablets/x",
        "s3://other/x",
        "http://x/y",
        "a%00b",
        "",
        ".",
        "x/..",
    ],
)
def test_paths_that_leave_the_root_are_refused(raw: str) -> None:
    with pytest.raises(PathEscapeError):
        resolve_data_path(raw, root_uri=ROOT)


@pytest.mark.parametrize("path", ["a b", "p=50%/x", "ü/ñ", "c=a%20b/x", "q?#[]{}|^", "plain"])
def test_encoding_is_undone_by_resolving(path: str) -> None:
    encoded = encode_data_path(path)
    assert resolve_data_path(encoded, root_uri=ROOT) == path
    assert resolve_data_path(ascii_data_path(path), root_uri=ROOT) == path
    assert ascii_data_path(path).isascii()


@pytest.mark.parametrize(
    ("path", "encoded"),
    [
        ("p=ü ß/x", "p=ü%20ß/x"),
        ("p=a\u00a0b/x", "p=a%C2%A0b/x"),
        ("p=\x85/x", "p=%C2%85/x"),
        ("p=日本/x", "p=日本/x"),
        ("p=it%27s/x", "p=it%2527s/x"),
    ],
)
def test_letters_are_spelled_as_hadoop_spells_them(path: str, encoded: str) -> None:
    """delta-spark's VACUUM deletes a live file whose path in the log has another text than its own."""
    assert encode_data_path(path) == encoded


def test_names_that_are_no_text_keep_their_bytes() -> None:
    """Python has them as lone surrogates."""
    name = "p=ü/x\udcff\udcfe.parquet"
    assert encode_data_path(name) == "p=ü/x%FF%FE.parquet"
    assert resolve_data_path(encode_data_path(name), root_uri="file:///t") == name


def test_spellings_of_one_file_compare_equal() -> None:
    assert (
        len({canonical_log_path(p) for p in ("/a/b%20c", "file:/a/b%20c", "file:///a/b%20c", "/a/b c")}) == 1
    )
    assert canonical_log_path("p=1/x") == "p=1/x"


def test_bytes_that_are_no_text_stay_apart() -> None:
    raw = [
        "x%FF.parquet",
        "x%FE.parquet",
        "x%EF%BF%BD.parquet",
        "x%25FF.parquet",
        "x%FFFF.parquet",
        "xFF.parquet",
    ]
    assert len({canonical_log_path(path) for path in raw}) == len(raw)
    assert canonical_log_path("x%ff.parquet") == canonical_log_path("%78%FF.parquet")
    assert canonical_log_path("file:/t/x%ff") == canonical_log_path("/t/x%FF")
    for path in raw:
        canonical_log_path(path).encode()


def test_a_local_file_is_known_by_bytes_that_are_no_text() -> None:
    for raw in ("p=1/x%FF", "file:///data/table/p=1/x%ff", "/data/table/p=1/x%FF"):
        assert os.fsencode(resolve_data_path(raw, root_uri=ROOT)) == b"p=1/x\xff"
    for raw in ("x%FF", "s3://bucket/t/p=%C3/x"):
        with pytest.raises(PathEscapeError) as caught:
            resolve_data_path(raw, root_uri="s3://bucket/t")
        assert raw in caught.value.problem
        assert "not UTF-8" in str(caught.value)


@pytest.mark.parametrize("uri", ["file:///data/%FF", "s3://bucket/t%C3"])
def test_a_table_uri_that_is_no_text_is_refused(uri: str) -> None:
    with pytest.raises(InvalidUriError, match="cannot be decoded"):
        canonical_table_uri(uri)
    assert canonical_table_uri("/data/%FF").endswith("%25FF")


@pytest.mark.parametrize(
    ("path", "root_uri", "expected"),
    [
        ("a.parquet", "file:///t", "file:/t/a.parquet"),
        ("p=a b%/ü.parquet", "file:///s%20%C3%A9", "file:/s%20é/p=a%20b%25/ü.parquet"),
        ("日本/😀", "file:///t", "file:/t/日本/😀"),
        ("a\u2028b\u00a0c\u0085d", "file:///t", "file:/t/a%E2%80%A8b%C2%A0c%C2%85d"),
        ("%C3%A9", "file:///t", "file:/t/%25C3%25A9"),
        ("a", "file:///not%FFtext", "file:/not%FFtext/a"),
        ("é/a", "s3://bucket/t", "s3://bucket/t/é/a"),
    ],
)
def test_absolute_paths_are_written_in_hadoops_spelling(path: str, root_uri: str, expected: str) -> None:
    written = absolute_log_path(path, root_uri=root_uri)
    assert written == expected
    assert resolve_data_path(written, root_uri=root_uri) == path
    assert canonical_log_path(written) == canonical_log_path(f"{root_uri}/{encode_data_path(path)}")
