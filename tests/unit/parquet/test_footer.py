"""Parquet footers that Arrow would trust: contradictions, forged counts, bombs, and what ends a process."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.parquet.footer import MalformedFooter, read_footer
from delta_core.parquet.thrift_compact import MalformedThrift, read_struct

TABLE = pa.table(
    {
        "a": pa.array([1, None, 3, 4]),
        "m": pa.array([[("k", "v")], [], None, [("k", None), ("l", "w")]], pa.map_(pa.string(), pa.string())),
        "s": pa.array([{"x": [1, 2], "y": "t"}, None, {"x": None, "y": "u"}, {"x": [], "y": None}]),
    }
)


def parquet(table: pa.Table = TABLE, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return sink.getvalue().to_pybytes()


def varint(value: int) -> bytes:
    value = (value << 1) ^ (value >> 63)
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def encoded(value: Any) -> tuple[int, bytes]:
    """A value as Thrift writes it, with its type."""
    if isinstance(value, bool):
        return (1 if value else 2), b""
    if isinstance(value, int):
        return 6, varint(value)
    if isinstance(value, bytes):
        return 8, size_of(value) + value
    if isinstance(value, list):
        kinds = [encoded(item) for item in value]
        kind = kinds[0][0] if kinds else 6
        return 9, bytes([0xF0 | kind]) + size_of(value) + b"".join(body for _, body in kinds)
    return 12, struct(value)


def size_of(value: Any) -> bytes:
    return varint(len(value))[:0] + unsigned(len(value))


def unsigned(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def struct(fields: dict[int, Any]) -> bytes:
    body = b""
    for number, value in fields.items():
        kind, data = encoded(value)
        body += bytes([kind]) + varint(number) + data
    return body + b"\0"


def parsed(data: bytes) -> dict[int, Any]:
    length = int.from_bytes(data[-8:-4], "little")
    return read_struct(data[-8 - length : -8])[0]


def with_footer(data: bytes, fields: dict[int, Any]) -> pa.BufferReader:
    length = int.from_bytes(data[-8:-4], "little")
    # A footer's number of bytes changes when all of its integers are written as long ones.
    fields = {key: value for key, value in fields.items() if key in (1, 2, 3, 4)}
    for element in fields[2]:
        element.pop(10, None)
    body = struct(fields)
    return pa.BufferReader(data[: -8 - length] + body + len(body).to_bytes(4, "little") + b"PAR1")


@pytest.mark.parametrize("options", [{}, {"row_group_size": 2}, {"version": "1.0", "use_dictionary": False}])
def test_it_says_what_arrow_says(options: dict[str, Any]) -> None:
    data = parquet(**options)
    footer, metadata = read_footer(pa.BufferReader(data)), pq.read_metadata(pa.BufferReader(data))
    assert footer.num_rows == metadata.num_rows == 4
    for index, leaf in enumerate(footer.leaves):
        column = metadata.schema.column(index)
        assert leaf.path == column.path
        assert leaf.max_definition == column.max_definition_level
        assert leaf.max_repetition == column.max_repetition_level
        for group in range(metadata.num_row_groups):
            chunk = metadata.row_group(group).column(index)
            assert footer.group_rows[group] == metadata.row_group(group).num_rows
            assert footer.groups[group][index].nulls == chunk.statistics.null_count


def test_files_without_rows_groups_or_statistics_are_fine(tmp_path: Path) -> None:
    assert read_footer(pa.BufferReader(parquet(TABLE.slice(0, 0)))).num_rows == 0
    assert read_footer(pa.BufferReader(parquet(write_statistics=False))).groups[0][0].nulls is None
    writer = pq.ParquetWriter(tmp_path / "x", TABLE.schema)
    writer.close()
    with pa.OSFile(str(tmp_path / "x")) as source:
        assert read_footer(source).group_rows == ()


def test_a_footer_longer_than_the_first_read() -> None:
    data = parquet(pa.table({f"column {at:04}": [at] for at in range(1500)}))
    assert int.from_bytes(data[-8:-4], "little") > 1 << 16
    assert len(read_footer(pa.BufferReader(data)).leaves) == 1500


def forged(change: Any) -> pa.BufferReader:
    data = parquet()
    fields = parsed(data)
    change(fields)
    return with_footer(data, fields)


def column(fields: dict[int, Any], index: int = 0) -> dict[int, Any]:
    found: dict[int, Any] = fields[4][0][1][index][3]
    return found


FORGERIES: dict[str, tuple[Any, str]] = {
    "rows of the file": (lambda f: f.update({3: 5}), "row groups have 4 rows"),
    "rows of a group": (lambda f: (f.update({3: 2**40}), f[4][0].update({3: 2**40})), "too many for"),
    "negative rows": (lambda f: f[4][0].update({3: -1}), "rows of a row group is -1"),
    "values": (lambda f: column(f).update({5: 2**31}), "values for 4 rows"),
    "values of a list": (lambda f: column(f, 1).update({5: 2**31}), "claims 2147483648 values"),
    "no values": (lambda f: column(f, 1).update({5: 0}), "claims 0 values"),
    "unfolded bytes": (lambda f: column(f).update({6: 2**40}), "would decompress to"),
    "negative bytes": (lambda f: column(f).update({7: -5}), "stored bytes of a is -5"),
    "beyond the file": (lambda f: column(f).update({9: 10**6}), "data pages of the column a begin at"),
    "into the footer": (lambda f: column(f).update({7: 10**5}), "the column a is at"),
    "dictionary before the file": (lambda f: column(f).update({11: 1}), "the column a is at bytes 1"),
    "nulls": (lambda f: column(f)[12].update({3: 5}), "5 nulls, but 4 values"),
    "no description": (lambda f: f[4][0][1][0].pop(3), "no metadata"),
    "a column less": (lambda f: f[4][0][1].pop(), "a row group has 4 columns"),
    "columns changed about": (lambda f: f[4][0][1].reverse(), "a row group has the column s.y in place of a"),
    "another type": (
        lambda f: column(f).update({1: 6}),
        "differ in the physical type of the column a",
    ),
    "a child more": (lambda f: f[2][0].update({5: 4}), "ends early"),
    "a child less": (lambda f: f[2][0].update({5: 2}), "of which"),
    "many children": (lambda f: f[2][0].update({5: 2**40}), "children"),
    "no schema": (lambda f: f[2].clear(), "ends early"),
    "no such repetition": (lambda f: f[2][1].update({3: 7}), "invalid repetition type"),
    "a name that is not UTF-8": (lambda f: f[2][1].update({4: b"\xff"}), "does not have the type"),
    "a number for a list": (lambda f: f.update({4: 1}), "does not have the type"),
    "no row groups": (lambda f: f.pop(4), "does not have the type"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_footers_are_refused(name: str) -> None:
    change, reason = FORGERIES[name]
    assert read_footer(forged(lambda fields: None)).num_rows == 4
    with pytest.raises(MalformedFooter) as refused:
        read_footer(forged(change))
    assert reason in str(refused.value)


def test_a_histogram_of_another_length_is_refused() -> None:
    """Arrow ends the process when it meets one."""

    def change(fields: dict[int, Any]) -> None:
        column(fields)[16] = {3: [1, 2, 3, 4, 5]}

    with pytest.raises(MalformedFooter, match="histogram"):
        read_footer(forged(change))


def test_fifteen_million_rows_in_a_small_file_are_refused() -> None:
    rows = 15_000_000
    data = parquet(pa.table({"a": pa.repeat(pa.scalar("x"), rows)}), compression="zstd")
    assert len(data) < 600_000
    with pytest.raises(MalformedFooter, match="claims 15000000 rows"):
        read_footer(pa.BufferReader(data))
    assert read_footer(pa.BufferReader(data), limit_rows=False).num_rows == rows


@pytest.mark.parametrize("length", [2**32 - 1, 2**24 + 1, 5000, 0])
def test_wrong_lengths_of_the_footer(length: int) -> None:
    data = parquet()
    with pytest.raises(MalformedFooter):
        read_footer(pa.BufferReader(data[:-8] + length.to_bytes(4, "little") + b"PAR1"))


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" * 3, b"x" * 100])
def test_what_is_no_parquet(data: bytes) -> None:
    with pytest.raises(MalformedFooter):
        read_footer(pa.BufferReader(data))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "cut off"),
        (b"\x15", "cut off"),
        (b"\x15" + b"\x80" * 20, "does not end"),
        (b"\x1c" * 100, "nested"),
        (b"\x19\x19" * 100, "nested|claims"),
        (b"\x19\xf5\xff\xff\xff\x7f\x00", "claims 268435455 elements"),
        (b"\x18\xff\xff\x7f\x00", "bytes early"),
        (b"\x1b\xff\xff\x7f\x55\x00", "a map claims"),
        (b"\x15\x02\x05\x02\x02\x00", "field 1 twice"),
        (b"\x1e\x00", "type 14"),
    ],
)
def test_thrift_that_is_none(data: bytes, reason: str) -> None:
    with pytest.raises(MalformedThrift, match=reason):
        read_struct(data)


def test_thrift_of_every_type() -> None:
    data = (
        b"\x11\x12\x13\x7f\x14\x03\x17"
        + b"\1" * 8
        + b"\x1b\x01\x85\x01a\x02\x1a\x21\x01\x02\x1d"
        + b"\2" * 16
    )
    data += b"\x1b\x00\x00"
    found, end = read_struct(data)
    assert found == {
        1: True,
        2: False,
        3: b"\x7f",
        4: -2,
        5: b"\1" * 8,
        6: [(b"a", 1)],
        7: [1, 2],
        8: b"\2" * 16,
        9: [],
    }
    assert end == len(data)


def test_random_damage_is_refused_or_harmless() -> None:
    data, rng = parquet(), random.Random(7)
    length = int.from_bytes(data[-8:-4], "little")
    for _ in range(3000):
        changed = bytearray(data)
        changed[len(data) - 8 - rng.randrange(1, length + 1)] = rng.randrange(256)
        try:
            footer = read_footer(pa.BufferReader(bytes(changed)))
        except MalformedFooter:
            continue
        assert footer.num_rows == 4


def test_a_schema_of_lists_is_no_schema() -> None:
    """A damaged list of elements can decode as lists, which have places and not fields."""

    data = parquet()
    fields = {key: value for key, value in parsed(data).items() if key in (1, 2, 3, 4)}
    fields[2] = [[1, 2], [3]]
    body, length = struct(fields), int.from_bytes(data[-8:-4], "little")
    source = pa.BufferReader(data[: -8 - length] + body + len(body).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(MalformedFooter, match="does not have the type"):
        read_footer(source)
