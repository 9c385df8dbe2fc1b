"""The times of versions, where commits carry them in part, and what a log without commits says of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_core.actions import CommitInfo, SetTransaction
from delta_core.actions.json_codec import encode_commit
from delta_core.checkpoint.classic import write_checkpoint
from delta_core.checkpoint.version_checksum import write_version_checksum
from delta_core.clock import ManualClock
from delta_core.errors import (
    CorruptLogError,
    InvalidTablePropertyError,
    TableNotFoundError,
    VersionNotFoundError,
)
from delta_core.log.listing import list_log
from delta_core.snapshot.commit_time import (
    CommitTimes,
    first_version_since,
    read_commit_info,
    version_at_timestamp,
)
from delta_core.snapshot.snapshot import Snapshot
from delta_core.transaction.commit_result import raise_for_result
from delta_core.transaction.transaction import Transaction
from tests.support.log_builder import NOW_MS, LogBuilder, add, metadata, protocol

ENABLED = {"delta.enableInCommitTimestamps": "true"}


@pytest.fixture
def log(tmp_path: Path) -> LogBuilder:
    return LogBuilder(tmp_path / "t")


def _stamped(log: LogBuilder, *rebase: int | None) -> None:
    """Commits with these times in them, in seconds from NOW_MS; all files are of NOW_MS."""
    for number, seconds in enumerate(rebase):
        time_ms = None if seconds is None else NOW_MS + 1000 * seconds
        start = (protocol(), metadata(configuration=ENABLED)) if number == 0 else ()
        log.commit(CommitInfo(in_commit_timestamp_ms=time_ms), *start, add(f"f{number}"), time_ms=NOW_MS)


def test_a_commit_that_only_names_the_commit_info_holds_none() -> None:
    lines = encode_commit(
        [SetTransaction(app_id="commitInfo", version=1), add("a", tags={"commitInfo": "b"})]
    )
    assert read_commit_info(lines, path="x") is None
    info = CommitInfo(operation="WRITE", in_commit_timestamp_ms=5)
    assert read_commit_info(lines + encode_commit([info]), path="x") == info
    assert read_commit_info(b"", path="x") is None


def test_a_version_without_the_time_that_it_should_carry_has_its_files(log: LogBuilder) -> None:
    _stamped(log, 10, None)
    assert Snapshot.load(log.store, version=0).timestamp_ms == NOW_MS + 10_000
    assert Snapshot.load(log.store).timestamp_ms == NOW_MS


def test_a_commit_between_others_without_a_time_keeps_its_files(log: LogBuilder) -> None:
    _stamped(log, None, 100, None, 300)
    times = CommitTimes(log.store, list_log(log.store))
    assert len(times) == 4
    # Moved on by a millisecond each, since the files are all of one time.
    assert [times[at] - NOW_MS for at in range(4)] == [0, 100_000, 2, 300_000]


def _since(version: int, seconds: int) -> dict[str, str]:
    return {
        **ENABLED,
        "delta.inCommitTimestampEnablementVersion": str(version),
        "delta.inCommitTimestampEnablementTimestamp": str(NOW_MS + 1000 * seconds),
    }


def _asked(log: LogBuilder, seconds: float) -> tuple[int, int]:
    """The version of a time, and the first one since."""
    at = NOW_MS + int(1000 * seconds)
    return version_at_timestamp(log.store, at), first_version_since(log.store, at)


def test_a_copied_table_is_asked_by_the_times_in_its_commits_since_it_has_them(log: LogBuilder) -> None:
    """The copies' files are all younger than the commits."""
    log.commit(protocol(), metadata(), time_ms=NOW_MS + 90_000)
    for _ in range(4):
        log.commit(add(f"f{log.next_version}"), time_ms=NOW_MS + 90_000)
    log.commit(
        CommitInfo(in_commit_timestamp_ms=NOW_MS + 10_000),
        metadata(configuration=_since(5, 10)),
        time_ms=NOW_MS + 90_000,
    )
    for version in (6, 7):
        log.commit(CommitInfo(in_commit_timestamp_ms=NOW_MS + 10_000 + (version - 5) * 1000))
    assert [_asked(log, seconds) for seconds in (10, 11.5, 12)] == [(5, 5), (6, 7), (7, 7)]
    assert first_version_since(log.store, NOW_MS) == 0
    with pytest.raises(VersionNotFoundError, match="for the time"):
        version_at_timestamp(log.store, NOW_MS + 9_000)
    # What the enabling version says is what counts when log cleanup has taken the ones before it.
    write_checkpoint(Snapshot.load(log.store, version=6))
    log.remove_commits(range(6))
    assert _asked(log, 11.5) == (6, 7)
    with pytest.raises(VersionNotFoundError, match="for the time"):
        version_at_timestamp(log.store, NOW_MS + 10_500)


