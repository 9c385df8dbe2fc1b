"""Queries: which tables they read, and the conditions that they have for each table.

sqlglot parses a copy of the SQL in which time travel is blank and a call of `table_changes` is a name,
so that all places stay the same. Spark gets the SQL itself, in which only names of tables are replaced.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from delta_core.expressions.parse import check_nesting
from delta_core.expressions.sql_functions import PlainCalls
from spark_jobs.sql_statements.parsing.cursor import TRAVEL_WORDS, Cursor
from spark_jobs.sql_statements.parsing.tokens import SqlSource, TokenKind, tokens_of
from spark_jobs.sql_statements.statements import ChangeRange, FoundTable, Query, Slice, TableReference

QUERY_WORDS = ("SELECT", "WITH", "VALUES", "FROM", "TABLE")
"""The words that begin a query."""

_NOT_ALIASES = frozenset(
    [
        "FROM",
        "WHERE",
        "ON",
        "JOIN",
        "GROUP",
        "ORDER",
        "UNION",
        "USING",
        "WHEN",
        "SELECT",
        "LEFT",
        "RIGHT",
        "FULL",
        "INNER",
        "CROSS",
        "NATURAL",
        "SEMI",
        "ANTI",
        "HAVING",
        "LIMIT",
        "SORT",
        "CLUSTER",
        "DISTRIBUTE",
        "LATERAL",
        "WINDOW",
        "EXCEPT",
        "INTERSECT",
        "MINUS",
        "PIVOT",
        "UNPIVOT",
        "TABLESAMPLE",
        "SET",
        "OFFSET",
        "QUALIFY",
        "VALUES",
        "RETURN",
        "AS",
        "BY",
        "AND",
        "OR",
        "NOT",
    ]
)
_PRUNING_LIMIT = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Special:
    """Time travel after a name (`is_changes` False), or a call of `table_changes`, by its place."""

    start: int
    end: int
    version: int | None = None
    timestamp: Slice | None = None
    table: TableReference | None = None
    changes: ChangeRange | None = None


def at_query(cursor: Cursor) -> bool:
    """Whether a query is next."""
    ahead = 0
    while cursor.peek(ahead).is_symbol("("):
        ahead += 1
    return any(cursor.peek(ahead).is_word(word) for word in QUERY_WORDS)


def take_query(cursor: Cursor) -> Query:
    """Take a query, which ends at the end of the statement or at a closing bracket.

    Raises:
        InvalidSqlError: no query is next, or its brackets do not match.
    """
    first = cursor.position
    cursor.pass_over("query")
    return query_between(cursor, first, cursor.position)


def query_between(cursor: Cursor, first: int, last: int) -> Query:
    """The query of the tokens from the first to before the last."""
    start, end = cursor.tokens[first].start, cursor.tokens[last - 1].end
    specials = list(_specials(cursor, first, last))
    parameters: set[str] = set()
    positional: list[int] = []
    for at in range(first, last):
        token = cursor.tokens[at]
        if cursor.at_parameter(at) and not any(s.start <= token.start < s.end for s in specials):
            if token.is_symbol("?"):
                positional.append(cursor.question_mark(at))
            else:
                parameters.add(cursor.tokens[at + 1].value)
    tables, is_parsed = _tables(cursor, first, last, specials)
    return Query(
        sql=cursor.between(start, end),
        start=start,
        tables=tables,
        parameters=frozenset(parameters),
        positional=tuple(positional),
        is_parsed=is_parsed,
    )


def _specials(cursor: Cursor, first: int, last: int) -> Iterator[_Special]:
    """Time travel and calls of `table_changes` in a query."""
    saved = cursor.position
    cursor.position = first
    while cursor.position < last:
        token = cursor.peek()
        before = cursor.tokens[cursor.position - 1] if cursor.position > first else None
        follows_name = before is not None and (
            before.kind is TokenKind.NAME
            or (before.kind is TokenKind.WORD and before.value.upper() not in _NOT_ALIASES)
        )
        if token.is_word("TABLE_CHANGES") and cursor.peek(1).is_symbol("("):
            yield _changes(cursor)
        elif token.is_symbol("@") and follows_name and before is not None and before.end == token.start:
            version, timestamp = cursor.at_suffix()
            yield _Special(start=token.start, end=_end(cursor), version=version, timestamp=timestamp)
        elif follows_name and _may_travel(cursor) and cursor.at_time_travel():
            version, timestamp = cursor.time_travel()
            yield _Special(start=token.start, end=_end(cursor), version=version, timestamp=timestamp)
        else:
            cursor.next()
            if cursor.at_end:
                break
    cursor.position = saved


def _may_travel(cursor: Cursor) -> bool:
    ahead = 1 if cursor.at("FOR") else 0
    return any(cursor.peek(ahead).is_word(word) for word in TRAVEL_WORDS)


def _end(cursor: Cursor) -> int:
    return cursor.tokens[cursor.position - 1].end


def _changes(cursor: Cursor) -> _Special:
    """A call of `table_changes('name', first [, last])`."""
    start = cursor.next().start
    cursor.expect_symbol("(")
    token = cursor.peek()
    name = cursor.string("name of a table") if not _is_name(cursor) else None
    if name is None:
        table = cursor.reference()
    else:
        source = SqlSource(name)
        inner = Cursor(source, tokens_of(source, cursor.lexis), lexis=cursor.lexis)
        table = TableReference(parts=inner.path("name of a table"), start=token.start, end=token.end)
        if not inner.at_end:
            cursor.fail(
                "The first argument of table_changes is not the name of a table",
                token=token,
                fix="Write a name such as 'db.t', with backticks around special characters.",
            )
    cursor.expect_symbol(",")
    bounds = [_bound_of(cursor)]
    if cursor.accept_symbol(","):
        bounds.append(_bound_of(cursor))
    cursor.expect_symbol(")")
    changes = ChangeRange(first=bounds[0], last=bounds[1] if len(bounds) > 1 else None)
    return _Special(start=start, end=_end(cursor), table=table, changes=changes)


def _is_name(cursor: Cursor) -> bool:
    return cursor.peek().kind in (TokenKind.WORD, TokenKind.NAME)


def _bound_of(cursor: Cursor) -> int | str:
    if cursor.at_parameter():
        token = cursor.peek()
        value = cursor.parameter()
        if isinstance(value, int | str) and not isinstance(value, bool):
            return value
        cursor.fail(
            "A bound of table_changes must be a version or a timestamp as a string",
            token=token,
            fix="Pass a whole number or a string.",
        )
    if cursor.peek().kind is TokenKind.STRING:
        return cursor.string("timestamp")
    return cursor.integer("version")


def _tables(
    cursor: Cursor, first: int, last: int, specials: list[_Special]
) -> tuple[tuple[FoundTable, ...], bool]:
    """The tables of a query, and whether they are all of them."""
    if not any(
        cursor.tokens[at].is_word(word) for at in range(first, last) for word in ("FROM", "JOIN", "TABLE")
    ):
        return (), True
    start, end = cursor.tokens[first].start, cursor.tokens[last - 1].end
    sql = cursor.between(start, end)
    for special in specials:
        width = special.end - special.start
        blank = " " * width if special.changes is None else "_" * width
        sql = sql[: special.start - start] + blank + sql[special.end - start :]
    try:
        check_nesting(sql)
        trees = sqlglot.parse(sql, dialect=PlainCalls)
    except (SqlglotError, RecursionError):
        return tuple(_scanned(cursor, first, last, specials)), False
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        return tuple(_scanned(cursor, first, last, specials)), False
    piped = _is_piped(cursor, first, last)
    found = _parsed(cursor, trees[0], start, specials, piped=piped)
    return tuple(sorted(found, key=lambda one: one.table.start)), True


def _is_piped(cursor: Cursor, first: int, last: int) -> bool:
    """Whether the query has `|>`. In sqlglot's tree its WHERE may come before an earlier LIMIT."""
    return any(
        cursor.tokens[at].is_symbol("|") and cursor.tokens[at + 1].is_symbol(">") for at in range(first, last)
    )


