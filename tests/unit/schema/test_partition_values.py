from __future__ import annotations

import datetime as dt
from decimal import Decimal
from urllib.parse import unquote

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_core.errors import CorruptLogError, SchemaError
from delta_core.schema.json import type_from_name
from delta_core.schema.partition_values import (
    hive_directory,
    parse,
    parse_column,
    serialize,
    unescape_hive,
)

CASES = [
    ("long", -(2**63), "-9223372036854775808"),
    ("integer", 7, "7"),
    ("short", -3, "-3"),
    ("byte", 127, "127"),
    ("float", 1.5, "1.5"),
    ("double", 0.1, "0.1"),
    ("double", float("inf"), "Infinity"),
    ("boolean", True, "true"),
    ("boolean", False, "false"),
    ("string", "a=b/c d%é", "a=b/c d%é"),
    ("binary", b"\x01\x02", "\x01\x02"),
    ("date", dt.date(1, 2, 3), "0001-02-03"),
    ("date", dt.date(2013, 1, 31), "2013-01-31"),
    ("timestamp", dt.datetime(2013, 1, 2, 3, 4, 5, 678, dt.UTC), "2013-01-02T03:04:05.000678Z"),
    ("timestamp", dt.datetime(5, 1, 2, tzinfo=dt.UTC), "0005-01-02T00:00:00.000000Z"),
    ("timestamp_ntz", dt.datetime(2013, 1, 2, 3, 4, 5), "2013-01-02 03:04:05"),
    ("timestamp_ntz", dt.datetime(2013, 1, 2, 3, 4, 5, 6), "2013-01-02 03:04:05.000006"),
    ("decimal(10,2)", Decimal("1.50"), "1.50"),
    ("decimal(38,0)", Decimal(10**37), str(10**37)),
]


@pytest.mark.parametrize(("name", "value", "text"), CASES)
def test_both_ways(name, value, text):
    data_type = type_from_name(name)
    assert serialize(value, data_type) == text
    assert parse(text, data_type) == value


@pytest.mark.parametrize("name", sorted({case[0] for case in CASES}))
def test_null_and_empty_are_null(name):
    data_type = type_from_name(name)
    assert serialize(None, data_type) is None
    assert parse(None, data_type) is None
    assert parse("", data_type) is None


def test_empty_string_is_written_as_null():
    assert serialize("", type_from_name("string")) is None


def test_other_writers_timestamps():
    timestamp = type_from_name("timestamp")
    assert parse("1970-01-01 00:00:00", timestamp) == dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    assert parse("2020-06-01 10:00:00.5+02:00", timestamp) == dt.datetime(2020, 6, 1, 8, 0, 0, 500000, dt.UTC)
    assert parse("2020-06-01", timestamp) == dt.datetime(2020, 6, 1, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("name", "text"),
    [("integer", "x"), ("byte", "300"), ("date", "2013-13-01"), ("boolean", "yes"), ("decimal(5,2)", "a")],
)
def test_wrong_text(name, text):
    with pytest.raises(CorruptLogError, match=text):
        parse(text, type_from_name(name))


def test_wrong_value():
    with pytest.raises(SchemaError):
        serialize("x", type_from_name("integer"))
    with pytest.raises(SchemaError):
        serialize(b"\xff", type_from_name("binary"))


def test_column_keeps_dictionaries_and_slices():
    values = pa.array(["1", None, "2", "1", ""]).dictionary_encode().slice(1)
    assert parse_column(values, type_from_name("integer")).to_pylist() == [None, 2, 1, None]


def test_hive_directory():
    assert hive_directory("c", "a/b=c:d%e f") == "c=a%2Fb%3Dc%3Ad%25e f"
    assert hive_directory("c", None) == "c=__HIVE_DEFAULT_PARTITION__"
    assert hive_directory("c", "") == "c=__HIVE_DEFAULT_PARTITION__"
    assert hive_directory("x y/z", "ø") == "x y%2Fz=ø"


@given(st.text(min_size=1).filter(lambda s: "\x00" not in s))
def test_hive_escaping_is_reversible_and_stays_one_segment(text):
    directory = hive_directory("c", text)
    assert "/" not in directory
    assert unescape_hive(directory.removeprefix("c=")) == text
    assert "%2F" not in unquote(directory) or "%2F" in text or "/" not in text


@given(st.datetimes(min_value=dt.datetime(1, 1, 1), max_value=dt.datetime(9999, 12, 31)))
def test_timestamps_round_trip(value):
    ntz = type_from_name("timestamp_ntz")
    assert parse(serialize(value, ntz), ntz) == value
    utc = value.replace(tzinfo=dt.UTC)
    zoned = type_from_name("timestamp")
    assert parse(serialize(utc, zoned), zoned) == utc
