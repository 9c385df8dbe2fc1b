"""What a reader may leave out, by the log alone."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from demo.checks.skipping import answer
from demo.table_reader import TableReader


@pytest.fixture
def table(tmp_path: Path) -> TableReader:
    for names in (["a", "b"], ["c", "d"], ["b", "c"]):
        for month in (1, 2):
            rows = pa.table({"month": [month] * 2, "name": names, "value": [1, 2]})
            write_deltalake(tmp_path / "t", rows, mode="append", partition_by=["month"])
    return TableReader(path=tmp_path / "t")


@pytest.mark.parametrize(
    ("query", "files", "rows"),
    [
        ({"month": 1, "name": "a"}, (1, 3), 1),
        ({"name": "a"}, (2, 6), 2),
        ({"name": "b"}, (4, 6), 4),
        ({"month": 2}, (3, 3), 6),
        ({"name": "z"}, (0, 6), 0),
        ({"month": 2, "name": "b", "value": 2}, (2, 3), 1),
    ],
)
def test_files_of_the_named_partitions_are_left_out_by_minimum_and_maximum(
    table: TableReader, query: dict, files: tuple[int, int], rows: int
) -> None:
    found = answer(table, table.latest_version, query)
    assert (found.files_read, found.files_total) == files
    assert found.rows_found == found.rows_expected == rows
    assert found.share_skipped == pytest.approx(1 - files[0] / files[1])


def test_an_answer_tells_what_is_left_to_read(table: TableReader) -> None:
    found = answer(table, table.latest_version, {"month": 1, "name": "a"})
    assert found.query == "month = 1 AND name = 'a'"
    assert found.skipped == f"2 of 3 files skipped (67%), {found.bytes_read:,} bytes left to read"
