"""The probe of preconditions, and stores that tasks borrow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from delta_core.errors import AmbiguousWriteError, ObjectExistsError, StorePermissionError, UnsafeStoreError
from delta_core.storage.lent import lent_to_tasks, task_store
from delta_core.storage.local import LocalLogStore
from delta_core.storage.probe import forget_probes, require_preconditions


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


def test_a_first_create_that_is_refused_by_mistake_proves_nothing() -> None:
    """409 of two writers that met: nothing was written, and the second create of that name would succeed."""
    server = Server(honours=True)
    server.spurious = 2
    require_preconditions("a", create=server.create, delete=server.delete, uri="s3://b/t")
    assert server.created == 1
    server.spurious = 1000
    with pytest.raises(AmbiguousWriteError, match="cannot be told"):
        require_preconditions("b", create=server.create, delete=server.delete, uri="s3://b/t")


def test_trouble_proves_nothing() -> None:
    server = Server(honours=True)
    server.failing = 1
    with pytest.raises(AmbiguousWriteError):
        require_preconditions("a", create=server.create, delete=server.delete, uri="s3://b/t")
    require_preconditions("a", create=server.create, delete=server.delete, uri="s3://b/t")


def test_tasks_borrow_the_caller_s_store_while_it_is_lent(tmp_path: Path) -> None:
    mine, other = LocalLogStore(tmp_path), LocalLogStore(tmp_path)
    with lent_to_tasks(mine):
        assert task_store(mine.uri) is mine
        with lent_to_tasks(other):
            assert task_store(mine.uri) is other
        assert task_store(mine.uri) is mine
    assert task_store(mine.uri) is not mine
