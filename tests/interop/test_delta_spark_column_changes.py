"""Changes of columns leave the schema, partition columns and properties that delta-spark leaves."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from delta_core.schema.column_changes import (
    After,
    First,
    add_columns,
    drop_columns,
    drop_not_null,
    move_column,
    rename_column,
    set_comment,
)
from delta_core.schema.column_mapping import NAME_KEY, ColumnMappingMode
from delta_core.schema.column_paths import walk_fields
from delta_core.schema.column_types import change_type
from delta_core.schema.json import schema_from_json
from delta_core.schema.mapping_assignment import NewName, assign_new, assign_overwritten, strip_mapping
from delta_core.schema.mapping_check import MAX_ID_KEY
from delta_core.schema.mapping_modes import change_mode
from delta_core.schema.table_columns import TableColumns
from delta_core.schema.types import (
    DOUBLE,
    INTEGER,
    LONG,
    ArrayType,
    StructField,
    StructType,
)
from delta_core.table_features.defaults import set_default
from tests.support.delta_spark import by_delta_spark
from tests.support.delta_spark_column_changes import CHANGES

pytestmark = [pytest.mark.extra, pytest.mark.spark]

Z = StructType((StructField(name="z", data_type=INTEGER),))
N = StructType(
    (
        StructField(name="u", data_type=INTEGER),
        StructField(name="w", data_type=ArrayType(element_type=Z)),
    )
)
Change = Callable[[TableColumns, NewName], TableColumns]


def defaulted(columns: TableColumns, _: NewName) -> TableColumns:
    schema = set_default(columns.schema, ["r"], "5")
    return TableColumns(
        schema=schema, partition_columns=columns.partition_columns, configuration=columns.configuration
    )


OURS: tuple[Change, ...] = (
    lambda c, new: add_columns(c, [StructField(name="n", data_type=N)], position=After("a"), new_name=new),
    lambda c, new: add_columns(
        c,
        [StructField(name="q", data_type=INTEGER)],
        parent=["l", "element"],
        position=First(),
        new_name=new,
    ),
    lambda c, _: rename_column(c, ["s"], "t.u", uses=()),
    lambda c, _: rename_column(c, ["p"], "part", uses=()),
    lambda c, _: rename_column(c, ["l", "element", "x"], "xx", uses=()),
    lambda c, _: change_type(c, ["a"], INTEGER, uses=()),
    lambda c, _: change_type(c, ["a"], LONG, uses=()),
    lambda c, _: change_type(c, ["m", "key"], INTEGER, uses=()),
    lambda c, _: change_type(c, ["m", "value", "element"], LONG, uses=()),
    lambda c, _: change_type(c, ["l", "element", "xx"], DOUBLE, uses=()),
    lambda c, _: move_column(c, ["r"], First()),
    lambda c, _: move_column(c, ["l", "element", "xx"], After("y")),
    lambda c, _: drop_not_null(c, ["r"]),
    lambda c, _: set_comment(c, ["r"], "new"),
    defaulted,
    lambda c, _: drop_columns(c, [["l", "element", "y"]], uses=()),
    lambda c, _: drop_columns(c, [["a"], ["r"]], uses=()),
    lambda c, new: add_columns(c, [StructField(name="a", data_type=LONG)], new_name=new),
)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables; the session is a process of its own, with the jars from its start."""
    out = tmp_path_factory.mktemp("columns")
    by_delta_spark("column_changes", str(out))
    return out


def version(table: Path, number: int) -> TableColumns:
    lines = (table / "_delta_log" / f"{number:020}.json").read_text().splitlines()
    (metadata,) = (a["metaData"] for a in map(json.loads, lines) if "metaData" in a)
    return TableColumns(
        schema=schema_from_json(metadata["schemaString"]),
        partition_columns=tuple(metadata["partitionColumns"]),
        configuration=metadata["configuration"],
    )


def new_names(before: TableColumns, after: TableColumns) -> Iterator[str]:
    """The physical names that delta-spark drew, in the order of ids."""
    known = {field.metadata.get(NAME_KEY) for _, field in walk_fields(before.schema)}
    for _, field in walk_fields(after.schema):
        if field.metadata[NAME_KEY] not in known:
            yield field.metadata[NAME_KEY]


@pytest.mark.parametrize("number", range(1, len(CHANGES) + 1))
def test_every_change(written: Path, number: int) -> None:
    before, after = version(written / "changed", number - 1), version(written / "changed", number)
    names = new_names(before, after)
    found = OURS[number - 1](before, lambda: next(names))
    assert found.schema == after.schema
    assert found.partition_columns == after.partition_columns
    assert found.configuration == after.configuration
    assert next(names, None) is None


def test_a_new_table(written: Path) -> None:
    expected = version(written / "changed", 0)
    names = new_names(TableColumns(schema=StructType(())), expected)
    plain = TableColumns(
        schema=strip_mapping(expected.schema),
        partition_columns=expected.partition_columns,
        configuration={k: v for k, v in expected.configuration.items() if k != MAX_ID_KEY},
    )
    assert assign_new(plain, ColumnMappingMode.NAME, lambda: next(names)) == expected


def test_enabling(written: Path) -> None:
    before, after = version(written / "enabled", 0), version(written / "enabled", 1)
    assert change_mode(before, ColumnMappingMode.NAME) == after


def test_overwriting_the_schema(written: Path) -> None:
    before, after = version(written / "overwritten", 0), version(written / "overwritten", 1)
    names = new_names(before, after)
    plain = TableColumns(schema=strip_mapping(after.schema), configuration=before.configuration)
    assert assign_overwritten(before, plain, lambda: next(names)) == after
    kept = {field.metadata[NAME_KEY] for _, field in walk_fields(before.schema)}
    assert 0 < len(kept & {field.metadata[NAME_KEY] for _, field in walk_fields(after.schema)}) < len(kept)
