"""From descriptors to positions: every storage type, and every way in which a vector can be wrong."""

from __future__ import annotations

import dataclasses
import os
import tracemalloc
import uuid
import zlib
from pathlib import Path

import pyarrow as pa
import pytest
from pyroaring import BitMap64

from delta_core.actions import DeletionVectorDescriptor
from delta_core.deletion_vectors.reader import deletion_vector_path, read_deletion_vector
from delta_core.errors import DeltaError, InvalidTableError, MissingDataFileError, PathEscapeError
from delta_core.storage.local import LocalLogStore

ENOUGH = 1 << 20
ROWS = [0, 3, 7, 100, 65_536, 65_537]
# The example of PROTOCOL.md, "Derived Fields".
PROTOCOL_NAME = "ab^-aqEH.-t@S}K{vb[*k^"
PROTOCOL_PATH = "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
# 3, 4, 7, 11, 18, 29 as other implementations inline them. (PROTOCOL.md's own example of inlined data has
# the magic number of an older serialisation.)
INLINE = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"


def bitmap_bytes(rows: list[int]) -> bytes:
    return (1681511377).to_bytes(4, "little") + bytes(BitMap64(rows).serialize())


def framed(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data + zlib.crc32(data).to_bytes(4, "big")


def stored(store: LocalLogStore, *dvs: list[int], prefix: str = "") -> list[DeletionVectorDescriptor]:
    """Vectors in one file, and their descriptors."""
    content, offsets = bytearray(b"\x01"), []
    for rows in dvs:
        offsets.append(len(content))
        content += framed(bitmap_bytes(rows))
    identity = uuid.UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61")
    path = store.root / prefix / f"deletion_vector_{identity}.bin"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(content))
    return [
        DeletionVectorDescriptor(
            storage_type="u",
            path_or_inline_dv=prefix + "^-aqEH.-t@S}K{vb[*k^",
            offset=offset,
            size_in_bytes=len(bitmap_bytes(rows)),
            cardinality=len(rows),
        )
        for rows, offset in zip(dvs, offsets, strict=True)
    ]


@pytest.fixture
def store(tmp_path: Path) -> LocalLogStore:
    return LocalLogStore(tmp_path)


def test_names_and_inline_vectors() -> None:
    named = DeletionVectorDescriptor(
        storage_type="u", path_or_inline_dv=PROTOCOL_NAME, offset=4, size_in_bytes=40, cardinality=6
    )
    assert deletion_vector_path(named, root_uri="file:///t") == PROTOCOL_PATH
    inline = DeletionVectorDescriptor(
        storage_type="i", path_or_inline_dv=INLINE, size_in_bytes=44, cardinality=6
    )
    assert deletion_vector_path(inline, root_uri="file:///t") is None
    assert read_deletion_vector(LocalLogStore("/nowhere"), inline, num_rows=30).tolist() == [
        3,
        4,
        7,
        11,
        18,
        29,
    ]


@pytest.mark.parametrize("prefix", ["", "ab"])
def test_many_vectors_in_one_file(store: LocalLogStore, prefix: str) -> None:
    dvs = [ROWS, [], [5], list(range(9000))]
    found = [
        read_deletion_vector(store, item, num_rows=ENOUGH).tolist()
        for item in stored(store, *dvs, prefix=prefix)
    ]
    assert found == dvs


def test_absolute_paths(store: LocalLogStore) -> None:
    (descriptor,) = stored(store, ROWS)
    name = next(store.root.glob("*.bin"))
    absolute = dataclasses.replace(descriptor, storage_type="p", path_or_inline_dv=name.as_uri())
    assert read_deletion_vector(store, absolute, num_rows=ENOUGH).tolist() == ROWS
    assert deletion_vector_path(absolute, root_uri=store.uri) == name.name
    outside = dataclasses.replace(absolute, path_or_inline_dv="file:///etc/passwd")
    with pytest.raises(PathEscapeError):
        read_deletion_vector(store, outside, num_rows=ENOUGH)
    with pytest.raises(PathEscapeError):
        deletion_vector_path(outside, root_uri=store.uri)


