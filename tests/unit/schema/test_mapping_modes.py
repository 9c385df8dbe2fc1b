"""Changes of the column mapping mode."""

from __future__ import annotations

from dataclasses import replace

import pytest

from delta_core.errors import InvalidTablePropertyError, SchemaError, SchemaEvolutionError
from delta_core.schema.column_mapping import NAME_KEY, ColumnMappingMode
from delta_core.schema.mapping_assignment import assign_existing, assign_new
from delta_core.schema.mapping_modes import change_mode, parse_mode, remove_mapping
from delta_core.schema.table_columns import TableColumns
from delta_core.schema.types import LONG, StructField, StructType

NONE, NAME, ID = ColumnMappingMode.NONE, ColumnMappingMode.NAME, ColumnMappingMode.ID
PLAIN = TableColumns(
    schema=StructType((StructField(name="a", data_type=LONG), StructField(name="b", data_type=LONG))),
    configuration={"k": "v"},
)


def in_mode(mode: ColumnMappingMode) -> TableColumns:
    return assign_new(PLAIN, mode)


def test_modes_are_read_in_any_case():
    assert parse_mode(" Name ") is NAME
    with pytest.raises(InvalidTablePropertyError, match="cannot be 'names'"):
        parse_mode("names")


def test_enabling():
    enabled = change_mode(PLAIN, NAME)
    assert enabled == assign_existing(PLAIN)
    assert [field.metadata[NAME_KEY] for field in enabled.schema] == ["a", "b"]


@pytest.mark.parametrize("mode", list(ColumnMappingMode))
def test_the_same_mode_changes_nothing(mode):
    columns = in_mode(mode)
    assert change_mode(columns, mode) is columns


@pytest.mark.parametrize(
    ("before", "after", "cause"),
    [
        (NONE, ID, "have no ids"),
        (NAME, ID, "first mode"),
        (ID, NAME, "first mode"),
        (NAME, NONE, "physical names"),
        (ID, NONE, "physical names"),
    ],
)
def test_refused_changes(before, after, cause):
    with pytest.raises(InvalidTablePropertyError, match=f"from {before} to {after}") as caught:
        change_mode(in_mode(before), after)
    assert caught.match(cause)


@pytest.mark.parametrize("mode", [NAME, ID])
def test_removal(mode):
    assert remove_mapping(in_mode(mode)) == PLAIN


def test_removal_of_none_is_nothing():
    assert remove_mapping(PLAIN) is PLAIN


def test_removal_needs_names_that_files_can_have():
    columns = in_mode(NAME)
    spaced = StructType((replace(columns.schema.fields[0], name="a b"), columns.schema.fields[1]))
    with pytest.raises(SchemaEvolutionError, match="files cannot hold a b"):
        remove_mapping(replace(columns, schema=spaced))
    with pytest.raises(SchemaError, match="same name"):
        remove_mapping(
            replace(columns, schema=StructType((columns.schema.fields[0], columns.schema.fields[0])))
        )


@pytest.mark.parametrize("version", ["V1", "V2", "V3"])
def test_removal_waits_for_iceberg(version):
    key = f"delta.enableIcebergCompat{version}"
    columns = in_mode(NAME)
    with pytest.raises(InvalidTablePropertyError, match=f"while {key} is true"):
        remove_mapping(replace(columns, configuration={**columns.configuration, key: "true"}))
