from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_core.errors import CorruptLogError, SchemaError
from delta_core.schema.json import type_from_name
from delta_core.schema.partition_values import (
    canonical_directory,
    hive_directory,
    is_shortened,
    parse,
    parse_column,
    serialize,
    unescape_hive,
    value_of,
)

CASES = [
    ("long", -(2**63), "-9223372036854775808"),
    ("integer", 7, "7"),
    ("short", -3, "-3"),
    ("byte", 127, "127"),
    ("float", 1.5, "1.5"),
    ("double", 0.1, "0.1"),
    ("double", float("inf"), "Infinity"),
    ("double", float("-inf"), "-Infinity"),
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
    wall = type_from_name("timestamp_ntz")
    for text in ("2020-06-01 10:00:00Z", "2020-06-01T10:00:00+00:00", "2020-06-01 10:00"):
        assert parse(text, wall) == dt.datetime(2020, 6, 1, 10)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("integer", "x"),
        ("byte", "300"),
        ("date", "2013-13-01"),
        ("boolean", "yes"),
        ("decimal(5,2)", "a"),
        ("decimal(5,2)", "NaN"),
        ("float", "1,5"),
        ("timestamp_ntz", r"2013-01-01 00:00:00\+01:00"),
        ("timestamp", "2013-01-01 25:00:00"),
    ],
)
def test_wrong_text(name, text):
    with pytest.raises(CorruptLogError, match=text):
        parse(text.replace("\\", ""), type_from_name(name))


@pytest.mark.parametrize(
    ("name", "strings", "wrong"),
    [
        ("boolean", ["true", "FALSE", None, "maybe"], "maybe"),
        ("double", ["1.5", " 2 ", None, "many"], "many"),
        ("integer", ["1", " 2", None, "1.5"], "1.5"),
        ("date", ["2013-01-01", "2013-1-2", None, "today"], "today"),
        ("byte", ["7", "-8", None, "200"], "200"),
        ("integer", ["5", "1", None, "99999999999"], "99999999999"),
        ("decimal(3,1)", ["1", "-2.5", None, "1234.5"], "1234.5"),
    ],
)
def test_the_wrong_text_of_a_column_is_named_and_the_others_are_understood(name, strings, wrong):
    data_type = type_from_name(name)
    with pytest.raises(
        CorruptLogError, match=re.escape(f"The partition value {wrong!r} is not of type {name}")
    ):
        parse_column(pa.array(strings), data_type)
    found = parse_column(pa.array(strings[:-1]), data_type)
    assert found.to_pylist() == [parse(text, data_type) for text in strings[:-1]]
    assert found.null_count == 1


def test_not_a_number_is_a_partition_value():
    for name in ("float", "double"):
        data_type = type_from_name(name)
        assert serialize(float("nan"), data_type) == "NaN"
        value = parse("NaN", data_type)
        assert value != value


def test_a_void_column_has_no_value():
    void = type_from_name("void")
    assert serialize("x", void) is None
    assert parse_column(pa.array(["x", None, ""]), void).equals(pa.nulls(3))


def test_a_columns_value_is_found_whatever_its_case():
    values = {"Other": "1", "DAY": "2"}
    assert [value_of(values, name) for name in ("day", "DAY", "other")] == ["2", "2", "1"]
    with pytest.raises(CorruptLogError, match="no value for the partition column 'hour'") as caught:
        value_of(values, "hour")
    assert "'DAY': '2'" in caught.value.cause


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
    assert hive_directory("x y/z", "a") == "x y%2Fz=a"


def test_directories_have_no_letters_that_engines_spell_differently():
    """delta-spark's VACUUM and deltalake's DELETE compare the texts of paths, and spell letters apart."""
    assert hive_directory("größe", "ü ß") == "gr%C3%B6%C3%9Fe=%C3%BC %C3%9F"
    assert hive_directory("c", "日本") == "c=%E6%97%A5%E6%9C%AC"
    assert hive_directory("c", "a\u00a0b\x85😀") == "c=a%C2%A0b%C2%85%F0%9F%98%80"
    assert hive_directory("c", "~}") == "c=%7E}"
    assert canonical_directory("a/p=%25 ü~/q=x") == "a/p=%25 %C3%BC%7E/q=x"
    assert canonical_directory("p=a\n\x01\x7f") == "p=a%0A%01%7F"
    assert canonical_directory("a/p=%25 u/q=x") == "a/p=%25 u/q=x"


@pytest.mark.parametrize("text", ["x" * 300, "日" * 100, "ab" + "日" * 100, "ü" * 43])
def test_a_directory_that_no_file_system_would_take_ends_in_a_digest(text):
    directory = hive_directory("c", text)
    assert 250 < len(directory) <= 255
    assert re.fullmatch(r"c=(?:[a-z]|%[0-9A-F]{2})+-[0-9a-f]{32}", directory)
    assert is_shortened(directory)
    assert directory != hive_directory("c", text + "x")
    assert canonical_directory(f"c={text}") == (directory if not text.isascii() else f"c={text}")


def test_a_directory_that_just_fits_is_whole():
    assert hive_directory("c", "x" * 253) == "c=" + "x" * 253
    assert not is_shortened(hive_directory("c", "x" * 253))
    assert not is_shortened(hive_directory("digest", "x-" + "0" * 32))


@pytest.mark.parametrize("name", ["_day", ".day", "_"])
def test_no_directory_of_a_partition_is_hidden(name):
    directory = hive_directory(name, "_v")
    assert directory[0] == "%"
    assert directory.endswith("=_v")
    assert unescape_hive(directory.removesuffix("=_v")) == name


@given(st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1, max_size=20))
def test_hive_escaping_is_reversible_and_stays_one_segment(text):
    directory = hive_directory("c", text)
    assert directory.isascii()
    assert "~" not in directory
    assert "/" not in directory
    assert unescape_hive(directory.removeprefix("c=")) == text


@given(st.datetimes(min_value=dt.datetime(1, 1, 1), max_value=dt.datetime(9999, 12, 31)))
def test_timestamps_round_trip(value):
    ntz = type_from_name("timestamp_ntz")
    assert parse(serialize(value, ntz), ntz) == value
    utc = value.replace(tzinfo=dt.UTC)
    zoned = type_from_name("timestamp")
    assert parse(serialize(utc, zoned), zoned) == utc


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("long", "0xFFFFFFFFFFFFFFFF"),
        ("long", "9223372036854775808"),
        ("long", "-9223372036854775809"),
        ("integer", "0x10"),
        ("integer", "1_0"),
        ("integer", "٣"),
        ("byte", "0xFF"),
        ("byte", "128"),
        ("double", "1_0"),
        ("double", "٣.5"),
        ("decimal(10,2)", "1_0.5"),
        ("decimal(10,2)", "٣"),
    ],
)
def test_what_only_a_library_takes_for_a_number(name, text):
    for others in ([], ["1"], [None, ""]):
        with pytest.raises(CorruptLogError, match=re.escape(repr(text))):
            parse_column(pa.array([*others, text], pa.string()), type_from_name(name))
