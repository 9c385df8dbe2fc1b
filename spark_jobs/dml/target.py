"""The target of a row statement: candidate files, and their rows with file and position."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from delta_core.errors import JobFailedError
from delta_core.schema.types import StructType
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.row_tracking import RowTracking
from spark_jobs.dml.clauses import words
from spark_jobs.dml.source import Names
from spark_jobs.engine_io import TableReach
from spark_jobs.expressions.columns import quoted
from spark_jobs.file_uris import ROW_INDEX, identifying_field, metadata_value
from spark_jobs.reader.row_tracking import RowTrackingColumns
from spark_jobs.reader.table_files import located_files, table_files
from spark_jobs.reader.table_scan import TableScan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetFiles:
    """Files of the target, each with its name in Spark.

    Attributes:
        live: the files as LIVE_FILE_SCHEMA.
        reach: how Spark reaches the table.
        key_field: the field of Spark's `_metadata` with a different value for each file.
        keys: the value of each file in this field.
    """

    snapshot: Snapshot
    live: pa.Table
    reach: TableReach
    key_field: str
    keys: tuple[str, ...]

    @classmethod
    def of(cls, snapshot: Snapshot, live: pa.Table, reach: TableReach) -> TargetFiles:
        """The files of the snapshot that are rows of `live`, the result of a scan.

        Raises:
            PathEscapeError: see `located_files`.
        """
        found = located_files(table_files(live), store=reach.store, access=reach.access)
        places = [item.place for item in found]
        field = identifying_field([place.path for place in places])
        keys = tuple(metadata_value(field, reach.root_of(place.store), place.path) for place in places)
        return cls(snapshot=snapshot, live=live, reach=reach, key_field=field, keys=keys)

    def select(self, keys: set[str]) -> TargetFiles:
        """The files with these keys."""
        indexes = [index for index, key in enumerate(self.keys) if key in keys]
        return replace(
            self,
            live=self.live.take(pa.array(indexes, pa.int64())),
            keys=tuple(self.keys[index] for index in indexes),
        )

    def require_known(self, keys: Iterable[str]) -> None:
        """Check that Spark's names of files are names of these files.

        Raises:
            JobFailedError: Spark reports an unknown file name.
        """
        unknown = set(keys) - set(self.keys)
        if unknown:
            raise JobFailedError(
                f"Spark found rows to change in {sorted(unknown)[0]!r}, which is not a file of the table.",
                cause="Spark encodes the file name in an unexpected way.",
                fix="Report the file name as a bug of deltaward. Nothing was written.",
            )

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def schema(self) -> StructType:
        """The table's schema."""
        return self.snapshot.schema

    def scan_with_row_ids(self, spark: SparkSession, names: Names, tracking: RowTracking) -> DataFrame:
        """The rows as `scan` returns them, and their row ids and row commit versions by the hidden names."""
        from pyspark.sql import functions as fn

        added = RowTrackingColumns(tracking)
        schema, mapping = added.added_to(self.schema, self.snapshot.column_mapping)
        rows = TableScan(reach=self.reach, schema=schema, mapping=mapping).read(
            spark,
            table_files(self.live, added.constants),
            constants=[*self.snapshot.partition_columns, *added.constants],
            metadata={names.file: self.key_field, names.position: ROW_INDEX},
        )
        row_id, version = added.values(fn.col(names.position))
        return rows.select(
            *[quoted(field.name) for field in self.schema],
            names.file,
            names.position,
            row_id.alias(tracking.row_id_column),
            version.alias(tracking.row_commit_version_column),
        )

    def scan(self, spark: SparkSession, names: Names, *, strings: Sequence[str] | None = None) -> DataFrame:
        """The rows with the table's columns, their file (`names.file`) and their position in the file.

        A row has the same position in every read.

        Args:
            spark: the session.
            names: the names of the added columns.
            strings: SQL expressions that name all needed columns; other columns may be left out. None needs
                all columns.
        """
        scan = TableScan(
            reach=self.reach,
            schema=self.schema,
            mapping=self.snapshot.column_mapping,
            columns=None if self.reach.is_native else self._mentioned(strings),
        )
        return scan.read(
            spark,
            table_files(self.live),
            constants=self.snapshot.partition_columns,
            metadata={names.file: self.key_field, names.position: ROW_INDEX},
        )

    def _mentioned(self, strings: Sequence[str] | None) -> list[str] | None:
        """The columns that the SQL expressions may mention; None for all. Spark prunes its own scan."""
        # A star names all columns.
        if strings is None or any("*" in string for string in strings):
            return None
        mentioned = words(strings)
        return [field.name for field in self.schema if field.name.casefold() in mentioned]
