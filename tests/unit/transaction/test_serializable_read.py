"""What a version showed is verified against the commits since, without a write."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import (
    ConcurrentAppendError,
    ConcurrentDeleteReadError,
    MetadataChangedError,
    StaleCommitError,
)
from delta_core.snapshot.snapshot import Snapshot
from delta_core.transaction.read_set import ReadSet
from delta_core.transaction.serializable_read import verify_serializable
from tests.support.counting_store import CountingStore
from tests.support.log_builder import LogBuilder, add, metadata, protocol, remove


@pytest.fixture
def uri(tmp_path: Path) -> str:
    uri = str(tmp_path / "t")
    write_deltalake(uri, _rows("a", 1, 2), partition_by=["p"])
    write_deltalake(uri, _rows("b", 10), mode="append")
    return uri


def _rows(partition: str, *ids: int) -> pa.Table:
    return pa.table({"p": [partition] * len(ids), "id": pa.array(ids, pa.int64())})


def test_nothing_happened(uri: str) -> None:
    before = sorted(Path(uri, "_delta_log").iterdir())
    assert DeltaTable(uri).verify_serializable() == 1
    assert sorted(Path(uri, "_delta_log").iterdir()) == before


def test_rows_elsewhere_do_not_matter_to_what_was_read(uri: str) -> None:
    table = DeltaTable(uri)
    write_deltalake(uri, _rows("b", 11), mode="append")
    assert table.verify_serializable("p = 'a'") == 2
    assert table.version() == 1
    with pytest.raises(ConcurrentAppendError, match="version 2"):
        table.verify_serializable("p = 'b'")
    with pytest.raises(ConcurrentAppendError):
        table.verify_serializable()


def test_rows_that_went_are_noticed(uri: str) -> None:
    table = DeltaTable(uri)
    write_deltalake(uri, _rows("a", 5), mode="overwrite", predicate="p = 'a'")
    with pytest.raises((ConcurrentDeleteReadError, ConcurrentAppendError)):
        table.verify_serializable("p = 'a'")
    assert table.verify_serializable("p = 'b'") == 2


def test_a_rearrangement_changes_no_row(uri: str) -> None:
    write_deltalake(uri, _rows("a", 3), mode="append")
    table, other = DeltaTable(uri), DeltaTable(uri)
    other.optimize.compact()
    assert other.version() == 3
    assert table.verify_serializable() == 3


def test_other_columns_are_noticed(uri: str) -> None:
    table = DeltaTable(uri)
    DeltaTable(uri).alter.set_properties({"delta.appendOnly": "true"})
    with pytest.raises(MetadataChangedError):
        table.verify_serializable("p = 'a'")


def test_another_table_at_the_place_is_refused(uri: str) -> None:
    table = DeltaTable(uri)
    shutil.rmtree(uri)
    for number in range(4):
        write_deltalake(uri, _rows("a", number), mode="append")
    with pytest.raises(StaleCommitError, match="no longer the one that was read"):
        table.verify_serializable()


def test_commits_that_were_cleaned_up_leave_it_open(uri: str) -> None:
    table = DeltaTable(uri)
    for number in range(3):
        write_deltalake(uri, _rows("b", 20 + number), mode="append")
    DeltaTable(uri).create_checkpoint()
    for version in (0, 1, 2, 3):
        Path(uri, "_delta_log", f"{version:020d}.json").unlink()
    with pytest.raises(StaleCommitError, match="cannot be verified"):
        table.verify_serializable("p = 'a'")


def test_partitions_that_files_call_otherwise_are_looked_at(tmp_path: Path) -> None:
    def field(name: str, number: int) -> dict[str, object]:
        mapped = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"}
        return {"name": name, "type": "integer", "nullable": True, "metadata": mapped}

    schema = json.dumps({"type": "struct", "fields": [field("p", 1), field("a", 2)]})
    log = LogBuilder(tmp_path)
    log.commit(
        protocol(min_reader_version=2, min_writer_version=5),
        metadata(schema_string=schema, configuration={"delta.columnMapping.mode": "name"}),
        *(add(f"{value}.parquet", partition_values={"col-1": value}) for value in "12"),
    )
    table = DeltaTable(str(tmp_path))
    log.commit(
        add("new.parquet", partition_values={"col-1": "1"}),
        remove("1.parquet", partition_values={"col-1": "1"}, extended_file_metadata=True),
    )
    with pytest.raises((ConcurrentAppendError, ConcurrentDeleteReadError)):
        table.verify_serializable("p = 1")
    assert table.verify_serializable("p = 2") == 1


def test_each_commit_is_asked_for_once(uri: str) -> None:
    store = CountingStore(uri)
    snapshot = Snapshot.load(store)
    for number in range(3):
        write_deltalake(uri, _rows("b", 20 + number), mode="append")
    store.reset()
    assert verify_serializable(snapshot, ReadSet()) == 4
    assert sorted(store.requests.gets) == [f"_delta_log/{version:020d}.json" for version in (2, 3, 4)]
    assert (store.requests.list_pages, store.requests.heads) == (1, [])
