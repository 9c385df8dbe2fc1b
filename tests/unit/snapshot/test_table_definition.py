"""Schemas that parse and cannot be used: the error says which version of which table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from delta_core.errors import CorruptLogError, DeltaError, InvalidTableError, SchemaError
from delta_core.scan.scan import Scan
from delta_core.snapshot.snapshot import Snapshot
from delta_core.snapshot.table_definition import table_schema
from tests.support.log_builder import LogBuilder, add, metadata, protocol


def field(name: str, data_type: Any = "long", **mapping: Any) -> dict[str, Any]:
    return {"name": name, "type": data_type, "nullable": True, "metadata": mapping}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def nested(depth: int) -> Any:
    found: Any = "long"
    for _ in range(depth):
        found = {"type": "array", "elementType": found, "containsNull": True}
    return found


MAPPED = {"delta.columnMapping.mode": "name"}


@pytest.mark.parametrize(
    ("schema", "changes", "kind", "reason"),
    [
        ("{", {}, SchemaError, "JSON"),
        ("", {}, CorruptLogError, "no schemaString"),
        (struct(field("p"), field("a"), field("A")), {}, SchemaError, "Two columns have the name A"),
        (struct(field("p"), field("s", struct(field("x"), field("X")))), {}, SchemaError, "have the name X"),
        (struct(field("p"), field("a", nested(300))), {}, SchemaError, "more than 100 levels deep"),
        (struct(field("a")), {}, CorruptLogError, "partition column 'p'"),
        (struct(field("p", nested(1))), {}, CorruptLogError, "partition column 'p'"),
        (struct(field("p")), {"configuration": MAPPED}, InvalidTableError, "physicalName"),
    ],
)
def test_the_error_names_version_and_table(
    tmp_path: Path, schema: Any, changes: dict[str, Any], kind: type[DeltaError], reason: str
) -> None:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    log = LogBuilder(tmp_path)
    log.commit(protocol(), metadata(schema_string=text, **changes))
    with pytest.raises(kind) as refused:
        Snapshot.load(log.store).schema  # noqa: B018 - the property is what raises
    assert f"Version 0 of {log.store.uri!r}" in refused.value.problem
    assert reason in str(refused.value)


def test_depth_up_to_the_limit_is_fine() -> None:
    schema = json.dumps(struct(field("p"), field("a", nested(99))))
    assert table_schema(metadata(schema_string=schema), where="here").names == ("p", "a")


def test_a_partition_value_of_another_type_names_the_file(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path)
    text = json.dumps(struct(field("p", "integer"), field("id")))
    log.commit(protocol(), metadata(schema_string=text))
    log.commit(add("good"), add("p=x/bad", partition_values={"p": "x"}))
    with pytest.raises(CorruptLogError, match="for the column p of the data file p=x/bad"):
        Scan(Snapshot.load(log.store), predicate="p = 1").files()
