"""Rows on their way into a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

Columns: TypeAlias = "pa.Table | pa.RecordBatch"
Array: TypeAlias = "pa.Array | pa.ChunkedArray"


@dataclass(frozen=True, slots=True, kw_only=True)
class MaterializedRowIds:
    """The row ids and row commit versions that rows keep (PROTOCOL.md, "Row Tracking").

    Attributes:
        row_ids: 64-bit integers, one per row; null for a row that is new.
        row_commit_versions: the versions in which copied rows last changed; null for a row that is new or
            that this write changes.
    """

    row_ids: Array
    row_commit_versions: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class RowBatch:
    """Some rows, by logical names.

    Attributes:
        columns: the rows; once aligned, all columns of the table in its order.
        absent: names of the table's columns for which the caller gave no value at all. That differs from
            null: it is what defaults, identity values and generated values fill.
        hidden: of rows that were in the table before; None when all are new.
    """

    columns: Columns
    absent: frozenset[str] = field(default=frozenset())
    hidden: MaterializedRowIds | None = None

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return int(self.columns.num_rows)
