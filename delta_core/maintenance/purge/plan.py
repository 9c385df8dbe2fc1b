"""Which files have deleted rows in them. Pure: reads a snapshot, touches no data file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import pyarrow.compute as pc

from delta_core.errors import ConfigurationError
from delta_core.expressions.ast import Expression
from delta_core.expressions.render import to_spark_sql
from delta_core.maintenance.compaction.plan import (
    FILE_COLUMNS,
    CompactionBin,
    bins_of,
    files_in,
    partition_predicate,
)
from delta_core.maintenance.plan_json import check_plan_header, malformed_plan, plan_header
from delta_core.snapshot.snapshot import Snapshot

_KIND = "purge"


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgePlan:
    """What a purge would do.

    Attributes:
        table_id: `metaData.id` of the table that the plan is for.
        version: the version that it was made from.
        predicate: Spark SQL over partition columns, or None for the whole table.
        target_size_bytes: no new file is to be larger, unless one old file is.
        considered_files: live files that match the predicate.
        deleted_rows: that the files' vectors name.
        bins: each becomes one file, or none if all its rows are deleted.
    """

    table_id: str
    version: int
    predicate: str | None
    target_size_bytes: int
    considered_files: int
    deleted_rows: int
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
        return {
            **plan_header(_KIND),
            "table_id": self.table_id,
            "version": self.version,
            "predicate": self.predicate,
            "target_size_bytes": self.target_size_bytes,
            "considered_files": self.considered_files,
            "deleted_rows": self.deleted_rows,
            "predicted": self.predicted(),
            "bins": [item.to_json() for item in self.bins],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """The plan that `to_json` wrote.

        Raises:
            MaintenanceError: it is not such a plan, or of a newer format.
        """
        check_plan_header(document, _KIND)
        try:
            return cls(
                table_id=document["table_id"],
                version=document["version"],
                predicate=document["predicate"],
                target_size_bytes=document["target_size_bytes"],
                considered_files=document["considered_files"],
                deleted_rows=document["deleted_rows"],
                bins=tuple(CompactionBin.from_json(item) for item in document["bins"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise malformed_plan(_KIND, error) from error


def plan_purge(
    snapshot: Snapshot,
    *,
    predicate: Expression | str | None = None,
    target_size_bytes: int | None = None,
) -> PurgePlan:
    """Choose the files that have a deletion vector; those of a partition go into bins of the target size.

    Afterwards no data file of the newest version holds a row that is deleted. Older versions need the old
    files and their vectors until a vacuum takes them.

    Args:
        snapshot: the version to plan for.
        predicate: over partition columns only.
        target_size_bytes: size of a new file; `delta.targetFileSize` (1 GiB by default) when None.

    Raises:
        ConfigurationError: the size is not positive.
        ExpressionError: the predicate does not parse or names a column that is no partition column.
        UnsupportedTableFeatureError: the table cannot be read.
    """
    snapshot.require_readable(operation="plan a purge", through_scan=True)
    target = snapshot.properties.target_file_size_bytes if target_size_bytes is None else target_size_bytes
    if target <= 0:
        raise ConfigurationError(
            f"files cannot be purged to files of {target} bytes", fix="give a positive target size"
        )
    condition = partition_predicate(snapshot, predicate)
    files = files_in(snapshot, condition).to_table([*FILE_COLUMNS, "deletion_vector"])
    cardinality = pc.struct_field(files["deletion_vector"], "cardinality")
    # A vector that names no row may stand in the log as well, and goes too.
    dirty = files.filter(pc.is_valid(cardinality))
    return PurgePlan(
        table_id=snapshot.metadata.id,
        version=snapshot.version,
        predicate=None if condition is None else to_spark_sql(condition),
        target_size_bytes=target,
        considered_files=files.num_rows,
        deleted_rows=int(pc.sum(cardinality).as_py() or 0),
        bins=tuple(bins_of(dirty.select(FILE_COLUMNS), snapshot, target, smallest_bin=1)),
    )
