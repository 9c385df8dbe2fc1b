"""Ids and physical names."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest

from delta_core.errors import InvalidTableError, SchemaError
from delta_core.schema.column_mapping import ID_KEY, MODE_KEY, NAME_KEY, ColumnMappingMode
from delta_core.schema.column_paths import walk_fields
from delta_core.schema.json import schema_from_json, schema_to_json
from delta_core.schema.mapping_assignment import (
    assign_added,
    assign_existing,
    assign_nested_ids,
    assign_new,
    assign_overwritten,
    random_physical_name,
    strip_mapping,
)
from delta_core.schema.mapping_check import MAX_ID_KEY, NESTED_IDS_KEY, check_mapping, max_column_id
from delta_core.schema.table_columns import TableColumns
from delta_core.schema.types import (
    INTEGER,
    LONG,
    STRING,
    ArrayType,
    MapType,
    StructField,
    StructType,
)

NAME, ID, NONE = ColumnMappingMode.NAME, ColumnMappingMode.ID, ColumnMappingMode.NONE
INNER = StructType((StructField(name="x", data_type=INTEGER), StructField(name="y", data_type=STRING)))
SCHEMA = StructType(
    (
        StructField(name="a", data_type=LONG, metadata={"comment": "kept"}),
        StructField(name="s", data_type=INNER),
        StructField(name="l", data_type=ArrayType(element_type=INNER)),
        StructField(name="m", data_type=MapType(key_type=STRING, value_type=INNER)),
    )
)


def names(first: int = 1):
    numbers = count(first)
    return lambda: f"p{next(numbers)}"


def ids(columns: TableColumns) -> dict[str, int]:
    return {".".join(path): field.metadata[ID_KEY] for path, field in walk_fields(columns.schema)}


def physical(columns: TableColumns) -> dict[str, str]:
    return {".".join(path): field.metadata[NAME_KEY] for path, field in walk_fields(columns.schema)}


def plain(schema: StructType) -> StructType:
    return strip_mapping(schema)


def mapped(schema: StructType = SCHEMA, **properties: str) -> TableColumns:
    columns = TableColumns(
        schema=schema, configuration={k.replace("_", "."): v for k, v in properties.items()}
    )
    return assign_new(columns, NAME, names())


@pytest.mark.parametrize("mode", [NAME, ID])
def test_a_new_table(mode):
    made = assign_new(TableColumns(schema=SCHEMA, configuration={"k": "v"}), mode)
    assert ids(made) == {
        "a": 1,
        "s": 2,
        "s.x": 3,
        "s.y": 4,
        "l": 5,
        "l.element.x": 6,
        "l.element.y": 7,
        "m": 8,
        "m.value.x": 9,
        "m.value.y": 10,
    }
    assert made.configuration == {"k": "v", MODE_KEY: mode.value, MAX_ID_KEY: "10"}
    assert len(set(physical(made).values())) == 10
    assert all(len(name) == 40 and name.startswith("col-") for name in physical(made).values())
    assert made.schema.fields[0].metadata["comment"] == "kept"
    assert plain(made.schema) == SCHEMA


def test_a_new_table_without_mapping_has_no_traces_of_another():
    given = TableColumns(schema=mapped().schema, configuration={MODE_KEY: "none", MAX_ID_KEY: "9"})
    made = assign_new(given, NONE)
    assert made.schema == SCHEMA
    assert made.configuration == {}


def test_a_new_table_gets_ids_of_its_own():
    twice = assign_new(replace(mapped(), schema=StructType(tuple(reversed(mapped().schema.fields)))), ID)
    assert ids(twice)["m"] == 1
    assert all(name.startswith("col-") for name in physical(twice).values())


def test_the_table_of_the_protocol_reads_back():
    made = mapped()
    assert schema_from_json(schema_to_json(made.schema)) == made.schema
    check_mapping(replace(made, schema=schema_from_json(schema_to_json(made.schema))))


def test_an_existing_table_keeps_the_names_of_its_files():
    made = assign_existing(TableColumns(schema=SCHEMA, partition_columns=("a",)))
    assert physical(made) == {".".join(path): path[-1] for path, _ in walk_fields(SCHEMA)}
    assert sorted(ids(made).values()) == list(range(1, 11))
    assert made.configuration == {MODE_KEY: "name", MAX_ID_KEY: "10"}
    assert made.partition_columns == ("a",)


def test_ids_go_on_where_an_earlier_mapping_ended():
    made = assign_existing(TableColumns(schema=SCHEMA, configuration={MAX_ID_KEY: "100"}))
    assert min(ids(made).values()) == 101


def test_a_table_with_traces_of_a_mapping_is_not_mapped_again():
    with pytest.raises(InvalidTableError, match="column s has an id"):
        assign_existing(
            TableColumns(
                schema=StructType((StructField(name="s", data_type=LONG, metadata={ID_KEY: 1}),)),
            )
        )


def test_added_fields_get_new_ids_and_known_ones_keep_theirs():
    before = mapped()
    element = StructType((*INNER.fields, StructField(name="z", data_type=LONG)))
    old = before.schema.fields
    grown = StructType(
        (
            StructField(name="n", data_type=INNER),
            *old[:2],
            replace(
                old[2],
                data_type=ArrayType(
                    element_type=StructType(
                        (*old[2].data_type.element_type.fields, StructField(name="z", data_type=LONG))
                    )
                ),
            ),
            old[3],
        )
    )
    assert plain(grown).fields[3].data_type.element_type == element
    after = assign_added(before, replace(before, schema=grown), names(11))
    new = {"n": 11, "n.x": 12, "n.y": 13, "l.element.z": 14}
    assert ids(after) == {**ids(before), **new}
    assert {k: v for k, v in physical(after).items() if k not in new} == physical(before)
    assert after.configuration[MAX_ID_KEY] == "14"


def test_ids_of_dropped_columns_do_not_come_back():
    before = mapped()
    dropped = replace(before, schema=StructType(before.schema.fields[:1]))
    again = assign_added(
        dropped, replace(dropped, schema=StructType((*dropped.schema.fields, SCHEMA.fields[1])))
    )
    assert ids(again) == {"a": 1, "s": 11, "s.x": 12, "s.y": 13}
    assert set(physical(again).values()).isdisjoint(set(physical(before).values()) - {"p1"})


def test_a_copy_of_a_mapped_field_is_a_new_column():
    before = mapped()
    copy = replace(before.schema.fields[1], name="copy")
    after = assign_added(before, replace(before, schema=StructType((*before.schema.fields, copy))))
    assert ids(after)["s"] == 2
    assert ids(after)["copy"] == 11
    assert ids(after)["copy.x"] == 12
    check_mapping(after)


def test_a_field_of_another_table_is_a_new_column_and_its_id_does_not_count():
    before = mapped()
    foreign = StructField(
        name="f", data_type=LONG, metadata={ID_KEY: 5000, NAME_KEY: "col-f", "comment": "c"}
    )
    after = assign_added(
        before, replace(before, schema=StructType((*before.schema.fields, foreign))), names(11)
    )
    assert after.schema.fields[-1].metadata == {ID_KEY: 11, NAME_KEY: "p11", "comment": "c"}


def test_without_mapping_nothing_is_assigned():
    before = TableColumns(schema=SCHEMA)
    assert assign_added(before, replace(before, schema=mapped().schema)) == before
    assert assign_overwritten(before, replace(before, schema=mapped().schema)) == before


def test_overwriting_goes_on_with_columns_of_the_same_path_and_type():
    before = mapped()
    schema = StructType(
        (
            StructField(name="m", data_type=SCHEMA.fields[3].data_type),
            StructField(name="A", data_type=LONG),
            StructField(name="s", data_type=StructType(INNER.fields[:1])),
            StructField(name="l", data_type=ArrayType(element_type=LONG)),
            StructField(name="new", data_type=LONG),
        )
    )
    after = assign_overwritten(before, replace(before, schema=schema), names(11))
    old, new = physical(before), physical(after)
    assert {name: new[name] for name in ("m", "m.value.x", "m.value.y")} == {
        name: old[name] for name in ("m", "m.value.x", "m.value.y")
    }
    assert new["A"] == old["a"]
    # The struct lost a field, so it is another; its other field is found by its path all the same.
    assert (ids(after)["s"], ids(after)["s.x"]) == (11, 3)
    assert (ids(after)["l"], ids(after)["new"]) == (12, 13)
    assert after.configuration[MAX_ID_KEY] == "13"
    assert plain(after.schema) == schema


def test_overwriting_with_not_null_is_another_column():
    before = mapped()
    schema = StructType((StructField(name="a", data_type=LONG, nullable=False),))
    after = assign_overwritten(before, replace(before, schema=schema))
    assert ids(after) == {"a": 11}
    loose = assign_overwritten(after, replace(after, schema=StructType(SCHEMA.fields[:1])))
    assert ids(loose) == {"a": 11}


NESTED = StructType(
    (
        StructField(name="col1", data_type=ArrayType(element_type=ArrayType(element_type=INTEGER))),
        StructField(
            name="col2", data_type=MapType(key_type=INTEGER, value_type=ArrayType(element_type=INTEGER))
        ),
        StructField(
            name="col3",
            data_type=MapType(
                key_type=INTEGER,
                value_type=StructType(
                    (StructField(name="subcol1", data_type=ArrayType(element_type=INTEGER)),)
                ),
            ),
        ),
    )
)


def test_nested_ids_are_those_of_the_protocols_example():
    made = mapped(NESTED, delta_enableIcebergCompatV2="true")
    fields = dict(walk_fields(made.schema))
    assert {".".join(p): f.metadata[NESTED_IDS_KEY] for p, f in fields.items()} == {
        "col1": {"p1.element": 5, "p1.element.element": 6},
        "col2": {"p2.key": 7, "p2.value": 8, "p2.value.element": 9},
        "col3": {"p3.key": 10, "p3.value": 11},
        "col3.value.subcol1": {"p4.element": 12},
    }
    assert made.configuration[MAX_ID_KEY] == "12"


def test_nested_ids_come_later_and_stay():
    before = mapped(NESTED)
    assert not any(NESTED_IDS_KEY in field.metadata for _, field in walk_fields(before.schema))
    after = assign_nested_ids(before)
    assert after.configuration[MAX_ID_KEY] == "12"
    assert assign_nested_ids(after) == after
    wanted = replace(after, configuration={**after.configuration, "delta.enableIcebergCompatV2": "true"})
    grown = StructType((*after.schema.fields, StructField(name="z", data_type=ArrayType(element_type=LONG))))
    grown_columns = assign_added(wanted, replace(wanted, schema=grown), lambda: "pz")
    assert grown_columns.schema.fields[:3] == after.schema.fields
    assert grown_columns.schema.fields[3].metadata == {
        ID_KEY: 13,
        NAME_KEY: "pz",
        NESTED_IDS_KEY: {"pz.element": 14},
    }


def test_a_type_that_differs_in_depth_gets_the_ids_that_it_lacks():
    made = assign_nested_ids(mapped(NESTED))
    deeper = replace(
        made.schema.fields[0], data_type=ArrayType(element_type=MapType(key_type=STRING, value_type=LONG))
    )
    changed = assign_nested_ids(replace(made, schema=StructType((deeper,))))
    assert changed.schema.fields[0].metadata[NESTED_IDS_KEY] == {
        "p1.element": 5,
        "p1.element.key": 13,
        "p1.element.value": 14,
    }


def broken(change) -> TableColumns:
    made = mapped()
    first, *others = made.schema.fields
    return replace(made, schema=StructType((replace(first, metadata=change(dict(first.metadata))), *others)))


@pytest.mark.parametrize(
    ("columns", "cause"),
    [
        (broken(lambda m: {k: v for k, v in m.items() if k != ID_KEY}), "a has no delta.columnMapping.id"),
        (broken(lambda m: {k: v for k, v in m.items() if k != NAME_KEY}), "a has no .*physicalName"),
        (broken(lambda m: {**m, ID_KEY: 4}), "a and s.y have the same id 4"),
        (broken(lambda m: {**m, ID_KEY: "1"}), "has no .*id|not a number"),
        (broken(lambda m: {**m, NAME_KEY: "P2"}), "Two columns have the physical path p2"),
        (broken(lambda m: {**m, ID_KEY: 99}), "is 10, but a column has the id 99"),
        (broken(lambda m: {**m, NESTED_IDS_KEY: {"p1.element": 3}}), "same id 3"),
        (broken(lambda m: {**m, NESTED_IDS_KEY: 3}), "not a map of ids"),
        (replace(mapped(), configuration={MODE_KEY: "id"}), "maxColumnId is not set"),
    ],
)
def test_broken_mappings(columns, cause):
    with pytest.raises(InvalidTableError, match="not valid") as caught:
        check_mapping(columns)
    assert caught.match(cause)


@pytest.mark.parametrize("assign", [assign_added, assign_overwritten])
def test_a_column_without_a_mapping_gets_no_new_name(assign):
    before = broken(lambda m: {k: v for k, v in m.items() if k != NAME_KEY})
    with pytest.raises(InvalidTableError, match="a has no"):
        assign(before, before)
    # Writers that do not keep the highest id leave it to be found.
    bare = replace(mapped(), configuration={MODE_KEY: "name"})
    assert assign(bare, bare).configuration == {MODE_KEY: "name", MAX_ID_KEY: "10"}


def test_highest_id():
    assert max_column_id(mapped()) == 10
    assert max_column_id(TableColumns(schema=SCHEMA)) == 0
    assert max_column_id(broken(lambda m: {**m, NESTED_IDS_KEY: {"p1.element": 77}})) == 77
    with pytest.raises(InvalidTableError, match="maxColumnId cannot be 'x'"):
        max_column_id(TableColumns(schema=SCHEMA, configuration={MAX_ID_KEY: "x"}))


def test_ids_end_at_32_bits():
    columns = TableColumns(schema=SCHEMA, configuration={MAX_ID_KEY: str(2**31 - 2)})
    with pytest.raises(SchemaError, match="no column ids left"):
        assign_existing(columns)


def test_random_names_differ():
    assert random_physical_name() != random_physical_name()
