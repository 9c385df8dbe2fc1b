"""Parsing of file statistics from JSON to columns, limited to the columns of a predicate.

The JSON strings are joined to lines and parsed by Arrow at once. Where Arrow might not return one row per
file (a damaged string, a value of an unexpected form), each string of the batch is parsed separately, and
invalid values become unknown.
"""

from __future__ import annotations

import datetime as dt
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

from delta_core.expressions.bounds import ColumnStats
from delta_core.scan.outer_bounds import outer_decimals, outer_strings, outer_timestamps
from delta_core.scan.uniform_statistics import read_uniform
from delta_core.schema.arrow import type_to_arrow
from delta_core.schema.arrow_values import ARROW_ZERO, arrow_array, arrow_scalar
from delta_core.schema.partition_values import parse_timestamp, rescale
from delta_core.schema.types import (
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
)

BATCH_ROWS = 16_384
"""The number of strings parsed at a time; more would not fit into the processor's cache."""
_MANY = 1024
"""From this number of strings on, proving that all have one form takes less time than it saves."""
_BATCH_BYTES = 256 << 20
_BLOCK_BYTES = 4 << 20
_MAX_EXPONENT = 400
_FLOATING = (FLOAT, DOUBLE)
_INTEGRAL = (LONG, INTEGER, SHORT, BYTE)
_BOUNDED = (*_FLOATING, *_INTEGRAL, STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ)
_ZONED = r"(Z|[+-]\d{2}:?\d{2})$"
_UNZONED = r"[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?Z?$"

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedStatistics:
    """Statistics as columns, one entry per file; null is unknown.

    Attributes:
        counted: False where the counts of some strings were not parsed.
    """

    num_records: pa.Array
    columns: Mapping[Path, ColumnStats]
    counted: bool = True


def parse_statistics(
    strings: pa.ChunkedArray | pa.Array, leaves: Mapping[Path, DataType], *, counts: bool = True
) -> ParsedStatistics:
    """The statistics of some columns from their JSON strings (PROTOCOL.md, "Per-file Statistics").

    Args:
        strings: one string per file; null where a file has no statistics.
        leaves: the columns to parse, by their path in the files, with their types. Types without minimum and
            maximum get only null counts.
        counts: whether the numbers of records and nulls are needed. If False, they are null where every
            string of a piece has both bounds of every column.

    Returns:
        Bounds in the columns' types, moved outwards where writers are known to lose digits
        (`outer_bounds`). The maximum of a floating-point column is unknown unless the statistics record
        that NaN does not occur.
    """
    chunks = strings.chunks if isinstance(strings, pa.ChunkedArray) else [strings]
    parts = [_parse_batch(batch, leaves, counts) for chunk in chunks for batch in _batches(chunk)]
    return join_statistics(parts or [_parse_batch(pa.array([], pa.string()), leaves, counts)])


def stated_statistics(
    strings: pa.ChunkedArray | pa.Array, leaves: Mapping[Path, DataType]
) -> ParsedStatistics:
    """The statistics of some columns exactly as written, for callers that pass them on.

    As `parse_statistics`, but bounds are not moved and not dropped as implausible, and floating-point
    maximums are kept. Null means that a string has no such value, or a value of another type.
    """
    chunks = strings.chunks if isinstance(strings, pa.ChunkedArray) else [strings]
    parts = [
        _parse_any(batch, leaves, counts=True, bounds=_as_stated)
        for chunk in chunks
        for batch in _batches(chunk)
    ]
    return join_statistics(
        parts or [_parse_any(pa.array([], pa.string()), leaves, counts=True, bounds=_as_stated)]
    )


def join_statistics(parts: Sequence[ParsedStatistics]) -> ParsedStatistics:
    """Concatenate statistics of the same columns."""
    if len(parts) == 1:
        return parts[0]
    lengths = [len(part.num_records) for part in parts]
    return ParsedStatistics(
        num_records=_concat([part.num_records for part in parts], lengths),
        columns={
            path: ColumnStats(
                minimum=_concat([part.columns[path].minimum for part in parts], lengths),
                maximum=_concat([part.columns[path].maximum for part in parts], lengths),
                null_count=_concat([part.columns[path].null_count for part in parts], lengths),
            )
            for path in parts[0].columns
        },
        counted=all(part.counted for part in parts),
    )


def has_bounds(data_type: DataType) -> bool:
    """Whether statistics of the type have a supported minimum and maximum."""
    return isinstance(data_type, DecimalType) or data_type in _BOUNDED


