"""Whatever is done to a mapped table's columns, ids and physical names are as the protocol has them."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from delta_core.errors import SchemaError
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
from delta_core.schema.column_mapping import ID_KEY, NAME_KEY, ColumnMappingMode
from delta_core.schema.column_paths import Path, type_at, walk_fields
from delta_core.schema.column_types import change_type, merge_columns
from delta_core.schema.json import schema_from_json, schema_to_json
from delta_core.schema.mapping_assignment import (
    assign_existing,
    assign_new,
    assign_overwritten,
    strip_mapping,
)
from delta_core.schema.mapping_check import MAX_ID_KEY, NESTED_IDS_KEY, check_mapping, nested_ids
from delta_core.schema.table_columns import TableColumns
from delta_core.schema.types import (
    BYTE,
    DATE,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)
from tests.support.soak import rounds

KINDS = ["add", "rename", "drop", "move", "comment", "null", "type", "merge", "over"]
NAMES = st.sampled_from("abcdefghijABC")
PRIMITIVES = st.sampled_from([BYTE, SHORT, INTEGER, LONG, DATE, STRING])


def structs(types: st.SearchStrategy[DataType]) -> st.SearchStrategy[StructType]:
    fields = st.builds(StructField, name=NAMES, data_type=types)
    return st.lists(fields, min_size=1, max_size=3, unique_by=lambda f: f.name.casefold()).map(
        lambda found: StructType(tuple(found))
    )


TYPES: st.SearchStrategy[DataType] = st.recursive(
    PRIMITIVES,
    lambda inner: (
        structs(inner)
        | st.builds(ArrayType, element_type=inner)
        | st.builds(MapType, key_type=PRIMITIVES, value_type=inner)
    ),
    max_leaves=5,
)
SCHEMAS = structs(TYPES)


def paths(columns: TableColumns) -> list[Path]:
    found = [path for path, _ in walk_fields(columns.schema)]
    for path in list(found):
        kind = type_at(columns.schema, path)
        if isinstance(kind, ArrayType):
            found.append((*path, "element"))
        elif isinstance(kind, MapType):
            found += [(*path, "key"), (*path, "value")]
    return found


def change(draw: st.DrawFn, columns: TableColumns) -> TableColumns:
    path = draw(st.sampled_from(paths(columns)))
    name = draw(NAMES)
    match draw(
        st.sampled_from(["add", "rename", "drop", "move", "comment", "null", "type", "merge", "over"])
    ):
        case "add":
            position = draw(st.sampled_from([None, First(), After(name), After(path[-1])]))
            field = StructField(name=name, data_type=draw(TYPES))
            parents = [one for one in paths(columns) if isinstance(type_at(columns.schema, one), StructType)]
            parent = draw(st.sampled_from([(), *parents]))
            return add_columns(columns, [field], parent=parent, position=position)
        case "rename":
            return rename_column(columns, path, name, uses=())
        case "drop":
            return drop_columns(columns, [path, *draw(st.lists(st.just((name,)), max_size=1))], uses=())
        case "move":
            return move_column(columns, path, draw(st.just(First()) | st.builds(After, NAMES)))
        case "comment":
            return set_comment(columns, path, name)
        case "null":
            return drop_not_null(columns, path)
        case "type":
            return change_type(columns, path, draw(PRIMITIVES), uses=())
        case "merge":
            return merge_columns(columns, draw(SCHEMAS), uses=())
        case _:
            kept = strip_mapping(columns.schema).fields[: draw(st.integers(0, 3))]
            fresh = [f for f in draw(SCHEMAS) if all(f.name.casefold() != k.name.casefold() for k in kept)]
            schema = StructType((*kept, *fresh))
            return assign_overwritten(columns, replace(columns, schema=schema)) if schema.fields else columns


def assigned(columns: TableColumns) -> dict[int, tuple[str, ...]]:
    """Each column's id, and the physical path that it has."""
    found: dict[int, tuple[str, ...]] = {}

    def walk(kind: DataType, prefix: tuple[str, ...]) -> None:
        match kind:
            case StructType():
                for field in kind:
                    path = (*prefix, field.metadata[NAME_KEY])
                    found[field.metadata[ID_KEY]] = path
                    walk(field.data_type, path)
            case ArrayType():
                walk(kind.element_type, (*prefix, "element"))
            case MapType():
                walk(kind.key_type, (*prefix, "key"))
                walk(kind.value_type, (*prefix, "value"))

    walk(columns.schema, ())
    return found


def all_nested(columns: TableColumns) -> set[int]:
    return {number for _, field in walk_fields(columns.schema) for number in nested_ids(field).values()}


@settings(max_examples=rounds(usual=40, soak=5_000))
@given(st.data(), SCHEMAS, st.booleans(), st.booleans())
def test_ids_and_physical_names_under_any_changes(data, schema, existing, iceberg):
    properties = {"delta.enableTypeWidening": "true", "delta.enableIcebergCompatV2": str(iceberg).lower()}
    columns = TableColumns(schema=schema, configuration=properties)
    columns = assign_existing(columns) if existing else assign_new(columns, ColumnMappingMode.NAME)
    ever: dict[tuple[str, ...], int] = {path: number for number, path in assigned(columns).items()}
    for _ in range(data.draw(st.integers(5, 15))):
        try:
            changed = data.draw(st.composite(change)(columns))
        except SchemaError:
            # Refused: nothing has changed. Only what is allowed says anything about ids.
            continue
        check_mapping(changed)
        before, after = assigned(columns), assigned(changed)
        highest = int(columns.configuration[MAX_ID_KEY])
        assert int(changed.configuration[MAX_ID_KEY]) >= highest
        assert max(after) <= int(changed.configuration[MAX_ID_KEY])
        for number, path in after.items():
            # A new id is above all that there ever were; an old one is one that was not dropped.
            assert number > highest or number in before
            # A physical path belongs to one id for ever.
            assert ever.setdefault(path, number) == number
        assert not all_nested(changed) & set(after)
        assert all(number > highest or number in all_nested(columns) for number in all_nested(changed))
        if iceberg:
            nested = [
                f for _, f in walk_fields(changed.schema) if isinstance(f.data_type, ArrayType | MapType)
            ]
            assert all(NESTED_IDS_KEY in field.metadata for field in nested)
        assert schema_from_json(schema_to_json(changed.schema)) == changed.schema
        columns = changed


@settings(max_examples=rounds(usual=40, soak=5_000))
@given(st.data(), SCHEMAS)
def test_renaming_moving_and_dropping_leave_what_stays_as_it_was(data, schema):
    columns = assign_new(TableColumns(schema=schema), ColumnMappingMode.NAME)
    columns = replace(columns, partition_columns=())

    def kept(one: TableColumns) -> dict[int, dict[str, object]]:
        return {field.metadata[ID_KEY]: dict(field.metadata) for _, field in walk_fields(one.schema)}

    before = kept(columns)
    for _ in range(data.draw(st.integers(1, 8))):
        path = data.draw(st.sampled_from(paths(columns)))
        name = data.draw(NAMES)
        try:
            match data.draw(st.sampled_from(["rename", "move", "drop"])):
                case "rename":
                    columns = rename_column(columns, path, name, uses=())
                case "move":
                    columns = move_column(columns, path, First())
                case _:
                    columns = drop_columns(columns, [path], uses=())
        except SchemaError:
            continue
        after = kept(columns)
        assert after == {number: before[number] for number in after}
