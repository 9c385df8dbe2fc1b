"""A clone with history that ends at any of its requests: no wrong row is read, the next run ends alike."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.checkpoint.write import write_checkpoint
from delta_core.errors import TableNotFoundError
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.maintenance.clone.history import clone_history
from delta_core.maintenance.clone.history.claim import CLAIM_PATH
from delta_core.run import Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from tests.support.soak import drawn
from tests.support.stopping_store import Stopped, StoppingStore

Objects = dict[str, tuple[bytes, int]]
ONE_THREAD = InlineExecutor(1)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five versions: vectors, sidecars, and a log that begins at a checkpoint of version 1."""
    root = tmp_path_factory.mktemp("source") / "t"
    DeltaTable.create(
        root,
        pa.schema([("id", pa.int64())]),
        configuration={"delta.enableDeletionVectors": "true", "delta.checkpointPolicy": "v2"},
    )
    write_deltalake(root, pa.table({"id": [1, 2, 3]}), mode="append")
    write_checkpoint(Snapshot.load(LocalLogStore(root)))
    DeltaTable(root).delete("id = 2")
    write_deltalake(root, pa.table({"id": [4]}), mode="append")
    write_checkpoint(Snapshot.load(LocalLogStore(root)))
    write_deltalake(root, pa.table({"id": [5]}), mode="overwrite")
    (root / "_delta_log" / f"{0:020}.json").unlink()
    return root


def rows(root: Path, version: int | None = None) -> list[int]:
    return sorted(DeltaTable(root, version=version).to_pyarrow_table()["id"].to_pylist())


def objects(root: Path) -> Objects:
    """Everything but the claim, with the times of the log's own files."""
    return {
        path: (file.read_bytes(), file.stat().st_mtime_ns // 1_000_000 if _is_timed(path) else 0)
        for file in root.rglob("*")
        if file.is_file() and (path := str(file.relative_to(root))) != CLAIM_PATH
    }


def _is_timed(path: str) -> bool:
    return path.startswith("_delta_log/0")


def stopped_at_each(source: Path, start: Path | None, root: Path, *, after: bool) -> Iterator[Path]:
    """The clone's place after each run that ended early, until one runs to its end."""
    for stop_at in range(1, 1000):
        if start is not None:
            shutil.copytree(start, root)
        store = StoppingStore(str(root))
        store.stop_at, store.after = stop_at, after
        try:
            clone_history(Snapshot.load(LocalLogStore(source)), store, run=Run(executor=ONE_THREAD))
        except Stopped:
            yield root
            shutil.rmtree(root, ignore_errors=True)
            continue
        return


@pytest.mark.slow
@pytest.mark.parametrize(
    ("after", "goes_on"), drawn([(False, False), (True, False), (False, True), (True, True)], usual=1)
)
def test_ended_at_any_request(source: Path, tmp_path: Path, after: bool, goes_on: bool) -> None:
    start = None
    if goes_on:
        start = tmp_path / "start"
        clone_history(Snapshot.load(LocalLogStore(source), version=2), LocalLogStore(start))
    clone_history(Snapshot.load(LocalLogStore(source)), LocalLogStore(tmp_path / "undisturbed"))
    expected = objects(tmp_path / "undisturbed")
    versions = {version: rows(source, version) for version in range(1, 5)}
    count = 0
    seen = set()
    for root in stopped_at_each(source, start, tmp_path / "c", after=after):
        count += 1
        try:
            found = DeltaTable(root).version()
        except TableNotFoundError:
            found = None
        seen.add(found)
        assert (found is None) <= (not goes_on)
        for version in range(1, (found or 0) + 1):
            assert rows(root, version) == versions[version]
        clone_history(Snapshot.load(LocalLogStore(source)), LocalLogStore(root))
        assert objects(root) == expected
    assert count > 15
    assert seen >= ({2, 3, 4} if goes_on else {None, 1, 2, 3, 4})
