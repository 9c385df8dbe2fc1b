"""Checkpoints are read equal by deltalake, and nothing half-written is ever named."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from delta_core.actions import DomainMetadata, SetTransaction
from delta_core.checkpoint import rows as rows_module
from delta_core.checkpoint.classic import write_checkpoint
from delta_core.errors import (
    DeltaWarning,
    StaleCommitError,
    StorageError,
    VerificationError,
)
from delta_core.log.canonical_json import json_checksum
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.storage.open import open_store
from tests.support.log_builder import NOW_MS, LogBuilder, add, remove


@pytest.fixture
def log(tmp_path: Path) -> LogBuilder:
    return LogBuilder(tmp_path / "t")


def _load(log: LogBuilder, version: int | None = None) -> Snapshot:
    return Snapshot.load(log.store, version=version, clock=log.clock)


def test_deltalake_reads_it_equal(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    for number in range(4):
        data = pa.table({"p": ["x y", None], "n": pa.array([number, None], pa.int64()), "s": ["ü", "b"]})
        write_deltalake(
            uri,
            data,
            mode="append",
            partition_by=["p"],
            configuration={"delta.logRetentionDuration": "interval 5 days"},
        )
    DeltaTable(uri).delete("n = 2")
    before = DeltaTable(uri)
    info = write_checkpoint(Snapshot.load(open_store(uri)))
    for path in (tmp_path / "t" / "_delta_log").glob("*.json"):
        path.unlink()
    after = DeltaTable(uri)
    assert after.version() == before.version() == info.version
    assert after.metadata().configuration == before.metadata().configuration
    assert after.metadata().id == before.metadata().id
    assert after.schema() == before.schema()
    assert after.protocol() == before.protocol()
    wanted = pa.table(before.get_add_actions(flatten=True)).sort_by("path")
    found = pa.table(after.get_add_actions(flatten=True)).sort_by("path").select(wanted.column_names)
    assert found == wanted
    key = [("n", "ascending"), ("s", "ascending"), ("p", "ascending")]
    assert after.to_pyarrow_table().sort_by(key) == before.to_pyarrow_table().sort_by(key)


def test_table_made_anew_gets_no_checkpoint_of_the_old_one(log: LogBuilder) -> None:
    log.create(add("a"))
    log.commit(add("b"))
    old = _load(log)
    assert old.files.num_files == 2
    log.store.delete("_delta_log/00000000000000000001.json")
    with pytest.raises(StaleCommitError):
        write_checkpoint(old)
    assert _load(log).version == 0


def test_hint_and_rows(log: LogBuilder) -> None:
    log.create(add("a"), add("b"))
    log.commit(
        SetTransaction(app_id="app", version=7), DomainMetadata(domain="d", configuration="{}"), remove("a")
    )
    info = write_checkpoint(_load(log))
    path = log.log / f"{1:020d}.checkpoint.parquet"
    hint = json.loads((log.log / "_last_checkpoint").read_bytes())
    assert hint.pop("checksum") == json_checksum(hint)
    assert hint == {"version": 1, "size": 6, "sizeInBytes": path.stat().st_size, "numOfAddFiles": 1}
    assert (info.version, info.size, info.parts, info.num_add_files) == (1, 6, 1, 1)
    rows = pq.read_table(path).to_pylist()
    assert [next(name for name, value in row.items() if value) for row in rows] == [
        "protocol",
        "metaData",
        "txn",
        "domainMetadata",
        "add",
        "remove",
    ]
    assert rows[4]["add"]["dataChange"] is False
    assert rows[5]["remove"]["deletionTimestamp"] == NOW_MS
    assert pq.ParquetFile(path).metadata.row_group(0).num_rows == 4
    assert list(log.log.glob(".tmp-*")) == []


def test_deltalake_sees_application_transactions(log: LogBuilder) -> None:
    log.create(add("a"))
    log.commit(SetTransaction(app_id="app", version=7))
    write_checkpoint(_load(log))
    log.remove_commits([0, 1])
    assert DeltaTable(str(log.root)).transaction_version("app") == 7


def test_removed_files_keep_their_row_ids(log: LogBuilder) -> None:
    """A restore brings a file back with the ids that it had, from a checkpoint as from commits."""
    log.create(add("a"))
    log.commit(remove("a", base_row_id=7, default_row_commit_version=3))
    log.commit(remove("b"))
    before = _load(log).tombstones()
    write_checkpoint(_load(log))
    log.remove_commits(range(3))
    after = _load(log).tombstones()
    assert after == before
    assert after.column("base_row_id").to_pylist() == [7, None]
    assert after.column("default_row_commit_version").to_pylist() == [3, None]


def test_expired_transactions_are_left_out(log: LogBuilder) -> None:
    log.create(configuration={"delta.setTransactionRetentionDuration": "interval 1 day"})
    now = log.clock.now_ms()
    log.commit(
        SetTransaction(app_id="old", version=1, last_updated_ms=now - 86_400_001),
        SetTransaction(app_id="new", version=1, last_updated_ms=now),
        SetTransaction(app_id="undated", version=1),
    )
    write_checkpoint(_load(log))
    assert set(_load(log).transactions) == {"new", "undated"}


def test_statistics_follow_the_table_properties(log: LogBuilder) -> None:
    log.create(add("a"), configuration={"delta.checkpoint.writeStatsAsJson": "false"})
    write_checkpoint(_load(log))
    written = pq.read_schema(log.log / f"{0:020d}.checkpoint.parquet").field("add").type
    assert written.get_field_index("stats") == -1, "the field is left out, not null"
    assert _load(log).files.to_table(["stats"]).column(0).to_pylist() == [None]


def test_a_checkpoint_of_an_older_version_leaves_the_hint(log: LogBuilder) -> None:
    log.create().appends(4)
    write_checkpoint(_load(log))
    write_checkpoint(_load(log, 2))
    assert json.loads((log.log / "_last_checkpoint").read_bytes())["version"] == 4
    (log.log / "_last_checkpoint").write_bytes(b'{"version":99}')
    write_checkpoint(_load(log, 3))
    assert json.loads((log.log / "_last_checkpoint").read_bytes())["version"] == 3


def test_what_does_not_verify_is_deleted(log: LogBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    log.create().appends(3)
    real = rows_module.add_rows
    monkeypatch.setattr(rows_module, "add_rows", lambda batch, schema: real(batch.slice(1), schema))
    with pytest.raises(VerificationError, match="The version has 3 files"):
        write_checkpoint(_load(log))
    assert list(log.log.glob("*checkpoint*")) == []


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
def test_row_groups_of_any_size(log: LogBuilder, monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    log.create(SetTransaction(app_id="a", version=1)).appends(5)
    log.commit(remove("file-2", deletion_timestamp_ms=log.clock.now_ms()))
    monkeypatch.setattr(rows_module, "ROW_GROUP_ROWS", rows)
    info = write_checkpoint(_load(log))
    assert (info.version, info.size, info.parts, info.num_add_files) == (6, 8, 1, 4)
    path = log.log / f"{6:020d}.checkpoint.parquet"
    footer = pq.read_metadata(path)
    assert info.size_bytes == path.stat().st_size
    first = footer.row_group(0).num_rows
    assert first == min(rows, 3), "protocol, metadata and transactions are found without the files"
    assert footer.num_rows == 8
    log.remove_commits(range(7))
    assert sorted(_load(log).files.to_table(["path"])["path"].to_pylist()) == [
        f"file-{number}" for number in (1, 3, 4, 5)
    ]


def test_a_failing_write_leaves_nothing(log: LogBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    log.create().appends(3)

    def fail(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        raise MemoryError

    monkeypatch.setattr(rows_module, "add_rows", fail)
    with pytest.raises(MemoryError):
        write_checkpoint(_load(log))
    assert sorted(path.suffix for path in log.log.iterdir()) == [".json"] * 4


class NoHintStore(LocalLogStore):
    """Refuses to write the hint."""

    def put(self, path: str, data: bytes) -> None:
        raise StorageError(f"no {path}")


def test_a_hint_that_cannot_be_written_is_a_warning(log: LogBuilder) -> None:
    log.create().appends(1)
    with pytest.warns(DeltaWarning, match="_last_checkpoint"):
        write_checkpoint(Snapshot.load(NoHintStore(log.root), clock=log.clock))
    assert _load(log).segment.checkpoint_version == 1


def test_multi_part_checkpoints_are_read(log: LogBuilder) -> None:
    log.create(*(add(f"f{number}") for number in range(10)))
    log.commit(remove("f3"))
    expected = _load(log).files.to_table().sort_by("path")
    write_checkpoint(_load(log))
    whole = pq.read_table(log.log / f"{1:020d}.checkpoint.parquet")
    (log.log / f"{1:020d}.checkpoint.parquet").unlink()
    for part, rows in enumerate((whole.slice(0, 4), whole.slice(4, 3), whole.slice(7)), start=1):
        pq.write_table(rows, log.log / f"{1:020d}.checkpoint.{part:010d}.{3:010d}.parquet", row_group_size=2)
    log.remove_commits([0])
    snapshot = _load(log)
    assert len(snapshot.segment.checkpoint_parts) == 3
    assert snapshot.files.to_table().sort_by("path") == expected
    assert snapshot.tombstones().column("path").to_pylist() == ["f3"]


@pytest.mark.parametrize(
    "options", [{"write_statistics": False}, {"use_dictionary": False}, {"version": "1.0"}]
)
def test_checkpoints_of_other_writers(log: LogBuilder, options: dict[str, object]) -> None:
    log.create(*(add(f"f{number}", partition_values={"p": None}) for number in range(10)))
    expected = _load(log).files.to_table().sort_by("path")
    write_checkpoint(_load(log))
    path = log.log / f"{0:020d}.checkpoint.parquet"
    pq.write_table(pq.read_table(path), path, row_group_size=3, **options)
    log.appends(1)
    log.remove_commits([0])
    assert _load(log, 0).files.to_table().sort_by("path") == expected
    assert _load(log).files.num_files == 11
