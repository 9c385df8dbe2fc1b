"""Rows as comparable values: two engines agree when these lists are equal."""

from __future__ import annotations

import datetime
import decimal
import math
from typing import Any

import pyarrow as pa


def canonical(value: Any) -> Any:
    """A value in a form that does not depend on which engine gave it."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value
    if isinstance(value, decimal.Decimal):
        return str(value.normalize())
    if isinstance(value, datetime.datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=datetime.UTC)
        return aware.astimezone(datetime.UTC).isoformat()
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {key: canonical(value[key]) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [canonical(inner) for inner in value]
    return value


def canonical_rows(table: pa.Table) -> list[str]:
    """The rows with their columns by name, in an order of their own."""
    names = sorted(table.column_names)
    columns = [[canonical(value) for value in table.column(name).to_pylist()] for name in names]
    return sorted(repr(dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True))