def _concat(arrays: Sequence[pa.Array | None], lengths: Sequence[int]) -> pa.Array | None:
    known = next((array.type for array in arrays if array is not None), None)
    if known is None:
        return None
    whole = [
        pa.nulls(length, known) if array is None else array
        for array, length in zip(arrays, lengths, strict=True)
    ]
    return pa.concat_arrays(whole)


def _batches(strings: pa.Array) -> Iterable[pa.Array]:
    """Slices whose joined size is far below Arrow's limit of 2 GiB."""
    rows = BATCH_ROWS
    if len(strings) > 1 and strings.nbytes > _BATCH_BYTES:
        rows = max(1, min(rows, int(_BATCH_BYTES / (strings.nbytes / len(strings)))))
    return [strings.slice(start, rows) for start in range(0, len(strings), rows)]


def _parse_batch(strings: pa.Array, leaves: Mapping[Path, DataType], counts: bool) -> ParsedStatistics:
    if not counts:
        parsed = _plausible(_parse_any(strings, leaves, counts=False))
        if parsed.counted or _has_all_bounds(parsed):
            return parsed
    return _plausible(_parse_any(strings, leaves, counts=True))


def _has_all_bounds(parsed: ParsedStatistics) -> bool:
    sides = (side for column in parsed.columns.values() for side in (column.minimum, column.maximum))
    return all(side is not None and not side.null_count for side in sides)


def _plausible(parsed: ParsedStatistics) -> ParsedStatistics:
    """Drop contradictory values: counts below zero, more nulls than rows, a minimum above the maximum."""
    records = _unless(pc.less(parsed.num_records, ARROW_ZERO), parsed.num_records)
    columns = {}
    for path, column in parsed.columns.items():
        nulls = column.null_count
        if nulls is not None:
            nulls = _unless(pc.less(nulls, ARROW_ZERO), nulls)
            nulls = _unless(pc.less(records, nulls), nulls)
        low, high = column.minimum, column.maximum
        if low is not None and high is not None:
            crossed = pc.less(high, low)
            low, high = _unless(crossed, low), _unless(crossed, high)
        columns[path] = ColumnStats(minimum=low, maximum=high, null_count=nulls)
    return ParsedStatistics(num_records=records, columns=columns, counted=parsed.counted)


def _unless(wrong: pa.BooleanArray, values: pa.Array) -> pa.Array:
    return pc.if_else(wrong, pa.scalar(None, values.type), values) if wrong.true_count else values


def _parse_any(
    strings: pa.Array, leaves: Mapping[Path, DataType], *, counts: bool, bounds: _Bounds | None = None
) -> ParsedStatistics:
    bounds = bounds or _column_stats
    table = _read_joined(strings, leaves, counts, may_lack=bounds is _as_stated)
    if table is None:
        return _parse_slowly(strings, leaves, bounds)
    columns = {}
    for path, data_type in leaves.items():
        columns[path] = bounds(
            data_type,
            _field(table, "minValues", path),
            _field(table, "maxValues", path),
            _field(table, "nullCount", path),
            _field(table, "nanCount", path),
        )
    counted = counts and "numRecords" in table.schema.names
    records = _single(table.column("numRecords")) if counted else pa.nulls(len(strings), pa.int64())
    return ParsedStatistics(num_records=records, columns=columns, counted=counts)


def _read_joined(
    strings: pa.Array, leaves: Mapping[Path, DataType], counts: bool, *, may_lack: bool
) -> pa.Table | None:
    """All strings as one table, or None when it is not certain that rows correspond to files."""
    if len(strings) == 0:
        return None
    if not _are_objects(strings):
        # Copying all strings takes nearly as long as parsing them.
        strings = pc.fill_null(pc.if_else(pc.equal(strings, ""), "{}", strings), "{}")
        if not _are_objects(strings):
            return None
    lines = pa.ListArray.from_arrays(arrow_array([0, len(strings)], pa.int32()), strings)
    joined = pc.binary_join(lines, arrow_scalar("\n", pa.string()))[0].as_buffer()
    # A line break inside a string, or two documents in one string, would shift all rows after it.
    breaks = int(np.count_nonzero(np.frombuffer(joined, np.uint8) == ord("\n")))
    if breaks != len(strings) - 1:
        return None
    schema = _json_schema(leaves, counts)
    if len(strings) >= _MANY:
        first = strings[0].as_py()
        uniform = read_uniform(joined, len(strings), first, _as_fields(schema), may_lack=may_lack)
        if uniform is not None:
            return uniform
    longest = int(pc.max(pc.binary_length(strings)).as_py())
    try:
        table = arrow_json.read_json(
            pa.BufferReader(joined),
            read_options=arrow_json.ReadOptions(
                block_size=max(_BLOCK_BYTES, 2 * longest + 2), use_threads=False
            ),
            parse_options=arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        )
        table.validate(full=True)
    except (pa.ArrowException, ValueError):
        return None
    return table if table.num_rows == len(strings) else None


