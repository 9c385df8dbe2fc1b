"""What a Parquet footer says of a column, and when it is not to be trusted."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.scan.footer_statistics import FooterLeaf, footer_leaf, footer_positions
from delta_core.schema.types import (
    BINARY,
    DATE,
    DOUBLE,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
)

AT = dt.datetime(2024, 2, 29, 12, 30, 0, 5)


def leaf(tmp_path: Path, column: pa.Array, data_type: DataType, **options: Any) -> FooterLeaf:
    pq.write_table(pa.table({"c": column}), tmp_path / "f", **options)
    metadata = pq.ParquetFile(tmp_path / "f").metadata
    return footer_leaf(metadata, 0, footer_positions(metadata)["c"], data_type)


@pytest.mark.parametrize(
    ("column", "data_type", "minimum", "maximum"),
    [
        (pa.array([1, 2]), LONG, 1, 2),
        # A NaN, which is greater than all numbers, is in no footer.
        (pa.array([1, 2], pa.int32()), DOUBLE, 1.0, None),
        (pa.array([1, 2], pa.int32()), DecimalType(12, 1), Decimal(1), Decimal(2)),
        (pa.array(["a", "b"]), STRING, "a", "b"),
        (pa.array([b"a", b"b"]), STRING, "a", "b"),
        (pa.array([Decimal("1.5"), Decimal("2.5")]), DecimalType(2, 1), Decimal("1.5"), Decimal("2.5")),
        (
            pa.array([AT], pa.timestamp("us", "UTC")),
            TIMESTAMP,
            AT.replace(tzinfo=dt.UTC),
            AT.replace(tzinfo=dt.UTC),
        ),
        (pa.array([AT], pa.timestamp("us")), TIMESTAMP_NTZ, AT, AT),
        (pa.array([AT.date()]), DATE, AT.date(), AT.date()),
    ],
)
def test_bounds_are_values_of_the_tables_type(
    tmp_path: Path, column: pa.Array, data_type: DataType, minimum: object, maximum: object
) -> None:
    found = leaf(tmp_path, column, data_type)
    assert (found.minimum, found.maximum, found.null_count) == (minimum, maximum, 0)


@pytest.mark.parametrize(
    ("column", "data_type"),
    [
        (pa.array(["a"]), LONG),
        (pa.array([b"\xff"]), STRING),
        (pa.array([b"a"]), BINARY),
        (pa.array([Decimal("1.5")]), LONG),
        (pa.array([AT], pa.timestamp("us")), DATE),
        (pa.array([AT.date()]), TIMESTAMP),
        (pa.array([dt.time(1, 2)]), LONG),
    ],
)
def test_bounds_of_another_type_bound_nothing(tmp_path: Path, column: pa.Array, data_type: DataType) -> None:
    found = leaf(tmp_path, column, data_type)
    assert (found.minimum, found.maximum) == (None, None)


def test_a_footer_without_statistics_says_nothing(tmp_path: Path) -> None:
    found = leaf(tmp_path, pa.array([1, None]), LONG, write_statistics=False)
    assert (found.minimum, found.maximum, found.null_count) == (None, None, None)


def test_a_row_group_without_rows_holds_no_value(tmp_path: Path) -> None:
    table = pa.table({"c": pa.array([3, 4])})
    with pq.ParquetWriter(tmp_path / "f", table.schema) as writer:
        writer.write_table(table.slice(0, 0))
        writer.write_table(table)
    metadata = pq.ParquetFile(tmp_path / "f").metadata
    empty, full = (footer_leaf(metadata, group, 0, LONG) for group in (0, 1))
    assert (empty.minimum, empty.maximum, empty.null_count, empty.all_null) == (None, None, 0, True)
    assert (full.minimum, full.maximum, full.null_count, full.all_null) == (3, 4, 0, False)


def test_nulls_are_counted(tmp_path: Path) -> None:
    assert leaf(tmp_path, pa.array([None, 3, None]), LONG).null_count == 2
    empty = leaf(tmp_path, pa.array([None, None], pa.int64()), LONG)
    assert (empty.minimum, empty.null_count) == (None, 2)


@pytest.mark.parametrize(
    ("writer", "maximum"),
    [
        (b"parquet-mr version 1.16.0 (abcd)", 2.5),
        (b"parquet-mr compatible Photon 0.2", None),
        (b"parquet-cpp-arrow version 26.0.1", None),
    ],
)
def test_only_javas_library_is_believed_about_nan(writer: bytes, maximum: float | None) -> None:
    """Whoever leaves NaN out of the bounds would have it skipped."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"g": [1.5, 2.5]}), sink)
    data = sink.getvalue().to_pybytes()
    own = str(pq.read_metadata(pa.BufferReader(data)).created_by).encode()
    assert data.count(own) == 1
    assert len(own) == len(writer)
    metadata = pq.read_metadata(pa.BufferReader(data.replace(own, writer)))
    leaf = footer_leaf(metadata, 0, 0, DOUBLE)
    assert (leaf.minimum, leaf.maximum) == (1.5, maximum)
