"""What was added between two versions, and what cannot be told by added files alone."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import ConfigurationError, TableChangedError, VersionNotFoundError
from delta_core.scan.appended import appended_files, changed_partitions
from delta_core.schema.types import LONG
from tests.support.deletion_vectors import inline_deletion_vector
from tests.support.log_builder import LogBuilder, add, metadata, protocol, remove


def append(table: Path, day: str, *values: int) -> None:
    rows = pa.table({"day": [day] * len(values), "n": pa.array(values, pa.int64())})
    write_deltalake(str(table), rows, mode="append", partition_by=["day"])


def rows_of(table: Path, since: int) -> int:
    found = appended_files(DeltaTable(str(table)).snapshot, since_version=since)
    return sum(pq.read_metadata(table / add.path).num_rows for add in found.adds)


def test_only_later_commits_count(tmp_path: Path) -> None:
    for index, day in enumerate("aab"):
        append(tmp_path, day, *range(index + 1))
    snapshot = DeltaTable(str(tmp_path)).snapshot
    assert [rows_of(tmp_path, since) for since in (-1, 0, 1, 2)] == [6, 5, 3, 0]
    found = appended_files(snapshot, since_version=1)
    assert (found.since_version, found.version) == (1, 2)
    assert [add.partition_values for add in found.adds] == [{"day": "b"}]


def test_a_compaction_adds_nothing_and_hides_nothing(tmp_path: Path) -> None:
    for value in range(3):
        append(tmp_path, "a", value)
    DeltaTable(str(tmp_path)).optimize.compact()
    assert DeltaTable(str(tmp_path)).version() == 3
    assert rows_of(tmp_path, 0) == 2
    assert rows_of(tmp_path, 2) == 0


def test_rows_that_were_replaced_are_refused(tmp_path: Path) -> None:
    append(tmp_path, "a", 1)
    rows = pa.table({"day": ["a"], "n": pa.array([9], pa.int64())})
    write_deltalake(str(tmp_path), rows, mode="overwrite")
    append(tmp_path, "a", 2)
    snapshot = DeltaTable(str(tmp_path)).snapshot
    with pytest.raises(TableChangedError, match="Version 1"):
        appended_files(snapshot, since_version=0)
    assert len(appended_files(snapshot, since_version=1).adds) == 1


def test_changed_partitions_count_removed_rows_too(tmp_path: Path) -> None:
    for day in "cab":
        append(tmp_path, day, 1)
    snapshot = DeltaTable(str(tmp_path)).snapshot
    assert changed_partitions(snapshot, since_version=-1) == ({"day": "a"}, {"day": "b"}, {"day": "c"})
    assert changed_partitions(snapshot, since_version=1) == ({"day": "b"},)
    rows = pa.table({"day": ["d"], "n": pa.array([1], pa.int64())})
    write_deltalake(str(tmp_path), rows, mode="overwrite")
    snapshot = DeltaTable(str(tmp_path)).snapshot
    assert [p["day"] for p in changed_partitions(snapshot, since_version=2)] == ["a", "b", "c", "d"]


def test_a_removed_file_that_does_not_name_its_partition_is_refused(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path)
    log.create(add("a"))
    for values in (None, {}):
        version = log.commit(remove("a", partition_values=values), add("b"))
        snapshot = DeltaTable(str(tmp_path)).snapshot
        with pytest.raises(TableChangedError, match=f"Version {version} .* the partitions") as caught:
            changed_partitions(snapshot, since_version=version - 1)
        assert caught.value.cause == "The file 'a' has no partition values."
        log.commit(remove("b", partition_values={"p": "1"}), add("a"))
    assert changed_partitions(snapshot, since_version=version) == ()


def test_a_file_with_a_deletion_vector_is_not_appended(tmp_path: Path) -> None:
    features = frozenset({"deletionVectors"})
    log = LogBuilder(tmp_path)
    log.commit(
        protocol(
            min_reader_version=3, min_writer_version=7, reader_features=features, writer_features=features
        ),
        metadata(),
        add("a"),
    )
    log.commit(add("b", deletion_vector=inline_deletion_vector([0])))
    log.commit(add("c"))
    snapshot = DeltaTable(str(tmp_path)).snapshot
    with pytest.raises(TableChangedError, match=r"Version 1 .* changes rows") as caught:
        appended_files(snapshot, since_version=0)
    assert caught.value.cause == "The file 'b' has a deletion vector."
    assert [item.path for item in appended_files(snapshot, since_version=1).adds] == ["c"]


def test_a_change_of_metadata_alone_does_not_hide_what_was_appended(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path)
    log.create(add("a")).appends(1)
    log.commit(metadata(configuration={"owner": "b"}), add("c"))
    snapshot = DeltaTable(str(tmp_path)).snapshot
    assert [item.path for item in appended_files(snapshot, since_version=0).adds] == ["file-1", "c"]
    mapped = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"}
    fields = [
        {
            "name": name,
            "type": kind,
            "nullable": True,
            "metadata": {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{name}"},
        }
        for number, (name, kind) in enumerate((("p", "string"), ("id", "long")), start=1)
    ]
    log.commit(
        protocol(min_reader_version=2, min_writer_version=5),
        metadata(configuration=mapped, schema_string=json.dumps({"type": "struct", "fields": fields})),
    )
    with pytest.raises(TableChangedError, match="changes of version 1 ") as caught:
        appended_files(DeltaTable(str(tmp_path)).snapshot, since_version=0)
    assert caught.value.cause == "Its schema has p, which the later schema does not have."


def test_a_table_without_partitions_has_one_that_changes(tmp_path: Path) -> None:
    for _ in range(2):
        write_deltalake(str(tmp_path), pa.table({"n": [1]}), mode="append")
    snapshot = DeltaTable(str(tmp_path)).snapshot
    assert changed_partitions(snapshot, since_version=0) == ({},)
    assert changed_partitions(snapshot, since_version=1) == ()


def test_a_version_that_is_not_there_yet_is_refused(tmp_path: Path) -> None:
    append(tmp_path, "a", 1)
    with pytest.raises(ConfigurationError, match="at version 0"):
        appended_files(DeltaTable(str(tmp_path)).snapshot, since_version=1)


def test_a_commit_that_was_cleaned_up_is_named(tmp_path: Path) -> None:
    for value in range(3):
        append(tmp_path, "a", value)
    table = DeltaTable(str(tmp_path))
    table.create_checkpoint()
    (tmp_path / "_delta_log" / f"{0:020}.json").unlink()
    snapshot = DeltaTable(str(tmp_path)).snapshot
    with pytest.raises(VersionNotFoundError, match="version 0"):
        appended_files(snapshot, since_version=-1)
    assert len(appended_files(snapshot, since_version=0).adds) == 2


def test_the_appended_rows_are_read_with_columns_and_filters(tmp_path: Path) -> None:
    append(tmp_path, "a", 1, 2)
    append(tmp_path, "b", 3, 4)
    append(tmp_path, "c", 5)
    table = DeltaTable(str(tmp_path))
    table.optimize.compact()
    assert pa.Table.from_batches(table.appended_batches(0)).to_pylist() == [
        {"day": "b", "n": 3},
        {"day": "b", "n": 4},
        {"day": "c", "n": 5},
    ]
    found = table.appended_batches(0, columns=["n"], filters="day = 'b' AND n > 3")
    assert pa.Table.from_batches(found).to_pylist() == [{"n": 4}]
    assert list(table.appended_batches(table.version())) == []


def test_the_appended_rows_of_mapped_and_widened_columns_are_read(tmp_path: Path) -> None:
    properties = {
        "delta.columnMapping.mode": "name",
        "delta.enableTypeWidening": "true",
        "delta.enableDeletionVectors": "true",
    }
    narrow = pa.table({"n": pa.array([1], pa.int32())})
    for number in range(2):
        write_deltalake(tmp_path, narrow, mode="append", configuration=None if number else properties)
    DeltaTable(tmp_path).alter.change_type("n", LONG)
    DeltaTable(tmp_path).alter.rename_column("n", "m")
    write_deltalake(tmp_path, pa.table({"m": pa.array([2**40], pa.int64())}), mode="append")
    found = pa.Table.from_batches(DeltaTable(tmp_path).appended_batches(0))
    assert found.to_pylist() == [{"m": 1}, {"m": 2**40}]


def test_a_tail_that_cannot_be_told_is_refused_before_the_first_row(tmp_path: Path) -> None:
    append(tmp_path, "a", 1)
    with pytest.raises(ConfigurationError, match="at version 0"):
        DeltaTable(str(tmp_path)).appended_batches(7)


@pytest.mark.parametrize("partitioned_first", [False, True])
def test_files_are_read_as_they_were_partitioned(tmp_path: Path, partitioned_first: bool) -> None:
    log = LogBuilder(tmp_path)
    nowhere: dict[str, str | None] = {}
    pq.write_table(pa.table({"p": ["x", "y"], "id": [1, 2]}), tmp_path / "whole")
    pq.write_table(pa.table({"id": [3]}), tmp_path / "part")
    whole = (metadata(partition_columns=()), add("whole", partition_values=nowhere))
    part = (metadata(), add("part", partition_values={"p": "z"}))
    first, second = (part, whole) if partitioned_first else (whole, part)
    log.commit(protocol(), *first)
    log.commit(*second)
    table = DeltaTable(str(tmp_path))

    def rows(**options: str) -> list[tuple[str, int]]:
        batches = table.appended_batches(since_version=-1, **options)
        return sorted((row["p"], row["id"]) for batch in batches for row in batch.to_pylist())

    assert rows() == [("x", 1), ("y", 2), ("z", 3)]
    assert rows(filters="p >= 'y'") == [("y", 2), ("z", 3)]
