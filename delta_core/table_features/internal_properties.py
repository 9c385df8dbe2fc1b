"""Table properties that are records of the protocol's and not wishes of a user's.

They say what has happened to a table: which numbers were given away, what hidden columns are called, since
when commits have had their time. Who sets one by hand makes the table say what is not so, and who takes one
away lets the next writer give a number twice. They change only with the operation that they record, and a
restore keeps them, for it cannot undo what they record. What hidden columns are called is true of the files
that come back: others have other names only where row tracking was dropped in between, or in a clone.

PROTOCOL.md, "Column Mapping", "Row Tracking", "In-Commit Timestamps".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from delta_core.errors import InvalidTablePropertyError

MAX_COLUMN_ID = "delta.columnMapping.maxColumnId"
COLUMN_MAPPING_MODE = "delta.columnMapping.mode"
ROW_ID_COLUMN = "delta.rowTracking.materializedRowIdColumnName"
ROW_COMMIT_VERSION_COLUMN = "delta.rowTracking.materializedRowCommitVersionColumnName"
IN_COMMIT_TIMESTAMPS = "delta.enableInCommitTimestamps"
ENABLEMENT_VERSION = "delta.inCommitTimestampEnablementVersion"
ENABLEMENT_TIMESTAMP = "delta.inCommitTimestampEnablementTimestamp"
CHECKPOINT_PROTECTION = "delta.requireCheckpointProtectionBeforeVersion"

Survivor = Callable[[str | None, str | None], str | None]
"""From the value now and the value then to the value after a restore; None is "not set"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalProperty:
    """One such property.

    Attributes:
        key: its name.
        records: what it says, as the rest of a sentence about the property.
        after_restore: what becomes of it when an earlier version is restored.
    """

    key: str
    records: str
    after_restore: Survivor


def _present(now: str | None, then: str | None) -> str | None:
    return now


def _past_or_present(now: str | None, then: str | None) -> str | None:
    return now if then is None else then


def _larger(now: str | None, then: str | None) -> str | None:
    values = [value for value in (now, then) if value is not None]
    # What is no number was not written by us, and says nothing about which is larger.
    return max(values, key=lambda text: int(text) if text.strip().isdecimal() else -1, default=None)


INTERNAL_PROPERTIES: Mapping[str, InternalProperty] = {
    item.key: item
    for item in (
        InternalProperty(
            key=MAX_COLUMN_ID,
            records="is the highest id that a column ever had",
            after_restore=_larger,
        ),
        InternalProperty(
            key=ROW_ID_COLUMN,
            records="is where data files keep the ids of rows that were moved",
            after_restore=_past_or_present,
        ),
        InternalProperty(
            key=ROW_COMMIT_VERSION_COLUMN,
            records="is where data files keep the versions of rows that were moved",
            after_restore=_past_or_present,
        ),
        InternalProperty(
            key=ENABLEMENT_VERSION,
            records="is the version since which commits have their time in them",
            after_restore=_present,
        ),
        InternalProperty(
            key=ENABLEMENT_TIMESTAMP,
            records="is the time since which commits have their time in them",
            after_restore=_present,
        ),
        InternalProperty(
            key=CHECKPOINT_PROTECTION,
            records="is the version before which the log is kept together",
            after_restore=_present,
        ),
    )
}
"""Every internal property, by name."""

_FOLDED = {key.lower(): key for key in INTERNAL_PROPERTIES}
_KEPT_BY_RESTORE = frozenset({IN_COMMIT_TIMESTAMPS})
"""Properties of the user's that a restore leaves as they are: whether commits have their time in them is a
statement about the commits to come together with the two records of when that began."""


def refuse_internal_properties(keys: Iterable[str]) -> None:
    """Refuse to set or to take away what only the operation that it records may change.

    Raises:
        InvalidTablePropertyError: names the first, and what it records.
    """
    found = sorted(_FOLDED[key.lower()] for key in keys if key.lower() in _FOLDED)
    if found:
        item = INTERNAL_PROPERTIES[found[0]]
        raise InvalidTablePropertyError(
            f"The table property {item.key} is neither set nor unset by hand.",
            cause=f"It {item.records}: only the operation that it records changes it.",
            fix="Leave it out.",
        )


def refuse_unset_of_mapping(keys: Iterable[str], configuration: Mapping[str, str]) -> None:
    """Refuse to take the mode away from a table whose columns are mapped.

    Without it a reader looks for columns by their names, which files need not have.

    Raises:
        InvalidTablePropertyError: the mode is among the keys, and columns are mapped.
    """
    mode = configuration.get(COLUMN_MAPPING_MODE, "none").strip().lower()
    if mode != "none" and COLUMN_MAPPING_MODE in set(keys):
        raise InvalidTablePropertyError(
            f"The table property {COLUMN_MAPPING_MODE} is not unset while columns are mapped.",
            cause=f"It is {mode!r}: data files have other names for the columns than the table.",
            fix="Drop the feature columnMapping, which writes every file anew.",
        )


def restored_configuration(present: Mapping[str, str], past: Mapping[str, str]) -> dict[str, str]:
    """The properties of a table after a restore: those of the past, and the records of the present.

    Args:
        present: of the newest version.
        past: of the version that is restored.
    """
    restored = {key: value for key, value in past.items() if key not in INTERNAL_PROPERTIES}
    for key, item in INTERNAL_PROPERTIES.items():
        value = item.after_restore(present.get(key), past.get(key))
        if value is not None:
            restored[key] = value
    for key in _KEPT_BY_RESTORE:
        restored.pop(key, None)
        if key in present:
            restored[key] = present[key]
    return restored
