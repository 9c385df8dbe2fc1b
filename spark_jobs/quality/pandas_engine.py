"""What Great Expectations itself judges, on pandas: its statistics, and what a deployment adds to it.

One engine, whatever the number of rows, since the library's engines differ. Only the columns that an
expectation names are in memory, and above a number of rows it is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from spark_jobs.quality.expectations_library import validate
from spark_jobs.quality.outcome import ExpectationOutcome, outcome_of_library
from spark_jobs.quality.params import MAX_SAMPLES
from spark_jobs.quality.rules import LibraryRule, Rows
from spark_jobs.quality.staged import Positions, StagedFiles
from spark_jobs.quality.suite import PlannedExpectation

if TYPE_CHECKING:
    import pandas as pd

MAX_LIBRARY_ROWS: Final = 10_000_000
"""Of more rows the library judges none: their values would not be sure to fit into the driver."""

_RESULT_FORMAT = {
    "result_format": "COMPLETE",
    "partial_unexpected_count": MAX_SAMPLES,
    "include_unexpected_rows": False,
}


def evaluate_with_library(
    staged: StagedFiles, planned: Mapping[int, PlannedExpectation], *, samples: int
) -> dict[int, ExpectationOutcome]:
    """The outcomes of the expectations that the library judges, by their places in the suite."""
    outcomes = {}
    for index, item in planned.items():
        if staged.rows > MAX_LIBRARY_ROWS:
            outcomes[index] = ExpectationOutcome(planned=item, success=False, error=_too_many(staged.rows))
            continue
        assert isinstance(item.rule, LibraryRule)
        asked = item.rule.asked
        table = staged.to_table(columns=asked.needed if asked.columns else None)
        frame = to_frame(table)
        expectation = item.expectation
        if asked.where is not None:
            # Which rows are asked is said by our predicates; the index keeps their positions.
            masks = [asked.mask(Rows(batch)) for batch in table.to_batches()]
            frame = frame[np.concatenate([np.empty(0, dtype=bool), *masks])]
            expectation = expectation.copy(update={"row_condition": None, "condition_parser": None})
        for _, result in validate(frame, {index: expectation}, result_format=_RESULT_FORMAT):
            rows = _positions(result) if item.row_level else None
            outcomes[index] = outcome_of_library(item, result, samples=samples, rows=rows)
    return outcomes


def to_frame(table: pa.Table) -> pd.DataFrame:
    """A table as pandas holds it; the index is the row's position.

    Whole numbers and booleans with nulls stay what they are, as objects, where pandas would make floats
    of them, and where its nullable types break expectations that compare two columns. Decimals with a
    fraction become the nearest doubles, since the library takes bounds as doubles only: 1.10 as a decimal
    is below 1.1 as a double. Arrow's own cast gives another double for some, such as 3.30.
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
        f"{rows} rows are more than the {MAX_LIBRARY_ROWS} that Great Expectations judges, "
        "which has all values of a column in memory"
    )


def _positions(result: Any) -> Positions | None:
    """The unexpected rows by position; None when the library does not tell."""
    found = (result.result or {}).get("unexpected_index_list")
    if found is None:
        return None
    return np.unique(np.asarray(found, dtype=np.int64))
