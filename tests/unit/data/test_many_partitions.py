"""A write of many partitions: threads close its files, and what goes wrong there leaves nothing behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.data.file_writer import CLOSING_THREADS, FEW_FILES, MAX_OPEN_FILES
from delta_core.errors import StorageError
from delta_core.storage.local import LocalLogStore

MANY = MAX_OPEN_FILES + 4 * CLOSING_THREADS


def rows(partitions: int) -> pa.Table:
    return pa.table({"p": [f"k{number}" for number in range(partitions)], "v": range(partitions)})


@pytest.fixture
def closing_threads(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of the threads that have opened a data file."""
    seen: set[str] = set()
    original = LocalLogStore.open_output

    @contextmanager
    def open_output(store: LocalLogStore, path: str) -> Iterator[pa.NativeFile]:
        seen.add(threading.current_thread().name.rstrip("0123456789_"))
        with original(store, path) as sink:
            yield sink

    monkeypatch.setattr(LocalLogStore, "open_output", open_output)
    return seen


def data_files(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file() and "_delta_log" not in path.parts]


def test_each_partition_gets_its_rows_in_one_file(tmp_path: Path, closing_threads: set[str]) -> None:
    write_deltalake(tmp_path, rows(MANY), partition_by=["p"])
    assert "deltaward-write" in closing_threads
    table = DeltaTable(tmp_path)
    found = table.to_pyarrow_table().to_pylist()
    assert sorted(found, key=lambda row: row["v"]) == rows(MANY).to_pylist()
    assert len(data_files(tmp_path)) == MANY


def test_rows_of_a_partition_that_come_after_others_get_another_file(tmp_path: Path) -> None:
    batches = [batch for _ in range(2) for batch in rows(MANY).to_batches(max_chunksize=MANY)]
    write_deltalake(
        tmp_path, pa.RecordBatchReader.from_batches(batches[0].schema, batches), partition_by=["p"]
    )
    found = DeltaTable(tmp_path).to_pyarrow_table()
    assert sorted(found["v"].to_pylist()) == sorted([*range(MANY), *range(MANY)])


def test_few_files_are_closed_without_threads(tmp_path: Path, closing_threads: set[str]) -> None:
    write_deltalake(tmp_path, rows(FEW_FILES), partition_by=["p"])
    assert closing_threads == {threading.current_thread().name}


@pytest.mark.parametrize("broken", [0, FEW_FILES, FEW_FILES + 1, MANY // 2, MANY - 1])
def test_a_file_that_cannot_be_written_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: int
) -> None:
    write_deltalake(tmp_path, rows(1), partition_by=["p"])
    before = sorted(data_files(tmp_path))
    original = LocalLogStore.open_output
    opened = iter(range(MANY))

    @contextmanager
    def open_output(store: LocalLogStore, path: str) -> Iterator[pa.NativeFile]:
        with original(store, path) as sink:
            yield sink
            if next(opened) == broken:
                raise StorageError("The disk is full.")

    monkeypatch.setattr(LocalLogStore, "open_output", open_output)
    with pytest.raises(StorageError, match="The disk is full"):
        write_deltalake(tmp_path, rows(MANY), mode="append")
    assert sorted(data_files(tmp_path)) == before
    assert DeltaTable(tmp_path).version() == 0
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("deltaward-write")]
