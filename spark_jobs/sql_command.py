"""`deltaward sql`: runs SQL statements and prints their results."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from delta_core.errors import ConfigurationError, escape_control_characters
from spark_jobs.session import get_session
from spark_jobs.sql_statements.parsing.parse import split_statements
from spark_jobs.sql_statements.sql import sql

app = typer.Typer(help="Run SQL statements.", add_completion=False, rich_markup_mode=None)

MOST_WIDTH = 60
"""The maximum number of characters of a value in a printed table."""


@app.command()
def run(
    statement: Annotated[
        str | None, typer.Argument(metavar="[STATEMENT]", help="SQL. Without it, a script is read.")
    ] = None,
    *,
    file: Annotated[
        Path | None, typer.Option(help="A script with statements; standard input without it.")
    ] = None,
    parameter: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A value of :NAME. It can be repeated.")
    ] = None,
    remote: Annotated[str | None, typer.Option(help="Spark Connect URL, sc://host:port.")] = None,
    master: Annotated[str | None, typer.Option(help="Spark master, such as local[2].")] = None,
    rows: Annotated[int, typer.Option(min=1, help="The maximum number of rows of a result.")] = 1000,
    as_json: Annotated[bool, typer.Option("--json", help="Print each row as a JSON object.")] = False,
) -> None:
    """Run SQL statements over Delta tables, and print their results. The first error ends the script."""
    statements = _statements(statement, file)
    parameters = dict(_pair(item) for item in parameter or ())
    spark = get_session(remote, master=master or (None if remote else "local[*]"), app_name="deltaward sql")
    try:
        for one in statements:
            frame = sql(spark, one, parameters)
            if not frame.columns:
                continue
            found = frame.limit(rows + 1).toArrow().to_pylist()
            _print(frame.columns, found[:rows], as_json=as_json)
            if len(found) > rows:
                sys.stderr.write(f"There are more than {rows} rows; see --rows.\n")
    finally:
        spark.stop()


def _statements(statement: str | None, file: Path | None) -> list[str]:
    if statement is not None and file is not None:
        raise ConfigurationError("Both a statement and a file are given.", fix="Pass one of them.")
    if statement is not None:
        text = statement
    else:
        try:
            text = sys.stdin.read() if file is None else file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(
                f"The script {file or 'on standard input'} cannot be read.",
                cause=str(error),
                fix="Give a file with UTF-8 text.",
            ) from error
    found = split_statements(text)
    if not found:
        raise ConfigurationError("There is no statement.", fix="Write one SQL statement, or several with ;.")
    return found


def _pair(item: str) -> tuple[str, str]:
    name, sign, value = item.partition("=")
    if not sign or not name.isidentifier():
        raise ConfigurationError(
            f"{item!r} is not a parameter.", fix="Write --parameter NAME=VALUE; the value is a string."
        )
    return name, value


def _print(columns: Sequence[str], rows: Sequence[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        for row in rows:
            sys.stdout.write(json.dumps(row, default=str) + "\n")
        return
    cells = [[_shown(row[name]) for name in columns] for row in rows]
    head = [_shown(name) for name in columns]
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    for line in (head, ["-" * width for width in widths], *cells):
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        sys.stdout.write("  ".join(padded).rstrip() + "\n")
    sys.stdout.write("\n")


def _shown(value: Any) -> str:
    text = escape_control_characters("NULL" if value is None else str(value))
    return text if len(text) <= MOST_WIDTH else f"{text[: MOST_WIDTH - 3]}..."
