from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pytest

from delta_core.scan.statistics import has_bounds, parse_statistics
from delta_core.schema.json import type_from_name

LEAVES = {
    ("i",): type_from_name("integer"),
    ("s", "t"): type_from_name("timestamp"),
    ("n",): type_from_name("timestamp_ntz"),
    ("d",): type_from_name("date"),
    ("c",): type_from_name("decimal(10,2)"),
    ("f",): type_from_name("float"),
    ("b",): type_from_name("boolean"),
}


def document(**bounds):
    return {"numRecords": 7, "minValues": bounds, "maxValues": bounds, "nullCount": {"i": 1, "b": 2}}


def parse(*strings):
    return parse_statistics(pa.chunked_array([pa.array(strings, pa.string())]), LEAVES)


FULL = document(
    i=3, s={"t": "2020-01-01T00:00:00.123Z"}, n="2020-01-01T00:00:00.123", d="2020-01-01", c=1.5, f=0.1
)


def test_typed_values():
    parsed = parse(json.dumps(FULL | {"nanCount": {"f": 0}}))
    assert parsed.num_records.to_pylist() == [7]
    columns = parsed.columns
    assert columns[("i",)].minimum.to_pylist() == [3]
    assert columns[("i",)].null_count.to_pylist() == [1]
    assert columns[("s", "t")].minimum.to_pylist() == [dt.datetime(2020, 1, 1, 0, 0, 0, 123000, dt.UTC)]
    assert columns[("s", "t")].maximum.to_pylist() == [dt.datetime(2020, 1, 1, 0, 0, 0, 124000, dt.UTC)]
    assert columns[("n",)].maximum.to_pylist() == [dt.datetime(2020, 1, 1, 0, 0, 0, 124000)]
    assert columns[("d",)].minimum.to_pylist() == [dt.date(2020, 1, 1)]
    assert columns[("c",)].minimum.to_pylist() == [Decimal("1.50")]
    assert columns[("f",)].maximum.to_pylist() == [pytest.approx(0.1)]
    assert columns[("f",)].maximum.type == pa.float32()
    assert columns[("b",)].minimum is None
    assert columns[("b",)].null_count.to_pylist() == [2]


def same(left, right):
    assert left.num_records.equals(right.num_records)
    for path in LEAVES:
        for side in ("minimum", "maximum", "null_count"):
            one, other = getattr(left.columns[path], side), getattr(right.columns[path], side)
            assert (one is None and other is None) or one.to_pylist() == other.to_pylist()


@pytest.mark.parametrize(
    "odd",
    [
        None,
        "",
        "   ",
        "null",
        "[]",
        "{",
        '{"numRecords":1}{"numRecords":2}',
        '{"numRecords":1}\n{"numRecords":2}',
        '{"numRecords":"x"}',
        '{"numRecords":1,"numRecords":2}',
        '{"minValues":7}',
        '{"minValues":{"i":1.0}}',
        '{"minValues":{"i":99999999999}}',
        '{"minValues":{"d":"2020-13-01"}}',
        '{"minValues":{"c":1.239}}',
        '{"maxValues":{"f":"NaN"}}',
        '{"maxValues":{"i":true}}',
        "{" * 2000 + "}" * 2000,
        '{"minValues":{"d":null}}',
    ],
)
def test_one_odd_text_does_not_touch_its_neighbours(odd):
    text = json.dumps(FULL)
    parsed = parse(text, odd, text)
    alone = parse(text)
    assert len(parsed.num_records) == 3
    for path in LEAVES:
        for side in ("minimum", "maximum", "null_count"):
            expected = getattr(alone.columns[path], side)
            found = getattr(parsed.columns[path], side)
            if expected is None or found is None:
                continue
            assert [found.to_pylist()[0], found.to_pylist()[2]] == expected.to_pylist() * 2


def test_a_lost_and_a_doubled_row_do_not_cancel_out():
    doubled = '{"numRecords":1}{"numRecords":2}'
    assert parse("", doubled, '{"numRecords":3}').num_records.to_pylist() == [None, None, 3]


def test_timestamps_without_a_clear_instant_are_unknown():
    local = document(s={"t": "2020-01-01T00:00:00"}, n="2020-01-01T00:00:00+02:00")
    parsed = parse(json.dumps(local))
    assert parsed.columns[("s", "t")].minimum.to_pylist() == [None]
    assert parsed.columns[("n",)].minimum.to_pylist() == [None]
    offset = parse(json.dumps(document(s={"t": "2020-01-01T00:00:00.000+02:00"})))
    assert offset.columns[("s", "t")].minimum.to_pylist() == [dt.datetime(2019, 12, 31, 22, tzinfo=dt.UTC)]


def test_slow_and_fast_ways_agree():
    strings = [json.dumps(FULL), json.dumps(document(i=1)), json.dumps({"numRecords": 5})]
    same(parse(*strings), parse(*(json.dumps(json.loads(text), indent=1) for text in strings)))


