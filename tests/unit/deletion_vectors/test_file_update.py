"""The two actions of a file whose vector changes."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.actions import AddFile
from delta_core.actions.json_codec import decode_commit, encode_commit
from delta_core.deletion_vectors.file_update import (
    count_records,
    physical_records,
    removed,
    update_deletion_vector,
    wide_statistics,
)
from delta_core.errors import InvalidTableError, MissingDataFileError, PathEscapeError
from delta_core.storage.local import LocalLogStore
from tests.support.stored_deletion_vectors import inline_descriptor

STATS = '{"numRecords":10,"minValues":{"d":0.10000000000000000055511151231257827},"nullCount":{"d":0}}'
FILE = AddFile(
    path="p=a%20b/x.parquet",
    partition_values={"p": "a b"},
    size_bytes=99,
    modification_time_ms=1234,
    stats=STATS,
    tags={"ZCUBE_ID": "z", "none": None},
    base_row_id=70,
    default_row_commit_version=3,
    clustering_provider="liquid",
)


def update(file: AddFile = FILE, rows: tuple[int, ...] = (1, 2), **options: object) -> AddFile:
    changed = update_deletion_vector(file, inline_descriptor(rows), deletion_timestamp_ms=5, **options)
    assert changed.add is not None
    return changed.add


def test_a_file_keeps_everything_but_its_vector_and_its_bounds() -> None:
    dv = inline_descriptor([1, 2])
    changed = update_deletion_vector(FILE, dv, deletion_timestamp_ms=77)
    assert changed.add is not None
    assert dataclasses.replace(changed.add, stats=STATS, deletion_vector=None) == FILE
    assert changed.add.deletion_vector == dv
    assert changed.add.partition_values == {"p": "a b"}
    assert changed.add.tags == FILE.tags
    assert json.loads(changed.add.stats or "") == json.loads(STATS) | {"tightBounds": False}
    remove = changed.remove
    assert (remove.path, remove.deletion_timestamp_ms, remove.data_change) == (FILE.path, 77, True)
    assert (remove.deletion_vector, remove.stats, remove.size_bytes) == (None, STATS, 99)
    assert (remove.base_row_id, remove.default_row_commit_version) == (70, 3)
    assert (remove.partition_values, remove.tags, remove.extended_file_metadata) == (
        {"p": "a b"},
        FILE.tags,
        True,
    )


def test_the_remove_names_the_old_vector() -> None:
    once = update()
    twice = update_deletion_vector(once, inline_descriptor([1, 2, 9]), deletion_timestamp_ms=6)
    assert twice.remove.deletion_vector == once.deletion_vector
    assert twice.add is not None
    assert twice.add.stats == once.stats
    assert removed(once, deletion_timestamp_ms=8) == dataclasses.replace(
        twice.remove, deletion_timestamp_ms=8
    )


def test_rows_that_only_move() -> None:
    changed = update_deletion_vector(FILE, inline_descriptor([1]), deletion_timestamp_ms=5, data_change=False)
    assert changed.add is not None
    assert (changed.add.data_change, changed.remove.data_change) == (False, False)
    assert update(dataclasses.replace(FILE, data_change=False)).data_change


def test_the_actions_survive_the_log() -> None:
    changed = update_deletion_vector(update(), inline_descriptor([1, 2, 9]), deletion_timestamp_ms=6)
    assert changed.add is not None
    actions = [changed.remove, changed.add]
    assert decode_commit(encode_commit(actions), path="0.json") == actions


@pytest.mark.parametrize(
    "stats",
    [
        None,
        "",
        "[]",
        "{",
        "null",
        "{}",
        '{"numRecords":null}',
        '{"numRecords":true}',
        '{"numRecords":-1}',
        '{"numRecords":1.0}',
        '{"numRecords":"10"}',
        "[" * 100_000,
    ],
)
def test_a_number_of_rows_that_nobody_says(stats: str | None) -> None:
    file = dataclasses.replace(FILE, stats=stats)
    assert physical_records(file) is None
    with pytest.raises(InvalidTableError, match="records no row count"):
        update(file)
    wide = json.loads(update(file, num_records=10).stats or "")
    assert (wide["numRecords"], wide["tightBounds"]) == (10, False)


@pytest.mark.parametrize(
    ("rows", "options", "said"),
    [
        ((1, 2), {"num_records": 11}, "statistics record 10 rows, its footer 11"),
        (tuple(range(10)), {}, "deletes 10 of its 10 rows"),
        (tuple(range(11)), {}, "deletes 11 of its 10 rows"),
    ],
)
def test_numbers_that_contradict_each_other(
    rows: tuple[int, ...], options: dict[str, int], said: str
) -> None:
    with pytest.raises(InvalidTableError, match=said):
        update(FILE, rows, **options)


def test_a_vector_that_forgets_rows() -> None:
    once = update(FILE, (1, 2))
    with pytest.raises(InvalidTableError, match="has this deletion vector already"):
        update(once, (1, 2))
    with pytest.raises(InvalidTableError, match="deletes 2 rows, the old one 2"):
        update(once, (3, 4))


@pytest.mark.parametrize(
    ("stats", "expected"),
    [
        (STATS, STATS[:-1] + ',"tightBounds":false}'),
        ('{"tightBounds":true,"numRecords":3}', '{"tightBounds":false,"numRecords":10}'),
        (' { "a" : [ 1 , {"b":"}"} ] , "numRecords" : 3 } ', '{"a":[ 1 , {"b":"}"} ],'),
        ('{"minValues":{"ü":1e400,"n":NaN}}', '{"minValues":{"ü":1e400,"n":NaN},'),
        ("{}", '{"numRecords":10,"tightBounds":false}'),
        (None, '{"numRecords":10,"tightBounds":false}'),
    ],
)
def test_statistics_are_kept_letter_by_letter(stats: str | None, expected: str) -> None:
    wide = wide_statistics(stats, 10)
    assert wide.startswith(expected)
    assert json.loads(wide)["numRecords"] == 10
    assert json.loads(wide)["tightBounds"] is False


def test_rows_are_counted_in_the_footer(tmp_path: Path) -> None:
    store = LocalLogStore(tmp_path)
    (tmp_path / "p=a b").mkdir()
    pq.write_table(pa.table({"x": range(7)}), tmp_path / "p=a b" / "x.parquet", row_group_size=3)
    assert count_records(store, FILE) == 7
    (tmp_path / "p=a b" / "x.parquet").write_bytes(b"no parquet at all, this")
    with pytest.raises(InvalidTableError, match="does not end as a Parquet file"):
        count_records(store, FILE)
    with pytest.raises(MissingDataFileError):
        count_records(store, dataclasses.replace(FILE, path="gone.parquet"))
    with pytest.raises(PathEscapeError):
        count_records(store, dataclasses.replace(FILE, path="../x.parquet"))
