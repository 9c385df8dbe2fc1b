"""Checkpoints that are not written, or not relied on, and what is left of them then."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.checkpoint.checkpoint_contents import read_contents
from delta_core.checkpoint.classic import CheckpointInfo
from delta_core.checkpoint.v2 import ManifestForm, write_v2_checkpoint
from delta_core.checkpoint.write import write_checkpoint
from delta_core.errors import (
    CorruptLogError,
    DeltaWarning,
    ObjectNotFoundError,
    StaleCommitError,
    VerificationError,
)
from delta_core.log.last_checkpoint import read_last_checkpoint
from delta_core.log.listing import CheckpointFiles
from delta_core.log.log_path import LogFileKind
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from tests.support.log_builder import NOW_MS, LogBuilder, add, metadata, protocol

V2 = frozenset({"v2Checkpoint"})


@pytest.fixture
def log(tmp_path: Path) -> LogBuilder:
    """Version 3: four files, in a table that has checkpoints of the V2 spec."""
    log = LogBuilder(tmp_path / "t")
    log.commit(
        protocol(min_reader_version=3, min_writer_version=7, reader_features=V2, writer_features=V2),
        metadata(configuration={"delta.checkpointPolicy": "v2"}),
        add("file-0"),
    )
    return log.appends(3)


class MeetingStore(LocalLogStore):
    """Lets others act when a checkpoint is read, and right after one appears."""

    on_read: Callable[[], object] = staticmethod(lambda: None)
    after_put: Callable[[], object] = staticmethod(lambda: None)

    def open_input(self, path: str) -> pa.NativeFile:
        source = super().open_input(path)
        if ".checkpoint." in path:
            self.on_read()
        return source

    def put_if_absent(self, path: str, data: bytes) -> None:
        super().put_if_absent(path, data)
        if ".checkpoint." in path:
            self.after_put()


def _loaded(log: LogBuilder, store: LocalLogStore | None = None) -> Snapshot:
    snapshot = Snapshot.load(store or log.store, clock=log.clock)
    assert snapshot.files.num_files == 4
    return snapshot


def _manifests(log: LogBuilder) -> list[Path]:
    return sorted(log.log.glob("*.checkpoint.*"))


def _sidecars(log: LogBuilder) -> list[Path]:
    return sorted((log.log / "_sidecars").glob("*"))


def _made_anew(log: LogBuilder) -> None:
    """Another table's commits where this one's were; what else there is stays."""
    log.remove_commits(range(4))
    other = LogBuilder(log.root)
    other.commit(protocol(), metadata(id="new"), time_ms=NOW_MS + 5_000_000)
    for number in range(1, 6):
        other.commit(add(f"new-{number}"), time_ms=NOW_MS + 5_000_000)


@pytest.mark.parametrize("write", [write_checkpoint, write_v2_checkpoint])
def test_a_version_that_is_not_what_its_checksum_says_gets_none(
    log: LogBuilder, write: Callable[[Snapshot], CheckpointInfo]
) -> None:
    """With the commits cleaned up, the checkpoint would be the only account of it."""
    log.checksum(_loaded(log), numFiles=5)
    with pytest.warns(DeltaWarning, match="contradicts its checksum"):
        snapshot = _loaded(log)
    with pytest.raises(VerificationError, match="Cannot write a checkpoint of version 3") as caught:
        write(snapshot)
    assert "the checksum has 5, the log has 4" in caught.value.cause
    assert (_manifests(log), _sidecars(log), read_last_checkpoint(log.store)) == ([], [], None)


def test_a_table_made_anew_while_a_checkpoint_is_read_does_not_get_its_report(log: LogBuilder) -> None:
    """The checkpoint that is found is the old table's: nothing says that the new one has it."""
    write_v2_checkpoint(_loaded(log))
    (log.log / "_last_checkpoint").unlink()
    store = MeetingStore(log.root)
    snapshot = _loaded(log, store)
    before = [path.name for path in [*_manifests(log), *_sidecars(log)]]

    def meanwhile() -> None:
        store.on_read = lambda: None
        _made_anew(log)

    store.on_read = meanwhile
    with pytest.raises(StaleCommitError, match="log is not the one that was read"):
        write_v2_checkpoint(snapshot)
    assert [path.name for path in [*_manifests(log), *_sidecars(log)]] == before
    assert read_last_checkpoint(log.store) is None


