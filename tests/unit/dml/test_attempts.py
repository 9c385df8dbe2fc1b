"""An operation that is planned anew after each conflict ends when its time is over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, GroupCommit, IdentityGenerator, define_column, write_deltalake
from delta_core.clock import ManualClock, SystemClock
from delta_core.dml import group_commit, write
from delta_core.dml.attempts import Attempts
from delta_core.errors import CommitError, MaxCommitAttemptsError
from delta_core.run import Run
from delta_core.transaction.commit_properties import CommitProperties
from delta_core.transaction.committer import Committer

HALF_A_SECOND = CommitProperties(deadline_seconds=0.5)


class LongRounds(SystemClock):
    """The machine's clock, save that each look at durations takes as long as it is told."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic_seconds(self) -> float:
        return self.seconds


@pytest.fixture
def table(tmp_path: Path) -> Path:
    numbers = define_column("id", pa.int64(), generated_always_as=IdentityGenerator(start=1, step=1))
    DeltaTable.create(tmp_path / "t", [numbers, define_column("a", pa.int64())])
    return tmp_path / "t"


@pytest.fixture
def clock(table: Path, monkeypatch: pytest.MonkeyPatch) -> LongRounds:
    """Another writer is first each time, and each time takes 0.2 seconds."""
    clock = LongRounds()

    def overtaken(module: Any, name: str) -> None:
        own = getattr(module, name)

        def late(*arguments: Any, **more: Any) -> Any:
            if "run" not in more or more["run"].clock is clock:
                write_deltalake(table, pa.table({"a": [-1]}), mode="append")
                clock.seconds += 0.2
            return own(*arguments, **more)

        monkeypatch.setattr(module, name, late)

    overtaken(write, "commit_new_files")
    overtaken(group_commit, "commit_and_checkpoint")
    return clock


def test_rows_with_generated_numbers_are_given_up_in_time(table: Path, clock: LongRounds) -> None:
    with pytest.raises(MaxCommitAttemptsError) as caught:
        write_deltalake(
            table, pa.table({"a": [1]}), mode="append", commit_properties=HALF_A_SECOND, clock=clock
        )
    assert "attempts was 3" in str(caught.value)
    assert DeltaTable(table).to_pyarrow_table()["a"].to_pylist() == [-1] * 3
    assert len(list(table.glob("*.parquet"))) == 3, "files of rounds that were lost are deleted"


def test_a_group_is_given_up_in_time(table: Path, clock: LongRounds) -> None:
    with GroupCommit(table, commit_properties=HALF_A_SECOND, clock=clock) as group:
        outcome = group.append(pa.table({"a": [1]}))
        with pytest.raises(CommitError, match="Every attempt of the operation conflicted") as caught:
            outcome.result()
    assert "attempts was 3" in str(caught.value)
    assert len(list(table.glob("*.parquet"))) == 3


def test_what_is_left_of_the_time_is_the_next_deadline() -> None:
    clock = ManualClock()
    tries = Attempts(run=Run(commit=CommitProperties(max_attempts=3, deadline_seconds=60), clock=clock))
    left = []
    for number in tries:
        assert number == len(left)
        left.append(tries.next_run().commit.deadline_seconds)
        clock.advance(10)
        if tries.is_last:
            break
    assert len(left) == 3
    assert left[0] == 60
    assert 49 < left[1] <= 50
    assert 38 < left[2] <= 40


def test_writing_rows_for_longer_than_the_deadline_leaves_a_second_try() -> None:
    clock = ManualClock()
    tries = Attempts(run=Run(commit=CommitProperties(deadline_seconds=60), clock=clock))
    rounds = iter(tries)
    next(rounds)
    clock.advance(3_600)
    assert tries.next_run().commit.deadline_seconds == 60
    assert not tries.is_last
    next(rounds)
    clock.advance(3_600)
    assert tries.next_run().commit.deadline_seconds == 0
    assert tries.is_last


def test_no_time_is_enough_for_one_try() -> None:
    tries = Attempts(run=Run(commit=CommitProperties(deadline_seconds=0), clock=ManualClock()))
    next(iter(tries))
    assert tries.next_run().commit.deadline_seconds == 0
    assert tries.is_last


def test_a_group_counts_what_its_commits_have_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other writers are always first, and the log has a version of theirs in the way of each try."""
    write_deltalake(tmp_path, pa.table({"x": [1]}))
    put = Committer._put
    tries = []

    def late(self: Committer, version: int, data: bytes) -> None:
        tries.append(version)
        with monkeypatch.context() as undone:
            undone.setattr(Committer, "_put", put)
            write_deltalake(tmp_path, pa.table({"x": [9]}), mode="append")
        put(self, version, data)

    monkeypatch.setattr(Committer, "_put", late)
    with GroupCommit(tmp_path, commit_properties=CommitProperties(max_attempts=4)) as group:
        outcome = group.append(pa.table({"x": [2]}))
        with pytest.raises(MaxCommitAttemptsError, match="Other writers won every attempt"):
            outcome.result()
    assert len(tries) == 4
