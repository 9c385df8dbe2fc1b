"""Live files become actions that say all that was known of them."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from delta_core.actions import AddFile, DeletionVectorDescriptor, RemoveFile
from delta_core.actions.json_codec import action_to_json
from delta_core.replay.tail import live_batch
from delta_core.transaction.file_actions import add_actions, num_records, remove_actions

DELETION_VECTOR = DeletionVectorDescriptor(
    storage_type="u", path_or_inline_dv="ab", offset=4, size_in_bytes=40, cardinality=2
)
WHOLE = AddFile(
    path="p=a%20b/x",
    partition_values={"p": "a b", "q": None},
    size_bytes=123,
    modification_time_ms=456,
    data_change=False,
    stats='{"numRecords":7}',
    tags={"t": "1", "none": None},
    deletion_vector=DELETION_VECTOR,
    base_row_id=70,
    default_row_commit_version=3,
    clustering_provider="liquid",
)
BARE = AddFile(path="y", size_bytes=0, modification_time_ms=0, data_change=False)


def _rows(*adds: AddFile) -> pa.Table:
    return pa.Table.from_batches([live_batch(action_to_json(add)["add"] for add in adds)])


def test_an_added_file_is_what_it_was() -> None:
    assert list(add_actions(_rows(WHOLE, BARE), data_change=False)) == [WHOLE, BARE]
    changed = list(add_actions(_rows(WHOLE), data_change=True))
    assert changed == [replace(WHOLE, data_change=True)]


def test_a_removed_file_is_named_with_all_that_finds_it() -> None:
    whole, bare = remove_actions(_rows(WHOLE, BARE), deletion_timestamp_ms=99)
    assert whole == RemoveFile(
        path=WHOLE.path,
        deletion_timestamp_ms=99,
        data_change=True,
        extended_file_metadata=True,
        partition_values=WHOLE.partition_values,
        size_bytes=123,
        tags=WHOLE.tags,
        deletion_vector=DELETION_VECTOR,
        base_row_id=70,
        default_row_commit_version=3,
    )
    assert (bare.path, bare.partition_values, bare.deletion_vector) == ("y", {}, None)
    (rearranged,) = remove_actions(_rows(WHOLE), deletion_timestamp_ms=99, data_change=False)
    assert rearranged == replace(whole, data_change=False)


def test_some_columns_are_enough_to_remove() -> None:
    files = _rows(WHOLE).select(["path", "deletion_vector"])
    (action,) = remove_actions(files, deletion_timestamp_ms=1)
    assert (action.path, action.deletion_vector, action.size_bytes) == (WHOLE.path, DELETION_VECTOR, None)
    assert (action.partition_values, action.tags) == ({}, None)


def test_many_files() -> None:
    adds = [replace(BARE, path=f"f{number}") for number in range(20_000)]
    files = _rows(*adds)
    assert [action.path for action in add_actions(files, data_change=False)] == [a.path for a in adds]
    removes = remove_actions(files, deletion_timestamp_ms=1)
    assert [action.path for action in removes] == [a.path for a in adds]


@pytest.mark.parametrize(
    ("stats", "dv", "rows"),
    [
        ('{"numRecords":7}', None, 7),
        ('{"numRecords":7}', DELETION_VECTOR, 5),
        ('{"numRecords":0}', None, 0),
        ('{"numRecords":"7"}', None, None),
        ("{}", DELETION_VECTOR, None),
        ("[7]", None, None),
        ("{", None, None),
        (None, DELETION_VECTOR, None),
    ],
)
def test_rows_of_a_file(stats: str | None, dv: DeletionVectorDescriptor | None, rows: int | None) -> None:
    assert num_records(replace(BARE, stats=stats, deletion_vector=dv)) == rows
