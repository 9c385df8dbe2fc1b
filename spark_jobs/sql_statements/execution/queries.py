"""Queries over tables of this library and of Spark.

Each of our tables becomes a DataFrame that scans its files natively. Its name in the query is replaced at its
place by a view of this DataFrame, which exists for this query only; nothing else in the SQL changes.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from delta_core.errors import ExpressionError, UnsupportedSqlError
from delta_core.expressions.ast import And, Expression
from delta_core.expressions.parse import parse_predicate
from delta_core.expressions.render import quote_name
from delta_core.expressions.typing import resolve
from delta_core.scan import Scan
from delta_core.snapshot.snapshot import Snapshot
from spark_jobs.reader.changes import read_changes
from spark_jobs.reader.read import read_files
from spark_jobs.sql_statements.execution.results import no_rows
from spark_jobs.sql_statements.execution.surroundings import Surroundings, quoted
from spark_jobs.sql_statements.parsing.query import QUERY_WORDS
from spark_jobs.sql_statements.parsing.tokens import SqlSource, TokenKind, tokens_of
from spark_jobs.sql_statements.statements import (
    CreateView,
    FoundTable,
    Query,
    SelectStatement,
    SparkStatement,
    TableReference,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LIVE_COLUMNS = ("path", "partition_values", "size_bytes")


def select(statement: SelectStatement, around: Surroundings) -> DataFrame:
    """The rows of a query, or its plan for EXPLAIN."""
    return query_frame(statement.query, around, prefix=statement.prefix)


def create_view(statement: CreateView, around: Surroundings) -> DataFrame:
    """A temporary view of the versions that the tables have now."""
    frame = query_frame(statement.query, around)
    if statement.replace:
        frame.createOrReplaceTempView(quote_name(statement.name))
    else:
        frame.createTempView(quote_name(statement.name))
    return no_rows(around.spark)


def run_on_spark(statement: SparkStatement, around: Surroundings) -> DataFrame:
    """A statement of Spark, unchanged.

    Raises:
        UnsupportedSqlError: it names a table of this library.
        PathEscapeError: only some tables are allowed.
    """
    around.require_all_allowed(f"the statement {statement.what}")
    for table in statement.tables:
        if around.find(table) is not None:
            raise UnsupportedSqlError(
                f"{statement.what} is not supported for the table {table.name}.",
                cause="Spark runs this statement, and it cannot read a table of this library by its name.",
                fix="Use a statement that docs/sql.md lists.",
            )
    arguments = _arguments(around)
    return around.spark.sql(statement.sql, **arguments)


def _arguments(around: Surroundings) -> dict[str, Any]:
    bindings = around.bindings
    if bindings.positional:
        return {"args": list(bindings.positional)}
    return {"args": dict(bindings.named)} if bindings.named else {}


def query_frame(query: Query, around: Surroundings, *, prefix: str = "") -> DataFrame:
    """The DataFrame of a query.

    Raises:
        TableNotFoundError, VersionNotFoundError: a table or version does not exist.
        UnsupportedSqlError: time travel of a table that is not one of this library.
        PathEscapeError: only some tables are allowed, and the query uses something else.
    """
    if around.table_roots:
        _require_named_tables(query, around)
    pieces: list[tuple[int, int, str]] = []
    frames: dict[str, Any] = {}
    for one in query.tables:
        found = replace(one, table=around.at_version(one.table))
        address = around.find(found.table)
        if address is None:
            _require_plain(found, around)
            continue
        name = f"deltaward_{len(frames)}"
        frames[name] = table_frame(found, address.uri, around)
        alias = quote_name(found.table.parts[-1])
        after = found.table.end if found.alias_at is None else found.alias_at
        if found.alias_at is None:
            pieces.append((found.table.start, found.table.end, f"{{{name}}}"))
        elif after == found.table.end:
            pieces.append((found.table.start, found.table.end, f"{{{name}}} AS {alias}"))
        else:
            pieces.append((found.table.start, found.table.end, f"{{{name}}}"))
            pieces.append((after, after, f" AS {alias}"))
    arguments: dict[str, Any] = {}
    if query.positional:
        arguments["args"] = [
            around.bindings.positional[index]
            for index in query.positional
            if index < len(around.bindings.positional)
        ]
    elif query.parameters:
        known = around.bindings.named
        arguments["args"] = {name: known[name] for name in sorted(query.parameters) if name in known}
    if not frames:
        return around.spark.sql(prefix + query.sql, **arguments)
    return around.spark.sql(_braced(prefix) + _replaced(query, pieces), **arguments, **frames)


def _replaced(query: Query, pieces: list[tuple[int, int, str]]) -> str:
    """The query's SQL with views in place of tables, as a format string."""
    parts, written = [], query.start
    for start, end, piece in sorted(pieces):
        parts.append(_braced(query.sql[written - query.start : start - query.start]))
        parts.append(piece)
        written = end
    parts.append(_braced(query.sql[written - query.start :]))
    return "".join(parts)


