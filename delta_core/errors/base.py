"""What all errors share: problem, cause and fix, a code, and two flags to decide by."""

from __future__ import annotations

from typing import ClassVar

_MOST_CHARACTERS = 20_000


class DeltaError(Exception):
    """Base of all errors of deltaward.

    Attributes:
        problem, cause, fix: the message's parts, control characters in them shown as escapes.
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


def escape_control_characters(text: str) -> str:
    """The text with control and bidirectional-override characters as escapes.

    Table contents reach messages and the log; they must not forge lines or drive a terminal. What is escaped
    already stays as it is, so messages may hold others.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def described(error: BaseException) -> str:
    """The class and the text of any exception, also of one that has no text."""
    try:
        text = str(error)
    except Exception:  # whoever wrote the exception may have written its text wrong
        text = "(its text cannot be had)"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class UnexpectedError(DeltaError):
    """Something failed in a way that is not foreseen; the message says what was raised, `__cause__` is it."""

    code = "UNEXPECTED_ERROR"


class DeltaWarning(UserWarning):
    """Something went wrong that the library could work around; the message says what and how."""


def _shortened(text: str) -> str:
    """A part of a message, which may quote a value of any length."""
    if len(text) <= _MOST_CHARACTERS:
        return text
    return f"{text[:_MOST_CHARACTERS]}... ({len(text)} characters)"


def _rebuild(cls: type[DeltaError], problem: str, cause: str, fix: str) -> DeltaError:
    return cls(problem, cause=cause, fix=fix)
