"""Writing to the terminal: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from delta_core.errors import (
    CommitStateUnknownError,
    ConfigurationError,
    DeltaError,
    ExpressionError,
    InvalidJobSpecError,
    InvalidUriError,
    RetentionTooShortError,
    escape_control_characters,
)
from delta_core.jobs.job_result import JobStatus

SUCCESS, FAILED, BAD_INPUT, UNKNOWN, NOT_CHECKED = 0, 1, 2, 3, 4
"""Exit codes. `UNKNOWN`: whether a commit landed could not be told; look before running again.
`NOT_CHECKED`: a store could not be checked, so nothing is known of it."""

_UNPIPED_WIDTH = 160
_BAD_INPUT_CODES = frozenset(
    error.code
    for error in (
        InvalidJobSpecError,
        ConfigurationError,
        InvalidUriError,
        ExpressionError,
        RetentionTooShortError,
    )
)


def exit_code(status: JobStatus, error_code: str | None = None) -> int:
    """The exit code for a job's outcome."""
    if status is JobStatus.SUCCEEDED:
        return SUCCESS
    if status is JobStatus.UNKNOWN:
        return UNKNOWN
    return BAD_INPUT if error_code in _BAD_INPUT_CODES else FAILED


def exit_code_of(error: DeltaError) -> int:
    """The exit code for an error."""
    status = JobStatus.UNKNOWN if isinstance(error, CommitStateUnknownError) else JobStatus.FAILED
    return exit_code(status, error.code)


def safe(value: Any) -> Text:
    """Text that can neither drive the terminal nor be taken for markup."""
    return Text("" if value is None else escape_control_characters(str(value)))


def print_json(document: Any) -> None:
    """One JSON document on standard output, control characters escaped."""
    sys.stdout.write(json.dumps(document, indent=2, default=str) + "\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str | None = None) -> None:
    """A table on standard output; numbers stand right."""
    table = Table(title=title, title_justify="left", header_style="bold")
    listed = [list(row) for row in rows]
    for index, name in enumerate(columns):
        numeric = bool(listed) and all(isinstance(row[index], int | float | None) for row in listed)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in listed:
        table.add_row(*(safe(value) for value in row))
    _standard_output().print(table)


def print_facts(facts: Iterable[tuple[str, Any]], *, title: str | None = None) -> None:
    """Names and values, one a line."""
    table = Table(title=title, title_justify="left", show_header=False, box=None)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(safe(name), safe(value))
    _standard_output().print(table)


def print_line(text: str) -> None:
    """One line on standard output."""
    sys.stdout.write(escape_control_characters(text) + "\n")


def print_note(text: str) -> None:
    """One line on standard error."""
    sys.stderr.write(escape_control_characters(text) + "\n")


def print_error(message: str) -> None:
    """A DeltaError's text, problem, cause and fix, on standard error; no traceback."""
    print_note(f"error: {message}")


def _standard_output() -> Console:
    # A pipe has no width of its own; eighty columns would break paths.
    width = None if sys.stdout.isatty() else _UNPIPED_WIDTH
    return Console(file=sys.stdout, width=width, highlight=False)
