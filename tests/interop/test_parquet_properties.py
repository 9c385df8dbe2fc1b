"""delta-spark reads and continues tables whose files and checkpoints have unusual codecs and pages."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, write_deltalake
from tests.support.delta_spark import by_delta_spark
from tests.support.soak import drawn

CODEC, PAGES = "delta.parquet.compression.codec", "delta.parquet.format.version"
WAYS = {
    "zstd": {CODEC: "zstd"},
    "gzip-second-pages": {CODEC: "gzip", PAGES: "2.12.0"},
    "second-pages": {PAGES: "2.12.0", "delta.checkpointPolicy": "v2"},
    "lz4-raw": {CODEC: "lz4_raw", "delta.checkpoint.writeStatsAsStruct": "true"},
    "partitions-in-files": {"delta.writePartitionColumnsToParquet": "true"},
}
ROWS = pa.table(
    {
        "id": [1, 2, 3, None],
        "_p": ["a", "a", None, "b"],
        "l": pa.array([[1, None], None, [], [2]], pa.list_(pa.int32())),
        "s": pa.array([{"x": "t"}, None, {"x": None}, {"x": "u" * 50}]),
    }
)


@pytest.mark.extra
@pytest.mark.spark
@pytest.mark.soak
def test_delta_spark_goes_on(tmp_path: Path) -> None:
    tables, out = tmp_path / "tables", tmp_path / "out"
    out.mkdir()
    ways = drawn(WAYS, usual=3)
    for name in ways:
        path = tables / name
        for _ in range(2):
            write_deltalake(path, ROWS, mode="append", partition_by=["_p"], configuration=WAYS[name])
        table = DeltaTable(path)
        table.create_checkpoint()
        for version in range(table.version()):
            (path / "_delta_log" / f"{version:020d}.json").unlink()
    by_delta_spark("continues", str(tables), str(out))
    for name in ways:
        before = pq.read_table(out / f"{name}.before.parquet")
        assert before.to_pylist() == 2 * ROWS.slice(0, 1).to_pylist(), name
        after = DeltaTable(tables / name).to_pyarrow_table()
        assert sorted(str(row) for row in after.to_pylist()) == sorted(
            str(row) for row in pq.read_table(out / f"{name}.after.parquet").to_pylist()
        ), name
        assert after.num_rows == 7, name
