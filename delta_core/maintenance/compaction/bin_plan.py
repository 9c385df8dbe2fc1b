"""The common part of compaction and purge plans: bins of files, each rewritten as one file.

Does no I/O. `compaction/plan.py` and `purge/plan.py` choose the files and add fields of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Self

from delta_core.maintenance.plan_json import check_plan_header, malformed_plan, plan_header
from delta_core.maintenance.rewriting.planned_files import PlannedFile


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionBin:
    """Files of one partition that become one file; partition values by physical name, as in the log."""

    partition_values: Mapping[str, str | None] = field(hash=False)
    files: tuple[PlannedFile, ...]

    @property
    def size_bytes(self) -> int:
        """Total size of the files."""
        return sum(file.size_bytes for file in self.files)

    def to_json(self) -> dict[str, Any]:
        """The bin as a JSON object."""
        return {
            "partition_values": dict(self.partition_values),
            "files": [{"path": f.path, "size_bytes": f.size_bytes} for f in self.files],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """The bin that `to_json` wrote; raises KeyError, TypeError or ValueError for other documents."""
        return cls(
            partition_values=dict(document["partition_values"]),
            files=tuple(PlannedFile(path=f["path"], size_bytes=f["size_bytes"]) for f in document["files"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BinPlan:
    """The planned work. Subclasses add fields, which have the same names in JSON.

    Attributes:
        kind: the kind of plan, as in JSON.
        table_id: `metaData.id` of the table that the plan is for.
        version: the version that the plan was made from.
        predicate: Spark SQL over partition columns, or None for the whole table.
        target_size_bytes: largest size of a bin. A single larger file is a bin of its own.
        considered_files: number of live files that match the predicate.
        bins: each bin becomes one file, or no file if all its rows are deleted.
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
        """Number of files to rewrite."""
        return sum(len(item.files) for item in self.bins)

    @property
    def total_bytes(self) -> int:
        """Bytes to rewrite."""
        return sum(item.size_bytes for item in self.bins)

    def predicted(self) -> dict[str, int]:
        """The expected metrics of the commit; assumes one new file per bin, even if all rows are deleted."""
        return {
            "files_removed": self.num_files,
            "files_added": len(self.bins),
            "bytes_removed": self.total_bytes,
            "partitions": len({tuple(item.partition_values.items()) for item in self.bins}),
        }

    def to_json(self) -> dict[str, Any]:
        """The plan as a JSON object."""
        values = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "bins"}
        return {
            **plan_header(self.kind),
            **values,
            "predicted": self.predicted(),
            "bins": [item.to_json() for item in self.bins],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """The plan that `to_json` wrote.

        Raises:
            MaintenanceError: the document is not a plan of this kind, or has a newer format.
        """
        check_plan_header(document, cls.kind)
        try:
            values = {item.name: document[item.name] for item in fields(cls) if item.name != "bins"}
            return cls(**values, bins=tuple(CompactionBin.from_json(item) for item in document["bins"]))
        except (KeyError, TypeError, ValueError) as error:
            raise malformed_plan(cls.kind, error) from error
