"""The rules of both Iceberg compatibilities, each broken once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from delta_core.actions import Metadata, Protocol, RemoveFile
from delta_core.actions.deletion_vector import DeletionVectorDescriptor
from delta_core.errors import IcebergCompatibilityError
from delta_core.schema.json import schema_to_json
from delta_core.schema.types import (
    INTEGER,
    LONG,
    STRING,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)
from delta_core.table_features.iceberg_compat import (
    NESTED_IDS_KEY,
    iceberg_violations,
    require_iceberg_compatibility,
)
from tests.support.log_builder import add, metadata

V1, V2 = "icebergCompatV1", "icebergCompatV2"


def column(number: int, name: str, kind: DataType, **more: Any) -> StructField:
    fields = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{name}"}
    return StructField(name=name, data_type=kind, metadata={**fields, **more})


def listing(*features: str) -> Protocol:
    return Protocol(
        min_reader_version=2, min_writer_version=7, writer_features=frozenset({"columnMapping", *features})
    )


def table(feature: str, *columns: StructField, **configuration: str) -> Metadata:
    number = feature[-1]
    given = {
        f"delta.enableIcebergCompatV{number}": "true",
        "delta.columnMapping.mode": "name",
        **{f"delta.{key.replace('__', '.')}": value for key, value in configuration.items()},
    }
    schema = StructType(columns or (column(1, "id", LONG), column(2, "p", STRING)))
    return metadata(schema_string=schema_to_json(schema), configuration=given, partition_columns=("p",))


def broken(protocol: Protocol, given: Metadata, **more: Any) -> list[str]:
    return [item.what for item in iceberg_violations(protocol, given, **more)]


@pytest.mark.parametrize("feature", [V1, V2])
def test_a_table_that_keeps_the_rules(feature: str) -> None:
    given = table(feature)
    assert broken(listing(feature), given, actions=[add("x")], previous=given) == []
    assert require_iceberg_compatibility(listing(feature), given) is None


@pytest.mark.parametrize("feature", [V1, V2])
def test_what_is_not_active_asks_nothing(feature: str) -> None:
    wrong = replace(table(feature), configuration={f"delta.enableIcebergCompatV{feature[-1]}": "false"})
    assert broken(listing(feature), wrong, actions=[add("x", stats=None)]) == []
    assert broken(listing(), table(feature, columnMapping__mode="none")) == []


@pytest.mark.parametrize("feature", [V1, V2])
def test_columns_must_be_mapped(feature: str) -> None:
    assert broken(listing(feature), table(feature, columnMapping__mode="none")) == [
        "delta.columnMapping.mode is 'none', neither name nor id"
    ]
    unlisted = Protocol(min_reader_version=1, min_writer_version=7, writer_features=frozenset({feature}))
    assert broken(unlisted, table(feature)) == ["the protocol does not list columnMapping"]


def test_deletion_vectors_are_not_supported_by_one_and_not_turned_on_with_the_other() -> None:
    supported = Protocol(
        min_reader_version=3,
        min_writer_version=7,
        reader_features=frozenset({"columnMapping", "deletionVectors"}),
        writer_features=frozenset({"columnMapping", "deletionVectors", V1, V2}),
    )
    assert broken(supported, table(V1)) == ["the protocol lists deletionVectors"]
    assert broken(supported, table(V2)) == []
    assert broken(supported, table(V2, enableDeletionVectors="true")) == [
        "delta.enableDeletionVectors is true"
    ]


def test_the_two_exclude_each_other() -> None:
    found = iceberg_violations(listing(V1, V2), table(V2, enableIcebergCompatV1="true"))
    assert [(item.feature, item.what) for item in found] == [(V2, "icebergCompatV1 is also active")]


@pytest.mark.parametrize(
    ("feature", "kind", "is_broken"),
    [
        (V1, ArrayType(element_type=LONG), True),
        (V1, MapType(key_type=STRING, value_type=LONG), True),
        (V1, VOID, True),
        (V1, StructType((column(8, "in", ArrayType(element_type=LONG)),)), True),
        (V1, StructType((column(8, "in", LONG),)), False),
        (V2, VOID, True),
        (V2, VARIANT, True),
        (V2, StructType((column(8, "in", VARIANT),)), True),
        (V2, StructType((column(8, "in", LONG),)), False),
    ],
)
def test_types(feature: str, kind: DataType, is_broken: bool) -> None:
    found = broken(listing(feature), table(feature, column(1, "c", kind), column(2, "p", STRING)))
    assert bool(found) == is_broken
    assert all("is of type" in what for what in found)


NESTED = {
    "array": (
        ArrayType(element_type=ArrayType(element_type=INTEGER)),
        {"col-c.element": 100, "col-c.element.element": 101},
    ),
    "map": (
        MapType(key_type=INTEGER, value_type=ArrayType(element_type=INTEGER)),
        {"col-c.key": 102, "col-c.value": 103, "col-c.value.element": 104},
    ),
    "map of structs": (
        MapType(
            key_type=INTEGER,
            value_type=StructType(
                (column(4, "d", ArrayType(element_type=INTEGER), **{NESTED_IDS_KEY: {"col-d.element": 107}}),)
            ),
        ),
        {"col-c.key": 105, "col-c.value": 106},
    ),
}
"""The protocol's own examples."""


