"""Work that is done once more: taken under a key of its own, unless a later delivery came before it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable as PeerTable

from delta_core import CommitProperties, write_deltalake
from delta_core.actions.set_transaction import SetTransaction
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.table_features.feature import WriterKind
from delta_core.transaction.commit_result import AlreadyApplied, Committed
from delta_core.transaction.find_applied_commit import find_applied_commit
from delta_core.transaction.observer import CommitPhase
from delta_core.transaction.transaction import Transaction

ROWS = pa.table({"id": [1]})


def write(path: Path, **properties: object) -> None:
    write_deltalake(
        str(path),
        ROWS,
        mode="append",
        commit_properties=CommitProperties(**properties),  # type: ignore[arg-type]
    )


def latest(path: Path) -> Snapshot:
    return Snapshot.load(LocalLogStore(path))


def again(path: Path, *, step: int, delivery: int, observer: object = None) -> object:
    """A commit that does delivery `delivery` of the work `w` once more."""
    transaction = Transaction.begin(
        latest(path),
        operation="AGAIN",
        writer_kind=WriterKind.COMMIT,
        properties=CommitProperties(txn=("again", step), delivery=("w", delivery)),
        **({} if observer is None else {"observer": observer}),  # type: ignore[arg-type]
    )
    return transaction.commit()


def versions(path: Path) -> dict[str, int | None]:
    peer = PeerTable(path)
    return {name: peer.transaction_version(name) for name in ("w", "again")}


def test_the_same_delivery_is_taken_once_more_and_once_only(tmp_path: Path) -> None:
    write(tmp_path, txn=("w", 3))
    assert isinstance(again(tmp_path, step=1, delivery=3), Committed)
    repeated = again(tmp_path, step=1, delivery=3)
    assert isinstance(repeated, AlreadyApplied)
    assert (PeerTable(tmp_path).version(), versions(tmp_path)) == (1, {"w": 3, "again": 1})


def test_a_delivery_that_was_never_recorded_is_recorded(tmp_path: Path) -> None:
    write(tmp_path)
    assert isinstance(again(tmp_path, step=1, delivery=3), Committed)
    assert versions(tmp_path) == {"w": 3, "again": 1}


def test_an_outdated_delivery_is_not_taken(tmp_path: Path) -> None:
    write(tmp_path, txn=("w", 4))
    found = again(tmp_path, step=1, delivery=3)
    assert isinstance(found, AlreadyApplied)
    assert found.transaction.version == 4
    assert versions(tmp_path) == {"w": 4, "again": None}


def test_a_delivery_that_is_outdated_while_it_commits_is_not_taken(tmp_path: Path) -> None:
    write(tmp_path, txn=("w", 3))

    class Meanwhile:
        done = False

        def on_phase(self, phase: CommitPhase, version: int) -> None:
            if phase is CommitPhase.BEFORE_PUT and not self.done:
                self.done = True
                write(tmp_path, txn=("w", 4))

    found = again(tmp_path, step=1, delivery=3, observer=Meanwhile())
    assert isinstance(found, AlreadyApplied)
    assert versions(tmp_path) == {"w": 4, "again": None}


def test_what_announces_the_work_has_neither_key_nor_delivery() -> None:
    properties = CommitProperties(txn=("a", 1), delivery=("w", 2), user_metadata="x")
    assert properties.without_key() == CommitProperties(user_metadata="x")


# ------------------------------------------------------------ who did it


def test_the_commit_that_carried_a_key_is_found_with_what_it_says(tmp_path: Path) -> None:
    for number in range(6):
        write(tmp_path, txn=(f"job {number}", 0), user_metadata=f'{{"run": "r{number}"}}')
    snapshot = latest(tmp_path)
    for number in range(6):
        found = find_applied_commit(snapshot.store, snapshot.transactions[f"job {number}"])
        assert found is not None
        assert (found.version, found.user_metadata) == (number, {"run": f"r{number}"})


@pytest.mark.parametrize("text", [None, "no JSON", "[1]"])
def test_a_commit_that_says_nothing_of_its_run_is_found_all_the_same(
    tmp_path: Path, text: str | None
) -> None:
    write(tmp_path, txn=("job", 0), user_metadata=text)
    found = find_applied_commit(LocalLogStore(tmp_path), SetTransaction(app_id="job", version=0))
    assert found is not None
    assert (found.version, found.user_metadata) == (0, {})


def test_a_commit_that_is_no_longer_in_the_log_is_not_found(tmp_path: Path) -> None:
    for number in range(3):
        write(tmp_path, txn=(f"job {number}", 0))
    PeerTable(tmp_path).create_checkpoint()
    (tmp_path / "_delta_log" / f"{0:020}.json").unlink()
    snapshot = latest(tmp_path)
    assert find_applied_commit(snapshot.store, snapshot.transactions["job 0"]) is None
