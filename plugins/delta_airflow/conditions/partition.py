"""The condition that a table has a partition."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_airflow.conditions.base import TableCondition
from delta_core.errors import ConfigurationError, CorruptLogError
from delta_core.scan.partition_pruning import typed_partitions
from delta_core.schema.partition_values import parse_column
from delta_core.snapshot.snapshot import Snapshot


class PartitionCondition(TableCondition):
    """The table has enough live files, with enough rows, whose partition columns have the given values.

    A check costs one listing when the table has no new commit.

    Args:
        table_uri: canonical URI of the table.
        partition: partition columns and their values, written as in the log.
        min_files: the minimum number of files.
        min_rows: the minimum number of rows, without the rows that deletion vectors mark as deleted. None
            sets no minimum.
        storage_options: options of the store.
    """

    def __init__(
        self,
        table_uri: str,
        partition: Mapping[str, str],
        *,
        min_files: int = 1,
        min_rows: int | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(table_uri, storage_options=storage_options)
        self._partition = dict(partition)
        self._min_files = min_files
        self._min_rows = min_rows
        self._checked_version: int | None = None

    def check(self) -> dict[str, Any] | None:
        snapshot = self.latest()
        if snapshot is None or snapshot.version == self._checked_version:
            return None
        files = self._matching(snapshot)
        self._checked_version = snapshot.version
        rows = None if self._min_rows is None else _rows(files)
        if files.num_rows < self._min_files or (rows or 0) < (self._min_rows or 0):
            return None
        return {"version": snapshot.version, "files": files.num_rows, "rows": rows}

    def _matching(self, snapshot: Snapshot) -> pa.Table:
        columns = snapshot.metadata.partition_columns
        by_name = {column.lower(): column for column in columns}
        expected = {by_name.get(name.lower(), name): value for name, value in self._partition.items()}
        if unknown := sorted(set(expected) - set(columns)):
            raise ConfigurationError(
                f"The table has no partition column {', '.join(unknown)}.",
                cause=f"It is partitioned by {', '.join(columns)}." if columns else "It is not partitioned.",
                fix="Use the table's partition columns.",
            )
        files = snapshot.files.to_table()
        values = typed_partitions(files, snapshot.schema, expected, mapping=snapshot.column_mapping)
        matches = [
            pc.equal(values.column(name), _scalar(snapshot, name, value)) for name, value in expected.items()
        ]
        return files.filter(pc.fill_null(reduce(pc.and_, matches), False))


def _scalar(snapshot: Snapshot, name: str, value: str) -> pa.Scalar:
    field = snapshot.schema.find(name)
    assert field is not None
    try:
        return parse_column(pa.array([value], pa.string()), field.data_type)[0]
    except CorruptLogError as error:
        raise ConfigurationError(
            f"{value!r} is not a valid value of the partition column {name}.",
            cause=f"The column has the type {field.data_type}.",
            fix="Write the value as the log does, such as 2026-01-31 for a date.",
        ) from error


def _rows(files: pa.Table) -> int:
    """The number of live rows in some files, according to the log.

    Raises:
        ConfigurationError: the log records no row count for a file.
    """
    total = 0
    for file in files.select(["path", "stats", "deletion_vector"]).to_pylist():
        records = json.loads(file["stats"] or "{}").get("numRecords")
        if records is None:
            raise ConfigurationError(
                "The log does not record how many rows the partition has.",
                cause=f"The file {file['path']} has no statistics.",
                fix="Wait for a number of files (min_files) instead of a number of rows.",
            )
        total += records - ((file["deletion_vector"] or {}).get("cardinality") or 0)
    return total
