"""Which files to put together. Pure: reads a snapshot, touches no data file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

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
from delta_core.snapshot.arguments import whole_bytes
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess

FILE_COLUMNS = ["path", "partition_values", "size_bytes", "modification_time_ms"]
"""What `pack_bins` needs of live files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPlan(BinPlan):
    """What a compaction would do.

    Attributes:
        min_file_size_bytes: smaller files are put together.
    """

    kind: ClassVar[str] = "compaction"

    min_file_size_bytes: int

    def predicted(self) -> dict[str, int]:
        """What the commit would show; the new files' bytes are taken to be those of the old ones."""
        # Not super(): a dataclass with slots is another class than the one that the word means.
        return {**BinPlan.predicted(self), "bytes_added": self.total_bytes}


def plan_compaction(
    snapshot: Snapshot,
    *,
    predicate: Expression | str | None = None,
    target_size_bytes: int | None = None,
    min_file_size_bytes: int | None = None,
    reach: DataAccess | None = None,
) -> CompactionPlan:
    """Put the small files of each partition into bins of at most the target size.

    Files keep the order in which they were written, so that what was loaded together stays together and
    the new files' bounds stay narrow. A bin of one file is left alone: rewriting it would win nothing.

    Args:
        snapshot: the version to plan for.
        predicate: over partition columns only.
        target_size_bytes: size of a new file; `delta.targetFileSize` (1 GiB by default) when None.
        min_file_size_bytes: files smaller than this are small; three quarters of the target when None, so
            that a file near the target is not rewritten for the sake of a tiny neighbour.
        reach: leave out files that are neither in the table nor below a root allowed here, which a shallow
            clone shares with its source; None plans for all.

    Raises:
        ExpressionError: the predicate does not parse or names a column that is no partition column.
        ConfigurationError: a size is not positive, or small is larger than the target.
        UnsupportedTableFeatureError: the table cannot be read.
    """
    snapshot.require_readable(operation="plan a compaction", through_scan=True)
    target = whole_bytes(target_size_bytes, what="target_size_bytes")
    target = snapshot.properties.target_file_size_bytes if target is None else target
    small = whole_bytes(min_file_size_bytes, what="min_file_size_bytes")
    small = max(1, target * 3 // 4) if small is None else small
    if not 0 < small <= target:
        raise ConfigurationError(
            f"files below {small} bytes cannot be put together to files of {target} bytes",
            fix="give a positive target size, and a smaller or equal limit for what is small",
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
        ExpressionError: it does not parse, or it names a column that is no partition column. Rewriting
            a file because some of its rows match would rewrite the others too.
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
            f"the predicate names {', '.join(others)}, which is no partition column",
            cause="whole files are put together, so only partitions can be chosen",
            fix=f"use the partition columns ({', '.join(snapshot.partition_columns) or 'none'})",
        )
    return resolved


def files_in(snapshot: Snapshot, condition: Expression | None) -> LiveFiles:
    """The live files whose partitions satisfy what `partition_predicate` gave; all when None."""
    live = snapshot.files
    if condition is None:
        return live
    return live.select(
        partition_mask(
            live, condition, snapshot.schema, snapshot.partition_columns, mapping=snapshot.column_mapping
        )
    )


def partition_names(snapshot: Snapshot) -> tuple[str, ...]:
    """What the partition columns are called in the log."""
    fields = [snapshot.schema.find(name) for name in snapshot.partition_columns]
    return tuple(snapshot.column_mapping.physical_name(field) for field in fields if field is not None)


def pack_bins(
    files: pa.Table, snapshot: Snapshot, target_size_bytes: int, *, smallest_bin: int
) -> Iterator[CompactionBin]:
    """The files of each partition, in the order in which they were written, in bins of the target size.

    Args:
        files: live files with FILE_COLUMNS.
        snapshot: whose they are.
        target_size_bytes: no bin of several files is larger.
        smallest_bin: bins of fewer files are left out.
    """
    names = partition_names(snapshot)
    rows = files.to_pylist()
    for row in rows:
        values = dict(row["partition_values"] or ())
        row["key"] = tuple(value_of(values, name) for name in names)
    # None sorts before every text.
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
