"""Where tables are killed: a directory, an object store, and S3 whose commits DynamoDB decides.

Each is a folder, so that what a killed process has done outlives it. The object store is the library's own
code on `obstore`'s directory client; DynamoDB is a folder with a file for each item.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import quote

from botocore.exceptions import ClientError
from obstore import store as obstores

from delta_core.clock import SYSTEM_CLOCK
from delta_core.storage import open as opening
from delta_core.storage.dynamodb_entries import DEFAULT_TABLE, DynamoDbEntries
from delta_core.storage.local import LocalLogStore
from delta_core.storage.log_store import LogStore
from delta_core.storage.object_store import Clients, ObjectLogStore
from delta_core.storage.remote_uri import parse_remote_uri
from delta_core.storage.s3_dynamodb import S3DynamoDbLogStore
from tests.concurrency.kill_points.steps import Steps, step_through_calls, step_through_store

BUCKET, TABLE, SOURCE = "objects", "table", "source"
DECIDES = "if absent"
_REMOTE_ROOT = f"s3://{BUCKET}"


class Place(StrEnum):
    """A kind of store."""

    LOCAL = "local"
    OBJECTS = "object store"
    DYNAMODB = "s3+dynamodb"


def table_root(folder: Path, name: str = TABLE) -> Path:
    """The directory that holds a table's objects; the same in every place."""
    return folder / BUCKET / name


def table_uri(place: Place, folder: Path, name: str = TABLE) -> str:
    """A table's URI."""
    return str(table_root(folder, name)) if place is Place.LOCAL else f"{_REMOTE_ROOT}/{name}"


def store_of(place: Place, folder: Path, name: str = TABLE) -> LogStore:
    """The store of a table in a folder: of the one that is worked on, or of what it is a clone of."""
    if place is Place.LOCAL:
        return LocalLogStore(table_root(folder, name))

    def build() -> tuple[obstores.LocalStore, obstores.LocalStore]:
        client = obstores.LocalStore(prefix=str(folder / BUCKET), mkdir=True)
        return client, client

    objects = ObjectLogStore(
        parse_remote_uri(table_uri(place, folder, name)),
        Clients(build, proved=True, place="a folder"),
    )
    if place is Place.OBJECTS:
        return objects
    entries = DynamoDbEntries(
        table_name=DEFAULT_TABLE, bucket=BUCKET, path=name, client_arguments={}, clock=SYSTEM_CLOCK
    )
    table = EntriesInFolder(folder / "entries")
    entries._made = table, table
    return S3DynamoDbLogStore(objects, entries)


def open_in_folder(place: Place, folder: Path) -> None:
    """Let every URI that the process opens lead to one of the folder's tables."""
    names = {table_uri(place, folder, name): name for name in (TABLE, SOURCE)}

    def open_it(uri: str, options: Mapping[str, str], clock: object) -> LogStore:
        assert uri in names, f"the process opens {uri}"
        return store_of(place, folder, names[uri])

    mock.patch.dict(opening._OPENERS, dict.fromkeys((None, "file", "s3"), open_it)).start()
    # What a user's other processes keep is of no account here.
    mock.patch.object(opening, "with_shared_cache", lambda store: store).start()


def step_through_place(place: Place, steps: Steps) -> None:
    """Make the store's requests moments."""
    step_through_store(LocalLogStore if place is Place.LOCAL else ObjectLogStore, steps)
    if place is Place.DYNAMODB:
        step_through_calls(EntriesInFolder, ("get_item", "put_item", "query"), steps, about=_entry_of)


def _entry_of(request: Mapping[str, Any]) -> str:
    """What a request to DynamoDB is about; the one that decides has a condition."""
    key = request.get("Key") or request.get("Item") or {}
    name = key["fileName"]["S"] if key else "the newest entry"
    return f"{name}, {DECIDES}" if "ConditionExpression" in request else name


class EntriesInFolder:
    """As much of DynamoDB's client as the entries need; an item is a file that appears whole."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get_item(self, *, Key: Mapping[str, Any], **ignored: Any) -> Mapping[str, Any]:  # noqa: N803
        path = self._path(Key)
        return {"Item": json.loads(path.read_text())} if path.exists() else {}

    def put_item(self, *, Item: Mapping[str, Any], ConditionExpression: str = "", **ignored: Any) -> None:  # noqa: N803
        path = self._path(Item)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._folder / f"writing-{uuid.uuid4()}"
        temporary.write_text(json.dumps(Item))
        if not ConditionExpression:
            os.replace(temporary, path)
            return
        try:
            os.link(temporary, path)
        except FileExistsError:
            code = {"Error": {"Code": "ConditionalCheckFailedException"}}
            raise ClientError(code, "PutItem") from None
        finally:
            os.unlink(temporary)

    def query(self, *, ExpressionAttributeValues: Mapping[str, Any], **ignored: Any) -> Mapping[str, Any]:  # noqa: N803
        items = sorted(self._items(ExpressionAttributeValues[":path"]["S"]).glob("*.json"))
        return {"Items": [json.loads(items[-1].read_text())] if items else []}

    def _items(self, table_path: str) -> Path:
        return self._folder / quote(table_path, safe="")

    def _path(self, key: Mapping[str, Any]) -> Path:
        return self._items(key["tablePath"]["S"]) / key["fileName"]["S"]