@pytest.mark.parametrize("form", ManifestForm)
def test_a_table_made_anew_after_the_manifest_keeps_no_part_of_it(
    log: LogBuilder, form: ManifestForm
) -> None:
    """The new table is read without it, so it goes, and what it alone names goes with it."""
    store = MeetingStore(log.root)
    snapshot = _loaded(log, store)
    store.after_put = lambda: _made_anew(log)
    with pytest.raises(StaleCommitError, match="log is not the one that was read"):
        write_v2_checkpoint(snapshot, form=form)
    assert (_manifests(log), _sidecars(log), read_last_checkpoint(log.store)) == ([], [], None)
    new = Snapshot.load(log.store, clock=log.clock)
    assert (new.version, new.metadata.id, new.files.num_files) == (5, "new", 5)


def test_a_table_dropped_after_the_manifest_is_told(log: LogBuilder) -> None:
    store = MeetingStore(log.root)
    snapshot = _loaded(log, store)

    def dropped() -> None:
        for path in [*log.log.glob("*.json"), *_manifests(log)]:
            path.unlink()

    store.after_put = dropped
    with pytest.raises(StaleCommitError, match="log is not the one that was read"):
        write_v2_checkpoint(snapshot)
    assert list(log.log.glob("*.*")) == []


def test_a_manifest_that_is_gone_at_once_is_no_checkpoint(log: LogBuilder) -> None:
    """The table is the same, so the store has lost it, or somebody has deleted it."""
    store = MeetingStore(log.root)
    snapshot = _loaded(log, store)
    store.after_put = lambda: [path.unlink() for path in _manifests(log)]
    with pytest.raises(ObjectNotFoundError, match="checkpoint"):
        write_v2_checkpoint(snapshot)
    assert read_last_checkpoint(log.store) is None
    assert _loaded(log).version == 3


def test_one_with_vectors_of_another_type_is_damaged_and_passed_over(log: LogBuilder) -> None:
    """A sidecar of another writer, whose vectors have a text where the log has a number."""
    write_v2_checkpoint(_loaded(log), form=ManifestForm.JSON)
    (manifest,), (sidecar,) = _manifests(log), _sidecars(log)
    dv = {"storageType": "u", "pathOrInlineDv": "x", "offset": 1, "sizeInBytes": "many", "cardinality": 1}
    files = [
        {"path": f"file-{number}", "size": 10, "modificationTime": NOW_MS, "deletionVector": dv}
        for number in range(4)
    ]
    pq.write_table(pa.table({"add": files}), sidecar)
    text = [json.loads(line) for line in manifest.read_text().splitlines()]
    for action in text:
        if "sidecar" in action:
            action["sidecar"]["sizeInBytes"] = sidecar.stat().st_size
    manifest.write_text("\n".join(json.dumps(action) for action in text))
    log.clock.advance(1)
    files_of_it = CheckpointFiles(
        version=3,
        kind=LogFileKind.V2_CHECKPOINT,
        parts=(log.store.head(f"_delta_log/{manifest.name}"),),
    )
    with pytest.raises(CorruptLogError, match="checkpoint") as caught:
        read_contents(log.store, files_of_it)
    assert "deletionVector" in f"{caught.value.problem} {caught.value.cause}"
    kept = manifest.read_bytes()
    manifest.unlink()
    snapshot = _loaded(log)
    manifest.write_bytes(kept)
    info = write_v2_checkpoint(snapshot)
    assert info.num_add_files == 4
    assert manifest.read_bytes() == kept, "nobody knows who may still read it"
    assert len(_manifests(log)) == 2