def _parsed(
    cursor: Cursor, tree: Any, start: int, specials: list[_Special], *, piped: bool
) -> Iterator[FoundTable]:
    """The tables in sqlglot's tree."""
    for node in tree.find_all(exp.Table):
        parts = node.parts
        if not all(isinstance(part, exp.Identifier) and "start" in part.meta for part in parts):
            continue
        if len(parts) == 1 and _is_common_table(node, parts[0].name):
            continue
        begins, ends = start + parts[0].meta["start"], start + parts[-1].meta["end"] + 1
        reference, ends, changes = _with_special(
            [part.name for part in parts], begins, ends, specials, cursor
        )
        yield FoundTable(
            table=reference,
            alias_at=None if node.alias else _alias_place(cursor, ends),
            where=() if piped or changes is not None else _conditions(cursor, node),
            changes=changes,
        )


def _with_special(
    parts: list[str], begins: int, ends: int, specials: list[_Special], cursor: Cursor
) -> tuple[TableReference, int, ChangeRange | None]:
    """A table by its place, with the time travel after it, or the call in its place."""
    for special in specials:
        if special.table is not None and special.start == begins:
            reference = TableReference(parts=special.table.parts, start=begins, end=special.end)
            return reference, special.end, special.changes
        if (
            special.table is None
            and special.start >= ends
            and not cursor.between(ends, special.start).strip()
        ):
            reference = TableReference(
                parts=tuple(parts),
                version=special.version,
                timestamp=special.timestamp,
                start=begins,
                end=special.end,
            )
            return reference, special.end, None
    return TableReference(parts=tuple(parts), start=begins, end=ends), ends, None


