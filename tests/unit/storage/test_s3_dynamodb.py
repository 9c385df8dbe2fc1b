"""Commits through DynamoDB, step by step, with other writers and lost answers between the steps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from delta_core.clock import ManualClock
from delta_core.errors import (
    AmbiguousWriteError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
    StorePermissionError,
    UnsafeStoreError,
    WriteRefusedError,
)
from delta_core.storage.dynamodb_entries import EXPIRES_AFTER_SECONDS, DynamoDbEntries
from delta_core.storage.local import LocalLogStore
from delta_core.storage.s3_dynamodb import S3DynamoDbLogStore
from tests.support.fake_dynamodb import FakeDynamoDb, Item, client_error, lost_answer

NOW_SECONDS = 1_700_000_000


def name_of(version: int) -> str:
    return f"{version:020}.json"


def path_of(version: int) -> str:
    return f"_delta_log/{name_of(version)}"


class Place:
    """A table in a bucket and in DynamoDB; the bucket is a directory."""

    def __init__(self, root: Path) -> None:
        self.dynamo = FakeDynamoDb()
        self.objects = LocalLogStore(root)
        self.store = self.open()

    def open(self, spelling: str | None = None) -> S3DynamoDbLogStore:
        entries = DynamoDbEntries(
            table_name="delta_log",
            bucket="bucket",
            path="t",
            client_arguments={"region_name": "us-east-1"},
            clock=ManualClock(NOW_SECONDS * 1000),
            spelling=spelling,
        )
        return S3DynamoDbLogStore(self.objects, entries)

    def begun(self, version: int, data: bytes, *, complete: bool = False, scheme: str = "s3a") -> Item:
        """What another writer leaves behind that has taken a version and not written its file."""
        temp = f".tmp/{name_of(version)}.other"
        self.objects.put(f"_delta_log/{temp}", data)
        self.dynamo.put(
            {
                "tablePath": {"S": f"{scheme}://bucket/t"},
                "fileName": {"S": name_of(version)},
                "tempPath": {"S": temp},
                "complete": {"S": "true" if complete else "false"},
            }
        )
        return self.entry(version, scheme=scheme)

    def entry(self, version: int, *, scheme: str = "s3a") -> Item:
        return self.dynamo.items[f"{scheme}://bucket/t", name_of(version)]

    def has(self, path: str) -> bool:
        try:
            self.objects.head(path)
        except ObjectNotFoundError:
            return False
        return True

    def temporary(self) -> list[str]:
        return [info.path for info in self.objects.walk("_delta_log/.tmp")]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    place = Place(tmp_path / "t")
    monkeypatch.setattr("boto3.session.Session.client", lambda self, service, **options: place.dynamo)
    return place


def failing(operation: str, error: Exception, *, times: int = 1) -> Callable[[str], None]:
    """Raises at the first requests of an operation."""
    left = [error] * times

    def fail(asked: str) -> None:
        if asked == operation and left:
            raise left.pop()

    return fail


def test_a_commit_is_an_entry_and_a_file(place: Place) -> None:
    for version in range(3):
        place.store.put_if_absent(path_of(version), b"bytes %d" % version)
        entry = place.entry(version)
        assert place.objects.read(path_of(version)) == b"bytes %d" % version
        assert place.objects.read(f"_delta_log/{entry['tempPath']['S']}") == b"bytes %d" % version
        assert entry["tempPath"]["S"].startswith(f".tmp/{name_of(version)}.")
        assert entry["complete"] == {"S": "true"}
    assert [info.path for info in place.store.list_directory("_delta_log")] == [path_of(v) for v in range(3)]


def test_only_commits_have_entries(place: Place) -> None:
    for path in ("_delta_log/_last_checkpoint", f"_delta_log/{7:020}.checkpoint.parquet", "part.json"):
        place.store.put_if_absent(path, b"x")
        with pytest.raises(ObjectExistsError):
            place.store.put_if_absent(path, b"y")
        with pytest.raises(ObjectNotFoundError):
            place.store.read(f"{path}.not")
    assert place.dynamo.puts == []


def test_only_a_complete_entry_expires(place: Place) -> None:
    place.store.put_if_absent(path_of(0), b"x")
    taken, completed = place.dynamo.puts
    assert (taken["complete"], completed["complete"]) == ({"S": "false"}, {"S": "true"})
    assert "expireTime" not in taken
    assert completed["expireTime"] == {"N": str(NOW_SECONDS + EXPIRES_AFTER_SECONDS)}
    assert taken.items() <= (completed | {"complete": {"S": "false"}}).items()


def test_who_has_the_entry_has_the_version(place: Place) -> None:
    place.store.put_if_absent(path_of(0), b"zero")
    theirs = place.begun(1, b"theirs")
    with pytest.raises(ObjectExistsError, match="Another writer has the entry"):
        place.store.put_if_absent(path_of(1), b"mine")
    assert place.entry(1) == theirs
    assert place.store.read(path_of(1)) == b"theirs"
    assert len(place.temporary()) == 2, "the bytes of the refused commit are gone"


def test_a_version_that_is_there_is_not_tried(place: Place) -> None:
    place.objects.put(path_of(0), b"by a writer without DynamoDB")
    with pytest.raises(ObjectExistsError):
        place.store.put_if_absent(path_of(0), b"mine")
    assert (place.dynamo.puts, place.temporary()) == ([], [])


def test_a_writer_that_does_not_use_dynamodb_is_noticed(place: Place) -> None:
    place.dynamo.after = lambda operation: place.objects.put(path_of(0), b"foreign")
    with pytest.raises(ObjectExistsError, match="does not use DynamoDB"):
        place.store.put_if_absent(path_of(0), b"mine")
    assert place.objects.read(path_of(0)) == b"foreign"
    assert place.entry(0)["complete"] == {"S": "false"}


def test_a_commit_file_that_cannot_be_read_back_is_not_called_ours(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.dynamo.after = lambda operation: place.objects.put(path_of(0), b"foreign")

    def fail(self: LocalLogStore, path: str) -> bytes:
        raise StorageError("503")

    monkeypatch.setattr(LocalLogStore, "read", fail)
    with pytest.raises(AmbiguousWriteError, match="It is not known"):
        place.store.put_if_absent(path_of(0), b"mine")
    monkeypatch.undo()
    assert place.objects.read(path_of(0)) == b"foreign"


def test_a_read_back_that_fails_once_is_made_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.dynamo.after = lambda operation: place.objects.put(path_of(0), b"foreign")
    failures, read = [StorageError("503")], LocalLogStore.read

    def fail(self: LocalLogStore, path: str) -> bytes:
        if failures:
            raise failures.pop()
        return read(self, path)

    monkeypatch.setattr(LocalLogStore, "read", fail)
    with pytest.raises(ObjectExistsError, match="does not use DynamoDB"):
        place.store.put_if_absent(path_of(0), b"mine")


def test_the_same_bytes_are_there_already(place: Place) -> None:
    place.dynamo.after = lambda operation: place.objects.put(path_of(0), b"mine")
    place.store.put_if_absent(path_of(0), b"mine")
    assert place.entry(0)["complete"] == {"S": "true"}


def test_the_commit_before_is_finished_first(place: Place) -> None:
    place.begun(0, b"zero")
    place.store.put_if_absent(path_of(1), b"one")
    assert place.objects.read(path_of(0)) == b"zero"
    assert place.objects.read(path_of(1)) == b"one"
    assert place.entry(0)["complete"] == {"S": "true"}


@pytest.mark.parametrize("entry_before", [False, True])
def test_no_version_is_skipped(place: Place, entry_before: bool) -> None:
    if entry_before:
        place.begun(4, b"cleaned up", complete=True)
    before = place.temporary()
    with pytest.raises(WriteRefusedError, match="Version 5 cannot be written"):
        place.store.put_if_absent(path_of(5), b"five")
    assert place.temporary() == before
    assert not place.has(path_of(5))
    place.objects.put(path_of(4), b"four")
    place.store.put_if_absent(path_of(5), b"five")


def test_entries_of_an_old_table_are_refused(place: Place) -> None:
    place.begun(0, b"old", complete=True)
    with pytest.raises(WriteRefusedError, match="an earlier table at this location"):
        place.store.put_if_absent(path_of(0), b"new")
    assert not place.has(path_of(0))


@pytest.mark.parametrize("ask", ["read", "head", "open_whole", "list"])
def test_readers_finish_what_a_writer_left(place: Place, ask: str) -> None:
    place.begun(0, b"zero")
    match ask:
        case "read":
            assert place.store.read(path_of(0)) == b"zero"
        case "head":
            assert place.store.head(path_of(0)).size_bytes == 4
        case "open_whole":
            assert place.store.open_whole(path_of(0)).read() == b"zero"
        case _:
            assert [info.path for info in place.store.list_directory("_delta_log")] == [path_of(0)]
    assert place.objects.read(path_of(0)) == b"zero"
    assert place.entry(0)["complete"] == {"S": "true"}


def test_a_commit_file_that_is_there_needs_no_temporary_copy(place: Place) -> None:
    """Its entry was not completed, and something cleaned up the temporary files since."""
    item = place.begun(0, b"zero")
    place.objects.put(path_of(0), b"zero")
    place.objects.delete(f"_delta_log/{item['tempPath']['S']}")
    assert [info.path for info in place.store.list_directory("_delta_log")] == [path_of(0)]
    assert place.entry(0)["complete"] == {"S": "true"}
    place.store.put_if_absent(path_of(1), b"one")


def test_a_commit_whose_bytes_are_nowhere_is_named(place: Place) -> None:
    item = place.begun(0, b"zero")
    place.objects.delete(f"_delta_log/{item['tempPath']['S']}")
    for ask in (place.store.list_directory, lambda path: place.store.read(path_of(0))):
        with pytest.raises(StorageError, match=r"0\.json' cannot be completed") as refused:
            ask("_delta_log")
        assert not isinstance(refused.value, ObjectNotFoundError), "it would pass for a version that is free"
    assert place.entry(0)["complete"] == {"S": "false"}


def test_what_nobody_has_begun_is_not_there(place: Place) -> None:
    place.begun(1, b"cleaned up", complete=True)
    for version in (0, 1):
        with pytest.raises(ObjectNotFoundError):
            place.store.read(path_of(version))
        with pytest.raises(ObjectNotFoundError):
            place.store.head(path_of(version))
    assert place.store.list_directory("_delta_log") == []
    assert not place.has(path_of(1))


@pytest.mark.parametrize(
    "answer",
    [lost_answer(), client_error("InternalServerError"), client_error("ConditionalCheckFailedException")],
)
def test_an_entry_that_landed_is_ours_whatever_the_answer(place: Place, answer: Exception) -> None:
    place.dynamo.after = failing("put_item", answer)
    place.store.put_if_absent(path_of(0), b"mine")
    assert place.objects.read(path_of(0)) == b"mine"
    assert place.entry(0)["complete"] == {"S": "true"}


@pytest.mark.parametrize("silent", [False, True])
def test_an_unclear_entry_keeps_its_bytes(place: Place, silent: bool) -> None:
    asked = {"put_item": 1, "get_item": 9 if silent else 0}
    faults = [failing(operation, lost_answer(), times=times) for operation, times in asked.items()]
    place.objects.put(path_of(0), b"zero")
    place.store.list_directory("_delta_log")

    def before(operation: str) -> None:
        # The look at the entry of the version before is no part of the doubt.
        if len(place.temporary()):
            for fault in faults:
                fault(operation)

    place.dynamo.before = before
    with pytest.raises(AmbiguousWriteError, match="It is not known"):
        place.store.put_if_absent(path_of(1), b"mine")
    assert len(place.temporary()) == 1
    assert not place.has(path_of(1))


def test_a_taken_entry_that_nobody_shows_is_unclear(place: Place) -> None:
    """The word *taken* may be about the own request, so without a look it says nothing."""
    place.dynamo.after = failing("put_item", client_error("ConditionalCheckFailedException"))
    faults = failing("get_item", lost_answer())

    def before(operation: str) -> None:
        if place.dynamo.puts:
            faults(operation)

    place.dynamo.before = before
    with pytest.raises(AmbiguousWriteError, match="which writer created the entry"):
        place.store.put_if_absent(path_of(0), b"mine")
    assert len(place.temporary()) == 1
    assert place.store.read(path_of(0)) == b"mine", "it was ours"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("AccessDeniedException", StorePermissionError),
        ("UnrecognizedClientException", StorePermissionError),
        ("ResourceNotFoundException", WriteRefusedError),
        ("ValidationException", WriteRefusedError),
    ],
)
def test_a_refused_entry_leaves_nothing(place: Place, code: str, expected: type[StorageError]) -> None:
    place.dynamo.before = failing("put_item", client_error(code))
    with pytest.raises(expected):
        place.store.put_if_absent(path_of(0), b"mine")
    assert (place.dynamo.puts, place.temporary()) == ([], [])


class Full(LocalLogStore):
    """Takes no commit files."""

    def put_if_absent(self, path: str, data: bytes) -> None:
        raise StorageError("no space")


def test_a_commit_is_decided_by_its_entry(place: Place) -> None:
    """What fails after that is the next one's to do."""
    place.objects = Full(place.objects.root)
    place.open().put_if_absent(path_of(0), b"mine")
    assert place.entry(0)["complete"] == {"S": "false"}
    place.objects = LocalLogStore(place.objects.root)
    assert place.open().read(path_of(0)) == b"mine"


