"""Conversion of Spark's exceptions to DeltaError."""

from __future__ import annotations

import json
import re
import secrets

from delta_core import errors
from delta_core.errors import ConstraintViolationError, DeltaError, JobFailedError, MissingDataFileError

_CAUSE = re.compile(r"^\t*Caused by: (?:[\w$]+\.)*([\w$]+): (.+)$", re.MULTILINE)
_FILE = re.compile(r"while reading file (\S+?)\.?(?:\s|$)")
_OF_WORKER = re.compile(
    r"^delta_core\.errors\.(?:\w+\.)*(\w+): (.+?)(?: Cause: (.+?))?(?: Fix: (.+))?$", re.MULTILINE
)
_TRACEBACK = "Traceback (most recent call last):"
_MISSING = ("PATH_NOT_FOUND", "FAILED_READ_FILE.FILE_NOT_EXIST", "FAILED_READ_FILE.NO_HINT")


class ViolationToken:
    """A random token that marks the errors of deltaward's `raise_error` expressions.

    Each job creates a new random token, so that no row can contain it.
    """

    def __init__(self) -> None:
        self.text = f"deltaward:{secrets.token_hex(8)}:"
        self._pattern = re.compile(re.escape(self.text) + r"(\d+):")

    def mark(self, index: int) -> str:
        """The prefix of the row's JSON in the error of the constraint with this index."""
        return f"{self.text}{index}:"

    def find(self, error: BaseException) -> tuple[int, str] | None:
        """(constraint index, violating row as JSON) when `error` is a constraint violation of this job."""
        match = self._pattern.search(str(error))
        if match is None:
            return None
        return int(match[1]), _first_json_object(str(error)[match.end() :])


def violation(name: str, expression: str, row: str) -> ConstraintViolationError:
    """The error for a row that violates a constraint."""
    return ConstraintViolationError(
        f"A row violates the constraint {name!r}: {expression}.",
        cause=f"The row is {row}.",
        fix="Correct or filter the rows. Nothing was committed.",
    )


def as_delta_error(error: Exception, *, doing: str) -> DeltaError:
    """Convert an exception of Spark to a DeltaError. A DeltaError is returned unchanged.

    The conversion uses Spark's name of the error condition, not the message.
    """
    if isinstance(error, DeltaError):
        return error
    condition = _condition(error)
    text = str(error)
    if (of_worker := _error_of_worker(str(error))) is not None:
        return of_worker
    summary = next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
    kind = type(error).__name__
    if causes := _CAUSE.findall(text):
        # An executor's error is the last cause in the driver's exception.
        kind, summary = causes[-1]
        if (file := _FILE.search(text)) is not None:
            summary = f"{summary} ({file[1]})"
    if condition in _MISSING:
        return MissingDataFileError(
            f"Spark could not read a data file while {doing}.",
            cause=summary[:500],
            fix="List the missing files with `deltaward fsck`, or read a version whose files all exist.",
        )
    return JobFailedError(
        f"Spark failed while {doing}.",
        cause=f"{condition or kind}: {summary[:500]}",
        fix="Read the logs of the driver and the executors.",
    )


def _error_of_worker(message: str) -> DeltaError | None:
    """The DeltaError that a Python worker raised, from the traceback in Spark's message; None without one."""
    found = _OF_WORKER.findall(message) if _TRACEBACK in message else []
    if not found:
        return None
    name, problem, cause, fix = found[-1]
    kind = getattr(errors, name, None)
    if not (isinstance(kind, type) and issubclass(kind, DeltaError)):
        return None
    return kind(problem, cause=cause, fix=fix)


def _condition(error: Exception) -> str | None:
    get = getattr(error, "getCondition", None)
    if get is None:
        return None
    try:
        condition = get()
    except Exception:  # an incomplete exception of the gateway has no condition
        return None
    return condition if isinstance(condition, str) else None


def _first_json_object(text: str) -> str:
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except ValueError:
        return text[:300]
    return text[:end]
