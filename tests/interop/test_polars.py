"""polars, which reads and writes tables by deltalake and takes our data over Arrow."""

from __future__ import annotations

import datetime
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable as PeerTable

from delta_core import DeltaTable, write_deltalake
from tests.support.rows import canonical_rows

ROWS = {
    "id": [1, 2, 3, 4],
    "place": ["New York", "a/b", None, "ü=50%"],
    "day": [datetime.date(2013, 1, day) for day in (1, 2, 2, 3)],
    "delay": [1.5, None, -0.25, 4.0],
    "seen": [datetime.datetime(2013, 1, 1, 12, 0, second, 123456, datetime.UTC) for second in range(4)],
    "tags": [["x", "y"], [], None, ["z"]],
}


def _rows(table: pl.DataFrame | pa.Table) -> list[str]:
    return canonical_rows(table.to_arrow() if isinstance(table, pl.DataFrame) else table)


def test_polars_reads_what_we_wrote(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    write_deltalake(uri, pa.table(ROWS), mode="append", partition_by=["place", "day"])
    write_deltalake(uri, pa.table(ROWS).slice(1, 2), mode="append")
    DeltaTable(uri).create_checkpoint()
    write_deltalake(uri, pa.table(ROWS).slice(0, 1), mode="overwrite", predicate="place = 'New York'")
    for version in range(DeltaTable(uri).version() + 1):
        ours = DeltaTable(uri, version=version).to_pyarrow_table()
        assert _rows(pl.read_delta(uri, version=version)) == canonical_rows(ours), version


def test_polars_leaves_out_by_a_partition(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    write_deltalake(uri, pa.table(ROWS), mode="append", partition_by=["place", "day"])
    found = pl.scan_delta(uri).filter(pl.col("place") == "a/b").select("id", "day").collect()
    assert found.to_dicts() == [{"id": 2, "day": datetime.date(2013, 1, 2)}]


@pytest.mark.parametrize("partitions", [[], ["place", "day"]])
def test_we_read_what_polars_wrote(tmp_path: Path, partitions: list[str]) -> None:
    uri = str(tmp_path / "t")
    frame = pl.DataFrame(ROWS)
    frame.write_delta(uri, delta_write_options={"partition_by": partitions} if partitions else {})
    frame.head(2).write_delta(uri, mode="append")
    ours = DeltaTable(uri).to_pyarrow_table()
    assert canonical_rows(ours) == _rows(pl.concat([frame, frame.head(2)]))
    assert DeltaTable(uri).metadata().partition_columns == tuple(partitions)


def test_a_frame_of_polars_is_written_as_it_is(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    frame = pl.DataFrame(ROWS)
    write_deltalake(uri, frame, mode="append", partition_by=["day"])
    assert _rows(pl.read_delta(uri)) == _rows(frame) == canonical_rows(PeerTable(uri).to_pyarrow_table())
