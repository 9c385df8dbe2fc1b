"""The value of an expression for one row, written down as plainly as possible: Python values, no Arrow."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

from delta_core.expressions.ast import (
    And,
    Arithmetic,
    ArithmeticOperator,
    Call,
    Cast,
    Column,
    Comparison,
    ComparisonOperator,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
)
from delta_core.schema.types import DATE, DOUBLE, FLOAT, TIMESTAMP, TIMESTAMP_NTZ, DecimalType

_LETTERS = {
    "yyyy": "{0.year:04d}",
    "MM": "{0.month:02d}",
    "dd": "{0.day:02d}",
    "HH": "{0.hour:02d}",
    "mm": "{0.minute:02d}",
    "ss": "{0.second:02d}",
}


def reference(expression: Expression, row: Mapping[str, Any]) -> Any:
    """The value for one row; None is null. Raises ArithmeticError or ValueError where Spark fails."""
    match expression:
        case Column(path):
            value: Any = row
            for name in path:
                value = None if value is None else value[name]
            return value
        case Literal(value):
            return value
        case Comparison(operator, left, right):
            return compare(operator, reference(left, row), reference(right, row))
        case Arithmetic(operator, left, right):
            return _arithmetic(operator, reference(left, row), reference(right, row))
        case And(terms):
            values = [reference(term, row) for term in terms]
            return False if False in values else (None if None in values else True)
        case Or(terms):
            values = [reference(term, row) for term in terms]
            return True if True in values else (None if None in values else False)
        case Not(operand):
            value = reference(operand, row)
            return None if value is None else not value
        case IsNull(operand):
            return reference(operand, row) is None
        case In(operand, literals):
            value = reference(operand, row)
            found = [compare(ComparisonOperator.EQ, value, literal.value) for literal in literals]
            return True if True in found else (None if None in found else False)
        case Like(operand, pattern):
            value = reference(operand, row)
            return None if value is None else re.fullmatch(_regex(pattern), str(value), re.DOTALL) is not None
        case Cast(operand, data_type):
            return _cast(reference(operand, row), data_type)
        case Call("coalesce", arguments):
            values = [reference(argument, row) for argument in arguments]
            return next((value for value in values if value is not None), None)
        case Call("isnan", (operand,)):
            value = reference(operand, row)
            return value is not None and math.isnan(value)
        case Call(name, arguments):
            values = [reference(argument, row) for argument in arguments]
            return None if None in values else _call(name, values)
    raise AssertionError(expression)


def compare(operator: ComparisonOperator, left: Any, right: Any) -> bool | None:
    """A comparison in Spark's order: NaN is the greatest and equal to itself, strings go by UTF-8."""
    if operator == ComparisonOperator.EQ_NULL_SAFE:
        if left is None or right is None:
            return left is None and right is None
        operator = ComparisonOperator.EQ
    if left is None or right is None:
        return None
    a, b = _key(left, right), _key(right, left)
    return {
        ComparisonOperator.EQ: a == b,
        ComparisonOperator.NE: a != b,
        ComparisonOperator.LT: a < b,
        ComparisonOperator.LE: a <= b,
        ComparisonOperator.GT: a > b,
        ComparisonOperator.GE: a >= b,
    }[operator]


def sort_key(value: Any) -> Any:
    """What values of one type sort by."""
    return _key(value, value)


def _key(value: Any, other: Any) -> Any:
    if isinstance(value, float) or (isinstance(other, float) and isinstance(value, int | Decimal)):
        # Beside a float every number is one.
        number = float(value)
        return (1, 0.0) if math.isnan(number) else (0, number)
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dt.date) and isinstance(other, dt.date):
        return _instant(value)
    return value


def _instant(value: dt.date) -> dt.datetime:
    if not isinstance(value, dt.datetime):
        return dt.datetime(value.year, value.month, value.day)
    return value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)


def _arithmetic(operator: ArithmeticOperator, a: Any, b: Any) -> Any:
    if a is None or b is None:
        return None
    if isinstance(a, float) or isinstance(b, float):
        a, b = float(a), float(b)
    with localcontext(prec=90):
        match operator:
            case ArithmeticOperator.ADD:
                result = a + b
            case ArithmeticOperator.SUBTRACT:
                result = a - b
            case ArithmeticOperator.MULTIPLY:
                result = a * b
            case ArithmeticOperator.MODULO:
                result = (abs(a) % abs(b)) * (1 if a >= 0 else -1)
            case _:
                raise AssertionError(operator)
    if isinstance(result, int) and not -(2**63) <= result < 2**63:
        raise OverflowError(result)
    return result


def _cast(value: Any, target: Any) -> Any:
    if value is None:
        return None
    if target == DATE:
        return _instant(value).date()
    if target == TIMESTAMP:
        return _instant(value).replace(tzinfo=dt.UTC)
    if target == TIMESTAMP_NTZ:
        return _instant(value)
    if target == DOUBLE:
        return float(value)
    if isinstance(target, DecimalType):
        with localcontext(prec=90):
            return Decimal(value).quantize(Decimal(1).scaleb(-target.scale), rounding=ROUND_HALF_UP)
    if target != FLOAT and isinstance(value, int | float | Decimal):
        return math.trunc(value)
    raise AssertionError(target)


def _call(name: str, values: list[Any]) -> Any:
    match name, values:
        case (("substring" | "left"), [text, *numbers]):
            start, length = numbers if name == "substring" else (1, *numbers)
            return text[max(start - 1, 0) :][: max(length, 0)]
        case "startswith", [text, prefix]:
            return text.startswith(prefix)
        case "endswith", [text, suffix]:
            return text.endswith(suffix)
        case "contains", [text, part]:
            return part in text
        case "length", [text]:
            return len(text)
        case "concat", texts:
            return "".join(texts)
        case "date_trunc", [unit, value]:
            return _truncated(_instant(value), unit).replace(tzinfo=dt.UTC)
        case "trunc", [value, unit]:
            return _truncated(_instant(value), unit).date()
        case "date_format", [value, pattern]:
            return re.sub("|".join(_LETTERS), lambda m: _LETTERS[m[0]].format(_instant(value)), pattern)
        case (("date_add" | "date_sub"), [value, days]):
            return _instant(value).date() + (1 if name == "date_add" else -1) * dt.timedelta(days=days)
        case "quarter", [value]:
            return (value.month + 2) // 3
        case "dayofyear", [value]:
            return _instant(value).timetuple().tm_yday
        case "weekday", [value]:
            return value.weekday()
        case _, [value]:
            return getattr(_utc(value), name)
    raise AssertionError(name)


def _utc(value: Any) -> Any:
    return _instant(value) if isinstance(value, dt.datetime) else value


def _truncated(value: dt.datetime, unit: str) -> dt.datetime:
    unit = unit.upper()
    day = value.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "YEAR" | "YYYY":
            return day.replace(month=1, day=1)
        case "QUARTER":
            return day.replace(month=(value.month - 1) // 3 * 3 + 1, day=1)
        case "MONTH" | "MM":
            return day.replace(day=1)
        case "WEEK":
            return day - dt.timedelta(days=value.weekday())
        case "DAY":
            return day
        case "HOUR":
            return value.replace(minute=0, second=0, microsecond=0)
        case "MINUTE":
            return value.replace(second=0, microsecond=0)
    raise AssertionError(unit)


def _regex(pattern: str) -> str:
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    return "".join({"%": ".*", "_": "."}.get(part) or re.escape(part[-1]) for part in parts)
