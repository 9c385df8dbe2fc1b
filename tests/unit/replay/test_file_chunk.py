"""What a chunk remembers, and what a set of files knows of its chunks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from delta_core.replay.file_chunk import Memo
from delta_core.snapshot.snapshot import Snapshot
from tests.support.log_builder import LogBuilder, add, remove


def test_a_memo_forgets_the_oldest() -> None:
    memo = Memo()
    for number in range(32):
        memo.put(number, -number)
    assert [memo.get(number) for number in range(32)] == [-number for number in range(32)]
    memo.put(32, "new")
    assert (memo.get(0), memo.get(1), memo.get(32)) == (None, -1, "new")
    memo.put(5, "again")
    assert (memo.get(1), memo.get(5)) == (-1, "again")


def test_the_share_of_the_chunks(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path).create(*(add(f"f{number}") for number in range(8)))
    first = Snapshot.load(log.store)
    assert first.files.share_of_chunks == 1
    log.commit(*(remove(f"f{number}") for number in range(6)))
    assert first.refresh().files.share_of_chunks == 0.25
    log.commit(*(remove(f"f{number}") for number in (6, 7)))
    assert first.refresh().files.share_of_chunks == 0


@pytest.mark.parametrize("dead", [0, 3])
def test_a_chunk_without_deletion_vectors_says_so(tmp_path: Path, dead: int) -> None:
    log = LogBuilder(tmp_path).create(*(add(f"f{number}") for number in range(4)))
    log.commit(*(remove(f"f{number}") for number in range(dead)), add("more"))
    files = Snapshot.load(log.store).files
    assert not files.has_deletion_vectors
    assert not any(chunk.maybe_has_deletion_vectors() for chunk in files.chunks)
    mask = np.arange(files.num_files) % 2 == 0
    assert files.select(mask).num_files == np.count_nonzero(mask)
