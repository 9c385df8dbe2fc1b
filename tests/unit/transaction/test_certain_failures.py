"""Failures of which nothing can have come: tried again, in the end a refusal, unless another left a doubt."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import write_deltalake
from delta_core.errors import CommitRejectedError, NotWrittenError, StorageFullError
from delta_core.log.log_path import commit_path
from delta_core.storage import local
from delta_core.transaction.commit_result import Committed, Rejected, Unknown, may_discard_files
from tests.support.faulty_store import PutFault
from tests.unit.transaction.commit_harness import Harness


def test_it_is_tried_again_and_nothing_is_read_back(harness: Harness) -> None:
    harness.store.puts = [PutFault.NOT_WRITTEN] * 3
    assert harness.run() == Committed(version=1, recovered=False, attempts=4, txn_id="mine")
    assert harness.store.read_paths == []


def test_a_doubt_that_was_there_before_stays(harness: Harness) -> None:
    harness.store.puts = [PutFault.NOT_WRITTEN, PutFault.LANDS_LATE, PutFault.NOT_WRITTEN]
    result = harness.run()
    assert result == Committed(version=1, recovered=True, attempts=3, txn_id="mine")
    assert harness.versions_of_mine() == [1]


def test_the_deadline_ends_in_a_refusal(harness: Harness) -> None:
    harness.store.puts = [PutFault.NOT_WRITTEN] * 10_000
    result = harness.run(deadline_seconds=30.0)
    assert isinstance(result, Rejected)
    assert isinstance(result.error, NotWrittenError)
    assert result.error.retryable
    assert may_discard_files(result)


@pytest.mark.parametrize("doubt", [PutFault.DROP_REQUEST, PutFault.CONFLICT_409])
def test_the_deadline_after_a_doubt_is_unknown(harness: Harness, doubt: PutFault) -> None:
    harness.store.puts = [PutFault.NOT_WRITTEN, doubt, *[PutFault.NOT_WRITTEN] * 10_000]
    result = harness.run(deadline_seconds=30.0)
    assert isinstance(result, Unknown)
    assert not may_discard_files(result)


def test_another_writer_wins_meanwhile(harness: Harness) -> None:
    harness.store.puts = [PutFault.NOT_WRITTEN]
    harness.store.before_put = lambda path: (
        harness.other_commits(1) if len(harness.store.put_paths) == 1 and path == commit_path(1) else None
    )
    assert harness.run() == Committed(version=2, recovered=False, attempts=3, txn_id="mine")
    assert harness.examined == [1]


def test_a_log_that_is_a_file_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").write_text("x")
    with pytest.raises(CommitRejectedError, match="name of a directory"):
        write_deltalake(tmp_path, pa.table({"a": [1]}))
    assert [entry.name for entry in tmp_path.iterdir()] == ["_delta_log"]


def test_a_full_disk_is_a_refusal_that_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_deltalake(tmp_path, pa.table({"a": [1]}))
    before = sorted(path.name for path in tmp_path.rglob("*"))

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(local.os, "write", full)
    with pytest.raises(StorageFullError, match="too full"):
        write_deltalake(tmp_path, pa.table({"a": [2]}), mode="append")
    monkeypatch.undo()
    assert sorted(path.name for path in tmp_path.rglob("*")) == before
