"""Resolution of names and types: every column must exist, and the types of operands must fit.

Follows Spark SQL in ANSI mode, with one difference: string columns are never converted implicitly.
Constants are converted to the type of the column that they are compared with.
"""

from __future__ import annotations

from typing import NoReturn

from delta_core.errors import ExpressionError
from delta_core.expressions.ast import (
    And,
    Arithmetic,
    ArithmeticOperator,
    Call,
    Cast,
    Column,
    Comparison,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
)
from delta_core.expressions.columns import children, walk
from delta_core.expressions.conditional import CASE, GREATEST, LEAST, resolve_case, resolve_extreme
from delta_core.expressions.functions import FUNCTIONS
from delta_core.expressions.literals import (
    DATETIMES,
    FLOATING,
    INTEGRAL_RANGES,
    convert_literal,
    is_numeric,
    literal_type,
)
from delta_core.expressions.render import to_spark_sql
from delta_core.schema.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    STRING,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructType,
)

_DAYS_LATER = {ArithmeticOperator.ADD: "date_add", ArithmeticOperator.SUBTRACT: "date_sub"}
_INTEGRAL_ORDER = list(INTEGRAL_RANGES)
_NESTED = (StructType, ArrayType, MapType)


def resolve(expression: Expression, schema: StructType) -> Expression:
    """The expression with canonical column names and typed constants.

    Raises:
        ExpressionError: an unknown column or function, or types that cannot be combined.
    """
    return _resolve(expression, schema)[0]


def resolve_predicate(expression: Expression, schema: StructType) -> Expression:
    """`resolve`, for an expression that must be boolean (or null).

    Raises:
        ExpressionError: as `resolve`; or the expression is not boolean; or it refers to no column but
            contains a string equal to a column name.
    """
    _require_expression(expression)
    refuse_quoted_names(expression, schema)
    resolved, data_type = _resolve(expression, schema)
    if data_type not in (BOOLEAN, VOID):
        _fail(
            f"{to_spark_sql(expression)} is not a condition.",
            f"It has type {data_type}.",
            "Compare it with a value, so that the result is boolean.",
        )
    return resolved


def type_of(expression: Expression, schema: StructType) -> DataType:
    """The type of an expression.

    Raises:
        ExpressionError: as `resolve`.
    """
    return _resolve(expression, schema)[1]


def find_column(path: tuple[str, ...], schema: StructType) -> tuple[tuple[str, ...], DataType]:
    """The canonical path of a column and its type. Names match without regard to case.

    Raises:
        ExpressionError: the column does not exist.
    """
    names: list[str] = []
    current: DataType = schema
    for part in path:
        if not isinstance(current, StructType):
            _fail(
                f"Column {'.'.join(path)} does not exist.",
                f"{'.'.join(names)} has type {current}, which has no fields.",
                "Name an existing column.",
            )
        field = current.find(part)
        if field is None:
            known = ", ".join(current.names[:50])
            where = f"the fields of {'.'.join(names)}" if names else "the columns"
            _fail(
                f"Column {'.'.join(path)} does not exist.",
                f"Among {where} ({known}) there is no {part}.",
                "Use an existing name; quote names that contain dots or spaces with backticks.",
            )
        names.append(field.name)
        current = field.data_type
    return tuple(names), current


def quoted_name(condition: Expression, schema: StructType) -> str | None:
    """A string equal to a column name, in a part of the condition that refers to no column; else None.

    Read as Spark SQL, a condition such as `"Status" <> 'done'` is true for every row or for none, so it is a
    mistake. The deltalake package writes CHECK constraints with column names in double quotes, whatever
    quotes their author used, and accepts predicates in this form.
    """
    pending = [condition]
    while pending:
        part = pending.pop()
        if isinstance(part, And | Or | Not):
            pending.extend(reversed(children(part)))
            continue
        nodes = list(walk(part))
        if any(isinstance(node, Column) for node in nodes):
            continue
        for node in nodes:
            string = node.value if isinstance(node, Literal) else None
            if isinstance(string, str) and schema.find(string) is not None:
                return string
    return None


