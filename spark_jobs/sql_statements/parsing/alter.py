"""ALTER TABLE and COMMENT ON TABLE."""

from __future__ import annotations

from typing import Any

from spark_jobs.sql_statements.parsing.columns import take_column, take_default
from spark_jobs.sql_statements.parsing.create import left_to_spark, take_cluster_by, take_constraint, whole
from spark_jobs.sql_statements.parsing.cursor import Cursor
from spark_jobs.sql_statements.parsing.tokens import TokenKind
from spark_jobs.sql_statements.parsing.types import take_type
from spark_jobs.sql_statements.statements import (
    AddColumns,
    AddConstraint,
    AddedColumn,
    AlterColumn,
    ClusterBy,
    CommentOnTable,
    DropColumns,
    DropConstraint,
    DropFeature,
    Position,
    RenameColumn,
    RenameTable,
    SetLocation,
    SetProperties,
    Statement,
    TableReference,
    UnsetProperties,
)


def take_alter(cursor: Cursor) -> Statement:
    """Take `ALTER TABLE`, or leave another `ALTER` to Spark."""
    cursor.expect("ALTER")
    if not cursor.accept("TABLE"):
        return left_to_spark(cursor, "ALTER")
    table = cursor.reference()
    statement = _change(cursor, table)
    cursor.expect_end("ALTER TABLE")
    return statement


def _change(cursor: Cursor, table: TableReference) -> Statement:
    if cursor.accept("ADD"):
        return _add(cursor, table)
    if cursor.accept("DROP"):
        return _drop(cursor, table)
    if cursor.accept("RENAME"):
        if cursor.accept("TO"):
            return RenameTable(table=table, name=cursor.reference(), sql=whole(cursor))
        if cursor.at("PARTITION"):
            return _refused(cursor, "RENAME PARTITION")
        cursor.expect("COLUMN")
        column = cursor.path("name of a column")
        cursor.expect("TO")
        return RenameColumn(table=table, column=column, name=cursor.identifier("name of a column"))
    if cursor.accept("ALTER") or cursor.accept("CHANGE"):
        return _column(cursor, table)
    if cursor.accept("SET"):
        return _set(cursor, table)
    if cursor.accept("UNSET"):
        if not cursor.accept("TBLPROPERTIES"):
            return _refused(cursor, f"UNSET {cursor.peek().value.upper()}")
        if_exists = cursor.accept("IF", "EXISTS")
        return UnsetProperties(table=table, keys=cursor.in_brackets(cursor.property_key), if_exists=if_exists)
    if cursor.at("CLUSTER", "BY"):
        return ClusterBy(table=table, columns=take_cluster_by(cursor))
    return _refused(cursor, cursor.peek().value.upper() or "nothing")


def _refused(cursor: Cursor, what: str) -> Statement:
    cursor.unsupported(f"ALTER TABLE ... {what}", fix="docs/sql.md lists the supported changes of a table.")


def _add(cursor: Cursor, table: TableReference) -> Statement:
    if cursor.at("CONSTRAINT"):
        name, condition = take_constraint(cursor)
        return AddConstraint(table=table, name=name, condition=condition)
    if not (cursor.accept("COLUMNS") or cursor.accept("COLUMN")):
        return _refused(cursor, f"ADD {cursor.peek().value.upper()}")
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    if cursor.peek().is_symbol("("):
        return AddColumns(
            table=table, columns=cursor.in_brackets(lambda: _added(cursor)), if_not_exists=if_not_exists
        )
    columns = [_added(cursor)]
    while cursor.accept_symbol(","):
        columns.append(_added(cursor))
    return AddColumns(table=table, columns=tuple(columns), if_not_exists=if_not_exists)


def _added(cursor: Cursor) -> AddedColumn:
    path = cursor.path("name of a column")
    definition = take_column(cursor, path[-1])
    return AddedColumn(definition=definition, parent=path[:-1], position=_position(cursor))


def _position(cursor: Cursor) -> Position | None:
    if cursor.accept("FIRST"):
        return Position()
    return Position(after=cursor.identifier("name of a column")) if cursor.accept("AFTER") else None


