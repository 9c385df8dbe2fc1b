"""Nulls where there must be none: what is found is what a walk through the Python values finds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import ConstraintViolationError
from delta_core.schema.arrow import type_to_arrow
from delta_core.schema.nullability import NullViolation, find_null_violations
from delta_core.schema.types import LONG, STRING, ArrayType, DataType, MapType, StructField, StructType


def _structs(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
    fields = st.lists(st.tuples(inner, st.booleans()), min_size=1, max_size=2)
    return fields.map(
        lambda found: StructType(
            tuple(
                StructField(name=f"f{at}", data_type=kind, nullable=nullable)
                for at, (kind, nullable) in enumerate(found)
            )
        )
    )


TYPES: st.SearchStrategy[DataType] = st.recursive(
    st.just(LONG),
    lambda inner: st.one_of(
        _structs(inner),
        st.builds(ArrayType, element_type=inner, contains_null=st.booleans()),
        st.builds(MapType, key_type=st.just(STRING), value_type=inner, value_contains_null=st.booleans()),
    ),
    max_leaves=4,
)


def values(data_type: DataType) -> st.SearchStrategy[Any]:
    match data_type:
        case StructType():
            inner: st.SearchStrategy[Any] = st.fixed_dictionaries(
                {f.name: values(f.data_type) for f in data_type}
            )
        case ArrayType():
            inner = st.lists(values(data_type.element_type), max_size=3)
        case MapType():
            inner = st.dictionaries(st.sampled_from("ab"), values(data_type.value_type), max_size=2).map(
                lambda found: list(found.items())
            )
        case _:
            inner = st.just(1)
    return st.one_of(st.none(), inner, inner, inner)


def walked(
    data_type: DataType, value: Any, path: str, nullable: bool, *, is_inside: bool = False
) -> Iterator[str]:
    """Where the nulls are; `is_inside` an array or map a null struct has no fields that count."""
    if value is None and not nullable:
        yield path
    match data_type:
        case StructType():
            for f in data_type if value is not None or not is_inside else ():
                inner = None if value is None else value[f.name]
                yield from walked(f.data_type, inner, f"{path}.{f.name}", f.nullable, is_inside=is_inside)
        case ArrayType():
            kind, may_be_null = data_type.element_type, data_type.contains_null
            for one in value or ():
                yield from walked(kind, one, f"{path}.element", may_be_null, is_inside=True)
        case MapType():
            kind, may_be_null = data_type.value_type, data_type.value_contains_null
            for _, one in value or ():
                yield from walked(kind, one, f"{path}.value", may_be_null, is_inside=True)


def loose(kind: pa.DataType) -> pa.DataType:
    """The type as callers give it, where everything may be null."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, loose(f.type)) for f in kind.fields])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, loose(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(loose(kind.value_type))
    return kind


@settings(max_examples=300)
@given(st.data())
def test_what_is_found_is_what_a_walk_finds(data: st.DataObject) -> None:
    kind, nullable = data.draw(TYPES), data.draw(st.booleans())
    rows = data.draw(st.lists(values(kind), max_size=8))
    skipped = data.draw(st.integers(0, len(rows)))
    middle = data.draw(st.integers(skipped, len(rows)))
    whole = pa.array(rows, loose(type_to_arrow(kind)))
    # Slices keep the values of the rows that they leave out.
    table = pa.table({"c": pa.chunked_array([whole[skipped:middle], whole[middle:]], whole.type)})
    expected: dict[str, list[int]] = {}
    for at, row in enumerate(rows[skipped:]):
        for path in set(walked(kind, row, "c", nullable)):
            expected.setdefault(path, []).append(at)
    schema = StructType((StructField(name="c", data_type=kind, nullable=nullable),))
    found = find_null_violations(schema, table)
    assert sorted(found, key=lambda one: one.column) == [
        NullViolation(column=path, num_rows=len(at), first_row=at[0]) for path, at in sorted(expected.items())
    ]


def test_what_lies_below_a_null_does_not_count() -> None:
    """Arrow keeps the values of a list that is null."""
    hidden = pa.ListArray.from_arrays(
        pa.array([0, 1, 2], pa.int32()), pa.array([None, 1], pa.int64()), mask=pa.array([True, False])
    )
    schema = StructType((StructField(name="l", data_type=ArrayType(element_type=LONG, contains_null=False)),))
    assert find_null_violations(schema, pa.table({"l": hidden})) == []


INNER = StructType((StructField(name="x", data_type=LONG, nullable=False),))


@pytest.mark.parametrize(
    ("data_type", "value"),
    [
        (ArrayType(element_type=INNER, contains_null=False), [None]),
        (ArrayType(element_type=INNER), [{"x": None}]),
        (ArrayType(element_type=LONG, contains_null=False), [1, None]),
        (MapType(key_type=STRING, value_type=LONG, value_contains_null=False), [("k", None)]),
        (MapType(key_type=STRING, value_type=INNER), [("k", {"x": None})]),
    ],
    ids=str,
)
def test_a_null_in_an_array_or_map_is_refused_and_not_written_as_something_else(
    tmp_path: Path, data_type: DataType, value: Any
) -> None:
    DeltaTable.create(
        tmp_path,
        StructType((StructField(name="id", data_type=LONG), StructField(name="v", data_type=data_type))),
    )
    given_as = loose(type_to_arrow(data_type))
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "v": pa.array([None, value], given_as)})
    with pytest.raises(ConstraintViolationError, match="NOT NULL"):
        write_deltalake(tmp_path, rows, mode="append")
    assert list(tmp_path.glob("*.parquet")) == []
    write_deltalake(tmp_path, rows.slice(0, 1), mode="append")
    assert DeltaTable(tmp_path).to_pyarrow_table().to_pylist() == [{"id": 1, "v": None}]


def test_rows_of_others_with_a_required_field_below_a_null_are_kept_and_mended(tmp_path: Path) -> None:
    """delta-spark writes none: there a required field of a struct asks for the struct."""
    required = pa.struct([pa.field("k", pa.string(), nullable=False)])
    rows = pa.table(
        {"id": pa.array([1, 2, 3], pa.int64()), "s": pa.array([None, {"k": "a"}, None], required)},
        schema=pa.schema([pa.field("id", pa.int64()), pa.field("s", required)]),
    )
    deltalake.write_deltalake(tmp_path, rows)
    table = DeltaTable(tmp_path)
    table.delete("id = 2")
    table.optimize.compact()
    assert sorted(table.to_pyarrow_table().to_pylist(), key=str) == [
        {"id": 1, "s": None},
        {"id": 3, "s": None},
    ]
    for change in (
        lambda: table.update({"id": "9"}, "id = 1"),
        lambda: write_deltalake(table, pa.table({"id": [4]}), mode="append"),
    ):
        with pytest.raises(ConstraintViolationError, match=r"s\.k is null in 1 of 1"):
            change()
    table.alter.drop_not_null(["s", "k"])
    table.update({"id": "9"}, "id = 1")
    assert sorted(table.to_pyarrow_table().column("id").to_pylist()) == [3, 9]
