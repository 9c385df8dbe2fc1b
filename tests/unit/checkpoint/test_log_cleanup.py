"""Cleanup keeps every promised version readable (PROTOCOL.md, "Metadata Cleanup")."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from delta_core.checkpoint.classic import write_checkpoint
from delta_core.checkpoint.log_cleanup import cleanup_expired_logs
from delta_core.checkpoint.v2 import write_v2_checkpoint
from delta_core.clock import ManualClock
from delta_core.errors import DeltaError, DeltaWarning
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.cached import CachedLogStore
from delta_core.storage.disk_cache import DiskCache
from delta_core.storage.local import LocalLogStore
from tests.support.log_builder import DAY_MS, LogBuilder, add, metadata, protocol

MIDNIGHT_MS = 19_700 * DAY_MS


@pytest.fixture
def log(tmp_path: Path) -> LogBuilder:
    """Twenty daily commits at noon, checkpoints at 4, 9 and 14; it is the evening of the last day."""
    builder = LogBuilder(tmp_path / "t")
    for version in range(20):
        at = MIDNIGHT_MS + version * DAY_MS + DAY_MS // 2
        actions = (protocol(), metadata(configuration={"delta.logRetentionDuration": "interval 8 days"}))
        builder.commit(*(actions if version == 0 else (add(f"f{version}"),)), time_ms=at)
        if version in (4, 9, 14):
            write_checkpoint(Snapshot.load(builder.store, clock=builder.clock))
    builder.clock.advance((MIDNIGHT_MS + 19 * DAY_MS + DAY_MS * 3 // 4 - builder.clock.now_ms()) / 1000)
    return builder


def _load(log: LogBuilder, version: int | None = None) -> Snapshot:
    return Snapshot.load(log.store, version=version, clock=log.clock)


def _names(log: LogBuilder) -> set[str]:
    return {path.name for path in log.log.iterdir()}


def test_what_this_machine_has_kept_of_a_checkpoint_proves_nothing(tmp_path: Path) -> None:
    """The store has lost a sidecar that only a cache on this machine still has."""

    class RemoteStore(LocalLogStore):
        @property
        def remote(self) -> bool:
            return True

    def opened() -> Snapshot:
        cache = DiskCache(str(tmp_path / "cache"), max_bytes=1 << 20)
        return Snapshot.load(CachedLogStore(RemoteStore(builder.root), cache), clock=builder.clock)

    builder = LogBuilder(tmp_path / "t")
    configuration = {"delta.logRetentionDuration": "interval 8 days", "delta.checkpointPolicy": "v2"}
    listed = frozenset({"v2Checkpoint"})
    first = protocol(
        min_reader_version=3, min_writer_version=7, reader_features=listed, writer_features=listed
    )
    for version in range(20):
        at = MIDNIGHT_MS + version * DAY_MS + DAY_MS // 2
        actions = (first, metadata(configuration=configuration)) if version == 0 else (add(f"f{version}"),)
        builder.commit(*actions, time_ms=at)
    write_v2_checkpoint(_load(builder, 9))
    builder.clock.advance((MIDNIGHT_MS + 19 * DAY_MS + DAY_MS * 3 // 4 - builder.clock.now_ms()) / 1000)
    assert opened().files.num_files == 19
    for sidecar in (builder.log / "_sidecars").iterdir():
        sidecar.unlink()
    before = _names(builder)
    assert cleanup_expired_logs(opened()).files == ()
    assert _names(builder) == before


def test_everything_before_the_cutoff_checkpoint_goes(log: LogBuilder) -> None:
    log.raw(f"{3:020d}.crc", b"{}")
    log.checksum(_load(log, 9))
    log.raw(f"{9:020d}.{11:020d}.compacted.json", b"")
    log.raw(f"{10:020d}.{11:020d}.compacted.json", b"")
    log.raw(f"{2:020d}.json.backup", b"a user's own file")
    before = _names(log)
    # Cutoff: midnight of day 11, so the newest commit before it is 10, and the checkpoint 9.
    planned = cleanup_expired_logs(_load(log), dry_run=True)
    assert _names(log) == before
    done = cleanup_expired_logs(_load(log))
    assert done == planned
    assert (done.checkpoint_version, done.cutoff_ms) == (9, MIDNIGHT_MS + 11 * DAY_MS)
    gone = {f"{v:020d}.json" for v in range(9)} | {f"{4:020d}.checkpoint.parquet", f"{3:020d}.crc"}
    assert before - _names(log) == gone | {f"{9:020d}.{11:020d}.compacted.json"}
    assert done.total_bytes > 0
    for version in range(9, 20):
        assert _load(log, version).files.num_files == version
    assert cleanup_expired_logs(_load(log)).files == ()


def _checkpoints_written_at(log: LogBuilder, version_to_ms: dict[int, int]) -> None:
    for version, at in version_to_ms.items():
        os.utime(log.log / f"{version:020d}.checkpoint.parquet", ns=(at * 10**6, at * 10**6))


def test_a_clock_that_is_ahead_makes_no_version_old(log: LogBuilder) -> None:
    noons = {version: MIDNIGHT_MS + version * DAY_MS + DAY_MS // 2 for version in (4, 9, 14)}
    _checkpoints_written_at(log, noons)
    expected = cleanup_expired_logs(_load(log), dry_run=True)
    log.clock.advance(60 * 86_400)
    assert cleanup_expired_logs(_load(log), dry_run=True) == expected
    ahead = ManualClock(log.clock.now_ms() + 60 * DAY_MS)
    assert cleanup_expired_logs(_load(log), clock=ahead) == expected
    assert expected.checkpoint_version == 9


def test_a_checkpoint_written_now_tells_the_time_of_a_table_without_commits(log: LogBuilder) -> None:
    noons = {version: MIDNIGHT_MS + version * DAY_MS + DAY_MS // 2 for version in (4, 9, 14)}
    log.clock.advance(5 * 86_400)
    _checkpoints_written_at(log, noons | {14: log.clock.now_ms()})
    assert cleanup_expired_logs(_load(log), dry_run=True).checkpoint_version == 14
    _checkpoints_written_at(log, noons)
    assert cleanup_expired_logs(_load(log), dry_run=True).checkpoint_version == 9


def test_a_clock_that_is_behind_makes_versions_young(log: LogBuilder) -> None:
    behind = ManualClock(MIDNIGHT_MS + 14 * DAY_MS)
    assert cleanup_expired_logs(_load(log), clock=behind, dry_run=True).checkpoint_version == 4


def test_a_commit_at_midnight_is_an_acceptable_cutoff(log: LogBuilder) -> None:
    log.commit(add("f14"), version=14, time_ms=MIDNIGHT_MS + 14 * DAY_MS)
    log.next_version = 20
    log.clock.advance(3 * 86_400)
    assert cleanup_expired_logs(_load(log), dry_run=True).checkpoint_version == 14
    log.commit(add("f14"), version=14, time_ms=MIDNIGHT_MS + 14 * DAY_MS + 1)
    assert cleanup_expired_logs(_load(log), dry_run=True).checkpoint_version == 9


def test_nothing_goes_without_a_checkpoint_before_the_cutoff(log: LogBuilder) -> None:
    for version in (4, 9):
        (log.log / f"{version:020d}.checkpoint.parquet").unlink()
    result = cleanup_expired_logs(_load(log))
    assert (result.checkpoint_version, result.files) == (None, ())


def test_a_damaged_checkpoint_is_not_relied_on(log: LogBuilder) -> None:
    path = log.log / f"{9:020d}.checkpoint.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    assert cleanup_expired_logs(_load(log)).checkpoint_version == 4
    with pytest.warns(DeltaWarning, match="is ignored"):
        assert _load(log, 11).files.num_files == 11


def test_a_checkpoint_whose_files_cannot_be_read_is_not_relied_on(log: LogBuilder) -> None:
    path = log.log / f"{9:020d}.checkpoint.parquet"
    whole = path.read_bytes()
    footer = pq.read_metadata(path)
    sizes = [
        footer.row_group(group).column(leaf)
        for group in range(footer.num_row_groups)
        for leaf in range(footer.num_columns)
        if footer.row_group(group).column(leaf).path_in_schema == "add.size"
    ]
    last = max(sizes, key=lambda column: column.num_values)
    start = last.dictionary_page_offset or last.data_page_offset
    path.write_bytes(whole[:start] + b"\0" * 8 + whole[start + 8 :])
    assert cleanup_expired_logs(_load(log)).checkpoint_version == 4


@pytest.mark.parametrize(
    "leaf",
    ["add.partitionValues.key_value.key", "add.modificationTime", "add.stats", "protocol.minReaderVersion"],
)
def test_a_checkpoint_of_which_any_column_is_damaged_replaces_nothing(log: LogBuilder, leaf: str) -> None:
    path = log.log / f"{9:020d}.checkpoint.parquet"
    footer = pq.read_metadata(path)
    whole = bytearray(path.read_bytes())
    damaged = 0
    for group in range(footer.num_row_groups):
        for index in range(footer.num_columns):
            column = footer.row_group(group).column(index)
            if column.path_in_schema != leaf:
                continue
            start = column.dictionary_page_offset or column.data_page_offset
            whole[start + column.total_compressed_size - 3] ^= 0xFF
            damaged += 1
    assert damaged
    path.write_bytes(whole)
    assert cleanup_expired_logs(_load(log)).checkpoint_version == 4


def test_a_checkpoint_with_sidecars_that_are_gone_is_not_relied_on(log: LogBuilder) -> None:
    (log.log / f"{9:020d}.checkpoint.parquet").unlink()
    sidecars = log.log / "_sidecars"
    sidecars.mkdir()
    (sidecars / "x.parquet").write_bytes(b"not there any more")
    lines = [
        {"checkpointMetadata": {"version": 9}},
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        *(json.loads(line) for line in (log.log / f"{0:020d}.json").read_text().splitlines()[1:]),
        {"sidecar": {"path": "x.parquet", "sizeInBytes": 18, "modificationTime": 0}},
    ]
    name = f"{9:020d}.checkpoint.11111111-2222-3333-4444-555555555555.json"
    log.raw(name, b"\n".join(json.dumps(line).encode() for line in lines))
    done = cleanup_expired_logs(_load(log))
    assert done.checkpoint_version == 4
    assert name in _names(log)
    assert (sidecars / "x.parquet").exists()


def test_every_retained_version_survives_any_retention(log: LogBuilder) -> None:
    times = [MIDNIGHT_MS + version * DAY_MS + DAY_MS // 2 for version in range(12)]
    now = log.clock.now_ms()
    for days in range(12, -1, -1):
        log.commit(
            metadata(configuration={"delta.logRetentionDuration": f"interval {days} days"}), time_ms=now
        )
        result = cleanup_expired_logs(_load(log))
        for version, at in enumerate(times):
            if at >= now - days * DAY_MS:
                assert _load(log, version).files.num_files == version
        if result.checkpoint_version is not None:
            for version in range(result.checkpoint_version):
                with pytest.raises(DeltaError):
                    _load(log, version)
