from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from delta_core.errors import ConstraintViolationError, SchemaMismatchError
from delta_core.schema.arrow import from_arrow, to_arrow
from delta_core.schema.enforcement import conform, widens_losslessly
from delta_core.schema.json import type_from_name

TABLE = from_arrow(
    pa.schema(
        [
            pa.field("Id", pa.int64(), nullable=False),
            pa.field("name", pa.string()),
            pa.field("at", pa.timestamp("us", "UTC")),
            pa.field("s", pa.struct([pa.field("x", pa.int32()), pa.field("y", pa.string())])),
            pa.field("l", pa.list_(pa.struct([pa.field("p", pa.float64())]))),
            pa.field("m", pa.map_(pa.string(), pa.int64())),
        ]
    )
)


def test_reorders_renames_widens_and_fills():
    data = pa.table(
        {
            "NAME": pa.array(["a", None]).dictionary_encode(),
            "id": pa.array([1, 2], pa.int16()),
            "at": pa.array([dt.datetime(2020, 1, 1)] * 2, pa.timestamp("ns", "Europe/Oslo")),
            "L": pa.array([[{"p": 1.5}, None], None], pa.large_list(pa.struct([("p", pa.float32())]))),
            "m": pa.array([[("k", 1)], None], pa.map_(pa.large_string(), pa.int8())),
        }
    )
    out = conform(TABLE, data)
    assert out.schema.equals(to_arrow(TABLE))
    assert out.column("s").null_count == 2
    assert out.to_pylist()[0] == {
        "Id": 1,
        "name": "a",
        "at": dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
        "s": None,
        "l": [{"p": 1.5}, None],
        "m": [("k", 1)],
    }
    out.validate(full=True)


def test_record_batch_stays_one():
    batch = pa.record_batch({"id": pa.array([1, 2])})
    assert isinstance(conform(TABLE, batch), pa.RecordBatch)


def test_column_that_fits_is_not_copied():
    data = pa.table({"Id": pa.array([1, 2]), "name": ["a", "b"]})
    out = conform(TABLE, data)
    address = data.column("Id").chunk(0).buffers()[1].address
    assert out.column("Id").chunk(0).buffers()[1].address == address


def test_slices_of_nested_columns():
    nested = pa.array(
        [{"x": 1, "y": "a"}, {"x": 2, "y": "b"}, None, {"x": 4, "y": None}],
        pa.struct([("y", pa.large_string()), ("x", pa.int8())]),
    )
    maps = pa.array([[("a", 1)], None, [("b", 2), ("c", None)], []], pa.map_(pa.string(), pa.int32()))
    lists = pa.array([[{"p": 1}], None, [{"p": 2}, {"p": 3}], []], pa.list_(pa.struct([("p", pa.float32())])))
    data = pa.table({"Id": [1, 2, 3, 4], "s": nested, "m": maps, "l": lists})
    whole = conform(TABLE, data)
    for start in range(4):
        for length in range(5 - start):
            assert (
                conform(TABLE, data.slice(start, length)).to_pylist()
                == whole.slice(start, length).to_pylist()
            )


def test_every_problem_is_listed():
    data = pa.table({"name": [1], "extra": ["x"], "s": pa.array([{"x": "no", "z": 1}])})
    with pytest.raises(SchemaMismatchError) as caught:
        conform(TABLE, data)
    text = str(caught.value)
    assert "column extra (string) is not in the table" in text
    assert "column name has type long, the table expects string" in text
    assert "column s.x has type string, the table expects integer" in text
    assert "column s.z (long) is not in the table" in text
    assert "column Id is missing and must not be null" in text
    assert caught.value.fix


def test_duplicate_names_ignoring_case():
    data = pa.table([pa.array([1]), pa.array([2])], names=["id", "ID"])
    with pytest.raises(SchemaMismatchError, match="twice"):
        conform(TABLE, data)


def test_nulls_in_a_non_null_column():
    data = pa.table({"Id": pa.array([1, None, None]), "name": ["a", "b", "c"]})
    with pytest.raises(ConstraintViolationError) as caught:
        conform(TABLE, data)
    assert "column Id is null in 2 of 3 rows" in str(caught.value)
    assert "'name': 'b'" in str(caught.value)


