"""Vectors in files and in descriptors: what is written is read again, and a failure leaves nothing."""

from __future__ import annotations

import errno
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from delta_core.deletion_vectors import writer
from delta_core.deletion_vectors.encode import serialize_deletion_vector
from delta_core.deletion_vectors.reader import deletion_vector_path, read_deletion_vector
from delta_core.deletion_vectors.writer import WrittenDeletionVectors, write_deletion_vectors
from delta_core.errors import ConfigurationError, StorageError
from delta_core.storage.local import LocalLogStore
from delta_core.table_features.table_properties import TableProperties
from tests.support.stored_deletion_vectors import inline_descriptor

ROWS = 1 << 20
# 3, 4, 7, 11, 18, 29 as delta-spark inlines them.
INLINE = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"


@pytest.fixture
def store(tmp_path: Path) -> LocalLogStore:
    return LocalLogStore(tmp_path)


def files_below(store: LocalLogStore) -> list[str]:
    return sorted(str(path.relative_to(store.root)) for path in store.root.rglob("*") if path.is_file())


def read_back(store: LocalLogStore, written: WrittenDeletionVectors) -> list[list[int]]:
    return [read_deletion_vector(store, one, num_rows=ROWS).tolist() for one in written.descriptors]


def test_a_commit_has_one_file_with_its_vectors(store: LocalLogStore) -> None:
    dvs = [np.arange(0, 9000, 7), np.arange(300, 305), np.arange(0, 60_000, 3)]
    written = write_deletion_vectors(store, dvs, inline_max_bytes=0)
    assert read_back(store, written) == [dv.tolist() for dv in dvs]
    assert files_below(store) == list(written.paths)
    (path,) = written.paths
    content = (store.root / path).read_bytes()
    assert len(content) == written.size_bytes
    # The layout, without our reader: version, then size, data and checksum, the numbers big-endian.
    assert content[0] == 1
    at = 1
    for dv, descriptor in zip(dvs, written.descriptors, strict=True):
        assert descriptor.offset == at
        size = int.from_bytes(content[at : at + 4], "big")
        data = content[at + 4 : at + 4 + size]
        assert int.from_bytes(content[at + 4 + size : at + 8 + size], "big") == zlib.crc32(data)
        assert int.from_bytes(data[:4], "little") == 1681511377
        assert BitMap64.deserialize(data[4:]) == BitMap64(dv.tolist())
        assert (descriptor.size_in_bytes, descriptor.cardinality) == (size, len(dv))
        at += 8 + size
    assert at == len(content)


def test_names_are_as_descriptors_say(store: LocalLogStore) -> None:
    (plain,) = write_deletion_vectors(store, [[1]], inline_max_bytes=0).descriptors
    assert len(plain.path_or_inline_dv) == 20
    assert re.fullmatch(
        r"deletion_vector_[0-9a-f-]{36}\.bin", str(deletion_vector_path(plain, root_uri=store.uri))
    )
    properties = TableProperties(
        {"delta.randomizeFilePrefixes": "true", "delta.randomPrefixLength": "5", "x": "y"}
    )
    written = write_deletion_vectors(store, [[1]], inline_max_bytes=0, properties=properties)
    (prefixed,) = written.descriptors
    assert len(prefixed.path_or_inline_dv) == 25
    assert re.fullmatch(r"[0-9A-Za-z]{5}/deletion_vector_[0-9a-f-]{36}\.bin", written.paths[0])
    assert written.paths[0] == deletion_vector_path(prefixed, root_uri=store.uri)
    assert read_back(store, written) == [[1]]
    off = TableProperties({"delta.randomPrefixLength": "5"})
    assert "/" not in write_deletion_vectors(store, [[1]], inline_max_bytes=0, properties=off).paths[0]


def test_small_vectors_are_in_the_file_too(store: LocalLogStore) -> None:
    """Vectors in the log are in the format, and delta-spark's VACUUM fails on them."""
    dvs = [[0], [3, 4, 7, 11, 18, 29], [1]]
    written = write_deletion_vectors(store, dvs)
    assert [one.storage_type for one in written.descriptors] == ["u", "u", "u"]
    assert files_below(store) == list(written.paths)
    assert len(written.paths) == 1
    assert read_back(store, written) == dvs


def test_small_vectors_are_inline_where_that_is_asked_for(store: LocalLogStore) -> None:
    small, large = [3, 4, 7, 11, 18, 29], list(range(0, 2000, 9))
    written = write_deletion_vectors(store, [small, large, small], inline_max_bytes=128)
    assert [one.storage_type for one in written.descriptors] == ["i", "u", "i"]
    assert written.descriptors[0].path_or_inline_dv == INLINE
    assert written.descriptors[0].offset is None
    assert (written.descriptors[0].size_in_bytes, written.descriptors[0].cardinality) == (44, 6)
    assert read_back(store, written) == [small, large, small]
    assert written.descriptors[0] == inline_descriptor(small)


