"""A writer that stands still, wherever it does: no commit is acknowledged that readers do not find."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, GroupCommit, write_deltalake
from delta_core.actions import CommitInfo
from delta_core.actions.json_codec import encode_commit
from delta_core.checkpoint.classic import write_checkpoint
from delta_core.clock import ManualClock
from delta_core.data.row_files import write_data_files
from delta_core.dml.commit_files import CommitMode, commit_new_files
from delta_core.errors import CommitRejectedError, ConfigurationError, StaleCommitError, StorageError
from delta_core.log.log_path import MAX_VERSION, commit_path
from delta_core.maintenance.vacuum import apply_vacuum, plan_vacuum
from delta_core.run import Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.table_features.feature import WriterKind
from delta_core.transaction.commit_properties import CommitProperties
from delta_core.transaction.commit_result import Committed, Conflict, Rejected
from delta_core.transaction.observer import CommitPhase
from delta_core.transaction.transaction import Transaction

DAY_SECONDS = 86_400
START_MS = 1_800_000_000_000


def rows(*values: int) -> pa.Table:
    return pa.table({"a": pa.array(values, pa.int64())})


def values(uri: str) -> list[int]:
    return sorted(DeltaTable(uri).to_pyarrow_table().column("a").to_pylist())


class Sleepy(ManualClock):
    """Something happens during the first sleep."""

    meanwhile: Callable[[], None] | None = None

    def sleep(self, seconds: float) -> None:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        super().sleep(seconds)


class Stops:
    """Stands still at the first phase of a kind."""

    def __init__(self, at: CommitPhase, meanwhile: Callable[[], None]) -> None:
        self.at = at
        self.left = [meanwhile]

    def on_phase(self, phase: CommitPhase, version: int) -> None:
        if phase is self.at and self.left:
            self.left.pop()()


def clean_log(uri: str, below: int) -> None:
    """What clean-up does, long after."""
    write_checkpoint(Snapshot.load(LocalLogStore(uri)))
    for version in range(below):
        Path(uri, commit_path(version)).unlink()


def replaced_log(uri: str, versions: int) -> None:
    shutil.rmtree(uri)
    for number in range(versions):
        write_deltalake(uri, pa.table({"b": [str(number)]}), mode="append")


@pytest.mark.parametrize("cleaned", [True, False])
def test_who_lost_a_race_and_slept_commits_below_no_cleaned_log(tmp_path: Path, cleaned: bool) -> None:
    uri = str(tmp_path / "t")
    clock = Sleepy(START_MS)
    write_deltalake(uri, rows(0), clock=clock)
    handle = DeltaTable(uri)
    write_deltalake(uri, rows(1), mode="append", clock=clock)

    def meanwhile() -> None:
        for value in range(2, 8):
            write_deltalake(uri, rows(value), mode="append")
        if cleaned:
            clean_log(uri, below=7)
        clock.advance(40 * DAY_SECONDS if cleaned else 3_600)

    clock.meanwhile = meanwhile
    transaction = commit(handle.snapshot, uri, clock)
    if cleaned:
        with pytest.raises(StaleCommitError):
            transaction()
        assert values(uri) == list(range(8))
    else:
        transaction()
        assert values(uri) == [*range(8), 99]


@pytest.mark.parametrize("versions", [1, 2, 3])
def test_who_lost_a_race_and_slept_commits_into_no_other_table(tmp_path: Path, versions: int) -> None:
    uri = str(tmp_path / "t")
    clock = Sleepy(START_MS)
    write_deltalake(uri, rows(0), clock=clock)
    handle = DeltaTable(uri)
    write_deltalake(uri, rows(1), mode="append", clock=clock)

    def meanwhile() -> None:
        replaced_log(uri, versions)
        clock.advance(3_600)

    clock.meanwhile = meanwhile
    with pytest.raises(StaleCommitError):
        commit(handle.snapshot, uri, clock)()
    assert DeltaTable(uri).version() == versions - 1
    assert DeltaTable(uri).to_pyarrow_table().column("b").to_pylist() == [str(n) for n in range(versions)]


def commit(snapshot: Snapshot, uri: str, clock: ManualClock) -> Callable[[], Any]:
    """An append of 99 to what the snapshot shows."""

    def run() -> Any:
        store = LocalLogStore(uri)
        return commit_new_files(
            snapshot,
            store,
            writer_kind=WriterKind.ARROW_ROWS,
            mode=CommitMode.APPEND,
            adds=write_data_files(store, rows(99), schema=snapshot.schema, clock=clock),
            schema=snapshot.schema,
            run=Run(clock=clock),
            verified_at_ms=clock.now_ms(),
        )

    return run


@pytest.mark.parametrize("tells", [True, False], ids=["a vacuum that tells", "one that does not"])
def test_files_that_a_vacuum_took_for_left_overs_are_not_committed(tmp_path: Path, tells: bool) -> None:
    uri = str(tmp_path / "t")
    clock = ManualClock(START_MS)
    write_deltalake(uri, rows(0), clock=clock)

    def nine_days_pass() -> None:
        clock.advance(9 * DAY_SECONDS)
        named = {Path(found).name for found in DeltaTable(uri).file_uris()}
        left_over = [path for path in Path(uri).glob("*.parquet") if path.name not in named]
        assert len(left_over) == 1
        os.utime(left_over[0], (1, 1))  # long before, by whatever clock
        if tells:
            snapshot = Snapshot.load(LocalLogStore(uri), clock=clock)
            assert apply_vacuum(snapshot, plan_vacuum(snapshot)).deleted_files == 1
        else:
            left_over[0].unlink()

    observer = Stops(CommitPhase.PREPARED, nine_days_pass)
    with pytest.raises(StaleCommitError, match="vacuum"):
        write_deltalake(uri, rows(99), mode="append", observer=observer, clock=clock)
    assert values(uri) == [0]


@pytest.mark.parametrize(
    ("parameters", "days", "conflicts"),
    [
        ({}, 6, False),
        ({}, 8, True),
        ({"defaultRetentionMillis": str(14 * 86_400_000)}, 8, False),
        ({"specifiedRetentionMillis": "0", "defaultRetentionMillis": str(7 * 86_400_000)}, 0.01, True),
        ({"specifiedRetentionMillis": "", "defaultRetentionMillis": str(7 * 86_400_000)}, 0.01, False),
    ],
)
def test_a_vacuum_that_begins_conflicts_with_files_older_than_what_it_keeps(
    tmp_path: Path, parameters: dict[str, str], days: float, conflicts: bool
) -> None:
    uri = str(tmp_path / "t")
    clock = ManualClock(START_MS)
    write_deltalake(uri, rows(0), clock=clock)
    handle = DeltaTable(uri)
    append = commit(handle.snapshot, uri, clock)
    store = LocalLogStore(uri)
    adds = write_data_files(store, rows(99), schema=handle.snapshot.schema, clock=clock)
    clock.advance(days * DAY_SECONDS)
    begun = CommitInfo(operation="VACUUM START", operation_parameters=parameters, timestamp_ms=clock.now_ms())
    store.put_if_absent(commit_path(1), encode_commit([begun]))
    transaction = Transaction.begin(
        handle.snapshot, operation="WRITE", clock=clock, verified_at_ms=clock.now_ms()
    ).add(*adds)
    result = transaction.commit()
    assert isinstance(result, Conflict if conflicts else Committed)
    if isinstance(result, Conflict):
        assert result.rule == "vacuum_started"
        # Files that are written now are younger than what any vacuum of then takes.
        assert append().version == 2


def test_a_table_that_was_made_and_cleaned_while_rows_came_gets_no_second_first_version(
    tmp_path: Path,
) -> None:
    uri = str(tmp_path / "t")
    clock = ManualClock(START_MS)

    def batches() -> Any:
        yield from rows(99).to_batches()
        for value in range(5):
            write_deltalake(uri, rows(value), mode="append")
        clean_log(uri, below=4)
        clock.advance(2 * DAY_SECONDS)
        yield from rows(100).to_batches()

    stream = pa.RecordBatchReader.from_batches(rows(0).schema, batches())
    with pytest.raises(StaleCommitError):
        write_deltalake(uri, stream, mode="append", clock=clock)
    assert values(uri) == list(range(5))


@pytest.mark.parametrize("retention", ["interval 0 days", "interval 1 millisecond", "interval 1 minute"])
def test_a_table_that_keeps_no_log_can_be_written(tmp_path: Path, retention: str) -> None:
    uri = str(tmp_path / "t")
    write_deltalake(uri, rows(0), configuration={"delta.logRetentionDuration": retention})
    for value in range(1, 4):
        write_deltalake(uri, rows(value), mode="append")
    assert values(uri) == [0, 1, 2, 3]
    clock = ManualClock(DeltaTable(uri).snapshot.verified_at_ms)
    handle = DeltaTable(uri)
    clock.advance(300)
    commit(handle.snapshot, uri, clock)()
    assert values(uri) == [0, 1, 2, 3, 99]


@pytest.mark.parametrize("interval", ["0", "ten", "-5", "9" * 30])
def test_an_interval_that_is_none_fails_no_commit_that_stands(tmp_path: Path, interval: str) -> None:
    uri = str(tmp_path / "t")
    write_deltalake(uri, rows(0))
    first = Path(uri, commit_path(0))
    first.write_text(
        first.read_text().replace(
            '"configuration":{}', f'"configuration":{{"delta.checkpointInterval":"{interval}"}}'
        )
    )
    assert DeltaTable(uri).metadata().configuration == {"delta.checkpointInterval": interval}
    for value in range(1, 11):
        write_deltalake(uri, rows(value), mode="append")
    with GroupCommit(uri) as group:
        assert group.append(rows(11)).result().version == 11
    DeltaTable(uri).optimize.compact()
    assert values(uri) == list(range(12))
    has_checkpoint = Path(uri, "_delta_log", "_last_checkpoint").exists()
    assert has_checkpoint == (not interval.startswith("9"))


@pytest.mark.parametrize("text", ['{"futureAction":{"x":1}}\n', '{"add":null}', '{"commitInfo":{}}\r\n\r\n'])
def test_a_winner_that_says_nothing_we_know_is_another_s(tmp_path: Path, text: str) -> None:
    uri = str(tmp_path / "t")
    write_deltalake(uri, rows(0))
    handle = DeltaTable(uri)
    Path(uri, commit_path(1)).write_bytes(text.encode())
    done = write_deltalake(handle, rows(5), mode="append")
    assert done is not None
    assert done.version == 2
    assert values(uri) == [0, 5]


class FailsInItsOwnWay(LocalLogStore):
    """A store of somebody else's, whose client's errors are not ours, once a commit landed."""

    landed = False

    def put_if_absent(self, path: str, data: bytes) -> None:
        super().put_if_absent(path, data)
        self.landed = True

    def head(self, path: str) -> Any:
        if self.landed:
            raise ConnectionResetError("the client's own")
        return super().head(path)


def test_a_store_s_own_error_after_the_write_fails_no_commit(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    write_deltalake(uri, rows(0))
    store = FailsInItsOwnWay(uri)
    snapshot = Snapshot.load(store)
    adds = write_data_files(store, rows(7), schema=snapshot.schema)
    done = commit_new_files(
        snapshot,
        store,
        writer_kind=WriterKind.ARROW_ROWS,
        mode=CommitMode.APPEND,
        adds=adds,
        schema=snapshot.schema,
    )
    assert done.version == 1
    assert values(uri) == [0, 7]


def test_a_store_s_own_error_before_the_write_is_a_rejection(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    clock = ManualClock(START_MS)
    write_deltalake(uri, rows(0), clock=clock)
    store = FailsInItsOwnWay(uri)
    snapshot = Snapshot.load(store, clock=clock)
    store.landed = True
    clock.advance(60)
    with pytest.raises(StorageError, match="undocumented error"):
        commit_new_files(
            snapshot,
            store,
            writer_kind=WriterKind.ARROW_ROWS,
            mode=CommitMode.APPEND,
            adds=[],
            schema=snapshot.schema,
            run=Run(clock=clock),
            verified_at_ms=START_MS,
        )
    assert DeltaTable(uri).version() == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"user_metadata": {"job": "x"}},
        {"user_name": 5},
        {"engine_info": ["a"]},
        {"max_attempts": "3"},
        {"max_attempts": 2.5},
        {"max_attempts": 0},
        {"max_attempts": True},
        {"deadline_seconds": "5"},
        {"deadline_seconds": float("nan")},
        {"deadline_seconds": float("inf")},
        {"deadline_seconds": -1},
    ],
)
def test_what_no_commit_can_say_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        CommitProperties(**wrong)


def test_there_is_no_version_after_the_last(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    write_deltalake(uri, rows(0))
    DeltaTable(uri).create_checkpoint()
    log = Path(uri, "_delta_log")
    for path in [*log.glob("*.json"), *log.glob("*.parquet")]:
        path.rename(log / path.name.replace("0" * 20, f"{MAX_VERSION:020}"))
    (log / "_last_checkpoint").unlink()
    before = sorted(path.name for path in log.iterdir())
    with pytest.raises(CommitRejectedError, match="cannot have a version"):
        write_deltalake(uri, rows(1), mode="append")
    assert sorted(path.name for path in log.iterdir()) == before
    assert values(uri) == [0]


def test_a_creation_that_did_not_look_is_none_where_the_log_was_cleaned_up(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    for value in range(5):
        write_deltalake(uri, rows(value), mode="append")
    clean_log(uri, below=4)
    snapshot = DeltaTable(uri).snapshot
    creation = Transaction.create(LocalLogStore(uri)).add(
        snapshot.protocol, replace(snapshot.metadata, id="another")
    )
    result = creation.commit()
    assert isinstance(result, Rejected)
    assert isinstance(result.error, StaleCommitError)
    assert not result.files_referenced
    assert not (tmp_path / "t/_delta_log" / f"{0:020d}.json").exists()
    assert values(uri) == list(range(5))
