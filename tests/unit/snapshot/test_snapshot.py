"""Opening, refreshing, travelling in time, and logs that are damaged."""

from __future__ import annotations

import json
import os
import shutil
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from delta_core.actions import CommitInfo, Protocol
from delta_core.actions.checkpoint_schema import CHECKPOINT_SCHEMA
from delta_core.checkpoint.classic import write_checkpoint
from delta_core.errors import (
    ConfigurationError,
    CorruptLogError,
    DeltaWarning,
    LogGapError,
    TableNotFoundError,
    UnsupportedTableFeatureError,
    VersionNotFoundError,
)
from delta_core.snapshot.history import commit_actions, history
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.open import open_store
from delta_core.table_features.feature import WriterKind
from tests.support.log_builder import NOW_MS, SCHEMA_STRING, LogBuilder, add, metadata, protocol, remove


@pytest.fixture
def log(tmp_path: Path) -> LogBuilder:
    return LogBuilder(tmp_path / "t")


def _load(log: LogBuilder, version: int | None = None) -> Snapshot:
    return Snapshot.load(log.store, version=version, clock=log.clock)


def _paths(snapshot: Snapshot) -> set[str]:
    return set(snapshot.files.to_table(["path"]).column("path").to_pylist())


def test_what_a_snapshot_tells(log: LogBuilder) -> None:
    log.create(add("a"), configuration={"delta.checkpointInterval": "3"}).appends(2)
    snapshot = _load(log)
    assert snapshot.version == 2
    assert snapshot.timestamp_ms == NOW_MS + 2000
    assert snapshot.schema.names == ("p", "id")
    assert snapshot.partition_columns == ("p",)
    assert snapshot.properties.checkpoint_interval == 3
    assert snapshot.protocol == protocol()
    assert _paths(snapshot) == {"a", "file-1", "file-2"}
    snapshot.require_readable()
    snapshot.require_writable(writer_kind=WriterKind.ARROW_ROWS)


def test_existence(log: LogBuilder) -> None:
    assert not Snapshot.exists(log.store)
    with pytest.raises(TableNotFoundError):
        _load(log)
    log.create()
    assert Snapshot.exists(log.store)


def test_protocol_and_metadata_change(log: LogBuilder) -> None:
    log.create()
    log.commit(metadata(name="second", configuration={"a": "b"}))
    log.commit(protocol(min_writer_version=3))
    first, last = _load(log, 0), _load(log)
    assert (first.metadata.name, first.protocol.min_writer_version) == (None, 2)
    assert (last.metadata.name, last.protocol.min_writer_version) == ("second", 3)
    assert first.refresh().metadata == last.metadata
    write_checkpoint(last)
    log.commit(metadata(name="third"))
    assert (_load(log).metadata.name, _load(log).protocol.min_writer_version) == ("third", 3)
    log.commit(metadata(name="fourth"), protocol(min_writer_version=4))
    log.commit(protocol(min_writer_version=5))
    for snapshot in (_load(log), last.refresh()):
        assert (snapshot.metadata.name, snapshot.protocol.min_writer_version) == ("fourth", 5)
    log.commit(metadata(name="fifth"))
    log.commit(metadata(name="sixth"))
    for snapshot in (_load(log), last.refresh()):
        assert (snapshot.metadata.name, snapshot.protocol.min_writer_version) == ("sixth", 5)


def test_refresh(log: LogBuilder) -> None:
    log.create().appends(2)
    snapshot = _load(log)
    assert snapshot.refresh() is snapshot
    log.commit(remove("file-1"), add("c"))
    newer = snapshot.refresh()
    assert (newer.version, _paths(newer)) == (3, {"file-2", "c"})
    assert (snapshot.version, _paths(snapshot)) == (2, {"file-1", "file-2"})


