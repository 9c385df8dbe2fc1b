"""OPTIMIZE, VACUUM, RESTORE, REORG, CONVERT, GENERATE and FSCK."""

from __future__ import annotations

from spark_jobs.sql_statements.parsing.columns import take_column
from spark_jobs.sql_statements.parsing.cursor import TRAVEL_WORDS, Cursor
from spark_jobs.sql_statements.parsing.tokens import TokenKind
from spark_jobs.sql_statements.statements import (
    ColumnDefinition,
    ConvertToDelta,
    Generate,
    Optimize,
    Reorganize,
    Repair,
    Restore,
    TableReference,
    Vacuum,
)


def take_optimize(cursor: Cursor) -> Optimize:
    """Take `OPTIMIZE`."""
    cursor.expect("OPTIMIZE")
    table = _table(cursor)
    full = cursor.accept("FULL")
    where = cursor.slice("condition", "ZORDER") if cursor.accept("WHERE") else None
    zorder: tuple[str, ...] = ()
    if cursor.accept("ZORDER"):
        cursor.expect("BY")
        if cursor.peek().is_symbol("("):
            paths = cursor.in_brackets(lambda: cursor.path("name of a column"))
        else:
            found = [cursor.path("name of a column")]
            while cursor.accept_symbol(","):
                found.append(cursor.path("name of a column"))
            paths = tuple(found)
        zorder = tuple(".".join(path) for path in paths)
    cursor.expect_end("OPTIMIZE")
    return Optimize(table=table, full=full, where=where, zorder_by=zorder)


def _table(cursor: Cursor) -> TableReference:
    """A table as a name, or as a path in a string."""
    cursor.accept("TABLE")
    token = cursor.peek()
    if token.kind is TokenKind.STRING or cursor.at_parameter():
        path = cursor.string("path of the table")
        return TableReference(parts=("delta", _path(cursor, path)), start=token.start, end=token.end)
    return cursor.reference()


def _path(cursor: Cursor, path: str) -> str:
    if "/" in path or "\\" in path:
        return path
    cursor.fail(
        f"{path!r} is not a path", cause="A path contains a slash.", fix="Write names without quotes."
    )


def take_vacuum(cursor: Cursor) -> Vacuum:
    """Take `VACUUM`."""
    cursor.expect("VACUUM")
    table = _table(cursor)
    lite = dry_run = False
    hours: float | None = None
    while not cursor.at_end:
        if cursor.at_any("FULL", "LITE"):
            lite = cursor.next().is_word("LITE")
        elif cursor.accept("RETAIN"):
            token = cursor.peek()
            hours = float(cursor.number("number of hours"))
            if hours < 0:
                cursor.fail("The number of hours is negative", token=token, fix="Write a number such as 168.")
            if not cursor.accept("HOURS"):
                cursor.expect("HOUR")
        elif cursor.accept("DRY", "RUN"):
            dry_run = True
        elif cursor.at("USING", "INVENTORY"):
            cursor.unsupported("VACUUM ... USING INVENTORY", fix="Leave it out: the files are listed.")
        else:
            cursor.expect_end("VACUUM")
    return Vacuum(table=table, lite=lite, retention_hours=hours, dry_run=dry_run)


def take_restore(cursor: Cursor) -> Restore:
    """Take `RESTORE`."""
    cursor.expect("RESTORE")
    cursor.accept("TABLE")
    name = cursor.reference(time_travel=True)
    if name.is_time_travel:
        cursor.expect_end("RESTORE")
        return Restore(table=name)
    cursor.accept("TO")
    if not any(cursor.peek().is_word(word) for word in TRAVEL_WORDS):
        cursor.fail("VERSION AS OF or TIMESTAMP AS OF is expected here")
    version, timestamp = cursor.time_travel()
    cursor.expect_end("RESTORE")
    return Restore(
        table=TableReference(
            parts=name.parts, version=version, timestamp=timestamp, start=name.start, end=name.end
        )
    )


def take_reorganize(cursor: Cursor) -> Reorganize:
    """Take `REORG TABLE`."""
    cursor.expect("REORG", "TABLE")
    table = cursor.reference()
    where = cursor.slice("condition", "APPLY") if cursor.accept("WHERE") else None
    cursor.expect("APPLY")
    cursor.expect_symbol("(")
    if not cursor.accept("PURGE"):
        cursor.unsupported(
            f"REORG TABLE ... APPLY ({cursor.peek().value.upper()})",
            fix="Use APPLY (PURGE), or change the table's properties.",
        )
    cursor.expect_symbol(")")
    cursor.expect_end("REORG TABLE")
    return Reorganize(table=table, where=where)


def take_convert(cursor: Cursor) -> ConvertToDelta:
    """Take `CONVERT TO DELTA`."""
    cursor.expect("CONVERT", "TO")
    if not cursor.accept("DELTAWARD"):
        cursor.expect("DELTA")
    token = cursor.peek()
    if token.kind is TokenKind.STRING or cursor.at_parameter():
        path = cursor.string("path")
    else:
        parts = cursor.path("parquet.`path`")
        if len(parts) != 2 or parts[0].lower() != "parquet":
            cursor.unsupported(
                f"CONVERT TO DELTA of {'.'.join(parts)}",
                token=token,
                cause="Only folders of Parquet files are converted.",
                fix="Write CONVERT TO DELTA parquet.`/path`.",
            )
        path = parts[1]
    statistics, partition_by = True, None
    while not cursor.at_end:
        if cursor.accept("NO", "STATISTICS"):
            statistics = False
        elif cursor.accept("PARTITIONED", "BY"):
            partition_by = cursor.in_brackets(lambda: _partition_column(cursor))
        else:
            cursor.expect_end("CONVERT TO DELTA")
    return ConvertToDelta(path=path, partition_by=partition_by, statistics=statistics)


def _partition_column(cursor: Cursor) -> ColumnDefinition:
    return take_column(cursor)


def take_generate(cursor: Cursor) -> Generate:
    """Take `GENERATE`."""
    cursor.expect("GENERATE")
    token = cursor.peek()
    mode = cursor.identifier("kind of manifest")
    if mode.lower() != "symlink_format_manifest":
        cursor.unsupported(f"GENERATE {mode}", token=token, fix="Use symlink_format_manifest.")
    cursor.expect("FOR", "TABLE")
    table = cursor.reference()
    cursor.expect_end("GENERATE")
    return Generate(table=table, mode=mode.lower())


def take_repair(cursor: Cursor) -> Repair:
    """Take `FSCK REPAIR TABLE`."""
    cursor.expect("FSCK", "REPAIR", "TABLE")
    table = cursor.reference()
    dry_run = cursor.accept("DRY", "RUN")
    cursor.expect_end("FSCK REPAIR TABLE")
    return Repair(table=table, dry_run=dry_run)
