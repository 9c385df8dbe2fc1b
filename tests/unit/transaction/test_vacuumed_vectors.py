"""A vector that was written, and that a vacuum deletes before a commit names it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from delta_core import DeltaTable
from delta_core.clock import ManualClock
from delta_core.deletion_vectors.writer import write_deletion_vectors
from delta_core.dml import row_statement
from delta_core.dml.delete import delete_rows
from delta_core.dml.update import update_rows
from delta_core.errors import ConcurrentWriteError, StaleCommitError
from delta_core.run import Run
from delta_core.snapshot.snapshot import Snapshot
from tests.unit.transaction.test_deletion_vector_merger import (
    COUNT,
    Meanwhile,
    delete,
    deletion_vector_files,
    ids,
    make,
    named_deletion_vector_files,
)

SCATTERED = "id % 3 = 1"


def vacuum(root: Path) -> None:
    DeltaTable(root).vacuum(0, dry_run=False, enforce_retention=False, force=True)


def test_a_deletion_does_not_name_a_vector_that_a_vacuum_may_have_deleted(tmp_path: Path) -> None:
    make(tmp_path)
    with pytest.raises(ConcurrentWriteError, match="vacuum"):
        delete_rows(
            DeltaTable(tmp_path).snapshot, SCATTERED, run=Run(observer=Meanwhile(lambda: vacuum(tmp_path)))
        )
    assert ids(tmp_path) == list(range(COUNT))
    assert not deletion_vector_files(tmp_path)


def test_nor_does_an_update(tmp_path: Path) -> None:
    make(tmp_path)
    with pytest.raises(ConcurrentWriteError, match="vacuum"):
        update_rows(
            DeltaTable(tmp_path).snapshot,
            {"v": "'new'"},
            SCATTERED,
            run=Run(observer=Meanwhile(lambda: vacuum(tmp_path))),
        )
    assert ids(tmp_path) == list(range(COUNT))


def test_one_that_joins_the_winners_vector_neither(tmp_path: Path) -> None:
    make(tmp_path)
    with pytest.raises(ConcurrentWriteError, match="vacuum"):
        delete_rows(
            DeltaTable(tmp_path).snapshot,
            SCATTERED,
            run=Run(observer=Meanwhile(delete(tmp_path, "id = 0"), lambda: vacuum(tmp_path))),
        )
    assert ids(tmp_path) == list(range(1, COUNT))
    assert deletion_vector_files(tmp_path) == named_deletion_vector_files(tmp_path), "only the winner's"


def test_a_vector_in_the_log_is_nothing_to_a_vacuum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path)
    inline = partial(write_deletion_vectors, inline_max_bytes=128)
    monkeypatch.setattr(row_statement, "write_deletion_vectors", inline)
    delete_rows(
        DeltaTable(tmp_path).snapshot, "id = 7", run=Run(observer=Meanwhile(lambda: vacuum(tmp_path)))
    )
    assert ids(tmp_path) == [number for number in range(COUNT) if number != 7]


@pytest.mark.parametrize("joined", [False, True], ids=["its own", "one joined with a winner's"])
def test_a_vector_that_is_gone_is_not_committed(tmp_path: Path, joined: bool) -> None:
    make(tmp_path)
    clock = ManualClock(1_900_000_000_000)
    snapshot = Snapshot.load(DeltaTable(tmp_path).store, clock=clock)

    def nine_days_pass() -> None:
        """And a vacuum that tells nothing takes the vector for a left-over."""
        clock.advance(9 * 86_400)
        for name in deletion_vector_files(tmp_path) - named_deletion_vector_files(tmp_path):
            (tmp_path / name).unlink()

    winners = [delete(tmp_path, "id = 0"), nine_days_pass] if joined else [nine_days_pass]
    with pytest.raises(StaleCommitError, match="vacuum"):
        delete_rows(snapshot, SCATTERED, run=Run(observer=Meanwhile(*winners), clock=clock))
    assert ids(tmp_path) == list(range(1 if joined else 0, COUNT))
