"""The functions that an expression may call: argument types, result types, and evaluation on Arrow data.

All are deterministic and depend only on their arguments, so an expression means the same on every engine
and at every time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.expressions import datetime_functions as times
from delta_core.expressions import rounding
from delta_core.expressions.ast import Expression
from delta_core.expressions.literals import DATETIMES, FLOATING, is_numeric
from delta_core.schema.arrow import type_to_arrow
from delta_core.schema.arrow_values import ARROW_FALSE
from delta_core.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    INTEGER,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    ArrayType,
    DataType,
    MapType,
)

Operand = Any
"""A pyarrow Array, ChunkedArray or Scalar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function that an expression may call.

    Attributes:
        min_arguments: smallest number of arguments.
        max_arguments: largest number of arguments; None for any number.
        accepts: for each argument (the last one repeats), the name of the accepted types for messages, and
            whether a type is accepted.
        result: the type of the result, from the types of the arguments.
        run: the result, from evaluated arguments.
        constants: positions of arguments that must be constants.
        result_of_constants: the type of the result where it depends on constants; used instead of `result`.
        choices: whether the function supports a constant string, and a description of those it supports.
    """

    min_arguments: int
    max_arguments: int | None
    accepts: tuple[tuple[str, Callable[[DataType], bool]], ...]
    result: Callable[[Sequence[DataType]], DataType]
    run: Callable[[Sequence[Operand]], Operand]
    constants: frozenset[int] = frozenset()
    result_of_constants: Callable[[Sequence[DataType], Sequence[Expression]], DataType] | None = None
    choices: tuple[Callable[[str], bool], str] | None = None


def _is(*types: DataType) -> Callable[[DataType], bool]:
    return lambda data_type: data_type in types or data_type == VOID


_STRING = ("a string", _is(STRING))
_INT = ("an integer", _is(INTEGER))
_NUMBER = ("a number", lambda t: is_numeric(t) or t == VOID)
_FLOAT = ("a floating-point number", lambda t: t in FLOATING or t == VOID)
_DAYS = ("a number of days", _is(INTEGER, SHORT, BYTE))
_DATE_OR_TIME = ("a date or timestamp", lambda t: t in DATETIMES or t == VOID)
_TIME = ("a timestamp", _is(TIMESTAMP, TIMESTAMP_NTZ))
_STRING_OR_BINARY = ("a string or binary", _is(STRING, BINARY))


def _string(run: Callable[[Operand], Operand]) -> Function:
    return Function(
        min_arguments=1,
        max_arguments=1,
        accepts=(_STRING,),
        result=lambda _: STRING,
        run=lambda arguments: run(as_string(arguments[0])),
    )


def _in_case(of_ascii: Callable[[Operand], Operand], change: Callable[[str], str]) -> Callable[..., Operand]:
    """Strings in upper or lower case as in Spark, with the full case mapping of Unicode.

    Arrow maps each character to one character: it has no `SS` for `ß`, and no final sigma.
    """

    def run(strings: Operand) -> Operand:
        if isinstance(strings, pa.Scalar):
            return pa.scalar(change(strings.as_py()) if strings.is_valid else None, strings.type)
        if pc.all(pc.string_is_ascii(strings), min_count=0).as_py():
            return of_ascii(strings)
        chunks = strings.chunks if isinstance(strings, pa.ChunkedArray) else [strings]
        changed = [
            pa.array([None if value is None else change(value) for value in chunk.to_pylist()], strings.type)
            for chunk in chunks
        ]
        return pa.chunked_array(changed) if isinstance(strings, pa.ChunkedArray) else changed[0]

    return run


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
                return pc.if_else(pc.is_null(value), _null(BOOLEAN), _null(BOOLEAN))
            return run(value, pattern.as_py())
        strings, patterns = _as_lists(value, pattern)
        return pa.array(
            [
                None if t is None or p is None else run(pa.scalar(t), p).as_py()
                for t, p in zip(strings, patterns, strict=True)
            ],
            pa.bool_(),
        )

    return Function(
        min_arguments=2, max_arguments=2, accepts=(_STRING,), result=lambda _: BOOLEAN, run=evaluate
    )


def as_string(value: Operand) -> Operand:
    """The operand as a string; an untyped null becomes a null of type string."""
    return pc.cast(value, pa.string()) if pa.types.is_null(value.type) else value


def _as_lists(value: Operand, pattern: Operand) -> tuple[list[Any], list[Any]]:
    patterns = pattern.to_pylist()
    strings = [value.as_py()] * len(patterns) if isinstance(value, pa.Scalar) else value.to_pylist()
    return strings, patterns


def _length(arguments: Sequence[Operand]) -> Operand:
    value = arguments[0]
    if pa.types.is_binary(value.type):
        return pc.cast(pc.binary_length(value), pa.int32())
    return pc.cast(pc.utf8_length(as_string(value)), pa.int32())


def _substring(arguments: Sequence[Operand]) -> Operand:
    string, *positions = arguments
    numbers = [int(p.as_py()) for p in positions if isinstance(p, pa.Scalar) and p.is_valid]
    if len(numbers) < len(positions):
        return pc.if_else(pc.is_null(string), pa.scalar(None, pa.string()), pa.scalar(None, pa.string()))
    start, length = numbers[0], numbers[1] if len(numbers) > 1 else None
    string = as_string(string)
    if length is not None and length <= 0:
        return pc.utf8_slice_codeunits(string, 0, 0)
    if start >= 0:
        first = max(start - 1, 0)
        return pc.utf8_slice_codeunits(string, first, None if length is None else first + length)
    if length is None:
        return pc.utf8_slice_codeunits(string, start, None)
    # A start before the first character counts from there, so a part of the length lies outside the string.
    size = pc.utf8_length(string)
    outside = pc.max_element_wise(pc.subtract(pa.scalar(-start, size.type), size), pa.scalar(0, size.type))
    tail = pc.utf8_slice_codeunits(string, start, None)
    inside = pc.max_element_wise(pc.subtract(pa.scalar(length, size.type), outside), pa.scalar(0, size.type))
    strings, lengths = (
        (tail.to_pylist(), inside.to_pylist()) if not isinstance(tail, pa.Scalar) else (None, None)
    )
    if strings is None or lengths is None:
        return pa.scalar(None if tail.as_py() is None else tail.as_py()[: inside.as_py()], pa.string())
    return pa.array(
        [None if t is None else t[:n] for t, n in zip(strings, lengths, strict=True)], pa.string()
    )


def _concat(arguments: Sequence[Operand]) -> Operand:
    return pc.binary_join_element_wise(*(as_string(a) for a in arguments), "", null_handling="emit_null")


def _left(arguments: Sequence[Operand]) -> Operand:
    string, length = arguments
    return _substring([string, pa.scalar(1), length])


def _right(arguments: Sequence[Operand]) -> Operand:
    string, length = arguments
    if not length.is_valid or length.as_py() <= 0:
        return _left(arguments)
    return _substring([string, pa.scalar(-length.as_py())])


def _dated(
    run: Callable[..., Operand], result: DataType, *accepts: tuple[str, Callable[[DataType], bool]]
) -> Function:
    """A function of dates; an untyped null among the arguments gives a null of the result's type."""

    def evaluate(arguments: Sequence[Operand]) -> Operand:
        if any(pa.types.is_null(argument.type) for argument in arguments):
            nowhere = next((a for a in arguments if not isinstance(a, pa.Scalar)), arguments[0])
            return pc.if_else(pc.is_null(nowhere), _null(result), _null(result))
        return run(*arguments)

    return Function(
        min_arguments=len(accepts),
        max_arguments=len(accepts),
        accepts=accepts,
        result=lambda _: result,
        run=evaluate,
    )


