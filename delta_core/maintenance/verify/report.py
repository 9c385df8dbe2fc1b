"""What checks found, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from delta_core.errors import VerificationError

_EXAMPLES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check's outcome; `detail` is for people, `figures` for programs."""

    name: str
    passed: bool
    detail: str
    figures: tuple[tuple[str, int], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The check as a JSON object."""
        return {
            "name": self.name,
            "passed": self.passed,
            "detail": self.detail,
            "figures": dict(self.figures),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationReport:
    """All checks of one run.

    Attributes:
        uri: of the table.
        version: the version that was checked, or the last commit.
    """

    uri: str
    version: int
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """True when every check passed."""
        return all(check.passed for check in self.checks)

    def error(self) -> VerificationError:
        """The error that names the table and the failed checks."""
        failed = [check for check in self.checks if not check.passed]
        names = ", ".join(dict.fromkeys(check.name for check in failed))
        return VerificationError(
            f"{len(failed)} of {len(self.checks)} checks of the table {self.uri} failed: {names}.",
            cause="; ".join(check.detail for check in failed),
            fix="Do not go on with this table before the cause is known; an earlier version can be restored.",
        )

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON object."""
        return {
            "uri": self.uri,
            "version": self.version,
            "passed": self.passed,
            "checks": [check.to_json() for check in self.checks],
        }


def some(items: Sequence[object]) -> str:
    """The first few of many, and how many more there are."""
    shown = ", ".join(str(item) for item in items[:_EXAMPLES])
    return shown if len(items) <= _EXAMPLES else f"{shown} and {len(items) - _EXAMPLES} more"
