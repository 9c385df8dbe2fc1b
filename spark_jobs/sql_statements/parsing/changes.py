"""INSERT, DELETE, UPDATE, MERGE and TRUNCATE."""

from __future__ import annotations

from typing import Final

from delta_core.errors import ConfigurationError
from delta_core.expressions.render import quote_name
from delta_core.jobs.params.merge_clauses import ClauseParams, MergeAction, check_clauses
from spark_jobs.sql_statements.parsing.cursor import Cursor
from spark_jobs.sql_statements.parsing.query import QUERY_WORDS, at_query, take_query
from spark_jobs.sql_statements.parsing.tokens import TokenKind
from spark_jobs.sql_statements.statements import (
    Delete,
    Insert,
    InsertMode,
    Merge,
    Query,
    Slice,
    TableReference,
    Update,
)

_NO_ALIAS: Final = frozenset({"SET", "WHERE", "USING", "ON", "WHEN"})


def take_insert(cursor: Cursor) -> Insert:
    """Take `INSERT`."""
    cursor.expect("INSERT")
    evolution = cursor.accept("WITH", "SCHEMA", "EVOLUTION")
    if cursor.at("OVERWRITE", "DIRECTORY") or cursor.at("OVERWRITE", "LOCAL"):
        cursor.unsupported("INSERT OVERWRITE DIRECTORY", fix="Use a table, or DataFrame.write.")
    overwrite = cursor.accept("OVERWRITE")
    if not overwrite:
        cursor.expect("INTO")
    elif cursor.accept("INTO"):
        pass
    cursor.accept("TABLE")
    table = cursor.reference()
    partition: tuple[tuple[str, str | None], ...] = ()
    if cursor.accept("PARTITION"):
        partition = cursor.in_brackets(lambda: _partition(cursor))
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    columns, by_name = _columns(cursor)
    mode, where = (InsertMode.OVERWRITE if overwrite else InsertMode.APPEND), None
    using: tuple[str, ...] = ()
    if cursor.at("REPLACE", "ON"):
        cursor.unsupported("INSERT INTO ... REPLACE ON", fix="Use REPLACE WHERE with a condition, or MERGE.")
    if cursor.accept("REPLACE", "USING"):
        mode, using = (
            InsertMode.REPLACE_USING,
            cursor.in_brackets(lambda: cursor.identifier("name of a column")),
        )
    elif cursor.accept("REPLACE", "WHERE"):
        mode, where = InsertMode.REPLACE_WHERE, cursor.slice("condition", "SELECT", "WITH", "VALUES", "TABLE")
        if columns is None and not by_name:
            columns, by_name = _columns(cursor)
    if not at_query(cursor):
        cursor.fail("A query is expected here", fix="Write SELECT ..., VALUES ... or TABLE name.")
    query = take_query(cursor)
    cursor.expect_end("INSERT")
    return Insert(
        table=table,
        query=query,
        mode=mode,
        columns=columns,
        by_name=by_name,
        partition=partition,
        if_not_exists=if_not_exists,
        replace_where=where,
        replace_using=using,
        schema_evolution=evolution,
        sql=cursor.between(cursor.tokens[0].start, cursor.tokens[-1].start).strip(),
        start=cursor.tokens[0].start,
    )


def _columns(cursor: Cursor) -> tuple[tuple[str, ...] | None, bool]:
    if cursor.accept("BY", "NAME"):
        return None, True
    if cursor.peek().is_symbol("(") and not at_query(cursor):
        return cursor.in_brackets(lambda: cursor.identifier("name of a column")), False
    return None, False


def _partition(cursor: Cursor) -> tuple[str, str | None]:
    name = cursor.identifier("name of a partition column")
    if not cursor.accept_symbol("="):
        return name, None
    return name, cursor.slice(f"value of {name}", in_list=True).sql


