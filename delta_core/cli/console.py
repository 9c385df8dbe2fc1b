"""Writing to the terminal: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import sys
from typing import Any

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

SUCCESS, FAILED, BAD_INPUT, UNKNOWN, NOT_CHECKED, SOME = 0, 1, 2, 3, 4, 10
"""Exit codes. `SOME`: some tables of a fleet are sick or failed.
`UNKNOWN`: it is unknown whether a commit landed; read the log before running again.
`NOT_CHECKED`: a store could not be checked."""

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


def print_json(document: Any) -> None:
    """Print one JSON document on standard output, with control characters escaped."""
    sys.stdout.write(json.dumps(document, indent=2, default=str) + "\n")


def print_line(text: str) -> None:
    """Print one line on standard output."""
    sys.stdout.write(escape_control_characters(text) + "\n")


def print_note(text: str) -> None:
    """Print one line on standard error."""
    sys.stderr.write(escape_control_characters(text) + "\n")


def print_error(message: str) -> None:
    """Print a DeltaError's problem, cause and fix on standard error, without a traceback."""
    print_note(f"error: {message}")
