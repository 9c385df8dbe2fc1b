"""Writes that are refused before they leave a file, and reads of files that would come back whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.actions import AddFile, Protocol
from delta_core.actions.deletion_vector import DeletionVectorDescriptor
from delta_core.actions.json_codec import encode_commit
from delta_core.checkpoint.classic import write_checkpoint
from delta_core.clock import SystemClock
from delta_core.errors import (
    CommitRejectedError,
    ConfigurationError,
    CorruptLogError,
    InvalidTablePropertyError,
    UnsupportedTableFeatureError,
)
from delta_core.log.log_path import commit_path
from delta_core.maintenance.apply_rewrite import apply_rewrite
from delta_core.maintenance.compaction import plan_compaction
from delta_core.maintenance.restore import apply_restore, plan_restore
from delta_core.scan.scan import Scan
from delta_core.snapshot.history import commit_actions
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.transaction.commit_properties import CommitProperties

UNKNOWN = Protocol(
    min_reader_version=1, min_writer_version=7, writer_features=frozenset({"appendOnly", "fromTheFuture"})
)


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def data_files(root: Path) -> set[str]:
    return {path.name for path in root.rglob("*.parquet") if "_delta_log" not in path.parts}


def commit(root: Path, version: int, *actions: Any) -> None:
    LocalLogStore(root).put_if_absent(commit_path(version), encode_commit(actions))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two files of two rows each."""
    write_deltalake(tmp_path, rows(1, 2))
    write_deltalake(tmp_path, rows(3, 4), mode="append")
    return tmp_path


@pytest.fixture
def with_deletion_vector(root: Path) -> Path:
    """The same with a deletion vector on the second file, which the protocol knows nothing of."""
    (file,) = (a for a in commit_actions(LocalLogStore(root), 1) if isinstance(a, AddFile))
    dv = DeletionVectorDescriptor(
        storage_type="i", path_or_inline_dv="wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
        size_in_bytes=40, cardinality=1,
    )  # fmt: skip
    fields = {name: getattr(file, name) for name in AddFile.__dataclass_fields__}
    commit(root, 2, AddFile(**fields | {"deletion_vector": dv}))
    return root


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_unknown_feature_is_refused_before_a_file_is_written(root: Path, mode: Any) -> None:
    commit(root, 2, UNKNOWN)
    before = sorted(path.name for path in root.rglob("*"))

    def never() -> Any:
        raise AssertionError("the data was read")
        yield

    stream = pa.RecordBatchReader.from_batches(rows(1).schema, never())
    with pytest.raises(UnsupportedTableFeatureError, match="fromTheFuture"):
        write_deltalake(root, stream, mode=mode)
    assert sorted(path.name for path in root.rglob("*")) == before


def test_maintenance_asks_before_it_works(root: Path) -> None:
    snapshot = Snapshot.load(LocalLogStore(root))
    compaction, restore = plan_compaction(snapshot), plan_restore(snapshot, version=0)
    commit(root, 2, UNKNOWN)
    before = data_files(root)
    with pytest.raises(UnsupportedTableFeatureError, match=r"compact the table.*fromTheFuture"):
        apply_rewrite(snapshot, compaction)
    with pytest.raises(UnsupportedTableFeatureError, match=r"restore the table.*fromTheFuture"):
        apply_restore(snapshot, restore)
    assert data_files(root) == before


@pytest.mark.parametrize("checkpointed", [False, True])
def test_deletion_vector_without_its_feature_is_not_read_over(
    with_deletion_vector: Path, checkpointed: bool
) -> None:
    store = LocalLogStore(with_deletion_vector)
    if checkpointed:
        write_checkpoint(Snapshot.load(store))
        for version in range(3):
            store.delete(commit_path(version))
    table = DeltaTable(with_deletion_vector)
    for read in (
        table.to_pyarrow_table,
        lambda: list(table.to_batches()),
        table.optimize.compact,
        lambda: Scan(table.snapshot, predicate="id > 2"),
        lambda: write_deltalake(with_deletion_vector, rows(4), mode="overwrite", predicate="id = 4"),
    ):
        with pytest.raises(CorruptLogError, match="does not list the feature deletionVectors"):
            read()


def test_versions_before_the_vector_are_read_and_appending_goes_on(with_deletion_vector: Path) -> None:
    assert DeltaTable(with_deletion_vector, version=1).to_pyarrow_table().num_rows == 4
    committed = write_deltalake(with_deletion_vector, rows(5), mode="append")
    assert committed is not None
    assert committed.version == 3


@pytest.mark.parametrize("kind", ["directory", "link to nothing", "link to a directory"])
def test_name_of_the_next_commit_that_is_blocked_ends_the_write_at_once(
    root: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = root / "_delta_log" / f"{2:020d}.json"
    if kind == "directory":
        blocked.mkdir()
    else:
        blocked.symlink_to(root if kind == "link to a directory" else root / "nothing")
    before = data_files(root)
    monkeypatch.setattr(SystemClock, "sleep", lambda clock, seconds: pytest.fail("it waits for another try"))
    with pytest.raises(CommitRejectedError, match=f"{2:020d}.json") as caught:
        write_deltalake(root, rows(5), mode="append")
    assert "directory" in str(caught.value.cause)
    assert data_files(root) == before


@pytest.mark.parametrize(
    "key", ["delta.minReaderVersion", "delta.minWriterVersion", "delta.minwriterversion"]
)
def test_protocol_versions_that_are_none_are_refused(root: Path, key: str) -> None:
    new = root / "new"
    for value in ("8", "0", "-1", "two", ""):
        with pytest.raises(InvalidTablePropertyError, match=key) as caught:
            write_deltalake(new, rows(1), configuration={key: value})
        assert caught.value.fix
        assert not new.exists()
        with pytest.raises(InvalidTablePropertyError, match=key):
            DeltaTable(root).alter.set_properties({key: value})
    with pytest.raises(InvalidTablePropertyError, match=key):
        DeltaTable(root).alter.unset_properties([key])
    assert DeltaTable(root).version() == 1


@pytest.mark.parametrize("key", ["delta.feature.clustering", "Delta.Feature.clustering"])
def test_features_by_property_are_refused(root: Path, key: str) -> None:
    with pytest.raises(UnsupportedTableFeatureError, match="clustering"):
        write_deltalake(root / "new", rows(1), configuration={key: "supported"})
    with pytest.raises(UnsupportedTableFeatureError, match="clustering"):
        DeltaTable(root).alter.set_properties({key: "supported"})


def test_key_of_another_type_is_refused(root: Path) -> None:
    keys: list[Any] = ["job-9", ["job", 9], ("job",), ("job", "9"), ("job", True), (7, 9)]
    for key in keys:
        for write in (
            lambda key=key: write_deltalake(root, rows(9), mode="append", txn=key),
            lambda key=key: CommitProperties(txn=key),
        ):
            with pytest.raises(ConfigurationError, match="not an idempotency key"):
                write()
    assert DeltaTable(root).version() == 1
