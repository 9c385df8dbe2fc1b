"""Table properties that operations maintain and that users cannot set.

They record the history of a table: the assigned ids, the names of hidden columns, the version in which
in-commit timestamps were enabled. Setting one by hand makes the table inconsistent, and removing one lets the
next writer assign an id twice. They change only with the operation that they record. A restore keeps them,
because it does not undo these operations. The names of hidden columns apply to the restored files as well:
other names exist only where row tracking was dropped in between, or in a clone.

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
"""From the current value and the restored version's value to the value after a restore; None is "not set"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalProperty:
    """A table property that operations maintain and that users cannot set.

    Attributes:
        key: its name.
        records: its meaning, as the rest of a sentence that begins with the property.
        after_restore: its value after an earlier version is restored.
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
    # A value that is not a number was not written by this library, and counts as the smallest.
    return max(values, key=lambda value: int(value) if value.strip().isdecimal() else -1, default=None)


INTERNAL_PROPERTIES: Mapping[str, InternalProperty] = {
    item.key: item
    for item in (
        InternalProperty(
            key=MAX_COLUMN_ID,
            records="is the highest id that any column ever had",
            after_restore=_larger,
        ),
        InternalProperty(
            key=ROW_ID_COLUMN,
            records="is the name of the column with materialized row ids in data files",
            after_restore=_past_or_present,
        ),
        InternalProperty(
            key=ROW_COMMIT_VERSION_COLUMN,
            records="is the name of the column with materialized row commit versions in data files",
            after_restore=_past_or_present,
        ),
        InternalProperty(
            key=ENABLEMENT_VERSION,
            records="is the version in which in-commit timestamps were enabled",
            after_restore=_present,
        ),
        InternalProperty(
            key=ENABLEMENT_TIMESTAMP,
            records="is the time at which in-commit timestamps were enabled",
            after_restore=_present,
        ),
        InternalProperty(
            key=CHECKPOINT_PROTECTION,
            records="is the version before which the log may only be cleaned up as a whole",
            after_restore=_present,
        ),
    )
}
"""Every internal property, by name."""

_FOLDED = {key.lower(): key for key in INTERNAL_PROPERTIES}
_KEPT_BY_RESTORE = frozenset({IN_COMMIT_TIMESTAMPS})
"""User properties that a restore does not change: together with the two records of their enablement,
in-commit timestamps affect the future commits, not the restored state."""


def refuse_internal_properties(keys: Iterable[str]) -> None:
    """Refuse to set or unset a property that only the operation that it records may change.

    Raises:
        InvalidTablePropertyError: the message has the first such property, and its meaning.
    """
    internal = sorted(_FOLDED[key.lower()] for key in keys if key.lower() in _FOLDED)
    if internal:
        item = INTERNAL_PROPERTIES[internal[0]]
        raise InvalidTablePropertyError(
            f"The table property {item.key} cannot be set or unset by hand.",
            cause=f"It {item.records}; only the operation that it records changes it.",
            fix="Leave the property out.",
        )


def refuse_unset_of_mapping(keys: Iterable[str], configuration: Mapping[str, str]) -> None:
    """Refuse to unset the column mapping mode while columns are mapped.

    Without the mode a reader would search for columns by their logical names, which files need not have.

    Raises:
        InvalidTablePropertyError: the mode is among the keys, and columns are mapped.
    """
    mode = configuration.get(COLUMN_MAPPING_MODE, "none").strip().lower()
    if mode != "none" and COLUMN_MAPPING_MODE in set(keys):
        raise InvalidTablePropertyError(
            f"The table property {COLUMN_MAPPING_MODE} cannot be unset while columns are mapped.",
            cause=f"It is {mode!r}: the names of columns in data files differ from those in the schema.",
            fix="Drop the feature columnMapping, which rewrites every file.",
        )


def restored_configuration(present: Mapping[str, str], past: Mapping[str, str]) -> dict[str, str]:
    """The properties of a table after a restore: the restored ones, with the current internal properties.

    Args:
        present: the properties of the newest version.
        past: the properties of the version that is restored.
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
