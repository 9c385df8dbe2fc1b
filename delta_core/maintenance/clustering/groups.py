"""Groups of files whose rows are sorted together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from delta_core.maintenance.rewriting.planned_files import PlannedFile


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringGroup:
    """The files of one partition, or of one new cube of a clustered table.

    Attributes:
        ordered_files: number of files that an earlier run already sorted by the same columns.
        ordered_bytes: total size of these files.
        cubes: number of runs that wrote these files.
        num_files: number of new files.
    """

    partition_values: Mapping[str, str | None] = field(hash=False)
    files: tuple[PlannedFile, ...]
    ordered_files: int
    ordered_bytes: int
    cubes: int
    num_files: int

    @property
    def size_bytes(self) -> int:
        """Total size of the files."""
        return sum(file.size_bytes for file in self.files)

    def to_json(self) -> dict[str, Any]:
        """The group as a JSON object."""
        return {
            "partition_values": dict(self.partition_values),
            "files": [{"path": f.path, "size_bytes": f.size_bytes} for f in self.files],
            "ordered_files": self.ordered_files,
            "ordered_bytes": self.ordered_bytes,
            "cubes": self.cubes,
            "num_files": self.num_files,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """The group that `to_json` wrote; raises KeyError, TypeError or ValueError for other documents."""
        return cls(
            partition_values=dict(document["partition_values"]),
            files=tuple(PlannedFile(path=f["path"], size_bytes=f["size_bytes"]) for f in document["files"]),
            ordered_files=document["ordered_files"],
            ordered_bytes=document["ordered_bytes"],
            cubes=document["cubes"],
            num_files=document["num_files"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderingPlan:
    """The planned work of a Z-order or of a clustering.

    Attributes:
        table_id: `metaData.id` of the table that the plan is for.
        version: the version that the plan was made from.
        columns: sort columns, spelled as in the schema.
        target_size_bytes: size of a new file.
        min_new_fraction: smallest fraction of unsorted bytes for which files are rewritten.
        full: rewrite sorted files too.
        considered_files: number of live files that the planner examined.
        groups: groups of files to rewrite.
    """

    table_id: str
    version: int
    columns: tuple[str, ...]
    target_size_bytes: int
    min_new_fraction: float
    full: bool
    considered_files: int
    groups: tuple[ClusteringGroup, ...]

    @property
    def is_empty(self) -> bool:
        """True when there is nothing to do."""
        return not self.groups

    @property
    def num_files(self) -> int:
        """Number of files to rewrite."""
        return sum(len(group.files) for group in self.groups)

    @property
    def total_bytes(self) -> int:
        """Bytes to rewrite."""
        return sum(group.size_bytes for group in self.groups)

    def predicted(self) -> dict[str, int]:
        """The expected metrics of the commit; assumes that the new files are as large as the old files."""
        return {
            "files_removed": self.num_files,
            "files_added": sum(group.num_files for group in self.groups),
            "bytes_removed": self.total_bytes,
            "bytes_added": self.total_bytes,
            "partitions": len({tuple(group.partition_values.items()) for group in self.groups}),
        }

    def common_json(self) -> dict[str, Any]:
        """The fields that plans of all kinds have, as a JSON object."""
        return {
            "table_id": self.table_id,
            "version": self.version,
            "columns": list(self.columns),
            "target_size_bytes": self.target_size_bytes,
            "min_new_fraction": self.min_new_fraction,
            "full": self.full,
            "considered_files": self.considered_files,
            "predicted": self.predicted(),
            "groups": [group.to_json() for group in self.groups],
        }


def common_fields(document: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that `common_json` wrote; raises KeyError, TypeError or ValueError for other documents."""
    return {
        "table_id": document["table_id"],
        "version": document["version"],
        "columns": tuple(document["columns"]),
        "target_size_bytes": document["target_size_bytes"],
        "min_new_fraction": document["min_new_fraction"],
        "full": document["full"],
        "considered_files": document["considered_files"],
        "groups": tuple(ClusteringGroup.from_json(item) for item in document["groups"]),
    }
