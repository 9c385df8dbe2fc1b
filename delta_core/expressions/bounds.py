"""Bounds of expressions from file statistics: the range of an expression's values, and whether it is null.

The bounds of a function are computed from the bounds of its column where the function preserves order, or
where the column's minimum and maximum are equal. A null bound is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.errors import ExpressionError
from delta_core.expressions.arithmetic import arithmetic, cast_value, convert
from delta_core.expressions.ast import (
    Arithmetic,
    ArithmeticOperator,
    Call,
    Cast,
    Column,
    Comparison,
    ComparisonOperator,
    Expression,
    Like,
    Literal,
    Not,
)
from delta_core.expressions.columns import children, referenced_columns, walk
from delta_core.expressions.datetime_functions import is_sortable
from delta_core.expressions.evaluate import evaluate
from delta_core.expressions.functions import FUNCTIONS
from delta_core.expressions.literals import literal_scalar
from delta_core.schema.arrow import type_to_arrow
from delta_core.schema.arrow_values import ARROW_FALSE, ARROW_TRUE, ARROW_ZERO

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnStats:
    """The statistics of one column in each file; a null entry, or None for the array, is unknown.

    Attributes:
        minimum: less than or equal to every value. In the column's type.
        maximum: greater than or equal to every value. In floating-point columns NaN is the greatest value,
            so a maximum that may ignore NaN must be null.
        null_count: number of nulls. In a file with a deletion vector only 0 and the number of records are
            exact, and only these two values are used.
    """

    minimum: pa.Array | None = None
    maximum: pa.Array | None = None
    null_count: pa.Array | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsColumns:
    """Statistics of many files, one entry per file in every array.

    Attributes:
        num_files: number of files.
        num_records: rows per file, null where unknown; None when unknown for all files.
        columns: statistics by canonical column path.
        partitions: typed partition values, one row per file; partition columns have exact values.
    """

    num_files: int
    num_records: pa.Array | None = None
    columns: Mapping[tuple[str, ...], ColumnStats] = field(default_factory=dict)
    partitions: pa.Table | None = None

    def partition(self, path: tuple[str, ...]) -> pa.ChunkedArray | None:
        """The values of a partition column; None when the path is not a partition column."""
        if self.partitions is None or len(path) != 1 or path[0] not in self.partitions.schema.names:
            return None
        return self.partitions.column(path[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Bounds of an operand, per file or for all files; `all_null` marks files where it is always null."""

    low: Any
    high: Any
    all_null: Mask


# The result of these functions is null exactly where an argument is null.
_STRICT = frozenset(FUNCTIONS) - {"isnan"}
# Within one value of the larger unit, the number of the smaller unit grows with time.
_WITHIN = {
    "quarter": "year",
    "month": "year",
    "dayofyear": "year",
    "day": "month",
    "hour": "day",
    "minute": "hour",
    "second": "minute",
}


