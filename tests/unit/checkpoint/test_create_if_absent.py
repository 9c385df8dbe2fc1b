"""A streamed object appears whole, once, and over no other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core.checkpoint import create_if_absent
from delta_core.checkpoint.create_if_absent import created
from delta_core.clock import ManualClock
from delta_core.errors import (
    AmbiguousWriteError,
    ObjectExistsError,
    StorageError,
    StorePermissionError,
    UnsafeStoreError,
    WriteRefusedError,
)
from delta_core.storage.local import LocalLogStore
from tests.support.faulty_store import FaultyStore, PutFault

LIMIT = 100
PATH = "d/x"


class StreamedStore(FaultyStore):
    """Notes what is streamed and what replaces."""

    def __init__(self, root: Path) -> None:
        super().__init__(LocalLogStore(root))
        self.outputs: list[str] = []
        self.replaced: list[str] = []

    @contextmanager
    def open_output(self, path: str) -> Iterator[pa.NativeFile]:
        self.outputs.append(path)
        with super().open_output(path) as sink:
            yield sink

    def put(self, path: str, data: bytes) -> None:
        self.replaced.append(path)
        super().put(path, data)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StreamedStore:
    monkeypatch.setattr(create_if_absent, "IN_MEMORY_BYTES", LIMIT)
    return StreamedStore(tmp_path)


def _write(store: StreamedStore, size: int, *, pieces: int = 10) -> bytes:
    data = bytes(number % 251 for number in range(size))
    with created(store, PATH, clock=ManualClock()) as sink:
        for start in range(0, size, max(1, size // pieces)):
            sink.write(data[start : start + max(1, size // pieces)])
        assert sink.tell() == size
    return data


def _names(store: StreamedStore) -> list[str]:
    return [info.path for info in store.walk()]


@pytest.mark.parametrize("size", [0, 1, LIMIT - 1, LIMIT])
def test_what_is_small_is_created_in_one_request(store: StreamedStore, size: int) -> None:
    data = _write(store, size)
    assert store.read(PATH) == data
    assert (store.put_paths, store.outputs) == ([PATH], [])


@pytest.mark.parametrize("pieces", [1, 7, 1000])
@pytest.mark.parametrize("size", [LIMIT + 1, 2 * LIMIT, 999])
def test_what_is_larger_is_streamed(store: StreamedStore, size: int, pieces: int) -> None:
    data = _write(store, size, pieces=pieces)
    assert store.read(PATH) == data
    assert (store.put_paths, store.outputs) == ([], [PATH])


@pytest.mark.parametrize("size", [LIMIT, LIMIT + 1])
def test_a_name_that_is_taken(store: StreamedStore, size: int) -> None:
    store.inner.put(PATH, b"first")
    with pytest.raises(ObjectExistsError):
        _write(store, size)
    assert (store.read(PATH), _names(store)) == (b"first", [PATH])


@pytest.mark.parametrize("size", [LIMIT, LIMIT + 1])
def test_what_fails_leaves_nothing(store: StreamedStore, size: int) -> None:
    def fail() -> None:
        with created(store, PATH, clock=ManualClock()) as sink:
            sink.write(b"x" * size)
            raise MemoryError

    with pytest.raises(MemoryError):
        fail()
    assert _names(store) == []


@pytest.mark.parametrize(
    "faults",
    [
        [PutFault.DROP_REQUEST],
        [PutFault.DROP_REQUEST] * 2,
        [PutFault.CONFLICT_409],
        [PutFault.CONFLICT_409, PutFault.DROP_REQUEST],
    ],
)
def test_a_write_that_did_not_land_is_made_again(store: StreamedStore, faults: list[PutFault]) -> None:
    store.puts = faults
    data = _write(store, LIMIT)
    assert store.read(PATH) == data
    assert store.replaced == []


@pytest.mark.parametrize("fault", [PutFault.DROP_RESPONSE, PutFault.EXISTS_BUT_MINE, PutFault.LANDS_LATE])
def test_a_lost_answer_says_that_the_name_is_taken(store: StreamedStore, fault: PutFault) -> None:
    store.puts = [fault]
    with pytest.raises(ObjectExistsError):
        _write(store, LIMIT)
    assert len(store.read(PATH)) == LIMIT


@pytest.mark.parametrize(
    ("fault", "kind", "tries"),
    [
        (PutFault.DROP_REQUEST, AmbiguousWriteError, 3),
        (PutFault.CONFLICT_409, ObjectExistsError, 3),
        (PutFault.DENIED, StorePermissionError, 1),
    ],
)
def test_a_store_that_goes_on_failing(
    store: StreamedStore, fault: PutFault, kind: type[StorageError], tries: int
) -> None:
    store.puts = [fault] * 5
    with pytest.raises(kind):
        _write(store, LIMIT)
    assert len(store.put_paths) == tries
    assert _names(store) == []


@pytest.mark.parametrize("refusal", [UnsafeStoreError, WriteRefusedError])
def test_a_store_that_creates_nothing_is_asked_first(
    store: StreamedStore, monkeypatch: pytest.MonkeyPatch, refusal: type[StorageError]
) -> None:
    def refuse(path: str, data: bytes) -> None:
        raise refusal(path)

    monkeypatch.setattr(store, "put_if_absent", refuse)
    data = _write(store, LIMIT)
    assert (store.read(PATH), store.replaced) == (data, [PATH])
    with pytest.raises(ObjectExistsError):
        _write(store, LIMIT - 1)
    assert store.read(PATH) == data
