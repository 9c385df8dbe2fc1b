"""Adding, renaming, dropping, moving columns; comments and nullability."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest

from delta_core.errors import SchemaError, SchemaEvolutionError
from delta_core.schema.column_changes import (
    After,
    First,
    add_columns,
    drop_columns,
    drop_not_null,
    move_column,
    rename_column,
    set_comment,
    set_not_null,
)
from delta_core.schema.column_mapping import ID_KEY, NAME_KEY, ColumnMappingMode
from delta_core.schema.column_paths import field_at, struct_at, walk_fields
from delta_core.schema.column_uses import ColumnUse, UseKind
from delta_core.schema.mapping_assignment import assign_new
from delta_core.schema.mapping_check import MAX_ID_KEY, check_mapping
from delta_core.schema.table_columns import TableColumns
from delta_core.schema.types import (
    INTEGER,
    LONG,
    STRING,
    VOID,
    ArrayType,
    MapType,
    StructField,
    StructType,
)

INNER = StructType(
    (
        StructField(name="x", data_type=INTEGER, nullable=False),
        StructField(name="y", data_type=STRING, metadata={"comment": "y"}),
    )
)
SCHEMA = StructType(
    (
        StructField(name="p", data_type=STRING),
        StructField(name="a", data_type=LONG, metadata={"comment": "a", "own": [1]}),
        StructField(name="s", data_type=INNER),
        StructField(name="l", data_type=ArrayType(element_type=INNER)),
        StructField(name="m", data_type=MapType(key_type=INNER, value_type=INNER)),
        StructField(name="r", data_type=LONG, nullable=False),
    )
)
PLAIN = TableColumns(schema=SCHEMA, partition_columns=("p",))
MAPPED = assign_new(
    replace(PLAIN, configuration={"delta.dataSkippingStatsColumns": "a,S.x,r"}), ColumnMappingMode.NAME
)


def check(path: str, kind: UseKind = UseKind.CHECK, owner: str | None = None) -> ColumnUse:
    return ColumnUse(
        kind=kind,
        name=owner or "c",
        path=tuple(path.split(".")),
        owner=tuple(owner.split(".")) if owner else None,
    )


def metadata(columns: TableColumns) -> dict[str, object]:
    """Everything that fields keep, by physical name and place."""
    return {str(f.metadata[NAME_KEY]): (f.nullable, dict(f.metadata)) for _, f in walk_fields(columns.schema)}


NEW = StructField(name="new", data_type=INNER, metadata={"comment": "n"})


@pytest.mark.parametrize(
    ("parent", "position", "at"),
    [
        ((), None, 6),
        ((), First(), 0),
        ((), After("A"), 2),
        ((), After("r"), 6),
        (("s",), After("X"), 1),
        (("l", "element"), None, 2),
        (("m", "key"), First(), 0),
        (("m", "VALUE"), After("y"), 2),
    ],
)
@pytest.mark.parametrize("columns", [PLAIN, MAPPED])
def test_columns_are_added_anywhere(columns, parent, position, at):
    grown = add_columns(columns, [NEW], parent=parent, position=position)
    struct = field_at(grown.schema, (*parent, "new"))
    assert struct is not None
    found = [f for _, f in walk_fields(grown.schema) if f.name == "new"]
    assert found == [struct]
    assert struct.metadata["comment"] == "n"
    if columns.is_mapped:
        assert drop_columns(grown, [(*parent, "new")], uses=()).schema == columns.schema
        assert int(grown.configuration[MAX_ID_KEY]) == int(columns.configuration[MAX_ID_KEY]) + 3
    assert struct_at(grown.schema, parent).fields[at].name == "new"


@pytest.mark.parametrize(
    ("column", "parent", "problem"),
    [
        (StructField(name="A", data_type=LONG), (), "A exists already"),
        (StructField(name="Y", data_type=LONG), ("l", "element"), r"l\.element\.Y exists"),
        (StructField(name="z", data_type=LONG), ("l",), "has no fields"),
        (StructField(name="z", data_type=LONG), ("nope",), "nope does not exist"),
        (StructField(name="z", data_type=LONG, nullable=False), (), "NOT NULL"),
        (StructField(name="z", data_type=LONG, metadata={"CURRENT_DEFAULT": "1"}), (), "with a default"),
        (StructField(name="z", data_type=LONG, metadata={"delta.identity.start": 1}), (), "an identity"),
        (
            StructField(name="z", data_type=LONG, metadata={"delta.generationExpression": "a"}),
            (),
            "a generation",
        ),
        (StructField(name="z", data_type=LONG, metadata={"delta.invariants": "{}"}), (), "an invariant"),
    ],
)
def test_columns_that_cannot_be_added(column, parent, problem):
    with pytest.raises(SchemaEvolutionError, match=problem):
        add_columns(PLAIN, [column], parent=parent)


@pytest.mark.parametrize(
    "data_type",
    [
        StructType(()),
        ArrayType(element_type=StructType(())),
        MapType(key_type=STRING, value_type=VOID),
        StructType((StructField(name="only", data_type=VOID),)),
    ],
    ids=str,
)
def test_columns_that_no_file_can_hold_are_not_added(data_type):
    """Nobody could write a row of the table afterwards, and some engines could not read one."""
    column = StructField(name="e", data_type=data_type)
    with pytest.raises(SchemaError, match="cannot be written"):
        add_columns(PLAIN, [column])
    # A table that is so already may get other columns.
    hopeless = replace(PLAIN, schema=StructType((*SCHEMA.fields, column)))
    assert add_columns(hopeless, [NEW]).schema.names[-1] == "new"


def test_nothing_but_void_is_not_left():
    fields = (StructField(name="id", data_type=LONG), StructField(name="v", data_type=VOID))
    mapped = assign_new(TableColumns(schema=StructType(fields), partition_columns=()), ColumnMappingMode.NAME)
    with pytest.raises(SchemaError, match="cannot be written"):
        drop_columns(mapped, [("id",)], uses=())


def test_added_names():
    with pytest.raises(SchemaEvolutionError, match="placed after nope"):
        add_columns(PLAIN, [NEW], position=After("nope"))
    with pytest.raises(SchemaError, match="not allowed"):
        add_columns(PLAIN, [replace(NEW, name="a b")])
    assert add_columns(MAPPED, [replace(NEW, name="a b")]).schema.find("a b") is not None


@pytest.mark.parametrize("name", ["_change_type", "_Commit_Version", "_commit_timestamp"])
def test_names_of_the_change_data_feed(name):
    fed = replace(MAPPED, configuration={**MAPPED.configuration, "delta.enableChangeDataFeed": "true"})
    add_columns(MAPPED, [replace(NEW, name=name)])
    for change in (
        lambda: add_columns(fed, [replace(NEW, name=name)]),
        lambda: rename_column(fed, ["a"], name, uses=()),
    ):
        with pytest.raises(SchemaEvolutionError, match="change data feed"):
            change()


def test_names_of_row_tracking():
    key = "delta.rowTracking.materializedRowIdColumnName"
    tracked = replace(PLAIN, configuration={key: "_row-id-1"})
    with pytest.raises(SchemaEvolutionError, match="row tracking"):
        add_columns(tracked, [replace(NEW, name="_row-id-1")])


def test_a_mapping_from_elsewhere_is_not_kept():
    foreign = replace(MAPPED.schema.fields[1], name="b")
    grown = add_columns(MAPPED, [foreign])
    assert grown.schema.fields[-1].metadata[ID_KEY] == int(MAPPED.configuration[MAX_ID_KEY]) + 1
    assert "delta.columnMapping.id" not in add_columns(PLAIN, [foreign]).schema.fields[-1].metadata


@pytest.mark.parametrize(
    ("path", "name"),
    [("a", "b"), ("a", "A"), ("P", "q"), ("s.x", "z w"), ("l.element.Y", "z"), ("m.key.x", "z")],
)
def test_renaming_keeps_all_else(path, name):
    parts = path.split(".")
    renamed = rename_column(MAPPED, parts, name, uses=[check("s.y"), check("r")])
    found = field_at(renamed.schema, (*parts[:-1], name))
    assert found is not None
    assert found.name == name
    assert metadata(renamed) == metadata(MAPPED)
    check_mapping(renamed)
    back = rename_column(renamed, (*parts[:-1], name), field_at(MAPPED.schema, parts).name, uses=())
    assert back.schema == MAPPED.schema


def test_partition_columns_and_statistics_follow_a_rename():
    renamed = rename_column(MAPPED, ["p"], "q", uses=[check("p", UseKind.CLUSTERING)])
    assert renamed.partition_columns == ("q",)
    assert renamed.configuration == MAPPED.configuration
    renamed = rename_column(MAPPED, ["S"], "t.u", uses=())
    assert renamed.configuration["delta.dataSkippingStatsColumns"] == "a,`t.u`.x,r"
    # Spark's parser takes no such letter, nor a number, without quotes.
    for name in ("größe", "7"):
        renamed = rename_column(MAPPED, ["a"], name, uses=())
        assert renamed.configuration["delta.dataSkippingStatsColumns"] == f"`{name}`,S.x,r"
    assert renamed.partition_columns == ("p",)


@pytest.mark.parametrize(
    ("path", "name", "uses", "problem"),
    [
        ("nope", "z", [], "does not exist"),
        ("a", "S", [], "cannot be renamed to S"),
        ("s.x", "Y", [], "cannot be renamed to Y"),
        ("l.element", "z", [], "neither a name"),
        ("a", "", [], "not allowed"),
        ("a", "z", [check("A")], "CHECK constraint c"),
        ("s", "z", [check("s.x")], "CHECK constraint c"),
        ("s.x", "z", [check("s")], "CHECK constraint c"),
        ("a", "z", [check("a", UseKind.GENERATED, "g")], "generated column g"),
        ("a", "z", [check("a", UseKind.INVARIANT, "a")], "invariant of column a"),
    ],
)
def test_columns_that_cannot_be_renamed(path, name, uses, problem):
    with pytest.raises(SchemaError, match=problem):
        rename_column(MAPPED, path.split("."), name, uses=uses)


def test_renaming_and_dropping_need_a_mapping():
    with pytest.raises(SchemaEvolutionError, match="cannot be renamed: the table has no column mapping"):
        rename_column(PLAIN, ["a"], "b", uses=())
    with pytest.raises(SchemaEvolutionError, match="cannot be dropped: the table has no column mapping"):
        drop_columns(PLAIN, [["a"]], uses=())


def test_renaming_to_the_same_is_nothing():
    assert rename_column(MAPPED, ["a"], "a", uses=[check("a")]) is MAPPED


def test_dropping():
    dropped = drop_columns(MAPPED, [["A"], ["s", "x"], ["l", "element", "y"], ["m"]], uses=[check("s.y")])
    assert str(dropped.schema) == "struct<p:string,s:struct<y:string>,l:array<struct<x:integer>>,r:long>"
    assert dropped.configuration[MAX_ID_KEY] == MAPPED.configuration[MAX_ID_KEY]
    assert dropped.configuration["delta.dataSkippingStatsColumns"] == "r"
    kept = metadata(dropped)
    assert kept == {name: entry for name, entry in metadata(MAPPED).items() if name in kept}


def test_a_column_and_what_is_in_it():
    dropped = drop_columns(MAPPED, [["s", "x"], ["s"], ["S"]], uses=())
    assert dropped.schema.names == ("p", "a", "l", "m", "r")


def test_what_uses_a_column_may_go_with_it():
    uses = [check("a", UseKind.GENERATED, "r"), check("a", UseKind.INVARIANT, "a")]
    with pytest.raises(SchemaEvolutionError, match="generated column r"):
        drop_columns(MAPPED, [["a"]], uses=uses)
    assert drop_columns(MAPPED, [["r"]], uses=uses).schema.find("r") is None
    assert drop_columns(MAPPED, [["a"], ["r"]], uses=uses).schema.names == ("p", "s", "l", "m")


@pytest.mark.parametrize(
    ("paths", "uses", "problem"),
    [
        (["P"], [], "partitioned by it"),
        (["nope"], [], "does not exist"),
        (["l.element"], [], "element of an array"),
        (["s.x", "s.y"], [], "only remaining column of the struct s"),
        (["m.key.x", "m.key.y"], [], r"only remaining column of the struct m\.key"),
        (["a", "s", "l", "m", "r"], [], "Every column is a partition column"),
        (["a"], [check("a", UseKind.CLUSTERING)], "clustering by c"),
        (["s"], [check("s.x", UseKind.CLUSTERING)], "clustering by c"),
        (["s"], [check("s.x")], "CHECK constraint c"),
        (["s.x"], [check("s")], "CHECK constraint c"),
    ],
)
def test_columns_that_cannot_be_dropped(paths, uses, problem):
    with pytest.raises(SchemaError, match=problem):
        drop_columns(MAPPED, [path.split(".") for path in paths], uses=uses)


def test_the_last_column_stays():
    alone = drop_columns(
        replace(MAPPED, partition_columns=()), [[n] for n in ("p", "s", "l", "m", "r")], uses=()
    )
    with pytest.raises(SchemaEvolutionError, match="only remaining column of the table"):
        drop_columns(alone, [["a"]], uses=())


@pytest.mark.parametrize(
    ("path", "position", "names"),
    [
        ("r", First(), ("r", "p", "a", "s", "l", "m")),
        ("P", After("R"), ("a", "s", "l", "m", "r", "p")),
        ("a", After("a"), ("p", "a", "s", "l", "m", "r")),
        ("a", After("s"), ("p", "s", "a", "l", "m", "r")),
    ],
)
def test_moving(path, position, names):
    moved = move_column(PLAIN, [path], position)
    assert moved.schema.names == names
    assert set(moved.schema.fields) == set(SCHEMA.fields)
    assert {f.name: f for f in moved.schema} == {f.name: f for f in SCHEMA}


def test_moving_within_structs():
    moved = move_column(MAPPED, ["m", "value", "y"], First())
    assert struct_at(moved.schema, ("m", "value")).names == ("y", "x")
    assert metadata(moved) == metadata(MAPPED)
    with pytest.raises(SchemaEvolutionError, match="placed after a"):
        move_column(MAPPED, ["s", "x"], After("a"))
    with pytest.raises(SchemaEvolutionError, match="cannot be moved"):
        move_column(MAPPED, ["l", "element"], First())


def test_comments():
    commented = set_comment(PLAIN, ["l", "element", "X"], "new")
    assert field_at(commented.schema, ["l", "element", "x"]).metadata == {"comment": "new"}
    assert set_comment(commented, ["l", "element", "x"], None) == PLAIN
    assert field_at(set_comment(PLAIN, ["a"], None).schema, ["a"]).metadata == {"own": [1]}
    with pytest.raises(SchemaEvolutionError, match="neither a name"):
        set_comment(PLAIN, ["m", "key"], "k")


def test_nullability():
    loose = drop_not_null(MAPPED, ["m", "key", "x"])
    assert field_at(loose.schema, ["m", "key", "x"]).nullable
    assert set_not_null(loose, ["m", "key", "x"]) == MAPPED
    assert drop_not_null(PLAIN, ["a"]) == PLAIN
    with pytest.raises(SchemaEvolutionError, match="neither a name"):
        set_not_null(PLAIN, ["l", "element"])
    defaulted = StructType((StructField(name="a", data_type=LONG, metadata={"CURRENT_DEFAULT": "NULL"}),))
    with pytest.raises(SchemaEvolutionError, match="default is null"):
        set_not_null(TableColumns(schema=defaulted), ["a"])


@pytest.mark.parametrize("columns", [PLAIN, MAPPED])
@pytest.mark.parametrize("position", [None, First(), After("A")])
def test_several_columns_are_added_as_one_after_the_other(columns, position):
    names = count()
    several = [replace(NEW, name=f"n{number}") for number in range(4)]
    at_once = add_columns(columns, several, position=position, new_name=lambda: f"col-{next(names)}")
    names, one_by_one, place = count(), columns, position
    for field in several:
        one_by_one = add_columns(one_by_one, [field], position=place, new_name=lambda: f"col-{next(names)}")
        place = None if position is None else After(field.name)
    assert at_once == one_by_one


def test_many_columns_are_checked_once(monkeypatch):
    checked = []
    monkeypatch.setattr(
        "delta_core.schema.mapping_assignment.check_mapping", lambda *_: checked.append(1), raising=True
    )
    add_columns(MAPPED, [replace(NEW, name=f"n{number}") for number in range(50)])
    assert len(checked) <= 2


def test_one_of_several_that_is_there_already():
    with pytest.raises(SchemaEvolutionError, match="exists already"):
        add_columns(PLAIN, [replace(NEW, name="same"), replace(NEW, name="SAME")])
