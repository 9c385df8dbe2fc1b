"""The probe of preconditions, and stores that tasks borrow."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import obstore
import pytest
from obstore.store import MemoryStore

from delta_core.errors import (
    AmbiguousWriteError,
    NotWrittenError,
    ObjectExistsError,
    StorePermissionError,
    UnsafeStoreError,
)
from delta_core.storage.local import LocalLogStore
from delta_core.storage.object_store import Clients, ObjectLogStore
from delta_core.storage.probe import forget_probes, require_preconditions
from delta_core.storage.remote_uri import parse_remote_uri
from delta_core.storage.task_stores import share_with_tasks, task_store
from tests.support.waiting import PATIENCE_SECONDS


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    forget_probes()
    yield
    forget_probes()


class Server:
    """Remembers names; may ignore that one is taken."""

    def __init__(self, *, honours: bool) -> None:
        self.honours = honours
        self.names: set[str] = set()
        self.created = 0
        self.failing = 0
        self.spurious = 0

    def create(self, path: str, data: bytes) -> None:
        if self.failing:
            self.failing -= 1
            raise AmbiguousWriteError("503")
        if self.spurious:
            self.spurious -= 1
            raise ObjectExistsError("409")
        if self.honours and path in self.names:
            raise ObjectExistsError("exists")
        self.names.add(path)
        self.created += 1

    def delete(self, path: str) -> None:
        self.names.discard(path)

    def forbid(self, path: str) -> None:
        raise StorePermissionError("denied")


def test_a_server_that_honours_preconditions_is_asked_once() -> None:
    server = Server(honours=True)
    for _ in range(3):
        require_preconditions("a", create=server.create, delete=server.delete, uri="s3://b/t")
    assert (server.created, server.names) == (1, set())
    require_preconditions("b", create=server.create, delete=server.forbid, uri="s3://b/t")
    assert server.created == 2


def test_a_server_that_ignores_them_is_refused_again_and_again() -> None:
    server = Server(honours=False)
    for _ in range(2):
        with pytest.raises(UnsafeStoreError, match="s3://b/t"):
            require_preconditions("a", create=server.create, delete=server.delete, uri="s3://b/t")
    assert (server.created, server.names) == (2, set())


def test_a_server_that_hangs_keeps_nobody_from_another() -> None:
    hanging, asked = threading.Event(), threading.Event()
    slow, quick = Server(honours=True), Server(honours=True)

    def hang(path: str, data: bytes) -> None:
        asked.set()
        assert hanging.wait(2 * PATIENCE_SECONDS)
        slow.create(path, data)

    def ask_the_slow() -> None:
        require_preconditions("slow", create=hang, delete=slow.delete, uri="s3://slow/t")

    threads = [threading.Thread(target=ask_the_slow) for _ in range(3)]
    require_preconditions("known", create=quick.create, delete=quick.delete, uri="s3://b/t")
    for thread in threads:
        thread.start()
    try:
        assert asked.wait(PATIENCE_SECONDS)
        others = [
            threading.Thread(
                target=require_preconditions,
                args=(place,),
                kwargs={"create": quick.create, "delete": quick.delete, "uri": "s3://b/t"},
            )
            for place in ("known", "new")
        ]
        for other in others:
            other.start()
        for other in others:
            other.join(PATIENCE_SECONDS)
            assert not other.is_alive()
    finally:
        hanging.set()
        for thread in threads:
            thread.join()
    assert slow.created == 1, "the others waited for the first one's outcome"


def test_a_child_that_is_forked_meanwhile_asks_for_itself() -> None:
    server, hanging, asked = Server(honours=True), threading.Event(), threading.Event()

    def hang(path: str, data: bytes) -> None:
        asked.set()
        assert hanging.wait(2 * PATIENCE_SECONDS)
        server.create(path, data)

    thread = threading.Thread(
        target=require_preconditions,
        args=("a",),
        kwargs={"create": hang, "delete": server.delete, "uri": "s3://b/t"},
    )
    thread.start()
    assert asked.wait(PATIENCE_SECONDS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads, which is the point
        child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(int(PATIENCE_SECONDS))
            require_preconditions("a", create=server.create, delete=server.delete, uri="s3://b/t")
            status = 0
        finally:
            os._exit(status)
    hanging.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_probe_in_doubt_leaves_none_about_the_object(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = MemoryStore()
    clients = Clients(lambda: (memory, memory), proved=False, place="doubtful")
    store = ObjectLogStore(parse_remote_uri("s3://b/t"), clients)
    sent: list[str] = []

    def lost(client: object, key: str, *args: object, **options: object) -> None:
        sent.append(key)
        raise TimeoutError("no answer")

    monkeypatch.setattr(obstore, "put", lost)
    with pytest.raises(NotWrittenError):
        store.put_if_absent("_delta_log/1.json", b"1")
    assert [key for key in sent if "probe" not in key] == []


def test_a_first_create_that_is_refused_by_mistake_proves_nothing() -> None:
    """409 of two writers that met: nothing was written, and the second create of that name would succeed."""
    server = Server(honours=True)
    server.spurious = 2
    require_preconditions("a", create=server.create, delete=server.delete, uri="s3://b/t")
    assert server.created == 1
    server.spurious = 1000
    with pytest.raises(AmbiguousWriteError, match="It is not known whether the store"):
        require_preconditions("b", create=server.create, delete=server.delete, uri="s3://b/t")


def test_trouble_proves_nothing() -> None:
    server = Server(honours=True)
    server.failing = 1
    with pytest.raises(AmbiguousWriteError):
        require_preconditions("a", create=server.create, delete=server.delete, uri="s3://b/t")
    require_preconditions("a", create=server.create, delete=server.delete, uri="s3://b/t")


def test_tasks_borrow_the_caller_s_store_while_it_is_lent(tmp_path: Path) -> None:
    mine, other = LocalLogStore(tmp_path), LocalLogStore(tmp_path)
    with share_with_tasks(mine):
        assert task_store(mine.uri) is mine
        with share_with_tasks(other):
            assert task_store(mine.uri) is other
        assert task_store(mine.uri) is mine
    assert task_store(mine.uri) is not mine


def test_several_stores_are_lent_at_once_and_the_last_of_one_uri_is_given(tmp_path: Path) -> None:
    mine, other, root = LocalLogStore(tmp_path), LocalLogStore(tmp_path), LocalLogStore(tmp_path / "root")
    with share_with_tasks(root, other, mine):
        assert (task_store(mine.uri), task_store(root.uri)) == (mine, root)
        assert task_store(mine.uri) is mine
    assert task_store(mine.uri) not in (mine, other)
    assert task_store(root.uri) is not root
