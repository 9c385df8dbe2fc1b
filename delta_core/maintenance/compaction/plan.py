"""Which files to put together. Pure: reads a snapshot, touches no data file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.errors import ConfigurationError, ExpressionError
from delta_core.expressions.ast import Expression
from delta_core.expressions.columns import referenced_names
from delta_core.expressions.parse import parse_predicate
from delta_core.expressions.render import to_spark_sql
from delta_core.expressions.typing import resolve_predicate
from delta_core.maintenance.plan_json import check_plan_header, malformed_plan, plan_header
from delta_core.maintenance.rewriting.planned_files import PlannedFile
from delta_core.replay.live_files import LiveFiles
from delta_core.scan.partition_pruning import partition_mask
from delta_core.schema.partition_values import value_of
from delta_core.snapshot.snapshot import Snapshot

FILE_COLUMNS = ["path", "partition_values", "size_bytes", "modification_time_ms"]
"""What `bins_of` needs of live files."""


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
class CompactionPlan:
    """What a compaction would do.

    Attributes:
        table_id: `metaData.id` of the table that the plan is for.
        version: the version that it was made from.
        predicate: Spark SQL over partition columns, or None for the whole table.
        bins: each becomes one file.
        considered_files: live files that match the predicate.
    """

    table_id: str
    version: int
    predicate: str | None
    target_size_bytes: int
    min_file_size_bytes: int
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
        """What the commit would show; the new files' bytes are taken to be those of the old ones."""
        return {
            "files_removed": self.num_files,
            "files_added": len(self.bins),
            "bytes_removed": self.total_bytes,
            "bytes_added": self.total_bytes,
            "partitions": len({tuple(item.partition_values.items()) for item in self.bins}),
        }

    def to_json(self) -> dict[str, Any]:
        """The plan as a JSON object."""
        return {
            **plan_header("compaction"),
            "table_id": self.table_id,
            "version": self.version,
            "predicate": self.predicate,
            "target_size_bytes": self.target_size_bytes,
            "min_file_size_bytes": self.min_file_size_bytes,
            "considered_files": self.considered_files,
            "predicted": self.predicted(),
            "bins": [item.to_json() for item in self.bins],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """The plan that `to_json` wrote.

        Raises:
            MaintenanceError: it is not such a plan, or of a newer format.
        """
        check_plan_header(document, "compaction")
        try:
            return cls(
                table_id=document["table_id"],
                version=document["version"],
                predicate=document["predicate"],
                target_size_bytes=document["target_size_bytes"],
                min_file_size_bytes=document["min_file_size_bytes"],
                considered_files=document["considered_files"],
                bins=tuple(CompactionBin.from_json(item) for item in document["bins"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise malformed_plan("compaction", error) from error


def plan_compaction(
    snapshot: Snapshot,
    *,
    predicate: Expression | str | None = None,
    target_size_bytes: int | None = None,
    min_file_size_bytes: int | None = None,
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

    Raises:
        ExpressionError: the predicate does not parse or names a column that is no partition column.
        ConfigurationError: a size is not positive, or small is larger than the target.
        UnsupportedTableFeatureError: the table cannot be read.
    """
    snapshot.require_readable(operation="plan a compaction", through_scan=True)
    target = snapshot.properties.target_file_size_bytes if target_size_bytes is None else target_size_bytes
    small = max(1, target * 3 // 4) if min_file_size_bytes is None else min_file_size_bytes
    if not 0 < small <= target:
        raise ConfigurationError(
            f"files below {small} bytes cannot be put together to files of {target} bytes",
            fix="give a positive target size, and a smaller or equal limit for what is small",
        )
    condition = partition_predicate(snapshot, predicate)
    files = files_in(snapshot, condition).to_table(FILE_COLUMNS)
    bins = tuple(bins_of(files.filter(pc.less(files["size_bytes"], small)), snapshot, target, smallest_bin=2))
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


def bins_of(
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
