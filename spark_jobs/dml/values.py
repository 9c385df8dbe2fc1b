"""The values that the clauses of a MERGE assign to the target's columns, as columns of Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from delta_core.errors import SchemaMismatchError
from delta_core.merge.assigned import Assignments as Assignments
from delta_core.merge.assigned import assignments as assignments
from delta_core.merge.assigned import evolved_schema as evolved_schema
from delta_core.merge.clauses import MergeAction
from delta_core.schema.types import StructField, StructType
from spark_jobs.dml.clauses import sql_text
from spark_jobs.dml.source import as_column
from spark_jobs.expressions.checks import Check
from spark_jobs.expressions.columns import match_type
from spark_jobs.failures import ViolationToken
from spark_jobs.schema import to_spark, type_to_ddl

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

    from spark_jobs.dml.clauses import Sql


class Caster:
    """Casts values to the type of the target's column. A value that does not fit is an error, never null.

    Attributes:
        checks: one check per cast column. The marks in `raise_error` number them from `first`.
    """

    def __init__(self, token: ViolationToken, *, first: int) -> None:
        self._token = token
        self._first = first
        self.checks: list[Check] = []

    def value(self, frame: DataFrame, value: Sql, field: StructField) -> Column:
        """`value`, an expression over the columns of `frame`, cast to the type of `field`."""
        from pyspark.sql import functions as fn
        from pyspark.sql import types as spark_types

        column = as_column(value)
        target_type = to_spark(StructType((field,))).fields[0].dataType
        found = frame.select(column.alias("v")).schema.fields[0].dataType
        if found.simpleString() == target_type.simpleString():
            return column
        if isinstance(found, spark_types.NullType):
            return column.cast(target_type)
        nested = (spark_types.StructType, spark_types.ArrayType, spark_types.MapType)
        if isinstance(found, nested) or isinstance(target_type, nested):
            if problem := _field_difference(found, target_type, field.name):
                raise SchemaMismatchError(
                    f"The merge cannot set {field.name!r}: {problem}.",
                    cause="A struct is set as a whole, so a missing field would become null.",
                    fix="Give exactly the fields of the column, for example with named_struct.",
                )
            return match_type(column, found, target_type)
        ddl = type_to_ddl(field.data_type)
        number = self._first + len(self.checks)
        self.checks.append(
            Check(name=f"type of {field.name}", text=f"{sql_text(value)} as {ddl}", broken_if="")
        )
        row_json = fn.to_json(fn.struct(column.cast("string").alias(field.name)))
        failure = fn.raise_error(fn.concat(fn.lit(self._token.mark(number)), row_json)).cast(target_type)
        cast = column.try_cast(target_type)
        return fn.when(column.isNotNull() & cast.isNull(), failure).otherwise(cast)


def _field_difference(found: DataType, target_type: DataType, path: str) -> str | None:
    """The first difference between the fields of two types; None when the fields are equal."""
    from pyspark.sql import types as spark_types

    if isinstance(found, spark_types.StructType) and isinstance(target_type, spark_types.StructType):
        value_fields = {item.name.casefold(): item for item in found.fields}
        for item in target_type.fields:
            value_field = value_fields.pop(item.name.casefold(), None)
            if value_field is None:
                return f"the value has no field {path}.{item.name}"
            if problem := _field_difference(value_field.dataType, item.dataType, f"{path}.{item.name}"):
                return problem
        return (
            f"the table has no field {path}.{next(iter(value_fields.values())).name}"
            if value_fields
            else None
        )
    if isinstance(found, spark_types.ArrayType) and isinstance(target_type, spark_types.ArrayType):
        return _field_difference(found.elementType, target_type.elementType, f"{path}.element")
    if isinstance(found, spark_types.MapType) and isinstance(target_type, spark_types.MapType):
        return _field_difference(found.keyType, target_type.keyType, f"{path}.key") or _field_difference(
            found.valueType, target_type.valueType, f"{path}.value"
        )
    return None


def by_clause(
    action: Column,
    frame: DataFrame,
    field: StructField,
    clauses: Sequence[tuple[MergeAction, Mapping[str, Sql]]],
    *,
    otherwise: Column,
    caster: Caster,
    first: int = 0,
) -> Column:
    """The value of the column `field` after the merge.

    It is the value that the row's clause assigns to the column, or `otherwise` when the clause assigns none.
    `action` is the index of the row's clause, where the first of `clauses` has the index `first`.
    """
    from pyspark.sql import functions as fn

    chosen = None
    for index, (kind, values) in enumerate(clauses, first):
        if kind is MergeAction.DELETE or field.name not in values:
            continue
        value = caster.value(frame, values[field.name], field)
        condition = action == fn.lit(index)
        chosen = fn.when(condition, value) if chosen is None else chosen.when(condition, value)
    return otherwise if chosen is None else chosen.otherwise(otherwise)
