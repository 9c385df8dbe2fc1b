"""The statistics of a snapshot's chunks: parsed once, in parallel, and cached with the chunks.

Predicates that only compare columns with constants need no counts where both bounds are known, because a file
with bounds has values. The counts are half of the parsing work, so they are parsed only when a predicate
needs them. A piece in which a bound is missing is parsed with its counts at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Semaphore

import pyarrow as pa

from delta_core.expressions.ast import (
    And,
    Column,
    Comparison,
    ComparisonOperator,
    Expression,
    In,
    Like,
    Literal,
    Not,
    Or,
)
from delta_core.expressions.bounds import ColumnStats
from delta_core.replay.checkpoint_chunk import stream_column
from delta_core.replay.file_chunk import FileChunk
from delta_core.scan.statistics import BATCH_ROWS, ParsedStatistics, join_statistics, parse_statistics
from delta_core.schema.arrow import type_to_arrow
from delta_core.schema.types import DataType

# Columns by their path in the files, with their types.
Leaves = Mapping[tuple[str, ...], DataType]

_MEMO = "statistics"
# To be increased when the bounds parsed from the same string change.
_CACHE_FORMAT = "bounds-1"
_WORTH_THREADS = 50_000
# Each thread holds two copies of a chunk's strings.
_MAX_THREADS = 4
# Number of records, minimum, maximum and number of nulls.
_ARRAYS = 4


def needs_counts(predicate: Expression) -> bool:
    """Whether counts of records and nulls may exclude a file whose columns all have known bounds."""
    match predicate:
        case And(terms) | Or(terms):
            return any(needs_counts(term) for term in terms)
        case Not(operand):
            return needs_counts(operand)
        case Comparison(operator, left, right) if operator != ComparisonOperator.EQ_NULL_SAFE:
            return not (isinstance(left, Column | Literal) and isinstance(right, Column | Literal))
        case In(Column()) | Like(Column()) | Literal():
            return False
        case _:
            return True


def parse_in_parallel(chunks: Iterable[FileChunk], leaves: Leaves, *, counts: bool) -> None:
    """Parse and cache the statistics of many files. A JSON reader uses one core; several pieces use several.

    Args:
        chunks: small chunks are left to `statistics_of`.
        leaves: the columns to parse.
        counts: as in `statistics_of`.

    Raises:
        CorruptLogError: a checkpoint's column cannot be decoded.
    """
    unread = [
        chunk for chunk in chunks if any(_cached(chunk, *leaf, counts) is None for leaf in leaves.items())
    ]
    if sum(chunk.num_rows for chunk in unread) < _WORTH_THREADS:
        return
    unread = [chunk for chunk in unread if not _load_cached(chunk, leaves, counts)]
    workers = min(_MAX_THREADS, os.cpu_count() or 1)
    # Limit the strings that wait for a thread: there may be gigabytes of them.
    room = Semaphore(2 * workers)
    with ThreadPoolExecutor(workers, thread_name_prefix="deltaward-statistics") as pool:
        parsing: dict[int, list[Future[ParsedStatistics]]] = {}
        for chunk, strings in stream_column(unread, "stats", rows=BATCH_ROWS):
            room.acquire()
            future = pool.submit(parse_statistics, strings, leaves, counts=counts)
            future.add_done_callback(lambda _: room.release())
            parsing.setdefault(id(chunk), []).append(future)
        for chunk in unread:
            parsed = join_statistics([future.result() for future in parsing[id(chunk)]])
            for path, arrays in _remember(chunk, parsed, leaves).items():
                name, schema = _cache_entry(path, leaves[path], counted=parsed.counted)
                chunk.keep(name, pa.RecordBatch.from_arrays(arrays, schema=schema))


def statistics_of(chunk: FileChunk, leaves: Leaves, *, counts: bool) -> list[pa.Array]:
    """The number of records, minimum, maximum and number of nulls of each column, in this order.

    Args:
        chunk: the statistics are cached with it.
        leaves: the columns to parse.
        counts: whether the counts are needed for every file; else they may be null where both bounds of
            every column are known.

    Raises:
        CorruptLogError: a checkpoint's column cannot be decoded.
    """
    arrays_by_path = {path: _cached(chunk, path, kind, counts) for path, kind in leaves.items()}
    missing = {path: leaves[path] for path, arrays in arrays_by_path.items() if arrays is None}
    if missing:
        parsed = parse_statistics(chunk.column("stats"), missing, counts=counts)
        arrays_by_path |= _remember(chunk, parsed, missing)
    return [array for path in leaves for array in arrays_by_path[path] or ()]


def column_stats(columns: list[pa.Array], at: int) -> ColumnStats:
    """The statistics of the column with the index `at`, from the result of `statistics_of`."""
    _, minimum, maximum, null_count = columns[_ARRAYS * at : _ARRAYS * (at + 1)]
    return ColumnStats(minimum=minimum, maximum=maximum, null_count=null_count)


def _cached(chunk: FileChunk, path: tuple[str, ...], kind: DataType, counts: bool) -> list[pa.Array] | None:
    arrays: list[pa.Array] | None = chunk.memo.get((_MEMO, path, kind, True))
    if arrays is None and not counts:
        arrays = chunk.memo.get((_MEMO, path, kind, False))
    return arrays


def _load_cached(chunk: FileChunk, leaves: Leaves, counts: bool) -> bool:
    """Load statistics that another process has parsed; False when some are missing."""
    for path, kind in leaves.items():
        if _cached(chunk, path, kind, counts) is not None:
            continue
        for counted in (True,) if counts else (True, False):
            batch = chunk.kept(*_cache_entry(path, kind, counted=counted))
            if batch is not None:
                chunk.memo.put((_MEMO, path, kind, counted), batch.columns)
                break
        else:
            return False
    return True


def _cache_entry(path: tuple[str, ...], kind: DataType, *, counted: bool) -> tuple[str, pa.Schema]:
    bound = type_to_arrow(kind)
    fields = [("records", pa.int64()), ("least", bound), ("greatest", bound), ("nulls", pa.int64())]
    form = _CACHE_FORMAT if counted else f"{_CACHE_FORMAT} without counts"
    return f"{form}\n{kind!r}\n{path!r}", pa.schema(fields)


def _remember(
    chunk: FileChunk, parsed: ParsedStatistics, leaves: Leaves
) -> dict[tuple[str, ...], list[pa.Array]]:
    arrays_by_path = {}
    for path, kind in leaves.items():
        column, bound = parsed.columns[path], type_to_arrow(kind)
        arrays_by_path[path] = [
            pa.nulls(chunk.num_rows, data_type) if values is None else values
            for values, data_type in (
                (parsed.num_records, pa.int64()),
                (column.minimum, bound),
                (column.maximum, bound),
                (column.null_count, pa.int64()),
            )
        ]
        chunk.memo.put((_MEMO, path, kind, parsed.counted), arrays_by_path[path])
    return arrays_by_path
