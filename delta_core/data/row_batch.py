"""Batches of rows that are written to a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

Columns: TypeAlias = "pa.Table | pa.RecordBatch"
Array: TypeAlias = "pa.Array | pa.ChunkedArray"


@dataclass(frozen=True, slots=True, kw_only=True)
class MaterializedRowIds:
    """The materialized row ids and row commit versions of rows (PROTOCOL.md, "Row Tracking").

    Attributes:
        row_ids: 64-bit integers, one per row; null for a new row.
        row_commit_versions: the versions that last changed copied rows; null for a row that is new or that
            this write changes.
    """

    row_ids: Array
    row_commit_versions: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class RowBatch:
    """Rows with logical column names.

    Attributes:
        columns: the rows; after alignment, all columns of the table in its order.
        absent: the names of the table's columns that are not in the caller's data. Defaults, identity values
            and generated values fill such columns, but not nulls.
        hidden: row ids of rows that were in the table before; None when all rows are new.
    """

    columns: Columns
    absent: frozenset[str] = field(default=frozenset())
    hidden: MaterializedRowIds | None = None

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return int(self.columns.num_rows)
