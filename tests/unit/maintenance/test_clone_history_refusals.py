"""What stops a clone with history: a clone that went its own way, a taken place, a source that changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable as PeerTable

from delta_core import CommitProperties, DeltaTable, clone_table, write_deltalake
from delta_core.checkpoint.write import write_checkpoint
from delta_core.errors import (
    CloneDivergedError,
    CloneError,
    CloneOutdatedError,
    ConfigurationError,
    CorruptLogError,
    DeltaError,
    DeltaWarning,
    LogGapError,
    MissingDataFileError,
    StorageError,
    UnsupportedTableFeatureError,
    VersionNotFoundError,
)
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.log.listing import LogListing
from delta_core.maintenance.clone.copying import copy_file
from delta_core.maintenance.clone.history import clone_history
from delta_core.maintenance.clone.history.claim import CLAIM_PATH
from delta_core.maintenance.clone.history.copies import plan_copies
from delta_core.maintenance.clone.history.kept_log import whole_log
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from tests.support.log_builder import LogBuilder, metadata, protocol

PLAN = "delta_core.maintenance.clone.history.apply.plan_copies"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    root = tmp_path / "source"
    for number in range(3):
        write_deltalake(root, pa.table({"id": [number]}), mode="append")
    return root


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "target"


def cloned(source: Path, target: Path, **options: Any) -> Any:
    return clone_table(source, target, keep_history=True, executor=InlineExecutor(1), **options)


def files(root: Path) -> dict[str, bytes]:
    return {str(file.relative_to(root)): file.read_bytes() for file in root.rglob("*") if file.is_file()}


def nothing_of_a_table(root: Path) -> bool:
    return not DeltaTable.is_deltatable(root) and not (root / "_delta_log").exists()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"keep_history": True, "shallow": True}, "shallow clone cannot keep"),
        (
            {"keep_history": True, "commit_properties": CommitProperties(user_metadata="x")},
            "Commit properties cannot",
        ),
        ({"history_from": 0}, "history_from and compare_bytes"),
        ({"compare_bytes": True}, "history_from and compare_bytes"),
        ({"keep_history": True, "history_from": "1"}, "history_from cannot be"),
    ],
)
def test_arguments_that_do_not_go_together(
    source: Path, target: Path, options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        clone_table(source, target, **options)
    assert not target.exists()


def test_a_clone_with_commits_of_its_own_is_left_alone(source: Path, target: Path) -> None:
    cloned(source, target)
    PeerTable(str(target)).delete("id = 1")
    before = files(target)
    for _ in range(2):  # behind the source's newest version, and beside one
        with pytest.raises(CloneDivergedError):
            cloned(source, target)
        assert files(target) == before
        write_deltalake(source, pa.table({"id": [9]}), mode="append")
    write_deltalake(source, pa.table({"id": [9]}), mode="append")
    with pytest.raises(CloneDivergedError):
        cloned(source, target)
    assert files(target) == before


def test_a_clone_without_history_gets_none(source: Path, target: Path) -> None:
    clone_table(source, target)
    with pytest.raises(CloneDivergedError):
        cloned(source, target)


def test_a_clone_with_history_is_not_replaced_by_one_without(source: Path, target: Path) -> None:
    cloned(source, target)
    with pytest.raises(CloneError, match="not a clone of"):
        clone_table(source, target)


def test_somebody_else_commits_while_the_log_is_published(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = LocalLogStore.put_if_absent
    theirs = b'{"commitInfo":{}}\n'

    def first(self: LocalLogStore, path: str, data: bytes) -> None:
        if path.endswith("1.json"):
            put(self, path, theirs)
        put(self, path, data)

    monkeypatch.setattr(LocalLogStore, "put_if_absent", first)
    with pytest.raises(CloneDivergedError):
        cloned(source, target)
    assert (target / "_delta_log" / f"{1:020}.json").read_bytes() == theirs
    assert not (target / "_delta_log" / f"{2:020}.json").exists()


def test_a_place_with_other_files_is_not_free(source: Path, target: Path) -> None:
    target.mkdir()
    (target / "mine.txt").write_text("mine")
    with pytest.raises(CloneError, match=r"mine\.txt"):
        cloned(source, target)
    assert files(target) == {"mine.txt": b"mine"}


def test_a_place_that_was_begun_for_another_table_is_taken(
    source: Path, target: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    write_deltalake(other, pa.table({"id": [1]}))
    (target / CLAIM_PATH).parent.mkdir(parents=True)
    (target / CLAIM_PATH).write_text(
        json.dumps({"formatVersion": 1, "tableId": DeltaTable(other).metadata().id}, separators=(",", ":"))
    )
    with pytest.raises(CloneError, match="another table"):
        cloned(source, target)
    cloned(other, target)


@pytest.mark.parametrize("lands", [False, True])
def test_a_lost_answer_to_the_claim(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch, lands: bool
) -> None:
    put = LocalLogStore.put_if_absent

    def lost(self: LocalLogStore, path: str, data: bytes) -> None:
        if path != CLAIM_PATH or lands:
            put(self, path, data)
        if path == CLAIM_PATH:
            raise StorageError("lost")

    monkeypatch.setattr(LocalLogStore, "put_if_absent", lost)
    if lands:
        assert cloned(source, target).version == 2
        return
    with pytest.raises(StorageError, match="lost"):
        cloned(source, target)
    assert files(target) == {}


def test_two_that_begin_at_once_do_the_same_work(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = LocalLogStore.put_if_absent
    monkeypatch.setattr(
        LocalLogStore,
        "put_if_absent",
        lambda self, path, data: [put(self, path, data) for _ in range(2)] and None,
    )
    result = cloned(source, target)
    assert result.history.versions_copied == 0  # each commit was another's by then
    assert DeltaTable(target).version() == 2


def test_a_file_of_the_newest_version_that_is_gone(source: Path, target: Path) -> None:
    next(source.glob("*.parquet")).unlink()
    with pytest.raises(MissingDataFileError):
        cloned(source, target)
    assert nothing_of_a_table(target)


def test_a_vacuum_of_the_source_while_files_are_copied(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    PeerTable(str(source)).delete("id = 1")
    removed = [path.name for path in source.glob("*.parquet")]

    def vacuumed(task: Any) -> Any:
        PeerTable(str(source)).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
        return copy_file(task)

    monkeypatch.setattr("delta_core.maintenance.clone.copying.copy_file", vacuumed)
    with pytest.raises(MissingDataFileError):
        cloned(source, target)
    monkeypatch.undo()
    assert nothing_of_a_table(target)
    assert len(removed) > len(list(source.glob("*.parquet")))
    assert cloned(source, target).history.files_gone > 0
    assert sorted(DeltaTable(target).to_pyarrow_table()["id"].to_pylist()) == [0, 2]


@pytest.mark.parametrize("moment", ["read", "copied"])
def test_a_clean_up_of_the_source(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    write_checkpoint(Snapshot.load(LocalLogStore(source)))
    snapshot = Snapshot.load(LocalLogStore(source))
    oldest = source / "_delta_log" / f"{0:020}.json"
    if moment == "read":
        load = Snapshot.load

        def loaded(*args: Any, **options: Any) -> Snapshot:
            found = load(*args, **options)
            oldest.unlink()
            return found

        monkeypatch.setattr("delta_core.maintenance.clone.history.apply.Snapshot.load", loaded)
    else:

        def planned(*args: Any, **options: Any) -> Any:
            oldest.unlink()
            return plan_copies(*args, **options)

        monkeypatch.setattr(PLAN, planned)
    with pytest.raises(CloneOutdatedError, match=f"while it was {moment}"):
        clone_history(snapshot, LocalLogStore(target))
    monkeypatch.undo()
    assert nothing_of_a_table(target)
    assert clone_history(snapshot, LocalLogStore(target)).history.first_version == 2  # type: ignore[union-attr]


def test_commits_that_are_gone_since_the_clone(source: Path, target: Path) -> None:
    cloned(source, target, version=0)
    write_checkpoint(Snapshot.load(LocalLogStore(source)))
    for version in range(2):
        (source / "_delta_log" / f"{version:020}.json").unlink()
    with pytest.raises(CloneError, match="cannot be continued"):
        cloned(source, target)
    assert DeltaTable(target).version() == 0


def test_the_commit_to_compare_with_is_gone(source: Path, target: Path) -> None:
    cloned(source, target, version=1)
    write_checkpoint(Snapshot.load(LocalLogStore(source)))
    for version in range(2):
        (source / "_delta_log" / f"{version:020}.json").unlink()
    with pytest.raises(CloneDivergedError, match="no longer has it"):
        cloned(source, target)


@pytest.mark.parametrize("from_version", [-1, 3, 7])
def test_a_version_that_cannot_be_the_first(source: Path, target: Path, from_version: int) -> None:
    with pytest.raises(VersionNotFoundError):
        cloned(source, target, history_from=from_version)
    assert not target.exists()


def test_a_listing_from_which_nothing_can_be_read() -> None:
    with pytest.raises(LogGapError):
        whole_log(LogListing(commits=(), checkpoints=()), version=3, from_version=None, uri="file:///t")


def test_a_feature_of_an_older_version_that_is_not_known(target: Path, tmp_path: Path) -> None:
    log = LogBuilder(tmp_path / "t")
    strange = protocol(min_writer_version=7, writer_features=frozenset({"fromTheFuture"}))
    log.commit(strange, metadata(partition_columns=()))
    log.commit(protocol(min_writer_version=7, writer_features=frozenset({"appendOnly"})))
    with pytest.raises(UnsupportedTableFeatureError, match="fromTheFuture"):
        cloned(log.root, target)
    assert not target.exists()


def test_a_copy_of_another_size_in_the_clone(source: Path, target: Path) -> None:
    (target / CLAIM_PATH).parent.mkdir(parents=True)
    claim = {"formatVersion": 1, "tableId": DeltaTable(source).metadata().id}
    (target / CLAIM_PATH).write_text(json.dumps(claim, separators=(",", ":")))
    name = next(source.glob("*.parquet")).name
    (target / name).write_bytes(b"short")
    with pytest.raises(CloneError, match="is not a copy"):
        cloned(source, target)


def test_copies_with_other_bytes_are_found_when_asked_for(source: Path, target: Path) -> None:
    cloned(source, target, version=1)
    copy = next(target.glob("*.parquet"))
    (target / "_delta_log" / f"{1:020}.json").unlink()
    data = bytearray(copy.read_bytes())
    data[10] ^= 1
    copy.write_bytes(bytes(data))
    (target / "_delta_log" / f"{0:020}.json").unlink()
    with pytest.raises(CloneError, match="different bytes"):
        cloned(source, target, compare_bytes=True)
    assert not DeltaTable.is_deltatable(target)


def test_a_first_checkpoint_that_is_damaged(source: Path, target: Path) -> None:
    write_checkpoint(Snapshot.load(LocalLogStore(source)))
    write_deltalake(source, pa.table({"id": [7]}), mode="append")
    for version in range(3):
        (source / "_delta_log" / f"{version:020}.json").unlink()
    snapshot = Snapshot.load(LocalLogStore(source))
    (checkpoint,) = (source / "_delta_log").glob("*.checkpoint.parquet")
    checkpoint.write_bytes(b"PAR1" + bytes(100) + b"PAR1")
    with pytest.warns(DeltaWarning, match="is ignored"), pytest.raises(CorruptLogError):
        clone_history(snapshot, LocalLogStore(target))
    assert not target.exists()


@pytest.mark.parametrize(
    ("content", "error"), [(None, CloneOutdatedError), (b"PAR1", CorruptLogError)], ids=["gone", "cut"]
)
def test_a_first_checkpoint_that_changes_meanwhile(
    source: Path,
    target: Path,
    monkeypatch: pytest.MonkeyPatch,
    content: bytes | None,
    error: type[DeltaError],
) -> None:
    write_checkpoint(Snapshot.load(LocalLogStore(source)))
    for version in range(2):
        (source / "_delta_log" / f"{version:020}.json").unlink()
    (checkpoint,) = (source / "_delta_log").glob("*.checkpoint.parquet")

    def planned(*args: Any, **options: Any) -> Any:
        checkpoint.unlink() if content is None else checkpoint.write_bytes(content)
        return plan_copies(*args, **options)

    monkeypatch.setattr(PLAN, planned)
    with pytest.raises(error):
        cloned(source, target)
    assert nothing_of_a_table(target)


def test_a_later_checkpoint_that_is_gone_is_left_out(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_checkpoint(Snapshot.load(LocalLogStore(source)))
    write_deltalake(source, pa.table({"id": [7]}), mode="append")
    (checkpoint,) = (source / "_delta_log").glob("*.checkpoint.parquet")

    def planned(*args: Any, **options: Any) -> Any:
        checkpoint.unlink()
        return plan_copies(*args, **options)

    monkeypatch.setattr(PLAN, planned)
    assert cloned(source, target).version == 3
    assert list((target / "_delta_log").glob("*.checkpoint.parquet")) == []
    assert sorted(DeltaTable(target).to_pyarrow_table()["id"].to_pylist()) == [0, 1, 2, 7]
