"""Which files have deleted rows in them. Pure: reads a snapshot, touches no data file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pyarrow.compute as pc

from delta_core.errors import ConfigurationError
from delta_core.expressions.ast import Expression
from delta_core.expressions.render import to_spark_sql
from delta_core.maintenance.compaction.bin_plan import BinPlan
from delta_core.maintenance.compaction.plan import FILE_COLUMNS, files_in, pack_bins, partition_predicate
from delta_core.snapshot.arguments import whole_bytes
from delta_core.snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgePlan(BinPlan):
    """What a purge would do.

    Attributes:
        deleted_rows: that the files' vectors name.
    """

    kind: ClassVar[str] = "purge"

    deleted_rows: int


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
    target = whole_bytes(target_size_bytes, what="target_size_bytes")
    target = snapshot.properties.target_file_size_bytes if target is None else target
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
        bins=tuple(pack_bins(dirty.select(FILE_COLUMNS), snapshot, target, smallest_bin=1)),
    )
