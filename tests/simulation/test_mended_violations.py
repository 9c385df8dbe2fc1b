"""What the simulation has found in the real core, as small as it gets, and mended since."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from time import time

import pytest

from delta_core.actions import AddFile, Metadata, Protocol
from delta_core.actions.json_codec import encode_commit
from delta_core.checkpoint.classic import write_checkpoint
from delta_core.checkpoint.log_cleanup import cleanup_expired_logs
from delta_core.clock import ManualClock
from delta_core.errors import StaleCommitError
from delta_core.log.log_path import commit_path
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.storage.log_store import ObjectInfo
from delta_core.transaction.commit_result import Committed, Rejected, raise_for_result
from delta_core.transaction.observer import CommitPhase
from delta_core.transaction.transaction import Transaction
from tests.simulation.drops import DropProgram, dropping
from tests.simulation.faults import Faults
from tests.simulation.history import SCHEMA_STRING, draw_plan
from tests.simulation.simulation import run_plan
from tests.support.faulty_store import FaultyStore, PutFault

START_MS = 1_700_000_000_000
HOUR_SECONDS = 3_600


def add(path: str) -> AddFile:
    return AddFile(path=path, partition_values={"p": "a"}, size_bytes=1, modification_time_ms=START_MS)


class Meanwhile:
    """Others commit and write a checkpoint between this commit's write and the look at what came of it."""

    def __init__(self, store: LocalLogStore, clock: ManualClock) -> None:
        self.store, self.clock, self.done = store, clock, False

    def on_phase(self, phase: CommitPhase, version: int) -> None:
        if phase is not CommitPhase.AFTER_PUT or self.done:
            return
        self.done = True
        other = Transaction.begin(
            Snapshot.load(self.store, clock=self.clock), operation="WRITE", clock=self.clock, random=Random(2)
        )
        committed = raise_for_result(other.add(add("others")).commit())
        assert committed.snapshot is not None
        write_checkpoint(committed.snapshot)


METADATA = Metadata(id="table", schema_string=SCHEMA_STRING, partition_columns=("p",))
PROTOCOL = Protocol(min_reader_version=1, min_writer_version=2)


@pytest.mark.parametrize("fault", [PutFault.NONE, PutFault.DROP_RESPONSE])
def test_commit_that_others_have_checkpointed_is_not_rejected(tmp_path: Path, fault: PutFault) -> None:
    """A job works for over an hour and commits; before it looks, others have built upon its commit."""
    clock = ManualClock(START_MS)
    local = LocalLogStore(tmp_path, clock=clock)
    store = FaultyStore(local)
    raise_for_result(Transaction.create(local, clock=clock).add(PROTOCOL, METADATA, add("first")).commit())

    verified_at_ms = clock.now_ms()
    snapshot = Snapshot.load(store, clock=clock)
    clock.advance(HOUR_SECONDS + 1)
    store.puts = [fault]
    transaction = Transaction.begin(
        snapshot,
        operation="WRITE",
        observer=Meanwhile(local, clock),
        clock=clock,
        random=Random(1),
        verified_at_ms=verified_at_ms,
    )
    result = transaction.add(add("mine")).commit()

    live = Snapshot.load(local, clock=clock).files.to_table(columns=["path"]).column("path").to_pylist()
    assert sorted(live) == ["first", "mine", "others"], "every reader sees the commit"
    assert not isinstance(result, Rejected), f"and its writer is told: {result.error}"
    assert isinstance(result, Committed)


class Sleep:
    """Others create the table, and cleanup takes their version 0, while this creator's process is held."""

    def __init__(self, root: Path, clock: ManualClock) -> None:
        self.root, self.store, self.clock = root, LocalLogStore(root, clock=clock), clock

    def on_phase(self, phase: CommitPhase, version: int) -> None:
        if phase is not CommitPhase.BEFORE_PUT:
            return
        creation = Transaction.create(self.store, clock=self.clock).add(PROTOCOL, METADATA, add("theirs"))
        created = raise_for_result(creation.commit())
        assert created.snapshot is not None
        second = Transaction.begin(created.snapshot, operation="WRITE", clock=self.clock)
        committed = raise_for_result(second.add(add("second")).commit())
        assert committed.snapshot is not None
        write_checkpoint(committed.snapshot)
        long_ago = time() - 40 * 24 * HOUR_SECONDS
        for file in (self.root / "_delta_log").glob("*.json"):
            os.utime(file, (long_ago, long_ago))
        cleanup_expired_logs(Snapshot.load(self.store))
        assert not holds_version_0(self.store)


def test_creation_below_the_tail_is_not_acknowledged(tmp_path: Path) -> None:
    clock = ManualClock(START_MS)
    store = LocalLogStore(tmp_path, clock=clock)
    creation = Transaction.create(store, observer=Sleep(tmp_path, clock), clock=clock, random=Random(1))
    result = creation.add(PROTOCOL, METADATA, add("mine")).commit()

    live = Snapshot.load(store, clock=clock).files.to_table(columns=["path"]).column("path").to_pylist()
    assert sorted(live) == ["second", "theirs"], "no reader sees the file"
    assert not isinstance(result, Committed), "and its writer is told so"


def holds_version_0(store: LocalLogStore) -> bool:
    return commit_path(0) in [info.path for info in store.list_directory("_delta_log")]


