"""Streams hold about one row group, however many a table has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable
from delta_core.actions import AddCdcFile
from tests.support.log_builder import LogBuilder, add, metadata, protocol, remove
from tests.support.waiting import comes_true

ROWS_PER_GROUP = 100_000
GROUPS = 20
GROUP_BYTES = 2 * 8 * ROWS_PER_GROUP
LIMIT_BYTES = GROUPS * GROUP_BYTES // 2
"""One row group as it is stored, decoded and handed out, and room for what Arrow adds."""
SCHEMA = (
    '{"type":"struct","fields":['
    '{"name":"id","type":"long","nullable":true,"metadata":{}},'
    '{"name":"x","type":"double","nullable":true,"metadata":{}}]}'
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files of many row groups; the second is told of by change data, then replaced."""
    log = LogBuilder(tmp_path_factory.mktemp("large"))
    numbers = np.random.default_rng(7).random(ROWS_PER_GROUP * GROUPS)
    rows = pa.table({"id": np.arange(len(numbers)), "x": numbers})
    for name in ("a.parquet", "b.parquet"):
        pq.write_table(rows, log.root / name, row_group_size=ROWS_PER_GROUP, compression="none")
    changes = rows.append_column("_change_type", pa.repeat("insert", len(rows)))
    pq.write_table(changes, log.root / "c.parquet", row_group_size=ROWS_PER_GROUP, compression="none")
    log.commit(
        protocol(min_writer_version=4),
        metadata(
            schema_string=SCHEMA,
            partition_columns=(),
            configuration={"delta.enableChangeDataFeed": "true"},
        ),
    )
    plain = {"partition_values": {}, "stats": None}
    log.commit(add("a.parquet", **plain))
    log.commit(add("b.parquet", **plain), AddCdcFile(path="c.parquet", size_bytes=1))
    log.commit(remove("b.parquet", data_change=True, partition_values={}))
    return log.root


_POOLS: list[pa.MemoryPool] = []
"""Arrow's threads may give a buffer back after the test, to a pool that must still be there then."""


@pytest.fixture
def pool() -> Iterator[pa.MemoryPool]:
    """Counts what Arrow allocates during the test."""
    before = pa.default_memory_pool()
    counting = pa.proxy_memory_pool(before)
    _POOLS.append(counting)
    pa.set_memory_pool(counting)
    yield counting
    pa.set_memory_pool(before)


def consume(batches: Iterator[pa.RecordBatch]) -> int:
    return sum(batch.num_rows for batch in batches)


def wait_until_below(pool: pa.MemoryPool, limit_bytes: int) -> None:
    """Arrow's threads end the reads under way on their own; what they hold is given back then."""
    assert comes_true(lambda: pool.bytes_allocated() < limit_bytes)


@pytest.mark.parametrize("filters", [None, "x < 0.5"])
@pytest.mark.parametrize("columns", [None, ["x"]])
def test_rows_of_a_table(
    table: Path, pool: pa.MemoryPool, columns: list[str] | None, filters: str | None
) -> None:
    found = consume(DeltaTable(table).to_batches(columns=columns, filters=filters))
    total = ROWS_PER_GROUP * GROUPS
    assert found == total if filters is None else total * 0.4 < found < total * 0.6
    assert pool.max_memory() < LIMIT_BYTES


def test_changed_rows(table: Path, pool: pa.MemoryPool) -> None:
    found = consume(DeltaTable(table).load_cdf(starting_version=1))
    assert found == 3 * ROWS_PER_GROUP * GROUPS
    assert pool.max_memory() < LIMIT_BYTES


def test_a_reader_that_stops_early_reads_no_more(table: Path, pool: pa.MemoryPool) -> None:
    batches = DeltaTable(table).to_batches()
    assert next(batches).num_rows > 0
    batches.close()  # type: ignore[attr-defined]
    wait_until_below(pool, GROUP_BYTES)
    assert pool.max_memory() < LIMIT_BYTES
    assert pool.bytes_allocated() < GROUP_BYTES
