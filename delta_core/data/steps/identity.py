"""Identity values: unique numbers after the table's high-water mark.

PROTOCOL.md, "Identity Columns". The commit of the rows must contain the new high-water marks. When another
writer has changed a mark in the meantime, the rows must be generated again.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace

from delta_core.data.row_batch import RowBatch
from delta_core.data.steps.step import with_column
from delta_core.data.write_plan import WritePlan
from delta_core.forks import renew_lock_in_children
from delta_core.schema.types import StructType
from delta_core.table_features.identity import IdentityColumn, IdentityRange
from delta_core.table_features.identity import with_high_water_marks as reached


class IdentityStep:
    """Fills absent identity columns. Given values stay and change no mark, as in delta-spark.

    `reserve` may be called from several threads.

    Raises (from `apply` and `reserve`):
        ConstraintViolationError: a column has no numbers left.
    """

    def __init__(self, plan: WritePlan) -> None:
        self._plan = plan
        self._columns = {item.name: item for item in plan.identity}
        self._partitions = frozenset(plan.partition_columns)
        self._moved: set[str] = set()
        self._lock = threading.Lock()
        renew_lock_in_children(self)

    @property
    def high_water_marks(self) -> Mapping[str, int]:
        """The new high-water marks of the columns for which numbers were generated, by column name."""
        with self._lock:
            marks = {name: self._columns[name].high_water_mark for name in self._moved}
        return {name: mark for name, mark in marks.items() if mark is not None}

    def apply(self, batch: RowBatch) -> RowBatch:
        """The rows with numbers in the absent identity columns."""
        fields = [field for field in self._plan.schema if field.name in batch.absent & self._columns.keys()]
        columns = batch.columns
        for field in fields:
            numbers = self.reserve(field.name, batch.num_rows).values()
            columns = with_column(columns, field, numbers, is_partition=field.name in self._partitions)
        return replace(batch, columns=columns, absent=batch.absent - {field.name for field in fields})

    def reserve(self, column: str, count: int) -> IdentityRange:
        """Reserve numbers for `count` rows; another engine may leave some of them unused."""
        with self._lock:
            reserved = self._columns[column].reserve(count)
            self._columns[column] = self._columns[column].after(reserved)
            if count:
                self._moved.add(column)
        return reserved


def with_high_water_marks(schema: StructType, marks: Mapping[str, int]) -> StructType:
    """The schema with new marks in the metadata of identity columns; a mark never decreases.

    Args:
        schema: the table's schema.
        marks: by column, see `IdentityStep.high_water_marks`.
    """
    return reached(schema, [IdentityColumn(name=name, high_water_mark=mark) for name, mark in marks.items()])
