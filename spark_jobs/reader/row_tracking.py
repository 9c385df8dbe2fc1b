"""Row ids and row commit versions as a column of a DataFrame, with delta-spark's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from delta_core.errors import SchemaError
from delta_core.scan import ROW_TRACKING_COLUMNS
from delta_core.scan.row_tracking import require_row_tracking_columns
from delta_core.schema.column_mapping import ColumnMapping
from delta_core.schema.types import LONG, StructField, StructType
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.row_tracking import RowTracking
from spark_jobs.expressions.columns import quoted
from spark_jobs.file_uris import ROW_INDEX

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

METADATA = "_metadata"
"""The column with the fields `row_id` and `row_commit_version`."""

_BASE = "__deltaward_base_row_id"
_VERSION = "__deltaward_default_row_commit_version"
_POSITION = "__deltaward_row_position"


@dataclass(frozen=True, slots=True)
class RowTrackingColumns:
    """The columns that a scan reads to compute METADATA.

    PROTOCOL.md, "Reader Requirements for Row Tracking".

    Attributes:
        tracking: the names of the columns of files with materialized values.
    """

    tracking: RowTracking

    @classmethod
    def of(cls, snapshot: Snapshot) -> RowTrackingColumns:
        """The columns for a table.

        Raises:
            RowTrackingDisabledError: the table does not have row tracking enabled.
            SchemaError: the table has a column with the name of METADATA or of a row tracking column.
        """
        require_row_tracking_columns(ROW_TRACKING_COLUMNS, snapshot.schema)
        if snapshot.schema.find(METADATA) is not None:
            raise SchemaError(
                f"The row ids cannot be read as the column {METADATA}.",
                cause="The table has a column with this name.",
                fix="Rename the table's column, or read without row ids.",
            )
        return cls(
            RowTracking.of(
                snapshot.protocol, snapshot.metadata, operation="read row ids and row commit versions"
            )
        )

    @property
    def constants(self) -> Mapping[str, str]:
        """The added columns that are constant in each file, with their column of LIVE_FILE_SCHEMA."""
        return {_BASE: "base_row_id", _VERSION: "default_row_commit_version"}

    @property
    def metadata(self) -> Mapping[str, str]:
        """The added columns with their field of Spark's `_metadata`."""
        return {_POSITION: ROW_INDEX}

    @property
    def names(self) -> tuple[str, ...]:
        """The added columns of the scan's schema."""
        return (self.tracking.row_id_column, self.tracking.row_commit_version_column, *self.constants)

    def added_to(self, schema: StructType, mapping: ColumnMapping) -> tuple[StructType, ColumnMapping]:
        """The schema and mapping of a scan with the added columns."""
        fields = tuple(StructField(name=name, data_type=LONG) for name in self.names)
        return StructType((*schema.fields, *fields)), ColumnMapping(mapping.mode, frozenset(self.names))

    def with_metadata(self, frame: DataFrame, columns: Sequence[str]) -> DataFrame:
        """Columns of the table and METADATA, from the rows of the scan."""
        from pyspark.sql import functions as fn

        row_id, version = self.values(fn.col(_POSITION))
        column = fn.struct(row_id.alias("row_id"), version.alias("row_commit_version")).alias(METADATA)
        return frame.select(*map(quoted, columns), column)

    def values(self, position: Column) -> tuple[Column, Column]:
        """The row id and the row commit version of each row.

        Args:
            position: the position of the row in its file.
        """
        from pyspark.sql import functions as fn

        row_id = _required(
            self.tracking.row_id_column,
            fn.col(_BASE) + position,
            "the log has no row id for its file",
        )
        version = _required(
            self.tracking.row_commit_version_column,
            fn.col(_VERSION),
            "the log has no default row commit version for its file",
        )
        return row_id, version


def _required(materialized: str, default: Column, why: str) -> Column:
    from pyspark.sql import functions as fn

    missing = fn.raise_error(fn.lit(f"A row has no own value, and {why}.")).cast("bigint")
    return fn.coalesce(fn.col(quoted(materialized)), default, missing)
