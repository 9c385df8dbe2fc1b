"""The rows of a table of `delta_core` in the forms of pandas, polars, DuckDB and Arrow's datasets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import ExpressionError, StorageError
from delta_core.expressions import from_dnf
from delta_core.storage.arrow_filesystem import StoreFileSystemHandler


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    """Three files, of one partition each."""
    for day in ("a", "b", "c"):
        start = ord(day)
        rows = pa.table({"id": pa.array([start, start + 100], pa.int64()), "day": [day, day]})
        write_deltalake(tmp_path / "t", rows, mode="append", partition_by=["day"])
    return DeltaTable(tmp_path / "t")


def without(table: DeltaTable, day: str) -> None:
    """Delete the files of a partition: a query that opens one of them fails."""
    for file in (Path(table.table_uri.removeprefix("file://")) / f"day={day}").iterdir():
        file.unlink()


def test_counts_and_partitions_open_no_file(table: DeltaTable) -> None:
    without(table, "a")
    assert table.count() == 6
    assert table.partitions() == [{"day": "a"}, {"day": "b"}, {"day": "c"}]
    assert table.partitions([("day", ">", "a")]) == [{"day": "b"}, {"day": "c"}]
    assert table.partitions("id > 198") == [{"day": "c"}]


def test_a_lazy_frame_of_polars_skips_files(table: DeltaTable) -> None:
    without(table, "a")
    frame = table.to_polars()
    assert frame.filter(pl.col("day") == "b").collect()["id"].to_list() == [98, 198]
    assert frame.filter(pl.col("id") > 198).select("id").collect()["id"].to_list() == [199]
    assert table.to_polars("id").collect_schema().names() == ["id"]


def test_duckdb_reads_the_dataset_and_the_stream(table: DeltaTable) -> None:
    rows = table.to_pyarrow_dataset()
    connection = duckdb.connect()
    connection.register("rows", rows)
    assert connection.sql("SELECT count(*) FROM rows WHERE day = 'c'").fetchall() == [(2,)]
    stream = pa.RecordBatchReader.from_stream(table)
    assert stream.read_all().num_rows == 6


def test_filters_of_tuples(table: DeltaTable) -> None:
    without(table, "a")
    rows = table.to_pyarrow_table(["id"], [("day", "in", ["b"]), ("id", ">", 100)])
    assert rows.to_pydict() == {"id": [198]}
    assert len(table.to_pandas(filters=[[("day", "=", "b")], [("day", "=", "c")]])) == 4
    assert len(table.file_uris([("day", "!=", "a")])) == 2


def test_mapped_columns_and_deletion_vectors_are_right_in_a_dataset(tmp_path: Path) -> None:
    rows = pa.table({"a b": [1, 2, 3]})
    configuration = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}
    write_deltalake(tmp_path / "t", rows, configuration=configuration)
    table = DeltaTable(tmp_path / "t")
    table.delete("`a b` = 2")
    assert table.count() == 2
    assert table.to_pyarrow_dataset().to_table().to_pydict() == {"a b": [1, 3]}
    assert table.to_polars().collect()["a b"].to_list() == [1, 3]


def test_nulls_and_bounds_of_a_dataset_are_right(tmp_path: Path) -> None:
    rows = pa.table({"p": ["x", None], "v": pa.array([None, 5], pa.int64()), "f": [float("nan"), 1.0]})
    write_deltalake(tmp_path / "t", rows, partition_by=["p"])
    dataset = DeltaTable(tmp_path / "t").to_pyarrow_dataset()
    field = ds.field
    for condition, count in (
        (field("p").is_null(), 1),
        (field("v").is_null(), 1),
        (field("v") == 5, 1),
        (field("v") > 5, 0),
        (field("f").is_nan(), 1),
    ):
        assert dataset.count_rows(filter=condition) == count, str(condition)


@pytest.mark.parametrize(
    "filters",
    [[], [("a", "=")], [("a", "~", 1)], [("a", "in", "x")], [[], []], [("a", "=", 1), [("b", "=", 2)]], 3],
    ids=str,
)
def test_malformed_filters_are_refused(filters: Any) -> None:
    with pytest.raises(ExpressionError):
        from_dnf(filters)


def test_a_file_system_of_a_store_only_reads(table: DeltaTable) -> None:
    handler = StoreFileSystemHandler(table.store)
    for call in (handler.delete_file, handler.delete_dir, handler.delete_dir_contents):
        with pytest.raises(StorageError, match="cannot be written"):
            call("x")
    (info, missing) = handler.get_file_info(["day=a", "none"])
    assert (info.type, missing.type) == (pa.fs.FileType.Directory, pa.fs.FileType.NotFound)
    names = handler.get_file_info_selector(pa.fs.FileSelector("day=a", recursive=True))
    assert [one.path.startswith("day=a/part-") for one in names] == [True]