@pytest.mark.parametrize("looked", [False, True])
def test_creation_where_version_0_was_cleaned_up_writes_nothing(tmp_path: Path, looked: bool) -> None:
    """It was written, and not acknowledged; who asked for version 0 of the table read it nevertheless."""
    clock = ManualClock(START_MS)
    store = LocalLogStore(tmp_path, clock=clock)
    creation = Transaction.create(store, clock=clock, verified_at_ms=clock.now_ms() if looked else None)
    creation.add(PROTOCOL, METADATA, add("mine"))
    Sleep(tmp_path, ManualClock(START_MS)).on_phase(CommitPhase.BEFORE_PUT, 0)
    clock.advance(60)
    result = creation.commit()
    assert isinstance(result, Rejected)
    assert not result.files_referenced
    assert isinstance(result.error, StaleCommitError)
    assert result.error.cause == "Its log has version 1, and version 0 was cleaned up."
    assert not holds_version_0(store)


@pytest.mark.parametrize(
    ("seed", "faults"),
    [
        ("k:160", Faults(pause=0.04)),
        ("g:174", Faults(held_commit=0.2)),
    ],
)
def test_history_that_showed_it(seed: str, faults: Faults) -> None:
    verdict = run_plan(draw_plan(seed, is_long=True, faults=faults))
    assert not verdict.violations, verdict.report()


@pytest.mark.parametrize("number", [152, 225, 2407, 3320, 3905])
def test_listing_that_shows_nothing_is_a_version_that_is_not_found(number: int) -> None:
    """A weak store listed a part of the log, and then none of it: that was an error without a type."""
    verdict = run_plan(draw_plan(f"624620f8be1b:{number}"))
    assert not verdict.violations, verdict.report()


class ShortListings(LocalLogStore):
    """Lists nothing but the newest commit; what is asked for by name is there."""

    @property
    def consistent_listing(self) -> bool:
        return False

    def list_directory(self, path: str, *, start_after: str | None = None) -> list[ObjectInfo]:
        return super().list_directory(path, start_after=start_after)[-1:]


def test_a_listing_without_the_version_before_does_not_lose_the_commit(tmp_path: Path) -> None:
    """A weak store's listing lacked it: the commit was live, and its writer was told that it was lost."""
    clock = ManualClock(START_MS)
    LocalLogStore(tmp_path, clock=clock).put_if_absent(commit_path(0), encode_commit([PROTOCOL, METADATA]))
    snapshot = Snapshot.load(LocalLogStore(tmp_path, clock=clock), clock=clock)
    store = ShortListings(tmp_path, clock=clock)

    class Held:
        def on_phase(self, phase: CommitPhase, version: int) -> None:
            if phase is CommitPhase.BEFORE_PUT:
                clock.advance(HOUR_SECONDS + 1)

    transaction = Transaction.begin(snapshot, operation="WRITE", observer=Held(), clock=clock)
    transaction.store = store
    assert isinstance(transaction.add(add("mine")).commit(), Committed)


def test_history_in_which_it_was_told_to_be_lost() -> None:
    verdict = run_plan(draw_plan("11:9703"))
    assert not verdict.violations, verdict.report()


def test_history_in_which_a_late_write_had_been_cleaned_up() -> None:
    """The first write landed late, was read and cleaned up; the second was lost, and that was all it said."""
    verdict = run_plan(draw_plan("13:15950"))
    assert not verdict.violations, verdict.report()


def test_history_in_which_a_refresh_went_behind_an_own_commit() -> None:
    """Its version could not be looked at after the commit, and the handle from before found nothing newer."""
    verdict = run_plan(draw_plan("e0c3e9a286b7:3493"))
    assert not verdict.violations, verdict.report()


def test_history_in_which_version_0_was_made_anew() -> None:
    """A second creator was told that version 0 exists, found it cleaned up, and wrote it."""
    verdict = run_plan(draw_plan("a5cd20ed1742:1771"))
    assert not verdict.violations, verdict.report()


def test_history_in_which_a_commit_was_older_than_the_one_before() -> None:
    """A listing met a checkpoint, and not its commit, which alone had the time that the next must exceed."""
    verdict = run_plan(dropping(draw_plan("af520f78e993:18")), program=DropProgram)
    assert not verdict.violations, verdict.report()


def test_history_in_which_a_creator_was_shown_the_table_of_another() -> None:
    """It slept while its version 0 was cleaned up, and a write that was long on its way took the place."""
    verdict = run_plan(dropping(draw_plan("z2:7742")), program=DropProgram)
    assert not verdict.violations, verdict.report()


def test_history_in_which_a_checkpoint_that_was_not_listed_lost_its_sidecar() -> None:
    """A cleanup slept for days before its checkpoint, and a weak store's listing left that out."""
    verdict = run_plan(dropping(draw_plan("z2:2423")), program=DropProgram)
    assert not verdict.violations, verdict.report()


def test_history_in_which_a_creator_that_was_refused_wrote_version_0_later() -> None:
    """It had seen the table; its write was long on its way, and arrived when version 0 was cleaned up."""
    verdict = run_plan(dropping(draw_plan("9e52bd154410:1017")), program=DropProgram)
    assert not verdict.violations, verdict.report()
