"""The functions an expression may call: what they accept, what they give, how they run on Arrow.

All are deterministic and depend on nothing but their arguments, so an expression means the same on
every engine and at every time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.expressions.literals import DATETIMES, FLOATING, is_numeric
from delta_core.schema.types import (
    BINARY,
    BOOLEAN,
    INTEGER,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    DataType,
)

Operand = Any
"""A pyarrow Array, ChunkedArray or Scalar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """One function.

    Attributes:
        min_arguments: fewest arguments.
        max_arguments: most arguments; None for any number.
        accepts: for each argument (the last one repeats), whether a type may stand there, and its name
            for messages.
        result: the type of the result, from the arguments' types.
        run: the result, from evaluated arguments.
    """

    min_arguments: int
    max_arguments: int | None
    accepts: tuple[tuple[str, Callable[[DataType], bool]], ...]
    result: Callable[[Sequence[DataType]], DataType]
    run: Callable[[Sequence[Operand]], Operand]


def _is(*types: DataType) -> Callable[[DataType], bool]:
    return lambda data_type: data_type in types or data_type == VOID


_TEXT = ("a string", _is(STRING))
_INT = ("an integer", _is(INTEGER))
_NUMBER = ("a number", lambda t: is_numeric(t) or t == VOID)
_FLOAT = ("a floating-point number", lambda t: t in FLOATING or t == VOID)
_DATE_OR_TIME = ("a date or timestamp", lambda t: t in DATETIMES or t == VOID)
_TIME = ("a timestamp", _is(TIMESTAMP, TIMESTAMP_NTZ))
_TEXT_OR_BINARY = ("a string or binary", _is(STRING, BINARY))


def _text(run: Callable[[Operand], Operand]) -> Function:
    return Function(
        min_arguments=1,
        max_arguments=1,
        accepts=(_TEXT,),
        result=lambda _: STRING,
        run=lambda arguments: run(as_string(arguments[0])),
    )


def _part(run: Callable[[Operand], Operand], accepts: tuple[str, Callable[[DataType], bool]]) -> Function:
    def evaluate(arguments: Sequence[Operand]) -> Operand:
        (value,) = arguments
        if pa.types.is_null(value.type):
            return pc.cast(value, pa.int32())
        return pc.cast(run(value), pa.int32())

    return Function(
        min_arguments=1, max_arguments=1, accepts=(accepts,), result=lambda _: INTEGER, run=evaluate
    )


def _search(run: Callable[[Operand, str], Operand]) -> Function:
    def evaluate(arguments: Sequence[Operand]) -> Operand:
        value, pattern = (as_string(argument) for argument in arguments)
        if isinstance(pattern, pa.Scalar):
            if not pattern.is_valid:
                return pc.and_kleene(pc.is_null(value), pa.scalar(None, pa.bool_()))
            return run(value, pattern.as_py())
        texts, patterns = _as_lists(value, pattern)
        return pa.array(
            [
                None if t is None or p is None else run(pa.scalar(t), p).as_py()
                for t, p in zip(texts, patterns, strict=True)
            ],
            pa.bool_(),
        )

    return Function(
        min_arguments=2, max_arguments=2, accepts=(_TEXT,), result=lambda _: BOOLEAN, run=evaluate
    )


def as_string(value: Operand) -> Operand:
    """The operand as a string; a typeless null becomes a string null."""
    return pc.cast(value, pa.string()) if pa.types.is_null(value.type) else value


def _as_lists(value: Operand, pattern: Operand) -> tuple[list[Any], list[Any]]:
    patterns = pattern.to_pylist()
    texts = [value.as_py()] * len(patterns) if isinstance(value, pa.Scalar) else value.to_pylist()
    return texts, patterns


def _length(arguments: Sequence[Operand]) -> Operand:
    value = arguments[0]
    if pa.types.is_binary(value.type):
        return pc.cast(pc.binary_length(value), pa.int32())
    return pc.cast(pc.utf8_length(as_string(value)), pa.int32())


