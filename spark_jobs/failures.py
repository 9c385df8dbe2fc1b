"""What Spark's exceptions mean to our callers."""

from __future__ import annotations

import json
import re
import secrets

from delta_core.errors import ConstraintViolationError, DeltaError, JobFailedError, MissingDataFileError

_CAUSE = re.compile(r"^\t*Caused by: (?:[\w$]+\.)*([\w$]+): (.+)$", re.MULTILINE)
_FILE = re.compile(r"while reading file (\S+?)\.?(?:\s|$)")
_MISSING = ("PATH_NOT_FOUND", "FAILED_READ_FILE.FILE_NOT_EXIST", "FAILED_READ_FILE.NO_HINT")


class ViolationToken:
    """Marks the errors that our own `raise_error` expressions raise, so that no other text is taken for one.

    The token is drawn per job: data cannot contain it.
    """

    def __init__(self) -> None:
        self.text = f"deltaward:{secrets.token_hex(8)}:"
        self._pattern = re.compile(re.escape(self.text) + r"(\d+):")

    def mark(self, index: int) -> str:
        """What the expression of constraint `index` puts before the row's JSON."""
        return f"{self.text}{index}:"

    def find(self, error: BaseException) -> tuple[int, str] | None:
        """(constraint index, the offending row as JSON) when `error` is a violation of this job."""
        match = self._pattern.search(str(error))
        if match is None:
            return None
        return int(match[1]), _first_json_object(str(error)[match.end() :])


def violation(name: str, expression: str, row: str) -> ConstraintViolationError:
    """The error of a row that breaks a constraint."""
    return ConstraintViolationError(
        f"A row breaks the constraint {name!r}: {expression}.",
        cause=f"The row is {row}",
        fix="Correct or filter the rows; nothing of the write is visible",
    )


def as_delta_error(error: Exception, *, doing: str) -> DeltaError:
    """An exception of Spark as one of ours; a DeltaError stays what it is.

    The condition is Spark's own name of the error class, not its text.
    """
    if isinstance(error, DeltaError):
        return error
    condition = _condition(error)
    text = str(error)
    summary = next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
    kind = type(error).__name__
    if causes := _CAUSE.findall(text):
        # What an executor refuses is the last of the causes below the call that the driver made.
        kind, summary = causes[-1]
        if (file := _FILE.search(text)) is not None:
            summary = f"{summary} ({file[1]})"
    if condition in _MISSING:
        return MissingDataFileError(
            f"Spark could not read a data file while {doing}.",
            cause=summary[:500],
            fix="Compare the table's files with the log (deltaward describe), or read another version",
        )
    return JobFailedError(
        f"Spark failed while {doing}.",
        cause=f"{condition or kind}: {summary[:500]}",
        fix="See the driver's and executors' logs",
    )


def _condition(error: Exception) -> str | None:
    get = getattr(error, "getCondition", None)
    if get is None:
        return None
    try:
        condition = get()
    except Exception:  # a half-built exception of the gateway has no condition
        return None
    return condition if isinstance(condition, str) else None


def _first_json_object(text: str) -> str:
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except ValueError:
        return text[:300]
    return text[:end]
