"""Names as text, registry files, and what a catalog says of a table."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from delta_core.errors import ConfigurationError
from spark_jobs.names import parse_name
from spark_jobs.names.catalog import CatalogEntry, _entry, _pattern
from spark_jobs.names.registry import Registry
from spark_jobs.spark_errors import NotADeltaTableError


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("orders", ("orders",)),
        ("sales.orders", ("sales", "orders")),
        ("spark_catalog.`my db`.`a``b.c`", ("spark_catalog", "my db", "a`b.c")),
        ("größe", ("größe",)),
    ],
)
def test_a_name_is_read_and_written(text: str, parts: tuple[str, ...]) -> None:
    name = parse_name(text)
    assert name.parts == parts
    assert parse_name(name.sql()) == parse_name(str(name)) == name
    assert name.path is None


@pytest.mark.parametrize(
    "text", ["", ".", "a.", ".a", "a b", "a;drop", "`a", "a'b", "a`b`", "``", "a..b", "a-b", "x.`y`z"]
)
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        parse_name(text)


def test_a_path_has_the_form_of_a_name() -> None:
    assert parse_name("delta.`/data/my table`").path == "/data/my table"
    assert parse_name("Deltaward.`s3://b/t`").path == "s3://b/t"
    assert parse_name("delta.orders").path is None
    assert parse_name("parquet.`/x`").path is None


def test_a_pattern_has_no_character_with_a_meaning() -> None:
    assert _pattern("a*b|c'd\\e") == "a.b.c.d.e"
    assert _pattern("größe_1") == "größe_1"


INFORMATION = "Database: d\nTable: t\nType: {}\nProvider: {}\nComment: {}\nLocation: {}\nSchema: root\n"


def entry(kind: str, provider: str, location: str, comment: str = "c") -> CatalogEntry:
    return _entry("d", "t", INFORMATION.format(kind, provider, comment, location), ())


def test_a_catalog_describes_tables() -> None:
    external = entry("EXTERNAL", "Delta", "file:/x y/%20").address()
    assert (external.uri, external.provider, external.name) == ("/x y/%20", "delta", "d.t")
    assert not external.is_managed
    assert entry("MANAGED", "deltaward", "s3a://b/t").address().is_managed
    with pytest.raises(NotADeltaTableError, match="format 'parquet'"):
        entry("EXTERNAL", "parquet", "file:/x").address()
    with pytest.raises(NotADeltaTableError, match="a view"):
        _entry("", "v", "Table: v\nType: VIEW\nView Text: SELECT 1\n", ()).address()


def test_a_comment_cannot_forge_a_location() -> None:
    with pytest.raises(ConfigurationError, match="several lines 'Location'"):
        entry("EXTERNAL", "delta", "file:/x", comment="a\nLocation: file:/etc")


def test_a_registry_keeps_names(tmp_path: Path) -> None:
    registry = Registry(path=tmp_path / "tables.json")
    assert registry.tables() == {}
    assert registry.add(parse_name("Sales.Orders"), "/data/orders")
    assert not registry.add(parse_name("sales.orders"), "/data/other")
    assert registry.add(parse_name("`a b`"), "s3://b/t")
    found = registry.find(parse_name("SALES.orders"))
    assert found is not None
    assert (found.uri, found.provider, found.name) == ("/data/orders", "deltaward", "sales.orders")
    assert registry.remove(parse_name("sales.orders"))
    assert not registry.remove(parse_name("sales.orders"))
    assert list(registry.tables()) == ["`a b`"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tables.json", "tables.json.lock"]


def test_writers_of_a_registry_lose_no_name(tmp_path: Path) -> None:
    def add(number: int) -> bool:
        return Registry(path=tmp_path / "r.json").add(parse_name(f"t{number}"), f"/data/{number}")

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(add, range(40)))
    assert len(Registry(path=tmp_path / "r.json").tables()) == 40


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"tables": {"t": {}}}', '{"tables": {"t": 1}}', "\0"])
def test_a_file_that_is_no_registry_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "r.json"
    path.write_text(content)
    with pytest.raises(ConfigurationError, match="registry"):
        Registry(path=path).tables()
    with pytest.raises(ConfigurationError):
        Registry(path=path).add(parse_name("t"), "/x")
    assert path.read_text() == content


def test_a_registry_in_a_missing_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="directory"):
        Registry(path=tmp_path / "none" / "r.json").add(parse_name("t"), "/x")
    assert json.dumps(Registry(path=tmp_path / "none" / "r.json").tables()) == "{}"
