"""The columns that each clause of a MERGE assigns, their values, and the schema of the table after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from delta_core.data.steps.align import refuse_identity_values
from delta_core.data.write_plan import WritePlan
from delta_core.errors import SchemaMismatchError
from delta_core.merge.clauses import MergeClause, MergeClauses, Sql, quoted
from delta_core.schema.evolution import merge_schemas
from delta_core.schema.types import StructType


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignments:
    """The assignments of each clause, by the column names of the target."""

    matched: tuple[Mapping[str, Sql], ...]
    not_matched: tuple[Mapping[str, Sql], ...]
    not_matched_by_source: tuple[Mapping[str, Sql], ...]


def evolved_schema(table: StructType, source: StructType, clauses: MergeClauses) -> StructType:
    """The table's schema with the source columns that the clauses add.

    A `*` clause adds every column of the source that it uses. An explicit value adds the column that it is
    assigned to.

    Raises:
        SchemaEvolutionError: a column's type in the source is incompatible with its type in the table.
    """
    all_clauses = (*clauses.matched, *clauses.not_matched, *clauses.not_matched_by_source)
    set_columns = {name.casefold() for clause in all_clauses for name in clause.values or {}}
    fields = tuple(
        field
        for field in source
        if any(clause.takes(field.name) for clause in all_clauses)
        or (field.name.casefold() in set_columns and table.find(field.name) is None)
    )
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
            found = _all_columns(clause, table, source, source_alias, filled=filled)
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
    clause: MergeClause, table: StructType, source: StructType, source_alias: str, *, filled: frozenset[str]
) -> dict[str, Sql]:
    taken = [name for name in table.names if clause.takes(name)]
    missing = [name for name in taken if name not in filled and source.find(name) is None]
    if missing:
        raise SchemaMismatchError(
            f"The source lacks columns of the table: {', '.join(map(repr, missing))}.",
            cause="A clause with all columns (*) needs every column of the table in the source.",
            fix="Name the columns that the clause sets, or allow different schemas (merge_schema).",
        )
    found: dict[str, Sql] = {}
    for name in taken:
        column = source.find(name)
        if column is not None:
            found[name] = f"{quoted(source_alias)}.{quoted(column.name)}"
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
