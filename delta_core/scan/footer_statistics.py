"""Statistics of a column in a Parquet footer, as far as they can be trusted."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.schema.types import (
    DATE,
    DOUBLE,
    FLOAT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
)

_FLOATING = (FLOAT, DOUBLE)
# Java's Parquet library includes NaN in its bounds; C++ and Rust ignore NaN.
# Other writers claim compatibility, such as "parquet-mr compatible Photon".
_SHOWS_NAN = "parquet-mr version "


class FooterLeaf:
    """The statistics of one column in one row group; None means unknown."""

    __slots__ = ("all_null", "maximum", "minimum", "null_count")

    def __init__(self, minimum: Any, maximum: Any, null_count: int | None, all_null: bool) -> None:
        self.minimum = minimum
        self.maximum = maximum
        self.null_count = null_count
        self.all_null = all_null


def footer_positions(metadata: pq.FileMetaData) -> dict[str, int]:
    """Column index by dotted path in lower case; -1 where two columns share it (`a.b`, `b` in `a`)."""
    positions: dict[str, int] = {}
    for index in range(len(metadata.schema)):
        path = metadata.schema.column(index).path.casefold()
        positions[path] = -1 if path in positions else index
    return positions


def footer_leaf(metadata: pq.FileMetaData, group: int, position: int, data_type: DataType) -> FooterLeaf:
    """The trusted statistics of one column in one row group, as Python values of the column's type."""
    row_group = metadata.row_group(group)
    if row_group.num_rows == 0:
        return FooterLeaf(None, None, 0, True)
    chunk = row_group.column(position)
    statistics = chunk.statistics if chunk.is_stats_set else None
    if statistics is None:
        return FooterLeaf(None, None, None, False)
    null_count = statistics.null_count if statistics.has_null_count else None
    if null_count == row_group.num_rows:
        return FooterLeaf(None, None, null_count, True)
    if not statistics.has_min_max or _unusable(metadata, position):
        return FooterLeaf(None, None, null_count, False)
    try:
        low, high = statistics.min, statistics.max
    except (ValueError, OverflowError, TypeError, NotImplementedError, pa.ArrowException):
        return FooterLeaf(None, None, null_count, False)
    maximum = _footer_value(high, data_type)
    if data_type in _FLOATING and not str(metadata.created_by).startswith(_SHOWS_NAN):
        # NaN is greater than every number, so a maximum that ignores it is not valid; the minimum is.
        maximum = None
    return FooterLeaf(_footer_value(low, data_type), maximum, null_count, False)


def _unusable(metadata: pq.FileMetaData, position: int) -> bool:
    """Whether bounds cannot be used: INT96 has no order, and nanoseconds do not fit microseconds."""
    column = metadata.schema.column(position)
    return column.physical_type == "INT96" or "nanoseconds" in str(column.logical_type)


def _footer_value(value: Any, data_type: DataType) -> Any:
    """The footer's bound as a value of the column's type; None when it is not one."""
    if isinstance(value, float):
        return value if data_type in _FLOATING and not math.isnan(value) else None
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        if isinstance(data_type, DecimalType):
            return Decimal(value)
        return float(value) if data_type in _FLOATING else value
    if isinstance(value, str):
        return value if data_type == STRING else None
    if isinstance(value, bytes):
        if data_type != STRING:
            return None
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return None
    if isinstance(value, Decimal):
        return value if isinstance(data_type, DecimalType) else None
    if isinstance(value, dt.datetime):
        if data_type == TIMESTAMP:
            return value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value.astimezone(dt.UTC)
        if data_type == TIMESTAMP_NTZ:
            return value.replace(tzinfo=None)
        return None
    if isinstance(value, dt.date):
        return value if data_type == DATE else None
    return None