def test_the_limit_of_what_is_inline(store: LocalLogStore) -> None:
    rows = list(range(0, 94, 2))
    assert len(serialize_deletion_vector([*rows, 200])) == 128
    within = write_deletion_vectors(store, [[*rows, 200]], inline_max_bytes=128)
    assert (within.descriptors[0].storage_type, within.paths, within.size_bytes) == ("i", (), 0)
    assert files_below(store) == []
    beyond = write_deletion_vectors(store, [[*rows, 200, 210]], inline_max_bytes=128)
    assert beyond.descriptors[0].storage_type == "u"


def test_no_vector_makes_no_file(store: LocalLogStore) -> None:
    assert write_deletion_vectors(store, []) == WrittenDeletionVectors()
    assert files_below(store) == []


def test_a_file_that_is_full_is_followed_by_another(store: LocalLogStore) -> None:
    dvs = [np.arange(first, 4000, 3) for first in range(5)]
    each = len(serialize_deletion_vector(dvs[0])) + 8
    written = write_deletion_vectors(store, dvs, max_file_bytes=2 * each + 10)
    assert len(written.paths) == 3
    assert files_below(store) == sorted(written.paths)
    assert read_back(store, written) == [dv.tolist() for dv in dvs]
    assert written.size_bytes == sum((store.root / path).stat().st_size for path in written.paths)


@pytest.mark.parametrize("wrong", [[], [-1], [0.5]])
def test_a_vector_that_is_none_leaves_nothing(store: LocalLogStore, wrong: list[float]) -> None:
    full = np.arange(0, 4000, 3)
    each = len(serialize_deletion_vector(full)) + 8
    with pytest.raises(ConfigurationError):
        write_deletion_vectors(store, [full, full, wrong], max_file_bytes=each + 1)
    assert files_below(store) == []


class FullDisk:
    """Takes nothing."""

    def write(self, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "no space left")


class BreakingStore(LocalLogStore):
    """Whose second file fails in one of three ways."""

    way = "write"
    outputs = 0

    @contextmanager
    def open_output(self, path: str) -> Iterator[pa.NativeFile]:
        self.outputs += 1
        second = self.outputs == 2
        if second and self.way == "open":
            raise StorageError("no more files")
        with super().open_output(path) as sink:
            yield FullDisk() if second and self.way == "write" else sink
        if second and self.way == "close":
            raise StorageError("is it there?")


@pytest.mark.parametrize("way", ["open", "write", "close"])
def test_a_failure_leaves_nothing(tmp_path: Path, way: str) -> None:
    store = BreakingStore(tmp_path)
    store.way = way
    full = np.arange(0, 4000, 3)
    with pytest.raises(StorageError):
        write_deletion_vectors(store, [full, full], max_file_bytes=100)
    assert store.outputs == 2
    assert files_below(store) == []


def test_a_vector_that_no_descriptor_can_describe(
    store: LocalLogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = np.arange(0, 4000, 3)
    monkeypatch.setattr(writer, "MAX_DELETION_VECTOR_BYTES", len(serialize_deletion_vector(full)) + 9)
    with pytest.raises(ConfigurationError, match="of 1334 rows is too large"):
        write_deletion_vectors(store, [full])
    monkeypatch.setattr(writer, "MAX_DELETION_VECTOR_BYTES", len(serialize_deletion_vector(full)) + 10)
    written = write_deletion_vectors(store, [full, full])
    assert len(written.paths) == 2
    assert read_back(store, written) == [full.tolist()] * 2


def test_what_cannot_be_deleted_hides_no_error(store: LocalLogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> None:
        raise StorageError("no deletions today")

    monkeypatch.setattr(store, "delete", refuse)
    full = np.arange(0, 4000, 3)
    with pytest.raises(ConfigurationError):
        write_deletion_vectors(store, [full, full, []], max_file_bytes=100)
    # The second file was not finished, so it never appeared.
    assert len(files_below(store)) == 1


@given(
    st.lists(st.sets(st.integers(0, ROWS - 1), min_size=1, max_size=200), max_size=6),
    st.sampled_from([0, 128]),
)
@settings(max_examples=40)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, dvs: list[set[int]], inline: int
) -> None:
    store = LocalLogStore(tmp_path_factory.mktemp("vectors"))
    written = write_deletion_vectors(store, (list(dv) for dv in dvs), inline_max_bytes=inline)
    assert read_back(store, written) == [sorted(dv) for dv in dvs]
    named = {(one.unique_id, frozenset(dv)) for one, dv in zip(written.descriptors, dvs, strict=True)}
    assert len(named) == len({unique_id for unique_id, _ in named}), "one name for two vectors"