def _substring(arguments: Sequence[Operand]) -> Operand:
    text, *positions = arguments
    numbers = [int(p.as_py()) for p in positions if isinstance(p, pa.Scalar) and p.is_valid]
    if len(numbers) < len(positions):
        return pc.if_else(pc.is_null(text), pa.scalar(None, pa.string()), pa.scalar(None, pa.string()))
    start, length = numbers[0], numbers[1] if len(numbers) > 1 else None
    text = as_string(text)
    if length is not None and length <= 0:
        return pc.utf8_slice_codeunits(text, 0, 0)
    if start >= 0:
        first = max(start - 1, 0)
        return pc.utf8_slice_codeunits(text, first, None if length is None else first + length)
    if length is None:
        return pc.utf8_slice_codeunits(text, start, None)
    # A start before the string's begin counts from there, so part of the length is used up outside.
    size = pc.utf8_length(text)
    outside = pc.max_element_wise(pc.subtract(pa.scalar(-start, size.type), size), pa.scalar(0, size.type))
    tail = pc.utf8_slice_codeunits(text, start, None)
    kept = pc.max_element_wise(pc.subtract(pa.scalar(length, size.type), outside), pa.scalar(0, size.type))
    texts, lengths = (tail.to_pylist(), kept.to_pylist()) if not isinstance(tail, pa.Scalar) else (None, None)
    if texts is None or lengths is None:
        return pa.scalar(None if tail.as_py() is None else tail.as_py()[: kept.as_py()], pa.string())
    return pa.array([None if t is None else t[:n] for t, n in zip(texts, lengths, strict=True)], pa.string())


def _concat(arguments: Sequence[Operand]) -> Operand:
    return pc.binary_join_element_wise(*(as_string(a) for a in arguments), "", null_handling="emit_null")


def _is_nan(arguments: Sequence[Operand]) -> Operand:
    value = arguments[0]
    if pa.types.is_null(value.type):
        return pc.is_valid(value)
    return pc.fill_null(pc.is_nan(value), False)


def _trim(value: Operand) -> Operand:
    return pc.utf8_trim(value, " ")


FUNCTIONS: dict[str, Function] = {
    "lower": _text(pc.utf8_lower),
    "upper": _text(pc.utf8_upper),
    "trim": _text(_trim),
    "length": Function(
        min_arguments=1, max_arguments=1, accepts=(_TEXT_OR_BINARY,), result=lambda _: INTEGER, run=_length
    ),
    "substring": Function(
        min_arguments=2, max_arguments=3, accepts=(_TEXT, _INT), result=lambda _: STRING, run=_substring
    ),
    "concat": Function(
        min_arguments=1, max_arguments=None, accepts=(_TEXT,), result=lambda _: STRING, run=_concat
    ),
    "startswith": _search(lambda text, pattern: pc.starts_with(text, pattern)),
    "endswith": _search(lambda text, pattern: pc.ends_with(text, pattern)),
    "contains": _search(lambda text, pattern: pc.match_substring(text, pattern)),
    "abs": Function(
        min_arguments=1,
        max_arguments=1,
        accepts=(_NUMBER,),
        result=lambda types: types[0],
        run=lambda arguments: pc.abs_checked(arguments[0]),
    ),
    "isnan": Function(
        min_arguments=1, max_arguments=1, accepts=(_FLOAT,), result=lambda _: BOOLEAN, run=_is_nan
    ),
    "year": _part(pc.year, _DATE_OR_TIME),
    "month": _part(pc.month, _DATE_OR_TIME),
    "day": _part(pc.day, _DATE_OR_TIME),
    "hour": _part(pc.hour, _TIME),
    "minute": _part(pc.minute, _TIME),
    "second": _part(pc.second, _TIME),
}
"""By lower-case name. `coalesce` is typed and evaluated with the operators, since it unifies types."""
