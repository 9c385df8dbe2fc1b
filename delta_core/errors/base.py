"""The base classes of all errors: problem, cause and fix, a code, and two flags."""

from __future__ import annotations

from typing import ClassVar

_MOST_CHARACTERS = 20_000


class DeltaError(Exception):
    """Base of all errors of deltaward.

    Attributes:
        problem, cause, fix: the parts of the message, with control characters shown as escapes.
        code: stable machine-readable name; goes into `JobResult.error.code`.
        retryable: True when repeating the same call later can succeed.
        conflict: True when a concurrent writer's commit is the reason.
    """

    code: ClassVar[str] = "DELTA_ERROR"
    retryable: ClassVar[bool] = False
    conflict: ClassVar[bool] = False

    def __init__(self, problem: str, *, cause: str = "", fix: str = "") -> None:
        self.problem, self.cause, self.fix = (
            escape_control_characters(_shortened(part)) for part in (problem, cause, fix)
        )
        super().__init__(self.problem, self.cause, self.fix)

    def __str__(self) -> str:
        parts = [self.problem]
        if self.cause:
            parts.append(f"Cause: {self.cause}")
        if self.fix:
            parts.append(f"Fix: {self.fix}")
        return " ".join(part if part.endswith((".", "!", "?")) else part + "." for part in parts)

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross process borders (Spark workers, job results); rebuild with keywords.
        return (_rebuild, (type(self), self.problem, self.cause, self.fix))


def escape_control_characters(string: str) -> str:
    """The string with control and bidirectional-override characters as escapes.

    Table contents reach messages and the log. They must not forge lines or drive a terminal. Escapes that
    the string already contains stay as they are, so one message may quote another.
    """
    if string.isprintable():
        return string
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in string)


def described(error: BaseException) -> str:
    """The class and the message of any exception, also of one without a message."""
    try:
        string = str(error)
    except Exception:  # the class of the exception may define a `__str__` that fails
        string = "(its message is not available)"
    return f"{type(error).__name__}: {string}" if string else type(error).__name__


class UnexpectedError(DeltaError):
    """An unforeseen failure. The message names the original exception, which is the `__cause__`."""

    code = "UNEXPECTED_ERROR"


class DeltaWarning(UserWarning):
    """A problem that the library worked around. The message states the problem and the workaround."""


def _shortened(string: str) -> str:
    """A part of a message, which may quote a value of any length."""
    if len(string) <= _MOST_CHARACTERS:
        return string
    return f"{string[:_MOST_CHARACTERS]}... ({len(string)} characters)"


def _rebuild(cls: type[DeltaError], problem: str, cause: str, fix: str) -> DeltaError:
    return cls(problem, cause=cause, fix=fix)