def bounds_of(expression: Expression, stats: StatsColumns) -> Bounds:
    """Bounds of an operand; null where they are unknown."""
    match expression:
        case Literal():
            scalar = literal_scalar(expression)
            return Bounds(low=scalar, high=scalar, all_null=np.full(stats.num_files, not scalar.is_valid))
        case Column(path):
            return _column(path, stats)
    never = ~may_have_value(expression, stats)
    try:
        low, high = _derived(expression, stats)
    except (ExpressionError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
        # The bound overflows, or is a value that the rows do not have: the bounds are unknown.
        low = high = None
    if low is None and high is None:
        low = high = _single_value(expression, stats)
    return Bounds(low=low, high=high, all_null=never)


def may_be_null(operand: Expression, stats: StatsColumns) -> Mask:
    """Whether the operand could be null for a row."""
    match operand:
        case Literal(value):
            return np.full(stats.num_files, value is None)
        case Column(path):
            known, exact = stats.columns.get(path), stats.partition(path)
            if exact is not None:
                return as_mask(pc.is_null(exact), unknown=True)
            if known is not None and known.null_count is not None:
                return as_mask(pc.greater(known.null_count, ARROW_ZERO), unknown=True)
            return everywhere(stats)
    if _is_strict(operand):
        result = np.zeros(stats.num_files, dtype=np.bool_)
        for child in children(operand):
            result |= may_be_null(child, stats)
        return result
    return everywhere(stats)


def may_have_value(operand: Expression, stats: StatsColumns) -> Mask:
    """Whether the operand could be non-null for a row."""
    match operand:
        case Literal(value):
            return np.full(stats.num_files, value is not None)
        case Column(path):
            known, exact = stats.columns.get(path), stats.partition(path)
            if exact is not None:
                return as_mask(pc.is_valid(exact), unknown=True)
            if known is not None and known.null_count is not None and stats.num_records is not None:
                return as_mask(pc.less(known.null_count, stats.num_records), unknown=True)
            return everywhere(stats)
        case Call("coalesce", arguments):
            result = np.zeros(stats.num_files, dtype=np.bool_)
            for argument in arguments:
                result |= may_have_value(argument, stats)
            return result
    if _is_strict(operand):
        result = everywhere(stats)
        for child in children(operand):
            result &= may_have_value(child, stats)
        return result
    return everywhere(stats)


def everywhere(stats: StatsColumns) -> Mask:
    """A mask that is true for each file."""
    return np.ones(stats.num_files, dtype=np.bool_)


def as_mask(value: Any, *, unknown: bool) -> Mask:
    """A boolean array as a writable NumPy mask; null becomes `unknown`."""
    filled = pc.fill_null(value, ARROW_TRUE if unknown else ARROW_FALSE)
    if isinstance(filled, pa.ChunkedArray):
        # Depending on their chunks, chunked arrays return read-only views or copies: copy always.
        return np.array(filled.to_numpy(), dtype=np.bool_)
    if not len(filled):
        return np.zeros(0, dtype=np.bool_)
    # Five times as fast as Arrow's own conversion; statistics of a million files pass through here.
    packed = np.frombuffer(filled.buffers()[1], np.uint8)[filled.offset // 8 :]
    first = filled.offset % 8
    bits = np.unpackbits(packed, count=first + len(filled), bitorder="little")
    return bits[first:].view(np.bool_)


def is_string(value: Any) -> bool:
    """Whether bounds are known and are strings."""
    return value is not None and bool(pa.types.is_string(value.type))


def _is_strict(expression: Expression) -> bool:
    match expression:
        case Call(name):
            return name in _STRICT
        case Comparison(operator):
            return operator != ComparisonOperator.EQ_NULL_SAFE
        case Cast() | Arithmetic() | Not() | Like():
            return True
    return False


def _column(path: tuple[str, ...], stats: StatsColumns) -> Bounds:
    exact = stats.partition(path)
    never = ~may_have_value(Column(path), stats)
    if exact is not None:
        return Bounds(low=exact, high=exact, all_null=never)
    known = stats.columns.get(path)
    if known is None:
        return Bounds(low=None, high=None, all_null=never)
    return Bounds(low=known.minimum, high=known.maximum, all_null=never)


def _derived(expression: Expression, stats: StatsColumns) -> tuple[Any, Any]:
    """The bounds of a function computed from those of its arguments, where it preserves their order."""
    match expression:
        case Cast(operand, data_type):
            target = type_to_arrow(data_type)
            inner = bounds_of(operand, stats)
            low, high = (
                cast_value(side, target) if _is_monotone(side, target) else None
                for side in (inner.low, inner.high)
            )
            return low, high
        case Call("substring", (operand, Literal(1 | 0), Literal(int() as length))) | Call(
            "left", (operand, Literal(int() as length))
        ):
            inner = bounds_of(operand, stats)
            if is_string(inner.low) and is_string(inner.high) and length > 0:
                # Truncation to a prefix preserves the order.
                return (
                    pc.utf8_slice_codeunits(inner.low, 0, length),
                    pc.utf8_slice_codeunits(inner.high, 0, length),
                )
        case Call("date_trunc", (Literal(str() as unit), operand)) | Call(
            "trunc", (operand, Literal(str() as unit))
        ):
            assert isinstance(expression, Call)
            return _each_time(expression, operand, stats)
        case Call("date_format", (operand, Literal(str() as pattern))):
            if is_sortable(pattern):
                return _each_time(expression, operand, stats)
        case Call("year" | "last_day", (operand,)):
            return _each_time(expression, operand, stats)
        case Call("date_add" | "date_sub", (operand, Literal(int()))):
            return _each_time(expression, operand, stats)
        case Call(name, (operand,)) if name in _WITHIN:
            inner = bounds_of(operand, stats)
            low, high = _each_time(expression, operand, stats)
            if low is not None and high is not None:
                unit = _WITHIN[name]
                same = pc.equal(*(pc.floor_temporal(side, unit=unit) for side in (inner.low, inner.high)))
                low, high = (pc.if_else(same, side, pa.scalar(None, side.type)) for side in (low, high))
                return low, high
        case Call("coalesce", arguments):
            return _coalesced([bounds_of(argument, stats) for argument in arguments])
        case Arithmetic():
            return _computed(expression, stats)
    return None, None


def _each_time(expression: Call, operand: Expression, stats: StatsColumns) -> tuple[Any, Any]:
    """A monotone function of a date or time, applied to both bounds."""
    inner = bounds_of(operand, stats)
    run = FUNCTIONS[expression.name].run

    def of(side: Any) -> Any:
        if not _is_datetime(side):
            return None
        return run([literal_scalar(a) if isinstance(a, Literal) else side for a in expression.arguments])

    return of(inner.low), of(inner.high)


def _coalesced(arguments: list[Bounds]) -> tuple[Any, Any]:
    """Bounds of COALESCE: from the least to the greatest bound of the arguments that have a value."""
    if any(side is None for argument in arguments for side in (argument.low, argument.high)):
        return None, None
    target = next((a.low.type for a in arguments if not pa.types.is_null(a.low.type)), None)
    if target is None or pa.types.is_floating(target):
        return None, None
    sides = []
    for pick, name in ((pc.min_element_wise, "low"), (pc.max_element_wise, "high")):
        values, absent = [], []
        for argument in arguments:
            side = convert(getattr(argument, name), target)
            if isinstance(side, pa.Scalar):
                side = pa.repeat(side, len(argument.all_null))
            values.append(side.combine_chunks() if isinstance(side, pa.ChunkedArray) else side)
            absent.append(pa.array(argument.all_null))
        bound = pick(*values, skip_nulls=True)
        for side, without in zip(values, absent, strict=True):
            # A missing bound of an argument that has values is unknown, and so is the result.
            unknown = pc.and_(pc.is_null(side), pc.invert(without))
            bound = pc.if_else(unknown, pa.scalar(None, target), bound)
        sides.append(bound)
    return sides[0], sides[1]


def _computed(expression: Arithmetic, stats: StatsColumns) -> tuple[Any, Any]:
    """Bounds of sums and differences, and of products with a constant."""
    operator = expression.operator
    left, right = bounds_of(expression.left, stats), bounds_of(expression.right, stats)
    sides = (left.low, left.high, right.low, right.high)
    if any(side is None or pa.types.is_floating(side.type) for side in sides):
        # Infinities of opposite signs add up to NaN, the greatest value.
        return None, None
    match operator:
        case ArithmeticOperator.ADD:
            return arithmetic(operator, left.low, right.low), arithmetic(operator, left.high, right.high)
        case ArithmeticOperator.SUBTRACT:
            return arithmetic(operator, left.low, right.high), arithmetic(operator, left.high, right.low)
        case ArithmeticOperator.MULTIPLY:
            if isinstance(expression.left, Literal):
                left, right = right, left
            constant = right.low
            if isinstance(constant, pa.Scalar) and isinstance(right.high, pa.Scalar) and constant.is_valid:
                low, high = (arithmetic(operator, side, constant) for side in (left.low, left.high))
                return (low, high) if constant.as_py() >= 0 else (high, low)
    return None, None


def _single_value(expression: Expression, stats: StatsColumns) -> Any:
    """The expression's value where each of its columns has a single value; null elsewhere."""
    known: dict[str, Any] = {}
    renamed: dict[tuple[str, ...], Column] = {}
    for path in sorted(referenced_columns(expression)):
        bounds = _column(path, stats)
        if bounds.low is None or bounds.high is None or pa.types.is_floating(bounds.low.type):
            # 0.0 and -0.0 are equal but are two values.
            return None
        single = pc.if_else(pc.equal(bounds.low, bounds.high), bounds.low, pa.scalar(None, bounds.low.type))
        renamed[path] = Column((f"{len(known)}",))
        known[renamed[path].path[0]] = single
    if any(isinstance(node, Call) and node.name not in FUNCTIONS for node in walk(expression)):
        return None
    try:
        data = pa.table(known) if known else pa.table({"": pa.nulls(1)})
        value = evaluate(_with_columns(expression, renamed), data)
    except (ExpressionError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return value if known else value[0]


def _with_columns(expression: Expression, renamed: Mapping[tuple[str, ...], Column]) -> Expression:
    """The operand with its columns renamed; supports only the nodes of strict operands."""
    match expression:
        case Column(path):
            return renamed[path]
        case Cast(operand, data_type):
            return Cast(_with_columns(operand, renamed), data_type)
        case Arithmetic(operator, left, right):
            return Arithmetic(operator, _with_columns(left, renamed), _with_columns(right, renamed))
        case Call(name, arguments) if name in _STRICT:
            return Call(name, tuple(_with_columns(argument, renamed) for argument in arguments))
        case Literal():
            return expression
    raise ExpressionError(
        "The expression is not an operand with a value.", cause="It is a condition.", fix="Compare columns."
    )


def _is_monotone(value: Any, target: pa.DataType) -> bool:
    """Whether a cast preserves the order of values, so that it turns bounds into bounds."""
    if value is None:
        return False
    types, source = pa.types, value.type
    if types.is_floating(source):
        return bool(types.is_floating(target))
    numeric = types.is_integer(source) or types.is_decimal(source)
    if numeric:
        return bool(types.is_integer(target) or types.is_decimal(target) or types.is_floating(target))
    return _is_datetime(value) and bool(types.is_date(target) or types.is_timestamp(target))


def _is_datetime(value: Any) -> bool:
    return value is not None and bool(pa.types.is_date(value.type) or pa.types.is_timestamp(value.type))
