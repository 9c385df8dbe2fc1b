"""Selects the files to put into Z-order. Reads the snapshot only, no data file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Self

import pyarrow as pa

from delta_core.arguments import share, whole_bytes
from delta_core.errors import ConfigurationError
from delta_core.expressions.ast import Expression
from delta_core.expressions.render import to_spark_sql
from delta_core.maintenance.clustering.columns import clustering_columns, cube_of, refuse_clustered
from delta_core.maintenance.clustering.groups import ClusteringGroup, OrderingPlan, common_fields
from delta_core.maintenance.compaction.plan import files_in, partition_names, partition_predicate
from delta_core.maintenance.plan_json import check_plan_header, malformed_plan, plan_header
from delta_core.maintenance.rewriting.planned_files import PlannedFile
from delta_core.maintenance.rewriting.reach import reachable
from delta_core.schema.partition_values import value_of
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess

_KIND = "z_order"
_COLUMNS = ["path", "partition_values", "size_bytes", "modification_time_ms", "tags"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ZOrderPlan(OrderingPlan):
    """The planned work of a Z-order: each group is a partition.

    Attributes:
        predicate: Spark SQL over partition columns, or None for the whole table.
    """

    predicate: str | None

    def to_json(self) -> dict[str, Any]:
        """The plan as a JSON object."""
        return {**plan_header(_KIND), **self.common_json(), "predicate": self.predicate}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """The plan that `to_json` wrote.

        Raises:
            MaintenanceError: the document is not a Z-order plan, or has a newer format.
        """
        check_plan_header(document, _KIND)
        try:
            return cls(**common_fields(document), predicate=document["predicate"])
        except (KeyError, TypeError, ValueError) as error:
            raise malformed_plan(_KIND, error) from error


def plan_z_order(
    snapshot: Snapshot,
    columns: Sequence[str],
    *,
    predicate: Expression | str | None = None,
    target_size_bytes: int | None = None,
    min_new_fraction: float = 0.0,
    full: bool = False,
    reach: DataAccess | None = None,
) -> ZOrderPlan:
    """Choose the partitions whose rows are to be put into Z-order by some columns.

    The plan takes a partition, with all of its files, when unsorted files hold at least `min_new_fraction` of
    the partition's bytes. A file's tags record whether the file is sorted by these columns, so a second plan
    without new files is empty.

    Args:
        snapshot: the version to plan for.
        columns: columns to sort by, all with the same weight.
        predicate: selects partitions; over partition columns only.
        target_size_bytes: size of a new file; `delta.targetFileSize` (1 GiB by default) when None.
        min_new_fraction: from 0 (rewrite a partition as soon as it has one unsorted file) to 1.
        full: rewrite every partition.
        reach: leave out files that are neither in the table nor below a root allowed here: files that a
            shallow clone shares with its source. None plans for all files.

    Raises:
        ConfigurationError: `clustering_columns` or `refuse_clustered` raises it, or a number is out of its
            range.
        ExpressionError: the predicate does not parse, or names a column that the table is not partitioned by.
        UnsupportedTableFeatureError: the table cannot be read.
    """
    snapshot.require_readable(operation="plan a Z-order", through_scan=True)
    refuse_clustered(snapshot)
    target = whole_bytes(target_size_bytes, what="target_size_bytes")
    target = snapshot.properties.target_file_size_bytes if target is None else target
    min_new_fraction = share(min_new_fraction, what="min_new_fraction")
    if target <= 0:
        raise ConfigurationError(
            f"Files of {target} bytes cannot be written.", fix="Set a positive target size."
        )
    names = tuple(item.name for item in clustering_columns(snapshot, columns))
    condition = partition_predicate(snapshot, predicate)
    files = files_in(snapshot, condition).to_table(_COLUMNS)
    if reach is not None:
        files = files.filter(pa.array(reachable(files["path"], snapshot.store, reach)))
    rows = files.to_pylist()
    groups = tuple(
        group
        for group in _groups(rows, partition_names(snapshot), names, target)
        if full or _needs_order(group, min_new_fraction)
    )
    return ZOrderPlan(
        table_id=snapshot.metadata.id,
        version=snapshot.version,
        predicate=None if condition is None else to_spark_sql(condition),
        columns=names,
        target_size_bytes=target,
        min_new_fraction=min_new_fraction,
        full=full,
        considered_files=len(rows),
        groups=groups,
    )


def _needs_order(group: ClusteringGroup, min_new_fraction: float) -> bool:
    new_files = len(group.files) - group.ordered_files
    new_bytes = group.size_bytes - group.ordered_bytes
    return new_files > 0 and new_bytes >= min_new_fraction * group.size_bytes


def _groups(
    rows: list[dict[str, Any]], partition_columns: Sequence[str], columns: Sequence[str], target: int
) -> Iterator[ClusteringGroup]:
    for row in rows:
        values = dict(row["partition_values"] or ())
        row["key"] = tuple(value_of(values, name) for name in partition_columns)
        row["cube"] = cube_of(dict(row["tags"] or ()), columns)
    # None sorts before every string.
    rows.sort(
        key=lambda row: (
            tuple((value is not None, value or "") for value in row["key"]),
            row["modification_time_ms"],
            row["path"],
        )
    )
    for key, members in groupby(rows, key=lambda row: row["key"]):
        files = list(members)
        ordered = [row for row in files if row["cube"] is not None]
        size = sum(row["size_bytes"] for row in files)
        yield ClusteringGroup(
            partition_values=dict(zip(partition_columns, key, strict=True)),
            files=tuple(PlannedFile(path=row["path"], size_bytes=row["size_bytes"]) for row in files),
            ordered_files=len(ordered),
            ordered_bytes=sum(row["size_bytes"] for row in ordered),
            cubes=len({row["cube"] for row in ordered}),
            num_files=max(1, -(-size // target)),
        )
