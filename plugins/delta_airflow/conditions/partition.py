"""That a table has a partition."""

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
    """Live files whose partition columns have the given values: so many of them, with so many rows.

    A look costs one listing where nothing was committed since the last one.

    Args:
        table_uri: canonical URI of the table.
        partition: partition columns and their values, as the log writes values.
        min_files: so many files at least.
        min_rows: so many rows at least, those of deletion vectors not counted; None asks for no number.
        storage_options: for the store.
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
        self._looked_at: int | None = None

    def look(self) -> dict[str, Any] | None:
        snapshot = self.latest()
        if snapshot is None or snapshot.version == self._looked_at:
            return None
        files = self._matching(snapshot)
        self._looked_at = snapshot.version
        rows = None if self._min_rows is None else _rows(files)
        if files.num_rows < self._min_files or (rows or 0) < (self._min_rows or 0):
            return None
        return {"version": snapshot.version, "files": files.num_rows, "rows": rows}

    def _matching(self, snapshot: Snapshot) -> pa.Table:
        columns = snapshot.metadata.partition_columns
        by_name = {column.lower(): column for column in columns}
        wanted = {by_name.get(name.lower(), name): text for name, text in self._partition.items()}
        if unknown := sorted(set(wanted) - set(columns)):
            raise ConfigurationError(
                f"The table has no partition column {', '.join(unknown)}",
                cause=f"it is partitioned by {', '.join(columns) or 'nothing'}",
                fix="Name its partition columns",
            )
        files = snapshot.files.to_table()
        values = typed_partitions(files, snapshot.schema, wanted, mapping=snapshot.column_mapping)
        matches = [
            pc.equal(values.column(name), _scalar(snapshot, name, text)) for name, text in wanted.items()
        ]
        return files.filter(pc.fill_null(reduce(pc.and_, matches), False))


def _scalar(snapshot: Snapshot, name: str, text: str) -> pa.Scalar:
    field = snapshot.schema.find(name)
    assert field is not None
    try:
        return parse_column(pa.array([text], pa.string()), field.data_type)[0]
    except CorruptLogError as error:
        raise ConfigurationError(
            f"{text!r} is no value of the partition column {name}",
            cause=f"The column is a {field.data_type}",
            fix="Write it as the log does, such as 2026-01-31 for a date",
        ) from error


def _rows(files: pa.Table) -> int:
    """Rows of files by the log's own account.

    Raises:
        ConfigurationError: the log does not count those of a file.
    """
    total = 0
    for file in files.select(["path", "stats", "deletion_vector"]).to_pylist():
        records = json.loads(file["stats"] or "{}").get("numRecords")
        if records is None:
            raise ConfigurationError(
                "The rows of the partition are not counted in the log",
                cause=f"The file {file['path']} has no statistics",
                fix="Wait for a number of files, min_files, instead of one of rows",
            )
        total += records - ((file["deletion_vector"] or {}).get("cardinality") or 0)
    return total
