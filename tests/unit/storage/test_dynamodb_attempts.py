"""How often boto3 sends what: a version is taken in one attempt, so that its answer is about that attempt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from delta_core.clock import SYSTEM_CLOCK
from delta_core.errors import AmbiguousWriteError
from delta_core.storage.dynamodb_entries import DynamoDbEntries, Entry
from delta_core.storage.local import LocalLogStore
from delta_core.storage.s3_dynamodb import S3DynamoDbLogStore
from tests.support.fake_dynamodb import FakeDynamoDb, client_error, lost_answer, served

FIRST = "_delta_log/00000000000000000000.json"
KEYS = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": "us-east-1"}


@pytest.fixture
def dynamo() -> FakeDynamoDb:
    return FakeDynamoDb()


@pytest.fixture
def entries(dynamo: FakeDynamoDb) -> Iterator[DynamoDbEntries]:
    with served(dynamo) as url:
        yield DynamoDbEntries(
            table_name="delta_log",
            bucket="bucket",
            path="t",
            client_arguments={**KEYS, "endpoint_url": url},
            clock=SYSTEM_CLOCK,
        )


def test_a_version_is_taken_in_one_attempt(
    tmp_path: Path, dynamo: FakeDynamoDb, entries: DynamoDbEntries
) -> None:
    """It lands, the answer is lost, and whoever asks again is refused: it is ours, with its bytes."""
    sent: list[str] = []

    def refuse_a_second(operation: str) -> None:
        sent.append(operation)
        if sent[-2:] == ["put_item", "put_item"]:
            raise client_error("UnrecognizedClientException")

    def lose_the_first(operation: str) -> None:
        if len(dynamo.puts) == 1:
            raise lost_answer()

    objects = LocalLogStore(tmp_path)
    store = S3DynamoDbLogStore(objects, entries)
    dynamo.before, dynamo.after = refuse_a_second, lose_the_first
    store.put_if_absent(FIRST, b"mine")
    assert store.read(FIRST) == b"mine"
    assert [item["complete"]["S"] for item in dynamo.puts] == ["false", "true"]


def test_a_version_whose_request_is_lost_is_asked_for_once(
    tmp_path: Path, dynamo: FakeDynamoDb, entries: DynamoDbEntries
) -> None:
    sent = []

    def lost(operation: str) -> None:
        sent.append(operation)
        if operation == "put_item":
            raise lost_answer()

    dynamo.before = lost
    objects = LocalLogStore(tmp_path)
    with pytest.raises(AmbiguousWriteError):
        S3DynamoDbLogStore(objects, entries).put_if_absent(FIRST, b"mine")
    assert sent.count("put_item") == 1
    assert [path for info in objects.walk() if "/.tmp/" in (path := info.path)], "its bytes are kept"


def test_what_may_be_done_twice_is_tried_again(dynamo: FakeDynamoDb, entries: DynamoDbEntries) -> None:
    entry = Entry(file_name="0.json", temp_path=".tmp/0", complete=False)
    entries.create(entry)
    losses = [lost_answer() for _ in range(2)]

    def lost(operation: str) -> None:
        if losses:
            raise losses.pop()

    dynamo.before = lost
    entries.complete(entry)
    found = entries.get("0.json")
    assert found is not None
    assert found.complete
