"""The same Z-order by us and by delta-spark, on two copies of a random table."""

from __future__ import annotations

import datetime as dt
import random
import shutil
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa

from delta_core.maintenance.apply_rewrite import apply_rewrite
from delta_core.maintenance.clustering import plan_z_order
from delta_core.scan.scan import Scan
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from tests.support.delta_spark_reader import session as delta_spark_session
from tests.support.z_order_case import rows_of

__all__ = ["check_lock_step", "delta_spark_session"]

QUERIES = 20
AT_LEAST = 0.8
"""We must skip at least this share of what delta-spark's layout lets a reader skip."""

DAY = dt.date(2024, 1, 1)


def check_lock_step(spark: Any, rng: random.Random, path: Path) -> dict[str, Any]:
    """Order both copies and hold rows and skipped files against each other.

    Returns:
        How many `queries`, and the shares of files skipped over all of them, `ours` and `theirs`.

    Raises:
        AssertionError: rows differ, or we skip too few files.
    """
    columns = _write(rng, path)
    other = path.with_name("other")
    shutil.copytree(path, other)
    before = rows_of(path)
    snapshot = Snapshot.load(LocalLogStore(path))
    target = snapshot.files.total_bytes // rng.choice([6, 12]) + 1
    apply_rewrite(snapshot, plan_z_order(snapshot, columns, target_size_bytes=target))
    spark.conf.set("spark.databricks.delta.optimize.maxFileSize", target)
    spark.sql(f"OPTIMIZE delta.`{other}` ZORDER BY ({', '.join(columns)})").collect()
    assert rows_of(path) == before == rows_of(other)
    spark_rows = spark.read.format("delta").load(str(path)).count()
    assert spark_rows == sum(before.values()), "delta-spark counts other rows in our table"
    mine, theirs = (Snapshot.load(LocalLogStore(folder)) for folder in (path, other))
    ours = delta_sparks = 0.0
    for _ in range(QUERIES):
        predicate = " AND ".join(_range(rng, column) for column in rng.sample(columns, 2))
        ours += _skipped(mine, predicate)
        delta_sparks += _skipped(theirs, predicate)
    assert ours >= AT_LEAST * delta_sparks, f"{ours:.2f} against {delta_sparks:.2f} of {QUERIES}"
    return {"queries": QUERIES, "ours": round(ours, 3), "theirs": round(delta_sparks, 3)}


def _write(rng: random.Random, path: Path) -> list[str]:
    skew = rng.choice([1, 3])
    for _ in range(rng.randint(4, 8)):
        rows = rng.randint(1500, 3000)
        numbers = [int(100_000 * rng.random() ** skew) for _ in range(rows)]
        table = pa.table(
            {
                "a": pa.array(numbers, pa.int64()),
                "b": pa.array([rng.uniform(-1, 1) for _ in range(rows)], pa.float64()),
                "c": pa.array([f"k{rng.randint(0, 9999):04d}" for _ in range(rows)], pa.string()),
                "d": pa.array([DAY + dt.timedelta(rng.randint(0, 364)) for _ in range(rows)], pa.date32()),
                "note": pa.array([None if n % 7 == 0 else f"note {n}" for n in numbers], pa.string()),
            }
        )
        deltalake.write_deltalake(str(path), table, mode="append")
    return rng.sample(["a", "b", "c", "d"], rng.randint(2, 3))


def _range(rng: random.Random, column: str) -> str:
    start, width = rng.random() * 0.9, rng.choice([0.02, 0.1])
    end = start + width
    match column:
        case "a":
            return f"a BETWEEN {int(start * 100_000)} AND {int(end * 100_000)}"
        case "b":
            return f"b BETWEEN {2 * start - 1:.4f} AND {2 * end - 1:.4f}"
        case "c":
            return f"c BETWEEN 'k{int(start * 9999):04d}' AND 'k{int(end * 9999):04d}'"
    first, last = (DAY + dt.timedelta(int(point * 364)) for point in (start, end))
    return f"d BETWEEN DATE '{first}' AND DATE '{last}'"


def _skipped(snapshot: Snapshot, predicate: str) -> float:
    report = Scan(snapshot, predicate=predicate).report
    return 1 - report.files_after_statistics / report.files_total