def refuse_quoted_names(condition: Expression, schema: StructType) -> None:
    """Refuse a condition that compares a string in place of a column, so that it matches all rows or none.

    Raises:
        ExpressionError: the message shows how to write the column's name.
    """
    name = quoted_name(condition, schema)
    if name is not None:
        raise ExpressionError(
            f"The condition compares the string '{name}', and refers to no column.",
            cause=f"The table has a column {name}, but in Spark SQL double quotes enclose strings.",
            fix=f"Write the column's name in backticks, or without quotes: `{name}`.",
        )


def _require_expression(value: object) -> None:
    if not isinstance(value, Expression):
        _fail(
            f"{value!r} is not a condition.",
            f"It is of type {type(value).__name__}, neither a string nor an expression.",
            "Write it as Spark SQL, such as \"month = 1 AND carrier = 'UA'\".",
        )


def _resolve(expression: Expression, schema: StructType) -> tuple[Expression, DataType]:
    match expression:
        case Column(path):
            names, data_type = find_column(path, schema)
            return Column(names), data_type
        case Literal():
            data_type = literal_type(expression)
            limit = INTEGRAL_RANGES.get(data_type)
            if (
                limit is not None
                and isinstance(expression.value, int)
                and expression.value not in range(-limit, limit)
            ):
                _fail(
                    f"{expression.value} is not a value of type {data_type}.",
                    f"The range of the type is {-limit} to {limit - 1}.",
                    "Use another number, or a wider type.",
                )
            return Literal(expression.value, data_type), data_type
        case Comparison():
            left, right = _pair(expression, expression.left, expression.right, schema)
            return Comparison(expression.operator, left, right), BOOLEAN
        case And(terms):
            return And(tuple(_boolean(term, schema) for term in terms)), BOOLEAN
        case Or(terms):
            return Or(tuple(_boolean(term, schema) for term in terms)), BOOLEAN
        case Not(operand):
            return Not(_boolean(operand, schema)), BOOLEAN
        case IsNull(operand):
            return IsNull(_resolve(operand, schema)[0]), BOOLEAN
        case In():
            return _resolve_in(expression, schema), BOOLEAN
        case Like(operand, pattern):
            resolved, data_type = _resolve(operand, schema)
            if data_type not in (STRING, VOID):
                _fail(
                    f"LIKE does not apply to {to_spark_sql(operand)}.",
                    f"It has type {data_type}.",
                    "Use LIKE on strings, or CAST the operand AS STRING.",
                )
            return Like(resolved, pattern), BOOLEAN
        case Cast(operand, target):
            return _resolve_cast(operand, target, schema)
        case Arithmetic():
            return _resolve_arithmetic(expression, schema)
        case Call():
            return _resolve_call(expression, schema)


def _boolean(term: Expression, schema: StructType) -> Expression:
    resolved, data_type = _resolve(term, schema)
    if data_type not in (BOOLEAN, VOID):
        _fail(
            f"{to_spark_sql(term)} is used as a condition.",
            f"It has type {data_type}, not boolean.",
            "Compare it with a value.",
        )
    return resolved


def _pair(
    whole: Expression, left: Expression, right: Expression, schema: StructType
) -> tuple[Expression, Expression]:
    new_left, left_type = _resolve(left, schema)
    new_right, right_type = _resolve(right, schema)
    if isinstance(new_right, Literal) and not isinstance(new_left, Literal):
        new_right = convert_literal(new_right, left_type, to_spark_sql(left))
        right_type = literal_type(new_right)
    elif isinstance(new_left, Literal):
        new_left = convert_literal(new_left, right_type, to_spark_sql(right))
        left_type = literal_type(new_left)
    if not _comparable(left_type, right_type):
        _fail(
            f"{to_spark_sql(whole)} compares types that cannot be compared.",
            f"{to_spark_sql(left)} has type {left_type}, {to_spark_sql(right)} has type {right_type}.",
            "CAST one side to the type of the other.",
        )
    return new_left, new_right


