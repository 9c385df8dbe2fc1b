"""One random table put into Z-order and checked from every side; used by the tests and the soak."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.execution.executor import Executor
from delta_core.maintenance.apply_rewrite import apply_rewrite
from delta_core.maintenance.clustering import plan_z_order
from delta_core.run import Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.storage.uri import resolve_data_path
from tests.support.z_order import KINDS, random_column, sortable, z_values


def random_table(rng: random.Random, path: Path) -> list[str]:
    """Write a table of a few commits; returns the columns to order by."""
    kinds = rng.sample(list(KINDS), rng.randint(1, 4))
    nulls = {kind: rng.choice([0, 0, 0.1, 0.9]) for kind in kinds}
    partitioned = rng.random() < 0.4
    for number in range(rng.randint(1, 6)):
        rows = rng.choice([0, 1, 7, 200, 900])
        columns: dict[str, Any] = {k: random_column(rng, k, rows, nulls=nulls[k]) for k in kinds}
        columns["id"] = pa.array([number * 1000 + row for row in range(rows)], pa.int64())
        columns["text"] = pa.array([f"n{row % 3}" for row in range(rows)], pa.string())
        columns["items"] = pa.array([[row, None] for row in range(rows)], pa.list_(pa.int64()))
        if partitioned:
            columns["p"] = pa.array([rng.choice(["x", "y y", None]) for _ in range(rows)], pa.string())
        _write(path, pa.table(columns), partitioned, rng)
    return kinds


def _write(path: Path, table: pa.Table, partitioned: bool, rng: random.Random) -> None:
    deltalake.write_deltalake(
        str(path),
        table,
        mode="append",
        partition_by=["p"] if partitioned else None,
        target_file_size=rng.choice([None, 20_000]),
    )


def check_case(rng: random.Random, path: Path, *, executor: Executor | None = None) -> dict[str, Any]:
    """Make a random table, put it into Z-order under a random memory limit, and check the result.

    Returns:
        What the case was, for the report of a soak.

    Raises:
        AssertionError: something is wrong.
    """
    columns = random_table(rng, path)
    before = rows_of(path)
    snapshot = Snapshot.load(LocalLogStore(path))
    size = max(1, snapshot.files.total_bytes)
    target = rng.choice([size // 7 + 1, size // 2 + 1, size * 2])
    memory = rng.choice([None, None, 1, 10_000, size * 2])
    plan = plan_z_order(snapshot, columns, target_size_bytes=target)
    plan = type(plan).from_json(json.loads(json.dumps(plan.to_json())))
    result = apply_rewrite(snapshot, plan, memory_limit_bytes=memory, run=Run(executor=executor))
    after = Snapshot.load(LocalLogStore(path))
    assert rows_of(path) == before, "the rows are others"
    assert _duckdb_count(path) == sum(before.values())
    for group in result.groups:
        _check_group(path, group.files, group.curve)
    if result.groups:
        assert plan_z_order(after, columns, target_size_bytes=target).is_empty, "a second run finds work"
    return {
        "rows": sum(before.values()),
        "columns": columns,
        "groups": len(result.groups),
        "files": sum(len(group.files) for group in result.groups),
        "spilled": sum(group.spilled for group in result.groups),
    }


def rows_of(path: Path) -> Counter[str]:
    """The rows, as many times as each is there, as deltalake reads them."""
    table = deltalake.DeltaTable(str(path)).to_pyarrow_table()
    return Counter(str(sorted(row.items())) for row in table.to_pylist())


def _duckdb_count(path: Path) -> int:
    files = deltalake.DeltaTable(str(path)).file_uris()
    if not files:
        return 0
    found = duckdb.sql(f"SELECT count(*) FROM read_parquet({files!r})").fetchone()
    assert found is not None
    return int(found[0])


def _check_group(path: Path, files: tuple[Any, ...], curve: Any) -> None:
    last = -1
    for file in files:
        table = pq.ParquetFile(path / resolve_data_path(file["path"], root_uri=str(path))).read()
        keys = z_values(table, curve)
        assert keys == sorted(keys), "rows are not in the order of their keys"
        assert table.num_rows == file["rows"] == len(keys)
        if keys:
            assert (file["z_first"], file["z_last"]) == (keys[0], keys[-1])
            assert last <= keys[0], "files overlap"
            last = keys[-1]
        _check_statistics(table, json.loads(file["stats"]), [item["path"][0] for item in curve["columns"]])


def _check_statistics(table: pa.Table, stats: dict[str, Any], columns: list[str]) -> None:
    assert stats["numRecords"] == table.num_rows
    for name in [*columns, "id"]:
        values = table.column(name).to_pylist()
        present = [value for value in values if value is not None]
        assert stats["nullCount"][name] == len(values) - len(present)
        kind = table.schema.field(name).type
        low, high = stats["minValues"].get(name), stats["maxValues"].get(name)
        if isinstance(low, int) and pa.types.is_integer(kind):
            assert (low, high) == (min(present), max(present))
        elif isinstance(low, str) and pa.types.is_string(kind):
            assert all(low <= value[:32] for value in present)
            assert high is None or all(sortable(v, kind) <= high.encode() + b"\xff" for v in present)
        elif low is not None and pa.types.is_floating(kind):
            # NaN lies above every number; it and an infinite bound have no JSON form and are left out.
            numbers = [math.inf if math.isnan(value) else value for value in present]
            assert all(low <= number for number in numbers)
            assert high is None or all(number <= high for number in numbers)
