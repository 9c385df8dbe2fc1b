"""Selects the files to compact, and packs them into bins. Reads the snapshot only, no data file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.arguments import whole_bytes
from delta_core.errors import ConfigurationError, ExpressionError
from delta_core.expressions.ast import Expression
from delta_core.expressions.columns import referenced_names
from delta_core.expressions.parse import parse_predicate
from delta_core.expressions.render import to_spark_sql
from delta_core.expressions.typing import resolve_predicate
from delta_core.maintenance.compaction.bin_plan import BinPlan, CompactionBin
from delta_core.maintenance.rewriting.planned_files import PlannedFile
from delta_core.maintenance.rewriting.reach import reachable
from delta_core.replay.live_files import LiveFiles
from delta_core.scan.partition_pruning import partition_mask
from delta_core.schema.partition_values import value_of
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess

FILE_COLUMNS = ["path", "partition_values", "size_bytes", "modification_time_ms"]
"""The columns of live files that `pack_bins` needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPlan(BinPlan):
    """The planned work of a compaction.

    Attributes:
        min_file_size_bytes: files below this size are compacted.
    """

    kind: ClassVar[str] = "compaction"

    min_file_size_bytes: int

    def predicted(self) -> dict[str, int]:
        """The expected metrics of the commit; assumes that the new files are as large as the old files."""
        # Not super(): `slots=True` creates a new class, and super() would refer to the old class.
        return {**BinPlan.predicted(self), "bytes_added": self.total_bytes}


def plan_compaction(
    snapshot: Snapshot,
    *,
    predicate: Expression | str | None = None,
    target_size_bytes: int | None = None,
    min_file_size_bytes: int | None = None,
    reach: DataAccess | None = None,
) -> CompactionPlan:
    """Pack the small files of each partition into bins of at most the target size.

    Bins keep the order in which the files were written. Rows that were loaded together stay together, and
    the new files have narrow minimum and maximum values. Bins of a single file are left out, because
    rewriting one file has no benefit.

    Args:
        snapshot: the version to plan for.
        predicate: selects partitions; over partition columns only.
        target_size_bytes: size of a new file; `delta.targetFileSize` (1 GiB by default) when None.
        min_file_size_bytes: files below this size are small. Three quarters of the target when None, so that
            a file near the target is not rewritten only to add a tiny file to it.
        reach: leave out files that are neither in the table nor below a root allowed here: files that a
            shallow clone shares with its source. None plans for all files.

    Raises:
        ExpressionError: the predicate does not parse, or names a column that the table is not partitioned by.
        ConfigurationError: a size is not positive, or `min_file_size_bytes` exceeds the target.
        UnsupportedTableFeatureError: the table cannot be read.
    """
    snapshot.require_readable(operation="plan a compaction", through_scan=True)
    target = whole_bytes(target_size_bytes, what="target_size_bytes")
    target = snapshot.properties.target_file_size_bytes if target is None else target
    small = whole_bytes(min_file_size_bytes, what="min_file_size_bytes")
    small = max(1, target * 3 // 4) if small is None else small
    if not 0 < small <= target:
        raise ConfigurationError(
            f"Files below {small} bytes cannot be compacted to files of {target} bytes.",
            fix="Set a positive target size, and a positive minimum file size that is not above the target.",
        )
    condition = partition_predicate(snapshot, predicate)
    files = files_in(snapshot, condition).to_table(FILE_COLUMNS)
    if reach is not None:
        files = files.filter(pa.array(reachable(files["path"], snapshot.store, reach)))
    bins = tuple(
        pack_bins(files.filter(pc.less(files["size_bytes"], small)), snapshot, target, smallest_bin=2)
    )
    return CompactionPlan(
        table_id=snapshot.metadata.id,
        version=snapshot.version,
        predicate=None if condition is None else to_spark_sql(condition),
        target_size_bytes=target,
        min_file_size_bytes=small,
        considered_files=files.num_rows,
        bins=bins,
    )


def partition_predicate(snapshot: Snapshot, predicate: Expression | str | None) -> Expression | None:
    """The predicate resolved against the schema.

    Raises:
        ExpressionError: the predicate does not parse, or names a column that the table is not partitioned
            by. A file whose rows match only in part could only be rewritten as a whole.
    """
    if predicate is None:
        return None
    resolved = (
        parse_predicate(predicate, snapshot.schema)
        if isinstance(predicate, str)
        else resolve_predicate(predicate, snapshot.schema)
    )
    others = sorted(referenced_names(resolved) - set(snapshot.partition_columns))
    if others:
        raise ExpressionError(
            f"The predicate names columns that the table is not partitioned by: {', '.join(others)}.",
            cause="The operation rewrites whole files, so a predicate can only select partitions.",
            fix=f"Use the partition columns ({', '.join(snapshot.partition_columns) or 'none'}).",
        )
    return resolved


def files_in(snapshot: Snapshot, condition: Expression | None) -> LiveFiles:
    """The live files whose partitions satisfy a condition from `partition_predicate`; all files when None."""
    live = snapshot.files
    if condition is None:
        return live
    return live.select(
        partition_mask(
            live, condition, snapshot.schema, snapshot.partition_columns, mapping=snapshot.column_mapping
        )
    )


def partition_names(snapshot: Snapshot) -> tuple[str, ...]:
    """The physical names of the partition columns, as in the log."""
    fields = [snapshot.schema.find(name) for name in snapshot.partition_columns]
    return tuple(snapshot.column_mapping.physical_name(field) for field in fields if field is not None)


def pack_bins(
    files: pa.Table, snapshot: Snapshot, target_size_bytes: int, *, smallest_bin: int
) -> Iterator[CompactionBin]:
    """Pack the files of each partition into bins of the target size, in the order in which they were written.

    Args:
        files: live files with FILE_COLUMNS.
        snapshot: the version that the files are from.
        target_size_bytes: largest size of a bin with more than one file.
        smallest_bin: bins with fewer files are left out.
    """
    names = partition_names(snapshot)
    rows = files.to_pylist()
    for row in rows:
        values = dict(row["partition_values"] or ())
        row["key"] = tuple(value_of(values, name) for name in names)
    # None sorts before every string.
    rows.sort(
        key=lambda row: (
            tuple((value is not None, value or "") for value in row["key"]),
            row["modification_time_ms"],
            row["path"],
        )
    )
    for key, group in groupby(rows, key=lambda row: row["key"]):
        for packed in _packed(group, target_size_bytes):
            if len(packed) >= smallest_bin:
                yield CompactionBin(partition_values=dict(zip(names, key, strict=True)), files=packed)


def _packed(rows: Iterable[Mapping[str, Any]], target: int) -> Iterator[tuple[PlannedFile, ...]]:
    files: list[PlannedFile] = []
    filled = 0
    for row in rows:
        size = row["size_bytes"]
        if files and filled + size > target:
            yield tuple(files)
            files, filled = [], 0
        files.append(PlannedFile(path=row["path"], size_bytes=size))
        filled += size
    if files:
        yield tuple(files)
