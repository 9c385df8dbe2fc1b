"""The values that the clauses assign to the target's columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from delta_core.data.steps.align import refuse_identity_values
from delta_core.data.write_plan import WritePlan
from delta_core.errors import SchemaMismatchError
from delta_core.jobs.params.merge_clauses import MergeAction
from delta_core.schema.evolution import merge_schemas
from delta_core.schema.types import StructField, StructType
from spark_jobs.dml.clauses import MergeClause, MergeClauses, sql_text
from spark_jobs.dml.source import as_column
from spark_jobs.expressions.checks import Check
from spark_jobs.expressions.columns import match_type, quoted
from spark_jobs.failures import ViolationToken
from spark_jobs.schema import to_spark, type_to_ddl

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

    from spark_jobs.dml.clauses import Sql


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignments:
    """The assignments of each clause, by the column names of the target."""

    matched: tuple[Mapping[str, Sql], ...]
    not_matched: tuple[Mapping[str, Sql], ...]
    not_matched_by_source: tuple[Mapping[str, Sql], ...]


def evolved_schema(table: StructType, source: StructType, clauses: MergeClauses) -> StructType:
    """The table's schema with the source columns that the clauses add.

    A `*` clause adds every column of the source. An explicit value adds the column that it is assigned to.

    Raises:
        SchemaEvolutionError: a column's type in the source is incompatible with its type in the table.
    """
    all_clauses = (*clauses.matched, *clauses.not_matched, *clauses.not_matched_by_source)
    if any(clause.action.takes_all for clause in all_clauses):
        return merge_schemas(table, source)
    set_columns = {name.casefold() for clause in all_clauses for name in clause.values or {}}
    fields = tuple(f for f in source if f.name.casefold() in set_columns and table.find(f.name) is None)
    return merge_schemas(table, StructType(fields)) if fields else table


def assignments(
    clauses: MergeClauses, *, plan: WritePlan, source: StructType, source_alias: str, merge_schema: bool
) -> Assignments:
    """The columns and values that each clause sets. `plan` is the write plan of the table after the merge.

    Raises:
        SchemaMismatchError: a clause sets an unknown column or an identity column, or the source of a `*`
            clause lacks a column of the table that gets no value otherwise and `merge_schema` is false.
    """
    table = plan.schema

    def of(clause: MergeClause) -> Mapping[str, Sql]:
        if clause.action.takes_all:
            filled = frozenset(table.names) if merge_schema else plan.filled_columns
            found = _all_columns(table, source, source_alias, filled=filled)
        else:
            found = _named_columns(clause, table)
        _refuse_identity(clause, found, plan)
        return found

    return Assignments(
        matched=tuple(of(clause) for clause in clauses.matched),
        not_matched=tuple(of(clause) for clause in clauses.not_matched),
        not_matched_by_source=tuple(of(clause) for clause in clauses.not_matched_by_source),
    )


def _all_columns(
    table: StructType, source: StructType, source_alias: str, *, filled: frozenset[str]
) -> dict[str, Sql]:
    missing = [name for name in table.names if name not in filled and source.find(name) is None]
    if missing:
        raise SchemaMismatchError(
            f"The source lacks columns of the table: {', '.join(map(repr, missing))}.",
            cause="A clause with all columns (*) needs every column of the table in the source.",
            fix="Name the columns that the clause sets, or allow different schemas (merge_schema).",
        )
    found: dict[str, Sql] = {}
    for field in table:
        column = source.find(field.name)
        if column is not None:
            found[field.name] = f"{quoted(source_alias)}.{quoted(column.name)}"
    return found


def _refuse_identity(clause: MergeClause, found: Mapping[str, Sql], plan: WritePlan) -> None:
    if clause.action.kind == "insert":
        return refuse_identity_values(plan, set(plan.schema.names) - found.keys())
    identity = next((item.name for item in plan.identity if item.name in found), None)
    if identity is not None:
        raise SchemaMismatchError(
            f"The identity column {identity} cannot be assigned.",
            cause="The table generates its values, and each row keeps its value.",
            fix="Remove the column from the clause; for a clause with all columns (*), from the source.",
        )
    return None


def _named_columns(clause: MergeClause, table: StructType) -> dict[str, Sql]:
    found: dict[str, Sql] = {}
    for name, value in (clause.values or {}).items():
        unquoted = name[1:-1].replace("``", "`") if name.startswith("`") and name.endswith("`") else name
        field = table.find(unquoted)
        if field is None:
            raise SchemaMismatchError(
                f"The merge sets {name!r}, which is not a column of the table.",
                cause=f"The table has the columns {', '.join(table.names)}.",
                fix="Set a column of the table. To change a struct, set the whole column.",
            )
        if field.name in found:
            raise SchemaMismatchError(
                f"The merge sets {field.name!r} twice in one clause.", fix="Set each column once."
            )
        found[field.name] = value
    return found


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
