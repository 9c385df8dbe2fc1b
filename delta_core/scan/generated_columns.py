"""Pruning by partition columns that are generated from other columns (PROTOCOL.md, "Generated Columns").

A partition value bounds the column that it was generated from: `year(t) = 2020` contains the timestamps of
2020. These bounds are used like statistics, for any predicate on that column. Where the expression does not
preserve order, equality still prunes: `id = 'abc'` matches only in the partition that the expression computes
for 'abc'.

The contract: writers enforce the generation expressions (the feature `generatedColumns`), so a partition
value is the result of the expression for every row of the file. A writer that violates the protocol can store
a partition value that contradicts its rows; predicates on the source column then miss these rows.

Expressions of a `timestamp` depend on the time zone of the writer's session, which the log does not record.
Engines allow zones of up to 18 hours on either side of UTC, so the bounds are widened by 18 hours. Where a
local day may not have 24 hours, they are also widened by the largest difference between two zones. Pruning by
equality does not use such expressions. `date_format` always converts to a timestamp of the session's zone,
and may have used the Julian calendar for dates before 1582.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from delta_core import expressions
from delta_core.errors import ExpressionError
from delta_core.expressions.arithmetic import convert
from delta_core.expressions.ast import (
    TRUE,
    Call,
    Cast,
    Column,
    Comparison,
    ComparisonOperator,
    Expression,
    In,
    IsNull,
    Literal,
    Or,
)
from delta_core.expressions.bounds import ColumnStats, StatsColumns
from delta_core.expressions.columns import (
    conjunction,
    referenced_columns,
    referenced_names,
    split_conjuncts,
    walk,
)
from delta_core.expressions.datetime_functions import TRUNCATION_UNITS, is_sortable, pattern_directives
from delta_core.expressions.evaluate import evaluate
from delta_core.expressions.literals import INTEGRAL_RANGES, literal_type
from delta_core.expressions.skipping import may_match
from delta_core.expressions.typing import find_column, type_of
from delta_core.scan.outer_bounds import next_prefix
from delta_core.schema.arrow import type_to_arrow
from delta_core.schema.arrow_values import ARROW_FALSE
from delta_core.schema.types import (
    BINARY,
    DATE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    StructType,
)

KEY = "delta.generationExpression"

Mask = npt.NDArray[np.bool_]
Path = tuple[str, ...]

_TIMES = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
_ZONE = dt.timedelta(hours=18)
_ANY_ZONES = 2 * _ZONE
_PART_UNITS = ("year", "month", "day", "hour")
_LETTERS = {"yyyy": "year", "MM": "month", "dd": "day", "HH": "hour", "mm": "minute", "ss": "second"}
_SPANS = {
    "year": dt.timedelta(days=366),
    "quarter": dt.timedelta(days=92),
    "month": dt.timedelta(days=31),
    "week": dt.timedelta(days=7),
    "day": dt.timedelta(days=1),
    "hour": dt.timedelta(hours=1),
    "minute": dt.timedelta(minutes=1),
    "second": dt.timedelta(seconds=1),
    "millisecond": dt.timedelta(milliseconds=1),
    "microsecond": dt.timedelta(microseconds=1),
}
# These give the same result in every engine, version and session; functions of letter case do not.
_PORTABLE_CALLS = {"substring", "left", "right", "concat", "trunc", *_PART_UNITS}
# A distance from the limits of microsecond timestamps that is larger than every margin.
_FIRST, _LAST = dt.datetime(2, 1, 1), dt.datetime(9990, 1, 1)
_GREGORIAN = dt.datetime(1600, 1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """A partition column and its generation expression."""

    name: str
    data_type: DataType
    expression: Expression


def generated_partitions(schema: StructType, partition_columns: Sequence[str]) -> list[Generated]:
    """The partition columns whose generation expression is supported, with the expression."""
    result = []
    for name in partition_columns:
        field = schema.find(name)
        text = None if field is None else field.metadata.get(KEY)
        if field is None or not isinstance(text, str):
            continue
        try:
            expression = expressions.parse_value(text, schema)
        except ExpressionError:
            # The expression may use any function of the engine that created the table; it prunes nothing.
            continue
        if not referenced_names(expression) & set(partition_columns):
            result.append(Generated(name=field.name, data_type=field.data_type, expression=expression))
    return result


def generated_sources(
    predicate: Expression, schema: StructType, partition_columns: Sequence[str]
) -> list[Generated]:
    """The generated partition columns that may bound the columns of a predicate."""
    if not any(KEY in field.metadata for field in schema.fields):
        return []
    named = referenced_columns(predicate)
    return [
        one
        for one in generated_partitions(schema, partition_columns)
        if referenced_columns(one.expression) & named
    ]


def generated_mask(
    predicate: Expression, schema: StructType, generated: Sequence[Generated], partitions: pa.Table
) -> Mask:
    """For each file, whether the predicate may be true for the source columns of its partition values.

    Args:
        predicate: resolved against `schema`.
        schema: the table's schema.
        generated: from `generated_sources`.
        partitions: typed values of the partition columns in `generated` and in the predicate.
    """
    num_files = partitions.num_rows
    columns = {}
    for path in {path for one in generated for path in referenced_columns(one.expression)}:
        kind = find_column(path, schema)[1]
        stats = _source_stats(Column(path), kind, generated, partitions)
        if stats is not None:
            columns[path] = stats
    ones = pa.array(np.ones(num_files, dtype=np.int64))
    bounded = StatsColumns(num_files=num_files, num_records=ones, columns=columns, partitions=partitions)
    selected = may_match(predicate, bounded)
    implied = conjunction(
        term
        for one in generated
        for part in split_conjuncts(predicate)
        for term in _implied(part, one, schema)
    )
    if implied != TRUE:
        selected &= may_match(implied, StatsColumns(num_files=num_files, partitions=partitions))
    return selected


def _source_stats(
    source: Column, kind: DataType, generated: Sequence[Generated], partitions: pa.Table
) -> ColumnStats | None:
    """The bounds of a source column that follow from partition values, as statistics of one row."""
    lows: list[pa.Array] = []
    highs: list[pa.Array] = []
    nulls: pa.Array | None = None
    for one in generated:
        values = _flat(partitions.column(one.name))
        bounds = _inverse(one, source, kind, values)
        if bounds is None:
            continue
        lows.append(bounds[0])
        highs.append(bounds[1])
        # An empty string is stored as null too, so only for other types does null mean null.
        null = pc.cast(pc.is_null(values), pa.int64())
        if one.data_type in (STRING, BINARY) and kind not in _TIMES:
            null = pc.if_else(pc.is_null(values), pa.scalar(None, pa.int64()), null)
        nulls = null if nulls is None else pc.coalesce(nulls, null)
    parts = _parts(source, kind, generated, partitions)
    if parts is not None:
        lows.append(parts[0])
        highs.append(parts[1])
    if not lows:
        return None
    minimum, maximum = lows[0], highs[0]
    for low, high in zip(lows[1:], highs[1:], strict=True):
        above = pc.fill_null(pc.greater(minimum, low), ARROW_FALSE)
        minimum = pc.if_else(above, minimum, pc.coalesce(low, minimum))
        below = pc.fill_null(pc.less(maximum, high), ARROW_FALSE)
        maximum = pc.if_else(below, maximum, pc.coalesce(high, maximum))
    return ColumnStats(minimum=minimum, maximum=maximum, null_count=nulls)


def _inverse(
    one: Generated, source: Column, kind: DataType, values: pa.Array
) -> tuple[pa.Array, pa.Array] | None:
    """The bounds of the source for each partition value; null where they are unknown."""
    match one.expression:
        case Column() if one.expression == source and one.data_type == kind:
            if kind == TIMESTAMP:
                return _spanned(values, "microsecond", kind, _ZONE)
            return None if pa.types.is_floating(values.type) else (values, values)
        case Call("substring", (operand, Literal(0 | 1), Literal(int() as length))) if operand == source:
            if kind == STRING and one.data_type == STRING and length > 0:
                return _prefixed(values, length)
        case Call("left", (operand, Literal(int() as length))) if operand == source:
            if kind == STRING and one.data_type == STRING and length > 0:
                return _prefixed(values, length)
        case Cast(operand, target) if (
            operand == source and kind in _TIMES and target == one.data_type == DATE
        ):
            return _spanned(values, "day", kind, _zone_of(kind))
        case Call("trunc", (operand, Literal(str() as unit))) if operand == source and one.data_type == DATE:
            return _spanned(values, TRUNCATION_UNITS[unit.upper()], kind, _zone_of(kind))
        case Call("date_trunc", (Literal(str() as unit), operand)) if operand == source:
            if kind == TIMESTAMP and one.data_type == TIMESTAMP:
                # The value is an instant; if the log has it without a zone, its zone is unknown as well.
                return _spanned(values, TRUNCATION_UNITS[unit.upper()], kind, _ZONE + _ANY_ZONES)
        case Call("date_format", (operand, Literal(str() as pattern))) if operand == source:
            if one.data_type == STRING and kind in _TIMES and is_sortable(pattern):
                letters = pattern_directives(pattern) or []
                starts = _parsed(values, pattern)
                old = pc.less(starts, pa.scalar(_GREGORIAN, starts.type))
                starts = pc.if_else(old, pa.scalar(None, starts.type), starts)
                return _spanned(starts, _LETTERS[letters[-1]], kind, _ANY_ZONES)
    return None


def _parts(
    source: Column, kind: DataType, generated: Sequence[Generated], partitions: pa.Table
) -> tuple[pa.Array, pa.Array] | None:
    """The interval that year, month, day and hour columns describe together, up to the first missing unit."""
    columns: dict[str, pa.Array] = {}
    for one in generated:
        match one.expression:
            case Call(name, (operand,)) if operand == source and name in _PART_UNITS:
                if one.data_type in INTEGRAL_RANGES:
                    columns[name] = _flat(partitions.column(one.name))
    units = []
    for unit in _PART_UNITS:
        if unit not in columns:
            break
        units.append(unit)
    if not units or kind not in _TIMES:
        return None
    strings = [
        pc.utf8_lpad(pc.cast(columns[unit], pa.string()), width=4 if unit == "year" else 2, padding="0")
        for unit in units
    ]
    pattern = {"year": "yyyy", "month": "MM", "day": "dd", "hour": "HH"}
    joined = pc.binary_join_element_wise(*strings, "-", null_handling="emit_null")
    return _spanned(_parsed(joined, "-".join(pattern[u] for u in units)), units[-1], kind, _zone_of(kind))


def _parsed(strings: pa.Array, pattern: str) -> pa.Array:
    """Strings of a sortable pattern as the earliest time that they represent; null for other strings."""
    encoded = strings.dictionary_encode()
    format_ = "".join(
        part if part not in _LETTERS else f"%{_DIRECTIVE[part]}" for part in _pattern_parts(pattern)
    )
    values = [_one_time(string, format_) for string in encoded.dictionary.to_pylist()]
    return pa.array(values, pa.timestamp("us")).take(encoded.indices)


_DIRECTIVE = {"yyyy": "Y", "MM": "m", "dd": "d", "HH": "H", "mm": "M", "ss": "S"}


def _pattern_parts(pattern: str) -> list[str]:
    parts, position = [], 0
    while position < len(pattern):
        letters = next((one for one in _LETTERS if pattern.startswith(one, position)), None)
        if letters is not None:
            parts.append(letters)
            position += len(letters)
        elif pattern[position] == "'":
            end = pattern.index("'", position + 1)
            parts.append(pattern[position + 1 : end].replace("%", "%%"))
            position = end + 1
        else:
            parts.append("%%" if pattern[position] == "%" else pattern[position])
            position += 1
    return parts


def _one_time(string: str, format_: str) -> dt.datetime | None:
    try:
        return dt.datetime.strptime(string, format_)
    except ValueError:
        return None


def _spanned(
    starts: pa.Array, unit: str, kind: DataType, margin: dt.timedelta
) -> tuple[pa.Array, pa.Array] | None:
    """The start and the end of a unit, in the source's type, widened by the margin on both sides."""
    if kind not in _TIMES:
        return None
    if not pa.types.is_date(starts.type):
        starts = pc.cast(starts, pa.timestamp("us"))
    first, last = (convert(pa.scalar(at, pa.timestamp("us")), starts.type) for at in (_FIRST, _LAST))
    near = pc.and_(pc.greater(starts, first), pc.less(starts, last))
    wall = pc.cast(pc.if_else(near, starts, pa.scalar(None, starts.type)), pa.timestamp("us"))
    low = pc.subtract(wall, pa.scalar(margin, pa.duration("us")))
    high = pc.add(wall, pa.scalar(_SPANS[unit] + margin, pa.duration("us")))
    target = type_to_arrow(kind)
    if kind == TIMESTAMP:
        return pc.assume_timezone(low, "UTC"), pc.assume_timezone(high, "UTC")
    return convert(low, target), convert(high, target)


