"""The names of files in Spark's `_metadata`."""

from __future__ import annotations

import pytest

from spark_jobs.file_uris import FILE_NAME, FILE_PATH, encode_as_java, identifying_field, metadata_value


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a b%+é.parquet", "a%20b%25+é.parquet"),
        ("東京\u3000都", "東京%E3%80%80都"),
        ("a\u00a0b\u2028c\u0085", "a%C2%A0b%E2%80%A8c%C2%85"),
    ],
)
def test_names_as_java_spells_them(name: str, shown: str) -> None:
    assert encode_as_java(name) == shown


def test_names_tell_files_apart_unless_two_are_the_same() -> None:
    assert identifying_field(["p=1/a", "p=1/b", "c"]) == FILE_NAME
    assert identifying_field(["p=1/a", "p=2/a"]) == FILE_PATH


def test_the_path_of_a_local_file_has_one_slash_after_the_scheme() -> None:
    assert metadata_value(FILE_PATH, "file:///tmp/t 1", "p=1/a b") == "file:/tmp/t%201/p=1/a%20b"
    assert metadata_value(FILE_PATH, "hdfs://host:8020/t", "a") == "hdfs://host:8020/t/a"
    assert metadata_value(FILE_NAME, "file:///tmp", "p=1/a b") == "a%20b"