def test_no_offset_is_the_first_vector(store: LocalLogStore) -> None:
    (descriptor,) = stored(store, ROWS)
    assert (
        read_deletion_vector(store, dataclasses.replace(descriptor, offset=None), num_rows=ENOUGH).tolist()
        == ROWS
    )


def test_a_missing_file_is_named(store: LocalLogStore) -> None:
    (descriptor,) = stored(store, ROWS)
    next(store.root.glob("*.bin")).unlink()
    with pytest.raises(MissingDataFileError, match="deletion_vector_d2c639aa"):
        read_deletion_vector(store, descriptor, num_rows=ENOUGH)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"cardinality": 5}, "more values|descriptor states 5"),
        ({"cardinality": 7}, "descriptor states 7"),
        ({"cardinality": -1}, "descriptor"),
        ({"size_in_bytes": 10}, "descriptor 10"),
        ({"size_in_bytes": 1 << 12}, "ends early"),
        ({"size_in_bytes": 1 << 20}, "1048576 bytes, which is too much for 6 rows"),
        ({"size_in_bytes": -4}, "-4 bytes"),
        ({"offset": -1}, "offset is -1"),
        ({"offset": 1 << 30}, "ends early"),
        ({"storage_type": "x"}, "storage type is 'x'"),
        ({"path_or_inline_dv": "short"}, "shorter than a UUID"),
        ({"path_or_inline_dv": "../x^-aqEH.-t@S}K{vb[*k^"}, "a single directory"),
        ({"path_or_inline_dv": "..^-aqEH.-t@S}K{vb[*k^"}, "a single directory"),
        ({"path_or_inline_dv": "ab~-aqEH.-t@S}K{vb[*k^"}, "base85"),
        ({"storage_type": "i", "path_or_inline_dv": "00000"}, "holds 4 bytes"),
    ],
)
def test_descriptors_that_do_not_fit(store: LocalLogStore, changes: dict[str, object], said: str) -> None:
    (descriptor,) = stored(store, ROWS)
    with pytest.raises(InvalidTableError, match=said):
        read_deletion_vector(store, dataclasses.replace(descriptor, **changes), num_rows=ENOUGH)


def test_every_damaged_byte_is_noticed(store: LocalLogStore) -> None:
    (descriptor,) = stored(store, ROWS)
    file = next(store.root.glob("*.bin"))
    content = file.read_bytes()
    for at in range(len(content)):
        damaged = bytearray(content)
        damaged[at] ^= 0x10
        file.write_bytes(bytes(damaged))
        with pytest.raises(DeltaError):
            read_deletion_vector(store, descriptor, num_rows=ENOUGH)


def test_the_older_serialisation_is_refused(store: LocalLogStore) -> None:
    (descriptor,) = stored(store, ROWS)
    file = next(store.root.glob("*.bin"))
    data = (1681511376).to_bytes(4, "little") + bitmap_bytes(ROWS)[4:]
    file.write_bytes(b"\x01" + framed(data))
    with pytest.raises(InvalidTableError, match="magic number is 1681511376"):
        read_deletion_vector(store, descriptor, num_rows=ENOUGH)


def test_more_rows_than_the_file_has_are_not_unfolded(store: LocalLogStore) -> None:
    """As 21 kB of runs may claim a hundred million rows, the file is asked first."""
    (descriptor,) = stored(store, list(range(50_000)))
    with pytest.raises(InvalidTableError, match="deletes 50000 rows of a file with 2 rows"):
        read_deletion_vector(store, descriptor, num_rows=2)


class OpenedStore(LocalLogStore):
    """Remembers what it opened."""

    source: pa.NativeFile | None = None

    def open_input(self, path: str) -> pa.NativeFile:
        self.source = super().open_input(path)
        return self.source


