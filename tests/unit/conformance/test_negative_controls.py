"""Stores with one fault each: the check that is there for it finds it, and says what is wrong."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from delta_core.conformance import objects, processes
from delta_core.conformance.check import Context
from delta_core.conformance.place import Place
from delta_core.conformance.processes import _require_each_once
from delta_core.conformance.workers import worker_processes
from delta_core.errors import StorageError, StoreContractError
from delta_core.storage.local import LocalLogStore
from delta_core.storage.log_store import ObjectInfo
from tests.support.webhdfs_server import FakeHdfs, FakeNode, HdfsError


class _LooksThenWrites(FakeHdfs):
    """Honours the precondition of one writer at a time; of two at once it lets both win."""

    def perform(self, operation: str, path: str, query: dict[str, str]) -> Any:
        if operation != "RENAME" or query["renameoptions"] == "OVERWRITE":
            return super().perform(operation, path, query)
        with self.lock:
            taken = query["destination"] in self.files
        time.sleep(0.02)
        if taken:
            raise HdfsError(403, "FileAlreadyExistsException")
        return super().perform(operation, path, {**query, "renameoptions": "OVERWRITE"})


@contextmanager
def _context(hdfs: FakeHdfs, *, workers: int = 0) -> Iterator[Context]:
    with FakeNode(hdfs) as node:
        place = Place("hdfs://name/tables", {"webhdfs_endpoint": node.url, "user": "u"})
        context = Context(place=place, writers=workers)
        with worker_processes(place, workers) as started:
            context.workers = started
            yield context


def test_a_store_that_looks_before_it_writes_passes_the_probe_and_fails_the_race() -> None:
    with _context(_LooksThenWrites(), workers=2) as context:
        assert "is refused" in objects.preconditions(context)
        with pytest.raises(
            StoreContractError, match=r"writers got the answer that they created the same object"
        ):
            processes.create_only_race(context)
        broken, other = context.workers
        with pytest.raises(StorageError, match="KeyError"):
            broken.ask({"do": "create"})
        with pytest.raises(StorageError, match="ended with 1"):
            broken.ask({"do": "read"})
        other.kill()
        with pytest.raises(StorageError, match="ended with -9"):
            other.ask({"do": "read"})


class _Faulty(LocalLogStore):
    """A directory with one thing wrong."""

    def __init__(self, root: Path, fault: str) -> None:
        super().__init__(root)
        self.fault = fault
        self.cut = 0

    def read(self, path: str) -> bytes:
        data = super().read(path)
        return data[:-1] if self.fault == "cut" else data

    def put_if_absent(self, path: str, data: bytes) -> None:
        if self.fault == "ignores":
            self.put(path, data)
        elif self.fault == "loses":
            super().put_if_absent(path, data[: 1 << 20])
        else:
            super().put_if_absent(path, data)

    def list_directory(self, path: str, *, start_after: str | None = None) -> list[ObjectInfo]:
        found = super().list_directory(path, start_after=start_after)
        changes: dict[str, Callable[[], list[ObjectInfo]]] = {
            "late": lambda: found[:-1],
            "doubled": lambda: found + found[:1],
            "mixed": lambda: found[::-1],
            "from": lambda: super(_Faulty, self).list_directory(path),
        }
        return changes.get(self.fault, lambda: found)()


class _FaultyPlace(Place):
    def __init__(self, root: Path, fault: str) -> None:
        self.root, self.fault = root, fault
        super().__init__(str(root), {})

    def store(self, name: str, **options: str) -> LocalLogStore:
        return _Faulty(self.root / name, self.fault)


@pytest.mark.parametrize(
    ("fault", "check", "said"),
    [
        ("ignores", objects.preconditions, "creating|create-only"),
        ("cut", objects.access, "just written"),
        ("cut", objects.large_commit, "differs after reading it back"),
        ("loses", objects.large_commit, "differs after reading it back"),
        ("late", objects.access, "listing"),
        ("late", objects.listing, "right after the writes shows 1049 of 1050"),
        ("doubled", objects.listing, "an object twice"),
        ("mixed", objects.listing, "not in order"),
        ("from", objects.listing, "a tail"),
    ],
)
def test_a_fault_is_found(tmp_path: Path, fault: str, check: Any, said: str) -> None:
    context = Context(place=_FaultyPlace(tmp_path, fault), writers=2)
    with pytest.raises(StoreContractError, match=said):
        check(context)


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        ({}, "reported as version 3, is missing in all versions"),
        ({("writer-0", 0): [3, 4]}, r"is in versions \[3, 4\]"),
        ({("writer-0", 0): [4]}, "reported as version 3, is in version 4"),
    ],
)
def test_a_commit_that_is_not_in_its_one_version(versions: Any, said: str) -> None:
    told = [[{"number": 0, "version": 3, "how": "committed"}]]
    with pytest.raises(StoreContractError, match=said):
        _require_each_once(told, versions)
    _require_each_once(told, {("writer-0", 0): [3]})
