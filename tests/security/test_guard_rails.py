"""Who may do what: a writer that only commits never deletes; vacuum deletes nothing but old data files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.clock import ManualClock
from delta_core.dml import write as write_module
from delta_core.errors import (
    MaintenanceError,
    RetentionTooShortError,
    StorePermissionError,
    TableNotFoundError,
)
from delta_core.maintenance.vacuum import apply_vacuum, plan_vacuum
from delta_core.maintenance.vacuum.guard import require_table_directory
from delta_core.maintenance.vacuum.plan import VacuumFile
from delta_core.scan.scan import Scan
from delta_core.snapshot.history import history
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage import open as open_module
from delta_core.storage.local import LocalLogStore
from delta_core.storage.log_store import ObjectInfo

YEAR_MS = 365 * 86_400_000


class LimitedStore(LocalLogStore):
    """A store whose credentials allow some operations: `get`, `list`, `put`, `delete`."""

    allowed: frozenset[str] = frozenset()
    used: list[tuple[str, str]]

    def __init__(self, root: object, **options: object) -> None:
        super().__init__(root, **options)  # type: ignore[arg-type]
        self.used = []

    def _ask(self, what: str, path: str) -> None:
        self.used.append((what, path))
        if what not in self.allowed:
            raise StorePermissionError(f"no permission to {what} {path!r}")

    def read(self, path: str) -> bytes:
        self._ask("get", path)
        return super().read(path)

    def head(self, path: str) -> ObjectInfo:
        self._ask("get", path)
        return super().head(path)

    def open_input(self, path: str) -> pa.NativeFile:
        self._ask("get", path)
        return super().open_input(path)

    def list_directory(self, path: str, *, start_after: str | None = None) -> list[ObjectInfo]:
        self._ask("list", path)
        return super().list_directory(path, start_after=start_after)

    def walk(self, path: str = "") -> Iterator[ObjectInfo]:
        self._ask("list", path)
        return super().walk(path)

    def put_if_absent(self, path: str, data: bytes) -> None:
        self._ask("put", path)
        super().put_if_absent(path, data)

    def put(self, path: str, data: bytes) -> None:
        self._ask("put", path)
        super().put(path, data)

    def open_output(self, path: str) -> AbstractContextManager[pa.NativeFile]:
        self._ask("put", path)
        return super().open_output(path)

    def delete(self, path: str) -> None:
        self._ask("delete", path)
        super().delete(path)


READER = frozenset({"get", "list"})
WRITER = READER | {"put"}
CLEANER = WRITER | {"delete"}


@pytest.fixture
def uri(tmp_path: Path) -> Path:
    for number in range(3):
        mode = "append" if number < 2 else "overwrite"
        write_deltalake(tmp_path / "t", pa.table({"id": [number]}), mode=mode)
    return tmp_path / "t"


def limited(uri: Path, allowed: frozenset[str]) -> LimitedStore:
    store = LimitedStore(uri)
    store.allowed = allowed
    return store


def later() -> ManualClock:
    return ManualClock(2**41 + YEAR_MS)


def test_a_reader_lists_and_gets(uri: Path) -> None:
    store = limited(uri, READER)
    snapshot = Snapshot.load(store)
    assert Scan(snapshot).to_table()["id"].to_pylist() == [2]
    assert len(history(store)) == 3
    assert plan_vacuum(snapshot, clock=later()).files
    assert {what for what, _ in store.used} == READER


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_commit_needs_no_delete(uri: Path, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = limited(uri, WRITER)
    for module in (write_module, open_module):
        monkeypatch.setattr(module, "open_store", lambda *given, **options: store)
    write_deltalake(uri, pa.table({"id": [9]}), mode=mode)
    assert {what for what, _ in store.used} <= WRITER
    table = DeltaTable(uri)
    assert table.version() == 3
    assert 9 in table.to_pyarrow_table()["id"].to_pylist()


def test_a_reader_cannot_commit_and_is_told_that_nothing_landed(
    uri: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = limited(uri, READER)
    monkeypatch.setattr(write_module, "open_store", lambda *given, **options: store)
    with pytest.raises(StorePermissionError):
        write_deltalake(uri, pa.table({"id": [9]}), mode="append")
    assert DeltaTable(uri).version() == 2


def test_vacuum_deletes_what_it_planned_and_nothing_else(uri: Path) -> None:
    (uri / "_hidden").mkdir()
    (uri / "_hidden" / "x").write_bytes(b"x")
    store = limited(uri, CLEANER)
    snapshot = Snapshot.load(store)
    plan = plan_vacuum(snapshot, retention_hours=0, enforce_retention=False, force=True, clock=later())
    done = apply_vacuum(snapshot, plan)
    deleted = [path for what, path in store.used if what == "delete"]
    assert sorted(deleted) == sorted(file.path for file in plan.files)
    assert not [path for path in deleted if path.startswith("_")]
    assert done.deleted_files == 2
    assert [entry.commit_info.operation for entry in history(store)][:2] == ["VACUUM END", "VACUUM START"]
    assert {
        what for what, path in store.used if what == "put" and not path.startswith("_delta_log/")
    } == set()


def test_vacuum_without_the_permission_changes_nothing_but_the_log(uri: Path) -> None:
    snapshot = Snapshot.load(limited(uri, WRITER))
    before = sorted(path.name for path in uri.glob("*.parquet"))
    plan = plan_vacuum(snapshot, retention_hours=0, enforce_retention=False, force=True, clock=later())
    with pytest.raises(StorePermissionError):
        apply_vacuum(snapshot, plan)
    assert sorted(path.name for path in uri.glob("*.parquet")) == before


@pytest.mark.parametrize(
    "root", ["file:///", "s3://bucket", "gs://bucket", "az://container", "abfss://c@a.dfs", "hdfs://n:8020"]
)
def test_the_root_of_a_store_is_not_vacuumed(root: str) -> None:
    with pytest.raises(MaintenanceError, match="cannot be vacuumed") as refused:
        require_table_directory(root)
    assert refused.value.cause
    assert refused.value.fix
    require_table_directory(f"{root.rstrip('/')}/t")


def test_where_there_is_no_log_there_is_nothing_to_vacuum(tmp_path: Path) -> None:
    (tmp_path / "precious.parquet").write_bytes(b"x")
    with pytest.raises(TableNotFoundError):
        DeltaTable(tmp_path).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    assert (tmp_path / "precious.parquet").exists()


@pytest.mark.parametrize(
    "path", ["_delta_log/00000000000000000000.json", "_deltaward/x", "_x", ".hidden", "a/_b/c", "p=1/.x"]
)
def test_a_plan_that_was_tampered_with_is_refused(uri: Path, path: str) -> None:
    store = limited(uri, CLEANER)
    snapshot = Snapshot.load(store)
    plan = plan_vacuum(snapshot, clock=later())
    more = VacuumFile(path=path, size_bytes=1, modified_ms=1, age_hours=1.0, reason="")
    with pytest.raises(MaintenanceError, match="which a vacuum must not delete"):
        apply_vacuum(snapshot, replace(plan, files=(*plan.files, more)))
    assert [what for what, _ in store.used if what in ("delete", "put")] == []


@pytest.mark.parametrize("flags", [{"enforce_retention": False}, {"force": True}, {}])
def test_a_short_retention_needs_two_words(uri: Path, flags: dict[str, bool]) -> None:
    snapshot = Snapshot.load(LocalLogStore(uri))
    with pytest.raises(RetentionTooShortError):
        plan_vacuum(snapshot, retention_hours=1, **flags)