class Careless(LocalLogStore):
    """Knows that it ignores preconditions."""

    def put_if_absent(self, path: str, data: bytes) -> None:
        raise UnsafeStoreError("lets two writers create the same object")


def test_a_server_without_preconditions_has_commits_all_the_same(place: Place) -> None:
    place.objects = Careless(place.objects.root)
    store = place.open()
    store.put_if_absent(path_of(0), b"zero")
    assert (place.objects.read(path_of(0)), place.entry(0)["complete"]) == (b"zero", {"S": "true"})
    with pytest.raises(ObjectExistsError):
        store.put_if_absent(path_of(0), b"again")
    place.begun(1, b"by another")
    assert store.read(path_of(1)) == b"by another"


def test_a_writer_without_dynamodb_is_not_overwritten_there(place: Place) -> None:
    place.objects = Careless(place.objects.root)
    place.dynamo.after = lambda operation: place.objects.put(path_of(0), b"foreign")
    with pytest.raises(ObjectExistsError, match="does not use DynamoDB"):
        place.open().put_if_absent(path_of(0), b"mine")
    assert place.objects.read(path_of(0)) == b"foreign"


def test_a_note_that_fails_is_made_by_the_next(place: Place) -> None:
    lost = failing("put_item", lost_answer())

    def before(operation: str) -> None:
        if place.dynamo.puts:
            lost(operation)

    place.dynamo.before = before
    place.store.put_if_absent(path_of(0), b"zero")
    assert place.entry(0)["complete"] == {"S": "false"}
    place.store.put_if_absent(path_of(1), b"one")
    assert place.entry(0)["complete"] == {"S": "true"}