def _drop(cursor: Cursor, table: TableReference) -> Statement:
    if cursor.accept("CONSTRAINT"):
        if_exists = cursor.accept("IF", "EXISTS")
        return DropConstraint(
            table=table, name=cursor.identifier("name of a constraint"), if_exists=if_exists
        )
    if cursor.accept("FEATURE"):
        token = cursor.peek()
        feature = cursor.string("feature") if token.kind is TokenKind.STRING else cursor.identifier("feature")
        truncate = cursor.accept("TRUNCATE", "HISTORY")
        return DropFeature(table=table, feature=feature, truncate_history=truncate)
    if not (cursor.accept("COLUMNS") or cursor.accept("COLUMN")):
        return _refused(cursor, f"DROP {cursor.peek().value.upper()}")
    if_exists = cursor.accept("IF", "EXISTS")
    if cursor.peek().is_symbol("("):
        columns = cursor.in_brackets(lambda: cursor.path("name of a column"))
    else:
        found = [cursor.path("name of a column")]
        while cursor.accept_symbol(","):
            found.append(cursor.path("name of a column"))
        columns = tuple(found)
    return DropColumns(table=table, columns=columns, if_exists=if_exists)


_ACTIONS = ("TYPE", "COMMENT", "SET", "DROP", "FIRST", "AFTER", "SYNC")


def _column(cursor: Cursor, table: TableReference) -> AlterColumn:
    cursor.accept("COLUMN")
    column = cursor.path("name of a column")
    if not cursor.at_any(*_ACTIONS):
        return _hive_change(cursor, table, column)
    changes: dict[str, Any] = {}
    if cursor.accept("TYPE"):
        changes["data_type"] = take_type(cursor)
    elif cursor.accept("COMMENT"):
        changes["comment"] = cursor.string("comment")
    elif cursor.accept("SET", "NOT", "NULL") or cursor.at("DROP", "NOT", "NULL"):
        changes["nullable"] = cursor.accept("DROP", "NOT", "NULL")
    elif cursor.accept("SET", "DEFAULT"):
        changes["default"] = take_default(cursor)
    elif cursor.accept("DROP", "DEFAULT"):
        changes["drop_default"] = True
    elif cursor.accept("SYNC", "IDENTITY"):
        changes["sync_identity"] = True
    elif (position := _position(cursor)) is not None:
        changes["position"] = position
    else:
        cursor.unsupported(
            f"ALTER COLUMN ... {cursor.peek().value.upper()} {cursor.peek(1).value.upper()}".rstrip(),
            fix="docs/sql.md lists the supported changes of a column.",
        )
    if cursor.peek().is_symbol(","):
        cursor.unsupported("ALTER COLUMN of several columns", fix="Write one statement for each column.")
    return AlterColumn(table=table, column=column, **changes)


def _hive_change(cursor: Cursor, table: TableReference, column: tuple[str, ...]) -> AlterColumn:
    """`CHANGE COLUMN old new type [COMMENT comment] [FIRST | AFTER column]`."""
    path = cursor.path("name of a column")
    definition = take_column(cursor, path[-1])
    new_name = path[-1] if path[-1] != column[-1] else None
    return AlterColumn(
        table=table,
        column=column,
        data_type=definition.data_type,
        comment=definition.comment,
        nullable=None if definition.nullable else False,
        position=_position(cursor),
        new_name=new_name,
    )


def _set(cursor: Cursor, table: TableReference) -> Statement:
    if cursor.accept("TBLPROPERTIES"):
        return SetProperties(table=table, properties=cursor.properties("table property"))
    if cursor.accept("LOCATION"):
        return SetLocation(table=table, location=cursor.string("location"))
    return _refused(cursor, f"SET {cursor.peek().value.upper()}")


def take_comment(cursor: Cursor) -> Statement:
    """Take `COMMENT ON TABLE`, or leave another `COMMENT ON` to Spark."""
    cursor.expect("COMMENT", "ON")
    if not cursor.accept("TABLE"):
        return left_to_spark(cursor, "COMMENT ON")
    table = cursor.reference()
    cursor.expect("IS")
    comment = None if cursor.accept("NULL") else cursor.string("comment")
    cursor.expect_end("COMMENT ON TABLE")
    return CommentOnTable(table=table, comment=comment)