def _alias_place(cursor: Cursor, ends: int) -> int:
    """The place after a table without an alias, and after its `TABLESAMPLE (...)`."""
    at = next(index for index, token in enumerate(cursor.tokens) if token.start >= ends)
    if not cursor.tokens[at].is_word("TABLESAMPLE"):
        return ends
    depth = 0
    for token in cursor.tokens[at:]:
        depth += token.is_symbol("(") - token.is_symbol(")")
        if token.is_symbol(")") and depth == 0:
            return token.end
    return ends


def _is_common_table(node: exp.Table, name: str) -> bool:
    """Whether a name is that of a common table expression (`WITH name AS ...`)."""
    below: Any = node
    above = node.parent
    while above is not None:
        with_ = above if isinstance(above, exp.With) else above.args.get("with_")
        if isinstance(with_, exp.With) and with_ is not below:
            for item in with_.expressions:
                if item is below and not with_.args.get("recursive"):
                    break
                if item.alias.casefold() == name.casefold():
                    return True
        below, above = above, above.parent
    return False


def _conditions(cursor: Cursor, node: exp.Table) -> tuple[str, ...]:
    """Conditions on the columns of one table that all rows of its SELECT satisfy, as SQL."""
    select = node.find_ancestor(exp.Select)
    where = None if select is None else select.args.get("where")
    if select is None or where is None or node.args.get("sample") or not _is_kept(node, select):
        return ()
    if node.alias_column_names or select.find(exp.Pivot) is not None:
        return ()  # the names in WHERE are not those of the table's columns
    joins = select.args.get("joins") or ()
    is_alone = not joins and not select.args.get("laterals")
    alias = (node.alias or node.name).casefold()
    found = []
    for term in _terms(where.this):
        condition = _own_condition(cursor, term, alias, is_alone=is_alone)
        if condition is not None:
            found.append(condition)
    return tuple(found)


def _is_kept(node: exp.Table, select: exp.Select) -> bool:
    """Whether no join adds rows in which the table's columns are null."""
    joins = select.args.get("joins") or ()
    holder = node.parent
    is_first = isinstance(holder, exp.From) and holder.parent is select
    if not is_first and holder not in joins:
        return False
    allowed = ("", "LEFT") if is_first else ("",)
    kinds = ("", "INNER", "CROSS", "OUTER", "SEMI", "ANTI") if is_first else ("", "INNER", "CROSS")
    return all(
        (join.args.get("side") or "").upper() in allowed and (join.args.get("kind") or "").upper() in kinds
        for join in joins
    )


