"""Rows as small JSON objects, to be shown to people."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

MOST_COLUMNS: Final = 30
"""Of a wider row the first so many columns are shown."""

MOST_CHARACTERS: Final = 120
"""A longer value is cut, and says so by an ellipsis."""


def sample_row(batch: pa.RecordBatch, row: int) -> dict[str, Any]:
    """One row as a JSON object of bounded size; columns that are left out are counted under the key `...`."""
    names = batch.schema.names
    shown = {
        name: bounded(batch.column(index)[row].as_py()) for index, name in enumerate(names[:MOST_COLUMNS])
    }
    if len(names) > MOST_COLUMNS:
        shown["..."] = f"{len(names) - MOST_COLUMNS} more columns"
    return shown


def bounded(value: Any) -> Any:
    """The value as JSON: numbers and short texts as they are, everything else as a text that is cut."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    text = value if isinstance(value, str) else _string(value)
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}\N{HORIZONTAL ELLIPSIS}"


def _string(value: Any) -> str:
    if isinstance(value, bytes):
        # What is cut off anyway need not be written out.
        return f"0x{value[:MOST_CHARACTERS].hex()}"
    if isinstance(value, dt.date | dt.datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    return json.dumps(value, ensure_ascii=False, default=_string)
