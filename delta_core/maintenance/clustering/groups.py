"""Files whose rows are put in order together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from delta_core.maintenance.rewriting.planned_files import PlannedFile


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringGroup:
    """The files of one partition, or of a cube of a table without partitions.

    Attributes:
        ordered_bytes: of the files that are in this order already, each within an earlier run.
        cubes: how many runs made those.
        num_files: new files.
    """

    partition_values: Mapping[str, str | None] = field(hash=False)
    files: tuple[PlannedFile, ...]
    ordered_files: int
    ordered_bytes: int
    cubes: int
    num_files: int

    @property
    def size_bytes(self) -> int:
        """Sum of the files' sizes."""
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
        """What `to_json` wrote; KeyError, TypeError or ValueError where it is something else."""
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
    """What putting rows in order would do, by whichever columns.

    Attributes:
        table_id: `metaData.id` of the table that the plan is for.
        version: the version that it was made from.
        columns: as the schema spells them.
        min_new_fraction: what has a smaller share of bytes out of order is left alone.
        full: rewrite what is in order too.
        considered_files: live files that were looked at.
        groups: to rewrite.
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
        """Files that would be rewritten."""
        return sum(len(group.files) for group in self.groups)

    @property
    def total_bytes(self) -> int:
        """Bytes that would be rewritten."""
        return sum(group.size_bytes for group in self.groups)

    def predicted(self) -> dict[str, int]:
        """What the commit would show; the new files' bytes are taken to be those of the old ones."""
        return {
            "files_removed": self.num_files,
            "files_added": sum(group.num_files for group in self.groups),
            "bytes_removed": self.total_bytes,
            "bytes_added": self.total_bytes,
            "partitions": len({tuple(group.partition_values.items()) for group in self.groups}),
        }

    def common_json(self) -> dict[str, Any]:
        """What plans of every kind have, as a JSON object."""
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
    """The fields that `common_json` wrote; KeyError, TypeError or ValueError where it is something else."""
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
