"""How old a file must be before it may be deleted."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Final

from delta_core.errors import ConfigurationError, RetentionTooShortError
from delta_core.table_features.table_properties import TableProperties

HOUR_MS: Final = 3_600_000
_MOST_HOURS = 87_660_000
FLOOR_MS: Final = 168 * HOUR_MS
"""Whatever the table says, a week is kept: a writer that is still at work may have older files."""

SAFETY_MARGIN_MS: Final = 5 * 60_000
"""Clocks differ a little; a file this close to the limit is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """The retention of one vacuum.

    Attributes:
        retention_ms: files that left the table, or were written, later than this ago are kept.
        margin_ms: added to the retention for clocks that differ.
        required_ms: what a protected vacuum must keep.
        enforced: False when the caller lifted the protection on purpose.
        specified: True when the caller named a retention.
    """

    retention_ms: int
    margin_ms: int
    required_ms: int
    enforced: bool
    specified: bool

    def cutoff_ms(self, now_ms: int) -> int:
        """Only what is older than this may go."""
        return now_ms - self.retention_ms - self.margin_ms


def choose_retention(
    properties: TableProperties,
    *,
    retention_hours: float | None = None,
    enforce_retention: bool = True,
    force: bool = False,
) -> Retention:
    """The retention to apply.

    Args:
        properties: the table's; `delta.deletedFileRetentionDuration` counts.
        retention_hours: None takes what is required.
        enforce_retention: False asks to go below what is required; `force` must be set too.
        force: confirms `enforce_retention=False`.

    Raises:
        RetentionTooShortError: less than what is required, and not both flags say so.
        ConfigurationError: negative, not a number, or more than ten thousand years.
    """
    required = max(properties.deleted_file_retention_ms, FLOOR_MS)
    if retention_hours is None:
        wanted = required
    elif not _is_number(retention_hours) or not 0 <= retention_hours <= _MOST_HOURS:
        raise ConfigurationError(
            f"a retention of {_shown(retention_hours)} hours is not possible",
            fix=f"give a number of hours from 0 to {_MOST_HOURS}",
        )
    else:
        wanted = round(retention_hours * HOUR_MS)
    lifted = not enforce_retention and force
    if wanted < required and not lifted:
        raise RetentionTooShortError(
            f"a retention of {wanted / HOUR_MS:g} hours is shorter than the {required / HOUR_MS:g} hours "
            "that are protected",
            cause="readers of older versions and writers that have not committed yet could lose files",
            fix="use a longer retention; if no job and no reader uses the table, pass "
            "enforce_retention=False and force=True (deltaward vacuum: --no-enforce-retention --force)",
        )
    return Retention(
        retention_ms=wanted,
        margin_ms=0 if lifted else SAFETY_MARGIN_MS,
        required_ms=required,
        enforced=not lifted,
        specified=retention_hours is not None,
    )


def _shown(value: object) -> str:
    # Python writes no whole number of thousands of digits.
    return "more" if isinstance(value, int) and value > _MOST_HOURS else repr(value)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
