"""The row tracking state of a table, and the hidden columns with materialized values.

PROTOCOL.md, "Row Tracking".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from delta_core.actions import Metadata, Protocol
from delta_core.errors import InvalidTableError, RowTrackingDisabledError, SchemaError
from delta_core.schema.column_mapping import NAME_KEY
from delta_core.schema.types import StructType
from delta_core.table_features.feature import writer_features

_FEATURE = "rowTracking"
_ENABLED = "delta.enableRowTracking"
_ROW_ID_COLUMN = "delta.rowTracking.materializedRowIdColumnName"
_ROW_COMMIT_VERSION_COLUMN = "delta.rowTracking.materializedRowCommitVersionColumnName"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowTracking:
    """The hidden columns of data files, by their physical names.

    Attributes:
        row_id_column: contains the ids of rows that were moved or updated.
        row_commit_version_column: contains the versions in which such rows last changed.
    """

    row_id_column: str
    row_commit_version_column: str

    @classmethod
    def of(cls, protocol: Protocol, metadata: Metadata, *, operation: str) -> RowTracking:
        """The hidden columns of a table with row tracking enabled.

        Args:
            protocol: the table's protocol.
            metadata: the table's metadata.
            operation: the requested operation, for the message.

        Raises:
            RowTrackingDisabledError: the table does not support row tracking, or has not enabled it: ids may
                then be missing, and change when a row is moved.
            InvalidTableError: row tracking is enabled, and the hidden columns have no names.
        """
        configuration = metadata.configuration
        if _FEATURE not in writer_features(protocol):
            raise _disabled(operation, f"Its protocol does not list the feature {_FEATURE}.")
        if configuration.get(_ENABLED, "").strip().lower() != "true":
            raise _disabled(operation, f"The table property {_ENABLED} is not true.")
        names = [configuration.get(key, "") for key in (_ROW_ID_COLUMN, _ROW_COMMIT_VERSION_COLUMN)]
        if not all(names) or names[0] == names[1]:
            raise InvalidTableError(
                f"Cannot {operation}: the names of the hidden columns are not known.",
                cause=f"{_ENABLED} is true, {_ROW_ID_COLUMN} is {names[0]!r}, and "
                f"{_ROW_COMMIT_VERSION_COLUMN} is {names[1]!r}.",
                fix="Restore a version of the table whose properties are complete.",
            )
        return cls(row_id_column=names[0], row_commit_version_column=names[1])


def refuse_hidden_columns(schema: StructType, configuration: Mapping[str, str]) -> None:
    """Refuse a column with the name of a hidden row tracking column.

    The names stay reserved where row tracking is disabled, because files may already have these columns
    (PROTOCOL.md, "Writer Requirements for Row Tracking").

    Raises:
        SchemaError: there is such a column; its values would be read as row ids.
    """
    hidden = {configuration.get(key, "").casefold() for key in (_ROW_ID_COLUMN, _ROW_COMMIT_VERSION_COLUMN)}
    for field in schema:
        # A renamed column still has its physical name in files.
        names = {field.name.casefold(), str(field.metadata.get(NAME_KEY, field.name)).casefold()}
        if names & hidden:
            raise SchemaError(
                f"The column name {field.name} is reserved in this table.",
                cause="It is the name of the hidden row tracking column in data files.",
                fix="Choose another name.",
            )


def _disabled(operation: str, cause: str) -> RowTrackingDisabledError:
    return RowTrackingDisabledError(
        f"Cannot {operation}: row tracking is not enabled on the table.",
        cause=cause,
        fix=f"Set {_ENABLED} to true (alter.set_properties), or read the rows without these columns.",
    )
