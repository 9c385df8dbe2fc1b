"""The columns that a table can be clustered by, and the tags of clustered files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from delta_core.errors import ConfigurationError
from delta_core.maintenance.clustering.curve import MAX_COLUMNS
from delta_core.schema.types import VARIANT, VOID, ArrayType, DataType, MapType, StructField, StructType
from delta_core.snapshot.snapshot import Snapshot
from delta_core.snapshot.table_definition import clustering_of
from delta_core.table_features.clustering_domain import DOMAIN
from delta_core.table_features.stats_leaves import stats_leaves

TAG_ID: Final = "ZCUBE_ID"
TAG_COLUMNS: Final = "ZCUBE_ZORDER_BY"
TAG_CURVE: Final = "ZCUBE_ZORDER_CURVE"
CURVE_NAME: Final = "zorder"
CLUSTERING_PROVIDER: Final = "liquid"
"""The `clusteringProvider` of delta-spark. `delta_core` writes the same provider and tags, so that each of
the two continues the clustering of the other."""


def clustering_columns(snapshot: Snapshot, names: Sequence[str]) -> tuple[StructField, ...]:
    """The schema's fields for the Z-order columns; names match without case.

    Raises:
        ConfigurationError: the list is empty, too long, or names a column twice; or a column does not exist,
            has a type without an order, is a partition column, or has no statistics to skip files by.
    """
    if not isinstance(names, Sequence):
        raise _not_a_list(names)
    if not names:
        raise ConfigurationError(
            "Z-order needs at least one column.",
            cause="The list of columns is empty.",
            fix="Name the columns that queries filter by, or run a compaction, which needs no columns.",
        )
    if len(names) > MAX_COLUMNS:
        raise ConfigurationError(
            f"{len(names)} columns are too many for Z-order.",
            cause=f"The limit is {MAX_COLUMNS}, because each further column weakens the order by the others.",
            fix="Name the two to four columns that most queries filter by.",
        )
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise _not_a_list(names)
    fields = tuple(_field(snapshot, name) for name in names)
    resolved = [field.name for field in fields]
    duplicates = sorted({name for name in resolved if resolved.count(name) > 1})
    if duplicates:
        raise ConfigurationError(
            f"The Z-order columns name {', '.join(duplicates)} twice.", fix="Name each column once."
        )
    leaves = stats_leaves(snapshot.schema, snapshot.properties, partition_columns=snapshot.partition_columns)
    indexed = {leaf.path for leaf in leaves}
    without_statistics = [name for name in resolved if (name,) not in indexed]
    if without_statistics:
        raise ConfigurationError(
            f"Files have no statistics of {', '.join(without_statistics)}, so Z-order would skip no file.",
            cause="The property delta.dataSkippingNumIndexedCols or delta.dataSkippingStatsColumns excludes "
            f"{'it' if len(without_statistics) == 1 else 'them'}.",
            fix="Add the column to delta.dataSkippingStatsColumns, or move it among the first columns of the "
            "schema, and rewrite the files.",
        )
    return fields


def refuse_clustered(snapshot: Snapshot) -> None:
    """Refuse a table that has clustering columns: its files may only be sorted by these columns.

    PROTOCOL.md, "Writer Requirements for Clustered Table". Reads no file list.

    Raises:
        ConfigurationError: the table has clustering columns.
    """
    clustering = clustering_of(snapshot)
    if clustering is None or not clustering.columns:
        return
    raise ConfigurationError(
        "A clustered table cannot be put into Z-order.",
        cause=f"The metadata domain {DOMAIN} names the columns that its files are clustered by.",
        fix="Cluster it (optimize.cluster), or remove its clustering columns first.",
    )


def cube_tags(columns: Sequence[str], cube_id: str, *, curve: str = CURVE_NAME) -> dict[str, str | None]:
    """The tags of the files that one run sorted together, in delta-spark's spelling."""
    return {
        TAG_ID: cube_id,
        TAG_COLUMNS: json.dumps(list(columns), separators=(",", ":")),
        TAG_CURVE: curve,
    }


def cube_of(tags: Mapping[str, str | None] | None, columns: Sequence[str]) -> str | None:
    """The id of the cube that a file belongs to; None when the file is not in Z-order by these columns."""
    if not tags or tags.get(TAG_CURVE) != CURVE_NAME:
        return None
    return _cube_by(tags, columns)


def liquid_cube_of(
    provider: str | None, tags: Mapping[str, str | None] | None, columns: Sequence[str]
) -> str | None:
    """The id of the cube that a file of a clustered table belongs to.

    None when the file is not in a cube of these columns. The curve is not compared, because delta-spark does
    not write it to the tags.
    """
    return _cube_by(tags, columns) if tags and provider == CLUSTERING_PROVIDER else None


def is_unclustered(provider: str | None, tags: Mapping[str, str | None] | None) -> bool:
    """True when a file was never clustered, so that any writer may cluster it.

    Files that another implementation clustered, or that were clustered by other columns, are not rewritten
    by default.
    """
    if provider is None:
        return True
    return provider == CLUSTERING_PROVIDER and not (tags and tags.get(TAG_ID) and tags.get(TAG_COLUMNS))


def has_order(data_type: DataType) -> bool:
    """True when rows can be sorted by a column of the type."""
    return not isinstance(data_type, StructType | ArrayType | MapType) and data_type not in (VOID, VARIANT)


def _cube_by(tags: Mapping[str, str | None], columns: Sequence[str]) -> str | None:
    try:
        ordered_by = json.loads(tags.get(TAG_COLUMNS) or "null")
    except (ValueError, RecursionError):
        return None
    return tags.get(TAG_ID) if ordered_by == list(columns) else None


def _field(snapshot: Snapshot, name: str) -> StructField:
    field = snapshot.schema.find(name)
    partitions = {column.casefold() for column in snapshot.partition_columns}
    if field is None:
        others = [item for item in snapshot.schema.names if item.casefold() not in partitions]
        raise ConfigurationError(
            f"The table has no column {name!r} to Z-order by.",
            cause="Z-order does not support fields of structs." if "." in name else "",
            fix=f"Use columns of the table: {', '.join(others)}.",
        )
    if field.name.casefold() in partitions:
        raise ConfigurationError(
            f"{field.name} is a partition column, which Z-order cannot sort by.",
            cause="Each file already holds exactly one value of a partition column.",
            fix="Remove the column from the list. To select partitions, use the predicate.",
        )
    if not has_order(field.data_type):
        raise ConfigurationError(
            f"Z-order by {field.name} is not possible.",
            cause=f"Values of its type {field.data_type} have no order.",
            fix="Name columns of numbers, strings, dates, timestamps or booleans.",
        )
    return field


def _not_a_list(names: object) -> ConfigurationError:
    return ConfigurationError(
        f"Z-order by {names!r} is not possible.",
        cause="The columns must be a list of strings.",
        fix='Pass a list such as ["origin", "dest"].',
    )
