"""Identity values: unique numbers that continue beyond the table's high-water mark.

PROTOCOL.md, "Identity Columns". Who commits the rows must commit the new high-water marks with them; when
another writer has moved a mark in the meantime, the rows must be generated anew.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from delta_core.data.row_batch import RowBatch
from delta_core.data.steps.step import with_column
from delta_core.data.write_plan import IDENTITY_PREFIX, IdentityColumn, WritePlan
from delta_core.errors import ConstraintViolationError
from delta_core.schema.types import StructType

_LOWEST, _HIGHEST = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityRange:
    """Numbers that nobody else gets: `first`, `first + step`, ..., `count` of them."""

    first: int
    step: int
    count: int

    def to_arrow(self) -> pa.Array:
        """The numbers, as 64-bit integers."""
        offsets = np.arange(self.count, dtype=np.int64)
        # Each product is the distance of two 64-bit numbers, so it may wrap; the sum wraps back.
        with np.errstate(over="ignore"):
            return pa.array(offsets * np.int64(self.step) + np.int64(self.first), pa.int64())


class IdentityStep:
    """Fills absent identity columns. Values that were given stay, and move no mark, as in delta-spark.

    Reservations may come from several threads.

    Raises (from `apply` and `reserve`):
        ConstraintViolationError: the numbers of a column are used up.
    """

    columns_needed: frozenset[str] = frozenset()

    def __init__(self, plan: WritePlan) -> None:
        self._plan = plan
        self._columns = {item.column: item for item in plan.identity}
        self._partitions = frozenset(plan.partition_columns)
        self._marks = {item.column: item.high_water_mark for item in plan.identity}
        self._moved: set[str] = set()
        self._lock = threading.Lock()

    @property
    def high_water_marks(self) -> Mapping[str, int]:
        """The new marks of the columns for which numbers were generated."""
        with self._lock:
            marks = {name: self._marks[name] for name in self._moved}
        return {name: mark for name, mark in marks.items() if mark is not None}

    def apply(self, batch: RowBatch) -> RowBatch:
        """The rows with numbers in the identity columns that they lack."""
        wanted = [field for field in self._plan.schema if field.name in batch.absent & self._columns.keys()]
        columns = batch.columns
        for field in wanted:
            numbers = self.reserve(field.name, batch.num_rows).to_arrow()
            columns = with_column(columns, field, numbers, is_partition=field.name in self._partitions)
        return replace(batch, columns=columns, absent=batch.absent - {field.name for field in wanted})

    def reserve(self, column: str, count: int) -> IdentityRange:
        """Numbers for `count` rows; another engine may leave some of them unused."""
        item = self._columns[column]
        with self._lock:
            first = _next(item, self._marks[column])
            if count:
                last = first + (count - 1) * item.step
                if not _LOWEST <= last <= _HIGHEST or not _LOWEST <= first <= _HIGHEST:
                    raise ConstraintViolationError(
                        f"The identity column {column} has no numbers left for {count} rows",
                        cause=f"The next would be {first}, in steps of {item.step}; 64 bits hold no more",
                        fix="Write the rows to a new table whose identity column has another start or step",
                    )
                self._marks[column] = last
                self._moved.add(column)
        return IdentityRange(first=first, step=item.step, count=count)


def with_high_water_marks(schema: StructType, marks: Mapping[str, int]) -> StructType:
    """The schema with new marks in the metadata of identity columns; a mark never goes back.

    Args:
        schema: the table's schema.
        marks: by column, as `IdentityStep.high_water_marks` gives them.
    """
    fields = []
    for field in schema:
        mark = marks.get(field.name)
        if mark is not None:
            known = field.metadata.get(f"{IDENTITY_PREFIX}highWaterMark")
            upwards = int(field.metadata[f"{IDENTITY_PREFIX}step"]) > 0
            if known is not None:
                mark = max(mark, int(known)) if upwards else min(mark, int(known))
            field = replace(field, metadata={**field.metadata, f"{IDENTITY_PREFIX}highWaterMark": mark})
        fields.append(field)
    return StructType(tuple(fields))


def _next(item: IdentityColumn, mark: int | None) -> int:
    """The first number of the column's sequence that lies beyond the mark."""
    if mark is None or (mark < item.start if item.step > 0 else mark > item.start):
        return item.start
    # Others may leave a mark between two numbers of the sequence.
    return item.start + ((mark - item.start) // item.step + 1) * item.step
