"""Checkpoints of the V2 spec: sidecars, then the manifest; read back, read by others, and cleaned up."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from delta_core.actions import DeletionVectorDescriptor, DomainMetadata, SetTransaction
from delta_core.checkpoint import rows as rows_module
from delta_core.checkpoint.log_cleanup import cleanup_expired_logs
from delta_core.checkpoint.v2 import ManifestForm, write_v2_checkpoint
from delta_core.checkpoint.write import write_checkpoint
from delta_core.errors import (
    AmbiguousWriteError,
    DeltaWarning,
    NotWrittenError,
    StaleCommitError,
    StorageError,
    StorePermissionError,
    UnsafeStoreError,
    UnsupportedTableFeatureError,
    VerificationError,
)
from delta_core.log.canonical_json import canonical_json, json_checksum
from delta_core.log.last_checkpoint import read_last_checkpoint
from delta_core.log.log_path import SIDECAR_DIRECTORY, LogFileKind
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.storage.log_store import ObjectInfo
from tests.support.faulty_store import FaultyStore, PutFault
from tests.support.log_builder import DAY_MS, NOW_MS, LogBuilder, add, metadata, protocol, remove

V2 = {"delta.checkpointPolicy": "v2"}
LISTED = frozenset({"v2Checkpoint", "domainMetadata"})


@pytest.fixture
def log(tmp_path: Path) -> LogBuilder:
    """Version 6: eight files, one of them removed, and what else a table has."""
    log = LogBuilder(tmp_path / "t")
    log.commit(
        protocol(
            min_reader_version=3,
            min_writer_version=7,
            reader_features=frozenset({"v2Checkpoint"}),
            writer_features=LISTED,
        ),
        metadata(configuration=V2),
        *(add(f"f{number}") for number in range(8)),
    )
    log.appends(4)
    log.commit(
        remove("f3", base_row_id=9),
        SetTransaction(app_id="app", version=7),
        DomainMetadata(domain="d", configuration="{}"),
    )
    log.appends(1)
    return log


def _load(log: LogBuilder, version: int | None = None) -> Snapshot:
    return Snapshot.load(log.store, version=version, clock=log.clock)


def _sidecars(log: LogBuilder) -> list[Path]:
    return sorted((log.log / "_sidecars").iterdir()) if (log.log / "_sidecars").exists() else []


def _manifests(log: LogBuilder) -> list[Path]:
    return sorted(log.log.glob("*.checkpoint.*"))


@pytest.mark.parametrize("form", ManifestForm)
@pytest.mark.parametrize("actions", [1, 5, 13, 1000])
def test_read_equal_without_the_commits(log: LogBuilder, form: ManifestForm, actions: int) -> None:
    before = _load(log)
    files, removed = before.files.to_table().sort_by("path"), before.tombstones()
    info = write_v2_checkpoint(_load(log), form=form, sidecar_actions=actions)
    assert len(_sidecars(log)) == -(-13 // actions)
    assert info.parts == 1 + len(_sidecars(log))
    assert info.num_add_files == 12
    assert info.size_bytes == sum(path.stat().st_size for path in [*_manifests(log), *_sidecars(log)])
    for path in _sidecars(log):
        assert pq.read_metadata(path).num_rows <= actions
        assert pq.read_schema(path).names == ["add", "remove"]
    log.remove_commits(range(7))
    after = _load(log)
    assert after.has_v2_checkpoint
    assert after.files.to_table().sort_by("path") == files
    assert after.tombstones() == removed
    assert after.tombstones().column("base_row_id").to_pylist() == [9]
    assert after.transactions["app"].version == 7
    assert set(after.domain_metadata) == {"d"}
    assert (after.protocol, after.metadata) == (before.protocol, before.metadata)


def test_deltalake_reads_it(log: LogBuilder) -> None:
    wanted = sorted(_load(log).files.to_table(["path"])["path"].to_pylist())
    write_v2_checkpoint(_load(log), sidecar_actions=5)
    log.remove_commits(range(7))
    theirs = DeltaTable(str(log.root))
    assert theirs.version() == 6
    assert sorted(pa.table(theirs.get_add_actions()).column("path").to_pylist()) == wanted
    assert theirs.transaction_version("app") == 7


def test_the_hint_says_where_it_is_and_has_its_digest(log: LogBuilder) -> None:
    info = write_v2_checkpoint(_load(log), sidecar_actions=5)
    hint = json.loads((log.log / "_last_checkpoint").read_bytes())
    (manifest,) = _manifests(log)
    assert (hint["version"], hint["size"], hint["numOfAddFiles"]) == (6, info.size, 12)
    assert hint["v2Checkpoint"]["path"] == manifest.name
    assert [one["path"] for one in hint["v2Checkpoint"]["sidecarFiles"]] == [p.name for p in _sidecars(log)]
    kinds = {next(iter(action)) for action in hint["v2Checkpoint"]["nonFileActions"]}
    assert kinds == {"protocol", "metaData", "txn", "domainMetadata", "checkpointMetadata"}
    assert hint["checksum"] == json_checksum(hint)
    assert read_last_checkpoint(log.store) is not None
    (log.log / "_last_checkpoint").write_text(json.dumps(hint | {"size": 1}))
    assert read_last_checkpoint(log.store) is None, "a hint that was changed is none"


def test_the_digest_is_the_protocols() -> None:
    text = (
        """{"k0":"'v 0'", "checksum": "adsaskfljadfkjadfkj", "k1":{"k2": 2, "k3": ["v3", [1, 2], """
        """{"k4": "v4", "k5": ["v5", "v6", "v7"]}]}}"""
    )
    assert canonical_json(json.loads(text)) == (
        '"k0"="%27v%200%27","k1"+"k2"=2,"k1"+"k3"+0="v3","k1"+"k3"+1+0=1,"k1"+"k3"+1+1=2,'
        '"k1"+"k3"+2+"k4"="v4","k1"+"k3"+2+"k5"+0="v5","k1"+"k3"+2+"k5"+1="v6","k1"+"k3"+2+"k5"+2="v7"'
    )
    assert json_checksum(json.loads(text)) == "6a92d155a59bf2eecbd4b4ec7fd1f875"


def test_the_policy_decides_and_only_with_the_feature(log: LogBuilder) -> None:
    write_checkpoint(_load(log))
    assert _load(log).segment.checkpoint is not None
    assert _sidecars(log)
    log.commit(metadata(configuration={}))
    write_checkpoint(_load(log))
    newest = _load(log).segment.checkpoint
    assert newest is not None
    assert newest.kind is LogFileKind.CLASSIC_CHECKPOINT
    assert not _load(log).has_v2_checkpoint
    other = LogBuilder(log.root.with_name("u")).create(configuration=V2)
    write_checkpoint(_load(other))
    assert not _load(other).has_v2_checkpoint
    with pytest.raises(UnsupportedTableFeatureError, match="does not list the feature v2Checkpoint"):
        write_v2_checkpoint(_load(other))


def test_now_and_then_the_name_is_the_classic_one(log: LogBuilder) -> None:
    write_checkpoint(_load(log, 0))
    (first,) = _manifests(log)
    assert first.name == f"{0:020d}.checkpoint.parquet"
    log.appends(10)
    write_checkpoint(_load(log, 12))
    assert sum(path.name.count("-") == 4 for path in _manifests(log)) == 1
    assert _load(log, 0).has_v2_checkpoint


def test_one_that_is_there_stays_and_is_what_is_reported(log: LogBuilder) -> None:
    first = write_v2_checkpoint(_load(log))
    (log.log / "_last_checkpoint").unlink()
    names = [path.name for path in [*_manifests(log), *_sidecars(log)]]
    log.remove_commits(range(6))
    assert write_v2_checkpoint(_load(log)) == first
    assert [path.name for path in [*_manifests(log), *_sidecars(log)]] == names
    hint = json.loads((log.log / "_last_checkpoint").read_bytes())
    assert hint["v2Checkpoint"]["path"] == names[0]


def test_one_that_cannot_be_read_is_passed_over(log: LogBuilder) -> None:
    write_v2_checkpoint(_load(log))
    for path in _sidecars(log):
        path.unlink()
    snapshot = _load(log)
    with pytest.warns(DeltaWarning, match="does not exist"):
        assert snapshot.files.num_files == 12
    write_v2_checkpoint(snapshot)
    assert len(_manifests(log)) == 2


def test_one_of_another_state_is_refused(log: LogBuilder) -> None:
    write_v2_checkpoint(_load(log))
    (manifest,) = _manifests(log)
    table = pq.read_table(manifest).to_pylist()
    for row in table:
        if row["txn"]:
            row["txn"]["version"] = 8
    pq.write_table(pq.read_table(manifest).from_pylist(table, schema=pq.read_schema(manifest)), manifest)
    log.clock.advance(1)
    snapshot = _of_commits(log)
    with pytest.raises(VerificationError, match="'app' has the version 7 in the table, 8 in the checkpoint"):
        write_v2_checkpoint(snapshot)


def _of_commits(log: LogBuilder) -> Snapshot:
    """The version as its commits have it."""
    hidden = [(path, path.with_name(f"hidden-{path.name}")) for path in _manifests(log)]
    for path, other in hidden:
        path.rename(other)
    snapshot = _load(log)
    assert snapshot.files.num_files == 12
    assert snapshot.domain_metadata
    for path, other in hidden:
        other.rename(path)
    return snapshot


def test_what_does_not_verify_goes_with_its_sidecars(
    log: LogBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = rows_module.add_rows
    monkeypatch.setattr(rows_module, "add_rows", lambda batch, schema: real(batch.slice(1), schema))
    with pytest.raises(VerificationError, match="The version has 12 files"):
        write_v2_checkpoint(_load(log))
    assert (_manifests(log), _sidecars(log)) == ([], [])


def test_lost_domains_and_vectors_are_noticed(log: LogBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    real = rows_module.CheckpointRows.other_actions
    monkeypatch.setattr(
        rows_module.CheckpointRows,
        "other_actions",
        lambda self: [one for one in real(self) if not isinstance(one, DomainMetadata)],
    )
    with pytest.raises(VerificationError, match="domain metadata of d differs from the version's"):
        write_v2_checkpoint(_load(log))


class FailingStore(LocalLogStore):
    """Fails where it is told to."""

    fails: Callable[[str], bool] = staticmethod(lambda _: False)

    def put_if_absent(self, path: str, data: bytes) -> None:
        if self.fails(path):
            raise NotWrittenError(f"no {path}")
        super().put_if_absent(path, data)


@pytest.mark.parametrize("part", ["0000000002.", ".checkpoint."])
def test_a_failing_write_leaves_nothing(log: LogBuilder, part: str) -> None:
    store = FailingStore(log.root)
    sidecar = part.startswith("0")
    store.fails = lambda path: part in path and ("_sidecars" in path) == sidecar
    with pytest.raises(StorageError):
        write_v2_checkpoint(Snapshot.load(store, clock=log.clock), sidecar_actions=5)
    assert (_manifests(log), _sidecars(log)) == ([], [])


@pytest.mark.parametrize("form", ManifestForm)
def test_lost_answers_are_no_failure(log: LogBuilder, form: ManifestForm) -> None:
    store = FaultyStore(log.store)
    store.puts = [PutFault.DROP_RESPONSE] * 2
    snapshot = Snapshot.load(store, clock=log.clock)
    info = write_v2_checkpoint(snapshot, form=form)
    assert (len(_manifests(log)), len(_sidecars(log))) == (1, 1)
    assert info.num_add_files == 12


def test_where_the_manifest_may_have_landed_the_sidecars_stay(log: LogBuilder) -> None:
    class SilentStore(FailingStore):
        """The manifest lands, and the store will not say so."""

        def put_if_absent(self, path: str, data: bytes) -> None:
            LocalLogStore.put_if_absent(self, path, data)
            if "_sidecars" not in path:
                raise StorePermissionError("no answer")

    with pytest.raises(StorePermissionError, match="no answer"):
        write_v2_checkpoint(Snapshot.load(SilentStore(log.root), clock=log.clock))
    assert len(_manifests(log)) == len(_sidecars(log)) == 1
    log.remove_commits(range(6))
    assert _load(log).files.num_files == 12


def test_a_manifest_on_its_way_keeps_its_sidecars_whatever_the_next_attempt_says(log: LogBuilder) -> None:
    class SlowStore(LocalLogStore):
        """The first request for the manifest is carried out after the client has given up."""

        on_its_way: tuple[str, bytes] | None = None

        def put_if_absent(self, path: str, data: bytes) -> None:
            if "_sidecars" in path:
                return super().put_if_absent(path, data)
            if self.on_its_way is None:
                self.on_its_way = (path, data)
                raise AmbiguousWriteError("no answer in time")
            raise StorePermissionError("the token has expired")

    store = SlowStore(log.root)
    with pytest.raises(AmbiguousWriteError, match="no answer in time"):
        write_v2_checkpoint(Snapshot.load(store, clock=log.clock))
    assert store.on_its_way is not None
    LocalLogStore(log.root).put_if_absent(*store.on_its_way)
    log.remove_commits(range(6))
    assert _load(log).files.num_files == 12


def test_a_plain_write_that_failed_may_have_landed(log: LogBuilder) -> None:
    class OldStore(LocalLogStore):
        """One without preconditions."""

        def put_if_absent(self, path: str, data: bytes) -> None:
            if "_sidecars" in path:
                return super().put_if_absent(path, data)
            raise UnsafeStoreError("no preconditions here")

        def put(self, path: str, data: bytes) -> None:
            super().put(path, data)
            if ".checkpoint." in path:
                raise StorageError("no answer in time")

    with pytest.raises(AmbiguousWriteError, match="not known whether"):
        write_v2_checkpoint(Snapshot.load(OldStore(log.root), clock=log.clock))
    assert len(_manifests(log)) == len(_sidecars(log)) == 1


def test_a_table_made_anew_gets_no_checkpoint_of_the_old_one(log: LogBuilder) -> None:
    old = _load(log)
    assert old.files.num_files == 12
    log.commit(add("other"), version=6, time_ms=NOW_MS + 10**9)
    with pytest.raises(StaleCommitError):
        write_v2_checkpoint(old)
    assert _sidecars(log) == []


# ---------------------------------------------------------------- cleaning up


@pytest.fixture
def aged(log: LogBuilder) -> LogBuilder:
    """V2 checkpoints at the versions 6 and 16 of a table that keeps its log for two days; a commit a day."""
    log.commit(metadata(configuration={**V2, "delta.logRetentionDuration": "interval 2 days"}))
    for version in range(8, 20):
        log.commit(add(f"g{version}"))
    for version in range(20):
        _touch(log.log / f"{version:020d}.json", version)
    for version in (6, 16):
        seen = {*_manifests(log), *_sidecars(log)}
        write_v2_checkpoint(_load(log, version), sidecar_actions=7)
        for path in {*_manifests(log), *_sidecars(log)} - seen:
            _touch(path, version)
    log.clock.advance((NOW_MS + 20 * DAY_MS - log.clock.now_ms()) / 1000)
    _touch(log.log / f"{19:020d}.json", 20)
    return log


def _touch(path: Path, day: int) -> None:
    at = NOW_MS + day * DAY_MS
    os.utime(path, ns=(at * 10**6, at * 10**6))


def _orphan(log: LogBuilder, name: str, day: float) -> Path:
    path = log.log / "_sidecars" / name
    path.write_bytes(b"of a writer that failed")
    at = int((NOW_MS + day * DAY_MS) * 10**6)
    os.utime(path, ns=(at, at))
    return path


def test_sidecars_go_with_their_checkpoint(aged: LogBuilder) -> None:
    before = _sidecars(aged)
    old, young = _orphan(aged, "old.parquet", 10), _orphan(aged, "young.parquet", 19.9)
    planned = cleanup_expired_logs(_load(aged), dry_run=True)
    done = cleanup_expired_logs(_load(aged))
    assert done == planned
    assert done.checkpoint_version == 16
    left = _sidecars(aged)
    assert young in left
    assert old not in left
    assert {path.name[:20] for path in left} == {f"{16:020d}", "young.parquet"}
    assert [path for path in before if path.name.startswith(f"{16:020d}")] == left[:-1]
    assert {info.path.rpartition("/")[2] for info in done.files} >= {"old.parquet"}
    for version in range(16, 20):
        assert _load(aged, version).files.num_files == version - 8 + 13
    assert cleanup_expired_logs(_load(aged)).files == ()


def test_a_v2_checkpoint_whose_sidecar_is_damaged_is_not_relied_on(aged: LogBuilder) -> None:
    victim = next(path for path in _sidecars(aged) if path.name.startswith(f"{16:020d}"))
    victim.write_bytes(victim.read_bytes()[:-9])
    done = cleanup_expired_logs(_load(aged))
    assert done.checkpoint_version == 6
    assert len([path for path in _sidecars(aged) if path.name.startswith(f"{6:020d}")]) == 2


def test_sidecars_go_when_the_policy_went_back_to_classic(aged: LogBuilder) -> None:
    aged.commit(
        metadata(configuration={"delta.logRetentionDuration": "interval 0 days"}),
        time_ms=NOW_MS + 20 * DAY_MS,
    )
    write_checkpoint(_load(aged))
    aged.clock.advance(3 * 86_400)
    aged.commit(add("later"), time_ms=aged.clock.now_ms())
    done = cleanup_expired_logs(_load(aged))
    assert done.checkpoint_version == 20
    assert _sidecars(aged) == []


def test_where_a_checkpoint_cannot_be_read_all_sidecars_stay(aged: LogBuilder) -> None:
    write_v2_checkpoint(_load(aged), form=ManifestForm.JSON)
    newest = _load(aged).segment.checkpoint
    assert newest is not None
    path = aged.root / newest.names[0]
    path.write_bytes(path.read_bytes()[:-30])
    before = _sidecars(aged)
    with pytest.warns(DeltaWarning, match="is ignored"):
        snapshot = _load(aged)
    assert cleanup_expired_logs(snapshot).checkpoint_version == 16
    assert _sidecars(aged) == before


def test_a_checkpoint_that_the_next_listing_leaves_out_keeps_its_sidecars(aged: LogBuilder) -> None:
    """A weak store's; a writer that slept before its checkpoint has old sidecars."""

    class Forgetful(LocalLogStore):
        forgets = False

        def list_directory(self, path: str, *, start_after: str | None = None) -> list[ObjectInfo]:
            if path == SIDECAR_DIRECTORY:
                self.forgets = True
            elif self.forgets:
                return []
            return super().list_directory(path, start_after=start_after)

    store = Forgetful(aged.root, clock=aged.clock)
    kept = [path for path in _sidecars(aged) if path.name.startswith(f"{16:020d}")]
    assert cleanup_expired_logs(Snapshot.load(store, clock=aged.clock)).checkpoint_version == 16
    assert store.forgets
    assert _sidecars(aged) == kept
    assert _load(aged).files.num_files == 24