def test_a_vector_that_is_too_large_for_its_rows_is_not_opened(store: LocalLogStore) -> None:
    (descriptor,) = stored(store, ROWS)
    os.truncate(next(store.root.glob("*.bin")), 2 << 30)
    opened = OpenedStore(store.root)
    forged = dataclasses.replace(descriptor, size_in_bytes=3 << 29, cardinality=2)
    with pytest.raises(InvalidTableError, match="states 1610612736 bytes, which is too much for 2 rows"):
        read_deletion_vector(opened, forged, num_rows=2)
    assert opened.source is None


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (bytes(8), "Its file states 0 bytes, its descriptor 1610612736 bytes"),
        ((3 << 29).to_bytes(4, "big") + bytes(4), "Its magic number is 0, expected"),
    ],
)
def test_a_large_vector_is_not_read_before_its_first_bytes_are_right(
    store: LocalLogStore, head: bytes, said: str
) -> None:
    (descriptor,) = stored(store, ROWS)
    file = next(store.root.glob("*.bin"))
    file.write_bytes(b"\x01" + head)
    os.truncate(file, 2 << 30)
    forged = dataclasses.replace(descriptor, size_in_bytes=3 << 29, cardinality=10**8)
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    try:
        with pytest.raises(InvalidTableError, match=said):
            read_deletion_vector(store, forged, num_rows=10**9)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert pa.total_allocated_bytes() == before


def test_a_large_vector_is_read(store: LocalLogStore) -> None:
    rows = list(range(0, 1_000_000, 3))
    (descriptor,) = stored(store, rows)
    assert descriptor.size_in_bytes > 1 << 16
    assert read_deletion_vector(store, descriptor, num_rows=ENOUGH).tolist() == rows


def _empty_buckets(count: int) -> bytes:
    """As writers that keep an array of buckets write it when no row is deleted."""
    bucket = (12346).to_bytes(4, "little") + bytes(4)
    buckets = b"".join(high.to_bytes(4, "little") + bucket for high in range(count))
    return (1681511377).to_bytes(4, "little") + count.to_bytes(8, "little") + buckets


@pytest.mark.parametrize(
    ("rows", "data"),
    [
        ([], _empty_buckets(1 << 12)),
        ([high << 32 for high in range(4000)], None),
        ([low << 16 for low in range(20_000)], None),
        ([start + at for start in range(0, 1 << 24, 1 << 12) for at in range(3)], None),
        (list(range(0, 400_000, 2)), None),
        (list(range(4097)), None),
    ],
    ids=["empty buckets", "buckets of one", "containers of one", "short runs", "bitsets", "least bitset"],
)
@pytest.mark.parametrize("runs", [False, True])
def test_no_vector_is_too_large_for_its_rows(
    store: LocalLogStore, rows: list[int], data: bytes | None, runs: bool
) -> None:
    """The sparsest vectors that the format allows are within the bound."""
    bitmap = BitMap64(rows)
    if runs:
        bitmap.run_optimize()
    data = data or (1681511377).to_bytes(4, "little") + bytes(bitmap.serialize())
    (descriptor,) = stored(store, [])
    next(store.root.glob("*.bin")).write_bytes(b"\x01" + framed(data))
    whole = dataclasses.replace(descriptor, size_in_bytes=len(data), cardinality=len(rows))
    found = read_deletion_vector(store, whole, num_rows=max(1 << 44, *rows, 0))
    assert found.tolist() == rows


def test_a_forged_size_is_not_allocated(store: LocalLogStore) -> None:
    (descriptor,) = stored(store, ROWS)
    forged = dataclasses.replace(descriptor, size_in_bytes=2**31 - 1, cardinality=10**8)
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    try:
        with pytest.raises(InvalidTableError, match="Its file ends early"):
            read_deletion_vector(store, forged, num_rows=10**9)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert pa.total_allocated_bytes() == before