def _in_unit(
    run: Callable[..., Operand], result: DataType, at: int, units: Callable[[str], bool]
) -> Function:
    """A function with a constant string argument, such as a unit or a pattern, at position `at`."""
    others = ("a date or timestamp", _is(*DATETIMES))
    accepts = (_STRING, others) if at == 0 else (others, _STRING)

    def evaluate(arguments: Sequence[Operand]) -> Operand:
        value, how = arguments[1 - at], arguments[at].as_py()
        if pa.types.is_null(value.type):
            return pc.if_else(pc.is_null(value), _null(result), _null(result))
        return run(how, value) if at == 0 else run(value, how)

    return Function(
        min_arguments=2,
        max_arguments=2,
        accepts=accepts,
        result=lambda _: result,
        run=evaluate,
        constants=frozenset({at}),
        choices=(units, _UNITS if result != STRING else _PATTERNS),
    )


def _null(data_type: DataType) -> pa.Scalar:
    return pa.nulls(1, type_to_arrow(data_type))[0]


_UNITS = "year, quarter, month, week, and for date_trunc also day, hour, minute, second"
_PATTERNS = "yyyy, MM, dd, HH, mm, ss, punctuation and strings in single quotes"


def _is_nan(arguments: Sequence[Operand]) -> Operand:
    value = arguments[0]
    if pa.types.is_null(value.type):
        return pc.is_valid(value)
    return pc.fill_null(pc.is_nan(value), ARROW_FALSE)


