"""Old and new deletions of one file, against Python's sets."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_core.deletion_vectors.file_update import unite
from delta_core.deletion_vectors.writer import write_deletion_vectors
from delta_core.errors import ConfigurationError, InvalidTableError
from delta_core.storage.local import LocalLogStore
from tests.support.stored_deletion_vectors import read_union

ROWS = st.sets(st.integers(0, 299), max_size=300)


@given(ROWS, ROWS, st.integers(0, 5))
@settings(max_examples=300)
def test_unions_are_those_of_sets(old: set[int], new: set[int], more: int) -> None:
    num_records = max(old | new, default=-1) + 1 + more
    known = np.array(sorted(old), np.int64)
    united = unite(known, np.array(list(new), np.int64), num_records=num_records)
    assert united.positions.tolist() == sorted(old | new)
    assert united.newly_deleted.tolist() == sorted(new - old)
    assert united.deletes_all == (len(old | new) == num_records)
    assert united.is_unchanged == (new <= old)
    assert known.tolist() == sorted(old)


@pytest.mark.parametrize("inline_max_bytes", [-1, 1 << 20])
def test_the_old_vector_is_read(tmp_path: Path, inline_max_bytes: int) -> None:
    store = LocalLogStore(tmp_path)
    old = list(range(0, 900, 2))
    (descriptor,) = write_deletion_vectors(store, [old], inline_max_bytes=inline_max_bytes).descriptors
    united = read_union(store, descriptor, [5, 4, 1, 5], num_records=1000)
    assert united.newly_deleted.tolist() == [1, 5]
    assert united.positions.tolist() == sorted({*old, 1, 5})
    assert not united.deletes_all
    rest = read_union(store, descriptor, range(1000), num_records=1000)
    assert rest.deletes_all
    assert len(rest.newly_deleted) == 550


def test_a_file_without_a_vector(tmp_path: Path) -> None:
    united = read_union(LocalLogStore(tmp_path), None, [2, 0], num_records=3)
    assert united.positions.tolist() == united.newly_deleted.tolist() == [0, 2]


def test_a_damaged_old_vector_is_not_forgotten(tmp_path: Path) -> None:
    store = LocalLogStore(tmp_path)
    written = write_deletion_vectors(store, [range(0, 900, 2)], inline_max_bytes=-1)
    file = tmp_path / written.paths[0]
    content = bytearray(file.read_bytes())
    content[40] ^= 1
    file.write_bytes(bytes(content))
    with pytest.raises(InvalidTableError, match="checksum"):
        read_union(store, written.descriptors[0], [1], num_records=1000)
    forged = dataclasses.replace(written.descriptors[0], cardinality=2000)
    with pytest.raises(InvalidTableError, match="deletes 2000 rows of a file with 1000 rows"):
        read_union(store, forged, [1], num_records=1000)


def test_rows_that_are_not_in_the_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidTableError, match="Row 3 of a data file cannot be deleted"):
        read_union(LocalLogStore(tmp_path), None, [3], num_records=3)
    with pytest.raises(InvalidTableError, match="Row 9 of a data file cannot be deleted"):
        unite(np.array([9]), [1], num_records=3)
    with pytest.raises(ConfigurationError):
        unite(np.array([1]), [-1], num_records=3)
