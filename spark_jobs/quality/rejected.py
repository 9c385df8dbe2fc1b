"""Rows that violate the contract, collected for the quarantine instead of failing the load.

A row that violates NOT NULL or a constraint, or has a mistyped value, can never be a row of the table, so it
is not staged. With `on_failure: quarantine` it does not stop the load of the good rows either.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from delta_core.errors import JobFailedError
from delta_core.schema.types import StructField, StructType
from spark_jobs.expressions.checks import Check
from spark_jobs.expressions.columns import conform_columns, quoted
from spark_jobs.failures import as_delta_error
from spark_jobs.quality.quarantine import BadRows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_NAMES: Final = "__deltaward_broken"
_RAW: Final = "__deltaward_raw"


@dataclass(frozen=True, slots=True, kw_only=True)
class MistypedRows:
    """Rows of a source with strings that are not values of their column's type.

    Attributes:
        frame: only these rows; a mistyped value is null. The columns of `notes` are last.
        casts: the columns that were cast.
        notes: for each cast a boolean column that is true for a mistyped value; then the original row as
            JSON.
    """

    frame: DataFrame
    casts: Sequence[StructField]
    notes: StructType


def divide_by_type(
    frame: DataFrame, *, casts: Sequence[StructField], notes: StructType
) -> tuple[DataFrame, MistypedRows]:
    """Split rows by their `notes` into (well-typed rows, mistyped rows)."""
    from pyspark.sql import functions as fn

    # A Connect server refuses a chain of ORs over hundreds of columns, because it is too deep.
    mistyped_names = fn.array_contains(fn.array(*_flags(casts, notes)), True)
    well_typed = frame.where(~mistyped_names).drop(*notes.names)
    return well_typed, MistypedRows(frame=frame.where(mistyped_names), casts=casts, notes=notes)


def _flags(casts: Sequence[StructField], notes: StructType) -> list[Column]:
    from pyspark.sql import functions as fn

    return [fn.col(quoted(name)) for name in notes.names[: len(casts)]]


class RejectedRows:
    """The rows of one batch that violate the contract and are not staged.

    Call `split` before staging, `staged` after it, then `load` if needed, and `release` at the end.

    Attributes:
        rows: the number of rejected rows.
    """

    def __init__(self) -> None:
        self.rows = 0
        self._parts: list[tuple[DataFrame, int]] = []
        self._cached: DataFrame | None = None
        self._violating: DataFrame | None = None
        self._total = 0

    def split(self, frame: DataFrame, checks: Sequence[Check]) -> DataFrame:
        """The rows that pass every check. The other rows are kept for `load`.

        The rows are computed once and cached for the later passes, because a non-deterministic source would
        return different rows in each pass.

        Args:
            frame: rows with the table's columns.
            checks: the conditions. Their evaluation must not fail.
        """
        from pyspark.sql import functions as fn

        distinct = {(check.name, check.broken_if): check for check in checks}.values()
        if not distinct:
            return frame
        self._cached = frame.persist()
        self._total = self._cached.count()
        violated = [fn.when(check.broken(), fn.lit(check.name)) for check in distinct]
        marked = self._cached.withColumn(_NAMES, fn.array_compact(fn.array(*violated)))
        self._violating = marked.where(fn.size(_NAMES) > 0).withColumn(_RAW, fn.lit(None).cast("string"))
        return marked.where(fn.size(_NAMES) == 0).drop(_NAMES)

    def staged(self, rows: int) -> None:
        """Record the number of staged rows. The rest of the batch's rows are the rejected rows."""
        if self._violating is not None:
            self._add(self._violating, self._total - rows)

    def add_mistyped(self, mistyped: MistypedRows, schema: StructType) -> None:
        """Add the mistyped rows of the source to the rejected rows."""
        frame = mistyped_rows(mistyped, schema)
        self._add(frame, frame.count())

    def load(self) -> list[BadRows]:
        """The rejected rows, collected into the driver's memory.

        Raises:
            JobFailedError: Spark failed, or returned more or fewer rows than it counted.
        """
        return [_collected(frame, count) for frame, count in self._parts]

    def release(self) -> None:
        """Release the cached rows."""
        if self._cached is not None:
            with contextlib.suppress(Exception):  # a broken connection must not hide an error
                self._cached.unpersist()
            self._cached = None

    def _add(self, frame: DataFrame, count: int) -> None:
        if count:
            self.rows += count
            self._parts.append((frame, count))


def mistyped_rows(mistyped: MistypedRows, schema: StructType) -> DataFrame:
    """Mistyped rows in the quarantine's form: the values that could be cast, and the original row as JSON."""
    from pyspark.sql import functions as fn

    notes = mistyped.notes
    frame = conform_columns(mistyped.frame, StructType((*schema.fields, *notes.fields)))
    mistyped_names: list[Column] = [
        fn.when(fn.col(quoted(note)), fn.lit(f"TYPE {cast.name}"))
        for cast, note in zip(mistyped.casts, notes.names, strict=False)
    ]
    names = fn.array_compact(fn.array(*mistyped_names)).alias(_NAMES)
    raw = fn.col(quoted(notes.names[-1])).alias(_RAW)
    return frame.select(*[fn.col(quoted(name)) for name in schema.names], names, raw)


def _collected(frame: DataFrame, count: int) -> BadRows:
    try:
        table: pa.Table = frame.toArrow()
    except Exception as error:
        raise as_delta_error(error, doing="collecting rows for the quarantine") from error
    if table.num_rows != count:
        raise JobFailedError(
            f"Spark counted {count} rows for the quarantine, and then returned {table.num_rows} rows.",
            cause="The source returns different rows each time it is read.",
            fix="Remove non-deterministic expressions from select and deduplicate.",
        )
    names = [tuple(row) for row in table.column(_NAMES).to_pylist()]
    return BadRows(
        rows=table.drop_columns([_NAMES, _RAW]),
        reasons=[f"violates {', '.join(row)}" for row in names],
        expectations=names,
        raw=table.column(_RAW).to_pylist(),
    )