def _size(arguments: Sequence[Operand]) -> Operand:
    value = arguments[0]
    if pa.types.is_null(value.type):
        return pc.cast(value, pa.int32())
    if not pa.types.is_map(value.type):
        return pc.cast(pc.list_value_length(value), pa.int32())
    if isinstance(value, pa.Scalar):
        return pa.scalar(len(value.as_py()) if value.is_valid else None, pa.int32())
    sizes = [
        pc.if_else(pc.is_null(chunk), _null(INTEGER), pc.pairwise_diff(chunk.offsets[: len(chunk) + 1])[1:])
        for chunk in (value.chunks if isinstance(value, pa.ChunkedArray) else [value])
    ]
    return pa.chunked_array(sizes, pa.int32())


def _trim(value: Operand) -> Operand:
    return pc.utf8_trim(value, " ")


FUNCTIONS: dict[str, Function] = {
    "lower": _string(_in_case(pc.utf8_lower, str.lower)),
    "upper": _string(_in_case(pc.utf8_upper, str.upper)),
    "trim": _string(_trim),
    "ltrim": _string(lambda string: pc.utf8_ltrim(string, " ")),
    "rtrim": _string(lambda string: pc.utf8_rtrim(string, " ")),
    "length": Function(
        min_arguments=1, max_arguments=1, accepts=(_STRING_OR_BINARY,), result=lambda _: INTEGER, run=_length
    ),
    "substring": Function(
        min_arguments=2,
        max_arguments=3,
        accepts=(_STRING, _INT),
        result=lambda _: STRING,
        run=_substring,
        constants=frozenset({1, 2}),
    ),
    "left": Function(
        min_arguments=2,
        max_arguments=2,
        accepts=(_STRING, _INT),
        result=lambda _: STRING,
        run=_left,
        constants=frozenset({1}),
    ),
    "right": Function(
        min_arguments=2,
        max_arguments=2,
        accepts=(_STRING, _INT),
        result=lambda _: STRING,
        run=_right,
        constants=frozenset({1}),
    ),
    "concat": Function(
        min_arguments=1, max_arguments=None, accepts=(_STRING,), result=lambda _: STRING, run=_concat
    ),
    "startswith": _search(lambda string, pattern: pc.starts_with(string, pattern)),
    "endswith": _search(lambda string, pattern: pc.ends_with(string, pattern)),
    "contains": _search(lambda string, pattern: pc.match_substring(string, pattern)),
    "abs": Function(
        min_arguments=1,
        max_arguments=1,
        accepts=(_NUMBER,),
        result=lambda types: types[0],
        run=lambda arguments: pc.abs_checked(arguments[0]),
    ),
    "round": Function(
        min_arguments=1,
        max_arguments=2,
        accepts=(_NUMBER, _INT),
        result=lambda types: types[0],
        result_of_constants=rounding.round_type,
        run=rounding.round_half_up,
        constants=frozenset({1}),
    ),
    **{
        name: Function(
            min_arguments=1,
            max_arguments=1,
            accepts=(_NUMBER,),
            result=lambda types: rounding.whole_type(types[0]),
            run=run,
        )
        for name, run in (("floor", rounding.floor), ("ceil", rounding.ceil))
    },
    "size": Function(
        min_arguments=1,
        max_arguments=1,
        accepts=(("an array or map", lambda t: isinstance(t, ArrayType | MapType) or t == VOID),),
        result=lambda _: INTEGER,
        run=_size,
    ),
    "isnan": Function(
        min_arguments=1, max_arguments=1, accepts=(_FLOAT,), result=lambda _: BOOLEAN, run=_is_nan
    ),
    **{
        name: _part(run, _TIME if name in ("hour", "minute", "second") else _DATE_OR_TIME)
        for name, run in times.PARTS.items()
    },
    "date_trunc": _in_unit(
        times.date_trunc, TIMESTAMP, 0, lambda unit: unit.upper() in times.TRUNCATION_UNITS
    ),
    "trunc": _in_unit(
        times.trunc, DATE, 1, lambda unit: times.TRUNCATION_UNITS.get(unit.upper()) in times.DATE_UNITS
    ),
    "date_format": _in_unit(
        times.date_format, STRING, 1, lambda pattern: bool(times.pattern_directives(pattern))
    ),
    "date_add": _dated(times.add_days, DATE, _DATE_OR_TIME, _DAYS),
    "date_sub": _dated(times.subtract_days, DATE, _DATE_OR_TIME, _DAYS),
    "datediff": _dated(times.days_between, INTEGER, _DATE_OR_TIME, _DATE_OR_TIME),
    "last_day": _dated(times.last_day, DATE, _DATE_OR_TIME),
}
"""Functions by lower-case name. `coalesce`, `case`, `greatest` and `least` unify the types of their
arguments, so their typing and evaluation are next to those of the operators."""
