"""Rows that a load would stop at, found instead and kept for the quarantine.

A row that breaks NOT NULL or a constraint, or whose text is not of its column's type, can never be a row
of the table, so it is not staged; under `on_failure: quarantine` it does not stop the good ones either.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from delta_core.errors import JobFailedError
from delta_core.schema.types import StructField, StructType
from spark_jobs.failures import as_delta_error
from spark_jobs.quality.quarantine import BadRows
from spark_jobs.writer.checks import Check
from spark_jobs.writer.columns import conform_columns, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_NAMES: Final = "__deltaward_broken"
_RAW: Final = "__deltaward_raw"


@dataclass(frozen=True, slots=True, kw_only=True)
class MistypedRows:
    """Rows of a source with text that is not of its column's type.

    Attributes:
        frame: these rows alone; the text in question is null. The columns of `notes` stand last.
        casts: the columns that were cast.
        notes: for each cast a boolean, whether its text was wrong; then the row's text.
    """

    frame: DataFrame
    casts: Sequence[StructField]
    notes: StructType


def divide_by_type(
    frame: DataFrame, *, casts: Sequence[StructField], notes: StructType
) -> tuple[DataFrame, MistypedRows]:
    """(rows whose text is of its columns' types, the others), from rows with `notes` about them."""
    from pyspark.sql import functions as fn

    # A chain of ORs over hundreds of columns is deeper than a Connect server reads.
    wrong = fn.array_contains(fn.array(*_flags(casts, notes)), True)
    right = frame.where(~wrong).drop(*notes.names)
    return right, MistypedRows(frame=frame.where(wrong), casts=casts, notes=notes)


def _flags(casts: Sequence[StructField], notes: StructType) -> list[Column]:
    from pyspark.sql import functions as fn

    return [fn.col(quoted(name)) for name in notes.names[: len(casts)]]


class RejectedRows:
    """The rows of one batch that are not staged, by what they break.

    `split` before staging, `staged` after it, then `load` where wanted, and `release` at the end.

    Attributes:
        rows: how many there are.
    """

    def __init__(self) -> None:
        self.rows = 0
        self._parts: list[tuple[DataFrame, int]] = []
        self._cached: DataFrame | None = None
        self._broken: DataFrame | None = None
        self._total = 0

    def split(self, frame: DataFrame, checks: Sequence[Check]) -> DataFrame:
        """The rows that pass every check; the others are kept for `load`.

        The rows are computed once and cached for the passes that follow: a source that is not determined
        by its files would otherwise give each pass other rows.

        Args:
            frame: rows with the table's columns.
            checks: the conditions; none of them fails on a row.
        """
        from pyspark.sql import functions as fn

        distinct = {(check.name, check.broken_if): check for check in checks}.values()
        if not distinct:
            return frame
        self._cached = frame.persist()
        self._total = self._cached.count()
        broken = [fn.when(check.broken(), fn.lit(check.name)) for check in distinct]
        marked = self._cached.withColumn(_NAMES, fn.array_compact(fn.array(*broken)))
        self._broken = marked.where(fn.size(_NAMES) > 0).withColumn(_RAW, fn.lit(None).cast("string"))
        return marked.where(fn.size(_NAMES) == 0).drop(_NAMES)

    def staged(self, rows: int) -> None:
        """Note how many rows passed and were written: the others are the rejected ones."""
        if self._broken is not None:
            self._add(self._broken, self._total - rows)

    def add_mistyped(self, mistyped: MistypedRows, schema: StructType) -> None:
        """Note rows with text that is not of its column's type."""
        frame = mistyped_rows(mistyped, schema)
        self._add(frame, frame.count())

    def load(self) -> list[BadRows]:
        """The rows, in memory.

        Raises:
            JobFailedError: Spark failed, or gave other rows than it counted.
        """
        return [_collected(frame, count) for frame, count in self._parts]

    def release(self) -> None:
        """Give the cache back."""
        if self._cached is not None:
            with contextlib.suppress(Exception):  # a broken connection must not hide an error
                self._cached.unpersist()
            self._cached = None

    def _add(self, frame: DataFrame, count: int) -> None:
        if count:
            self.rows += count
            self._parts.append((frame, count))


def mistyped_rows(mistyped: MistypedRows, schema: StructType) -> DataFrame:
    """Rows with wrong text as the quarantine keeps them: what could be read, and the text itself."""
    from pyspark.sql import functions as fn

    notes = mistyped.notes
    frame = conform_columns(mistyped.frame, StructType((*schema.fields, *notes.fields)))
    wrong: list[Column] = [
        fn.when(fn.col(quoted(note)), fn.lit(f"TYPE {cast.name}"))
        for cast, note in zip(mistyped.casts, notes.names, strict=False)
    ]
    names = fn.array_compact(fn.array(*wrong)).alias(_NAMES)
    raw = fn.col(quoted(notes.names[-1])).alias(_RAW)
    return frame.select(*[fn.col(quoted(name)) for name in schema.names], names, raw)


def _collected(frame: DataFrame, count: int) -> BadRows:
    try:
        table: pa.Table = frame.toArrow()
    except Exception as error:
        raise as_delta_error(error, doing="collecting rows for the quarantine") from error
    if table.num_rows != count:
        raise JobFailedError(
            f"{count} rows were to go to quarantine, and {table.num_rows} were found.",
            cause="The source gives other rows each time it is read",
            fix="Leave out of select and deduplicate what is not determined by the files",
        )
    names = [tuple(row) for row in table.column(_NAMES).to_pylist()]
    return BadRows(
        rows=table.drop_columns([_NAMES, _RAW]),
        reasons=[f"breaks {', '.join(row)}" for row in names],
        expectations=names,
        raw=table.column(_RAW).to_pylist(),
    )
