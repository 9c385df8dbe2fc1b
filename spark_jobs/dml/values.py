"""The value that each clause gives each column of the target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from delta_core.errors import SchemaMismatchError
from delta_core.schema.evolution import merge_schemas
from delta_core.schema.types import StructField, StructType
from spark_jobs.dml.clauses import MergeAction, MergeClause, MergeClauses, sql_text
from spark_jobs.dml.source import as_column
from spark_jobs.failures import ViolationToken
from spark_jobs.schema import to_spark, type_to_ddl
from spark_jobs.writer.checks import Check
from spark_jobs.writer.columns import match_type, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

    from spark_jobs.dml.clauses import Sql


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignments:
    """For each clause the columns that it sets, by the target's spelling."""

    matched: tuple[Mapping[str, Sql], ...]
    not_matched: tuple[Mapping[str, Sql], ...]
    not_matched_by_source: tuple[Mapping[str, Sql], ...]


def evolved_schema(table: StructType, source: StructType, clauses: MergeClauses) -> StructType:
    """The table's schema with the source columns that clauses bring into it.

    A `*` clause brings every column of the source, an explicit value the column that it is for.

    Raises:
        SchemaEvolutionError: a column has another type in the source that the table cannot take.
    """
    every = (*clauses.matched, *clauses.not_matched, *clauses.not_matched_by_source)
    if any(clause.action.takes_all for clause in every):
        return merge_schemas(table, source)
    set_columns = {name.casefold() for clause in every for name in clause.values or {}}
    fields = tuple(f for f in source if f.name.casefold() in set_columns and table.find(f.name) is None)
    return merge_schemas(table, StructType(fields)) if fields else table


def assignments(
    clauses: MergeClauses, *, table: StructType, source: StructType, source_alias: str, merge_schema: bool
) -> Assignments:
    """What each clause sets.

    Raises:
        SchemaMismatchError: a clause sets a column that is not there, or `*` lacks a column of the table
            and the schema may not change.
    """

    def of(clause: MergeClause) -> Mapping[str, Sql]:
        if clause.action.takes_all:
            return _all_columns(table, source, source_alias, merge_schema=merge_schema)
        return _named_columns(clause, table)

    return Assignments(
        matched=tuple(of(clause) for clause in clauses.matched),
        not_matched=tuple(of(clause) for clause in clauses.not_matched),
        not_matched_by_source=tuple(of(clause) for clause in clauses.not_matched_by_source),
    )


def _all_columns(
    table: StructType, source: StructType, source_alias: str, *, merge_schema: bool
) -> dict[str, Sql]:
    missing = [field.name for field in table if source.find(field.name) is None]
    if missing and not merge_schema:
        raise SchemaMismatchError(
            f"The source lacks the columns {', '.join(map(repr, missing))} of the table.",
            cause="A clause that takes all columns takes every column of the table from the source.",
            fix="Name the columns that the clause sets, or allow the schemas to differ (merge_schema).",
        )
    found: dict[str, Sql] = {}
    for field in table:
        column = source.find(field.name)
        if column is not None:
            found[field.name] = f"{quoted(source_alias)}.{quoted(column.name)}"
    return found


def _named_columns(clause: MergeClause, table: StructType) -> dict[str, Sql]:
    found: dict[str, Sql] = {}
    for name, value in (clause.values or {}).items():
        plain = name[1:-1].replace("``", "`") if name.startswith("`") and name.endswith("`") else name
        field = table.find(plain)
        if field is None:
            raise SchemaMismatchError(
                f"The merge sets {name!r}, which is no column of the table.",
                cause=f"It has {', '.join(table.names)}.",
                fix="Set a column of the table; of a struct, set the whole column.",
            )
        if field.name in found:
            raise SchemaMismatchError(
                f"The merge sets {field.name!r} twice in one clause.", fix="Set each column once."
            )
        found[field.name] = value
    return found


class Caster:
    """Gives values their column's type; a value that does not fit is an error, never a null.

    Attributes:
        checks: one for each column that is cast; `raise_error` carries their numbers from `first` on.
    """

    def __init__(self, token: ViolationToken, *, first: int) -> None:
        self._token = token
        self._first = first
        self.checks: list[Check] = []

    def value(self, frame: DataFrame, value: Sql, field: StructField) -> Column:
        """`value`, over the columns of `frame`, as the type of `field`."""
        from pyspark.sql import functions as fn
        from pyspark.sql import types as spark_types

        column = as_column(value)
        wanted = to_spark(StructType((field,))).fields[0].dataType
        found = frame.select(column.alias("v")).schema.fields[0].dataType
        if found.simpleString() == wanted.simpleString():
            return column
        if isinstance(found, spark_types.NullType):
            return column.cast(wanted)
        nested = (spark_types.StructType, spark_types.ArrayType, spark_types.MapType)
        if isinstance(found, nested) or isinstance(wanted, nested):
            if problem := _other_fields(found, wanted, field.name):
                raise SchemaMismatchError(
                    f"The merge cannot set {field.name!r}: {problem}.",
                    cause="A struct is set as a whole, so a field that is not given would become null.",
                    fix="Give every field of the column and no other, as with named_struct.",
                )
            return match_type(column, found, wanted)
        ddl = type_to_ddl(field.data_type)
        number = self._first + len(self.checks)
        self.checks.append(
            Check(name=f"type of {field.name}", text=f"{sql_text(value)} as {ddl}", broken_if="")
        )
        shown = fn.to_json(fn.struct(column.cast("string").alias(field.name)))
        wrong = fn.raise_error(fn.concat(fn.lit(self._token.mark(number)), shown)).cast(wanted)
        cast = column.try_cast(wanted)
        return fn.when(column.isNotNull() & cast.isNull(), wrong).otherwise(cast)


def _other_fields(found: DataType, wanted: DataType, path: str) -> str | None:
    """What fields one type lacks or has besides another's; None when they have the same."""
    from pyspark.sql import types as spark_types

    if isinstance(found, spark_types.StructType) and isinstance(wanted, spark_types.StructType):
        given = {item.name.casefold(): item for item in found.fields}
        for item in wanted.fields:
            here = given.pop(item.name.casefold(), None)
            if here is None:
                return f"the value has no field {path}.{item.name}"
            if problem := _other_fields(here.dataType, item.dataType, f"{path}.{item.name}"):
                return problem
        return f"the table has no field {path}.{next(iter(given.values())).name}" if given else None
    if isinstance(found, spark_types.ArrayType) and isinstance(wanted, spark_types.ArrayType):
        return _other_fields(found.elementType, wanted.elementType, f"{path}.element")
    if isinstance(found, spark_types.MapType) and isinstance(wanted, spark_types.MapType):
        return _other_fields(found.keyType, wanted.keyType, f"{path}.key") or _other_fields(
            found.valueType, wanted.valueType, f"{path}.value"
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
    """A column's value in rows that the clauses take: a clause that does not set it gives `otherwise`."""
    from pyspark.sql import functions as fn

    chosen = None
    for index, (kind, values) in enumerate(clauses, first):
        if kind is MergeAction.DELETE or field.name not in values:
            continue
        value = caster.value(frame, values[field.name], field)
        condition = action == fn.lit(index)
        chosen = fn.when(condition, value) if chosen is None else chosen.when(condition, value)
    return otherwise if chosen is None else chosen.otherwise(otherwise)
