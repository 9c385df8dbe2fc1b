"""Writers that create one table at the same moment, decided in DynamoDB."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_core.errors import ObjectExistsError, WriteRefusedError
from delta_core.storage.dynamodb_entries import DynamoDbEntries, Entry
from delta_core.storage.local import LocalLogStore
from delta_core.storage.s3_dynamodb import S3DynamoDbLogStore

FIRST = "_delta_log/00000000000000000000.json"


class _EntriesOfAnother(DynamoDbEntries):
    """The entry of version 0 is complete; what completes it, the file, comes when the entry is read."""

    def __init__(self, objects: LocalLogStore, *, writes_the_file: bool) -> None:
        self._objects = objects
        self._writes_the_file = writes_the_file

    def get(self, file_name: str) -> Entry | None:
        if self._writes_the_file:
            self._objects.put_if_absent(FIRST, b"another's")
        return Entry(file_name=file_name, temp_path=".tmp/0.another", complete=True)


@pytest.mark.parametrize("landed", [True, False])
def test_a_creator_that_came_in_between_is_a_winner_and_not_an_old_table(
    tmp_path: Path, landed: bool
) -> None:
    objects = LocalLogStore(tmp_path)
    store = S3DynamoDbLogStore(objects, _EntriesOfAnother(objects, writes_the_file=landed))
    with pytest.raises(ObjectExistsError if landed else WriteRefusedError):
        store.put_if_absent(FIRST, b"mine")
    assert [info.path for info in objects.walk()] == ([FIRST] if landed else [])