def test_no_files_at_all():
    for strings in (pa.chunked_array([], pa.string()), pa.array([], pa.string())):
        parsed = parse_statistics(strings, LEAVES)
        assert len(parsed.num_records) == 0
        assert parsed.columns[("i",)].minimum.type == pa.int32()
        assert all(len(stats.null_count) == 0 for stats in parsed.columns.values())


def test_many_chunks():
    chunk = pa.array([json.dumps(FULL)] * 3, pa.string())
    parsed = parse_statistics(pa.chunked_array([chunk, chunk.slice(1), chunk.slice(0, 0)]), LEAVES)
    assert parsed.columns[("i",)].minimum.to_pylist() == [3] * 5


@pytest.mark.parametrize("slowly", [False, True])
@pytest.mark.parametrize(
    ("records", "low", "high", "nulls", "expected"),
    [
        (2, 1, 2, 0, (2, 1, 2, 0)),
        (-1, 1, 2, 0, (None, 1, 2, 0)),
        (2, 1, 2, -1, (2, 1, 2, None)),
        (2, 1, 2, 5, (2, 1, 2, None)),
        (2, 2, 1, 0, (2, None, None, 0)),
        (2, 2, 2, 2, (2, 2, 2, 2)),
    ],
)
def test_what_contradicts_itself_is_unknown(records, low, high, nulls, expected, slowly):
    text = json.dumps(
        {"numRecords": records, "minValues": {"i": low}, "maxValues": {"i": high}, "nullCount": {"i": nulls}}
    )
    strings = [text, "{" * 3] if slowly else [text]
    found = parse_statistics(pa.array(strings), {("i",): type_from_name("integer")})
    column = found.columns[("i",)]
    arrays = (found.num_records, column.minimum, column.maximum, column.null_count)
    assert tuple(array[0].as_py() for array in arrays) == expected


@pytest.mark.parametrize("kind", ["integer", "long", "decimal(10,2)", "double", "date", "string"])
@pytest.mark.parametrize("number", ["1E9999999", "-1E999999999999", "1E-99999999", "1e400"])
def test_a_number_of_a_billion_digits_is_not_written_out(kind, number):
    text = f'{{"numRecords":1,"minValues":{{"i":{number}}},"maxValues":{{"i":{number}}}}}'
    column = parse_statistics(pa.array([text, "{{"]), {("i",): type_from_name(kind)}).columns[("i",)]
    if kind != "double":
        assert column.minimum.to_pylist() == [None, None]
    assert column.null_count.to_pylist() == [None, None]


INTEGER = {("i",): type_from_name("integer")}


def bounded(low, high, nulls=0):
    return json.dumps(
        {"numRecords": 2, "minValues": {"i": low}, "maxValues": {"i": high}, "nullCount": {"i": nulls}}
    )


@pytest.mark.parametrize("indent", ["", " "])
def test_counts_that_nobody_asks_for_are_left_out(indent):
    text = bounded(1, 2) + indent
    found = parse_statistics(pa.array([text] * 3), INTEGER, counts=False)
    assert found.columns[("i",)].minimum.to_pylist() == [1, 1, 1]
    assert found.columns[("i",)].maximum.to_pylist() == [2, 2, 2]
    if not indent:
        assert found.num_records.to_pylist() == [None] * 3
        assert found.columns[("i",)].null_count is None
    assert found.counted == bool(indent)


@pytest.mark.parametrize("bounds", [(None, None), (1, None), (2, 1)])
def test_counts_are_read_where_a_bound_is_missing(bounds):
    found = parse_statistics(pa.array([bounded(1, 2), bounded(*bounds, nulls=2)]), INTEGER, counts=False)
    assert found.counted
    assert found.num_records.to_pylist() == [2, 2]
    assert found.columns[("i",)].null_count.to_pylist() == [0, 2]


def test_a_piece_without_counts_is_told_beside_one_with_them():
    whole = pa.array([bounded(1, 2)])
    parts = pa.chunked_array([whole, pa.array([bounded(None, None, nulls=2)])])
    found = parse_statistics(parts, INTEGER, counts=False)
    assert not found.counted
    assert found.num_records.to_pylist() == [None, 2]
    assert found.columns[("i",)].null_count.to_pylist() == [None, 2]


@pytest.mark.parametrize("number", [1, 1023, 1024, 3000])
def test_few_and_many_strings_give_the_same(number):
    text = json.dumps(FULL, separators=(",", ":"))
    one, many = parse(text), parse(*[text] * number)
    for path, column in one.columns.items():
        if has_bounds(LEAVES[path]):
            assert many.columns[path].minimum.to_pylist() == column.minimum.to_pylist() * number, path
    nulls = many.columns[("i",)].null_count
    assert nulls.to_pylist() == [1] * number
