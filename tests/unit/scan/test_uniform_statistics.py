"""Texts of one form, read by their quotes: as JSON readers read them, or not at all."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from delta_core.scan.uniform_statistics import read_uniform

WANTED = {
    "numRecords": pa.int64(),
    "minValues": {"a": pa.int64(), "f": pa.float64(), "s": pa.string()},
    "nullCount": {"a": pa.int64()},
    "nanCount": {"f": pa.int64()},
}


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def text(a: Any = 1, f: Any = 0.5, s: Any = "x", records: Any = 7, nulls: Any = 0) -> str:
    return compact(
        {
            "numRecords": records,
            "minValues": {"a": a, "b": 3, "f": f, "s": s},
            "maxValues": {"a": 9, "b": 4, "f": 1, "s": "y"},
            "nullCount": {"a": nulls, "b": 0},
            "tightBounds": True,
        }
    )


def read(*strings: str, wanted: Any = None) -> pa.Table | None:
    return read_uniform(pa.py_buffer("\n".join(strings).encode()), len(strings), strings[0], wanted or WANTED)


def test_fields_of_each_text() -> None:
    found = read(text(), text(a=-(2**63), f=1e300, s="", nulls=5), text(a=None, s="é, 😀", records=8))
    assert found is not None
    assert found.schema.names == ["numRecords", "minValues", "nullCount"]
    assert found.to_pylist() == [
        {"numRecords": 7, "minValues": {"a": 1, "f": 0.5, "s": "x"}, "nullCount": {"a": 0}},
        {"numRecords": 7, "minValues": {"a": -(2**63), "f": 1e300, "s": ""}, "nullCount": {"a": 5}},
        {"numRecords": 8, "minValues": {"a": None, "f": 0.5, "s": "é, 😀"}, "nullCount": {"a": 0}},
    ]


def test_decimals_keep_their_digits() -> None:
    wanted = {"minValues": {"a": pa.decimal128(20, 3)}}
    strings = [text().replace('"a":1', '"a":12345678901234567.125'), text()]
    found = read(*strings, wanted=wanted)
    assert found is not None
    assert found.column("minValues").to_pylist() == [
        {"a": Decimal("12345678901234567.125")},
        {"a": Decimal("1.000")},
    ]


@pytest.mark.parametrize(
    "other",
    [
        text(s='quo"te'),
        text(s="back\\slash"),
        text(s="{"),
        text(s="}"),
        text(s=None),
        text(s=3),
        text(a="1"),
        text(a=1.5),
        text(a=2**63),
        text(a=True),
        text(f="NaN"),
        text(a=[1]),
        text(a={"x": 1}),
        text().replace('"a":1', '"a": 1,"c"'),
        text().replace('"b":3,', ""),
        text().replace('"a"', '"A"', 1),
        text().replace('"minValues"', '"minvalues"'),
        text().replace('"numRecords":7,', ""),
        text().replace('"minValues":{"a":1,"b":3', '"minValues":{"b":3,"a":1'),
        text().replace('"b":3,"f":0.5,"s":"x"}', '"b":3},"f":0.5,"s":"x"').replace("true}", "true}}"),
        # As many braces, quotes and cells, and other objects.
        text().replace('"b":3,', '"b":{').replace('"nullCount":{', '"nullCount":0,'),
        "{}",
        text() + text(),
    ],
    ids=range(23),
)
def test_a_text_of_another_form_is_for_others_to_read(other: str) -> None:
    assert read(text(), other, text()) is None


@pytest.mark.parametrize(
    "first",
    [
        "{}",
        '{"numRecords":7}',
        '{"numRecords":7,"minValues":{}}',
        '{"numRecords":7,"minValues":{"a":{"x":1}}}',
        '{"numRecords":7,"minValues":{"a":[1]}}',
        '{"numRecords":7,"numRecords":8}',
        '{"numRecords" :7}',
        '{ "numRecords":7}',
        '{"numRecords": 7, "minValues": {"a": 1, "f": 1, "s": "x"}}',
        '{"numRecords":"7"}',
        '{"numRecords":7',
        '{"numRecords":7}}',
        '{"a":"numRecords',
        "[",
    ],
)
def test_a_form_of_more_or_less_than_is_known(first: str) -> None:
    assert read(first, first, wanted={"numRecords": pa.int64(), "minValues": {"a": pa.int64()}}) in (
        None,
        pa.table({"numRecords": [7, 7]}),
    )


STRINGS = st.text(st.sampled_from('ab{}[]:,"\\ é\x00'), max_size=4)
NUMBERS = st.one_of(st.integers(-(2**63), 2**63 - 1), st.sampled_from([None, 0, True, "1", 1.0]))
FIELDS = st.fixed_dictionaries(
    {"a": NUMBERS, "f": st.one_of(st.floats(allow_nan=False, allow_infinity=False), NUMBERS), "s": STRINGS},
    optional={"b": NUMBERS, "minValues": st.just({"a": 3})},
)
DOCUMENTS = st.fixed_dictionaries(
    {
        "numRecords": st.integers(0, 9),
        "minValues": FIELDS,
        "nullCount": st.fixed_dictionaries({"a": NUMBERS}),
    },
    optional={"maxValues": FIELDS, "x": STRINGS},
)


@settings(max_examples=300)
@example([{"numRecords": 0, "minValues": {"a": 0, "f": 2**53 + 1, "s": ""}, "nullCount": {"a": 0}}], False)
@given(st.lists(DOCUMENTS, min_size=1, max_size=4), st.booleans())
def test_what_is_read_is_what_json_says(documents: list[dict[str, Any]], repeated: bool) -> None:
    """One document many times is of one form, several are sometimes."""
    chosen = documents[:1] * 3 if repeated else documents
    found = read(*map(compact, chosen))
    if found is None:
        return
    for row, document in zip(found.to_pylist(), chosen, strict=True):
        assert row["numRecords"] == document["numRecords"]
        for name in ("minValues", "nullCount"):
            assert row[name] == {key: in_json(key, document[name][key]) for key in row[name]}


def in_json(name: str, value: Any) -> Any:
    """A bound of the double column is the double nearest to what is written."""
    return float(value) if name == "f" and type(value) is int else value


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.floats(-1e9, 1e9)), min_size=1, max_size=9))
def test_plain_texts_are_always_read(values: list[tuple[int, float]]) -> None:
    found = read(*(text(a=a, f=f) for a, f in values))
    assert found is not None
    bounds = found.column("minValues").to_pylist()
    assert [(one["a"], one["f"]) for one in bounds] == values


@pytest.mark.parametrize(
    "number", ["0x10", "007", "-01", "+1", ".5", "1.", "inf", "Infinity", "1_0", "٣", ""]
)
@pytest.mark.parametrize("name", ["a", "f"])
def test_what_is_no_number_in_json(name: str, number: str) -> None:
    """Arrow's casts take some of them for one."""
    written = text().replace('"a":1' if name == "a" else '"f":0.5', f'"{name}":{number}', 1)
    assert written != text()
    assert read(text(), written) is None
    assert read(written, text()) is None


@pytest.mark.parametrize("number", ["0", "-5", "10"])
def test_numbers_of_json(number: str) -> None:
    found = read(text().replace('"a":1', f'"a":{number}'), text())
    assert found is not None
    assert found.column("minValues")[0].as_py()["a"] == int(number)
