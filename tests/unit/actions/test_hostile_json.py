"""Commits that a parser takes and a table must not: keys twice, no line at all, nothing but line ends."""

from __future__ import annotations

import tracemalloc

import pytest

from delta_core.actions.json_codec import MAX_LINE_BYTES, iter_lines, parse_commit, parse_line
from delta_core.errors import CorruptLogError

ADD = b'{"add":{"path":"a","partitionValues":{},"size":1,"modificationTime":1,"dataChange":true%s}}'


@pytest.mark.parametrize(
    ("line", "key"),
    [
        (ADD % b',"size":2', "size"),
        (ADD % b',"size" : 2', "size"),
        (ADD % b',"s\\u0069ze":2', "size"),
        (ADD % b',"tags":{"a":"1","a":"2"}', "a"),
        (ADD % b',"unknown":[{"x":1,"x":1}]', "x"),
        (ADD % b',"x\\\\":1,"x\\\\":2', "x\\"),
        (b'{"txn":{"appId":"a","version":1},"txn":{"appId":"b","version":1}}', "txn"),
        (b'{"txn":{"appId":"a","version":1},"txn":null}', "txn"),
        (b'{"commitInfo":{},"txn":{"appId":"a","version":1},"txn":null}', "txn"),
    ],
)
def test_a_key_twice_in_one_object_is_refused(line: bytes, key: str) -> None:
    with pytest.raises(CorruptLogError) as refused:
        parse_commit(line + b"\n", path="_delta_log/00000000000000000007.json")
    assert f"The key {key!r} occurs twice" in refused.value.cause
    assert "Line 1 of '_delta_log/00000000000000000007.json'" in str(refused.value)


@pytest.mark.parametrize(
    "extra",
    [
        b"",
        b' , "tags" : { "size" : "1" , "path":"2" }',
        rb',"stats":"{\"a\":1,\"a\":2,\"b\\\":\":3}"',
        rb',"tags":{"x\\":"1","x":"2"}',
        rb',"tags":{"a\"":"1","a":"\":"}',
    ],
)
def test_text_that_only_looks_so_is_none(extra: bytes) -> None:
    assert parse_line(ADD % extra, number=1, path="x") is not None


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"k":', b"}")])
def test_a_key_twice_beside_a_deep_field_is_refused(opening: bytes, closing: bytes) -> None:
    deep = opening * 1000 + b"1" + closing * 1000
    with pytest.raises(CorruptLogError, match="Line 1 of 'x'"):
        parse_line(ADD % (b',"size":2,"unknown":' + deep), number=1, path="x")


def test_an_action_that_is_null_is_none() -> None:
    assert parse_line(b'{"txn":null, "add":null}', number=1, path="x") is None


def test_provenance_may_say_what_it_likes() -> None:
    action = parse_line(b'{"commitInfo":{"a":1,"a":2}}', number=1, path="x")
    assert action is not None
    assert action.fields == {"a": 2}


@pytest.mark.parametrize("data", [b"", b"\n", b" \r\n\n\t"])
def test_a_commit_without_a_line_is_an_unfinished_write(data: bytes) -> None:
    with pytest.raises(CorruptLogError, match=r"'00000000000000000003\.json' holds no action") as refused:
        parse_commit(data, path="00000000000000000003.json")
    assert f"It has {len(data)} bytes" in refused.value.cause


def test_lines_are_counted_as_editors_do() -> None:
    assert list(iter_lines(b"a\n\n b \r\nc")) == [(1, b"a"), (3, b"b"), (4, b"c")]
    assert list(iter_lines(b"a\n")) == [(1, b"a")]


def test_line_ends_take_no_memory() -> None:
    data = b"\n" * 2_000_000 + b"a"
    tracemalloc.start()
    try:
        assert list(iter_lines(data)) == [(2_000_001, b"a")]
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_nesting_without_end_is_refused() -> None:
    for nested in (b"[" * 200_000, b'{"add":' * 200_000):
        with pytest.raises(CorruptLogError, match="Line 1 of 'x'"):
            parse_line(b'{"add":' + nested, number=1, path="x")


@pytest.mark.parametrize(
    "number", [b"1e999", b"9223372036854775808", b"-9223372036854775809", b"1.5", b"NaN"]
)
def test_numbers_beyond_a_long_are_refused(number: bytes) -> None:
    with pytest.raises(CorruptLogError, match="Line 1 of 'x'"):
        parse_commit(b'{"txn":{"appId":"a","version":%s}}' % number, path="x")


def test_a_line_longer_than_any_action_is_not_parsed() -> None:
    with pytest.raises(CorruptLogError, match=f"the limit is {MAX_LINE_BYTES}"):
        parse_line(b" " * (MAX_LINE_BYTES + 1), number=1, path="x")
