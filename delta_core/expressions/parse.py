"""The parser: from Spark SQL to an expression.

It accepts only the supported subset: one condition over the table's columns, without subqueries,
parameters, or functions outside of the allow-list. The SQL is user input and is never passed on unparsed.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn, cast

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

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
from delta_core.expressions.columns import children
from delta_core.expressions.intervals import move
from delta_core.expressions.literals import INTEGRAL_RANGES, convert_literal
from delta_core.expressions.present_time import with_present
from delta_core.expressions.sql_functions import (
    CAST_NAMES,
    EXTRACTED_PARTS,
    FUNCTION_ALIASES,
    PlainCalls,
)
from delta_core.expressions.sql_types import data_type_of
from delta_core.expressions.typing import resolve, resolve_predicate
from delta_core.expressions.unsupported_sql import excerpt, fail, reason, refuse, refuse_named
from delta_core.schema.types import (
    DATE,
    DOUBLE,
    FLOAT,
    LONG,
    DecimalType,
    StructType,
)

MAX_STRING_LENGTH = 1 << 20

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

# Other functions are found by their name; these have a syntax of their own.
_CALLS: dict[type[exp.Expression], str] = {
    exp.Trim: "trim",
    exp.Substring: "substring",
    exp.Floor: "floor",
    exp.Ceil: "ceil",
}

# Arguments that sqlglot sets on nodes and that have no meaning here.
_HARMLESS = frozenset({"safe", "coalesce", "typed", "_type", "quoted"})


def parse_predicate(text: str, schema: StructType) -> Expression:
    """A condition in Spark SQL, checked against the schema, with typed constants.

    Timestamps without a zone are in UTC. Names match without regard to case.

    Raises:
        ExpressionError: not a single condition, or not supported; the message shows the part and the fix.
    """
    return resolve_predicate(parse(text), schema)


def parse_value(text: str, schema: StructType) -> Expression:
    """An expression of any type in Spark SQL, checked as in `parse_predicate`.

    Raises:
        ExpressionError: see `parse_predicate`.
    """
    return resolve(parse(text), schema)


def parse(text: str, *, now: dt.datetime | None = None) -> Expression:
    """The expression as a tree, not yet checked against a schema.

    Args:
        text: the expression.
        now: the present time (in UTC) where functions of the present time are allowed; None refuses them.

    Raises:
        ExpressionError: see `parse_predicate`.
    """
    if not isinstance(text, str):
        fail(
            f"{text!r} is not an expression.",
            f"It is of type {type(text).__name__}.",
            "Write the expression as Spark SQL.",
        )
    if len(text) > MAX_STRING_LENGTH:
        fail(
            "The expression is too long.",
            f"It has {len(text)} characters, and the limit is {MAX_STRING_LENGTH}.",
            "Shorten the expression.",
        )
    try:
        check_nesting(text)
        statements = sqlglot.parse(text, dialect=PlainCalls)
        if not any(statement is not None for statement in statements):
            fail(
                "The condition is empty.",
                "It contains only blanks and comments, or nothing.",
                "Write a condition such as x > 1, or pass no condition for all rows.",
            )
        if len(statements) != 1 or statements[0] is None:
            fail(
                f"{excerpt(text)} is not a single condition.",
                f"It contains {len([s for s in statements if s is not None])} statements.",
                "Write one condition, without semicolons.",
            )
        tree = cast(exp.Expression, statements[0])
        expression = _convert(tree if now is None else with_present(tree, now))
        if levels(expression) > MAX_LEVELS:
            raise RecursionError
        return expression
    except UnicodeEncodeError as error:
        fail(
            f"{excerpt(text)} contains an incomplete Unicode character.",
            str(error),
            "Write the complete character, or remove it.",
        )
    except SqlglotError as error:
        fail(
            f"{excerpt(text)} is not valid Spark SQL.",
            reason(error),
            "Correct the syntax; write strings in single quotes, and names in backticks.",
        )
    except RecursionError:
        fail(
            "The expression is nested too deeply.",
            f"The limits are {MAX_NESTING} nested parentheses and {MAX_LEVELS} consecutive operators.",
            "Use IN lists, fewer parentheses or shorter sums.",
        )


MAX_NESTING = 64
"""The maximum number of nested parentheses, or of consecutive signs."""

MAX_LEVELS = 200
"""The maximum number of nested operators."""


def check_nesting(text: str) -> None:
    """Raise RecursionError for deep nesting, before the recursive parser reads the expression."""
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


def levels(expression: Expression) -> int:
    """The depth of the tree, which is the recursion depth of its evaluation. Raises UnicodeEncodeError."""
    levels, row = 0, [expression]
    while row:
        levels += 1
        for one in row:
            string = one.pattern if isinstance(one, Like) else getattr(one, "value", None)
            if isinstance(string, str):
                string.encode()
        row = [child for one in row for child in children(one)]
    return levels


_LONGS = range(-INTEGRAL_RANGES[LONG], INTEGRAL_RANGES[LONG])


def parse_number(text: str) -> int | float | Decimal:
    """The number that a literal represents; integers beyond 64 bits become decimals, as in Spark.

    Raises:
        ExpressionError: the literal is not a number.
    """
    try:
        if "e" in text.lower():
            return float(text)
        return int(text) if "." not in text and int(text) in _LONGS else Decimal(text)
    except (ValueError, InvalidOperation):
        fail(
            f"{text} is not a number.",
            "A number has digits, at most one point and an exponent.",
            "Correct the number.",
        )


def negated(literal: Literal) -> Literal | None:
    """The number with the opposite sign; None when the literal is not a number."""
    value = literal.value
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    if isinstance(value, Decimal):
        return Literal(value.copy_negate())  # `-value` rounds to 28 digits
    return Literal(parse_number(str(-value)) if isinstance(value, int) else -value)


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
    refuse(node)


def _flatten(node: exp.Expression, kind: type[exp.Expression]) -> list[exp.Expression]:
    """The operands of a chain of one connective; iterative, since chains of thousands are left-deep."""
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
        refuse(node)
    names = [_identifier(part) for part in current.parts]
    return Column((*names, *reversed(parts)))


def _identifier(node: Any) -> str:
    if not isinstance(node, exp.Identifier):
        refuse(node)
    return str(node.this)


def _literal(node: exp.Expression) -> Expression:
    text = str(node.this)
    return Literal(text) if node.is_string else Literal(parse_number(text))


def _neg(node: exp.Expression) -> Expression:
    # Convert the number with its sign: the lowest integer has no positive counterpart.
    if isinstance(node.this, exp.Literal) and not node.this.is_string:
        return Literal(parse_number(f"-{node.this.this}"))
    operand = _convert(node.this)
    number = negated(operand) if isinstance(operand, Literal) else None
    if number is not None:
        return number
    return Arithmetic(ArithmeticOperator.SUBTRACT, Literal(0), operand)


def _is(node: exp.Expression) -> Expression:
    operand = _convert(node.this)
    match node.expression:
        case exp.Null():
            return IsNull(operand)
        case exp.Boolean() as boolean:
            return Comparison(ComparisonOperator.EQ_NULL_SAFE, operand, Literal(bool(boolean.this)))
    refuse(node)


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
    if isinstance(pattern, exp.Any | exp.All):
        inner = pattern.this
        patterns = inner.expressions if isinstance(inner, exp.Tuple) else [inner.this]
        likes = tuple(_like(exp.Like(this=node.this, expression=one)) for one in patterns)
        combined: Expression = Or(likes) if isinstance(pattern, exp.Any) else And(likes)
        return combined if len(likes) > 1 else likes[0]
    if not (isinstance(pattern, exp.Literal) and pattern.is_string):
        fail(
            "LIKE needs a constant pattern.",
            f"{excerpt(pattern.sql('spark'))} is not a string constant.",
            "Write the pattern as a string.",
        )
    operand, string = _convert(node.this), str(pattern.this)
    if isinstance(node, exp.ILike):
        operand, string = Call("lower", (operand,)), string.lower()
    like: Expression = Like(operand, string)
    return Not(like) if node.args.get("negate") else like


def _escape(node: exp.Expression) -> Expression:
    inner, escape = _convert(node.this), node.expression
    negated = isinstance(inner, Not)
    like = inner.operand if isinstance(inner, Not) else inner
    if not (isinstance(like, Like) and isinstance(escape, exp.Literal) and len(str(escape.this)) == 1):
        refuse(node)
    mark = str(escape.this)
    pattern = like.pattern
    if mark != "\\":
        # The tree's patterns escape with a backslash only, so first turn backslashes into literals.
        pattern = pattern.replace("\\", "\\\\").replace(mark + mark, "\0").replace(mark, "\\")
        pattern = pattern.replace("\0", mark)
    result = Like(like.operand, pattern)
    return Not(result) if negated else result


def _cast(node: exp.Expression) -> Expression:
    if node.args.get("safe"):
        fail(
            "TRY_CAST is not supported in predicates.",
            "TRY_CAST returns null for values that cannot be cast, where CAST fails.",
            "Use CAST, or filter out such rows first.",
        )
    _only(node, "this", "to")
    target = data_type_of(node.args["to"])
    operand = _convert(node.this)
    if isinstance(operand, Literal) and isinstance(operand.value, int | float | Decimal):
        # Numbers with a suffix (5L, 1.5D) are parsed as casts of constants.
        number = int(operand.value) if isinstance(operand.value, bool) else operand.value
        if target in (FLOAT, DOUBLE):
            return Literal(float(number), target)
        if isinstance(number, int) and target in INTEGRAL_RANGES:
            return Literal(number, target)
        if isinstance(number, int) and isinstance(target, DecimalType):
            return convert_literal(Literal(str(number)), target, f"CAST(... AS {target})")
    if isinstance(operand, Literal) and (operand.value is None or isinstance(operand.value, str)):
        # Typed constants, such as DATE '2013-01-31', are converted once, here.
        return convert_literal(operand, target, f"CAST(... AS {target})")
    return Cast(operand, target)


def _call(node: exp.Expression, name: str) -> Expression:
    arguments: list[exp.Expression] = []
    for key, value in node.args.items():
        if key in _HARMLESS or value in (None, [], False):
            continue
        if key not in ("this", "expression", "expressions", "start", "length"):
            refuse(node)
        arguments.extend(value if isinstance(value, list) else [value])
    return Call(name, tuple(_convert(argument) for argument in arguments))


def _side_by_side(_: exp.Expression) -> NoReturn:
    # Calls of concat stay calls (`PlainCalls`), so only adjacent strings become this node.
    fail(
        "Two string constants are adjacent.",
        "'it''s' has different meanings in different versions of Spark.",
        r"Escape the quote with a backslash: 'it\'s'.",
    )


def _coalesce(node: exp.Expression) -> Expression:
    return Call("coalesce", tuple(_convert(argument) for argument in (node.this, *node.expressions)))


def _anonymous(node: exp.Expression) -> Expression:
    refuse_named(cast(exp.Anonymous, node))
    name = str(node.this).lower()
    arguments = tuple(_convert(argument) for argument in node.expressions)
    match name, arguments:
        case "isnull", (operand,):
            return IsNull(operand)
        case "isnotnull", (operand,):
            return Not(IsNull(operand))
        case "equal_null", (left, right):
            return Comparison(ComparisonOperator.EQ_NULL_SAFE, left, right)
        case "date_part", (Literal(str() as part), operand):
            return _part_of(part, operand)
        case "nullif", (left, right):
            return Call("case", (Comparison(ComparisonOperator.EQ, left, right), Literal(None), left))
        case "nvl2", (operand, present, absent):
            return Call("case", (IsNull(operand), absent, present))
        case _, (operand,) if name in CAST_NAMES:
            return Cast(operand, CAST_NAMES[name])
    return Call(FUNCTION_ALIASES.get(name, name), arguments)


def _case(node: exp.Expression) -> Expression:
    _only(node, "this", "ifs", "default")
    subject = node.this and _convert(node.this)
    arguments: list[Expression] = []
    for branch in node.args["ifs"]:
        condition = _convert(branch.this)
        if subject is not None:
            condition = Comparison(ComparisonOperator.EQ, subject, condition)
        arguments += (condition, _convert(branch.args["true"]))
    default = node.args.get("default")
    return Call("case", (*arguments, Literal(None) if default is None else _convert(default)))


def _if(node: exp.Expression) -> Expression:
    _only(node, "this", "true", "false")
    otherwise = node.args.get("false")
    if otherwise is None:
        refuse(node)
    return Call("case", (_convert(node.this), _convert(node.args["true"]), _convert(otherwise)))


def _extract(node: exp.Expression) -> Expression:
    _only(node, "this", "expression")
    return _part_of(str(node.this.this), _convert(node.expression))


def _part_of(part: str, operand: Expression) -> Expression:
    name = EXTRACTED_PARTS.get(part.upper())
    if name is None:
        fail(
            f"{part} cannot be extracted from a date or timestamp.",
            f"The supported parts are {', '.join(sorted(EXTRACTED_PARTS))}.",
            "Use a supported part.",
        )
    return Call(name, (operand,))


def _sum(node: exp.Expression) -> Expression:
    _only(node, "this", "expression")
    left, right = node.this, node.expression
    if isinstance(left, exp.Interval) and isinstance(node, exp.Add):
        left, right = right, left
    if isinstance(right, exp.Interval):
        return _moved(_convert(left), right, -1 if isinstance(node, exp.Sub) else 1)
    return Arithmetic(_ARITHMETIC[type(node)], _convert(left), _convert(right))


def _moved(start: Expression, interval: exp.Interval, sign: int) -> Expression:
    if not isinstance(start, Literal) or not isinstance(start.value, dt.date):
        fail(
            f"{excerpt(interval.sql('spark'))} is not added to a constant.",
            "An interval can only be added to or subtracted from a constant date or timestamp.",
            "Move the interval to the other side of the comparison, or use date_add(column, days).",
        )
    try:
        amount = interval.this
        if isinstance(amount, exp.Neg):
            amount, sign = amount.this, -sign
        if not isinstance(amount, exp.Literal):
            raise ValueError("not an integer")
        count = int(str(amount.this))
        moved = move(start.value, sign * count, str(interval.args["unit"].this).upper().removesuffix("S"))
    except (ValueError, OverflowError, AttributeError, KeyError):
        fail(
            f"The interval {excerpt(interval.sql('spark'))} is not supported.",
            "An interval is one integer of one unit, from microseconds to years, within the range of dates.",
            "Write a sum of several intervals for several units.",
        )
    return Literal(moved)


def _to_date(node: exp.Expression) -> Expression:
    _only(node, "this")
    return Cast(_convert(node.this), DATE)


def _hex(node: exp.Expression) -> Expression:
    try:
        return Literal(bytes.fromhex(str(node.this)))
    except ValueError:
        fail(
            f"X'{node.this}' is not hexadecimal.",
            "It must contain pairs of the digits 0-9 and A-F.",
            "Correct the digits.",
        )


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
    exp.ILike: _like,
    exp.Add: _sum,
    exp.Sub: _sum,
    exp.Case: _case,
    exp.If: _if,
    exp.Extract: _extract,
    exp.Escape: _escape,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Coalesce: _coalesce,
    exp.Concat: _side_by_side,
    exp.DPipe: _pipes,
    exp.NullSafeNEQ: _not_distinct,
    exp.TsOrDsToDate: _to_date,
    exp.Anonymous: _anonymous,
}


def _only(node: exp.Expression, *keys: str) -> None:
    for key, value in node.args.items():
        if key not in keys and key not in _HARMLESS and value not in (None, [], False):
            refuse(node)
