"""Drops that others were faster than: what was looked at and written is not looked at and written again."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_core import CommitProperties, DeltaTable, write_deltalake
from delta_core.actions import SetTransaction
from delta_core.checkpoint.write import write_checkpoint
from delta_core.clock import SYSTEM_CLOCK, ManualClock
from delta_core.log.commit_reader import read_commits
from delta_core.maintenance.feature_drop import apply, history
from delta_core.maintenance.feature_drop.apply import drop_feature
from delta_core.maintenance.feature_drop.history import History
from delta_core.maintenance.feature_drop.state import deletion_vector_files_without_tombstone
from delta_core.run import Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.internal_properties import CHECKPOINT_PROTECTION
from delta_core.transaction.observer import CommitPhase
from tests.support.dropped_tables import by_peer, ids, make, operations, rows, snapshot_of


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Versions of the commits that a history is told from."""
    versions: list[int] = []

    def read(store, files):  # type: ignore[no-untyped-def]
        versions.extend(file.version for file in files)
        return read_commits(store, files)

    monkeypatch.setattr(history, "read_commits", read)
    return versions


@pytest.mark.parametrize("name", ["deletionVectors", "v2Checkpoint", "columnMapping"])
def test_a_second_look_goes_on_and_says_what_a_first_would(
    tmp_path: Path, name: str, looked_at: list[int]
) -> None:
    table = make(tmp_path, enableDeletionVectors="true", checkpointPolicy="v2", columnMapping__mode="name")
    seen = History(feature=name)
    steps = [
        lambda: None,
        lambda: table.delete("id = 11"),
        lambda: table.alter.unset_properties(["delta.enableDeletionVectors", "delta.checkpointPolicy"]),
        lambda: write_checkpoint(snapshot_of(tmp_path)),
        lambda: table.optimize.purge(),
        lambda: write_deltalake(table, rows(60), mode="append"),
        lambda: table.alter.set_properties({"delta.checkpointPolicy": "v2"}),
        lambda: write_checkpoint(snapshot_of(tmp_path)),
        lambda: table.restore(1),
    ]
    for step in steps:
        step()
        looked_at.clear()
        before = 0 if seen._past is None else seen._past.version
        assert seen.clean_since(snapshot_of(tmp_path)) == History(feature=name).clean_since(
            snapshot_of(tmp_path)
        )
        version = snapshot_of(tmp_path).version
        fresh = list(range(1, version + 1))
        assert looked_at == [*range(before + 1, version + 1), *fresh]


class _Faster:
    """Appends a row, or deletes one by a vector, before each of the first commits that would drop."""

    def __init__(self, path: Path, what: list[str]) -> None:
        self.path, self.what = path, what

    def on_phase(self, phase: CommitPhase, version: int) -> None:
        now = snapshot_of(self.path)
        clean = "delta.enableDeletionVectors" not in now.metadata.configuration
        if phase is not CommitPhase.BEFORE_PUT or not self.what or not clean:
            return
        if deletion_vector_files_without_tombstone(now):
            return  # They are about to get tombstones.
        if now.files.has_deletion_vectors or not (self.path / f"_delta_log/{version - 1:020d}.json").exists():
            return
        if self.what.pop(0) == "append":
            write_deltalake(self.path, rows(500 + len(self.what), 1), mode="append")
        else:
            table = DeltaTable(self.path)
            table.alter.set_properties({"delta.enableDeletionVectors": "true"})
            table.delete("id = 11")


@pytest.mark.parametrize(("what", "barriers"), [(["append"] * 3, 1), (["delete", "append"], 2)])
def test_one_barrier_is_enough_as_long_as_what_follows_is_clean(
    tmp_path: Path, what: list[str], barriers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, enableDeletionVectors="true")
    DeltaTable(tmp_path).optimize.purge()
    DeltaTable(tmp_path).alter.unset_properties(["delta.enableDeletionVectors"])
    written: list[int] = []
    original = apply.checkpointed

    def noted(latest: Snapshot) -> Snapshot:
        written.append(latest.version)
        return original(latest)

    monkeypatch.setattr(apply, "checkpointed", noted)
    drop_feature(snapshot_of(tmp_path), "deletionVectors", run=Run(observer=_Faster(tmp_path, what)))
    table = DeltaTable(tmp_path)
    dropped = int(table.metadata().configuration[CHECKPOINT_PROTECTION])
    assert dropped == table.version()
    assert not what
    assert len(written) == barriers
    # Who knows no vectors begins at the barrier, and meets none behind it.
    log, expected = tmp_path / "_delta_log", ids(tmp_path)
    for file in [log / "_last_checkpoint", *log.glob(f"{dropped:020d}.checkpoint*")]:
        file.unlink()
    for version in range(written[-1] + 1):
        (log / f"{version:020d}.json").unlink()
    for version in range(written[-1], dropped + 1):
        assert not DeltaTable(tmp_path, version=version).snapshot.files.has_deletion_vectors
    assert by_peer(tmp_path) == ids(tmp_path) == expected


class _Twin:
    """The same job runs a second time, and is done before the first has come to the commit of a name."""

    def __init__(self, path: Path, at: str) -> None:
        self.path, self.at, self.done = path, at, False

    def on_phase(self, phase: CommitPhase, version: int) -> None:
        before = DeltaTable(self.path).history(1)[0].commit_info.operation
        if phase is CommitPhase.BEFORE_PUT and before == self.at and not self.done:
            self.done = True
            drop_feature(snapshot_of(self.path), "deletionVectors", run=Run(commit=KEYED))


KEYED = CommitProperties(txn=SetTransaction(app_id="nightly", version=1))


@pytest.mark.parametrize("at", ["DELETE", "UNSET TBLPROPERTIES", "REORG"])
def test_a_twin_with_the_same_key_was_first(tmp_path: Path, at: str) -> None:
    """The work is done, and the key says so, wherever the first run was stopped by it."""
    make(tmp_path, enableDeletionVectors="true")
    twin = _Twin(tmp_path, at)
    result = drop_feature(snapshot_of(tmp_path), "deletionVectors", run=Run(commit=KEYED, observer=twin))
    assert twin.done
    assert result.already_applied
    assert operations(tmp_path).count("DROP FEATURE") == 1


def test_a_clock_behind_the_one_that_removed_the_files_writes_tombstones_once(tmp_path: Path) -> None:
    make(tmp_path, enableDeletionVectors="true")
    DeltaTable(tmp_path).optimize.purge()
    behind = DeltaTable(tmp_path, clock=ManualClock(SYSTEM_CLOCK.now_ms() - 3_600_000))
    behind.alter.drop_feature("deletionVectors")
    assert operations(tmp_path).count("Deletion Vector Tombstones") == 1
    assert not deletion_vector_files_without_tombstone(snapshot_of(tmp_path))
    assert ids(tmp_path) == by_peer(tmp_path)
