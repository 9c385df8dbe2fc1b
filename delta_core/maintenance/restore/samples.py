"""Rows as small JSON objects, for display."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

MOST_COLUMNS: Final = 30
"""The most columns of a row that are shown; the first ones."""

MOST_CHARACTERS: Final = 120
"""The most characters of a value; a longer value is cut and ends with an ellipsis."""


def sample_row(batch: pa.RecordBatch, row: int) -> dict[str, Any]:
    """One row as a JSON object of bounded size; the key `...` has the number of omitted columns."""
    names = batch.schema.names
    shown = {
        name: bounded(batch.column(index)[row].as_py()) for index, name in enumerate(names[:MOST_COLUMNS])
    }
    if len(names) > MOST_COLUMNS:
        shown["..."] = f"{len(names) - MOST_COLUMNS} more columns"
    return shown


def bounded(value: Any) -> Any:
    """The value for JSON: numbers and short strings unchanged, other values as a bounded string."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    string = value if isinstance(value, str) else _string(value)
    return (
        string
        if len(string) <= MOST_CHARACTERS
        else f"{string[: MOST_CHARACTERS - 1]}\N{HORIZONTAL ELLIPSIS}"
    )


def _string(value: Any) -> str:
    if isinstance(value, bytes):
        # Bytes beyond the limit would be cut anyway.
        return f"0x{value[:MOST_CHARACTERS].hex()}"
    if isinstance(value, dt.date | dt.datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    return json.dumps(value, ensure_ascii=False, default=_string)