def _comparable(left: DataType, right: DataType) -> bool:
    if isinstance(left, _NESTED) or isinstance(right, _NESTED) or VARIANT in (left, right):
        return False
    if left == right or VOID in (left, right):
        return True
    if is_numeric(left) and is_numeric(right):
        return True
    return left in DATETIMES and right in DATETIMES


def _resolve_in(expression: In, schema: StructType) -> In:
    if not expression.values:
        _fail("IN needs at least one value.", "The list is empty.", "List the values to search for.")
    operand, data_type = _resolve(expression.operand, schema)
    values = []
    for literal in expression.values:
        value = convert_literal(literal, data_type, to_spark_sql(expression.operand))
        if not _comparable(data_type, literal_type(value)):
            _fail(
                f"{to_spark_sql(literal)} in {to_spark_sql(expression)} does not have the column's type.",
                f"{to_spark_sql(expression.operand)} has type {data_type}, the value {literal_type(value)}.",
                "List values of the column's type.",
            )
        values.append(value)
    return In(operand, tuple(values))


def _resolve_cast(operand: Expression, target: DataType, schema: StructType) -> tuple[Expression, DataType]:
    resolved, source = _resolve(operand, schema)
    if isinstance(resolved, Literal) and (isinstance(resolved.value, str) or resolved.value is None):
        # A typed constant such as DATE '2013-01-31' is converted once, here.
        return convert_literal(resolved, target, f"CAST(... AS {target})"), target
    if not _castable(source, target):
        _fail(
            f"{to_spark_sql(operand)} cannot be cast to {target}.",
            f"It has type {source}.",
            "Cast between numbers, between dates and timestamps, or from strings.",
        )
    return Cast(resolved, target), target


def _castable(source: DataType, target: DataType) -> bool:
    if isinstance(source, _NESTED) or isinstance(target, _NESTED) or VARIANT in (source, target):
        return False
    if source in (target, VOID) or source == STRING:
        return True
    if target == STRING:
        return source in INTEGRAL_RANGES or source in (BOOLEAN, DATE) or isinstance(source, DecimalType)
    numbers = (*INTEGRAL_RANGES, *FLOATING, BOOLEAN)
    if is_numeric(source) or source == BOOLEAN:
        return target in numbers or isinstance(target, DecimalType)
    return source in DATETIMES and target in DATETIMES


def _resolve_arithmetic(expression: Arithmetic, schema: StructType) -> tuple[Expression, DataType]:
    left, left_type = _resolve(expression.left, schema)
    right, right_type = _resolve(expression.right, schema)
    operator = expression.operator
    days = _DAYS_LATER.get(operator)
    if days and DATE in (left_type, right_type):
        # A date plus or minus days; only an addition accepts its operands in either order.
        if right_type == DATE and operator == ArithmeticOperator.ADD:
            left, right, left_type, right_type = right, left, right_type, left_type
        if left_type == DATE and right_type in INTEGRAL_RANGES:
            return _resolve_call(Call(days, (left, right)), schema)
    for side, data_type in ((expression.left, left_type), (expression.right, right_type)):
        if not is_numeric(data_type) and data_type != VOID:
            _fail(
                f"{operator} does not apply to {to_spark_sql(side)}.",
                f"It has type {data_type}, which is not numeric.",
                "Use numbers, or CAST the operand to a number.",
            )
    decimals = [t for t in (left_type, right_type) if isinstance(t, DecimalType)]
    floating = [t for t in (left_type, right_type) if t in FLOATING]
    if decimals and not floating and operator in (ArithmeticOperator.DIVIDE, ArithmeticOperator.MODULO):
        _fail(
            f"{operator} is not supported on decimals.",
            f"{to_spark_sql(expression)} divides decimals.",
            "CAST both sides AS DOUBLE.",
        )
    return Arithmetic(operator, left, right), _arithmetic_type(operator, left_type, right_type)


def _arithmetic_type(operator: ArithmeticOperator, left: DataType, right: DataType) -> DataType:
    if left in FLOATING or right in FLOATING:
        return left if left == right and operator != ArithmeticOperator.DIVIDE else DOUBLE
    if isinstance(left, DecimalType) or isinstance(right, DecimalType):
        return DecimalType(38, max(t.scale for t in (left, right) if isinstance(t, DecimalType)))
    if operator == ArithmeticOperator.DIVIDE:
        return DOUBLE
    integral = [t for t in (left, right) if t in INTEGRAL_RANGES]
    return max(integral, key=_INTEGRAL_ORDER.index) if integral else INTEGER


