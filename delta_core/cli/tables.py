"""Tables on standard output, by rich."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from delta_core.errors import escape_control_characters

_UNPIPED_WIDTH = 160


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str | None = None) -> None:
    """Print a table on standard output. Numeric columns are right-aligned."""
    table = Table(title=title, title_justify="left", header_style="bold")
    listed = [list(row) for row in rows]
    for index, name in enumerate(columns):
        numeric = bool(listed) and all(isinstance(row[index], int | float | None) for row in listed)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in listed:
        table.add_row(*(_safe(value) for value in row))
    _standard_output().print(table)


def print_facts(facts: Iterable[tuple[str, Any]], *, title: str | None = None) -> None:
    """Print names and values, one pair a line."""
    table = Table(title=title, title_justify="left", show_header=False, box=None)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(_safe(name), _safe(value))
    _standard_output().print(table)


def _safe(value: Any) -> Text:
    """The value without control characters or markup."""
    return Text("" if value is None else escape_control_characters(str(value)))


def _standard_output() -> Console:
    # A pipe has no width; the default of eighty columns would break paths.
    width = None if sys.stdout.isatty() else _UNPIPED_WIDTH
    return Console(file=sys.stdout, width=width, highlight=False)