def test_refresh_of_a_replaced_and_of_a_deleted_table(log: LogBuilder) -> None:
    log.create().appends(2)
    snapshot = _load(log)
    shutil.rmtree(log.root)
    with pytest.raises(TableNotFoundError):
        snapshot.refresh()
    other = LogBuilder(log.root)
    other.commit(protocol(), metadata(id="other"), add("z"), time_ms=1)
    assert snapshot.refresh().metadata.id == "other"
    assert _paths(snapshot.refresh()) == {"z"}


def test_refresh_after_cleanup_of_the_own_version(log: LogBuilder) -> None:
    log.create().appends(2)
    snapshot = _load(log)
    log.appends(3)
    write_checkpoint(_load(log))
    log.remove_commits(range(5))
    assert _paths(snapshot.refresh()) == {f"file-{n}" for n in range(1, 6)}


def test_a_snapshot_outlives_its_checkpoint(log: LogBuilder) -> None:
    log.create().appends(3)
    write_checkpoint(_load(log))
    snapshot = _load(log)
    (log.log / f"{3:020d}.checkpoint.parquet").unlink()
    assert _paths(snapshot) == {"file-1", "file-2", "file-3"}
    assert snapshot.files.to_table(["stats"]).num_rows == 3


def test_time_travel(log: LogBuilder) -> None:
    log.create().appends(3)
    for offset, version in ((0, 0), (999, 0), (1000, 1), (2999, 2), (3000, 3)):
        assert Snapshot.load(log.store, timestamp_ms=NOW_MS + offset).version == version
    for offset in (-1, 3001):
        with pytest.raises(VersionNotFoundError, match="2023-11-14T22:13:23"):
            Snapshot.load(log.store, timestamp_ms=NOW_MS + offset)
    with pytest.raises(ConfigurationError, match="Pass only one"):
        Snapshot.load(log.store, timestamp_ms=1, version=1)


def test_times_that_do_not_increase_are_moved_on(log: LogBuilder) -> None:
    for version, offset in enumerate((0, 5000, 100, 5000, 9000)):
        actions = (protocol(), metadata()) if version == 0 else ()
        log.commit(*actions, time_ms=NOW_MS + offset)
    for offset, version in ((4999, 0), (5000, 1), (5001, 2), (5002, 3), (8999, 3), (9000, 4)):
        assert Snapshot.load(log.store, timestamp_ms=NOW_MS + offset).version == version
    assert [entry.timestamp_ms - NOW_MS for entry in history(log.store)] == [9000, 5002, 5001, 5000, 0]


def test_time_travel_only_to_what_can_be_read(log: LogBuilder) -> None:
    log.create().appends(4)
    write_checkpoint(_load(log, 3))
    log.remove_commits([0, 1])
    assert Snapshot.load(log.store, timestamp_ms=NOW_MS + 3500).version == 3
    with pytest.raises(VersionNotFoundError, match="Version 3 was committed at"):
        Snapshot.load(log.store, timestamp_ms=NOW_MS + 2500)


def test_in_commit_timestamps_go_before_file_times(log: LogBuilder) -> None:
    log.create()
    enabled = {
        "delta.enableInCommitTimestamps": "true",
        "delta.inCommitTimestampEnablementVersion": "1",
        "delta.inCommitTimestampEnablementTimestamp": str(NOW_MS + 100_000),
    }
    for version in (1, 2, 3):
        info = CommitInfo(timestamp_ms=1, in_commit_timestamp_ms=NOW_MS + version * 100_000)
        log.commit(info, metadata(configuration=enabled), time_ms=NOW_MS + 5)
    assert _load(log).timestamp_ms == NOW_MS + 300_000
    assert _load(log, 0).timestamp_ms == NOW_MS
    for offset, version in ((1000, 0), (100_000, 1), (299_999, 2), (300_000, 3)):
        assert Snapshot.load(log.store, timestamp_ms=NOW_MS + offset).version == version
    assert [entry.timestamp_ms - NOW_MS for entry in history(log.store)] == [300_000, 200_000, 100_000, 0]


