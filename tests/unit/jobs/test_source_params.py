"""The source of a load as parameters: the examples of docs/loading.md, and what is refused."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest
import yaml

from delta_core.errors import InvalidJobSpecError
from delta_core.jobs.params.deduplicate import DEDUPLICATE_SCHEMA, Deduplication, parse_deduplicate
from delta_core.jobs.params.source import SOURCE_SCHEMA, parse_source
from tests.support.repository import ROOT

BLOCKS = [
    (block.split("\n", 1)[0], yaml.safe_load(block.split("\n", 1)[1]))
    for block in (ROOT / "docs" / "loading.md").read_text().split("```yaml ")[1:]
    for block in [block.split("```")[0]]
]


@pytest.mark.parametrize("example", [value for kind, value in BLOCKS if kind == "source"])
def test_the_pages_sources_are_valid(example: dict) -> None:
    jsonschema.validate(example, SOURCE_SCHEMA)
    source = parse_source(example)
    assert (source.format, list(source.uris)) == (example["format"], example["uris"])
    assert dict(source.select) == example.get("select", {})
    assert source.changes_since == example.get("changes_since")
    assert (source.schema is not None) == ("schema" in example)


def test_the_pages_deduplication_is_valid() -> None:
    (example,) = [value for kind, value in BLOCKS if kind == "deduplicate"]
    jsonschema.validate(example, DEDUPLICATE_SCHEMA)
    assert parse_deduplicate(example) == Deduplication(
        keys=("id",), order_by=("lsn DESC",), against_table=True
    )
    assert parse_deduplicate(None) is None


@pytest.mark.parametrize(
    "settings",
    [
        {"format": "parquet", "schema": [{"name": "a", "type": "long"}]},
        {"format": "csv", "corrupt_column": "c"},
        {"format": "json", "changes_since": 3},
        {"format": "delta", "options": {"header": True}},
        {"format": "json", "schema": [{"name": "a", "type": "nonsense"}]},
    ],
)
def test_a_setting_of_another_format_is_refused(settings: dict) -> None:
    with pytest.raises(InvalidJobSpecError, match="source"):
        parse_source({"uris": ["/x"], **settings})


@pytest.mark.parametrize(
    "settings",
    [
        {"where": "id < (SELECT max(id) FROM parquet.`/elsewhere`)"},
        {"select": {"id": "id", "x": "(/* a */ select 1)"}},
        {"select": {"n": "count(*)"}, "group_by": {"x": "exists(from t)"}},
    ],
)
def test_a_subquery_is_refused(settings: dict) -> None:
    with pytest.raises(InvalidJobSpecError, match="has a subquery"):
        parse_source({"format": "parquet", "uris": ["/x"], **settings})


def test_a_subquery_in_an_order_is_refused() -> None:
    with pytest.raises(InvalidJobSpecError, match="order of deduplicate has a subquery"):
        parse_deduplicate({"keys": ["id"], "order_by": ["(select 1) DESC"]})


def test_options_are_text() -> None:
    assert parse_source({"format": "csv", "uris": ["/x"], "options": {"header": True, "n": 3}}).options == {
        "header": "true",
        "n": "3",
    }


def test_uris_are_paths_as_spark_opens_them(tmp_path: Path) -> None:
    """Spark would remove `link/..` before following the link, and open `%20` as it is written."""
    inside, outside = tmp_path / "in", tmp_path / "out"
    (inside / "sub").mkdir(parents=True)
    outside.mkdir()
    (outside / "link").symlink_to(inside / "sub")

    def uri(written: str, form: str = "csv") -> str:
        return parse_source({"format": form, "uris": [written]}).uris[0]

    assert uri(f"{outside}/link/../a.csv") == f"{inside}/a.csv"
    assert uri(f"file://{outside}/link/%2E./a.csv") == f"file://{inside}/a.csv"
    assert uri(f"{outside}/link/..") == str(inside)
    assert uri(f"{outside}/link/a.csv") == f"{outside}/link/a.csv"
    assert uri("file:///a%20b.csv") == "file:///a b.csv"
    assert uri("s3://bucket/a%20b.csv") == "s3://bucket/a%20b.csv"
    assert uri("file:///a%20b", "delta") == "file:///a%20b"
