"""deltaward without Spark. Settings: snappy, every data file and commit fsynced, inline executor."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq

import delta_core
from delta_core import DeltaTable, write_deltalake
from delta_core.clock import SYSTEM_CLOCK
from delta_core.scan import Scan

_handles: dict[str, Any] = {}


def open_table(uri: str) -> int:
    """Open the latest version with its live set reconciled (path, size, partition values)."""
    table = DeltaTable(uri)
    return len(table.file_uris())


def open_one_partition(uri: str, column: str, value: str) -> int:
    """Open the table and list one partition's paths; the handle is kept."""
    _handles.clear()
    _handles[uri] = DeltaTable(uri)
    return list_partition(uri, column, value)


def list_partition(uri: str, column: str, value: str) -> int:
    """One partition's paths."""
    scan = Scan(_handles[uri].snapshot, predicate=f"{column} = '{value}'")
    return len(scan.files(["path"]).column("path").to_pylist())


def open_metadata(uri: str) -> int:
    """Protocol and metadata."""
    table = DeltaTable(uri)
    return len(table.schema().fields) + table.protocol().min_reader_version


def write_checkpoint(uri: str) -> int:
    """Open the table and write a checkpoint, which is read back."""
    return DeltaTable(uri).create_checkpoint().version


def refresh(uri: str) -> int:
    """The newest version by the kept handle, its files counted."""
    _handles[uri].update_incremental()
    return int(_handles[uri].snapshot.files.num_files)


def open_for_statistics(uri: str) -> int:
    """Open the table with its live set; no statistics are read. The handle is kept."""
    _handles.clear()
    _handles[uri] = DeltaTable(uri)
    return int(_handles[uri].snapshot.files.num_files)


def range_predicate(uri: str, column: str, low: int, high: int) -> int:
    """How many files a range of one column leaves over, by their statistics."""
    scan = Scan(_handles[uri].snapshot, predicate=f"{column} BETWEEN {low} AND {high}")
    return int(scan.files(["path"]).num_rows)


def create_for_appends(uri: str) -> int:
    """Make the one-column table that `append_rows` appends to and keep a handle on it."""
    write_deltalake(uri, pa.table({"id": pa.array([0], pa.int64())}))
    _handles[uri] = DeltaTable(uri)
    return int(_handles[uri].version())


def append_rows(uri: str, count: int) -> int:
    """`count` appends of one row each through the kept handle."""
    for number in range(count):
        write_deltalake(_handles[uri], pa.table({"id": pa.array([number], pa.int64())}), mode="append")
    return count


def append_rows_unsynced(uri: str, count: int) -> int:
    """The same without flushing, as a peer that never does is measured."""
    with mock.patch("os.fsync", return_value=None):
        return append_rows(uri, count)


def compact(uri: str) -> int:
    """OPTIMIZE the whole table to the default target size."""
    table = DeltaTable(uri)
    table.optimize.compact()
    return len(table.file_uris())


def z_order(uri: str, columns: list[str]) -> int:
    """Z-order the whole table to files of 100 MiB."""
    table = DeltaTable(uri)
    table.optimize.z_order(columns, target_size_bytes=100 << 20)
    return len(table.file_uris())


def write(source: str, uri: str) -> int:
    """Write a Parquet file's rows as a new table, streamed."""
    reader = pq.ParquetFile(source)
    batches = pa.RecordBatchReader.from_batches(reader.schema_arrow, reader.iter_batches(batch_size=1 << 17))
    write_deltalake(uri, batches)
    return int(delta_core.DeltaTable(uri).version())


def write_partitions(uri: str, partitions: int) -> int:
    """Write a new table of one row in each partition."""
    rows = pa.table({"p": [f"k{number}" for number in range(partitions)], "v": range(partitions)})
    write_deltalake(uri, rows, partition_by=["p"])
    return int(DeltaTable(uri).version())


def first_query(uri: str, column: str, value: int) -> int:
    """The rows of one partition of a table that was not open."""
    return int(DeltaTable(uri).to_pyarrow_table(filters=f"{column} = {value}").num_rows)


def enable_deletion_vectors(uri: str) -> int:
    """Let rows of the table go by deletion vectors from now on."""
    table = DeltaTable(uri)
    table.alter.set_properties({"delta.enableDeletionVectors": "true"})
    return table.version()


def delete_rows(uri: str, predicate: str) -> int:
    """Delete rows; how many."""
    return DeltaTable(uri).delete(predicate).metrics["num_deleted_rows"]


def update_rows(uri: str, predicate: str) -> int:
    """Give rows another comment; how many."""
    return DeltaTable(uri).update({"l_comment": "'changed'"}, predicate).metrics["num_updated_rows"]


def merge(uri: str, source: str, on: str) -> list[int]:
    """MERGE of a Parquet file's rows, every column; rows updated and inserted."""
    metrics = (
        DeltaTable(uri)
        .merge(pq.read_table(source), on, source_alias="s", target_alias="t")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
        .metrics
    )
    return [metrics["num_target_rows_updated"], metrics["num_target_rows_inserted"]]


def vacuum(uri: str, deletes: bool) -> int:
    """What went, or would go, of a table without any retention."""
    return len(DeltaTable(uri).vacuum(0, dry_run=not deletes, enforce_retention=False, force=True))


def plan_made_up_vacuum(uri: str, files: int, in_columns: bool) -> int:
    """How many of a made-up listing's files a vacuum would delete."""
    from benchmarks.listing_store import ListingStore
    from delta_core.maintenance.vacuum import plan_vacuum
    from delta_core.snapshot.snapshot import Snapshot

    store = ListingStore(Path(uri), files=files, young_ms=SYSTEM_CLOCK.now_ms())
    if not in_columns:
        # An attribute of the store's own hides the columns.
        store.walk = store.walk  # type: ignore[method-assign]
    return len(plan_vacuum(Snapshot.load(store)).files)


def merge_stream(uri: str, rows: int, keys: str) -> list[int]:
    """MERGE of a made-up stream; rows updated and inserted."""
    from benchmarks.merge_data import source_stream

    metrics = (
        DeltaTable(uri)
        .merge(source_stream(rows, keys), "t.key = s.key", source_alias="s", target_alias="t")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
        .metrics
    )
    return [metrics["num_target_rows_updated"], metrics["num_target_rows_inserted"]]
