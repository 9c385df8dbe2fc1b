"""Log files beyond the size of any line: honest ones are read, a line without an end is not."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from delta_core.errors import CorruptLogError, StorageError
from delta_core.log import commit_reader
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import ObjectInfo
from tests.support.faulty_store import FaultyStore
from tests.support.log_builder import LogBuilder

LIMIT = 1000


class CountingStore(FaultyStore):
    """Remembers how far a file was read."""

    def open_input(self, path: str) -> pa.NativeFile:
        self.source = super().open_input(path)
        return self.source


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CountingStore:
    monkeypatch.setattr(commit_reader, "MAX_LINE_BYTES", LIMIT)
    monkeypatch.setattr(commit_reader, "_CHUNK_BYTES", 300)
    return CountingStore(LogBuilder(tmp_path).store)


def written(store: CountingStore, data: bytes) -> ObjectInfo:
    store.put("_delta_log/x.json", data)
    return store.head("_delta_log/x.json")


@pytest.mark.parametrize("width", [0, 1, 299, 300, 301, 700, 999, 1000])
def test_lines_up_to_the_limit_are_read(store: CountingStore, width: int) -> None:
    data = (b"a" * width + b"\n") * (1 + 3000 // (width + 1)) + b"b" * width
    assert commit_reader.read_lines(store, written(store, data)) == data


@pytest.mark.parametrize("before", [b"", b"x\n", b"y" * 900 + b"\n"])
def test_a_longer_line_is_refused_before_its_end(store: CountingStore, before: bytes) -> None:
    data = before + b"a" * 100_000
    with pytest.raises(CorruptLogError, match=r"'_delta_log/x\.json' cannot be read") as refused:
        commit_reader.read_lines(store, written(store, data))
    assert f"more than {LIMIT} bytes" in refused.value.cause
    assert store.source.closed


class CutStore(CountingStore):
    """Gives only the first line of a file, so many times."""

    cuts = 0

    def read(self, path: str) -> bytes:
        return self._cut(super().read(path))

    def open_input(self, path: str) -> pa.NativeFile:
        with super().open_input(path) as source:
            return pa.BufferReader(self._cut(bytes(source.read())))

    def _cut(self, data: bytes) -> bytes:
        if not self.cuts:
            return data
        self.cuts -= 1
        return data[: data.index(b"\n") + 1]


@pytest.mark.parametrize("lines", [3, 300])
def test_a_file_that_is_cut_is_read_again_and_never_taken(store: CountingStore, lines: int) -> None:
    data = b'{"commitInfo":{}}\n' * lines
    info = written(store, data)
    cut = CutStore(store.inner)
    cut.cuts = 2
    assert commit_reader.read_lines(cut, info) == data
    cut.cuts = 3
    with pytest.raises(StorageError, match="does not have the size that was listed") as refused:
        commit_reader.read_lines(cut, info)
    assert f"18 bytes arrived instead of {len(data)}" in refused.value.cause
    assert refused.value.retryable


def test_half_a_commit_is_not_shown(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path).create().appends(2)
    cut = CutStore(log.store)
    cut.cuts = 1000
    with pytest.raises(StorageError, match="does not have the size that was listed"):
        Snapshot.load(cut)


def test_a_table_with_such_a_commit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = LogBuilder(tmp_path).create()
    monkeypatch.setattr(commit_reader, "MAX_LINE_BYTES", 2000)
    log.raw("00000000000000000001.json", b'{"commitInfo":{"a":"' + b"a" * 5000)
    with pytest.raises(CorruptLogError, match=r"00000000000000000001\.json' cannot be read"):
        Snapshot.load(log.store)


def test_a_table_with_an_empty_commit_is_refused_when_it_is_opened(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path).create().appends(2)
    log.raw("00000000000000000002.json", b"")
    with pytest.raises(CorruptLogError, match=r"00000000000000000002\.json' holds no action"):
        Snapshot.load(log.store)
    assert Snapshot.load(log.store, version=1).files.num_files == 1
