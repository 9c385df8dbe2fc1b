"""Names of partition directories where they cannot be renamed, and what they stand for."""

from __future__ import annotations

from urllib.parse import quote_plus

import pytest

from spark_jobs.writer.plain_directories import decoded_values, plain_name


def by_spark(name: str) -> str:
    """A name as Spark writes it into a directory: it escapes a percent sign, and not a letter."""
    return name.replace("%", "%25").replace("/", "%2F").replace("=", "%3D")


@pytest.mark.parametrize("column", ["part", "_pärt", ".p", "a b", "100%", "ü~"])
@pytest.mark.parametrize("value", ["x", "ä b", "50%", "a+b", "a/b=c", "~", "日本", ""])
def test_what_spark_writes_is_decoded(column: str, value: str) -> None:
    plain = value.isascii() and not {"%", "~"} & set(value)
    written = value if plain else quote_plus(value, safe="*").replace("~", "%7E")
    directory = f"{by_spark(plain_name(column))}={by_spark(written)}"
    assert directory.isascii()
    assert not directory.startswith(("_", "."))
    assert decoded_values([directory], [column]) == {column: value}


def test_null_is_null() -> None:
    assert decoded_values(["p=__HIVE_DEFAULT_PARTITION__", "q=1"], ["p", "q"]) == {"p": None, "q": "1"}
