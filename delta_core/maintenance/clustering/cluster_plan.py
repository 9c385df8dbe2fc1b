"""Selects the files to cluster by the table's clustering columns (PROTOCOL.md, "Clustered Table").

Reads the snapshot only, no data file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from delta_core.arguments import share, whole_bytes
from delta_core.errors import ConfigurationError
from delta_core.maintenance.clustering.columns import has_order, is_unclustered, liquid_cube_of
from delta_core.maintenance.clustering.groups import ClusteringGroup, OrderingPlan, common_fields
from delta_core.maintenance.plan_json import check_plan_header, malformed_plan, plan_header
from delta_core.maintenance.rewriting.planned_files import PlannedFile
from delta_core.maintenance.rewriting.reach import reachable
from delta_core.schema.column_paths import type_at
from delta_core.snapshot.snapshot import Snapshot
from delta_core.snapshot.table_definition import clustering_of
from delta_core.storage.data_access import DataAccess
from delta_core.table_features.clustering_domain import ClusteringColumns

FULL_CUBE_FILES: Final = 100
"""A cube of this many files of the target size is full: new files are not added to it, as in delta-spark."""

_LARGEST_CUBE = 1.5
_KIND = "clustering"
_COLUMNS = ["path", "size_bytes", "modification_time_ms", "tags", "clustering_provider"]
_PLAIN_NAME = re.compile(r"(?!\d+$)[a-zA-Z0-9_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringPlan(OrderingPlan):
    """The planned work of clustering a table by its clustering columns: each group becomes a cube."""

    def to_json(self) -> dict[str, Any]:
        """The plan as a JSON object."""
        return {**plan_header(_KIND), **self.common_json()}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """The plan that `to_json` wrote.

        Raises:
            MaintenanceError: the document is not a clustering plan, or has a newer format.
        """
        check_plan_header(document, _KIND)
        try:
            return cls(**common_fields(document))
        except (KeyError, TypeError, ValueError) as error:
            raise malformed_plan(_KIND, error) from error


def require_clustering(snapshot: Snapshot) -> ClusteringColumns:
    """The clustering columns of a table.

    Raises:
        ConfigurationError: the table has no clustering columns, or one whose type has no order.
        InvalidTableError: the metadata domain cannot be read, or names a column that is not in the schema.
    """
    clustering = clustering_of(snapshot)
    if clustering is None or not clustering.columns:
        raise ConfigurationError(
            "The table has no clustering columns.",
            cause="It was created without clustering columns, or they were removed.",
            fix="Set clustering columns with alter.cluster_by, or use Z-order.",
        )
    for path in clustering.logical(snapshot.schema):
        data_type = type_at(snapshot.schema, path)
        if not has_order(data_type):
            raise ConfigurationError(
                f"The table cannot be clustered by {column_name(path)}.",
                cause=f"Values of its type {data_type} have no order.",
                fix="Choose other columns with alter.cluster_by.",
            )
    return clustering


def column_name(path: Sequence[str]) -> str:
    """A column path as Spark writes it: parts that need quoting are in backticks."""
    return ".".join(part if _PLAIN_NAME.fullmatch(part) else f"`{part.replace('`', '``')}`" for part in path)


def column_names(clustering: ClusteringColumns, snapshot: Snapshot) -> tuple[str, ...]:
    """The logical names of the clustering columns, as in tags and in `operationParameters`."""
    return tuple(column_name(path) for path in clustering.logical(snapshot.schema))


def plan_clustering(
    snapshot: Snapshot,
    *,
    target_size_bytes: int | None = None,
    min_new_fraction: float = 0.0,
    full: bool = False,
    reach: DataAccess | None = None,
) -> ClusteringPlan:
    """Choose the files of a clustered table to cluster, incrementally.

    The plan takes files that are not clustered, and the cubes that are not full. A cube is the files that one
    run clustered together. Files that were clustered by another implementation, or by other columns, are
    not rewritten unless `full` is set (PROTOCOL.md, "Writer Requirements for Clustered Table"). A new cube
    is at most 1.5 times as large as a full cube. A second plan without new files is empty.

    Args:
        snapshot: the version to plan for.
        target_size_bytes: size of a new file; `delta.targetFileSize` (1 GiB by default) when None. A cube is
            full with FULL_CUBE_FILES times this size.
        min_new_fraction: from 0 to 1; the plan is empty while the unclustered files hold a smaller fraction
            of the table's bytes.
        full: also rewrite files that were clustered by another implementation, or by other columns.
        reach: leave out files that are neither in the table nor below a root allowed here: files that a
            shallow clone shares with its source. None plans for all files.

    Raises:
        ConfigurationError: `require_clustering` raises it, or a number is out of its range.
        InvalidTableError: the table's clustering metadata contradicts the schema.
        UnsupportedTableFeatureError: the table cannot be read.
    """
    snapshot.require_readable(operation="plan a clustering", through_scan=True)
    clustering = require_clustering(snapshot)
    target = whole_bytes(target_size_bytes, what="target_size_bytes")
    target = snapshot.properties.target_file_size_bytes if target is None else target
    min_new_fraction = share(min_new_fraction, what="min_new_fraction")
    if target <= 0:
        raise ConfigurationError(
            f"Files of {target} bytes cannot be written.", fix="Set a positive target size."
        )
    names = column_names(clustering, snapshot)
    files = snapshot.files.to_table(_COLUMNS)
    if reach is not None:
        files = files.filter(pa.array(reachable(files["path"], snapshot.store, reach)))
    rows = files.to_pylist()
    for row in rows:
        row["cube"] = liquid_cube_of(row["clustering_provider"], dict(row["tags"] or ()), names)
    chosen = _candidates(rows, full_cube=FULL_CUBE_FILES * target, full=full)
    new_bytes = sum(row["size_bytes"] for row in chosen if row["cube"] is None)
    total_bytes = sum(row["size_bytes"] for row in rows)
    if not full and new_bytes < min_new_fraction * total_bytes:
        chosen = []
    return ClusteringPlan(
        table_id=snapshot.metadata.id,
        version=snapshot.version,
        columns=names,
        target_size_bytes=target,
        min_new_fraction=min_new_fraction,
        full=full,
        considered_files=len(rows),
        groups=tuple(_groups(chosen, target)),
    )


def unclustered_files(snapshot: Snapshot, clustering: ClusteringColumns) -> npt.NDArray[np.bool_]:
    """For each live file: True when `plan_clustering` would take the file because it is in no cube."""
    names = column_names(clustering, snapshot)
    rows = snapshot.files.to_table(["tags", "clustering_provider"]).to_pylist()
    unclustered = []
    for row in rows:
        tags = dict(row["tags"] or ())
        cube = liquid_cube_of(row["clustering_provider"], tags, names)
        unclustered.append(cube is None and is_unclustered(row["clustering_provider"], tags))
    return np.array(unclustered, dtype=np.bool_)


def _candidates(rows: list[dict[str, Any]], *, full_cube: int, full: bool) -> list[dict[str, Any]]:
    """Files to cluster: first the files that are in no cube, then the files of cubes that are not full.

    Empty when the candidates are one cube and nothing else.
    """
    sizes: dict[str, int] = {}
    for row in rows:
        if row["cube"] is not None:
            sizes[row["cube"]] = sizes.get(row["cube"], 0) + row["size_bytes"]
    candidates = []
    for row in rows:
        if row["cube"] is None:
            selected = full or is_unclustered(row["clustering_provider"], dict(row["tags"] or ()))
        else:
            selected = sizes[row["cube"]] < full_cube
        if selected:
            candidates.append(row)
    candidates.sort(key=lambda row: (row["cube"] or "", row["modification_time_ms"], row["path"]))
    first_cube = candidates[0]["cube"] if candidates else None
    one_cube = first_cube is not None and first_cube == candidates[-1]["cube"]
    return [] if one_cube else candidates


def _groups(rows: Sequence[dict[str, Any]], target: int) -> Iterator[ClusteringGroup]:
    largest = int(_LARGEST_CUBE * FULL_CUBE_FILES * target)
    members: list[dict[str, Any]] = []
    size = 0
    for row in rows:
        if members and size + row["size_bytes"] > largest:
            yield _group(members, target)
            members, size = [], 0
        members.append(row)
        size += row["size_bytes"]
    if members:
        yield _group(members, target)


def _group(rows: Sequence[dict[str, Any]], target: int) -> ClusteringGroup:
    ordered = [row for row in rows if row["cube"] is not None]
    return ClusteringGroup(
        partition_values={},
        files=tuple(PlannedFile(path=row["path"], size_bytes=row["size_bytes"]) for row in rows),
        ordered_files=len(ordered),
        ordered_bytes=sum(row["size_bytes"] for row in ordered),
        cubes=len({row["cube"] for row in ordered}),
        num_files=max(1, -(-sum(row["size_bytes"] for row in rows) // target)),
    )
