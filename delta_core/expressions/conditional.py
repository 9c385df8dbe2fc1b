"""Conditional values: CASE, greatest, least. The types that they may mix, and their evaluation.

`Call("case", (condition, value, ..., otherwise))` represents CASE, IF, nullif and nvl2: any number of pairs,
and the value for rows where no condition is true.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.errors import ExpressionError
from delta_core.expressions.ast import Call, Cast, Expression, Literal
from delta_core.expressions.columns import referenced_names
from delta_core.expressions.literals import (
    DATETIMES,
    FLOATING,
    INTEGRAL_RANGES,
    convert_literal,
    is_numeric,
    literal_type,
)
from delta_core.expressions.render import to_spark_sql
from delta_core.schema.arrow_values import ARROW_FALSE
from delta_core.schema.types import (
    DATE,
    DOUBLE,
    STRING,
    TIMESTAMP,
    VOID,
    DataType,
    DecimalType,
)

CASE, GREATEST, LEAST = "case", "greatest", "least"

Typed = tuple[Expression, DataType]
Rows: TypeAlias = "pa.Table | pa.RecordBatch"
Run = Callable[[Expression, Any], Any]

_DIGITS = dict(zip(INTEGRAL_RANGES, (3, 5, 10, 20), strict=True))


def resolve_case(expression: Call, conditions: Sequence[Expression], values: Sequence[Typed]) -> Typed:
    """Resolve a CASE: the call with converted values, and its type.

    Args:
        expression: the call, for error messages.
        conditions: resolved conditions; each is boolean.
        values: resolved values, one more than conditions.

    Raises:
        ExpressionError: the values have no common type.
    """
    unified, data_type = _unified(expression, values)
    pairs = [part for pair in zip(conditions, unified, strict=False) for part in pair]
    return Call(CASE, (*pairs, unified[-1])), data_type


def resolve_extreme(expression: Call, values: Sequence[Typed]) -> Typed:
    """`greatest` or `least`, as `resolve_case`; needs at least two values of a type that has an order."""
    name = expression.name.lower()
    if len(values) < 2:
        raise ExpressionError(
            f"The number of arguments of {name} cannot be {len(values)}.",
            cause="It takes at least two arguments.",
            fix="Pass at least two arguments.",
        )
    unified, data_type = _unified(expression, values)
    if not (is_numeric(data_type) or data_type in DATETIMES or data_type in (STRING, VOID)):
        raise ExpressionError(
            f"{name} does not apply to values of type {data_type}.",
            cause="It compares numbers, strings, dates and timestamps.",
            fix="Use values of one of these types.",
        )
    return Call(name, tuple(unified)), data_type


def _unified(expression: Call, values: Sequence[Typed]) -> tuple[list[Expression], DataType]:
    types = [t for _, t in values if t != VOID]
    others = [t for value, t in values if t != VOID and not (isinstance(value, Literal) and t == STRING)]
    target = _common(expression, others or types)
    unified = []
    for value, data_type in values:
        if isinstance(value, Literal):
            value = convert_literal(value, target, to_spark_sql(expression))
            data_type = literal_type(value)
        unified.append(value if data_type == target else Cast(value, target))
    return unified, target


def _common(expression: Call, types: Sequence[DataType]) -> DataType:
    distinct = list(dict.fromkeys(types))
    if not distinct:
        return VOID
    if len(distinct) == 1:
        return distinct[0]
    if all(map(is_numeric, distinct)):
        if any(t in FLOATING for t in distinct):
            return DOUBLE
        if not any(isinstance(t, DecimalType) for t in distinct):
            return max(distinct, key=lambda t: INTEGRAL_RANGES[t])
        scale = max(t.scale for t in distinct if isinstance(t, DecimalType))
        whole = max(t.precision - t.scale if isinstance(t, DecimalType) else _DIGITS[t] for t in distinct)
        return DecimalType(min(whole + scale, 38), min(scale, 38))
    if set(distinct) == {DATE, TIMESTAMP}:
        return TIMESTAMP
    raise ExpressionError(
        f"The values of {to_spark_sql(expression)} have different types.",
        cause=f"The values have the types {', '.join(map(str, distinct))}, which have no common type.",
        fix="CAST the values to one type.",
    )


def evaluate_case(call: Call, data: Rows, run: Run) -> pa.Array | pa.ChunkedArray:
    """The value of a resolved CASE for every row.

    A value is computed only for the rows that take it, so that a condition can prevent a division by zero.

    Args:
        call: the call.
        data: the rows.
        run: evaluates an expression on rows, like `evaluate.evaluate`.
    """
    *pairs, otherwise = call.arguments
    needed = referenced_names(call)
    rest = data.select([name for name in data.schema.names if name in needed] or data.schema.names[:1])
    positions = np.arange(data.num_rows)
    parts: list[Any] = []
    places: list[Any] = []
    for condition, value in zip(pairs[::2], pairs[1::2], strict=True):
        if not len(positions):
            break
        truth = run(condition, rest)
        if pa.types.is_null(truth.type):
            continue
        mask = pc.fill_null(truth, ARROW_FALSE)
        taken = np.concatenate([chunk.to_numpy(zero_copy_only=False) for chunk in _chunks(mask, mask.type)])
        if taken.any():
            parts.append(run(value, rest.filter(mask)))
            places.append(positions[taken])
            rest = rest.filter(pc.invert(mask))
            positions = positions[~taken]
    if len(positions) or not parts:
        parts.append(run(otherwise, rest))
        places.append(positions)
    if len(parts) == 1:
        return parts[0]
    target = next((part.type for part in parts if not pa.types.is_null(part.type)), pa.null())
    chunks = [chunk for part in parts for chunk in _chunks(part, target)]
    order = np.empty(data.num_rows, dtype=np.int64)
    order[np.concatenate(places)] = np.arange(data.num_rows)
    return pa.chunked_array(chunks, target).take(pa.array(order))


def evaluate_extreme(name: str, values: Sequence[Any]) -> Any:
    """`greatest` or `least` of evaluated arguments: nulls are ignored, NaN is greater than all numbers."""
    target = next((value.type for value in values if not pa.types.is_null(value.type)), pa.null())
    if pa.types.is_null(target):
        return next((value for value in values if not isinstance(value, pa.Scalar)), values[0])
    typed = [pc.cast(value, target) for value in values]
    if pa.types.is_timestamp(target) and target.tz is not None:
        # Arrow has no such function for timestamps with a zone; compare their microseconds as integers.
        instants = evaluate_extreme(name, [pc.cast(value, pa.int64()) for value in typed])
        return pc.cast(instants, target)
    if name == LEAST:
        # Arrow ignores NaN, unless all values are NaN.
        return pc.min_element_wise(*typed, skip_nulls=True)
    greatest = pc.max_element_wise(*typed, skip_nulls=True)
    if pa.types.is_floating(target):
        for value in typed:
            is_nan = pc.fill_null(pc.is_nan(value), ARROW_FALSE)
            greatest = pc.if_else(is_nan, pa.scalar(float("nan"), target), greatest)
    return greatest


def _chunks(part: Any, target: pa.DataType) -> list[pa.Array]:
    if part.type != target:
        return [pa.nulls(len(part), target)]
    return list(part.chunks) if isinstance(part, pa.ChunkedArray) else [part]
