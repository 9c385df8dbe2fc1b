"""Row ids and row commit versions as columns of a scan.

PROTOCOL.md, "Reader Requirements for Row Tracking": materialized values take precedence; where a file has
none, the values follow from the file's `baseRowId` and `defaultRowCommitVersion`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.deletion_vectors.roaring import Positions
from delta_core.errors import ConfigurationError, InvalidTableError, SchemaError
from delta_core.schema.types import LONG, StructField, StructType
from delta_core.table_features.row_tracking import RowTracking

ROW_ID = "_row_id"
ROW_COMMIT_VERSION = "_row_commit_version"

ROW_TRACKING_COLUMNS = (ROW_ID, ROW_COMMIT_VERSION)
"""Columns that a scan can add to the table's columns: `_metadata.row_id` and so on in delta-spark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRowTracking:
    """The row tracking values that the log records for a file.

    Attributes:
        base_row_id: the id of the file's first row; row n, counted from 0, has this id plus n.
        default_row_commit_version: the version that added the rows.
    """

    base_row_id: int | None
    default_row_commit_version: int | None


class RowTrackingReader:
    """Some of ROW_TRACKING_COLUMNS for the rows of many files; safe to share between threads."""

    def __init__(self, tracking: RowTracking, columns: Sequence[str]) -> None:
        self.columns = tuple(columns)
        self._materialised = {
            ROW_ID: tracking.row_id_column,
            ROW_COMMIT_VERSION: tracking.row_commit_version_column,
        }

    @property
    def fields(self) -> list[StructField]:
        """The columns as fields; every row has a value."""
        return [StructField(name=name, data_type=LONG, nullable=False) for name in self.columns]

    def names_in_file(self, names: Iterable[str]) -> list[str]:
        """The columns among `names`, those of a file, that must be read."""
        present = set(names)
        return [self._materialised[name] for name in self.columns if self._materialised[name] in present]

    def arrays(
        self, read: Mapping[str, pa.Array], positions: Positions, numbers: FileRowTracking, path: str
    ) -> dict[str, pa.Array]:
        """The row tracking columns for some rows of a file.

        Args:
            read: the columns from `names_in_file`, as far as the file has them.
            positions: the positions of the rows in the file.
            numbers: the values that the log records for the file.
            path: the file's path, for messages.

        Raises:
            InvalidTableError: a row has neither a materialized value nor one from the log.
        """
        columns = {}
        for name in self.columns:
            stored = read.get(self._materialised[name])
            if stored is not None and not pa.types.is_integer(stored.type):
                raise _incomplete(
                    path, name, f"its column {self._materialised[name]} has type {stored.type}."
                )
            if stored is not None and stored.null_count == 0:
                columns[name] = stored.cast(pa.int64())
                continue
            default = _default(name, positions, numbers)
            if default is None:
                raise _incomplete(
                    path,
                    name,
                    "the log has no base value for the file, and some rows have no materialized value.",
                )
            columns[name] = default if stored is None else pc.coalesce(stored.cast(pa.int64()), default)
        return columns


def require_row_tracking_columns(columns: Sequence[str], schema: StructType) -> None:
    """Refuse columns that are not in ROW_TRACKING_COLUMNS, are requested twice, or are table columns.

    Raises:
        ConfigurationError: a column does not exist, or is requested twice.
        SchemaError: the table has a column with the same name.
    """
    unknown = [name for name in columns if name not in ROW_TRACKING_COLUMNS]
    if unknown or len(set(columns)) < len(columns):
        raise ConfigurationError(
            f"The metadata columns {list(columns)} cannot be read.",
            cause=f"The metadata columns are {' and '.join(ROW_TRACKING_COLUMNS)}; each can be read once.",
            fix="Request one or both of them.",
        )
    taken = [name for name in columns if schema.find(name) is not None]
    if taken:
        raise SchemaError(
            f"The metadata column {taken[0]} has the same name as a column of the table.",
            cause="Rows would have two columns with one name.",
            fix="Rename the table's column, or read without the metadata column.",
        )


def _default(name: str, positions: Positions, numbers: FileRowTracking) -> pa.Array | None:
    if name == ROW_COMMIT_VERSION:
        version = numbers.default_row_commit_version
        return None if version is None else pa.repeat(pa.scalar(version, pa.int64()), len(positions))
    base = numbers.base_row_id
    return None if base is None else pa.array(positions + base, pa.int64())


def _incomplete(path: str, name: str, cause: str) -> InvalidTableError:
    return InvalidTableError(
        f"The rows of the data file {path} have no {name}.",
        cause=f"Row tracking is enabled, but {cause}",
        fix="Restore a complete version of the table, or read without the column.",
    )
