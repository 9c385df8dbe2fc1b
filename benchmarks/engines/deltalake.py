"""delta-rs through its Python package. Settings: its defaults (snappy; it does not fsync)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

_handles: dict[str, Any] = {}


def open_table(uri: str) -> int:
    return len(DeltaTable(uri).file_uris())


def open_one_partition(uri: str, column: str, value: str) -> int:
    _handles.clear()
    _handles[uri] = DeltaTable(uri)
    return list_partition(uri, column, value)


def list_partition(uri: str, column: str, value: str) -> int:
    return len(_handles[uri].file_uris(file_pruning_predicate=f"{column} = '{value}'"))


def open_metadata(uri: str) -> int:
    table = DeltaTable(uri, without_files=True)
    return len(table.schema().fields) + table.protocol().min_reader_version


def write_checkpoint(uri: str) -> int:
    table = DeltaTable(uri)
    table.create_checkpoint()
    return int(table.version())


def refresh(uri: str) -> int:
    _handles[uri].update_incremental()
    return int(_handles[uri].version())


def create_for_appends(uri: str) -> int:
    write_deltalake(uri, pa.table({"id": pa.array([0], pa.int64())}))
    _handles[uri] = DeltaTable(uri)
    return int(_handles[uri].version())


def append_rows(uri: str, count: int) -> int:
    for number in range(count):
        write_deltalake(_handles[uri], pa.table({"id": pa.array([number], pa.int64())}), mode="append")
    return count


def merge(uri: str, source: str, on: str) -> list[int]:
    metrics = (
        DeltaTable(uri)
        .merge(pq.read_table(source), on, source_alias="s", target_alias="t")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    )
    return [metrics["num_target_rows_updated"], metrics["num_target_rows_inserted"]]


def compact(uri: str) -> int:
    table = DeltaTable(uri)
    table.optimize.compact()
    return len(table.file_uris())


def z_order(uri: str, columns: list[str]) -> int:
    table = DeltaTable(uri)
    table.optimize.z_order(columns, target_size=100 << 20)
    return len(table.file_uris())


def write(source: str, uri: str) -> int:
    reader = pq.ParquetFile(source)
    batches = pa.RecordBatchReader.from_batches(reader.schema_arrow, reader.iter_batches(batch_size=1 << 17))
    write_deltalake(uri, batches)
    return int(DeltaTable(uri).version())


def write_partitions(uri: str, partitions: int) -> int:
    """Write a new table of one row in each partition."""
    rows = pa.table({"p": [f"k{number}" for number in range(partitions)], "v": range(partitions)})
    write_deltalake(uri, rows, partition_by=["p"])
    return int(DeltaTable(uri).version())


def first_query(uri: str, column: str, value: int) -> int:
    return int(DeltaTable(uri).to_pyarrow_table(partitions=[(column, "=", str(value))]).num_rows)


def delete_rows(uri: str, predicate: str) -> int:
    return int(DeltaTable(uri).delete(predicate)["num_deleted_rows"])


def update_rows(uri: str, predicate: str) -> int:
    return int(DeltaTable(uri).update({"l_comment": "'changed'"}, predicate=predicate)["num_updated_rows"])


def vacuum(uri: str, deletes: bool) -> int:
    return len(
        DeltaTable(uri).vacuum(
            retention_hours=0, dry_run=not deletes, enforce_retention_duration=False, full=True
        )
    )


def merge_set(uri: str, source: str, on: str) -> list[int]:
    metrics = (
        DeltaTable(uri)
        .merge(pq.read_table(source), on, source_alias="s", target_alias="t")
        .when_matched_update({"l_comment": "s.l_comment", "l_quantity": "t.l_quantity + s.l_quantity"})
        .when_not_matched_insert_all()
        .execute()
    )
    return [metrics["num_target_rows_updated"], metrics["num_target_rows_inserted"]]


def merge_stream(uri: str, rows: int, keys: str) -> list[int]:
    from benchmarks.merge_data import source_stream

    metrics = (
        DeltaTable(uri)
        .merge(source_stream(rows, keys), "t.key = s.key", source_alias="s", target_alias="t")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    )
    return [metrics["num_target_rows_updated"], metrics["num_target_rows_inserted"]]
