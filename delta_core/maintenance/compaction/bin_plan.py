"""A plan that writes bins of files anew, one file each: what compaction and purging have in common.

Pure. What chooses the files, and what else a plan says, is in `compaction/plan.py` and `purge/plan.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Self

from delta_core.maintenance.plan_json import check_plan_header, malformed_plan, plan_header
from delta_core.maintenance.rewriting.planned_files import PlannedFile


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionBin:
    """Files of one partition that become one file; its values are by physical name, as in the log."""

    partition_values: Mapping[str, str | None] = field(hash=False)
    files: tuple[PlannedFile, ...]

    @property
    def size_bytes(self) -> int:
        """Sum of the files' sizes."""
        return sum(file.size_bytes for file in self.files)

    def to_json(self) -> dict[str, Any]:
        """The bin as a JSON object."""
        return {
            "partition_values": dict(self.partition_values),
            "files": [{"path": f.path, "size_bytes": f.size_bytes} for f in self.files],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """What `to_json` wrote. Raises KeyError, TypeError or ValueError on anything else."""
        return cls(
            partition_values=dict(document["partition_values"]),
            files=tuple(PlannedFile(path=f["path"], size_bytes=f["size_bytes"]) for f in document["files"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BinPlan:
    """What would be done; each kind of plan adds what it is made by, under the same names in JSON.

    Attributes:
        kind: what the plan is called in JSON.
        table_id: `metaData.id` of the table that the plan is for.
        version: the version that it was made from.
        predicate: Spark SQL over partition columns, or None for the whole table.
        target_size_bytes: no new file is to be larger, unless one old file is.
        considered_files: live files that match the predicate.
        bins: each becomes one file, or none if all its rows are deleted.
    """

    kind: ClassVar[str]

    table_id: str
    version: int
    predicate: str | None
    target_size_bytes: int
    considered_files: int
    bins: tuple[CompactionBin, ...]

    @property
    def is_empty(self) -> bool:
        """True when there is nothing to do."""
        return not self.bins

    @property
    def num_files(self) -> int:
        """Files that would be rewritten."""
        return sum(len(item.files) for item in self.bins)

    @property
    def total_bytes(self) -> int:
        """Bytes that would be rewritten."""
        return sum(item.size_bytes for item in self.bins)

    def predicted(self) -> dict[str, int]:
        """What the commit would show; a bin whose rows are all deleted gives no file, and is counted."""
        return {
            "files_removed": self.num_files,
            "files_added": len(self.bins),
            "bytes_removed": self.total_bytes,
            "partitions": len({tuple(item.partition_values.items()) for item in self.bins}),
        }

    def to_json(self) -> dict[str, Any]:
        """The plan as a JSON object."""
        said = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "bins"}
        return {
            **plan_header(self.kind),
            **said,
            "predicted": self.predicted(),
            "bins": [item.to_json() for item in self.bins],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """The plan that `to_json` wrote.

        Raises:
            MaintenanceError: it is not such a plan, or of a newer format.
        """
        check_plan_header(document, cls.kind)
        try:
            said = {item.name: document[item.name] for item in fields(cls) if item.name != "bins"}
            return cls(**said, bins=tuple(CompactionBin.from_json(item) for item in document["bins"]))
        except (KeyError, TypeError, ValueError) as error:
            raise malformed_plan(cls.kind, error) from error
