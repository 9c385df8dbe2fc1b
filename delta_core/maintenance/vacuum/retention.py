"""The retention of a vacuum: the minimum age of files that may be deleted."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Final

from delta_core.errors import ConfigurationError, RetentionTooShortError
from delta_core.table_features.table_properties import TableProperties

HOUR_MS: Final = 3_600_000
_MOST_HOURS = 87_660_000
FLOOR_MS: Final = 168 * HOUR_MS
"""The smallest required retention, one week, independent of the table's properties. It protects the
uncommitted files of long-running writers."""

SAFETY_MARGIN_MS: Final = 5 * 60_000
"""Added to the retention, because clocks of machines differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """The retention of one vacuum.

    Attributes:
        retention_ms: files that were removed or written within this time are kept.
        margin_ms: added to the retention, because clocks of machines differ.
        required_ms: the smallest retention unless the caller disables the check.
        enforced: False when the caller disabled the check.
        specified: True when the caller passed a retention.
    """

    retention_ms: int
    margin_ms: int
    required_ms: int
    enforced: bool
    specified: bool

    def cutoff_ms(self, now_ms: int) -> int:
        """Only files older than this time may be deleted."""
        return now_ms - self.retention_ms - self.margin_ms


def choose_retention(
    properties: TableProperties,
    *,
    retention_hours: float | None = None,
    enforce_retention: bool = True,
    force: bool = False,
) -> Retention:
    """The retention that a vacuum applies.

    Args:
        properties: the table's properties, for `delta.deletedFileRetentionDuration`.
        retention_hours: the required retention when None.
        enforce_retention: False allows a retention below the required retention, together with `force`.
        force: confirms `enforce_retention=False`.

    Raises:
        RetentionTooShortError: the retention is below the required retention, and the check is not disabled.
        ConfigurationError: the retention is negative, not a number, or more than ten thousand years.
    """
    required_ms = max(properties.deleted_file_retention_ms, FLOOR_MS)
    if retention_hours is None:
        retention_ms = required_ms
    elif not _is_number(retention_hours) or not 0 <= retention_hours <= _MOST_HOURS:
        raise ConfigurationError(
            f"A retention of {_shown(retention_hours)} hours is not possible.",
            fix=f"Pass a number of hours from 0 to {_MOST_HOURS}.",
        )
    else:
        retention_ms = round(retention_hours * HOUR_MS)
    unprotected = not enforce_retention and force
    if retention_ms < required_ms and not unprotected:
        raise RetentionTooShortError(
            f"A retention of {retention_ms / HOUR_MS:g} hours is shorter than the required "
            f"{required_ms / HOUR_MS:g} hours.",
            cause="Readers of older versions and writers with uncommitted files could lose files.",
            fix="Use a longer retention. If no job and no reader uses the table, pass "
            "enforce_retention=False and force=True (deltaward vacuum: --no-enforce-retention --force).",
        )
    return Retention(
        retention_ms=retention_ms,
        margin_ms=0 if unprotected else SAFETY_MARGIN_MS,
        required_ms=required_ms,
        enforced=not unprotected,
        specified=retention_hours is not None,
    )


def _shown(value: object) -> str:
    # Python refuses to format integers with thousands of digits.
    return "more" if isinstance(value, int) and value > _MOST_HOURS else repr(value)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