def _zone_of(kind: DataType) -> dt.timedelta:
    return _ZONE if kind == TIMESTAMP else dt.timedelta(0)


def _prefixed(values: pa.Array, length: int) -> tuple[pa.Array, pa.Array]:
    """Bounds of strings with a prefix: the prefix is the least one; a shorter prefix is the whole string."""
    whole = pc.less(pc.utf8_length(values), length)
    # No string is above all strings with the prefix, so the bound is the next prefix of the same length.
    encoded = values.dictionary_encode()
    following = pa.array([next_prefix(value) for value in encoded.dictionary.to_pylist()], pa.string())
    return values, pc.if_else(whole, values, following.take(encoded.indices))


def _flat(values: pa.ChunkedArray) -> pa.Array:
    combined = values.combine_chunks()
    return combined if isinstance(combined, pa.Array) else combined.chunk(0)


def _implied(term: Expression, one: Generated, schema: StructType) -> list[Expression]:
    """Conditions on the generated column that follow from an equality: it has the expression's result."""
    values = _equal_to(term)
    if values is None or not _is_portable(one, schema):
        return []
    (path,) = referenced_columns(one.expression)
    column, constants = values
    kind = find_column(path, schema)[1]
    if column.path != path or any(literal_type(c) != kind for c in constants):
        return []
    rows = {path[0]: _nested([constant.value for constant in constants], path, kind)}
    try:
        results = evaluate(one.expression, pa.table(rows)).to_pylist()
    except (ExpressionError, pa.ArrowInvalid, pa.ArrowTypeError):
        return []
    known = [value for value in results if value not in (None, "")]
    target = Column((one.name,))
    options: list[Expression] = [IsNull(target)] if len(known) < len(results) else []
    if known:
        options.append(In(target, tuple(Literal(value, one.data_type) for value in known)))
    return [options[0] if len(options) == 1 else Or(tuple(options))]


