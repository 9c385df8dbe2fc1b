"""Data skipping: the files that may match a predicate, by partition values and statistics."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Semaphore
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.expressions.ast import (
    TRUE,
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
from delta_core.expressions.bounds import ColumnStats, StatsColumns
from delta_core.expressions.columns import referenced_columns
from delta_core.expressions.skipping import may_match
from delta_core.expressions.typing import find_column
from delta_core.replay.checkpoint_chunk import stream_column
from delta_core.replay.file_chunk import FileChunk
from delta_core.replay.live_files import LiveFiles
from delta_core.scan.generated_columns import generated_mask, generated_sources
from delta_core.scan.partition_pruning import match_partitions, split_by_partition_columns, typed_partitions
from delta_core.scan.statistics import (
    BATCH_ROWS,
    ParsedStatistics,
    has_bounds,
    join_statistics,
    parse_statistics,
)
from delta_core.schema.arrow import type_to_arrow
from delta_core.schema.column_mapping import UNMAPPED, ColumnMapping
from delta_core.schema.types import DOUBLE, ArrayType, DataType, MapType, StructType
from delta_core.table_features.type_widening import CHANGES_KEY

Mask = npt.NDArray[np.bool_]

# Where most files of a chunk are already pruned, parsing only the rest is cheaper than parsing all.
_WORTH_CACHING = 0.5


class FilesOfPartitions(NamedTuple):
    """The files that remain after partition pruning.

    Attributes:
        files: the remaining files.
        exact: whether all of their rows satisfy the conjuncts that use only partition columns. False where
            such a conjunct could not be evaluated for a file.
    """

    files: LiveFiles
    exact: bool


def prune_by_partitions(
    files: LiveFiles,
    predicate: Expression,
    schema: StructType,
    partition_columns: Sequence[str],
    *,
    mapping: ColumnMapping = UNMAPPED,
    generation_enforced: bool = False,
) -> FilesOfPartitions:
    """The files whose partition values do not exclude the predicate. Reads no statistics.

    Args:
        files: a snapshot's files.
        predicate: resolved against `schema`.
        schema: the table's schema.
        partition_columns: the table's partition columns.
        mapping: the table's column mapping.
        generation_enforced: whether writers of the table enforce its generation expressions, so that
            partition values bound the columns that they are generated from.

    Raises:
        CorruptLogError: a partition value does not have its column's type.
    """
    alone, others = split_by_partition_columns(predicate, partition_columns)
    exact = True
    if alone != TRUE and files.num_files:
        result = match_partitions(files, alone, schema, partition_columns, mapping=mapping)
        files, exact = files.select(result.mask), result.error is None
    if not generation_enforced or others == TRUE or not files.num_files:
        return FilesOfPartitions(files, exact)
    generated = generated_sources(others, schema, partition_columns)
    if not generated:
        return FilesOfPartitions(files, exact)
    needed = {*_named_partitions(others, partition_columns), *(one.name for one in generated)}
    names = [name for name in partition_columns if name in needed]
    partitions = typed_partitions(files, schema, names, mapping=mapping)
    return FilesOfPartitions(files.select(generated_mask(others, schema, generated, partitions)), exact)


def prune_by_statistics(
    files: LiveFiles,
    predicate: Expression,
    schema: StructType,
    partition_columns: Sequence[str],
    *,
    mapping: ColumnMapping = UNMAPPED,
) -> LiveFiles:
    """The files whose statistics do not exclude the predicate.

    Only the statistics of the columns in the predicate are parsed. The statistics of most of a snapshot's
    files are cached with its columns, so that repeated calls are almost free, at this and at later versions.
    """
    _, others = split_by_partition_columns(predicate, partition_columns)
    if not files.num_files or others == TRUE:
        return files
    named = _named_partitions(others, partition_columns)
    partitions = typed_partitions(files, schema, named, mapping=mapping)
    leaves = statistics_leaves(others, schema, partition_columns)
    paths = {path: mapping.physical_path(path, schema) for path in leaves}
    floats = _were_floats(leaves, schema)
    if leaves and files.share_of_chunks >= _WORTH_CACHING:
        counts = needs_counts(others) or not all(map(has_bounds, leaves.values()))
        cached = _cached_statistics(files, leaves, partitions, paths, floats, counts=counts)
        return files.select(np.concatenate([may_match(others, stats) for stats in cached]))
    strings = files.to_table(["stats"]).column("stats") if leaves else None
    return files.select(
        may_match(others, _stats_columns(files.num_files, strings, leaves, partitions, paths, floats))
    )


def files_may_match(
    files: pa.Table,
    predicate: Expression,
    schema: StructType,
    partition_columns: Sequence[str],
    *,
    mapping: ColumnMapping = UNMAPPED,
) -> Mask:
    """For each file, whether it may contain a matching row; by partition values and statistics.

    For files that are not part of a snapshot, such as files that another writer has just added.

    Args:
        files: a table with the columns `partition_values` and `stats` of LIVE_FILE_SCHEMA.
        predicate: resolved against `schema`.
        schema: the table's schema.
        partition_columns: the table's partition columns.
        mapping: the table's column mapping.
    """
    named = _named_partitions(predicate, partition_columns)
    partitions = typed_partitions(files, schema, named, mapping=mapping)
    selected = may_match(predicate, StatsColumns(num_files=files.num_rows, partitions=partitions))
    leaves = statistics_leaves(predicate, schema, partition_columns)
    if leaves and selected.any():
        # Parse only the statistics of files that the partition values do not exclude.
        rows = pa.array(np.flatnonzero(selected))
        strings = files.column("stats").take(rows)
        paths = {path: mapping.physical_path(path, schema) for path in leaves}
        stats = _stats_columns(
            len(rows), strings, leaves, partitions.take(rows), paths, _were_floats(leaves, schema)
        )
        selected[selected] = may_match(predicate, stats)
    return selected


def statistics_leaves(
    predicate: Expression, schema: StructType, partition_columns: Sequence[str]
) -> dict[tuple[str, ...], DataType]:
    """The columns whose statistics can help with a predicate, with their types."""
    leaves: dict[tuple[str, ...], DataType] = {}
    for path in sorted(referenced_columns(predicate)):
        if path[0] in partition_columns:
            continue
        names, data_type = find_column(path, schema)
        if not isinstance(data_type, StructType | ArrayType | MapType):
            leaves[names] = data_type
    return leaves


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
    """Whether counts of records and nulls may exclude a file whose columns all have known bounds.

    The counts are half of the work of parsing. A predicate that only compares columns with constants needs
    them only where a bound is missing, because a file with bounds has values.
    """
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


def _cached_statistics(
    files: LiveFiles,
    leaves: Mapping[tuple[str, ...], DataType],
    partitions: pa.Table,
    paths: Mapping[tuple[str, ...], tuple[str, ...]],
    floats: Set[tuple[str, ...]],
    *,
    counts: bool,
) -> Iterator[StatsColumns]:
    """The statistics of one chunk after another; each chunk is parsed once, and the result cached with it."""
    columns_by_path = {paths[leaf]: data_type for leaf, data_type in leaves.items()}
    parse_in_parallel(files.chunks, columns_by_path, counts=counts)
    start = 0
    for columns in files.derived(lambda chunk: statistics_of(chunk, columns_by_path, counts=counts)):
        length = len(columns[0])
        named = {}
        for at, leaf in enumerate(leaves):
            named[leaf] = column_stats(columns, at)
            if leaf in floats:
                named[leaf] = _loosened(named[leaf])
        yield StatsColumns(
            num_files=length,
            num_records=columns[0],
            columns=named,
            partitions=partitions.slice(start, length),
        )
        start += length


def _were_floats(leaves: Iterable[tuple[str, ...]], schema: StructType) -> set[tuple[str, ...]]:
    """The columns of type double that were widened from float."""
    were_floats = set()
    for leaf in leaves:
        current: DataType = schema
        for part in leaf:
            assert isinstance(current, StructType)
            field = current.find(part)
            assert field is not None
            current = field.data_type
            changes = field.metadata.get(CHANGES_KEY) or ()
            if current == DOUBLE and any(change.get("fromType") == "float" for change in changes):
                were_floats.add(leaf)
    return were_floats


def _loosened(stats: ColumnStats) -> ColumnStats:
    """Widen bounds of a double column that may have been written for floats.

    Writers print a float bound as the shortest string that parses to the same float. Parsed as a double, this
    string can be greater than the least value, or less than the greatest.
    """

    def as_floats(values: pa.Array) -> pa.Array:
        return pc.cast(pc.cast(values, pa.float32(), safe=False), pa.float64())

    return ColumnStats(
        minimum=None if stats.minimum is None else _least(stats.minimum, as_floats(stats.minimum)),
        maximum=None if stats.maximum is None else _greatest(stats.maximum, as_floats(stats.maximum)),
        null_count=stats.null_count,
    )


def _least(left: pa.Array, right: pa.Array) -> pa.Array:
    return pc.min_element_wise(left, right, skip_nulls=False)


def _greatest(left: pa.Array, right: pa.Array) -> pa.Array:
    return pc.max_element_wise(left, right, skip_nulls=False)


def _named_partitions(predicate: Expression, partition_columns: Sequence[str]) -> list[str]:
    named = {path[0] for path in referenced_columns(predicate)}
    return [name for name in partition_columns if name in named]


def _stats_columns(
    num_files: int,
    strings: pa.ChunkedArray | None,
    leaves: Mapping[tuple[str, ...], DataType],
    partitions: pa.Table,
    paths: Mapping[tuple[str, ...], tuple[str, ...]],
    floats: Set[tuple[str, ...]],
) -> StatsColumns:
    """Parse `strings`; `paths` has the path of each of the `leaves`, `floats` those that were floats."""
    if strings is None:
        return StatsColumns(num_files=num_files, partitions=partitions)
    parsed = parse_statistics(strings, {paths[leaf]: data_type for leaf, data_type in leaves.items()})
    return StatsColumns(
        num_files=num_files,
        num_records=parsed.num_records,
        columns={
            leaf: _loosened(parsed.columns[paths[leaf]]) if leaf in floats else parsed.columns[paths[leaf]]
            for leaf in leaves
        },
        partitions=partitions,
    )


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
