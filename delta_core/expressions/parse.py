"""Spark SQL text to an expression.

Only what is listed here gets through: one condition over the table's columns, without subqueries,
parameters, or functions beyond the allow-list. The text is data of the user's, never passed on.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn, cast

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from delta_core.errors import ExpressionError, SchemaError
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
from delta_core.expressions.literals import convert_literal
from delta_core.expressions.typing import resolve, resolve_predicate
from delta_core.schema.json import type_from_name
from delta_core.schema.types import (
    BINARY,
    BOOLEAN,
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
    StructType,
)

MAX_TEXT_LENGTH = 1 << 20
MAX_NESTING = 64

_COMPARISONS: dict[type[exp.Expression], ComparisonOperator] = {
    exp.EQ: ComparisonOperator.EQ,
    exp.NEQ: ComparisonOperator.NE,
    exp.LT: ComparisonOperator.LT,
    exp.LTE: ComparisonOperator.LE,
    exp.GT: ComparisonOperator.GT,
    exp.GTE: ComparisonOperator.GE,
    exp.NullSafeEQ: ComparisonOperator.EQ_NULL_SAFE,
}
_ARITHMETIC: dict[type[exp.Expression], ArithmeticOperator] = {
    exp.Add: ArithmeticOperator.ADD,
    exp.Sub: ArithmeticOperator.SUBTRACT,
    exp.Mul: ArithmeticOperator.MULTIPLY,
    exp.Div: ArithmeticOperator.DIVIDE,
    exp.Mod: ArithmeticOperator.MODULO,
}
_CALLS: dict[type[exp.Expression], str] = {
    exp.Lower: "lower",
    exp.Upper: "upper",
    exp.Trim: "trim",
    exp.Length: "length",
    exp.Substring: "substring",
    exp.StartsWith: "startswith",
    exp.EndsWith: "endswith",
    exp.Contains: "contains",
    exp.Abs: "abs",
    exp.IsNan: "isnan",
    exp.Year: "year",
    exp.Month: "month",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.Hour: "hour",
    exp.Minute: "minute",
    exp.Second: "second",
}
_TYPES: dict[exp.DType, DataType] = {
    exp.DType.TINYINT: BYTE,
    exp.DType.SMALLINT: SHORT,
    exp.DType.INT: INTEGER,
    exp.DType.BIGINT: LONG,
    exp.DType.FLOAT: FLOAT,
    exp.DType.DOUBLE: DOUBLE,
    exp.DType.BOOLEAN: BOOLEAN,
    exp.DType.TEXT: STRING,
    exp.DType.VARCHAR: STRING,
    exp.DType.BINARY: BINARY,
    exp.DType.DATE: DATE,
    exp.DType.TIMESTAMP: TIMESTAMP,
    exp.DType.TIMESTAMPTZ: TIMESTAMP,
    exp.DType.TIMESTAMPLTZ: TIMESTAMP,
    exp.DType.TIMESTAMPNTZ: TIMESTAMP_NTZ,
}
# Marks that sqlglot leaves on nodes and that carry no meaning here.
_HARMLESS = frozenset({"safe", "coalesce", "typed", "_type", "quoted"})


def parse_predicate(text: str, schema: StructType) -> Expression:
    """A condition in Spark SQL, checked against the schema, with typed constants.

    Timestamps without a zone are in UTC; names match without case.

    Raises:
        ExpressionError: not one condition, or outside of what is allowed; says what and how to mend it.
    """
    return resolve_predicate(parse(text), schema)


def parse_value(text: str, schema: StructType) -> Expression:
    """An expression of any type in Spark SQL, checked as in `parse_predicate`.

    Raises:
        ExpressionError: see `parse_predicate`.
    """
    return resolve(parse(text), schema)


def parse(text: str) -> Expression:
    """The expression's tree, not yet checked against a schema.

    Raises:
        ExpressionError: see `parse_predicate`.
    """
    if len(text) > MAX_TEXT_LENGTH:
        _fail("The expression is too long", f"It has {len(text)} characters", "Shorten it")
    try:
        _check_nesting(text)
        statements = sqlglot.parse(text, dialect="spark")
        if len(statements) != 1 or statements[0] is None:
            _fail(
                f"{_shown(text)} is not one condition",
                f"It holds {len([s for s in statements if s is not None])} statements",
                "Write a single condition, without semicolons",
            )
        return _convert(cast(exp.Expression, statements[0]))
    except SqlglotError as error:
        _fail(
            f"{_shown(text)} is not valid Spark SQL",
            _reason(error),
            "Correct the syntax; strings go in single quotes, names in backticks",
        )
    except RecursionError:
        _fail(
            "The expression is nested too deeply",
            f"At most {MAX_NESTING} levels are read",
            "Use IN lists or fewer parentheses",
        )


def _check_nesting(text: str) -> None:
    """Refuse deep nesting before the recursive parser sees it."""
    depth = prefix = 0
    opening = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE)
    closing = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END)
    prefixes = (TokenType.NOT, TokenType.DASH, TokenType.TILDE, TokenType.PLUS)
    for token in sqlglot.tokenize(text, read="spark"):
        if token.token_type in opening:
            depth += 1
        elif token.token_type in closing:
            depth -= 1
        prefix = prefix + 1 if token.token_type in prefixes else 0
        if depth > MAX_NESTING or prefix > MAX_NESTING:
            raise RecursionError


def _convert(node: exp.Expression) -> Expression:
    kind = type(node)
    if isinstance(node, exp.And | exp.Or):
        terms = tuple(_convert(term) for term in _flatten(node, kind))
        return And(terms) if isinstance(node, exp.And) else Or(terms)
    converter = _CONVERTERS.get(kind)
    if converter is not None:
        return converter(node)
    if kind in _COMPARISONS:
        _only(node, "this", "expression")
        return Comparison(_COMPARISONS[kind], _convert(node.this), _convert(node.expression))
    if kind in _ARITHMETIC:
        _only(node, "this", "expression")
        return Arithmetic(_ARITHMETIC[kind], _convert(node.this), _convert(node.expression))
    if kind in _CALLS:
        return _call(node, _CALLS[kind])
    _refuse(node)


def _flatten(node: exp.Expression, kind: type[exp.Expression]) -> list[exp.Expression]:
    """The operands of a chain of one connective; chains of thousands are left-deep, so no recursion."""
    operands: list[exp.Expression] = []
    pending = [node]
    while pending:
        current = pending.pop()
        if type(current) is kind:
            _only(current, "this", "expression")
            pending.extend((current.expression, current.this))
        else:
            operands.append(current)
    return operands


def _column(node: exp.Expression) -> Expression:
    parts: list[str] = []
    current: Any = node
    while isinstance(current, exp.Dot):
        parts.append(_identifier(current.expression))
        current = current.this
    if not isinstance(current, exp.Column):
        _refuse(node)
    names = [_identifier(part) for part in current.parts]
    return Column((*names, *reversed(parts)))


def _identifier(node: Any) -> str:
    if not isinstance(node, exp.Identifier):
        _refuse(node)
    return str(node.this)


def _literal(node: exp.Expression) -> Expression:
    text = str(node.this)
    return Literal(text) if node.is_string else Literal(_number(text))


def _number(text: str) -> int | float | Decimal:
    try:
        if "e" in text.lower():
            return float(text)
        # Integers beyond 64 bits are decimals, as in Spark.
        return Decimal(text) if "." in text or abs(int(text)) >= 2**63 else int(text)
    except (ValueError, InvalidOperation):
        _fail(f"{text} is not a number", "Digits, one point and an exponent are known", "Correct it")


def _neg(node: exp.Expression) -> Expression:
    operand = _convert(node.this)
    if isinstance(operand, Literal) and isinstance(operand.value, int | float | Decimal):
        return Literal(-operand.value)
    return Arithmetic(ArithmeticOperator.SUBTRACT, Literal(0), operand)


def _is(node: exp.Expression) -> Expression:
    operand = _convert(node.this)
    match node.expression:
        case exp.Null():
            return IsNull(operand)
        case exp.Boolean() as boolean:
            return Comparison(ComparisonOperator.EQ_NULL_SAFE, operand, Literal(bool(boolean.this)))
    _refuse(node)


def _between(node: exp.Expression) -> Expression:
    _only(node, "this", "low", "high")
    operand = _convert(node.this)
    return And(
        (
            Comparison(ComparisonOperator.GE, operand, _convert(node.args["low"])),
            Comparison(ComparisonOperator.LE, operand, _convert(node.args["high"])),
        )
    )


def _in(node: exp.Expression) -> Expression:
    _only(node, "this", "expressions")
    operand = _convert(node.this)
    values = [_convert(value) for value in node.expressions]
    if all(isinstance(value, Literal) for value in values):
        return In(operand, tuple(value for value in values if isinstance(value, Literal)))
    return Or(tuple(Comparison(ComparisonOperator.EQ, operand, value) for value in values))


def _like(node: exp.Expression) -> Expression:
    _only(node, "this", "expression", "negate")
    pattern = node.expression
    if not (isinstance(pattern, exp.Literal) and pattern.is_string):
        _fail(
            "LIKE needs a constant pattern",
            f"{_shown(pattern.sql('spark'))} is none",
            "Write the pattern as a string",
        )
    like: Expression = Like(_convert(node.this), str(pattern.this))
    return Not(like) if node.args.get("negate") else like


def _escape(node: exp.Expression) -> Expression:
    inner, escape = _convert(node.this), node.expression
    negated = isinstance(inner, Not)
    like = inner.operand if isinstance(inner, Not) else inner
    if not (isinstance(like, Like) and isinstance(escape, exp.Literal) and len(str(escape.this)) == 1):
        _refuse(node)
    mark = str(escape.this)
    pattern = like.pattern
    if mark != "\\":
        # Our patterns escape with a backslash only, so those in the text become literal first.
        pattern = pattern.replace("\\", "\\\\").replace(mark + mark, "\0").replace(mark, "\\")
        pattern = pattern.replace("\0", mark)
    result = Like(like.operand, pattern)
    return Not(result) if negated else result


def _cast(node: exp.Expression) -> Expression:
    if node.args.get("safe"):
        _fail(
            "TRY_CAST is not supported in predicates",
            "It turns what cannot be cast into null, where CAST fails",
            "Use CAST, or filter such rows out first",
        )
    _only(node, "this", "to")
    target = _data_type(node.args["to"])
    operand = _convert(node.this)
    if isinstance(operand, Literal) and isinstance(operand.value, int | float | Decimal):
        # Suffixed numbers (5L, 1.5D) arrive as casts of constants.
        if target in (FLOAT, DOUBLE):
            return Literal(float(operand.value), target)
        if isinstance(operand.value, int) and target in (BYTE, SHORT, INTEGER, LONG):
            return Literal(operand.value, target)
        if isinstance(operand.value, int) and isinstance(target, DecimalType):
            return convert_literal(Literal(str(operand.value)), target, f"CAST(... AS {target})")
    if isinstance(operand, Literal) and (operand.value is None or isinstance(operand.value, str)):
        # Typed constants, such as DATE '2013-01-31': converted once, here.
        return convert_literal(operand, target, f"CAST(... AS {target})")
    return Cast(operand, target)


def _data_type(node: Any) -> DataType:
    if isinstance(node, exp.DataType):
        known = _TYPES.get(node.this)
        if known is not None:
            return known
        if node.this == exp.DType.DECIMAL:
            parameters = [str(parameter.this) for parameter in node.expressions]
            name = {0: "decimal(10,0)", 1: f"decimal({parameters[0]},0)" if parameters else ""}.get(
                len(parameters), f"decimal({','.join(parameters)})"
            )
            try:
                return type_from_name(name)
            except SchemaError as error:
                _fail(f"{name} is not a type", error.cause, "Use a precision of at most 38")
    _fail(f"The type {node} is not known here", "Only primitive types can be cast to", "Cast to another type")


def _call(node: exp.Expression, name: str) -> Expression:
    arguments: list[exp.Expression] = []
    for key, value in node.args.items():
        if key in _HARMLESS or value in (None, [], False):
            continue
        if key not in ("this", "expression", "expressions", "start", "length"):
            _refuse(node)
        arguments.extend(value if isinstance(value, list) else [value])
    converted = tuple(
        _convert(argument.this if isinstance(argument, exp.TsOrDsToDate) else argument)
        if name in ("year", "month", "day")
        else _convert(argument)
        for argument in arguments
    )
    return Call(name, converted)


def _concat(node: exp.Expression) -> Expression:
    if not node.args.get("safe"):
        _fail(
            "Two string constants stand side by side",
            "'it''s' means different strings in different versions of Spark",
            r"Escape the quote with a backslash: 'it\'s'",
        )
    return Call("concat", tuple(_convert(argument) for argument in node.expressions))


def _coalesce(node: exp.Expression) -> Expression:
    return Call("coalesce", tuple(_convert(argument) for argument in (node.this, *node.expressions)))


def _anonymous(node: exp.Expression) -> Expression:
    name = str(node.this).lower()
    arguments = tuple(_convert(argument) for argument in node.expressions)
    if name in ("isnull", "isnotnull") and len(arguments) == 1:
        return IsNull(arguments[0]) if name == "isnull" else Not(IsNull(arguments[0]))
    return Call(name, arguments)


def _to_date(node: exp.Expression) -> Expression:
    _only(node, "this")
    return Cast(_convert(node.this), DATE)


def _hex(node: exp.Expression) -> Expression:
    try:
        return Literal(bytes.fromhex(str(node.this)))
    except ValueError:
        _fail(f"X'{node.this}' is not hexadecimal", "It needs pairs of 0-9 and A-F", "Correct it")


def _not_distinct(node: exp.Expression) -> Expression:
    return Not(Comparison(ComparisonOperator.EQ_NULL_SAFE, _convert(node.this), _convert(node.expression)))


def _pipes(node: exp.Expression) -> Expression:
    return Call("concat", (_convert(node.this), _convert(node.expression)))


_CONVERTERS: dict[type[exp.Expression], Callable[[Any], Expression]] = {
    exp.Column: _column,
    exp.Dot: _column,
    exp.Literal: _literal,
    exp.RawString: lambda node: Literal(str(node.this)),
    exp.HexString: _hex,
    exp.Boolean: lambda node: Literal(bool(node.this)),
    exp.Null: lambda _: Literal(None),
    exp.Paren: lambda node: _convert(node.this),
    exp.Not: lambda node: Not(_convert(node.this)),
    exp.Neg: _neg,
    exp.Is: _is,
    exp.Between: _between,
    exp.In: _in,
    exp.Like: _like,
    exp.Escape: _escape,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Coalesce: _coalesce,
    exp.Concat: _concat,
    exp.DPipe: _pipes,
    exp.NullSafeNEQ: _not_distinct,
    exp.TsOrDsToDate: _to_date,
    exp.Anonymous: _anonymous,
}


def _only(node: exp.Expression, *keys: str) -> None:
    for key, value in node.args.items():
        if key not in keys and key not in _HARMLESS and value not in (None, [], False):
            _refuse(node)


def _refuse(node: Any) -> NoReturn:
    shown = node.sql("spark") if isinstance(node, exp.Expression) else str(node)
    _fail(
        f"{_shown(shown)} is not allowed in an expression",
        f"{type(node).__name__} is not among what is understood: columns, constants, comparisons, AND, OR, "
        "NOT, IN, LIKE, BETWEEN, IS NULL, arithmetic, CAST and a few functions",
        "Rewrite the condition with these",
    )


def _reason(error: SqlglotError) -> str:
    details = getattr(error, "errors", None)
    if details:
        first = details[0]
        description = re.sub(r"<class '[\w.]*?(\w+)'>", r"\1", str(first.get("description", "syntax error")))
        return f"{description} at column {first.get('col', '?')}"
    return str(error).split("\n", 1)[0][:200] or "syntax error"


def _shown(text: str) -> str:
    return text if len(text) <= 120 else f"{text[:117]}..."


def _fail(problem: str, cause: str, fix: str) -> NoReturn:
    raise ExpressionError(problem, cause=cause, fix=fix)