def test_history(log: LogBuilder) -> None:
    log.create()
    log.commit(CommitInfo(operation="WRITE", operation_parameters={"mode": "Append"}, txn_id="t1"))
    log.appends(2)
    entries = history(log.store)
    assert [(entry.version, entry.commit_info.operation) for entry in entries] == [
        (3, None),
        (2, None),
        (1, "WRITE"),
        (0, None),
    ]
    assert entries[2].commit_info.txn_id == "t1"
    assert [entry.version for entry in history(_load(log, 2), limit=2)] == [2, 1]
    assert [type(action).__name__ for action in commit_actions(log.store, 0)] == ["Protocol", "Metadata"]
    with pytest.raises(VersionNotFoundError):
        commit_actions(log.store, 9)
    with pytest.raises(TableNotFoundError):
        history(open_store(log.root / "nothing"))


@pytest.mark.parametrize("damage", ["truncated", "no parquet", "empty", "no protocol", "flipped"])
def test_a_damaged_checkpoint_is_passed_over(log: LogBuilder, damage: str) -> None:
    log.create().appends(6)
    write_checkpoint(_load(log, 2))
    write_checkpoint(_load(log, 5))
    path = log.log / f"{5:020d}.checkpoint.parquet"
    whole = path.read_bytes()
    if damage == "no protocol":
        pq.write_table(CHECKPOINT_SCHEMA.empty_table(), path)
    else:
        # The first bytes of a column chunk are its page header.
        flipped = whole[:4] + b"\xff" * (len(whole) // 2) + whole[4 + len(whole) // 2 :]
        path.write_bytes(
            {"truncated": whole[:-100], "no parquet": b"PAR", "empty": b"", "flipped": flipped}[damage]
        )
    expected = {f"file-{n}" for n in range(1, 7)}
    with pytest.warns(DeltaWarning, match="is ignored"):
        assert _paths(_load(log)) == expected
    (log.log / f"{2:020d}.checkpoint.parquet").unlink()
    with pytest.warns(DeltaWarning, match="is ignored"):
        assert _paths(_load(log)) == expected
    log.remove_commits([0])
    with (
        pytest.raises(CorruptLogError, match=r"00005\.checkpoint\.parquet"),
        pytest.warns(DeltaWarning, match="is ignored"),
    ):
        _paths(_load(log))


@pytest.mark.parametrize(
    ("column", "value", "reason"), [("size", -1, "negative size"), ("size", None, "no size")]
)
def test_lies_in_a_checkpoint(log: LogBuilder, column: str, value: int | None, reason: str) -> None:
    log.create().appends(2)
    write_checkpoint(_load(log))
    path = log.log / f"{2:020d}.checkpoint.parquet"
    rows = pq.read_table(path).to_pylist()
    for row in rows:
        if row["add"]:
            row["add"][column] = value
    pq.write_table(pa.Table.from_pylist(rows, CHECKPOINT_SCHEMA), path)
    log.remove_commits([0])
    with pytest.raises(CorruptLogError, match=reason), pytest.warns(DeltaWarning, match=reason):
        _ = _load(log).files


def test_a_checkpoint_without_a_column_that_every_writer_writes(log: LogBuilder) -> None:
    log.create().appends(2)
    write_checkpoint(_load(log))
    path = log.log / f"{2:020d}.checkpoint.parquet"
    table = pq.read_table(path)
    add = table.column("add").combine_chunks()
    kept = [field for field in add.type if field.name != "modificationTime"]
    add = pa.StructArray.from_arrays(
        [add.field(field.name) for field in kept], fields=kept, mask=add.is_null()
    )
    pq.write_table(table.set_column(table.schema.get_field_index("add"), "add", add), path)
    with pytest.warns(DeltaWarning, match="modificationTime"):
        assert _paths(_load(log)) == {"file-1", "file-2"}


def test_a_damaged_commit_is_an_error(log: LogBuilder) -> None:
    log.create().appends(2)
    log.raw(f"{1:020d}.json", b'{"add":{"path":"x"}}\n')
    snapshot = _load(log)
    with pytest.raises(CorruptLogError, match=r"Line 1 of '_delta_log/00000000000000000001\.json'"):
        _ = snapshot.files


def test_two_protocols_are_found_without_reading_files(log: LogBuilder) -> None:
    line = json.dumps({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}).encode()
    log.raw(f"{0:020d}.json", line + b"\n" + line)
    with pytest.raises(CorruptLogError, match="Line 2"):
        _load(log)


def test_escaped_keys_are_found(log: LogBuilder) -> None:
    fields = json.dumps({"id": "x", "schemaString": SCHEMA_STRING})
    log.raw(
        f"{0:020d}.json",
        b'{"\\u0070rotocol":{"minReaderVersion":1,"minWriterVersion":2}}\n{"meta\\u0044ata":'
        + fields.encode()
        + b"}",
    )
    assert _load(log).metadata.id == "x"


def test_incomplete_logs(log: LogBuilder) -> None:
    log.commit(protocol())
    with pytest.raises(CorruptLogError, match="no 'metaData' action"):
        _load(log)
    log.commit(metadata(schema_string=""))
    with pytest.raises(CorruptLogError, match="no schema"):
        _ = _load(log).schema
    log.appends(2)
    log.remove_commits([2])
    with pytest.raises(LogGapError):
        _load(log)


def test_unknown_features_are_refused_by_name(log: LogBuilder) -> None:
    features = frozenset({"catalogManaged", "timestampNtz"})
    log.commit(
        Protocol(
            min_reader_version=3, min_writer_version=7, reader_features=features, writer_features=features
        ),
        metadata(),
    )
    snapshot = _load(log)
    for refused in (
        snapshot.require_readable,
        *(partial(snapshot.require_writable, writer_kind=writer_kind) for writer_kind in WriterKind),
        lambda: snapshot.files,
    ):
        with pytest.raises(UnsupportedTableFeatureError, match=r"table feature catalogManaged\."):
            refused()


def test_tables_of_deltalake(tmp_path: Path) -> None:
    uri = str(tmp_path / "peer")
    for number in range(12):
        table = pa.table({"p": [f"a b/{number % 3}", None], "x": [number, None]})
        write_deltalake(uri, table, mode="append", partition_by=["p"])
    peer = DeltaTable(uri)
    peer.delete("x = 3")
    peer.create_checkpoint()
    write_deltalake(uri, table, mode="append")
    peer = DeltaTable(uri)
    snapshot = Snapshot.load(open_store(uri))
    assert snapshot.segment.checkpoint_version == 12
    assert snapshot.version == peer.version()
    actions = pa.table(peer.get_add_actions(flatten=True)).sort_by("path").to_pylist()
    ours = snapshot.files.to_table().sort_by("path").to_pylist()
    assert len(ours) == len(actions) == snapshot.files.num_files
    for mine, theirs in zip(ours, actions, strict=True):
        assert mine["size_bytes"] == theirs["size_bytes"]
        assert dict(mine["partition_values"])["p"] == theirs["partition.p"]
        assert json.loads(mine["stats"])["numRecords"] == theirs["num_records"]
    assert sorted(snapshot.files.partition_column("p").to_pylist(), key=str) == sorted(
        (row["partition.p"] for row in actions), key=str
    )


def test_commit_time_is_the_checkpoint_time_when_nothing_else_is_left(log: LogBuilder) -> None:
    log.create().appends(1)
    write_checkpoint(_load(log))
    log.remove_commits([0, 1])
    os.utime(log.log / f"{1:020d}.checkpoint.parquet", ns=(7 * 10**9, 7 * 10**9))
    assert _load(log).timestamp_ms == 7000
    assert _load(log).refresh().version == 1