def test_vectors_of_files_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    features = frozenset({"v2Checkpoint", "deletionVectors"})
    vector = DeletionVectorDescriptor(
        storage_type="u", path_or_inline_dv="dv", offset=1, size_in_bytes=3, cardinality=2
    )
    log = LogBuilder(tmp_path)
    log.commit(
        protocol(
            min_reader_version=3, min_writer_version=7, reader_features=features, writer_features=features
        ),
        metadata(configuration=V2),
        add("a", deletion_vector=vector),
        add("b"),
    )
    monkeypatch.setattr(Snapshot, "require_writable", lambda self, writer_kind, operation: None)
    real = rows_module.add_rows

    def without_deletion_vectors(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        index = batch.schema.get_field_index("deletion_vector")
        field = batch.schema.field(index)
        return real(batch.set_column(index, field, pa.nulls(batch.num_rows, field.type)), schema)

    with monkeypatch.context() as patch:
        patch.setattr(rows_module, "add_rows", without_deletion_vectors)
        with pytest.raises(VerificationError, match="deletion vectors of the version"):
            write_v2_checkpoint(_load(log))
    assert write_v2_checkpoint(_load(log)).num_add_files == 2
    log.remove_commits([0])
    dvs = _load(log).files.to_table(["deletion_vector"])["deletion_vector"].to_pylist()
    assert [one["cardinality"] if one else None for one in dvs] == [2, None]
