"""Constraints as native expressions: a row that violates one fails the write, before the commit.

The check is part of a written column's expression, so it is evaluated exactly for the written rows. The
optimizer could move a filter to before the caller's filters, where rows exist that are not written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from delta_core.data.constraints import Constraint, table_constraints
from delta_core.expressions.ast import Expression
from delta_core.expressions.parse import parse_predicate
from delta_core.expressions.render import to_spark_sql
from delta_core.expressions.typing import resolve
from delta_core.schema.column_mapping import UNMAPPED, ColumnMapping
from delta_core.schema.partition_values import HIVE_NULL, MAX_NAME_BYTES
from delta_core.schema.types import BINARY, STRING, ArrayType, DataType, MapType, StructType
from spark_jobs.expressions.columns import quoted
from spark_jobs.expressions.predicates import to_column
from spark_jobs.failures import ViolationToken

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# The characters that Spark escapes in names of directories.
_ESCAPED = "".join(map(chr, range(1, 0x20))) + "\"#%'*/:=?\\{[]^\x7f"
_ESCAPED_HEX = _ESCAPED.encode().hex()
_NUL = "decode(unhex('00'), 'US-ASCII')"


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """The violation of a predicate by a row.

    Attributes:
        predicate: the predicate, resolved against `schema`.
        schema: the schema of the rows.
        null_passes: whether a row passes when the predicate is null.
    """

    predicate: Expression
    schema: StructType = field(repr=False, compare=False)
    null_passes: bool

    def to_column(self) -> Column:
        """A column that is true for a row that violates the predicate, and never null."""
        from pyspark.sql import functions as fn

        return ~fn.coalesce(to_column(self.predicate, self.schema), fn.lit(self.null_passes))


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenWhere:
    """The violation of a predicate by some of the rows.

    Attributes:
        column: an integer column of the rows.
        value: only rows with this value can violate the predicate.
        broken: the violation.
    """

    column: str
    value: int
    broken: Broken

    def to_column(self) -> Column:
        """A column that is true for a row that violates the predicate, and never null."""
        from pyspark.sql import functions as fn

        return (fn.col(quoted(self.column)) == fn.lit(self.value)) & self.broken.to_column()


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A condition on each row.

    Attributes:
        name: the name of the check in errors.
        text: the condition as its author wrote it.
        broken_if: a condition that is true for a row that violates the check, and never null: Spark SQL with
            the same meaning in every session, or the violation of a predicate.
    """

    name: str
    text: str
    broken_if: str | Broken | BrokenWhere

    def broken(self) -> Column:
        """A column that is true for a row that violates the check, and never null."""
        from pyspark.sql import functions as fn

        return fn.expr(self.broken_if) if isinstance(self.broken_if, str) else self.broken_if.to_column()


def check_of(
    name: str,
    expression: Expression,
    schema: StructType,
    *,
    text: str | None = None,
    null_passes: bool = True,
) -> Check:
    """A predicate as a check. `null_passes` is true for a contract, false for the table and replaceWhere."""
    return Check(
        name=name,
        text=text or to_spark_sql(expression),
        broken_if=Broken(predicate=expression, schema=schema, null_passes=null_passes),
    )


def table_checks(schema: StructType, configuration: Mapping[str, str]) -> list[Check]:
    """The checks of the table: NOT NULL columns, invariants and CHECK constraints.

    A row for which a condition is null violates it (PROTOCOL.md, "CHECK Constraints", "Column Invariants").

    Raises:
        ExpressionError: this library cannot evaluate a constraint, so nothing may be written.
    """
    return [
        *not_null_checks(schema),
        *(
            check_of(
                _name(constraint), constraint.expression, schema, text=constraint.text, null_passes=False
            )
            for constraint in table_constraints(schema, configuration)
        ),
    ]


def named_checks(constraints: Iterable[tuple[str, str]], schema: StructType) -> list[Check]:
    """Checks from (name, SQL text) pairs.

    Raises:
        ExpressionError: a predicate cannot be parsed or does not fit the schema.
    """
    return [
        check_of(name, resolve(parse_predicate(text, schema), schema), schema, text=text)
        for name, text in constraints
    ]


def partition_name_checks(
    schema: StructType, partition_columns: Sequence[str], mapping: ColumnMapping = UNMAPPED
) -> list[Check]:
    """Checks for partition values that Spark cannot represent as a directory.

    These are the string that represents null in directory names, strings that are too long, NUL, and bytes
    that are not UTF-8, which Spark would replace, so that different values become equal.
    """
    strings = [
        (field.name, mapping.physical_name(field))
        for field in schema
        if field.name in partition_columns and field.data_type in (STRING, BINARY)
    ]
    return [
        check
        for name, directory in strings
        for check in (_is_string(name), _not_the_null(name), _fits_a_name(name, directory))
    ]


