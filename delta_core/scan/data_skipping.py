"""Data skipping: the files that may match a predicate, by partition values and statistics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.expressions.ast import TRUE, Expression
from delta_core.expressions.bounds import ColumnStats, StatsColumns
from delta_core.expressions.columns import referenced_columns
from delta_core.expressions.skipping import may_match
from delta_core.expressions.typing import find_column
from delta_core.replay.live_files import LiveFiles
from delta_core.scan.cached_statistics import (
    column_stats,
    needs_counts,
    parse_in_parallel,
    statistics_of,
)
from delta_core.scan.generated_columns import generated_mask, generated_sources
from delta_core.scan.partition_pruning import match_partitions, split_by_partition_columns, typed_partitions
from delta_core.scan.statistics import has_bounds, parse_statistics
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
