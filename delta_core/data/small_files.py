"""Whole files of many small partitions, encoded in memory, with their statistics computed for all at once.

A file of a few rows costs more in Python calls than in encoding. Here each file needs one encoder, one
creation in the store and one action; the bounds and null counts of all files come from one grouped
aggregation per column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.data.statistics_collector import FileStatistics, file_bounds, leaf_column
from delta_core.schema.column_paths import Path
from delta_core.schema.types import DOUBLE, FLOAT, VOID
from delta_core.table_features.stats_leaves import StatsLeaf


def grouped_statistics(
    rows: pa.Table, bounds: np.ndarray, leaves: Sequence[StatsLeaf]
) -> Iterator[FileStatistics] | None:
    """The statistics of adjacent groups of rows, equal to those of a `StatisticsAccumulator` per group.

    Args:
        rows: the rows of all groups, none of which is empty.
        bounds: the first row of each group, and the number of all rows at the end.
        leaves: the columns with statistics, by paths in the rows.

    Returns:
        One value per group. None when a value has no Python form, such as a date after the year 9999; the
        caller must compute the statistics group by group then.
    """
    starts, sizes = bounds[:-1], np.diff(bounds)
    codes = pa.array(np.repeat(np.arange(len(sizes)), sizes))
    counts: dict[Path, Any] = {}
    extremes: dict[Path, tuple[list[Any], list[Any]]] = {}
    with_nan: dict[Path, np.ndarray] = {}
    present = set(rows.schema.names)
    for leaf in leaves:
        if leaf.data_type == VOID:
            continue
        if leaf.path[0] not in present:
            counts[leaf.path] = sizes.tolist()
            continue
        column = leaf_column(rows, leaf)
        counts[leaf.path] = np.add.reduceat(_mask(pc.is_null(column)).astype(np.int64), starts).tolist()
        if leaf.data_type in (FLOAT, DOUBLE):
            with_nan[leaf.path] = np.logical_or.reduceat(
                _mask(pc.fill_null(pc.is_nan(column), False)), starts
            )
        if leaf.has_bounds:
            found = pa.table({"group": codes, "value": column}).group_by("group", use_threads=False)
            aggregated = found.aggregate([("value", "min"), ("value", "max")])
            try:
                extremes[leaf.path] = (
                    aggregated.column("value_min").to_pylist(),
                    aggregated.column("value_max").to_pylist(),
                )
            except (ValueError, OverflowError):
                return None
    return (
        _statistics(index, size, leaves, counts, extremes, with_nan)
        for index, size in enumerate(sizes.tolist())
    )


def _statistics(
    index: int,
    size: int,
    leaves: Sequence[StatsLeaf],
    counts: dict[Path, Any],
    extremes: dict[Path, tuple[list[Any], list[Any]]],
    with_nan: dict[Path, np.ndarray],
) -> FileStatistics:
    minimums: dict[Path, object] = {}
    maximums: dict[Path, object] = {}
    nan_free: list[Path] = []
    for leaf in leaves:
        path = leaf.path
        if leaf.data_type in (FLOAT, DOUBLE):
            if path in with_nan and with_nan[path][index]:
                # Bounds without NaN would be wrong, and JSON has no form for NaN.
                continue
            nan_free.append(path)
        if path in extremes:
            low, high = extremes[path]
            if low[index] is not None:
                file_bounds(leaf, low[index], high[index], minimums=minimums, maximums=maximums)
    return FileStatistics(
        num_records=size,
        minimums=minimums,
        maximums=maximums,
        null_counts={path: values[index] for path, values in counts.items()},
        nan_free=tuple(nan_free),
    )


def _mask(values: pa.ChunkedArray) -> np.ndarray:
    mask: np.ndarray = values.to_numpy()
    return mask.astype(bool, copy=False)
