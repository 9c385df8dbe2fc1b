"""The steps between a caller's rows and the files of a table.

    a caller's rows -> align -> defaults -> identity -> generated -> constraints -> files (physical)
    updated rows    ->                                   generated -> constraints -> files (physical)
    copied rows     ->                                                               files (physical)

Copied rows were checked when they were first written; `write_rows_to_files` writes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from delta_core.actions.add_file import AddFile
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.data.constraints import ConstraintsStep
from delta_core.data.row_batch import Columns, RowBatch
from delta_core.data.row_files import FileOptions, write_rows_to_files
from delta_core.data.steps.align import AlignStep
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
    """The files of a write, and the identity marks for its commit.

    Attributes:
        adds: one action per file.
        high_water_marks: by name, for the identity columns for which numbers were generated. The metadata of
            the commit must contain them (`identity.with_high_water_marks`). When a winning commit changed the
            marks, the rows must be written again.
    """

    adds: tuple[AddFile, ...]
    high_water_marks: Mapping[str, int]


class RowPipeline:
    """The steps of one statement; create a new pipeline for each statement and for each attempt.

    Raises (from the constructor):
        ExpressionError: a constraint or generation expression cannot be parsed or resolved.
    """

    def __init__(self, plan: WritePlan, *, now_us: int, predicate: Expression | None = None) -> None:
        """Prepare the steps.

        Args:
            plan: the write plan of the table.
            now_us: the statement's time, microseconds since the epoch, for defaults.
            predicate: an additional condition on every row (replaceWhere), resolved against the schema.
        """
        self._plan = plan
        self._identity = IdentityStep(plan) if plan.identity else None
        self._constraints = ConstraintsStep(plan, predicate=predicate)
        self._arrow = to_arrow(plan.schema)
        changing: list[Step] = [GeneratedStep(plan)] if plan.generated else []
        filling: list[Step] = []
        if plan.defaults:
            filling.append(DefaultsStep(plan, now_us=now_us))
        if self._identity is not None:
            filling.append(self._identity)
        self._new_row_steps: tuple[Step, ...] = (AlignStep(plan), *filling, *changing, self._constraints)
        self._updated_row_steps: tuple[Step, ...] = (*changing, self._constraints)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of new rows, in order."""
        return self._new_row_steps

    @property
    def high_water_marks(self) -> Mapping[str, int]:
        """The high-water marks of identity columns after all rows until now; see `WrittenRows`."""
        return {} if self._identity is None else self._identity.high_water_marks

    def new_rows(self, columns: Columns) -> Columns:
        """Convert a caller's rows to rows of the table.

        Raises:
            SchemaMismatchError: the rows do not fit the schema.
            ConstraintViolationError: a row violates a constraint, a generated column or the predicate; the
                message shows one row.
            ExpressionError: an expression cannot be evaluated for the rows.
        """
        return self._through(self._new_row_steps, RowBatch(columns=columns)).columns

    def updated_rows(self, batch: RowBatch) -> RowBatch:
        """Check updated rows of the table, and compute their generated columns.

        Args:
            batch: all columns of the table. `absent` contains the generated columns without an assignment,
                which are computed again. Identity values and row ids stay.

        Raises:
            ConstraintViolationError, ExpressionError: see `new_rows`.
        """
        return self._through(self._updated_row_steps, batch)

    def stream(self, rows: Rows) -> Rows:
        """`new_rows` for a whole table, or for a reader's batches as they are read."""
        if isinstance(rows, pa.Table):
            return self.new_rows(rows)

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in _read(rows):
                if batch.nbytes <= large_arrays.CHUNK_BYTES:
                    yield self.new_rows(batch)
                else:
                    # A batch has one array per column, and one array may not have room for all values.
                    yield from self.new_rows(pa.Table.from_batches([batch])).to_batches()

        return pa.RecordBatchReader.from_batches(self._arrow, batches())

    def _through(self, steps: tuple[Step, ...], batch: RowBatch) -> RowBatch:
        for step in steps:
            batch = step.apply(batch)
        return batch


def _read(rows: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """A caller's batches. Exceptions of the caller's own code become InputDataError."""
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
    """Write a caller's rows as files of the table. Commits nothing. After an error, no file remains.

    For a reader, memory is limited to one row group per open partition, with at most 64 open partitions.

    Raises:
        SchemaMismatchError, ConstraintViolationError, ExpressionError: see `RowPipeline.new_rows`.
        InputDataError: the source of the rows failed.
        StorageError: a file could not be written.
    """
    pipeline = RowPipeline(plan, now_us=clock.now_ms() * 1000, predicate=predicate)
    adds = write_rows_to_files(store, pipeline.stream(rows), plan=plan, options=options, clock=clock)
    return WrittenRows(adds=tuple(adds), high_water_marks=pipeline.high_water_marks)