def _as_fields(schema: pa.Schema) -> dict[str, Any]:
    return {
        field.name: {one.name: one.type for one in field.type}
        if pa.types.is_struct(field.type)
        else field.type
        for field in schema
    }


def _are_objects(strings: pa.Array) -> bool:
    """Whether each string begins and ends like a JSON object."""
    shaped = pc.and_(pc.starts_with(strings, "{"), pc.ends_with(strings, "}"))
    return strings.null_count == 0 and bool(pc.all(shaped).as_py())


def _json_schema(leaves: Mapping[Path, DataType], counted: bool) -> pa.Schema:
    bounds = {path: _json_type(kind) for path, kind in leaves.items() if has_bounds(kind)}
    counts = dict.fromkeys(leaves if counted else (), pa.int64())
    nans = {path: pa.int64() for path, kind in leaves.items() if kind in _FLOATING}
    fields = [pa.field("numRecords", pa.int64())] if counted else []
    for name, tree in (
        ("minValues", bounds),
        ("maxValues", bounds),
        ("nullCount", counts),
        ("nanCount", nans),
    ):
        if tree:
            fields.append(pa.field(name, _nested(tree)))
    return pa.schema(fields)


def _nested(leaves: Mapping[Path, pa.DataType]) -> pa.DataType:
    heads: dict[str, dict[Path, pa.DataType]] = {}
    for path, kind in leaves.items():
        heads.setdefault(path[0], {})[path[1:]] = kind
    return pa.struct(
        [pa.field(name, rest[()] if () in rest else _nested(rest)) for name, rest in heads.items()]
    )


def _json_type(data_type: DataType) -> pa.DataType:
    """The type that Arrow's JSON reader parses; the rest of the conversion is done on columns."""
    if data_type in _INTEGRAL:
        return pa.int64()
    if data_type in _FLOATING:
        return pa.float64()
    if isinstance(data_type, DecimalType):
        return type_to_arrow(data_type)
    return pa.string()


def _field(table: pa.Table, name: str, path: Path) -> pa.Array | None:
    if name not in table.schema.names:
        return None
    try:
        return _single(pc.struct_field(table.column(name), list(path)))
    except (pa.ArrowInvalid, KeyError):
        return None


def _single(values: pa.ChunkedArray | pa.Array) -> pa.Array:
    if isinstance(values, pa.Array):
        return values
    return values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()


def _column_stats(
    data_type: DataType,
    low: pa.Array | None,
    high: pa.Array | None,
    null_count: pa.Array | None,
    nan_count: pa.Array | None,
) -> ColumnStats:
    minimum = None if low is None else _typed(low, data_type)
    maximum = None if high is None else _typed(high, data_type)
    if data_type in _FLOATING:
        if minimum is not None:
            minimum = pc.if_else(pc.is_nan(minimum), pa.scalar(None, minimum.type), minimum)
        if maximum is not None:
            nan_free = pa.nulls(len(maximum), pa.bool_()) if nan_count is None else pc.equal(nan_count, 0)
            maximum = pc.if_else(nan_free, maximum, pa.scalar(None, maximum.type))
    elif data_type in (TIMESTAMP, TIMESTAMP_NTZ):
        minimum = None if minimum is None else outer_timestamps(minimum, maximum=False)
        maximum = None if maximum is None else outer_timestamps(maximum, maximum=True)
    elif isinstance(data_type, DecimalType):
        minimum = None if minimum is None else outer_decimals(minimum, maximum=False)
        maximum = None if maximum is None else outer_decimals(maximum, maximum=True)
    elif data_type == STRING and maximum is not None:
        maximum = outer_strings(maximum)
    return ColumnStats(minimum=minimum, maximum=maximum, null_count=null_count)


def _as_stated(
    data_type: DataType,
    low: pa.Array | None,
    high: pa.Array | None,
    null_count: pa.Array | None,
    nan_count: pa.Array | None,
) -> ColumnStats:
    """As `_column_stats`, with every bound as written; NaN is not a bound and becomes null."""
    sides = [None if side is None else _typed_each(side, data_type) for side in (low, high)]
    if data_type in _FLOATING:
        sides = [None if side is None else _unless(pc.is_nan(side), side) for side in sides]
    return ColumnStats(minimum=sides[0], maximum=sides[1], null_count=null_count)


