"""Sorts the rows of files along a curve: rewrites a plan's groups."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from delta_core.actions import AddFile
from delta_core.data.file_writer import Compression
from delta_core.maintenance.clustering.columns import cube_tags
from delta_core.maintenance.clustering.execute import GroupResult, GroupRunner
from delta_core.maintenance.clustering.groups import OrderingPlan
from delta_core.maintenance.clustering.order import Order
from delta_core.maintenance.rewriting.metrics import file_metrics
from delta_core.maintenance.rewriting.planned_files import LiveSources, delete_unused
from delta_core.maintenance.rewriting.rewrite import NewFiles, Operation, Rewritten, rewrite
from delta_core.maintenance.rewriting.writing import added_file
from delta_core.run import Run
from delta_core.snapshot.snapshot import Snapshot


def rewrite_groups(
    latest: Snapshot,
    plan: OrderingPlan,
    order: Order,
    *,
    memory_limit_bytes: int | None,
    compression: Compression | None,
    run: Run,
) -> tuple[Rewritten, list[GroupResult]]:
    """Sort the rows of each group into new files and commit, if all the groups' files are live.

    Errors are those of `rewrite`. There must be a group.
    """
    results: list[GroupResult] = []

    def write(layout: Mapping[str, Any], sources: LiveSources) -> NewFiles:
        runner = GroupRunner(
            store=latest.store,
            layout=layout,
            sources=sources,
            columns=order.paths,
            shape=order.shape,
            seed=plan.version,
            memory_limit_bytes=memory_limit_bytes,
            run=run,
        )
        results.extend(runner.rewrite(plan.groups))
        delete_unused(latest.store, [file for result in results for file in result.files if not file["rows"]])
        adds = [add for result in results for add in _added(result, plan.columns, sources, order)]
        run.progress.emit("data.written", files=len(adds))
        rows = sum(int(file["rows"]) for result in results for file in result.files)
        return NewFiles(adds=adds, rows=rows)

    rewritten = rewrite(
        latest,
        [file for group in plan.groups for file in group.files],
        write,
        planned_version=plan.version,
        operation=Operation(name="OPTIMIZE", parameters=order.parameters),
        compression=compression,
        run=run,
    )
    return rewritten, results


def ordering_metrics(plan: OrderingPlan, adds: Sequence[AddFile], order: Order) -> dict[str, Any]:
    """The metrics that delta-spark's OPTIMIZE returns for sorted files."""
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


def _added(result: GroupResult, columns: Sequence[str], sources: LiveSources, order: Order) -> list[AddFile]:
    common_tags = sources.common(result.group.files).tags
    tags = {**common_tags, **cube_tags(columns, str(uuid.uuid4()), curve=order.shape)}
    return [
        added_file(file, result.group.partition_values, tags=tags, clustering_provider=order.provider)
        for file in result.files
        if file["rows"]
    ]


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
