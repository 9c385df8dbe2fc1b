"""The statistics of a snapshot's chunks: parsed once, several pieces at a time, and kept with the chunks.

Predicates that only compare columns with constants ask for no counts where both bounds are known: a file
with bounds has values. Counts are half of what there is to parse, so they are left out until a
predicate asks for them; a piece in which a bound is missing has them at once.
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
# To be raised when the same text comes to mean other bounds.
_KEPT_FORMAT = "bounds-1"
_WORTH_THREADS = 50_000
# Each holds the texts of a chunk twice.
_MAX_THREADS = 4
# Number of records, minimum, maximum and number of nulls.
_ARRAYS = 4


def asks_for_counts(predicate: Expression) -> bool:
    """Whether the numbers of records and nulls may rule out a file whose columns' bounds are all known."""
    match predicate:
        case And(terms) | Or(terms):
            return any(asks_for_counts(term) for term in terms)
        case Not(operand):
            return asks_for_counts(operand)
        case Comparison(operator, left, right) if operator != ComparisonOperator.EQ_NULL_SAFE:
            return not (isinstance(left, Column | Literal) and isinstance(right, Column | Literal))
        case In(Column()) | Like(Column()) | Literal():
            return False
        case _:
            return True


def parse_side_by_side(chunks: Iterable[FileChunk], leaves: Leaves, *, counts: bool) -> None:
    """Have the statistics of many files ready. JSON readers keep one core busy; several pieces, several.

    Args:
        chunks: small ones are left to `statistics_of`.
        leaves: the columns wanted.
        counts: as in `statistics_of`.

    Raises:
        CorruptLogError: a checkpoint's column cannot be decoded.
    """
    unread = [
        chunk for chunk in chunks if any(_found(chunk, *leaf, counts) is None for leaf in leaves.items())
    ]
    if sum(chunk.num_rows for chunk in unread) < _WORTH_THREADS:
        return
    unread = [chunk for chunk in unread if not _take_kept(chunk, leaves, counts)]
    workers = min(_MAX_THREADS, os.cpu_count() or 1)
    # Texts wait for a thread, and there may be gigabytes of them.
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
                name, schema = _kept_as(path, leaves[path], counted=parsed.counted)
                chunk.keep(name, pa.RecordBatch.from_arrays(arrays, schema=schema))


def statistics_of(chunk: FileChunk, leaves: Leaves, *, counts: bool) -> list[pa.Array]:
    """The number of records, minimum, maximum and number of nulls of each column, one after the other.

    Args:
        chunk: its columns' statistics are kept with it.
        leaves: the columns wanted.
        counts: whether the counts are wanted of every file; else they may be null where both bounds of every
            column are known.

    Raises:
        CorruptLogError: a checkpoint's column cannot be decoded.
    """
    found = {path: _found(chunk, path, kind, counts) for path, kind in leaves.items()}
    missing = {path: leaves[path] for path, arrays in found.items() if arrays is None}
    if missing:
        parsed = parse_statistics(chunk.column("stats"), missing, counts=counts)
        found |= _remember(chunk, parsed, missing)
    return [array for path in leaves for array in found[path] or ()]


def column_stats(columns: list[pa.Array], at: int) -> ColumnStats:
    """Those of one of the columns of `statistics_of`, by position."""
    _, minimum, maximum, null_count = columns[_ARRAYS * at : _ARRAYS * (at + 1)]
    return ColumnStats(minimum=minimum, maximum=maximum, null_count=null_count)


def _found(chunk: FileChunk, path: tuple[str, ...], kind: DataType, counts: bool) -> list[pa.Array] | None:
    arrays: list[pa.Array] | None = chunk.memo.get((_MEMO, path, kind, True))
    if arrays is None and not counts:
        arrays = chunk.memo.get((_MEMO, path, kind, False))
    return arrays


def _take_kept(chunk: FileChunk, leaves: Leaves, counts: bool) -> bool:
    """Take over what another process has parsed; False when some is missing."""
    for path, kind in leaves.items():
        if _found(chunk, path, kind, counts) is not None:
            continue
        for counted in (True,) if counts else (True, False):
            batch = chunk.kept(*_kept_as(path, kind, counted=counted))
            if batch is not None:
                chunk.memo.put((_MEMO, path, kind, counted), batch.columns)
                break
        else:
            return False
    return True


def _kept_as(path: tuple[str, ...], kind: DataType, *, counted: bool) -> tuple[str, pa.Schema]:
    bound = type_to_arrow(kind)
    fields = [("records", pa.int64()), ("least", bound), ("greatest", bound), ("nulls", pa.int64())]
    form = _KEPT_FORMAT if counted else f"{_KEPT_FORMAT} without counts"
    return f"{form}\n{kind!r}\n{path!r}", pa.schema(fields)


def _remember(
    chunk: FileChunk, parsed: ParsedStatistics, leaves: Leaves
) -> dict[tuple[str, ...], list[pa.Array]]:
    found = {}
    for path, kind in leaves.items():
        column, bound = parsed.columns[path], type_to_arrow(kind)
        found[path] = [
            pa.nulls(chunk.num_rows, data_type) if values is None else values
            for values, data_type in (
                (parsed.num_records, pa.int64()),
                (column.minimum, bound),
                (column.maximum, bound),
                (column.null_count, pa.int64()),
            )
        ]
        chunk.memo.put((_MEMO, path, kind, parsed.counted), found[path])
    return found