def _typed_each(values: pa.Array, data_type: DataType) -> pa.Array:
    """As `_typed`; where that fails, each value is converted separately."""
    typed = _typed(values, data_type)
    if typed is not None:
        return typed
    return _from_list([_value(value, data_type) for value in values.to_pylist()], type_to_arrow(data_type))


_Bounds = Callable[
    [DataType, pa.Array | None, pa.Array | None, pa.Array | None, pa.Array | None], ColumnStats
]


def _typed(values: pa.Array, data_type: DataType) -> pa.Array | None:
    """JSON values as the column's type; None when they cannot be converted as a whole."""
    target = type_to_arrow(data_type)
    if values.type == target:
        return values
    try:
        if data_type in (TIMESTAMP, TIMESTAMP_NTZ):
            return _typed_timestamps(values, data_type, target)
        # A float column's bound is the nearest float of the number, as when it was written.
        return pc.cast(values, target, safe=data_type != FLOAT)
    except pa.ArrowInvalid:
        if pa.types.is_string(values.type):
            return _from_list([_value(value, data_type) for value in values.to_pylist()], target)
        return None


def _typed_timestamps(values: pa.Array, data_type: DataType, target: pa.DataType) -> pa.Array:
    """Convert only unambiguous strings: with a zone for `timestamp`, without or in UTC for `_ntz`."""
    clear = pc.match_substring_regex(values, _ZONED if data_type == TIMESTAMP else _UNZONED)
    strings = pc.if_else(clear, values, pa.scalar(None, pa.string()))
    if data_type == TIMESTAMP_NTZ:
        strings = pc.utf8_rtrim(strings, "Z")
    return pc.cast(strings, target)


def _parse_slowly(strings: pa.Array, leaves: Mapping[Path, DataType], bounds: _Bounds) -> ParsedStatistics:
    documents = [_document(string) for string in strings.to_pylist()]
    records = [_count(document.get("numRecords")) for document in documents]
    columns = {}
    for path, data_type in leaves.items():
        target = type_to_arrow(data_type)
        low, high = None, None
        if has_bounds(data_type):
            low, high = (
                _from_list([_value(_at(document, name, path), data_type) for document in documents], target)
                for name in ("minValues", "maxValues")
            )
        counts, nans = (
            pa.array([_count(_at(document, name, path)) for document in documents], pa.int64())
            for name in ("nullCount", "nanCount")
        )
        columns[path] = bounds(data_type, low, high, counts, nans)
    return ParsedStatistics(num_records=pa.array(records, pa.int64()), columns=columns)


def _document(string: str | None) -> Mapping[str, Any]:
    if not string:
        return {}
    try:
        parsed = json.load(io.StringIO(string), parse_float=Decimal)
    except (ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _at(document: Mapping[str, Any], name: str, path: Sequence[str]) -> Any:
    node: Any = document.get(name)
    for part in path:
        if not isinstance(node, dict):
            return None
        node = node.get(part)
    return node


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63 else None


def _value(value: Any, data_type: DataType) -> Any:
    """One bound as a Python value of the type; None when it is not of the type."""
    if value is None or isinstance(value, bool | dict | list):
        return None
    try:
        if data_type == STRING:
            return value if isinstance(value, str) else None
        if isinstance(value, Decimal) and not (value.is_finite() and abs(value.adjusted()) < _MAX_EXPONENT):
            # The digits of such a number could exhaust the memory.
            return None
        if isinstance(data_type, DecimalType):
            exact = Decimal(str(value))
            scaled = rescale(exact, data_type.scale)
            return scaled if scaled == exact else None
        if data_type in _INTEGRAL:
            return int(value) if not isinstance(value, str) and int(value) == value else None
        if data_type in _FLOATING:
            return float(np.float32(value)) if data_type == FLOAT else float(value)
        if data_type == DATE:
            return parse_timestamp(str(value)).date()
        if data_type == TIMESTAMP:
            string = str(value)
            has_zone = string.endswith("Z") or string[-6:-5] in ("+", "-") or string[-5:-4] in ("+", "-")
            return parse_timestamp(string, zone=dt.UTC) if has_zone and "T" in string else None
        return parse_timestamp(str(value))
    except (ValueError, ArithmeticError):
        return None


def _from_list(values: list[Any], target: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, target)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError):
        # For example, half of a surrogate pair is valid in a JSON string but not in UTF-8.
        return pa.array([value if _fits(value, target) else None for value in values], target)


def _fits(value: Any, target: pa.DataType) -> bool:
    try:
        pa.scalar(value, target)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError):
        return False
    return True
