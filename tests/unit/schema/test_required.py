"""Required fields below nulls, which Parquet's writer takes for nulls of their own."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.schema.nullability import has_required_fields, without_hidden_nulls

INNER = pa.struct([pa.field("x", pa.int64(), nullable=False), pa.field("y", pa.string())])
LIST = pa.list_(pa.field("element", pa.string()))
DEEP = pa.struct(
    [
        pa.field("s", INNER, nullable=False),
        pa.field("l", LIST, nullable=False),
        pa.field("m", pa.map_(pa.string(), INNER), nullable=False),
        pa.field("n", pa.list_(INNER)),
    ]
)
DEEP_VALUE = {
    "s": {"x": 1, "y": None},
    "l": ["a", None],
    "m": [("k", {"x": 2, "y": "b"}), ("n", None)],
    "n": None,
}


def marked(values: list, kind: pa.DataType) -> pa.Array:
    """The values as `kind`, with every required field marked null wherever something above it is."""

    def loosened(kind: pa.DataType) -> pa.DataType:
        if pa.types.is_struct(kind):
            return pa.struct([pa.field(f.name, loosened(f.type)) for f in kind.fields])
        if pa.types.is_map(kind):
            return pa.map_(kind.key_type, loosened(kind.item_type))
        return pa.list_(loosened(kind.value_type)) if pa.types.is_list(kind) else kind

    loose = pa.array(values, loosened(kind))

    def retyped(array: pa.Array, kind: pa.DataType) -> pa.Array:
        children = {
            True: lambda: [
                retyped(child, f.type) for child, f in zip(array.flatten(), kind.fields, strict=True)
            ],
            False: list,
        }[pa.types.is_struct(kind)]()
        if pa.types.is_map(kind):
            items = [array.keys, retyped(array.items, kind.item_type)]
            children = [pa.StructArray.from_arrays(items, fields=[kind.key_field, kind.item_field])]
        elif pa.types.is_list(kind):
            children = [retyped(array.values, kind.value_type)]
        elif not children:
            return array
        count = 1 if pa.types.is_struct(kind) else 2
        return pa.Array.from_buffers(kind, len(array), array.buffers()[:count], -1, array.offset, children)

    return retyped(loose, kind)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (INNER, [{"x": 1, "y": "a"}, None, {"x": 3, "y": None}]),
        (pa.list_(INNER), [[{"x": 1, "y": "a"}, None], None, []]),
        (pa.map_(pa.string(), INNER), [[("k", None)], None, [("l", {"x": 1, "y": None})]]),
        (DEEP, [DEEP_VALUE, None, DEEP_VALUE | {"n": [None, {"x": 5, "y": None}]}]),
    ],
)
@pytest.mark.parametrize("start", [0, 1])
def test_written_and_read_back(kind, values, start):
    given = marked(values, kind)
    table = pa.table([given], schema=pa.schema([pa.field("c", kind)]))
    with pytest.raises(pa.ArrowInvalid, match="declared non-nullable but contains nulls"):
        pq.write_table(table, io.BytesIO())
    fixed = without_hidden_nulls(given.slice(start))
    fixed.validate(full=True)
    sink = io.BytesIO()
    pq.write_table(pa.table([fixed], schema=table.schema), sink)
    assert pq.read_table(sink).column("c").to_pylist() == values[start:]


def test_which_types_have_required_fields():
    assert has_required_fields(pa.list_(INNER))
    assert not has_required_fields(pa.struct([pa.field("a", pa.list_(pa.int64()))]))
    assert not has_required_fields(pa.map_(pa.string(), pa.int64()))
