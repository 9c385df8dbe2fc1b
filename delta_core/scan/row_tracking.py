"""Ids of rows and the versions in which they last changed, as columns of a scan.

PROTOCOL.md, "Reader Requirements for Row Tracking": what a file materialised counts; where it has nothing,
the file's own numbers do.
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
"""What can be asked for besides a table's columns: `_metadata.row_id` and so on of delta-spark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileNumbers:
    """What the log says of a file's rows.

    Attributes:
        base_row_id: the id of the file's first row; its n-th row after it has that plus n.
        default_row_commit_version: the version that added the rows.
    """

    base_row_id: int | None
    default_row_commit_version: int | None


class RowTrackingReader:
    """Some of ROW_TRACKING_COLUMNS for the rows of many files; safe to share by threads."""

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
        """Those of a file's columns that have to be read."""
        present = set(names)
        return [self._materialised[name] for name in self.columns if self._materialised[name] in present]

    def arrays(
        self, read: Mapping[str, pa.Array], positions: Positions, numbers: FileNumbers, path: str
    ) -> dict[str, pa.Array]:
        """The columns of some rows of a file.

        Args:
            read: the columns that `names_in_file` asked for, as far as the file has them.
            positions: where in the file the rows are.
            numbers: of the file.
            path: of the file, for messages.

        Raises:
            InvalidTableError: a row has neither its own value nor one from the log.
        """
        found = {}
        for name in self.columns:
            stored = read.get(self._materialised[name])
            if stored is not None and not pa.types.is_integer(stored.type):
                raise _incomplete(path, name, f"its column {self._materialised[name]} is {stored.type}")
            if stored is not None and stored.null_count == 0:
                found[name] = stored.cast(pa.int64())
                continue
            default = _default(name, positions, numbers)
            if default is None:
                raise _incomplete(path, name, "the log gives the file no number, and not every row has one")
            found[name] = default if stored is None else pc.coalesce(stored.cast(pa.int64()), default)
        return found


def require_row_tracking_columns(columns: Sequence[str], schema: StructType) -> None:
    """Refuse columns that are none of ROW_TRACKING_COLUMNS, asked for twice, or the table's own.

    Raises:
        ConfigurationError: no such column, or one twice.
        SchemaError: the table has a column of that name.
    """
    unknown = [name for name in columns if name not in ROW_TRACKING_COLUMNS]
    if unknown or len(set(columns)) < len(columns):
        raise ConfigurationError(
            f"The metadata columns {list(columns)} cannot be read.",
            cause=f"There are {' and '.join(ROW_TRACKING_COLUMNS)}, each once.",
            fix="Ask for one of them or both.",
        )
    taken = [name for name in columns if schema.find(name) is not None]
    if taken:
        raise SchemaError(
            f"The metadata column {taken[0]} cannot be told from the table's column of that name",
            cause="Rows would have two columns of one name",
            fix="Rename the table's column, or read without the metadata column",
        )


def _default(name: str, positions: Positions, numbers: FileNumbers) -> pa.Array | None:
    if name == ROW_COMMIT_VERSION:
        version = numbers.default_row_commit_version
        return None if version is None else pa.repeat(pa.scalar(version, pa.int64()), len(positions))
    base = numbers.base_row_id
    return None if base is None else pa.array(positions + base, pa.int64())


def _incomplete(path: str, name: str, cause: str) -> InvalidTableError:
    return InvalidTableError(
        f"The rows of the data file {path} have no {name}",
        cause=f"Row tracking is enabled; {cause}",
        fix="Restore a version of the table that is complete, or read without the column",
    )