def _terms(node: exp.Expression) -> Iterator[exp.Expression]:
    pending = [node]
    while pending:
        current = pending.pop()
        if isinstance(current, exp.And):
            pending.extend((current.expression, current.this))
        elif isinstance(current, exp.Paren):
            pending.append(current.this)
        else:
            yield current


def _own_condition(cursor: Cursor, term: exp.Expression, alias: str, *, is_alone: bool) -> str | None:
    """A condition without the table's alias; None when it depends on more than the table's columns."""
    copy = term.copy()
    if copy.find(exp.Query, exp.Exists) is not None:
        return None
    if copy.find(exp.Concat) is not None:  # 'it''s', of which versions of Spark make different strings
        return None
    for column in list(copy.find_all(exp.Column)):
        parts = column.parts
        if len(parts) > 1 and parts[0].name.casefold() == alias:
            for key in ("catalog", "db", "table"):
                if column.args.get(key) is parts[0]:
                    column.set(key, None)
        elif not is_alone:
            return None
    for node in [copy, *copy.find_all(exp.Placeholder, exp.Parameter)]:
        if isinstance(node, exp.Placeholder | exp.Parameter):
            value = _constant(cursor, node)
            if value is None or node is copy:
                return None
            node.replace(value)
    try:
        condition = str(copy.sql(dialect=PlainCalls))
    except (SqlglotError, RecursionError):
        return None
    return condition if len(condition) <= _PRUNING_LIMIT else None


def _constant(cursor: Cursor, node: exp.Expression) -> exp.Expression | None:
    """The value of a named parameter; None when it cannot be used for pruning."""
    name = node.this if isinstance(node.this, str) else getattr(node.this, "name", None)
    value = cursor.bindings.named.get(name) if isinstance(name, str) else None
    if isinstance(value, str):
        return exp.Literal.string(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return exp.Literal.number(value) if value >= 0 else exp.Neg(this=exp.Literal.number(-value))
    return None


def _is_table_query(cursor: Cursor, at: int, first: int) -> bool:
    """Whether the word at this token is that of the query `TABLE name`."""
    if not cursor.tokens[at].is_word("TABLE"):
        return False
    before = cursor.tokens[at - 1]
    return (
        at == first
        or before.is_symbol("(")
        or before.value.upper() in ("ALL", "UNION", "EXCEPT", "INTERSECT")
    )


def _scanned(cursor: Cursor, first: int, last: int, specials: list[_Special]) -> Iterator[FoundTable]:
    """The tables of a query that sqlglot does not parse: the names after FROM and JOIN."""
    common = {
        cursor.tokens[at].value.casefold()
        for at in range(first, last - 2)
        if cursor.tokens[at + 1].is_word("AS") and cursor.tokens[at + 2].is_symbol("(")
    }
    at = first
    while at < last - 1:
        token, after = cursor.tokens[at], cursor.tokens[at + 1]
        at += 1
        special = next((one for one in specials if one.table is not None and one.start == token.start), None)
        if special is not None:
            reference, ends, changes = _with_special([], token.start, special.end, specials, cursor)
            yield FoundTable(table=reference, changes=changes)
            continue
        if not (token.is_word("FROM") or token.is_word("JOIN") or _is_table_query(cursor, at - 1, first)):
            continue
        if after.kind not in (TokenKind.WORD, TokenKind.NAME):
            continue
        parts, index = [after.value], at + 1
        while index + 1 < last and cursor.tokens[index].is_symbol("."):
            parts.append(cursor.tokens[index + 1].value)
            index += 2
        if cursor.tokens[index].is_symbol("(") or (len(parts) == 1 and parts[0].casefold() in common):
            continue
        ends = cursor.tokens[index - 1].end
        reference, ends, _ = _with_special(parts, after.start, ends, specials, cursor)
        if token.is_word("TABLE"):
            yield FoundTable(table=reference)
            continue
        following = next(token for token in cursor.tokens if token.start >= ends)
        has_alias = following.kind is TokenKind.NAME or (
            following.kind is TokenKind.WORD
            and (following.value.upper() not in _NOT_ALIASES or following.is_word("AS"))
        )
        yield FoundTable(table=reference, alias_at=None if has_alias else _alias_place(cursor, ends))
