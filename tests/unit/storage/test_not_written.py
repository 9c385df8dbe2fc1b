"""What a store calls not written: all before the step that decides, and nothing after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_core.clock import ManualClock
from delta_core.errors import (
    AmbiguousWriteError,
    NotWrittenError,
    ObjectExistsError,
    StorageError,
    StorePermissionError,
)
from delta_core.leases.lease_files import LeaseFiles, LeaseRecord
from delta_core.storage.local import LocalLogStore
from tests.support.fake_dynamodb import client_error, lost_answer
from tests.support.faulty_store import FaultyStore, PutFault
from tests.unit.storage.test_s3_dynamodb import Place, path_of

THROTTLED = "ProvisionedThroughputExceededException"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    place = Place(tmp_path)
    monkeypatch.setattr(
        "delta_core.storage.dynamodb_entries.DynamoDbEntries._clients",
        lambda entries: (place.dynamo, place.dynamo),
    )
    return place


def _refuse(place: Place, code: str, *, operation: str) -> None:
    def before(asked: str) -> None:
        if asked == operation:
            raise client_error(code)

    place.dynamo.before = before


@pytest.mark.parametrize("operation", ["query", "get_item"])
def test_before_the_entry_is_asked_for_nothing_is_in_doubt(place: Place, operation: str) -> None:
    _refuse(place, THROTTLED, operation=operation)
    with pytest.raises(NotWrittenError, match=THROTTLED):
        place.store.put_if_absent(path_of(0), b"mine")
    place.dynamo.before = lambda asked: None
    place.store.put_if_absent(path_of(0), b"mine")


def test_the_bytes_that_cannot_be_put_are_no_commit(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: str, data: bytes) -> None:
        raise AmbiguousWriteError("503")

    monkeypatch.setattr(place.objects, "put", fail)
    with pytest.raises(NotWrittenError, match="503"):
        place.store.put_if_absent(path_of(0), b"mine")
    assert place.dynamo.items == {}


def test_another_s_commit_that_cannot_be_finished_leaves_no_doubt_about_ours(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.begun(0, b"theirs")

    def fail(path: str, data: bytes) -> None:
        raise AmbiguousWriteError("503")

    monkeypatch.setattr(place.objects, "put_if_absent", fail)
    with pytest.raises(NotWrittenError, match="503"):
        place.store.put_if_absent(path_of(1), b"mine")


@pytest.mark.parametrize("code", [THROTTLED, "InternalServerError"])
def test_an_entry_that_was_asked_for_stays_in_doubt(place: Place, code: str) -> None:
    _refuse(place, code, operation="put_item")
    with pytest.raises(AmbiguousWriteError):
        place.store.put_if_absent(path_of(0), b"mine")


@pytest.mark.parametrize(
    "code", ["ExpiredTokenException", "InvalidSignatureException", "IncompleteSignatureException"]
)
@pytest.mark.parametrize("operation", ["query", "put_item"])
def test_keys_that_do_not_hold_are_a_refusal(place: Place, code: str, operation: str) -> None:
    _refuse(place, code, operation=operation)
    with pytest.raises(StorePermissionError, match=code):
        place.store.put_if_absent(path_of(0), b"mine")
    assert place.dynamo.items == {}


def test_a_version_that_is_there_is_taken(place: Place) -> None:
    place.store.put_if_absent(path_of(0), b"mine")
    with pytest.raises(ObjectExistsError):
        place.store.put_if_absent(path_of(0), b"another")


def test_what_fails_once_it_is_decided_is_a_commit(place: Place) -> None:
    def after(asked: str) -> None:
        if asked == "put_item" and len(place.dynamo.puts) == 2:
            raise lost_answer()

    place.dynamo.after = after
    place.store.put_if_absent(path_of(0), b"mine")
    assert place.store.read(path_of(0)) == b"mine"


@pytest.mark.parametrize(
    ("faults", "kind"),
    [
        ([PutFault.NOT_WRITTEN] * 99, NotWrittenError),
        ([PutFault.NOT_WRITTEN, PutFault.CONFLICT_409, *[PutFault.NOT_WRITTEN] * 99], AmbiguousWriteError),
        ([PutFault.NOT_WRITTEN, PutFault.DROP_REQUEST, *[PutFault.NOT_WRITTEN] * 99], AmbiguousWriteError),
    ],
)
def test_a_lease_knows_what_it_did_not_write(
    tmp_path: Path, faults: list[PutFault], kind: type[StorageError]
) -> None:
    store = FaultyStore(LocalLogStore(tmp_path))
    store.puts = list(faults)
    files = LeaseFiles(store=store, directory="_deltaward/lease", clock=ManualClock(1))
    record = LeaseRecord(fence=1, holder="h", token="t", nonce="n", ttl_ms=1000)
    with pytest.raises(StorageError) as caught:
        files.create(1, record)
    assert type(caught.value) is kind
    store.puts = [PutFault.NOT_WRITTEN]
    assert files.create(1, record)