def test_entries_are_read_consistently(place: Place) -> None:
    for version in range(4):
        if version % 2:
            place.begun(version, b"by another")
        else:
            place.store.put_if_absent(path_of(version), b"mine")
    assert place.objects.read(path_of(1)) == b"by another"
    assert place.store.read(path_of(3)) == b"by another"


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n"])
def test_the_spelling_of_other_writers_is_used(place: Place, scheme: str) -> None:
    place.begun(0, b"zero", scheme=scheme)
    place.open().put_if_absent(path_of(1), b"one")
    assert place.entry(1, scheme=scheme)["complete"] == {"S": "true"}
    assert {path for path, _ in place.dynamo.items} == {f"{scheme}://bucket/t"}


def test_the_first_writer_spells_as_hadoop_does_and_an_option_says_otherwise(place: Place) -> None:
    place.store.put_if_absent(path_of(0), b"zero")
    place.objects.delete(path_of(0))
    place.open("s3").put_if_absent(path_of(0), b"again")
    assert {path for path, _ in place.dynamo.items} == {"s3a://bucket/t", "s3://bucket/t"}


def test_two_spellings_exclude_nobody_and_are_refused(place: Place) -> None:
    for scheme in ("s3", "s3n"):
        place.begun(0, b"zero", scheme=scheme)
    with pytest.raises(UnsafeStoreError, match="s3://bucket/t and s3n://bucket/t"):
        place.open().put_if_absent(path_of(0), b"mine")


def test_an_item_of_another_kind_is_named(place: Place) -> None:
    item = place.begun(0, b"zero")
    del item["complete"]
    with pytest.raises(StorageError, match="does not have delta-storage's layout"):
        place.store.read(path_of(0))
