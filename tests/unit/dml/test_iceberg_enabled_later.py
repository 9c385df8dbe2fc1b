"""Iceberg compatibility for a table that has files: they must be like those that it asks for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import CommitProperties, DeltaTable, write_deltalake
from delta_core.actions import SetTransaction
from delta_core.dml.definition.properties import set_properties
from delta_core.errors import (
    ConcurrentAppendError,
    IcebergCompatibilityError,
    InvalidTableError,
    MissingDataFileError,
)
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.table_features.upgrade import supported_features

V1, V2 = "delta.enableIcebergCompatV1", "delta.enableIcebergCompatV2"
MODE, MATERIALISED = "delta.columnMapping.mode", "delta.enableMaterializePartitionColumnsFeature"
ROWS = pa.table(
    {
        "p": ["a", "a", "a"],
        "id": pa.array([1, 2, 3], pa.int64()),
        "at": pa.array([0, 1, None], pa.timestamp("us", "UTC")),
    }
)
NESTED = ROWS.append_column(
    "rec",
    pa.array([{"items": [{"x": 1}]}] * 3, pa.struct([("items", pa.list_(pa.struct([("x", pa.int64())])))])),
)


def create(path: Path, *, rows: pa.Table = ROWS, by: str | None = "p", **configuration: str) -> DeltaTable:
    write_deltalake(path, rows, partition_by=[by] if by else [], configuration=configuration)
    return DeltaTable(path)


def mapped(path: Path, *, rows: pa.Table = ROWS, by: str | None = "p") -> DeltaTable:
    return create(path, rows=rows, by=by, **{MODE: "name", MATERIALISED: "true"})


@pytest.mark.parametrize("key", [V1, V2])
def test_files_that_are_like_that_already_may_stay(tmp_path: Path, key: str) -> None:
    table = mapped(tmp_path)
    table.alter.set_properties({key: "true"})
    assert table.metadata().configuration[key] == "true"
    assert any(name.startswith("icebergCompat") for name in supported_features(table.protocol()))
    write_deltalake(table, ROWS, mode="append")
    assert table.to_pyarrow_table().num_rows == 6


@pytest.mark.parametrize("key", [V1, V2])
def test_without_partitions_names_may_be_mapped_in_the_same_commit(tmp_path: Path, key: str) -> None:
    table = create(tmp_path, by=None)
    with pytest.raises(IcebergCompatibilityError, match="neither name nor id"):
        table.alter.set_properties({key: "true"})
    table.alter.set_properties({key: "true", MODE: "name"})
    write_deltalake(table, ROWS, mode="append")
    assert table.to_pyarrow_table().num_rows == 6
    assert table.version() == 2


@pytest.mark.parametrize("key", [V1, V2])
def test_files_without_partition_columns_are_named(tmp_path: Path, key: str) -> None:
    table = create(tmp_path, **{MODE: "name"})
    for _ in range(7):
        write_deltalake(table, ROWS, mode="append")
    with pytest.raises(IcebergCompatibilityError, match="existing files do not comply") as caught:
        table.alter.set_properties({key: "true"})
    assert caught.value.cause.count("lacks the partition column p") == 5
    assert "new table" in caught.value.fix
    assert table.version() == 7


def test_a_table_that_is_empty_has_no_file_that_could_differ(tmp_path: Path) -> None:
    table = create(tmp_path, rows=NESTED, **{MODE: "name"})
    write_deltalake(table, NESTED.slice(0, 0), mode="overwrite")
    table.alter.set_properties({V2: "true"})
    write_deltalake(table, NESTED, mode="append")
    assert table.to_pyarrow_table().num_rows == 3


def test_ids_within_arrays_are_in_files_only_when_they_were_asked_for(tmp_path: Path) -> None:
    table = mapped(tmp_path, rows=NESTED)
    with pytest.raises(IcebergCompatibilityError) as caught:
        table.alter.set_properties({V2: "true"})
    assert "lacks the ids of the elements in the column rec" in caught.value.cause
    made = create(tmp_path / "made", rows=NESTED, **{V2: "true", MATERIALISED: "true"})
    made.alter.set_properties({V2: "false"})
    made.alter.set_properties({V2: "true"})
    assert made.version() == 2


def rewrite(table: DeltaTable, change: Callable[[pa.Table], pa.Table], **options: bool) -> None:
    """Write the one file anew, as another writer might have."""
    (path,) = table.snapshot.files.to_table(["path"])["path"].to_pylist()
    file = Path(table.table_uri.removeprefix("file://")) / path
    found = pq.ParquetFile(file).read()
    pq.write_table(change(found), file, **options)


@pytest.mark.parametrize("key", [V1, V2])
def test_partition_columns_come_after_all_others(tmp_path: Path, key: str) -> None:
    table = mapped(tmp_path)
    rewrite(table, lambda found: found.select([2, 0, 1]))
    with pytest.raises(IcebergCompatibilityError) as caught:
        table.alter.set_properties({key: "true"})
    assert "the partition column p before other columns" in caught.value.cause


def test_times_have_64_bits_in_the_second_version(tmp_path: Path) -> None:
    table = mapped(tmp_path)
    rewrite(table, lambda found: found, use_deprecated_int96_timestamps=True)
    with pytest.raises(IcebergCompatibilityError) as caught:
        table.alter.set_properties({V2: "true"})
    assert caught.value.cause.endswith("has 96-bit timestamps.")
    table.alter.set_properties({V1: "true"})


def test_a_file_that_cannot_be_looked_at_stands_in_the_way(tmp_path: Path) -> None:
    table = mapped(tmp_path)
    (file,) = [one for one in tmp_path.rglob("*.parquet") if "_delta_log" not in one.parts]
    file.write_bytes(b"PAR1 nothing of that kind PAR1")
    with pytest.raises(InvalidTableError, match="cannot be read"):
        table.alter.set_properties({V1: "true"})
    file.unlink()
    with pytest.raises(MissingDataFileError):
        table.alter.set_properties({V1: "true"})


def test_live_deletion_vectors_are_purged_first(tmp_path: Path) -> None:
    table = create(tmp_path, by=None, **{MODE: "name", "delta.enableDeletionVectors": "true"})
    table.delete("id = 1")
    table.alter.set_properties({"delta.enableDeletionVectors": "false"})
    with pytest.raises(IcebergCompatibilityError, match="has a deletion vector"):
        table.alter.set_properties({V2: "true"})
    table.optimize.purge()
    table.alter.set_properties({V2: "true"})
    with pytest.raises(IcebergCompatibilityError, match="lists deletionVectors"):
        table.alter.set_properties({V1: "true", V2: "false"})
    table.delete("id = 2")
    assert table.to_pyarrow_table()["id"].to_pylist() == [3]


def test_a_file_that_comes_meanwhile_is_a_conflict(tmp_path: Path) -> None:
    table = mapped(tmp_path)
    stale = Snapshot.load(LocalLogStore(tmp_path))
    write_deltalake(table, ROWS, mode="append")
    with pytest.raises(ConcurrentAppendError):
        set_properties(stale, {V1: "true"})
    assert V1 not in DeltaTable(tmp_path).metadata().configuration


def test_a_repeated_call_is_not_judged_again(tmp_path: Path) -> None:
    table = mapped(tmp_path)
    key = CommitProperties(txn=SetTransaction(app_id="once", version=1))
    table.alter.set_properties({V1: "true"}, commit_properties=key)
    table.alter.set_properties({V1: "false"})
    table.alter.add_feature("deletionVectors")
    again = table.alter.set_properties({V1: "true"}, commit_properties=key)
    assert again.already_applied
    assert table.metadata().configuration[V1] == "false"