def _equal_to(term: Expression) -> tuple[Column, list[Literal]] | None:
    match term:
        case Comparison(
            ComparisonOperator.EQ | ComparisonOperator.EQ_NULL_SAFE, Column() as column, Literal() as value
        ) | Comparison(
            ComparisonOperator.EQ | ComparisonOperator.EQ_NULL_SAFE, Literal() as value, Column() as column
        ):
            values: tuple[Literal, ...] = (value,)
            if value.value is None:
                return None
        case In(Column() as column, values):
            pass
        case _:
            return None
    known = [value for value in values if value.value is not None]
    return (column, known) if known else None


def _is_portable(one: Generated, schema: StructType) -> bool:
    """Whether the expression has the same result here as for any writer."""
    if len(referenced_columns(one.expression)) != 1 or type_of(one.expression, schema) != one.data_type:
        return False
    if isinstance(one.expression, Column):
        return one.data_type != TIMESTAMP
    for node in walk(one.expression):
        match node:
            case Call(name) if name in _PORTABLE_CALLS:
                pass
            case Literal():
                pass
            case Column() | Cast():
                kind = type_of(node, schema)
                if not (kind in INTEGRAL_RANGES or kind in (STRING, DATE, TIMESTAMP_NTZ)):
                    return False
                if isinstance(node, Cast) and type_of(node.operand, schema) == STRING:
                    return False
            case _:
                return False
    return True


def _nested(values: list[object], path: Path, kind: DataType) -> pa.Array:
    array: pa.Array = pa.array(values, type_to_arrow(kind))
    for name in reversed(path[1:]):
        array = pa.StructArray.from_arrays([array], names=[name])
    return array
