"""The live files as a readable table: typed partition values, and statistics as columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.scan.partition_pruning import typed_partitions
from delta_core.scan.statistics import has_bounds, parse_statistics
from delta_core.schema.types import DataType, StructType
from delta_core.snapshot.snapshot import Snapshot

_COLUMNS = ["path", "size_bytes", "modification_time_ms", "partition_values", "stats", "deletion_vector"]

Leaves = Mapping[tuple[str, ...], DataType]


def add_actions_table(snapshot: Snapshot, *, flatten: bool = False) -> pa.Table:
    """One row per live file. Reads no data file.

    Args:
        snapshot: the table.
        flatten: return columns `partition.x`, `null_count.x`, `min.x`, `max.x` instead of structs. The path
            of a nested column is joined by dots.

    Returns:
        `path` as in the log, `size_bytes`, `modification_time`, `num_records`, `num_deleted` (the number of
        records deleted by a deletion vector; null without one), then partition values, null counts, and
        bounds of the columns that have bounds, in the columns' types. Null means unknown.
    """
    files = snapshot.files.to_table(_COLUMNS)
    partitions = typed_partitions(
        files, snapshot.schema, snapshot.partition_columns, mapping=snapshot.column_mapping
    )
    leaves = dict(_leaves(snapshot.schema, snapshot.partition_columns))
    bounded = {path: kind for path, kind in leaves.items() if has_bounds(kind)}
    mapping = snapshot.column_mapping
    inside = {path: mapping.physical_path(path, snapshot.schema) for path in leaves}
    parsed = parse_statistics(files.column("stats"), {inside[path]: kind for path, kind in leaves.items()})
    columns: dict[str, pa.Array | pa.ChunkedArray] = {
        "path": files.column("path"),
        "size_bytes": files.column("size_bytes"),
        "modification_time": files.column("modification_time_ms").cast(pa.timestamp("ms", "UTC")),
        "num_records": parsed.num_records,
        "num_deleted": pc.struct_field(files.column("deletion_vector"), "cardinality"),
    }
    groups: list[tuple[str, dict[str, pa.Array | pa.ChunkedArray]]] = [
        ("partition", {name: partitions.column(name) for name in snapshot.partition_columns}),
        ("null_count", _named(leaves, lambda path: parsed.columns[inside[path]].null_count)),
        ("min", _named(bounded, lambda path: parsed.columns[inside[path]].minimum)),
        ("max", _named(bounded, lambda path: parsed.columns[inside[path]].maximum)),
    ]
    for group, members in groups:
        if flatten:
            columns.update({f"{group}.{name}": values for name, values in members.items()})
        elif members:
            columns[group] = pa.StructArray.from_arrays(
                [_single(values) for values in members.values()], names=list(members)
            )
    return pa.table(columns)


def _leaves(
    schema: StructType, partition_columns: Iterable[str], prefix: tuple[str, ...] = ()
) -> Iterable[tuple[tuple[str, ...], DataType]]:
    partitions = {name.casefold() for name in partition_columns}
    for field in schema:
        if not prefix and field.name.casefold() in partitions:
            continue
        path = (*prefix, field.name)
        if isinstance(field.data_type, StructType):
            yield from _leaves(field.data_type, (), path)
        else:
            yield path, field.data_type


def _named(
    leaves: Leaves, values: Callable[[tuple[str, ...]], pa.Array | None]
) -> dict[str, pa.Array | pa.ChunkedArray]:
    arrays = ((".".join(path), values(path)) for path in leaves)
    return {name: array for name, array in arrays if array is not None}


def _single(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
