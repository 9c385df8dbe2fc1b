"""A suite on staged files in memory: Parquet to Arrow to pandas, one row of the frame per staged row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from spark_jobs.quality.expectations_library import validate
from spark_jobs.quality.outcome import ExpectationOutcome, outcome_of, schema_outcomes
from spark_jobs.quality.params import MAX_SAMPLES
from spark_jobs.quality.staged import Positions, StagedFiles
from spark_jobs.quality.suite import PlannedExpectation

if TYPE_CHECKING:
    import pandas as pd

PANDAS_ROWS: Final = 1_000_000
"""Below this many rows the engine `auto` is pandas."""

_EXACT_DECIMAL_DIGITS = 15
_RESULT_FORMAT = {
    "result_format": "COMPLETE",
    "partial_unexpected_count": MAX_SAMPLES,
    "include_unexpected_rows": False,
}


def evaluate_with_pandas(
    staged: StagedFiles, planned: Sequence[PlannedExpectation], *, samples: int
) -> list[ExpectationOutcome]:
    """The outcomes in the order of the suite. All rows are in memory while it runs."""
    outcomes = schema_outcomes(planned, staged.schema)
    frame = to_frame(staged.to_table())
    wanted = {index: item.expectation for index, item in enumerate(planned) if index not in outcomes}
    for index, result in validate(frame, wanted, source="pandas", result_format=_RESULT_FORMAT):
        item = planned[index]
        rows = _positions(result) if item.row_level else None
        outcomes[index] = outcome_of(item, result, samples=samples, rows=rows)
    return [outcomes[index] for index in range(len(planned))]


def to_frame(table: pa.Table) -> pd.DataFrame:
    """A table as pandas holds it without changing a value; the index is the row's position.

    Whole numbers and booleans with nulls stay what they are, as objects, where pandas would make floats
    of them, and where its nullable types break expectations that compare two columns. Decimals of at most
    15 digits become floats, which hold them exactly enough: the library takes bounds as floats only, and
    1.10 as a decimal is below 1.1 as a float.
    """
    columns = []
    for field in table.schema:
        column = table.column(field.name)
        if pa.types.is_decimal(field.type) and field.type.precision <= _EXACT_DECIMAL_DIGITS:
            column = column.cast(pa.float64())
        columns.append(column)
    frame: pd.DataFrame = pa.Table.from_arrays(columns, names=table.column_names).to_pandas(
        integer_object_nulls=True, date_as_object=True, ignore_metadata=True
    )
    return frame


def _positions(result: Any) -> Positions | None:
    """The unexpected rows by position; None when the library does not tell."""
    found = (result.result or {}).get("unexpected_index_list")
    if found is None:
        return None
    return np.unique(np.asarray(found, dtype=np.int64))
