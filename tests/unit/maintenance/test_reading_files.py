"""Reading many files side by side: in order, whole, and with the failing file named."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.errors import InvalidTableError, MissingDataFileError
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.maintenance.rewriting.reading import read_files
from delta_core.storage.local import LocalLogStore

MANY_BYTES = 64 << 20


@pytest.fixture
def store(tmp_path: Path) -> LocalLogStore:
    return LocalLogStore(tmp_path)


def written(
    store: LocalLogStore, count: int, *, rows: int = 5, row_group_size: int | None = None
) -> list[str]:
    paths = [f"{number:03}.parquet" for number in range(count)]
    for number, path in enumerate(paths):
        table = pa.table({"i": range(number * rows, (number + 1) * rows), "s": [f"text {number}"] * rows})
        pq.write_table(table, store.root / path, row_group_size=row_group_size)
    return paths


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_rows_come_in_the_order_of_the_files(store: LocalLogStore, threads: int) -> None:
    paths = written(store, 60)
    found = list(read_files(store, paths, threads=threads, max_bytes=MANY_BYTES))
    assert [path for path, _ in found] == paths
    assert pa.concat_tables(table for _, table in found)["i"].to_pylist() == list(range(300))


@pytest.mark.parametrize("threads", [1, 3])
def test_large_files_come_in_parts_between_the_small_ones(store: LocalLogStore, threads: int) -> None:
    paths = written(store, 9)
    large = pa.table({"i": range(5_000), "s": [f"{number:0200}" for number in range(5_000)]})
    pq.write_table(large, store.root / paths[4], row_group_size=1_000)
    found = list(read_files(store, paths, threads=threads, max_bytes=400_000))
    assert [path for path, _ in found if path != paths[4]] == [path for path in paths if path != paths[4]]
    parts = [table for path, table in found if path == paths[4]]
    assert len(parts) == 5
    assert pa.concat_tables(parts).equals(large)
    places = [place for place, (path, _) in enumerate(found) if path == paths[4]]
    assert places == [4, 5, 6, 7, 8]


@pytest.mark.parametrize("threads", [1, 4])
def test_a_missing_file_and_a_damaged_one_are_named(store: LocalLogStore, threads: int) -> None:
    paths = written(store, 30)
    (store.root / paths[17]).write_bytes(b"PAR1 nothing of the kind PAR1")
    with pytest.raises(InvalidTableError, match=r"017\.parquet"):
        list(read_files(store, paths, threads=threads, max_bytes=MANY_BYTES))
    (store.root / paths[11]).unlink()
    with pytest.raises(MissingDataFileError, match=r"011\.parquet"):
        list(read_files(store, paths, threads=threads, max_bytes=MANY_BYTES))


def test_no_more_is_read_ahead_than_the_window(store: LocalLogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    original = LocalLogStore.open_input

    def counting(self: LocalLogStore, path: str) -> pa.NativeFile:
        opened.append(path)
        return original(self, path)

    monkeypatch.setattr(LocalLogStore, "open_input", counting)
    paths = written(store, 100)
    files = read_files(store, paths, threads=2, max_bytes=MANY_BYTES)
    next(files)
    files.close()
    assert 1 <= len(opened) <= 17


def test_a_reader_that_is_given_up_leaves_no_thread(store: LocalLogStore) -> None:
    files = read_files(store, written(store, 40), threads=3, max_bytes=MANY_BYTES)
    next(files)
    files.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("deltaward-file")]


@pytest.mark.parametrize(
    ("workers", "tasks", "cores"), [(2, 1, 2), (2, 2, 1), (2, 9, 1), (8, 3, 3), (1, 1, 1), (4, 0, 4)]
)
def test_inline_workers_are_shared_out(workers: int, tasks: int, cores: int) -> None:
    assert InlineExecutor(workers).cores_per_task(tasks) == cores


@pytest.mark.parametrize("threads", [1, 3])
def test_a_footer_that_lost_a_row_group_is_no_smaller_file(store: LocalLogStore, threads: int) -> None:
    """Its rows would be gone for good once the file is rewritten."""
    paths = written(store, 6, rows=2)
    victim = store.root / paths[3]
    data = victim.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    # Thrift: field 3, the number of rows, is 2; a list, of the row groups, follows.
    head, rows, groups = data[start:].partition(b"\x16\x04\x19")
    assert rows
    victim.write_bytes(data[:start] + head + b"\x16\x08\x19" + groups)
    assert pq.read_metadata(victim).num_rows == 4
    assert pq.read_table(victim).num_rows == 2
    with pytest.raises(InvalidTableError, match=f"{paths[3]}.*have 2 rows, but the footer records 4"):
        list(read_files(store, paths, threads=threads, max_bytes=MANY_BYTES))
