"""Which files may hold rows that match a predicate: by partition values, then by statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from delta_core.expressions.ast import TRUE, Expression
from delta_core.expressions.columns import referenced_columns
from delta_core.expressions.skipping import StatsColumns, may_match
from delta_core.expressions.typing import find_column
from delta_core.replay.live_files import LiveFiles
from delta_core.scan.partition_pruning import partition_mask, split_by_partition_columns, typed_partitions
from delta_core.scan.statistics import parse_statistics
from delta_core.schema.column_mapping import UNMAPPED, ColumnMapping
from delta_core.schema.types import ArrayType, DataType, MapType, StructType

Mask = npt.NDArray[np.bool_]


def prune_by_partitions(
    files: LiveFiles,
    predicate: Expression,
    schema: StructType,
    partition_columns: Sequence[str],
    *,
    mapping: ColumnMapping = UNMAPPED,
) -> LiveFiles:
    """The files whose partition values do not rule the predicate out. Reads no statistics.

    Raises:
        CorruptLogError: a partition value is not of its column's type.
    """
    alone, _ = split_by_partition_columns(predicate, partition_columns)
    if alone == TRUE or not files.num_files:
        return files
    return files.select(partition_mask(files, alone, schema, partition_columns, mapping=mapping))


def prune_by_statistics(
    files: LiveFiles,
    predicate: Expression,
    schema: StructType,
    partition_columns: Sequence[str],
    *,
    mapping: ColumnMapping = UNMAPPED,
) -> LiveFiles:
    """The files whose statistics do not rule the predicate out.

    Only the statistics of the columns that the predicate names are parsed.
    """
    _, others = split_by_partition_columns(predicate, partition_columns)
    if not files.num_files or others == TRUE:
        return files
    named = _named_partitions(others, partition_columns)
    partitions = typed_partitions(files, schema, named, mapping=mapping)
    leaves = statistics_leaves(others, schema, partition_columns)
    texts = files.to_table(["stats"]).column("stats") if leaves else None
    paths = {path: mapping.physical_path(path, schema) for path in leaves}
    return files.select(may_match(others, _stats_columns(files.num_files, texts, leaves, partitions, paths)))


def files_may_match(
    files: pa.Table,
    predicate: Expression,
    schema: StructType,
    partition_columns: Sequence[str],
    *,
    mapping: ColumnMapping = UNMAPPED,
) -> Mask:
    """For each file, whether it may hold a matching row; by partition values and statistics.

    For files that are not a snapshot's, such as those another writer has just added.

    Args:
        files: a table with the columns `partition_values` and `stats` of LIVE_FILE_SCHEMA.
        predicate: resolved against `schema`.
        schema: the table's schema.
        partition_columns: the table's partition columns.
        mapping: the table's column mapping.
    """
    named = _named_partitions(predicate, partition_columns)
    partitions = typed_partitions(files, schema, named, mapping=mapping)
    kept = may_match(predicate, StatsColumns(num_files=files.num_rows, partitions=partitions))
    leaves = statistics_leaves(predicate, schema, partition_columns)
    if leaves and kept.any():
        # Only what the partition values leave over has its statistics parsed.
        rows = pa.array(np.flatnonzero(kept))
        texts = files.column("stats").take(rows)
        paths = {path: mapping.physical_path(path, schema) for path in leaves}
        stats = _stats_columns(len(rows), texts, leaves, partitions.take(rows), paths)
        kept[kept] = may_match(predicate, stats)
    return kept


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


def _named_partitions(predicate: Expression, partition_columns: Sequence[str]) -> list[str]:
    named = {path[0] for path in referenced_columns(predicate)}
    return [name for name in partition_columns if name in named]


def _stats_columns(
    num_files: int,
    texts: pa.ChunkedArray | None,
    leaves: Mapping[tuple[str, ...], DataType],
    partitions: pa.Table,
    paths: Mapping[tuple[str, ...], tuple[str, ...]],
) -> StatsColumns:
    """`paths` says where the statistics have each of the `leaves`."""
    if texts is None:
        return StatsColumns(num_files=num_files, partitions=partitions)
    parsed = parse_statistics(texts, {paths[leaf]: data_type for leaf, data_type in leaves.items()})
    return StatsColumns(
        num_files=num_files,
        num_records=parsed.num_records,
        columns={leaf: parsed.columns[paths[leaf]] for leaf in leaves},
        partitions=partitions,
    )