def take_delete(cursor: Cursor) -> Delete:
    """Take `DELETE FROM`."""
    cursor.expect("DELETE", "FROM")
    table = cursor.reference()
    alias = take_alias(cursor)
    where = cursor.slice("condition") if cursor.accept("WHERE") else None
    cursor.expect_end("DELETE")
    return Delete(table=table, alias=alias, where=where)


def take_truncate(cursor: Cursor) -> Delete:
    """Take `TRUNCATE TABLE`, which deletes all rows, or those of a partition."""
    cursor.expect("TRUNCATE", "TABLE")
    table = cursor.reference()
    where = _partition_condition(cursor) if cursor.accept("PARTITION") else None
    cursor.expect_end("TRUNCATE TABLE")
    return Delete(table=table, where=where)


def _partition_condition(cursor: Cursor) -> Slice:
    """The condition of `PARTITION (name = value, ...)`."""
    token = cursor.peek()
    items = cursor.in_brackets(lambda: _partition(cursor))
    if any(value is None for _, value in items):
        cursor.fail("Each partition column needs a value", token=token, fix="Write PARTITION (name = value).")
    terms = [f"{quote_name(name)} <=> ({value})" for name, value in items]
    return Slice(sql=" AND ".join(terms), start=token.start, end=cursor.tokens[cursor.position - 1].end)


def take_alias(cursor: Cursor) -> str | None:
    """Take an alias, if there is one."""
    if cursor.accept("AS"):
        return cursor.identifier("alias")
    token = cursor.peek()
    if token.kind is TokenKind.NAME or (
        token.kind is TokenKind.WORD and token.value.upper() not in _NO_ALIAS
    ):
        return cursor.identifier("alias")
    return None


def take_update(cursor: Cursor) -> Update:
    """Take `UPDATE`."""
    cursor.expect("UPDATE")
    table = cursor.reference()
    alias = take_alias(cursor)
    cursor.expect("SET")
    names = frozenset(part.casefold() for part in (alias, table.parts[-1]) if part)
    assignments = _assignments(cursor, names, "WHERE")
    where = cursor.slice("condition") if cursor.accept("WHERE") else None
    cursor.expect_end("UPDATE")
    return Update(table=table, alias=alias, assignments=assignments, where=where)


def _assignments(cursor: Cursor, aliases: frozenset[str], *stops: str) -> tuple[tuple[str, str], ...]:
    """A list of `column = expression`. The table's alias before a column is left out."""
    found: dict[str, str] = {}
    while True:
        token = cursor.peek()
        column = _column(cursor, aliases)
        if column in found:
            cursor.fail(f"The column {column} is set twice", token=token, fix="Set it once.")
        if not (cursor.accept_symbol("=") or cursor.accept_symbol("==")):
            cursor.expect_symbol("=")
        found[column] = cursor.slice(f"value of {column}", *stops, in_list=True).sql
        if not cursor.accept_symbol(","):
            return tuple(found.items())


def _column(cursor: Cursor, aliases: frozenset[str]) -> str:
    token = cursor.peek()
    path = cursor.path("name of a column")
    if len(path) > 1 and path[0].casefold() in aliases:
        path = path[1:]
    if len(path) > 1:
        cursor.unsupported(
            f"Setting the field {'.'.join(path)} of a struct",
            token=token,
            fix=f"Set the column {path[0]} to a whole struct, such as named_struct(...).",
        )
    return path[0]


_LISTS: Final = ("matched", "not_matched", "not_matched_by_source")