def test_a_required_field_asks_for_its_struct():
    required = pa.struct([pa.field("x", pa.int32(), nullable=False), pa.field("y", pa.string())])
    table = from_arrow(pa.schema([pa.field("Id", pa.int64()), pa.field("s", required)]))
    struct = pa.struct([("x", pa.int32()), ("y", pa.string())])
    fine = pa.table({"Id": [1], "s": pa.array([{"x": 1, "y": None}], struct)})
    assert conform(table, fine).num_rows == 1
    for bad in (None, {"x": None, "y": "q"}):
        data = pa.table({"Id": [1, 2], "s": pa.array([{"x": 1, "y": "q"}, bad], struct)})
        with pytest.raises(ConstraintViolationError, match=r"s\.x is null in 1 of 2"):
            conform(table, data)
    with pytest.raises(ConstraintViolationError, match=r"s\.x is null in 2 of 2"):
        conform(table, pa.table({"Id": [1, 2]}))


def test_lossy_timestamps_are_refused_with_the_value():
    data = pa.table({"Id": [1, 2], "at": pa.array([0, 1], pa.timestamp("ns", "UTC"))})
    with pytest.raises(SchemaMismatchError, match=r"00:00:00\.000000001"):
        conform(TABLE, data)


@pytest.mark.parametrize("as_batch", [False, True])
@pytest.mark.parametrize("lossy", range(5))
def test_the_value_that_does_not_fit_is_found_wherever_it_is(as_batch: bool, lossy: int):
    nanos = [1000 * at for at in range(5)]
    nanos[lossy] += 7
    data = pa.table({"Id": list(range(5)), "at": pa.array(nanos, pa.timestamp("ns", "UTC"))})
    with pytest.raises(SchemaMismatchError, match=f"00:00:00.00000{lossy}007") as caught:
        conform(TABLE, data.to_batches()[0] if as_batch else data)
    assert caught.value.fix == "Round or cast the column to timestamp before writing."


def test_extension_types_are_stored_as_what_they_are_made_of():
    strings = pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a":1}', None]))
    names = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16, None], pa.binary(16)))
    data = pa.table(
        {"t": strings, "n": names, "l": pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), strings)}
    )
    out = conform(from_arrow(data.schema), data)
    assert out.schema.types == [pa.string(), pa.binary(), pa.list_(pa.field("element", pa.string()))]
    assert out.to_pylist() == [
        {"t": '{"a":1}', "n": b"0" * 16, "l": ['{"a":1}']},
        {"t": None, "n": None, "l": [None]},
    ]


def test_zone_matters():
    data = pa.table({"Id": [1], "at": pa.array([0], pa.timestamp("us"))})
    with pytest.raises(SchemaMismatchError, match="at has type timestamp_ntz, the table expects timestamp"):
        conform(TABLE, data)


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("byte", "long", True),
        ("long", "integer", False),
        ("long", "double", False),
        ("integer", "double", True),
        ("integer", "float", False),
        ("float", "double", True),
        ("integer", "decimal(10,0)", True),
        ("integer", "decimal(10,2)", False),
        ("long", "decimal(21,2)", True),
        ("decimal(5,2)", "decimal(7,4)", True),
        ("decimal(5,2)", "decimal(6,4)", False),
        ("decimal(5,2)", "double", False),
        ("string", "date", False),
        ("void", "date", True),
    ],
)
def test_widening(source, target, expected):
    assert widens_losslessly(type_from_name(source), type_from_name(target)) is expected


def test_integers_into_decimals():
    table = from_arrow(pa.schema([("d", pa.decimal128(12, 2))]))
    out = conform(table, pa.table({"d": pa.array([2**31 - 1, None], pa.int32())}))
    assert str(out.column("d")[0]) == "2147483647.00"


@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.large_string()])
def test_empty_string_is_null_in_a_partition_column_only(kind: pa.DataType):
    schema = from_arrow(pa.schema([("P", kind), ("v", kind)]))
    data = pa.table({"p": pa.array(["", "a", None], kind), "v": pa.array(["", "a", None], kind)})
    for shaped in (data, data.to_batches()[0], data.slice(0, 0)):
        out = conform(schema, shaped, partition_columns=["P"])
        assert out.column("P").null_count == min(2, shaped.num_rows)
        assert out.column("v").null_count == min(1, shaped.num_rows)


def test_empty_string_breaks_not_null_of_a_partition_column():
    schema = from_arrow(pa.schema([pa.field("p", pa.string(), nullable=False), pa.field("v", pa.int64())]))
    with pytest.raises(ConstraintViolationError, match="p is null in 1 of 2 rows"):
        conform(schema, pa.table({"p": ["", "a"], "v": [1, 2]}), partition_columns=["p"])
