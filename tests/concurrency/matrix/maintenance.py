"""What changes no row, and what takes changes back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from delta_core.execution.inline_executor import InlineExecutor
from delta_core.execution.progress import ProgressReporter
from delta_core.jobs.lease import fence_app_id, fence_transaction
from delta_core.maintenance.apply_rewrite import apply_rewrite
from delta_core.maintenance.clustering.plan import plan_z_order
from delta_core.maintenance.compaction.plan import plan_compaction
from delta_core.maintenance.fsck import apply_fsck, plan_fsck
from delta_core.maintenance.restore.apply import apply_restore
from delta_core.maintenance.restore.plan import plan_restore
from delta_core.maintenance.rewriting.planned_files import PlannedFile
from delta_core.maintenance.vacuum.apply import apply_vacuum
from delta_core.maintenance.vacuum.plan import plan_vacuum
from delta_core.run import Run
from delta_core.transaction.commit_result import raise_for_result
from delta_core.transaction.observer import CommitPhase
from tests.concurrency.matrix.footprint import Box, Footprint
from tests.concurrency.matrix.layouts import FILE_ROWS, RESTORED_VERSION, Target
from tests.concurrency.matrix.operation import Case, Operation
from tests.concurrency.matrix.state import TableState

LEASE_TAKEOVER = "lease takeover"
REPAIR = "repair"
FENCE = 7

_ALONE = InlineExecutor(1)


def _of_region(case: Case, files: Iterable[PlannedFile]) -> tuple[PlannedFile, ...]:
    """The plan's files in the target's region, so that two rewrites of one partition can be apart."""
    wanted = {case.paths[label] for label in case.target.region}
    chosen = tuple(file for file in files if file.path in wanted)
    assert len(chosen) == len(wanted), "the region's files are not in the plan"
    return chosen


def _predicate(case: Case) -> str:
    return f"p = '{case.target.partition}'"


def _compact(case: Case) -> object:
    plan = plan_compaction(case.snapshot, predicate=_predicate(case))
    (item,) = plan.bins
    plan = replace(plan, bins=(replace(item, files=_of_region(case, item.files)),))
    return apply_rewrite(case.snapshot, plan, run=Run(executor=_ALONE, observer=case.interruption))


def _z_order(case: Case) -> object:
    plan = plan_z_order(case.snapshot, ["id", "v"], predicate=_predicate(case))
    (group,) = plan.groups
    plan = replace(plan, groups=(replace(group, files=_of_region(case, group.files)),))
    return apply_rewrite(case.snapshot, plan, run=Run(executor=_ALONE, observer=case.interruption))


def _restore(case: Case) -> object:
    plan = plan_restore(case.snapshot, version=RESTORED_VERSION)
    return apply_restore(case.snapshot, plan, run=Run(observer=case.interruption))


def _vacuum(case: Case) -> object:
    plan = plan_vacuum(case.snapshot)
    assert len(plan.files) == 1, "the orphan is what there is to delete"
    return apply_vacuum(
        case.snapshot, plan, run=Run(executor=_ALONE, progress=ProgressReporter(sink=case.interruption))
    )


def _repair(case: Case) -> object:
    """The target's file is gone when it is looked for; it is back when others look, so that they can read."""
    store, path = case.snapshot.store, case.paths[case.target.file]
    data = store.read(path)
    store.delete(path)

    class Back:
        def on_phase(self, phase: CommitPhase, version: int) -> None:
            if phase is CommitPhase.PREPARED:
                store.put(path, data)
            case.interruption.on_phase(phase, version)

    try:
        plan = plan_fsck(case.snapshot)
        assert [file.path for file in plan.missing] == [path]
        return apply_fsck(case.snapshot, plan, run=Run(commit=case.properties, observer=Back()))
    finally:
        store.put(path, data)


def _lost(state: TableState, target: Target) -> TableState:
    # A new row may have the id of one of the file's.
    return state.without(lambda row: row[0] in FILE_ROWS[target.file] and row[2] == "start")


def _fence(case: Case) -> object:
    transaction = fence_transaction(
        case.snapshot, "lease", FENCE, former_holder="nobody", observer=case.interruption
    )
    return raise_for_result(transaction.commit())


def _rearranged(target: Target) -> Footprint:
    bounds = [bound for label in target.region for bound in FILE_ROWS[label]]
    return Footprint(
        removes=frozenset(target.region),
        adds=(Box(partition=target.partition, low=min(bounds), high=max(bounds)),),
        data_change=False,
    )


def _same(state: TableState, target: Target) -> TableState:
    return state


def maintenance(restored: Callable[[TableState], TableState]) -> tuple[Operation, ...]:
    """The operations; `restored` is what a restore makes of a state."""
    return (
        Operation(
            name="compaction", commits=("OPTIMIZE",), run=_compact, footprint=_rearranged, effect=_same
        ),
        Operation(name="z-order", commits=("OPTIMIZE",), run=_z_order, footprint=_rearranged, effect=_same),
        Operation(
            name="restore",
            commits=("RESTORE",),
            placed=False,
            run=_restore,
            footprint=lambda target: Footprint(
                reads_all=True,
                removes=frozenset({"D2"}),
                adds=(Box(partition="p2", low=90, high=90),),
                serializable=True,
                reuses_files=True,
            ),
            effect=lambda state, target: restored(state),
        ),
        Operation(
            name=REPAIR,
            commits=("FSCK",),
            run=_repair,
            footprint=lambda target: Footprint(removes=frozenset({target.file})),
            effect=_lost,
        ),
        Operation(
            name="vacuum",
            commits=("VACUUM START", "VACUUM END"),
            placed=False,
            run=_vacuum,
            footprint=lambda target: Footprint(deletes_files=True),
            effect=_same,
        ),
        Operation(
            name=LEASE_TAKEOVER,
            commits=("LEASE TAKEOVER",),
            placed=False,
            run=_fence,
            footprint=lambda target: Footprint(key=(fence_app_id("lease"), FENCE)),
            effect=lambda state, target: state.with_key(fence_app_id("lease"), FENCE),
        ),
    )
