"""Damage that knows Parquet: numbers of the footer and of page headers, and whole columns written wrong."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_VARINTS = (
    b"\x00",
    b"\x01",
    b"\x7f",
    b"\xff\xff\xff\xff\x0f",
    b"\xfe\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\x80\x80\x80\x80\x10",
    b"\x80\x80\x80\x80\x80\x20",
    b"\x80" * 12,
)


def mutate_parquet(data: bytes, rng: random.Random) -> tuple[str, bytes]:
    """One change; gives its name and the new bytes."""
    name = rng.choices(list(_MUTATORS), [weight for _, weight in _MUTATORS.values()])[0]
    return name, _MUTATORS[name][0](data, rng)


def _footer(data: bytes, rng: random.Random) -> bytes:
    """Bytes of the footer overwritten, keeping its length."""
    length = int.from_bytes(data[-8:-4], "little")
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = len(data) - 8 - length + rng.randrange(length)
        changed[at] = rng.choice(
            (0, 1, 0x7F, 0x80, 0xFF, changed[at] ^ (1 << rng.randrange(8)), rng.randrange(256))
        )
    return bytes(changed)


def _footer_varint(data: bytes, rng: random.Random) -> bytes:
    """A number of the footer made small, huge or endless; the footer's length follows."""
    length = int.from_bytes(data[-8:-4], "little")
    start = len(data) - 8 - length
    at = start + rng.randrange(length)
    end = at
    while end < len(data) - 9 and data[end] & 0x80:
        end += 1
    footer = data[start:at] + rng.choice(_VARINTS) + data[end + 1 : -8]
    return data[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def _footer_length(data: bytes, rng: random.Random) -> bytes:
    length = int.from_bytes(data[-8:-4], "little")
    other = rng.choice(
        (0, 1, length - 1, length + 1, len(data), 2**31 - 1, 2**31, 2**32 - 1, rng.randrange(2**32))
    )
    return data[:-8] + other.to_bytes(4, "little") + data[-4:]


def _page_header(data: bytes, rng: random.Random) -> bytes:
    """Bytes where pages begin."""
    starts = []
    metadata = pq.read_metadata(pa.BufferReader(data))
    for group in range(metadata.num_row_groups):
        for index in range(metadata.num_columns):
            column = metadata.row_group(group).column(index)
            starts += [at for at in (column.dictionary_page_offset, column.data_page_offset) if at]
    at = rng.choice(starts) + rng.randrange(40)
    if rng.random() < 0.5:
        pattern = rng.choice(_VARINTS)
        return data[:at] + pattern + data[at + len(pattern) :]
    changed = bytearray(data)
    changed[min(at, len(data) - 1)] = rng.randrange(256)
    return bytes(changed)


def _body(data: bytes, rng: random.Random) -> bytes:
    """Bytes anywhere before the footer."""
    end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    changed = bytearray(data)
    for _ in range(rng.choice((1, 2, 8))):
        changed[rng.randrange(4, end)] = rng.randrange(256)
    return bytes(changed)


# ---------------------------------------------------------------- written anew


def _written(table: pa.Table, rng: random.Random, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    given = {"compression": rng.choice(("zstd", "snappy", "none", "gzip")), "store_schema": False}
    pq.write_table(table, sink, **{**given, **options})
    return sink.getvalue().to_pybytes()


def _read(data: bytes) -> pa.Table:
    return pq.read_table(pa.BufferReader(data), use_threads=False)


def _other_layout(data: bytes, rng: random.Random) -> bytes:
    """The same rows, written in another way."""
    return _written(
        _read(data),
        rng,
        use_dictionary=rng.random() < 0.5,
        data_page_version=rng.choice(("1.0", "2.0")),
        row_group_size=rng.choice((1, 2, 3, 100)),
        write_statistics=rng.random() < 0.5,
        write_page_checksum=rng.random() < 0.5,
        data_page_size=rng.choice((1, 64, 1 << 20)),
        version=rng.choice(("1.0", "2.4", "2.6")),
    )


def _rows(data: bytes, rng: random.Random) -> bytes:
    """Rows doubled, dropped, shuffled or all gone."""
    table = _read(data)
    count = table.num_rows
    chosen = {
        "double": [*range(count), rng.randrange(count)],
        "drop": [at for at in range(count) if at != rng.randrange(count)],
        "shuffle": rng.sample(range(count), count),
        "none": [],
        "many": [*range(count)] * 50,
    }[rng.choice(("double", "drop", "shuffle", "none", "many"))]
    return _written(table.take(pa.array(chosen, pa.int64())), rng)


def _column(data: bytes, rng: random.Random) -> bytes:
    """A column, or a field of one, gone, renamed, nulled or of another type."""
    table = _read(data)
    at = rng.randrange(table.num_columns)
    values = table.column(at).combine_chunks()
    name = table.schema.names[at]
    if pa.types.is_struct(values.type) and rng.random() < 0.85:
        names = [values.type.field(index).name for index in range(values.type.num_fields)]
        children = [values.field(index) for index in range(len(names))]
        child = rng.randrange(len(names))
        made = _changed(children[child], names[child], rng)
        if made is None:
            del children[child], names[child]
        else:
            children[child], names[child] = made
        valid = values.is_valid().to_pylist()
        if not children:
            return _written(table.drop_columns([name]), rng)
        struct = pa.StructArray.from_arrays(children, names, mask=pa.array([not one for one in valid]))
        return _written(table.set_column(at, name, struct), rng)
    changed = _changed(values, name, rng)
    if changed is None:
        return _written(table.drop_columns([name]), rng)
    return _written(table.set_column(at, changed[1], changed[0]), rng)


def _changed(values: pa.Array, name: str, rng: random.Random) -> tuple[pa.Array, str] | None:
    what = rng.choice(("gone", "renamed", "nulls", "type", "value", "value", "type"))
    if what == "gone":
        return None
    if what == "renamed":
        return values, rng.choice((name.upper(), name + ".x", "", "path", "a.b"))
    if what == "nulls":
        return pa.nulls(len(values), values.type), name
    if what == "type":
        return _retyped(values, rng), name
    return _revalued(values, rng), name


def _retyped(values: pa.Array, rng: random.Random) -> pa.Array:
    made = rng.choice(("text", "number", "bytes", "float", "list", "struct", "bool", "time"))
    strings = [None if one is None else str(one) for one in values.to_pylist()]
    if made == "text":
        return pa.array(strings, pa.string())
    if made == "bytes":
        return pa.array([None if one is None else one.encode() + b"\xff" for one in strings], pa.binary())
    if made == "list":
        return pa.array([None if one is None else [one] for one in strings], pa.list_(pa.string()))
    if made == "struct":
        return pa.array(
            [None if one is None else {"x": one} for one in strings], pa.struct([("x", pa.string())])
        )
    numbers = [None if one is None else rng.choice((0, 1, -1, 77)) for one in strings]
    if made == "bool":
        return pa.array([None if one is None else bool(one) for one in numbers])
    if made == "time":
        return pa.array(numbers, pa.timestamp("us"))
    wanted = (
        rng.choice((pa.int8(), pa.int32(), pa.int64(), pa.uint64())) if made == "number" else pa.float64()
    )
    return pa.array([None if one is None else abs(one) for one in numbers], wanted)


def _revalued(values: pa.Array, rng: random.Random) -> pa.Array:
    """Other values of the same type: extremes, nulls, what another row has."""
    found = values.to_pylist()
    at = rng.randrange(len(found)) if found else 0
    if not found:
        return values
    extremes: tuple[Any, ...] = (None, found[rng.randrange(len(found))])
    if pa.types.is_int64(values.type):
        extremes += (-1, 2**63 - 1, -(2**63), 0)
    elif pa.types.is_int32(values.type):
        extremes += (-1, 2**31 - 1, 99)
    elif pa.types.is_string(values.type):
        extremes += ("", "\0", "../x", "/etc/passwd", "%zz", "x" * 3000, "{")
    found[at] = rng.choice(extremes)
    return pa.array(found, values.type)


_MUTATORS: dict[str, tuple[Callable[[bytes, random.Random], bytes], int]] = {
    "footer bytes": (_footer, 5),
    "footer number": (_footer_varint, 5),
    "footer length": (_footer_length, 1),
    "page header": (_page_header, 5),
    "page body": (_body, 4),
    "layout": (_other_layout, 2),
    "rows": (_rows, 2),
    "column": (_column, 6),
}
