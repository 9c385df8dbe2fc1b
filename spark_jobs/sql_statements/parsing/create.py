"""CREATE TABLE, REPLACE TABLE, CLONE and DROP TABLE."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from spark_jobs.sql_statements.parsing.columns import take_column
from spark_jobs.sql_statements.parsing.cursor import Cursor
from spark_jobs.sql_statements.parsing.query import QUERY_WORDS, at_query, query_between, take_query
from spark_jobs.sql_statements.parsing.tokens import TokenKind
from spark_jobs.sql_statements.statements import (
    CloneTable,
    ColumnDefinition,
    CreateMode,
    CreateTable,
    CreateView,
    DropTable,
    SelectStatement,
    SparkStatement,
    Statement,
    TableReference,
)

PROVIDERS = frozenset({"delta", "deltaward"})
"""The names after USING that mean a table of this library."""


def take_create(cursor: Cursor) -> Statement:
    """Take `CREATE` or `REPLACE`, of a table or of something else, which is left to Spark."""
    mode = CreateMode.REPLACE if cursor.accept("REPLACE") else CreateMode.CREATE
    if mode is CreateMode.CREATE:
        cursor.expect("CREATE")
        if cursor.accept("OR", "REPLACE"):
            mode = CreateMode.CREATE_OR_REPLACE
    for words in (
        ("STREAMING", "TABLE"),
        ("OR", "REFRESH"),
        ("MATERIALIZED", "VIEW"),
        ("BLOOMFILTER", "INDEX"),
    ):
        if cursor.at(*words):
            cursor.unsupported(f"CREATE {' '.join(words)}", fix="Create a table, and load it with jobs.")
    temporary = cursor.accept("TEMPORARY") or cursor.accept("TEMP")
    if cursor.at("VIEW") or (cursor.at("GLOBAL") and not cursor.at("GLOBAL", "TABLE")):
        return _view(cursor, temporary=temporary, replaces=mode is CreateMode.CREATE_OR_REPLACE)
    cursor.accept("EXTERNAL")
    if temporary or not cursor.accept("TABLE"):
        return left_to_spark(cursor, "CREATE")
    if cursor.accept("IF", "NOT", "EXISTS"):
        if mode is not CreateMode.CREATE:
            cursor.fail("OR REPLACE and IF NOT EXISTS exclude each other", fix="Use one of the two.")
        mode = CreateMode.IF_NOT_EXISTS
    table = cursor.reference()
    if table.path is None and _is_of_spark(cursor):
        return _left_with_query(cursor)
    if cursor.at("LIKE"):
        return _like(cursor, table, mode)
    if cursor.at("CLONE") or cursor.at("SHALLOW", "CLONE") or cursor.at("DEEP", "CLONE"):
        return _clone(cursor, table, mode)
    return _table(cursor, table, mode)


def left_to_spark(cursor: Cursor, what: str, tables: tuple[TableReference, ...] = ()) -> SparkStatement:
    """The whole statement as one of Spark's."""
    cursor.position = len(cursor.tokens) - 1
    return SparkStatement(sql=whole(cursor), what=what, tables=tables)


def _is_of_spark(cursor: Cursor) -> bool:
    """Whether the table has the format of another provider, by `USING`, `STORED AS` or `ROW FORMAT`."""
    depth = 0
    for index in range(cursor.position, len(cursor.tokens) - 1):
        token, after = cursor.tokens[index], cursor.tokens[index + 1]
        depth += token.is_symbol("(") - token.is_symbol(")")
        if depth or token.is_symbol(")"):
            continue
        if token.is_word("USING"):
            return after.value.lower() not in PROVIDERS
        if token.is_word("STORED") or (token.is_word("ROW") and after.is_word("FORMAT")):
            return True
        if token.is_word("AS") or any(token.is_word(word) for word in QUERY_WORDS):
            return False
    return False


def _left_with_query(cursor: Cursor) -> SelectStatement:
    """A statement of Spark, whose query may read tables of this library."""
    while not cursor.at_end and not cursor.at("AS"):
        cursor.next()
    inner = take_query(cursor) if cursor.accept("AS") and at_query(cursor) else None
    last = len(cursor.tokens) - 1
    outer = query_between(cursor, 0, last)
    cursor.position = last
    return SelectStatement(query=replace(outer, tables=() if inner is None else inner.tables))


def whole(cursor: Cursor) -> str:
    """The SQL of the whole statement."""
    return cursor.between(cursor.tokens[0].start, cursor.tokens[-1].start).strip()


def _view(cursor: Cursor, *, temporary: bool, replaces: bool) -> Statement:
    start = cursor.position
    if temporary and cursor.accept("VIEW") and not cursor.at("IF"):
        name = cursor.path("name of a view")
        if len(name) == 1 and cursor.accept("AS"):
            return CreateView(name=name[0], query=take_query(cursor), replace=replaces)
    cursor.position = start
    while not cursor.at_end and not cursor.at("AS"):
        cursor.next()
    tables: tuple[TableReference, ...] = ()
    if cursor.accept("AS") and at_query(cursor):
        tables = tuple(found.table for found in take_query(cursor).tables)
    return left_to_spark(cursor, "CREATE VIEW", tables)


def _like(cursor: Cursor, table: TableReference, mode: CreateMode) -> CreateTable:
    cursor.expect("LIKE")
    like = cursor.reference()
    options = _options(cursor)
    cursor.expect_end("CREATE TABLE ... LIKE")
    return CreateTable(table=table, mode=mode, like=like, **options)


