"""The row groups of a file that its footer does not exclude."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.expressions.ast import Expression
from delta_core.expressions.columns import referenced_columns
from delta_core.expressions.skipping import ColumnStats, StatsColumns, may_match
from delta_core.expressions.typing import find_column
from delta_core.scan.footer_statistics import footer_leaf, footer_positions
from delta_core.scan.statistics import has_bounds
from delta_core.schema.arrow import type_to_arrow
from delta_core.schema.arrow_values import arrow_array
from delta_core.schema.column_mapping import ColumnMapping, ColumnMappingMode
from delta_core.schema.types import VOID, ArrayType, MapType, StructType


def matching_row_groups(
    metadata: pq.FileMetaData,
    *,
    predicate: Expression | None,
    schema: StructType,
    mapping: ColumnMapping,
    constants: Mapping[str, pa.Scalar],
) -> list[int]:
    """The row groups that may contain rows for which the predicate is true.

    Args:
        metadata: the file's footer.
        predicate: resolved against `schema`; None is true for every row.
        schema: the table's schema.
        mapping: the column names in the file.
        constants: columns whose value is the same in all rows, such as partition columns.
    """
    groups = list(range(metadata.num_row_groups))
    if predicate is None or not groups or mapping.mode is ColumnMappingMode.ID:
        # Footers are searched by name, and with ids the same name may mean different columns in two files.
        return groups
    positions = footer_positions(metadata)
    columns_in_file = {name.casefold() for name in metadata.schema.to_arrow_schema().names}
    columns: dict[tuple[str, ...], ColumnStats] = {}
    for referenced in referenced_columns(predicate):
        if referenced[0] in constants:
            continue
        path, data_type = find_column(referenced, schema)
        in_file = mapping.physical_path(path, schema)
        if any("." in part for part in in_file) or in_file[0].casefold() not in columns_in_file:
            # Footers join names by dots, so field `b` of struct `a` and column `a.b` have the same path.
            continue
        position = positions.get(".".join(in_file).casefold(), -1)
        if position < 0 or isinstance(data_type, StructType | ArrayType | MapType) or data_type == VOID:
            continue
        leaves = [footer_leaf(metadata, group, position, data_type) for group in groups]
        target = type_to_arrow(data_type)
        bounds = [
            _bound_array([getattr(leaf, side) for leaf in leaves], target) if has_bounds(data_type) else None
            for side in ("minimum", "maximum")
        ]
        columns[path] = ColumnStats(
            minimum=bounds[0],
            maximum=bounds[1],
            null_count=arrow_array([leaf.null_count for leaf in leaves], pa.int64()),
        )
    partitions = pa.table({name: pa.repeat(value, len(groups)) for name, value in constants.items()})
    stats = StatsColumns(
        num_files=len(groups),
        num_records=arrow_array([metadata.row_group(group).num_rows for group in groups], pa.int64()),
        columns=columns,
        partitions=partitions if constants else None,
    )
    return [int(group) for group in np.flatnonzero(may_match(predicate, stats))]


def _bound_array(values: list[object], target: pa.DataType) -> pa.Array | None:
    try:
        return arrow_array(values, target)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        # A file may have another type than the schema; its bounds cannot be used then.
        return None
