"""The results of checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from delta_core.errors import VerificationError

_EXAMPLES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The result of one check: `detail` as a description, `metrics` as numbers (`figures` in JSON)."""

    name: str
    passed: bool
    detail: str
    metrics: tuple[tuple[str, int], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The check as a JSON object."""
        return {
            "name": self.name,
            "passed": self.passed,
            "detail": self.detail,
            "figures": dict(self.metrics),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationReport:
    """All checks of one run.

    Attributes:
        uri: the table's URI.
        version: the checked version, or the last checked commit.
    """

    uri: str
    version: int
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """True when every check passed."""
        return all(check.passed for check in self.checks)

    def error(self) -> VerificationError:
        """An error that names the table and the failed checks."""
        failed = [check for check in self.checks if not check.passed]
        names = ", ".join(dict.fromkeys(check.name for check in failed))
        return VerificationError(
            f"{len(failed)} of {len(self.checks)} checks of the table {self.uri} failed: {names}.",
            cause="; ".join(check.detail for check in failed),
            fix="Find the cause before any further write to this table. An earlier version can be restored.",
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
    """The first items as a list for a message, with the number of the remaining items."""
    shown = ", ".join(str(item) for item in items[:_EXAMPLES])
    return shown if len(items) <= _EXAMPLES else f"{shown} and {len(items) - _EXAMPLES} more"