def not_null_checks(schema: StructType) -> list[Check]:
    """A check for each NOT NULL field of the schema, at every depth."""
    return [
        Check(name=f"NOT NULL {path}", text=f"{path} IS NOT NULL", broken_if=condition)
        for field in schema
        for path, condition in _null_conditions(
            field.name, quoted(field.name), field.data_type, nullable=field.nullable, depth=0
        )
    ]


def with_checks(
    frame: DataFrame,
    checks: Sequence[Check],
    token: ViolationToken,
    *,
    show_rows: bool = True,
    shown: Sequence[str] | None = None,
) -> DataFrame:
    """The rows of `frame`, unchanged. Reading them fails at the first row that violates a check.

    The error contains the token, the check's index and the row as JSON. Without `show_rows` the row is an
    empty object, so that no value appears in Spark's logs. With `shown` it has only these columns.
    """
    from pyspark.sql import functions as fn

    if not checks:
        return frame
    row = row_json(shown or frame.columns) if show_rows else fn.lit("{}")
    guarded_name = frame.columns[0]
    guarded = fn.col(quoted(guarded_name))
    data_type = frame.schema[guarded_name].dataType
    expression = None
    for index, check in enumerate(checks):
        broken = fn.raise_error(fn.concat(fn.lit(token.mark(index)), row)).cast(data_type)
        condition = check.broken()
        expression = fn.when(condition, broken) if expression is None else expression.when(condition, broken)
    assert expression is not None
    return frame.withColumn(guarded_name, expression.otherwise(guarded))


def row_json(names: Sequence[str]) -> Column:
    """The row as a JSON object of these columns, including nulls."""
    from pyspark.sql import functions as fn

    return fn.to_json(fn.struct(*[fn.col(quoted(name)) for name in names]), {"ignoreNullFields": "false"})


def _is_string(column: str) -> Check:
    value = _as_string(column)
    return Check(
        name=f"partition column {column}",
        text="Spark's directory names are UTF-8 without NUL",
        broken_if=f"coalesce(NOT is_valid_utf8({value}) OR instr({value}, {_NUL}) > 0, false)",
    )


def _not_the_null(column: str) -> Check:
    return Check(
        name=f"partition column {column}",
        text=f"{column} <> '{HIVE_NULL}'",
        broken_if=f"coalesce({_as_string(column)} = '{HIVE_NULL}', false)",
    )


def _as_string(column: str) -> str:
    return f"CAST({quoted(column)} AS STRING)"


def _fits_a_name(column: str, directory: str) -> Check:
    # The length is in UTF-8 bytes; an escape replaces one character with three.
    value = _as_string(column)
    escaped = f"length({value}) - length(translate({value}, decode(unhex('{_ESCAPED_HEX}'), 'US-ASCII'), ''))"
    maximum = MAX_NAME_BYTES - len(f"{directory}=".encode()) - 2 * sum(char in _ESCAPED for char in directory)
    return Check(
        name=f"partition column {column}",
        text=f"Spark's directory names have at most {MAX_NAME_BYTES} bytes",
        broken_if=f"coalesce(octet_length({value}) + 2 * ({escaped}) > {maximum}, false)",
    )


def _name(constraint: Constraint) -> str:
    return f"invariant of {constraint.name}" if constraint.is_invariant else constraint.name


def _null_conditions(
    path: str, sql: str, data_type: DataType, *, nullable: bool, depth: int
) -> list[tuple[str, str]]:
    """(path, SQL condition that is true when the path is null) for a value and its nested fields."""
    conditions = [] if nullable else [(path, f"{sql} IS NULL")]
    item = f"x{depth}"
    if isinstance(data_type, StructType):
        for field in data_type:
            inner = _null_conditions(
                f"{path}.{field.name}",
                f"{sql}.{quoted(field.name)}",
                field.data_type,
                nullable=field.nullable,
                depth=depth,
            )
            # A field is null when its struct is null. In arrays and maps, null structs are not checked.
            conditions += [
                (name, f"({sql} IS NOT NULL AND {condition})" if depth else condition)
                for name, condition in inner
            ]
    elif isinstance(data_type, ArrayType):
        inner = _null_conditions(
            f"{path}.element", item, data_type.element_type, nullable=data_type.contains_null, depth=depth + 1
        )
        conditions += [
            (name, f"coalesce(exists({sql}, {item} -> {condition}), false)") for name, condition in inner
        ]
    elif isinstance(data_type, MapType):
        sides = (
            ("key", "map_keys", data_type.key_type, True),
            ("value", "map_values", data_type.value_type, data_type.value_contains_null),
        )
        for side, function, side_type, side_nullable in sides:
            inner = _null_conditions(
                f"{path}.{side}", item, side_type, nullable=side_nullable, depth=depth + 1
            )
            conditions += [
                (name, f"coalesce(exists({function}({sql}), {item} -> {condition}), false)")
                for name, condition in inner
            ]
    return conditions