def _clone(cursor: Cursor, table: TableReference, mode: CreateMode) -> CloneTable:
    shallow = cursor.accept("SHALLOW")
    if not shallow:
        cursor.accept("DEEP")
    cursor.expect("CLONE")
    source = cursor.reference(time_travel=True)
    properties: dict[str, str] = {}
    location = None
    while not cursor.at_end:
        if cursor.accept("TBLPROPERTIES"):
            properties = cursor.properties("table property")
        elif cursor.accept("LOCATION"):
            location = cursor.string("location")
        else:
            cursor.expect_end("CLONE")
    return CloneTable(
        table=table, source=source, mode=mode, shallow=shallow, properties=properties, location=location
    )


def _table(cursor: Cursor, table: TableReference, mode: CreateMode) -> CreateTable:
    columns: list[ColumnDefinition] | None = None
    constraints: list[tuple[str, str]] = []
    if cursor.peek().is_symbol("("):
        columns = []
        cursor.next()
        while True:
            if cursor.at("CONSTRAINT"):
                constraints.append(take_constraint(cursor))
            else:
                columns.append(take_column(cursor))
            if not cursor.accept_symbol(","):
                break
        cursor.expect_symbol(")")
    options = _options(cursor)
    added = options.pop("partition_columns", ())
    query = None
    if cursor.accept("AS") or at_query(cursor):
        query = take_query(cursor)
        if columns:
            cursor.fail(
                "CREATE TABLE ... AS cannot have a list of columns",
                token=cursor.tokens[0],
                cause="The query determines the columns.",
                fix="Leave out the list, or create the table first and insert the rows.",
            )
    cursor.expect_end("CREATE TABLE")
    if added:
        columns = [*(columns or ()), *added]
    return CreateTable(
        table=table,
        mode=mode,
        columns=None if columns is None else tuple(columns),
        query=query,
        constraints=tuple(constraints),
        **options,
    )


def take_constraint(cursor: Cursor) -> tuple[str, str]:
    """Take `CONSTRAINT name CHECK (condition)`."""
    cursor.expect("CONSTRAINT")
    name = cursor.identifier("name of a constraint")
    if not cursor.accept("CHECK"):
        cursor.unsupported(
            f"A constraint with {cursor.peek().value.upper() or 'no condition'}",
            fix="Use CHECK (condition). Keys are not enforced by Delta tables.",
        )
    cursor.expect_symbol("(")
    condition = cursor.slice("condition").sql
    cursor.expect_symbol(")")
    while cursor.accept("ENFORCED"):
        pass
    return name, condition


def _options(cursor: Cursor) -> dict[str, Any]:
    """The clauses between the columns and the query, in any order, each once."""
    options: dict[str, Any] = {}

    def put(key: str, value: Any) -> None:
        if key in options:
            cursor.fail(
                f"The clause {key.replace('_', ' ').upper()} is given twice", fix="Remove one of them."
            )
        options[key] = value

    while True:
        if cursor.accept("USING"):
            put("provider", ".".join(cursor.path("name of a format")).lower())
        elif cursor.accept("PARTITIONED", "BY"):
            names, added = _partitioning(cursor)
            put("partition_by", names)
            if added:
                options["partition_columns"] = added
        elif cursor.at("CLUSTER", "BY"):
            put("cluster_by", take_cluster_by(cursor))
        elif cursor.accept("LOCATION"):
            put("location", cursor.string("location"))
        elif cursor.accept("COMMENT"):
            put("comment", cursor.string("comment"))
        elif cursor.accept("TBLPROPERTIES"):
            put("properties", cursor.properties("table property"))
        elif cursor.at_any("OPTIONS", "CLUSTERED", "SKEWED", "ROW", "STORED", "WITH", "DEFAULT"):
            if cursor.at("WITH") and not cursor.at("WITH", "ROW"):
                return options
            cursor.unsupported(
                f"The clause {cursor.peek().value.upper()} of CREATE TABLE",
                fix="Use TBLPROPERTIES for settings, and CLUSTER BY for the layout.",
            )
        else:
            return options


def _partitioning(cursor: Cursor) -> tuple[tuple[str, ...], tuple[ColumnDefinition, ...]]:
    """The partition columns, as names or as definitions."""
    added: list[ColumnDefinition] = []

    def one() -> str:
        name = cursor.identifier("name of a column")
        if cursor.peek().is_symbol("("):
            cursor.unsupported(
                f"Partitioning by the function {name}",
                fix="Add a generated column with the expression, and partition by it.",
            )
        if cursor.peek().kind is TokenKind.WORD:
            added.append(take_column(cursor, name))
        return name

    return cursor.in_brackets(one), tuple(added)


def take_cluster_by(cursor: Cursor) -> tuple[tuple[str, ...], ...] | None:
    """Take `CLUSTER BY (columns)` or `CLUSTER BY NONE`."""
    cursor.expect("CLUSTER", "BY")
    if cursor.accept("NONE"):
        return None
    if cursor.at("AUTO"):
        cursor.unsupported("CLUSTER BY AUTO", fix="Name the columns.")
    return cursor.in_brackets(lambda: cursor.path("name of a column"))


def take_drop(cursor: Cursor) -> Statement:
    """Take `DROP TABLE`, or leave another `DROP` to Spark."""
    cursor.expect("DROP")
    if not cursor.accept("TABLE"):
        if cursor.at("BLOOMFILTER"):
            cursor.unsupported("DROP BLOOMFILTER INDEX", fix="Leave it out.")
        return left_to_spark(cursor, "DROP")
    if_exists = cursor.accept("IF", "EXISTS")
    table = cursor.reference()
    cursor.accept("PURGE")
    cursor.expect_end("DROP TABLE")
    return DropTable(table=table, if_exists=if_exists, sql=whole(cursor))