@pytest.mark.parametrize("case", sorted(NESTED))
def test_ids_of_elements_keys_and_values(case: str) -> None:
    kind, ids = NESTED[case]

    def found(**changed: Any) -> list[str]:
        given = {key: value for key, value in (ids | changed).items() if value is not None}
        return broken(
            listing(V2),
            table(V2, column(1, "c", kind, **{NESTED_IDS_KEY: given}), column(2, "p", STRING)),
        )

    key = next(iter(ids))
    assert found() == []
    assert found(**{key: None}) == [f"the column c has no id for {key}"]
    assert found(**{"col-c.more": 9}) == ["the column c has an id for col-c.more, which does not exist"]
    assert found(**{key: 2}) == ["the id 2 is assigned to more than one field"]
    for wrong in ("100", 2**31, -1, True):
        assert found(**{key: wrong}) == [f"the id {wrong!r} of {key} is not a 32-bit number"]


@pytest.mark.parametrize(
    ("before", "after", "is_read"),
    [
        ("integer", "long", True),
        ("byte", "integer", True),
        ("float", "double", True),
        ("decimal(5,2)", "decimal(9,2)", True),
        ("decimal(5,2)", "decimal(9,3)", False),
        ("integer", "double", False),
        ("date", "timestamp_ntz", False),
        ("long", "decimal(20,0)", False),
        ("long", "integer", False),
        ("nothing", "long", False),
    ],
)
def test_type_changes_are_those_of_iceberg(before: str, after: str, is_read: bool) -> None:
    changes = [{"fromType": before, "toType": after}]
    given = table(V2, column(1, "c", LONG, **{"delta.typeChanges": changes}), column(2, "p", STRING))
    widening = Protocol(
        min_reader_version=3,
        min_writer_version=7,
        reader_features=frozenset({"columnMapping", "typeWidening"}),
        writer_features=frozenset({"columnMapping", "typeWidening", V2}),
    )
    assert (broken(widening, given) == []) == is_read
    assert broken(listing(V2), given) == []


@pytest.mark.parametrize("feature", [V1, V2])
def test_partitioning_keeps_its_names(feature: str) -> None:
    before = table(feature)
    other = replace(before, partition_columns=("id",))
    assert broken(listing(feature), other, previous=before) == [
        "a table partitioned by p would be partitioned by id"
    ]
    none = replace(before, partition_columns=())
    assert "partitioned by nothing" in broken(listing(feature), none, previous=before)[0]
    assert broken(listing(feature), before, previous=none) == []
    retyped = replace(table(feature, column(1, "id", LONG), column(9, "p", LONG)), partition_columns=("p",))
    assert broken(listing(feature), retyped, previous=before) == []
    renamed = StructType((column(1, "id", LONG), replace(column(2, "p", STRING), name="q")))
    moved = replace(before, schema_string=schema_to_json(renamed), partition_columns=("q",))
    assert broken(listing(feature), moved, previous=before) == []


@pytest.mark.parametrize("stats", [None, "", "{}", '{"numRecords":"1"}', '{"numRecords":true}', "[1]", "{"])
def test_every_file_says_how_many_rows_it_has(stats: str | None) -> None:
    actions = [add("good"), RemoveFile(path="gone"), add("bad", stats=stats)]
    assert broken(listing(V2), table(V2), actions=actions) == [
        "the number of rows of bad is not known (numRecords)"
    ]


def test_no_file_has_a_deletion_vector_and_the_error_says_all() -> None:
    dv = DeletionVectorDescriptor(storage_type="i", path_or_inline_dv="x", size_in_bytes=1, cardinality=1)
    with pytest.raises(IcebergCompatibilityError, match=r"Cannot append: .* icebergCompatV1") as caught:
        require_iceberg_compatibility(
            listing(V1),
            table(V1),
            actions=[add("a", deletion_vector=dv), add("b", stats=None)],
            operation="append",
        )
    assert "a has a deletion vector" in caught.value.cause
    assert "rows of b" in caught.value.cause
