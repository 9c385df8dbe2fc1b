"""Selects the files that have a deletion vector. Reads the snapshot only, no data file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pyarrow.compute as pc

from delta_core.arguments import whole_bytes
from delta_core.errors import ConfigurationError
from delta_core.expressions.ast import Expression
from delta_core.expressions.render import to_spark_sql
from delta_core.maintenance.compaction.bin_plan import BinPlan
from delta_core.maintenance.compaction.plan import FILE_COLUMNS, files_in, pack_bins, partition_predicate
from delta_core.snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgePlan(BinPlan):
    """The planned work of a purge.

    Attributes:
        deleted_rows: number of rows that the files' deletion vectors mark as deleted.
    """

    kind: ClassVar[str] = "purge"

    deleted_rows: int


def plan_purge(
    snapshot: Snapshot,
    *,
    predicate: Expression | str | None = None,
    target_size_bytes: int | None = None,
) -> PurgePlan:
    """Choose the files that have a deletion vector, and pack those of each partition into bins.

    After the purge, no live file holds a deleted row. Older versions still refer to the old files and their
    deletion vectors, until a vacuum deletes them.

    Args:
        snapshot: the version to plan for.
        predicate: selects partitions; over partition columns only.
        target_size_bytes: size of a new file; `delta.targetFileSize` (1 GiB by default) when None.

    Raises:
        ConfigurationError: the size is not positive.
        ExpressionError: the predicate does not parse, or names a column that the table is not partitioned by.
        UnsupportedTableFeatureError: the table cannot be read.
    """
    snapshot.require_readable(operation="plan a purge", through_scan=True)
    target = whole_bytes(target_size_bytes, what="target_size_bytes")
    target = snapshot.properties.target_file_size_bytes if target is None else target
    if target <= 0:
        raise ConfigurationError(
            f"Files of {target} bytes cannot be written.", fix="Set a positive target size."
        )
    condition = partition_predicate(snapshot, predicate)
    files = files_in(snapshot, condition).to_table([*FILE_COLUMNS, "deletion_vector"])
    cardinality = pc.struct_field(files["deletion_vector"], "cardinality")
    # An empty deletion vector in the log is removed too.
    with_deletion_vectors = files.filter(pc.is_valid(cardinality))
    return PurgePlan(
        table_id=snapshot.metadata.id,
        version=snapshot.version,
        predicate=None if condition is None else to_spark_sql(condition),
        target_size_bytes=target,
        considered_files=files.num_rows,
        deleted_rows=int(pc.sum(cardinality).as_py() or 0),
        bins=tuple(pack_bins(with_deletion_vectors.select(FILE_COLUMNS), snapshot, target, smallest_bin=1)),
    )
