from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore

TableMaker = Callable[..., Path]


def rows(first: int, count: int) -> pa.Table:
    """Rows of many types, with nulls, that name themselves by `id`."""
    ids = list(range(first, first + count))
    start = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "part": pa.array(["a" if i % 2 else None for i in ids], pa.string()),
            "name": pa.array([None if i % 5 == 0 else f"n{i % 3}" for i in ids], pa.string()),
            "text": pa.array([f"row number {i} ünï" for i in ids], pa.string()),
            "x": pa.array([float("nan") if i % 7 == 0 else i / 3 for i in ids], pa.float64()),
            "price": pa.array([Decimal(i).scaleb(-2) for i in ids], pa.decimal128(12, 2)),
            "day": pa.array([dt.date(2024, 1, 1 + i % 28) for i in ids], pa.date32()),
            "at": pa.array([start + dt.timedelta(microseconds=i) for i in ids], pa.timestamp("us", "UTC")),
            "tags": pa.array([[f"t{i}", None] if i % 2 else None for i in ids], pa.list_(pa.string())),
            "point": pa.array(
                [{"a": i, "b": None} for i in ids], pa.struct([("a", pa.int32()), ("b", pa.string())])
            ),
            "flag": pa.array([i % 2 == 0 for i in ids], pa.bool_()),
            "raw": pa.array([bytes([i % 256]) for i in ids], pa.binary()),
        }
    )


def content(path: Path, version: int | None = None) -> list[str]:
    """The rows as deltalake reads them, in an order of their own."""
    table = deltalake.DeltaTable(str(path), version=version).to_pyarrow_table()
    return sorted(str(sorted(row.items(), key=lambda item: item[0])) for row in table.to_pylist())


def snapshot_of(path: Path, **options: Any) -> Snapshot:
    return Snapshot.load(LocalLogStore(path), **options)


def age_files(path: Path, days: float) -> None:
    """Make every data file look as if it had been written that long ago."""
    for file in path.rglob("*.parquet"):
        if "_delta_log" not in file.parts:
            moment = file.stat().st_mtime - days * 86_400
            os.utime(file, (moment, moment))


@pytest.fixture
def make_table(tmp_path: Path) -> TableMaker:
    """Makes a table of many small files with deltalake, which knows nothing of us."""

    def make(*, commits: int = 4, rows_each: int = 10, partitioned: bool = False, name: str = "t") -> Path:
        path = tmp_path / name
        for number in range(commits):
            deltalake.write_deltalake(
                str(path),
                rows(number * rows_each, rows_each),
                mode="append",
                partition_by=["part"] if partitioned else None,
            )
        return path

    return make


@pytest.fixture
def helpers() -> Any:
    """The helper functions of this file."""

    class Helpers:
        rows = staticmethod(rows)
        content = staticmethod(content)
        snapshot_of = staticmethod(snapshot_of)
        age_files = staticmethod(age_files)

    return Helpers
