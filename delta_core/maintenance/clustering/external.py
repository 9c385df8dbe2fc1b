"""Sorts files whose rows do not fit into memory: three task functions, with Arrow only.

The first step samples the sort columns. In the second step, each task sorts some of the files into runs on
disk. In the last step, each task merges its ranges of all runs into one new file. Each task's memory is
bounded. The steps exchange small JSON documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from delta_core.execution.executor import JsonObject
from delta_core.maintenance.clustering.curve import Curve, Keys, sorted_rows
from delta_core.maintenance.clustering.runs import merged_rows, write_run
from delta_core.maintenance.clustering.sample import Sampler
from delta_core.maintenance.clustering.values import column_at, sort_values
from delta_core.maintenance.rewriting.layout import Encoding, FileLayout
from delta_core.maintenance.rewriting.reading import read_tables
from delta_core.maintenance.rewriting.sources import SourceFile, SourceRows
from delta_core.maintenance.rewriting.writing import ROW_GROUP_ROWS, write_file

_RUN_SHARE = 0.2
_READ_SHARE = 0.125
_BATCH_SHARE = 1 / 64
_WINDOW_SHARE = 0.15
# The overhead of smaller record batches would exceed the saved memory.
_SMALLEST_BATCH_BYTES = 32 << 10
_MOST_BYTES = 192 << 20


def sample_files(task: JsonObject) -> JsonObject:
    """Sample the task's `columns` from its files; reads no other column.

    Returns:
        `sample` as a `Sampler` takes it, and `rows`, the number of rows in the files.

    Raises:
        MissingDataFileError, InvalidTableError: a file cannot be read.
    """
    layout = FileLayout.from_task(task)
    source = _source(layout, order_schema(layout, task["columns"]), task)
    sampler = Sampler([task["seed"], task["part"]])
    rows = 0
    for path in _paths(task):
        for table in read_tables(
            layout.store, path, max_bytes=_share(task, _READ_SHARE), options=source.options
        ):
            part = source.rows(path, table)
            rows += part.num_rows
            sampler.add([sort_values(column_at(part, path)) for path in task["columns"]])
    return {"sample": sampler.to_json(), "rows": rows}


def spill_runs(task: JsonObject) -> JsonObject:
    """Sort the task's files into runs, each with as many rows as the task's memory holds.

    Returns:
        `runs`: the result of `write_run` for each run.

    Raises:
        MissingDataFileError, InvalidTableError: a file cannot be read.
    """
    layout, encoding = FileLayout.from_task(task), Encoding.from_json(task["encoding"])
    curve = Curve.from_json(task["curve"])
    cuts = np.array(task["cuts"], np.uint64)
    runs: list[dict[str, Any]] = []
    for rows in _gathered(layout, encoding, task):
        name = f"run-{task['part']:05d}-{len(runs):05d}.arrow"
        runs.append(
            write_run(
                task["place"],
                name,
                rows,
                curve.keys(rows),
                cuts=cuts,
                batch_bytes=max(_SMALLEST_BATCH_BYTES, _share(task, _BATCH_SHARE)),
            )
        )
    return {"runs": runs}


def write_ranges(task: JsonObject) -> JsonObject:
    """Merge the task's ranges of all runs into one new file.

    Returns:
        The result of `write_file`, with the first and last key as `z_first` and `z_last`.

    Raises:
        VerificationError: the new file does not have as many rows as the runs.
    """
    layout, encoding = FileLayout.from_task(task), Encoding.from_json(task["encoding"])
    first, end = task["ranges"]
    ends: list[int] = []

    def tables() -> Iterator[pa.Table]:
        for rows, keys in merged_rows(
            task["place"],
            task["runs"],
            range(first, end),
            window_bytes=_share(task, _WINDOW_SHARE),
            window_rows=ROW_GROUP_ROWS,
        ):
            ends.extend((int(keys[0]), int(keys[-1])))
            yield rows

    result = write_file(
        layout,
        encoding,
        task["partition_values"],
        tables(),
        rows_expected=lambda: sum(entry[3] for run in task["runs"] for entry in run["ranges"]),
        sequence=task["part"],
    )
    return {**result, "z_first": ends[0] if ends else 0, "z_last": ends[-1] if ends else 0}


def order_schema(layout: FileLayout, columns: Sequence[Sequence[str]]) -> pa.Schema:
    """The in-memory schema of the sort columns; for a nested column, the whole top-level struct."""
    schema = layout.physical.file_schema
    names = dict.fromkeys(path[0] for path in columns)
    return pa.schema([schema.field(name).with_nullable(True) for name in names])


def range_cuts(curve: Curve, sampler: Sampler, count: int) -> list[int]:
    """Keys that cut the sampled rows into about `count` equal ranges, ascending and distinct."""
    keys: Keys = curve.keys_of(sampler.columns())
    if not len(keys):
        return []
    ordered = keys[sorted_rows(keys)]
    cuts = np.unique(ordered[np.arange(1, count) * len(ordered) // count])
    return [int(cut) for cut in cuts if cut > ordered[0]]


def file_ranges(runs: Sequence[JsonObject], ranges: int, num_files: int) -> list[tuple[int, int]]:
    """The consecutive ranges of each new file, so that the files have about the same number of rows."""
    rows = np.zeros(ranges, np.int64)
    for run in runs:
        for entry in run["ranges"]:
            rows[entry[0]] += entry[3]
    filled, total = np.concatenate([[0], np.cumsum(rows)]), int(rows.sum())
    edges = [0]
    for number in range(1, num_files):
        ideal = total * number / num_files
        edge = int(np.argmin(np.abs(filled - ideal)))
        if edges[-1] < edge < ranges and filled[edges[-1]] < filled[edge] < total:
            edges.append(edge)
    return list(zip(edges, [*edges[1:], ranges], strict=True))


def runs_of(runs: Sequence[JsonObject], first: int, end: int) -> list[dict[str, Any]]:
    """The runs, with only the index entries of the ranges from `first` up to and without `end`."""
    parts = (
        {"name": run["name"], "ranges": [entry for entry in run["ranges"] if first <= entry[0] < end]}
        for run in runs
    )
    return [part for part in parts if part["ranges"]]


def _gathered(layout: FileLayout, encoding: Encoding, task: Mapping[str, Any]) -> Iterator[pa.Table]:
    source = _source(layout, layout.file_schema(encoding), task)
    limit = _share(task, _RUN_SHARE)
    parts: list[pa.Table] = []
    size = 0
    for path in _paths(task):
        for table in read_tables(
            layout.store, path, max_bytes=_share(task, _READ_SHARE), options=source.options
        ):
            part = source.rows(path, table)
            del table
            if parts and size + part.nbytes > limit:
                yield _joined(parts)
                size = 0
            parts.append(part)
            size += part.nbytes
            del part
    if parts:
        yield _joined(parts)


def _source(layout: FileLayout, target: pa.Schema, task: Mapping[str, Any]) -> SourceRows:
    files = [SourceFile.from_json(file) for file in task["files"]]
    return SourceRows(layout, target, files, task["partition_values"])


def _paths(task: Mapping[str, Any]) -> list[str]:
    return [file["path"] for file in task["files"]]


def _joined(parts: list[pa.Table]) -> pa.Table:
    table = pa.concat_tables(parts).unify_dictionaries()
    parts.clear()
    return table.combine_chunks()


def _share(task: Mapping[str, Any], share: float) -> int:
    return max(1, min(_MOST_BYTES, int(task["memory_bytes"] * share)))
