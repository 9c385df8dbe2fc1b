"""The task function of compaction, which rewrites one bin; with Arrow only, importable on any worker."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa

from delta_core.execution.executor import JsonObject
from delta_core.maintenance.rewriting.layout import FileLayout
from delta_core.maintenance.rewriting.reading import read_ahead, read_files
from delta_core.maintenance.rewriting.sources import SourceFile, SourceRows
from delta_core.maintenance.rewriting.writing import ROW_GROUP_ROWS, write_file

READ_BYTES = 192 << 20
"""Most bytes that one read decodes, and most bytes of all files that are read ahead."""

GATHER_BYTES = 32 << 20
"""Size at which a batch of collected rows is written. A small batch is faster, because the allocator reuses
its memory for the next batch: fresh pages from the kernel cost more than decoding into them
(docs/adr/2026-11-21-compaction-threads.md)."""

TASK_MEMORY_BYTES = 4 * READ_BYTES
"""Most memory of one task: files that are read ahead, and rows that are collected, queued and written."""


def rewrite_bin(task: JsonObject) -> JsonObject:
    """Write the rows of the task's files, in order, as one new file.

    Memory is bounded by two batches of rows: one is read while the other is written. The new file appears
    complete or not at all.

    Args:
        task: made by `compaction_task`.

    Returns:
        `path` (as in the log), `size_bytes`, `modification_time_ms`, `stats` and `rows` of the file, and
        `source_rows`, the number of rows of each of the task's files in it.

    Raises:
        MissingDataFileError: a data file or a deletion vector file is not in the store.
        InvalidTableError: a file cannot be read, or its types do not match the table's types.
        VerificationError: the new file does not have the expected number of rows. The new file is deleted.
    """
    layout = FileLayout.from_task(task)
    files = [SourceFile.from_json(file) for file in task["files"]]
    encoding = layout.encoding_of(files[0].path)
    rows = SourceRows(layout, layout.file_schema(encoding), files, task["partition_values"])
    source = _Source(layout, [file.path for file in files], rows, task["threads"])
    with closing(read_ahead(source.batches())) as tables:
        written = write_file(
            layout,
            encoding,
            task["partition_values"],
            tables,
            rows_expected=lambda: source.rows_read,
        )
    return {**written, "source_rows": [source.rows_of.get(file.path, 0) for file in files]}


def compaction_task(
    layout: Mapping[str, Any],
    *,
    files: Sequence[SourceFile],
    partition_values: Mapping[str, str | None],
    threads: int = 1,
) -> dict[str, Any]:
    """The task for `rewrite_bin`.

    Args:
        layout: the result of `layout_fields`.
        files: the files to merge, in this order.
        partition_values: the partition values that all the files share, as in the log.
        threads: number of files that the task reads at a time.
    """
    return {
        **layout,
        "files": [file.to_json() for file in files],
        "partition_values": dict(partition_values),
        "threads": threads,
    }


class _Source:
    """The rows of the bin's files, collected to row groups."""

    def __init__(
        self,
        layout: FileLayout,
        paths: Sequence[str],
        rows: SourceRows,
        threads: int,
    ) -> None:
        self._layout = layout
        self._paths = paths
        self._rows = rows
        self._threads = threads
        self.rows_of: dict[str, int] = {}

    @property
    def rows_read(self) -> int:
        return sum(self.rows_of.values())

    def batches(self) -> Generator[pa.Table]:
        parts: list[pa.Table] = []
        rows = size_bytes = 0
        for path, table in read_files(
            self._layout.store,
            self._paths,
            threads=self._threads,
            max_bytes=READ_BYTES,
            options=self._rows.options,
        ):
            part = self._rows.rows(path, table)
            if parts and (rows + part.num_rows > ROW_GROUP_ROWS or size_bytes >= GATHER_BYTES):
                yield pa.concat_tables(parts).unify_dictionaries()
                parts, rows, size_bytes = [], 0, 0
            parts.append(part)
            self.rows_of[path] = self.rows_of.get(path, 0) + part.num_rows
            rows += part.num_rows
            size_bytes += part.nbytes
        if parts:
            yield pa.concat_tables(parts).unify_dictionaries()