def take_merge(cursor: Cursor) -> Merge:
    """Take `MERGE INTO`."""
    merge_token = cursor.peek()
    cursor.expect("MERGE")
    evolution = cursor.accept("WITH", "SCHEMA", "EVOLUTION")
    cursor.expect("INTO")
    table = cursor.reference()
    alias = take_alias(cursor)
    cursor.expect("USING")
    source = _source(cursor)
    source_alias = take_alias(cursor)
    source_columns: tuple[str, ...] = ()
    if source_alias is not None and cursor.peek().is_symbol("("):
        source_columns = cursor.in_brackets(lambda: cursor.identifier("name of a column"))
    cursor.expect("ON")
    on = cursor.slice("condition of the merge", "WHEN")
    clauses: dict[str, list[ClauseParams]] = {name: [] for name in _LISTS}
    aliases = frozenset(part.casefold() for part in (alias, table.parts[-1]) if part)
    while cursor.accept("WHEN"):
        name, clause = _clause(cursor, aliases)
        clauses[name].append(clause)
    cursor.expect_end("MERGE")
    lists = {name: tuple(items) for name, items in clauses.items()}
    try:
        check_clauses(lists)
    except ConfigurationError as error:
        cursor.fail(
            error.problem, token=merge_token, cause=error.cause or "It is a rule of MERGE.", fix=error.fix
        )
    return Merge(
        table=table,
        source=source,
        on=on,
        clauses=lists,
        alias=alias,
        source_alias=source_alias,
        source_columns=source_columns,
        schema_evolution=evolution,
    )


def _source(cursor: Cursor) -> TableReference | Query:
    if not cursor.peek().is_symbol("("):
        return cursor.reference(time_travel=True)
    cursor.next()
    if not at_query(cursor):
        cursor.fail("A query is expected here", fix=f"Begin it with one of {', '.join(QUERY_WORDS)}.")
    query = take_query(cursor)
    cursor.expect_symbol(")")
    return query


def _clause(cursor: Cursor, aliases: frozenset[str]) -> tuple[str, ClauseParams]:
    name = "matched"
    if cursor.accept("NOT", "MATCHED"):
        name = "not_matched"
        if cursor.accept("BY", "SOURCE"):
            name = "not_matched_by_source"
        else:
            cursor.accept("BY", "TARGET")
    else:
        cursor.expect("MATCHED")
    condition = cursor.slice("condition", "THEN").sql if cursor.accept("AND") else None
    cursor.expect("THEN")
    if cursor.accept("DELETE"):
        return name, ClauseParams(action=MergeAction.DELETE, condition=condition)
    if cursor.accept("INSERT"):
        return name, _insert_clause(cursor, condition, aliases)
    if not cursor.accept("UPDATE"):
        cursor.fail("UPDATE, DELETE or INSERT is expected here")
    cursor.expect("SET")
    if cursor.accept_symbol("*"):
        _refuse_except(cursor)
        return name, ClauseParams(action=MergeAction.UPDATE_ALL, condition=condition)
    values = dict(_assignments(cursor, aliases, "WHEN"))
    return name, ClauseParams(action=MergeAction.UPDATE, condition=condition, values=values)


def _insert_clause(cursor: Cursor, condition: str | None, aliases: frozenset[str]) -> ClauseParams:
    if cursor.accept_symbol("*"):
        _refuse_except(cursor)
        return ClauseParams(action=MergeAction.INSERT_ALL, condition=condition)
    if cursor.at("VALUES"):
        cursor.unsupported(
            "INSERT VALUES without columns in MERGE", fix="Name the columns: INSERT (a) VALUES (b)."
        )
    token = cursor.peek()
    columns = cursor.in_brackets(lambda: _column(cursor, aliases))
    cursor.expect("VALUES")
    values = cursor.in_brackets(lambda: cursor.slice("value", in_list=True).sql)
    if len(columns) != len(values) or len(set(columns)) != len(columns):
        cursor.fail(
            f"INSERT has {len(columns)} columns and {len(values)} values",
            token=token,
            cause="Each column needs one value, and is named once.",
            fix="Give each column one value.",
        )
    return ClauseParams(
        action=MergeAction.INSERT, condition=condition, values=dict(zip(columns, values, strict=True))
    )


def _refuse_except(cursor: Cursor) -> None:
    if cursor.at("EXCEPT"):
        cursor.unsupported("* EXCEPT in MERGE", fix="Name the columns.")
