"""What changes no row, or takes changes back: planned anew by each run, as a retried job plans it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from delta_core import DeltaTable
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_spec import IdempotencyKey, JobSpec, TableRef
from delta_core.jobs.run_job import run_job
from tests.concurrency.kill_points.operation import KEY, PROPERTIES, Here, Operation
from tests.concurrency.matrix.layouts import ORPHAN, RESTORED_VERSION, template
from tests.concurrency.matrix.operations import LEVELS
from tests.concurrency.matrix.state import TableState

# One task after the other: what a point is called does not depend on which thread is faster.
_ALONE = InlineExecutor(1)


def _same(state: TableState | None) -> TableState | None:
    return state


def _restored(state: TableState | None) -> TableState:
    assert state is not None
    return replace(template(LEVELS[1]).restored, keys=state.keys)


def _orphan_is_there(root: Path) -> str:
    return "the orphan is still there" if (root / ORPHAN).exists() else ""


MAINTENANCE = (
    Operation(
        name="compaction",
        run=lambda run: DeltaTable(run.uri).optimize.compact(executor=_ALONE, commit_properties=PROPERTIES),
        effect=_same,
        commits=("OPTIMIZE",),
    ),
    Operation(
        name="z-order",
        run=lambda run: DeltaTable(run.uri).optimize.z_order(
            ["id", "v"], executor=_ALONE, commit_properties=PROPERTIES
        ),
        effect=_same,
        commits=("OPTIMIZE",),
    ),
    Operation(
        name="restore",
        run=lambda run: DeltaTable(run.uri).restore(RESTORED_VERSION, commit_properties=PROPERTIES),
        effect=_restored,
        commits=("RESTORE",),
    ),
    Operation(
        name="vacuum",
        run=lambda run: DeltaTable(run.uri).vacuum(
            dry_run=False, executor=_ALONE, commit_properties=PROPERTIES
        ),
        effect=_same,
        commits=("VACUUM START", "VACUUM END"),
        repeats=True,
        deletes=True,
        undone=_orphan_is_there,
    ),
)


def _job(kind: str, params: Mapping[str, Any], like: Operation, name: str = "") -> Operation:
    def run(here: Here) -> object:
        key = IdempotencyKey(app_id=KEY.app_id, version=KEY.version)
        spec = JobSpec(kind=kind, table=TableRef(uri=here.uri), params=params, idempotency=key)
        result = run_job(spec, JobContext(executor=_ALONE))
        assert result.error is None, result.error
        return result

    return replace(like, name=f"job: {name or kind}", run=run)


def as_jobs(likes: Mapping[str, Operation]) -> tuple[Operation, ...]:
    """The built-in kinds of jobs that write, each like the operation that it calls."""
    return (
        _job("optimize", {}, likes["compaction"]),
        _job("optimize", {"z_order_by": ["id", "v"]}, likes["z-order"], "optimize, in Z-order"),
        _job("restore", {"version": RESTORED_VERSION, "dry_run": False}, likes["restore"]),
        _job("vacuum", {"dry_run": False}, likes["vacuum"]),
    )


JOBS = as_jobs({operation.name: operation for operation in MAINTENANCE})


def log_job(kind: str, params: Mapping[str, Any], like: Operation) -> Operation:
    """A kind of job that works on the log."""
    return _job(kind, params, like)
