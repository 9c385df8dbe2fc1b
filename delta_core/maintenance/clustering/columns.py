"""Which columns a table can be clustered by."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from delta_core.data.stats_columns import stats_leaves
from delta_core.errors import ConfigurationError
from delta_core.maintenance.clustering.curve import MAX_COLUMNS
from delta_core.schema.types import VARIANT, VOID, ArrayType, DataType, MapType, StructField, StructType
from delta_core.snapshot.clustering import clustering_of
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.clustering_domain import DOMAIN

TAG_ID: Final = "ZCUBE_ID"
TAG_COLUMNS: Final = "ZCUBE_ZORDER_BY"
TAG_CURVE: Final = "ZCUBE_ZORDER_CURVE"
CURVE_NAME: Final = "zorder"
CLUSTERING_PROVIDER: Final = "liquid"
"""Who clusters tables by their own columns: delta-spark's name for it. We keep to its cubes, so that either
goes on where the other stopped."""


def clustering_columns(snapshot: Snapshot, names: Sequence[str]) -> tuple[StructField, ...]:
    """The columns to cluster by, as the schema has them; names are found without case.

    Raises:
        ConfigurationError: no column, too many, one twice, one that does not exist or whose type has no
            order, a partition column, or one without statistics, by which no file could be skipped.
    """
    if not isinstance(names, Sequence):
        raise _no_list(names)
    if not names:
        raise ConfigurationError(
            "Z-order needs at least one column",
            cause="the list of columns is empty",
            fix="name the columns that queries filter by; without any, compaction is meant",
        )
    if len(names) > MAX_COLUMNS:
        raise ConfigurationError(
            f"{len(names)} columns are too many for Z-order",
            cause=f"a column's share in the order shrinks with each other one; the limit is {MAX_COLUMNS}",
            fix="name the two to four columns that most queries filter by",
        )
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise _no_list(names)
    fields = tuple(_field(snapshot, name) for name in names)
    found = [field.name for field in fields]
    twice = sorted({name for name in found if found.count(name) > 1})
    if twice:
        raise ConfigurationError(f"Z-order by {', '.join(twice)} twice", fix="name each column once")
    leaves = stats_leaves(snapshot.schema, snapshot.properties, partition_columns=snapshot.partition_columns)
    indexed = {leaf.path for leaf in leaves}
    without = [name for name in found if (name,) not in indexed]
    if without:
        raise ConfigurationError(
            f"files have no statistics of {', '.join(without)}, so Z-order by it would let none be skipped",
            cause="delta.dataSkippingNumIndexedCols or delta.dataSkippingStatsColumns leaves it out",
            fix="add the column to delta.dataSkippingStatsColumns, or move it among the first columns of the "
            "schema, and rewrite the files",
        )
    return fields


def refuse_clustered(snapshot: Snapshot) -> None:
    """Refuse a table that has clustering columns of its own: its files are ordered by these, or not at all.

    PROTOCOL.md, "Writer Requirements for Clustered Table". Reads no file list.

    Raises:
        ConfigurationError: it has.
    """
    clustering = clustering_of(snapshot)
    if clustering is None or not clustering.columns:
        return
    raise ConfigurationError(
        "A clustered table cannot be put into Z-order",
        cause=f"The metadata domain {DOMAIN} says by which columns its files are clustered",
        fix="Cluster it (optimize.cluster), or take its clustering columns away first",
    )


def cube_tags(columns: Sequence[str], cube_id: str, *, curve: str = CURVE_NAME) -> dict[str, str | None]:
    """The tags of files that one run has put in order together, spelled as delta-spark spells them."""
    return {
        TAG_ID: cube_id,
        TAG_COLUMNS: json.dumps(list(columns), separators=(",", ":")),
        TAG_CURVE: curve,
    }


def cube_of(tags: Mapping[str, str | None] | None, columns: Sequence[str]) -> str | None:
    """The id of the cube that a file is part of; None when it is not in the Z-order of these columns."""
    if not tags or tags.get(TAG_CURVE) != CURVE_NAME:
        return None
    return _cube_by(tags, columns)


def liquid_cube_of(
    provider: str | None, tags: Mapping[str, str | None] | None, columns: Sequence[str]
) -> str | None:
    """The id of the cube that a file of a clustered table is part of.

    None when it is in none by these columns. delta-spark leaves the curve out of its tags.
    """
    return _cube_by(tags, columns) if tags and provider == CLUSTERING_PROVIDER else None


def is_unclustered(provider: str | None, tags: Mapping[str, str | None] | None) -> bool:
    """Whether nobody clustered a file, so that whoever clusters the table may.

    Otherwise another implementation did, or this one by other columns: such files are left alone by default.
    """
    if provider is None:
        return True
    return provider == CLUSTERING_PROVIDER and not (tags and tags.get(TAG_ID) and tags.get(TAG_COLUMNS))


def has_order(data_type: DataType) -> bool:
    """Whether rows can be ordered by a column of the type."""
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
            f"there is no column {name!r} to Z-order by",
            cause="a field within a struct cannot be named" if "." in name else "",
            fix=f"use columns of the table: {', '.join(others)}",
        )
    if field.name.casefold() in partitions:
        raise ConfigurationError(
            f"{field.name} is a partition column, which Z-order cannot improve",
            cause="every file already holds one value of it",
            fix="leave it out; to choose partitions use the predicate",
        )
    if not has_order(field.data_type):
        raise ConfigurationError(
            f"Z-order by {field.name} is not possible",
            cause=f"its type {field.data_type} has no order",
            fix="name columns of numbers, texts, dates, timestamps or booleans",
        )
    return field


def _no_list(names: object) -> ConfigurationError:
    return ConfigurationError(
        f"Z-order by {names!r} is not possible",
        cause="columns are named in a list of texts",
        fix='pass a list such as ["origin", "dest"]',
    )
