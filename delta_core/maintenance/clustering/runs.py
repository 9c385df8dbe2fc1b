"""Sorted runs on disk: rows in key order, cut at the same keys in every run, so that ranges merge separately.

A run is one Arrow IPC file. Its record batches never cross a cut. Its index records which batches hold each
range between two cuts, so that a task reads only its own ranges of each run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

from delta_core.execution.executor import JsonObject
from delta_core.maintenance.clustering.curve import Keys, sorted_rows
from delta_core.maintenance.clustering.spill import spill_input, spill_output

KEY_COLUMN: Final = "\x00key"
"""The column of the keys in a run. No column of a table has this name."""

_BATCH_ROWS = 1 << 16


def write_run(
    place: JsonObject, name: str, rows: pa.Table, keys: Keys, *, cuts: Keys, batch_bytes: int
) -> dict[str, Any]:
    """Sort rows by their keys and spill them.

    Args:
        place: the spill directory, from `local_spill` or `shared_spill`.
        name: file name of the run.
        rows: the rows, with one chunk per column.
        keys: one key per row.
        cuts: ascending; range i holds the keys from `cuts[i-1]` on that are below `cuts[i]`.
        batch_bytes: largest size of a record batch with more than one row.

    Returns:
        The run's `name` and its index `ranges`: [range, first batch, batches, rows, bytes] for each range
        in which the run has rows.
    """
    order = sorted_rows(keys)
    ordered = keys[order]
    schema = rows.schema.append(pa.field(KEY_COLUMN, pa.uint64()))
    edges = [0, *np.searchsorted(ordered, cuts, side="left").tolist(), len(ordered)]
    per_row = max(1.0, rows.nbytes / max(1, rows.num_rows))
    step = max(1, min(_BATCH_ROWS, int(batch_bytes / per_row)))
    index: list[list[int]] = []
    written = 0
    with spill_output(place, name) as sink, pa.ipc.new_file(sink, schema) as writer:
        for number, (start, end) in enumerate(pairwise(edges)):
            if start == end:
                continue
            first = written
            for begin in range(start, end, step):
                stop = min(begin + step, end)
                part = rows.take(pa.array(order[begin:stop]))
                part = part.append_column(schema.field(KEY_COLUMN), pa.array(ordered[begin:stop]))
                writer.write_batch(part.combine_chunks().to_batches()[0])
                written += 1
            index.append([number, first, written - first, end - start, int(per_row * (end - start))])
    return {"name": name, "ranges": index}


def merged_rows(
    place: JsonObject, runs: Sequence[JsonObject], ranges: range, *, window_bytes: int, window_rows: int
) -> Iterator[tuple[pa.Table, Keys]]:
    """The rows of consecutive ranges in key order, in tables of at most about `window_bytes`.

    Args:
        place: the spill directory of the runs.
        runs: the results of `write_run`.
        ranges: numbers of the ranges.
        window_bytes: memory of the rows of one table. A single key with more rows comes as one table per
            record batch, because the order of rows with the same key does not matter.
        window_rows: most rows of one table, with the same exception.

    Yields:
        The rows without their key column, and their keys.
    """
    window: list[int] = []
    filled_bytes = filled_rows = 0
    sizes = _sizes(runs)
    for number in ranges:
        rows, size = sizes.get(number, (0, 0))
        if not rows:
            continue
        if size > window_bytes or rows > window_rows:
            if window:
                yield from _whole(place, runs, window)
                window, filled_bytes, filled_rows = [], 0, 0
            limit = max(1, min(window_rows, int(window_bytes * rows / max(1, size))))
            yield from _large_range(place, runs, number, limit)
            continue
        if window and (filled_bytes + size > window_bytes or filled_rows + rows > window_rows):
            yield from _whole(place, runs, window)
            window, filled_bytes, filled_rows = [], 0, 0
        window.append(number)
        filled_bytes += size
        filled_rows += rows
    if window:
        yield from _whole(place, runs, window)


def _sizes(runs: Sequence[JsonObject]) -> dict[int, tuple[int, int]]:
    sizes: dict[int, tuple[int, int]] = {}
    for run in runs:
        for number, _, _, rows, size in run["ranges"]:
            so_far = sizes.get(number, (0, 0))
            sizes[number] = (so_far[0] + rows, so_far[1] + size)
    return sizes


def _whole(
    place: JsonObject, runs: Sequence[JsonObject], numbers: Sequence[int]
) -> Iterator[tuple[pa.Table, Keys]]:
    """All rows of some ranges at once."""
    parts = [pa.Table.from_batches([batch]) for batch in _batches(place, runs, set(numbers))]
    yield from _sorted(parts)


def _large_range(
    place: JsonObject, runs: Sequence[JsonObject], number: int, limit: int
) -> Iterator[tuple[pa.Table, Keys]]:
    """A range with more rows than a window, cut between keys. Reads the range's batches once per part."""
    distinct, counts = _key_counts(place, runs, number)
    start = 0
    while start < len(distinct):
        sums = np.cumsum(counts[start:])
        end = start + max(1, int(np.searchsorted(sums, limit, side="right")))
        low, high = distinct[start], distinct[end - 1]
        parts: list[pa.Table] = []
        for batch in _batches(place, runs, {number}):
            keys = np.asarray(batch.column(KEY_COLUMN))
            first = int(np.searchsorted(keys, low, side="left"))
            last = int(np.searchsorted(keys, high, side="right"))
            if first == last:
                continue
            # Copied, so that the rest of the batch does not stay in memory.
            part = pa.Table.from_batches([batch]).take(pa.array(np.arange(first, last)))
            if low == high:
                yield from _sorted([part])
            else:
                parts.append(part)
        if parts:
            yield from _sorted(parts)
        start = end


def _key_counts(
    place: JsonObject, runs: Sequence[JsonObject], number: int
) -> tuple[Keys, np.ndarray[Any, np.dtype[np.int64]]]:
    """The distinct keys of a range and the number of rows with each key."""
    keys: Keys = np.zeros(0, np.uint64)
    counts = np.zeros(0, np.int64)
    for batch in _batches(place, runs, {number}):
        more, seen = np.unique(np.asarray(batch.column(KEY_COLUMN)), return_counts=True)
        merged, positions = np.unique(np.concatenate([keys, more]), return_inverse=True)
        counts = np.bincount(positions, weights=np.concatenate([counts, seen])).astype(np.int64)
        keys = merged
    return keys, counts


def _batches(place: JsonObject, runs: Sequence[JsonObject], numbers: set[int]) -> Iterator[pa.RecordBatch]:
    for run in runs:
        entries = [entry for entry in run["ranges"] if entry[0] in numbers]
        if not entries:
            continue
        with spill_input(place, run["name"]) as source, pa.ipc.open_file(source) as reader:
            for _, first, count, _, _ in entries:
                for position in range(first, first + count):
                    yield reader.get_batch(position)


def _sorted(parts: list[pa.Table]) -> Iterator[tuple[pa.Table, Keys]]:
    table = pa.concat_tables(parts).unify_dictionaries()
    is_sorted = len(parts) == 1
    # Frees the parts: from here on at most two copies of the rows are in memory.
    parts.clear()
    keys = np.asarray(table.column(KEY_COLUMN))
    table = table.drop_columns([KEY_COLUMN]).combine_chunks()
    if is_sorted:
        yield table, keys
        return
    order = sorted_rows(keys)
    table = table.take(pa.array(order))
    yield table, keys[order]