def test_times_of_commits_before_they_were_enabled_again_do_not_count(log: LogBuilder) -> None:
    for version in range(11):
        info = CommitInfo()
        if version < 8:
            info = CommitInfo(in_commit_timestamp_ms=NOW_MS + 5000 + version * 1000)
        elif version > 8:
            info = CommitInfo(in_commit_timestamp_ms=NOW_MS + 20_000 + (version - 9) * 1000)
        changes = {
            0: (protocol(), metadata(configuration=ENABLED)),
            8: (metadata(),),
            9: (metadata(configuration=_since(9, 20)),),
        }
        log.commit(info, *changes.get(version, ()))
    asked = {seconds: _asked(log, seconds) for seconds in (0.5, 7.5, 8, 19, 20, 20.5, 21)}
    assert asked == {
        0.5: (0, 1),
        7.5: (7, 8),
        8: (8, 8),
        19: (8, 9),
        20: (9, 9),
        20.5: (9, 10),
        21: (10, 10),
    }


def test_times_in_commits_of_a_table_that_does_not_ask_for_them_do_not_count(log: LogBuilder) -> None:
    log.commit(protocol(), metadata())
    log.commit(CommitInfo(in_commit_timestamp_ms=NOW_MS + 500_000))
    assert _asked(log, 1) == (1, 1)


def test_a_commit_without_the_time_that_it_must_carry_is_no_answer(log: LogBuilder) -> None:
    _stamped(log, 10, None, 30)
    for ask in (version_at_timestamp, first_version_since):
        with pytest.raises(CorruptLogError, match=r"Version 1 of .* has no commit time"):
            ask(log.store, NOW_MS + 20_000)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"Version": None}, "EnablementVersion is missing"),
        ({"Timestamp": None}, "EnablementTimestamp is missing"),
        ({"Version": "x"}, "EnablementVersion cannot be 'x'"),
    ],
)
def test_a_table_that_says_wrongly_since_when_is_refused(
    log: LogBuilder, changes: dict[str, str | None], problem: str
) -> None:
    named = {f"delta.inCommitTimestampEnablement{name}": text for name, text in changes.items()}
    configuration = {key: text for key, text in (_since(0, 0) | named).items() if text is not None}
    log.commit(CommitInfo(in_commit_timestamp_ms=NOW_MS), protocol(), metadata(configuration=configuration))
    with pytest.raises(InvalidTablePropertyError, match=problem):
        version_at_timestamp(log.store, NOW_MS)


def test_a_time_is_read_from_the_commit_beside_a_compaction(log: LogBuilder) -> None:
    _stamped(log, 10, 20, 30)
    log.compact(0, 2)
    snapshot = Snapshot.load(log.store)
    assert snapshot.segment.compactions
    assert snapshot.timestamp_ms == NOW_MS + 30_000


def test_a_directory_without_a_log_has_no_times(log: LogBuilder) -> None:
    log.root.mkdir()
    for ask in (version_at_timestamp, first_version_since):
        with pytest.raises(TableNotFoundError, match="no commit at") as caught:
            ask(log.store, NOW_MS)
        assert caught.value.fix == "Check the URI, or ask for a version."


def test_a_log_of_checkpoints_alone_has_versions_but_no_times(log: LogBuilder) -> None:
    log.create().appends(1)
    write_checkpoint(Snapshot.load(log.store))
    log.remove_commits([0, 1])
    assert Snapshot.load(log.store).version == 1
    for ask in (version_at_timestamp, first_version_since):
        with pytest.raises(TableNotFoundError, match="that has a time"):
            ask(log.store, NOW_MS)


@pytest.mark.parametrize("remembered", [True, False])
def test_a_commit_follows_the_time_of_one_that_is_gone(log: LogBuilder, remembered: bool) -> None:
    """A checkpoint does not have it, but the version's checksum does."""
    timed = protocol(min_writer_version=7, writer_features=frozenset({"inCommitTimestamp"}))
    info = CommitInfo(in_commit_timestamp_ms=NOW_MS + 10**6)
    log.commit(info, timed, metadata(configuration=ENABLED), add("f"), time_ms=NOW_MS)
    snapshot = Snapshot.load(log.store)
    write_checkpoint(snapshot)
    if remembered:
        write_version_checksum(snapshot)
    log.remove_commits([0])
    found = Snapshot.load(log.store)
    assert (found.timestamp_ms == NOW_MS + 10**6) is remembered
    later = Transaction.begin(found, operation="WRITE", clock=ManualClock(NOW_MS + 1))
    committed = raise_for_result(later.add(add("g")).commit())
    assert committed.snapshot is not None
    assert (committed.snapshot.timestamp_ms == NOW_MS + 10**6 + 1) is remembered


def test_the_first_version_since_a_time(log: LogBuilder) -> None:
    log.create().appends(2)
    for offset, version in ((-(10**9), 0), (0, 0), (1, 1), (1000, 1), (1001, 2), (2000, 2)):
        assert first_version_since(log.store, NOW_MS + offset) == version
    with pytest.raises(VersionNotFoundError, match="or later") as caught:
        first_version_since(log.store, NOW_MS + 2001)
    assert caught.value.cause == "The latest version 2 was committed at 2023-11-14T22:13:22.000+00:00."


@pytest.mark.parametrize("time_ms", [10**18, -(10**18)])
def test_a_time_beyond_the_calendar_is_shown_in_milliseconds(log: LogBuilder, time_ms: int) -> None:
    log.create()
    with pytest.raises(VersionNotFoundError, match=f"for the time {time_ms} ms"):
        version_at_timestamp(log.store, time_ms)
