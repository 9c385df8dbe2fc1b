"""Expectations that Great Expectations evaluates with pandas: its statistics and custom expectations.

It is always pandas, for any number of rows, because the library's engines give different results. Only the
columns of an expectation are in memory. With more than `MAX_LIBRARY_ROWS` rows it fails with an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from delta_core.jobs.params.quality import MAX_SAMPLES
from spark_jobs.quality.expectations_library import validate
from spark_jobs.quality.outcome import ExpectationOutcome, outcome_of_library
from spark_jobs.quality.rules import LibraryRule, Rows
from spark_jobs.quality.suite import PlannedExpectation
from spark_jobs.writer.staged_files import Positions, StagedFiles

if TYPE_CHECKING:
    import pandas as pd

MAX_LIBRARY_ROWS: Final = 10_000_000
"""The maximum number of rows for Great Expectations, because the driver's memory must hold their values."""

_RESULT_FORMAT = {
    "result_format": "COMPLETE",
    "partial_unexpected_count": MAX_SAMPLES,
    "include_unexpected_rows": False,
}


def evaluate_with_library(
    staged: StagedFiles, planned: Mapping[int, PlannedExpectation], *, samples: int
) -> dict[int, ExpectationOutcome]:
    """The outcomes of the expectations that Great Expectations evaluates, by their index in the suite."""
    outcomes = {}
    for index, item in planned.items():
        if staged.rows > MAX_LIBRARY_ROWS:
            outcomes[index] = ExpectationOutcome(planned=item, success=False, error=_too_many(staged.rows))
            continue
        assert isinstance(item.rule, LibraryRule)
        selection = item.rule.selection
        table = staged.to_table(columns=selection.needed if selection.columns else None)
        frame = to_frame(table)
        expectation = item.expectation
        if selection.where is not None:
            # Rules select the rows, not the library. The frame's index keeps their positions.
            masks = [selection.mask(Rows(batch)) for batch in table.to_batches()]
            frame = frame[np.concatenate([np.empty(0, dtype=bool), *masks])]
            expectation = expectation.copy(update={"row_condition": None, "condition_parser": None})
        for _, result in validate(frame, {index: expectation}, result_format=_RESULT_FORMAT):
            rows = _positions(result) if item.row_level else None
            outcomes[index] = outcome_of_library(item, result, samples=samples, rows=rows)
    return outcomes


def to_frame(table: pa.Table) -> pd.DataFrame:
    """A table as a pandas DataFrame; the index is the row's position.

    Integers and booleans with nulls become objects: pandas would convert them to floats, and its nullable
    types break expectations that compare two columns. Decimals with a fraction become the nearest doubles,
    because the library's bounds are doubles: 1.10 as a decimal is below 1.1 as a double. The cast goes
    through strings, because Arrow's direct cast gives a different double for some decimals, such as 3.30.
    """
    columns = []
    for field in table.schema:
        column = table.column(field.name)
        if pa.types.is_decimal(field.type) and field.type.scale > 0:
            column = column.cast(pa.string()).cast(pa.float64())
        columns.append(column)
    frame: pd.DataFrame = pa.Table.from_arrays(columns, names=table.column_names).to_pandas(
        integer_object_nulls=True, date_as_object=True, ignore_metadata=True
    )
    return frame


def _too_many(rows: int) -> str:
    return (
        f"the batch has {rows} rows, and Great Expectations evaluates at most {MAX_LIBRARY_ROWS}, "
        "because it holds all values of a column in memory"
    )


def _positions(result: Any) -> Positions | None:
    """The positions of the unexpected rows; None when Great Expectations does not report them."""
    indexes = (result.result or {}).get("unexpected_index_list")
    if indexes is None:
        return None
    return np.unique(np.asarray(indexes, dtype=np.int64))
