"""The chain of steps that rows go through on their way into a table, and the files at its end.

    a caller's rows -> align -> defaults -> identity -> generated -> constraints -> files (physical)
    updated rows    ->                                   generated -> constraints -> files (physical)
    copied rows     ->                                                               files (physical)

Rows that are copied were checked when they came; `write_rows_to_files` takes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from delta_core.actions.add_file import AddFile
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.data.parquet_writer import FileOptions, write_rows_to_files
from delta_core.data.row_batch import Columns, RowBatch
from delta_core.data.steps.align import AlignStep
from delta_core.data.steps.constraints import ConstraintsStep
from delta_core.data.steps.defaults import DefaultsStep
from delta_core.data.steps.generated import GeneratedStep
from delta_core.data.steps.identity import IdentityStep
from delta_core.data.steps.step import Step
from delta_core.data.write_plan import WritePlan
from delta_core.errors import DeltaError
from delta_core.errors.definitions import unreadable_data
from delta_core.expressions.ast import Expression
from delta_core.schema import large_arrays
from delta_core.schema.arrow import to_arrow
from delta_core.storage.log_store import LogStore

Rows: TypeAlias = "pa.Table | pa.RecordBatchReader"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenRows:
    """What a write left in the store, and what its commit must say.

    Attributes:
        adds: one action per file.
        high_water_marks: of identity columns for which numbers were generated: the commit's metadata must
            have them (`identity.with_high_water_marks`), and a commit that meets another one's marks must
            write the rows anew.
    """

    adds: tuple[AddFile, ...]
    high_water_marks: Mapping[str, int]


class RowPipeline:
    """The steps of one statement; use a new one for each, and for each new attempt of one.

    Raises (when made):
        ExpressionError: a constraint or generation expression cannot be understood here.
    """

    def __init__(self, plan: WritePlan, *, now_us: int, predicate: Expression | None = None) -> None:
        """Prepare the steps.

        Args:
            plan: the table's.
            now_us: the statement's time, microseconds since the epoch, for defaults.
            predicate: what every row must satisfy besides (replaceWhere), resolved against the schema.
        """
        self._plan = plan
        self._identity = IdentityStep(plan)
        self._constraints = ConstraintsStep(plan, predicate=predicate)
        self._arrow = to_arrow(plan.schema)
        changing: list[Step] = [GeneratedStep(plan)] if plan.generated else []
        filling: list[Step] = []
        if plan.defaults:
            filling.append(DefaultsStep(plan, now_us=now_us))
        if plan.identity:
            filling.append(self._identity)
        self._of_new: tuple[Step, ...] = (AlignStep(plan), *filling, *changing, self._constraints)
        self._of_updated: tuple[Step, ...] = (*changing, self._constraints)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of new rows, in order."""
        return self._of_new

    @property
    def high_water_marks(self) -> Mapping[str, int]:
        """See `WrittenRows`; of the rows that have gone through."""
        return self._identity.high_water_marks

    def new_rows(self, columns: Columns) -> Columns:
        """A caller's rows as rows of the table.

        Raises:
            SchemaMismatchError: they do not fit the schema.
            ConstraintViolationError: they break a constraint, a generated column or the predicate; shows
                one.
            ExpressionError: an expression cannot be evaluated for them.
        """
        return self._through(self._of_new, RowBatch(columns=columns)).columns

    def updated_rows(self, batch: RowBatch) -> RowBatch:
        """Rows of the table with new values in some columns.

        Args:
            batch: all columns of the table; `absent` names the generated columns to which nothing was
                assigned, which are computed anew. Identity values and row ids stay.

        Raises:
            ConstraintViolationError, ExpressionError: as `new_rows`.
        """
        return self._through(self._of_updated, batch)

    def stream(self, rows: Rows) -> Rows:
        """`new_rows` of a table at once, or of a reader's batches as they are read."""
        if isinstance(rows, pa.Table):
            return self.new_rows(rows)

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in _read(rows):
                if batch.nbytes <= large_arrays.CHUNK_BYTES:
                    yield self.new_rows(batch)
                else:
                    # One array of a column's type may not hold all of it, and a batch has one array each.
                    yield from self.new_rows(pa.Table.from_batches([batch])).to_batches()

        return pa.RecordBatchReader.from_batches(self._arrow, batches())

    def _through(self, steps: tuple[Step, ...], batch: RowBatch) -> RowBatch:
        for step in steps:
            batch = step.apply(batch)
        return batch


def _read(rows: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """A caller's batches, where what the caller's own code raises is told from our own failures."""
    while True:
        try:
            batch = rows.read_next_batch()
        except StopIteration:
            return
        except DeltaError:
            raise
        except Exception as error:
            raise unreadable_data(error) from error
        yield batch


def write_rows(
    store: LogStore,
    plan: WritePlan,
    rows: Rows,
    *,
    predicate: Expression | None = None,
    options: FileOptions | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> WrittenRows:
    """Write a caller's rows as files of the table. Commits nothing; if it fails, no file is left.

    Memory is bounded for a reader by one row group per open partition, at most 64 of them.

    Raises:
        SchemaMismatchError, ConstraintViolationError, ExpressionError: see `RowPipeline.new_rows`.
        InputDataError: the rows' source failed.
        StorageError: a file could not be written.
    """
    pipeline = RowPipeline(plan, now_us=clock.now_ms() * 1000, predicate=predicate)
    adds = write_rows_to_files(store, pipeline.stream(rows), plan=plan, options=options, clock=clock)
    return WrittenRows(adds=tuple(adds), high_water_marks=pipeline.high_water_marks)
