"""Sorts files whose rows fit into memory: a task function, with Arrow only, importable on any worker."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from delta_core.execution.executor import JsonObject
from delta_core.forks import renew_lock_in_children
from delta_core.maintenance.clustering.curve import Curve, Keys, Shape, fit_curve, sorted_rows
from delta_core.maintenance.clustering.sample import Sampler
from delta_core.maintenance.clustering.values import SortValues, column_at, sort_values
from delta_core.maintenance.rewriting.layout import Encoding, FileLayout
from delta_core.maintenance.rewriting.reading import read_tables
from delta_core.maintenance.rewriting.sources import SourceFile, SourceRows
from delta_core.maintenance.rewriting.writing import ROW_GROUP_ROWS, write_file

ROWS_SHARE = 0.5
"""Fraction of the memory that the rows may take. The rest is for keys, the sort and the writers."""

_WINDOW_SHARE = 0.125
_KEY_SLICE_ROWS = 1 << 20
_READ_BYTES = 192 << 20


def cluster_in_memory(task: JsonObject) -> JsonObject:
    """Rewrite a group's files in the order of a curve, or report that the rows do not fit into memory.

    Args:
        task: made by `in_memory_task`.

    Returns:
        `files` (the results of `write_file`, with the first and last key of each file as `z_first` and
        `z_last`), the `curve` as JSON and `rows`. When the rows do not fit: `too_large` only; writes nothing.

    Raises:
        MissingDataFileError: a file is not in the store.
        InvalidTableError: a file cannot be read, or its types do not match the table's types.
        VerificationError: a new file does not have the expected number of rows.
    """
    layout = FileLayout.from_task(task)
    encoding = layout.encoding_of(task["files"][0]["path"])
    rows = _read(layout, encoding, task)
    if rows is None:
        return {"too_large": True}
    paths: Sequence[Sequence[str]] = task["columns"]
    arrow_columns = [column_at(rows, path) for path in paths]
    columns = [sort_values(column) for column in arrow_columns]
    sampler = Sampler([task["seed"]])
    sampler.add(columns)
    floating = [pa.types.is_floating(column.type) for column in arrow_columns]
    del arrow_columns
    curve = fit_curve(paths, sampler.columns(), floating=floating, shape=task["shape"])
    with ThreadPoolExecutor(task["threads"], thread_name_prefix="deltaward-sort") as pool:
        slices = range(0, max(1, rows.num_rows), _KEY_SLICE_ROWS)
        keys = np.concatenate(list(pool.map(partial(_keys, curve, columns), slices)))
        columns.clear()
        order = sorted_rows(keys)
        group = _Group(layout=layout, encoding=encoding, task=task, rows=rows, order=order)
        pieces = list(_pieces(keys, order, task["num_files"]))
        ends = [(int(keys[order[a]]), int(keys[order[b - 1]])) if b > a else (0, 0) for a, b in pieces]
        del keys
        files = list(pool.map(group.write, range(len(pieces)), pieces))
    return {
        "files": [{**file, "z_first": a, "z_last": b} for file, (a, b) in zip(files, ends, strict=True)],
        "curve": curve.to_json(),
        "rows": rows.num_rows,
    }


def in_memory_task(
    layout: Mapping[str, Any],
    *,
    files: Sequence[SourceFile],
    partition_values: Mapping[str, str | None],
    columns: Sequence[Sequence[str]],
    shape: Shape,
    num_files: int,
    seed: int,
    memory_bytes: int,
    threads: int,
) -> dict[str, Any]:
    """The task for `cluster_in_memory`; columns are paths of physical names, `memory_bytes` is the limit."""
    return {
        **layout,
        "files": [file.to_json() for file in files],
        "partition_values": dict(partition_values),
        "columns": [list(path) for path in columns],
        "shape": shape,
        "num_files": num_files,
        "seed": seed,
        "memory_bytes": memory_bytes,
        "threads": threads,
    }


def cut_points(keys_in_order: Keys, count: int) -> list[int]:
    """Positions that cut ordered keys into about `count` equal parts, preferably between different keys.

    Rows of one key in one file can be skipped together. To keep them together, a cut moves by at most a
    quarter of a part. A key with too many rows for this move is cut.
    """
    total = len(keys_in_order)
    count = max(1, min(count, total))
    points = [0]
    slack = total // count // 4
    for number in range(1, count):
        ideal = total * number // count
        key = keys_in_order[ideal]
        before = int(np.searchsorted(keys_in_order, key, side="left"))
        after = int(np.searchsorted(keys_in_order, key, side="right"))
        best = min((before, after), key=lambda point: abs(point - ideal))
        point = best if abs(best - ideal) <= slack else ideal
        if points[-1] < point < total:
            points.append(point)
    return [*points, total]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    layout: FileLayout
    encoding: Encoding
    task: JsonObject
    rows: pa.Table
    order: npt.NDArray[np.uint64]

    def write(self, sequence: int, piece: tuple[int, int]) -> dict[str, Any]:
        """Write the rows at a slice of the order as one file."""
        start, end = piece
        return write_file(
            self.layout,
            self.encoding,
            self.task["partition_values"],
            self._windows(start, end),
            rows_expected=lambda: end - start,
            sequence=sequence,
        )

    def _windows(self, start: int, end: int) -> Iterator[pa.Table]:
        per_row = max(1.0, self.rows.nbytes / max(1, self.rows.num_rows))
        memory = self.task["memory_bytes"] * _WINDOW_SHARE / self.task["threads"]
        step = max(1, min(ROW_GROUP_ROWS, int(memory / per_row)))
        for first in range(start, end, step):
            yield self.rows.take(pa.array(self.order[first : min(first + step, end)]))


def _pieces(keys: Keys, order: npt.NDArray[np.uint64], count: int) -> Iterator[tuple[int, int]]:
    points = cut_points(keys[order], count)
    return pairwise(points)


def _keys(curve: Curve, columns: Sequence[SortValues], start: int) -> Keys:
    part = slice(start, start + _KEY_SLICE_ROWS)
    return curve.keys_of([column.take(part) for column in columns])


def _read(layout: FileLayout, encoding: Encoding, task: JsonObject) -> pa.Table | None:
    """All rows, each column in as few chunks as Arrow allows; None when the rows take too much memory."""
    target = layout.file_schema(encoding)
    limit = int(task["memory_bytes"] * ROWS_SHARE)
    budget = _MemoryBudget(limit)
    files = [SourceFile.from_json(file) for file in task["files"]]
    source = SourceRows(layout, target, files, task["partition_values"])
    paths, threads = [file.path for file in files], task["threads"]
    step = max(1, -(-len(paths) // (4 * threads)))
    parts = [paths[start : start + step] for start in range(0, len(paths), step)]

    def read(some_paths: Sequence[str]) -> list[pa.Table]:
        tables = []
        for path in some_paths:
            for table in read_tables(
                layout.store, path, max_bytes=min(limit, _READ_BYTES), options=source.options
            ):
                part = source.rows(path, table)
                if not budget.take(part.nbytes):
                    return []
                tables.append(part)
        return tables

    with ThreadPoolExecutor(threads, thread_name_prefix="deltaward-read") as pool:
        tables_of_parts = list(pool.map(read, parts))
    if budget.exceeded:
        return None
    pieces = [table for tables in tables_of_parts for table in tables]
    del tables_of_parts
    return _joined(pieces, target)


class _MemoryBudget:
    """A memory limit shared by threads."""

    def __init__(self, limit: int) -> None:
        self._remaining = limit
        self._lock = threading.Lock()
        renew_lock_in_children(self)

    @property
    def exceeded(self) -> bool:
        return self._remaining < 0

    def take(self, size_bytes: int) -> bool:
        with self._lock:
            self._remaining -= size_bytes
            return self._remaining >= 0


def _joined(pieces: list[pa.Table], target: pa.Schema) -> pa.Table:
    """The tables as one table. Joins column by column, so that at most one column is in memory twice."""
    columns = [[table.column(index) for table in pieces] for index in range(len(target))]
    pieces.clear()
    joined = []
    for index, item in enumerate(target):
        parts = [chunk for column in columns[index] for chunk in column.chunks]
        columns[index] = []
        whole = pa.chunked_array(parts, item.type)
        del parts
        if pa.types.is_dictionary(item.type):
            whole = whole.unify_dictionaries()
        joined.append(whole.combine_chunks())
        del whole
    return pa.Table.from_arrays(joined, schema=target)
