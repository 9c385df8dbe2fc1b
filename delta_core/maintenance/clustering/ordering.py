"""Sorts rows along a curve: rewrites the plan's files, then makes one commit that changes no data."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from delta_core.actions import AddFile
from delta_core.data.compression import Compression
from delta_core.dml.post_commit import commit_owned
from delta_core.errors import ConfigurationError
from delta_core.maintenance.clustering.columns import cube_tags
from delta_core.maintenance.clustering.curve import Shape
from delta_core.maintenance.clustering.execute import GroupResult, GroupRunner
from delta_core.maintenance.clustering.groups import OrderingPlan
from delta_core.maintenance.clustering.values import Path
from delta_core.maintenance.compaction.metrics import file_metrics, operation_metrics
from delta_core.maintenance.rewriting.layout import layout_fields
from delta_core.maintenance.rewriting.planned_files import (
    LiveSources,
    delete_unused,
    require_same_table,
    still_live,
)
from delta_core.maintenance.rewriting.writing import added_file
from delta_core.run import Run
from delta_core.snapshot.argument_parsing import whole_bytes
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.writer_kind import WriterKind
from delta_core.transaction.commit_result import Committed
from delta_core.transaction.file_actions import remove_actions
from delta_core.transaction.owned_files import OwnedFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """The order of the rows, and how the log records the order.

    Attributes:
        paths: paths of the columns, as physical names.
        shape: the curve, which the files' tags name.
        provider: `clusteringProvider` of the new files.
        parameters: `operationParameters` of the commit.
        stats_name: delta-spark's name of the metric about cubes.
    """

    paths: Sequence[Path]
    shape: Shape
    provider: str | None
    parameters: Mapping[str, Any]
    stats_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderingResult:
    """The result of a Z-order or of a clustering.

    Attributes:
        committed: the commit; None when there was nothing to do.
        metrics: as delta-spark's OPTIMIZE returns them (numFilesAdded, zOrderStats or clusteringStats, ...).
        rows: number of rewritten rows.
        groups: each group with its new files and their curve.
    """

    committed: Committed | None
    metrics: Mapping[str, Any] = field(hash=False)
    rows: int = 0
    groups: tuple[GroupResult, ...] = field(default=(), hash=False)

    @property
    def version(self) -> int | None:
        """The committed version; None when this call committed nothing."""
        return None if self.committed is None or self.committed.already_applied else self.committed.version


def refresh_for(
    snapshot: Snapshot, plan: OrderingPlan, *, doing: str, memory_limit_bytes: int | None
) -> Snapshot:
    """The newest version, after checks that the plan is for this table and that the table can be rewritten.

    Raises:
        ConfigurationError: the memory limit is not positive.
        MaintenanceError: the plan is for another table.
        UnsupportedTableFeatureError: the table needs a feature that this writer does not support.
    """
    memory_limit_bytes = whole_bytes(memory_limit_bytes, what="memory_limit_bytes")
    if memory_limit_bytes is not None and memory_limit_bytes < 1:
        raise ConfigurationError(
            f"A memory limit of {memory_limit_bytes} bytes is too small.", fix="Set a positive memory limit."
        )
    latest = snapshot.refresh()
    require_same_table(latest, plan.table_id)
    latest.require_readable(operation=doing, through_scan=True)
    latest.require_writable(writer_kind=WriterKind.REWRITE, operation=doing)
    return latest


def apply_ordering(
    latest: Snapshot,
    plan: OrderingPlan,
    order: Order,
    *,
    memory_limit_bytes: int | None,
    compression: Compression | None,
    run: Run,
) -> OrderingResult:
    """Rewrite the plan's files and commit; `latest` is the result of `refresh_for`.

    Raises:
        ConcurrentDeleteDeleteError: a planned file is no longer live.
        ConcurrentModificationError: another commit conflicts.
        MissingDataFileError, InvalidTableError, VerificationError: a file could not be rewritten.
        PathEscapeError: a file is neither in the table nor below an allowed root.
    """
    if plan.is_empty:
        return OrderingResult(committed=None, metrics=_result_metrics(plan, [], order))
    planned = {file.path: file.size_bytes for group in plan.groups for file in group.files}
    removed = still_live(latest, planned, planned_version=plan.version)
    sources = LiveSources.of(removed, store=latest.store, access=run.access)
    runner = GroupRunner(
        store=latest.store,
        layout=layout_fields(latest, access=run.access, compression=compression),
        sources=sources,
        columns=order.paths,
        shape=order.shape,
        seed=plan.version,
        memory_limit_bytes=memory_limit_bytes,
        run=run,
    )
    results = runner.rewrite(plan.groups)
    delete_unused(latest.store, [file for result in results for file in result.files if not file["rows"]])
    adds = [add for result in results for add in _added(result, plan.columns, sources, order)]
    rows = sum(int(file["rows"]) for result in results for file in result.files)
    run.progress.emit("data.written", files=len(adds))
    run.progress.emit("stats.collected", files=len(adds), rows=rows)
    transaction = run.begin(
        latest,
        operation="OPTIMIZE",
        writer_kind=WriterKind.REWRITE,
        operation_parameters=order.parameters,
    )
    transaction.preserve_rows(True)
    transaction.add(*remove_actions(removed, deletion_timestamp_ms=run.now_ms(), data_change=False), *adds)
    transaction.set_metrics(
        operation_metrics(list(planned.values()), adds, deletion_vectors=sources.num_deletion_vectors)
    )
    owned = OwnedFiles(store=latest.store).with_data(adds)
    return OrderingResult(
        committed=commit_owned(transaction, owned, run.progress),
        metrics=_result_metrics(plan, adds, order),
        rows=rows,
        groups=tuple(results),
    )


def _added(result: GroupResult, columns: Sequence[str], sources: LiveSources, order: Order) -> list[AddFile]:
    common_tags = sources.common(result.group.files).tags
    tags = {**common_tags, **cube_tags(columns, str(uuid.uuid4()), curve=order.shape)}
    return [
        added_file(file, result.group.partition_values, tags=tags, clustering_provider=order.provider)
        for file in result.files
        if file["rows"]
    ]


def _result_metrics(plan: OrderingPlan, adds: Sequence[AddFile], order: Order) -> dict[str, Any]:
    removed = [file.size_bytes for group in plan.groups for file in group.files]
    metrics = file_metrics(
        removed,
        adds,
        considered_files=plan.considered_files,
        partitions=plan.predicted()["partitions"],
        bins=len(plan.groups),
        preserves_order=False,
    )
    return {**metrics, order.stats_name: _cube_metrics(plan, removed, order)}


def _cube_metrics(plan: OrderingPlan, removed: Sequence[int], order: Order) -> dict[str, Any]:
    files = sum(group.ordered_files for group in plan.groups)
    size = sum(group.ordered_bytes for group in plan.groups)
    cubes = sum(group.cubes for group in plan.groups)
    if order.shape == "zorder":
        return {
            "strategyName": "all",
            "inputCubeFiles": {"num": files, "size": size},
            "inputOtherFiles": {"num": len(removed) - files, "size": sum(removed) - size},
            "inputNumCubes": cubes,
            "mergedFiles": {"num": len(removed), "size": sum(removed)},
            "numOutputCubes": len(plan.groups),
        }
    return {
        "inputZCubeFiles": {"numFiles": files, "size": size},
        "inputOtherFiles": {"numFiles": len(removed) - files, "size": sum(removed) - size},
        "inputNumZCubes": cubes,
        "mergedFiles": {"numFiles": len(removed), "size": sum(removed)},
        "numOutputZCubes": len(plan.groups),
    }