def _braced(sql: str) -> str:
    return sql.replace("{", "{{").replace("}", "}}")


def _require_named_tables(query: Query, around: Surroundings) -> None:
    """Refuse parts by which Spark would find more than the tables of the query, if only some are allowed."""
    tokens = tokens_of(SqlSource(query.sql), around.lexis)
    first = next(token for token in tokens if not token.is_symbol("("))
    if not any(first.is_word(word) for word in QUERY_WORDS):
        around.require_all_allowed(f"the statement {first.value.upper()[:40]}")
    if not query.is_parsed:
        around.require_all_allowed("a query with syntax that may hide a table")
    known = [(found.table.start - query.start, found.table.end - query.start) for found in query.tables]
    for token, after in pairwise(tokens):
        if after.is_symbol("(") and (token.is_word("IDENTIFIER") or token.is_word("STREAM")):
            around.require_all_allowed(f"{token.value.upper()}(...)")
        is_path = after.kind is TokenKind.NAME and any(character in after.value for character in "/:")
        is_known = any(start <= after.start < end for start, end in known)
        if token.is_symbol(".") and is_path and not is_known:
            around.require_all_allowed(after.value)


def _require_plain(found: FoundTable, around: Surroundings) -> None:
    around.require_all_allowed(f"{found.table.name}, which is not a table of this library")
    if found.changes is None and not found.table.is_time_travel:
        return
    what = "table_changes" if found.changes is not None else "Time travel"
    raise UnsupportedSqlError(
        f"{what} is not supported for {found.table.name}.",
        cause="It is not a table of this library, or it does not exist.",
        fix="Check the name, or write a path as delta.`/path`.",
    )


def table_frame(found: FoundTable, uri: str, around: Surroundings) -> DataFrame:
    """The rows, or the changes, of a table in a query."""
    if found.changes is not None:
        return _changes_frame(found, uri, around)
    return reference_frame(found.table, uri, around, where=found.where)


def _changes_frame(found: FoundTable, uri: str, around: Surroundings) -> DataFrame:
    changes = found.changes
    assert changes is not None
    bounds: dict[str, Any] = {}
    for side, bound in (("starting", changes.first), ("ending", changes.last)):
        if isinstance(bound, str):
            bounds[f"{side}_timestamp"] = around.epoch_ms(bound)
        elif bound is not None:
            bounds[f"{side}_version"] = bound
    return read_changes(
        around.spark,
        uri,
        **bounds,
        allowed_roots=around.allowed_roots,
        storage_options=around.storage_options,
        engine_io=around.engine_io,
        clock=around.clock,
    )


def reference_frame(
    table: TableReference, uri: str, around: Surroundings, *, where: tuple[str, ...] = ()
) -> DataFrame:
    """The rows of the files of a table that can satisfy some conditions."""
    snapshot = around.snapshot(uri, table)
    reach = around.reach(snapshot)
    predicate = _file_predicate(where, snapshot, around)
    live = Scan(snapshot, predicate=predicate, allowed_roots=reach.access.allowed_roots).live_files
    needed = [*_LIVE_COLUMNS, *(("deletion_vector", "stats") if live.has_deletion_vectors else ())]
    return read_files(around.spark, snapshot, live.to_table(needed), reach)


def _file_predicate(where: tuple[str, ...], snapshot: Snapshot, around: Surroundings) -> Expression | None:
    """The conditions by which files are left out. Spark evaluates the conditions on the rows itself."""
    terms = []
    for condition in where:
        if not around.semantics.reads(condition):
            continue
        try:
            term = resolve(parse_predicate(condition, snapshot.schema), snapshot.schema)
        except ExpressionError:
            continue
        if around.semantics.agrees(term, snapshot.schema):
            terms.append(term)
    if not terms:
        return None
    return terms[0] if len(terms) == 1 else And(tuple(terms))


def source_frame(source: TableReference | Query, around: Surroundings) -> DataFrame:
    """The rows of a table, of this library or of Spark, or of a query."""
    if isinstance(source, Query):
        return query_frame(source, around)
    source = around.at_version(source)
    address = around.find(source)
    if address is not None:
        return reference_frame(source, address.uri, around)
    _require_plain(FoundTable(table=source), around)
    return around.spark.table(quoted(source))
