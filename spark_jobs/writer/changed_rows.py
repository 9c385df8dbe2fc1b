"""Rows with their kind of change, for a write that also writes change data files."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from delta_core.actions.add_cdc_file import CHANGE_DATA_DIRECTORY


class RowKind(IntEnum):
    """The kind of change of a row. A deleted row has its old values."""

    COPIED = 0
    UPDATED = 1
    INSERTED = 2
    DELETED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraColumns:
    """Columns of the rows of a write besides those of the table.

    Attributes:
        hidden: whether rows have the hidden columns of row tracking, under their names in the files.
        kind: the column with the `RowKind` of each row; None when no change data is written.
        before: the column with a struct of the old values of updated rows.
    """

    hidden: bool = False
    kind: str | None = None
    before: str | None = None


NO_EXTRA_COLUMNS = ExtraColumns()
"""Rows with the columns of the table only."""


def change_prefix(prefix: str) -> str:
    """The directory of the change data files of the job with this prefix."""
    return f"{CHANGE_DATA_DIRECTORY}/{prefix}"