def _resolve_call(expression: Call, schema: StructType) -> tuple[Expression, DataType]:
    name = expression.name.lower()
    resolved = [_resolve(argument, schema) for argument in expression.arguments]
    if name == "coalesce":
        return _resolve_coalesce(expression, resolved)
    if name == CASE:
        conditions = [_boolean(condition, schema) for condition in expression.arguments[:-1:2]]
        return resolve_case(expression, conditions, [*resolved[1::2], resolved[-1]])
    if name in (GREATEST, LEAST):
        return resolve_extreme(expression, resolved)
    function = FUNCTIONS.get(name)
    if function is None:
        _fail(
            f"The function {expression.name} is not supported.",
            f"Supported are coalesce, greatest, least, {', '.join(sorted(FUNCTIONS))}.",
            "Use a function that docs/predicates.md lists, or compute the column before writing.",
        )
    count = len(resolved)
    if count < function.min_arguments or (function.max_arguments or count) < count:
        _fail(
            f"The number of arguments of {name} cannot be {count}.",
            f"The minimum is {function.min_arguments}, the maximum is {function.max_arguments or 'not set'}.",
            "Pass a number of arguments that the function takes.",
        )
    for index, (_, data_type) in enumerate(resolved):
        expected, accepts = function.accepts[min(index, len(function.accepts) - 1)]
        if not accepts(data_type):
            _fail(
                f"Argument {index + 1} of {name} must be {expected}.",
                f"{to_spark_sql(expression.arguments[index])} has type {data_type}.",
                "Cast the argument, or use another column.",
            )
    for index, (argument, _) in enumerate(resolved):
        if index not in function.constants:
            continue
        if not isinstance(argument, Literal):
            _fail(
                f"Argument {index + 1} of {name} must be a constant.",
                f"It is computed in {to_spark_sql(expression)}.",
                "Write the argument as a constant.",
            )
        if function.choices and not (isinstance(argument.value, str) and function.choices[0](argument.value)):
            _fail(
                f"{name} does not support {to_spark_sql(argument)}.",
                f"It supports {function.choices[1]}.",
                "Use a supported value.",
            )
    types = [data_type for _, data_type in resolved]
    arguments = tuple(argument for argument, _ in resolved)
    if function.result_of_constants is not None:
        return Call(name, arguments), function.result_of_constants(types, arguments)
    return Call(name, arguments), function.result(types)


def _resolve_coalesce(
    expression: Call, resolved: list[tuple[Expression, DataType]]
) -> tuple[Expression, DataType]:
    if not resolved:
        _fail(
            "The function coalesce needs an argument.", "It has no arguments.", "Add at least one argument."
        )
    result = next((t for a, t in resolved if not isinstance(a, Literal) and t != VOID), None)
    result = result or next((t for _, t in resolved if t != VOID), VOID)
    if result == FLOAT and any(t not in (FLOAT, VOID, STRING) for _, t in resolved):
        # Any other number next to a float makes the result a double.
        result = DOUBLE
    arguments: list[Expression] = []
    for argument, data_type in resolved:
        if isinstance(argument, Literal):
            argument = convert_literal(argument, result, to_spark_sql(expression))
            data_type = literal_type(argument)
        if data_type not in (result, VOID):
            if not (is_numeric(data_type) and is_numeric(result)) or isinstance(argument, Literal):
                _fail(
                    f"The arguments of {to_spark_sql(expression)} have different types.",
                    f"{to_spark_sql(argument)} has type {data_type}, not {result}.",
                    "CAST the arguments to one type.",
                )
            argument = Cast(argument, result)
        arguments.append(argument)
    return Call("coalesce", tuple(arguments)), result


def _fail(problem: str, cause: str, fix: str) -> NoReturn:
    raise ExpressionError(problem, cause=cause, fix=fix)
