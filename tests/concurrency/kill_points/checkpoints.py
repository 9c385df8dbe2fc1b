"""Checkpoints and the cleaning of the log, which commit nothing."""

from __future__ import annotations

from pathlib import Path

from delta_core import DeltaTable
from tests.concurrency.kill_points.maintenance import log_job
from tests.concurrency.kill_points.operation import Operation, Start

_LOG = "_delta_log"


def _no_checkpoint(root: Path) -> str:
    """Whether a checkpoint of the newest version is missing. The hint to it is no part of the table."""
    newest = max(root.joinpath(_LOG).glob("*.json")).stem
    found = root.joinpath(_LOG, f"{newest}.checkpoint.parquet").exists()
    return "" if found else f"there is no checkpoint of version {int(newest)}"


def _log_is_long(root: Path) -> str:
    """What the cleaning has left that it should have taken."""
    oldest = min(root.joinpath(_LOG).glob("*.json"))
    return f"{oldest.name} is still there" if int(oldest.stem) == 0 else ""


_CHECKPOINT = Operation(
    name="checkpoint",
    run=lambda run: DeltaTable(run.uri).create_checkpoint(),
    effect=lambda state: state,
    keyed=0,
    undone=_no_checkpoint,
)

_CLEANUP = Operation(
    name="log cleanup",
    run=lambda run: DeltaTable(run.uri).cleanup_metadata(),
    effect=lambda state: state,
    start=Start.DUE,
    keyed=0,
    deletes=True,
    undone=_log_is_long,
)

CHECKPOINTS = (
    _CHECKPOINT,
    log_job("checkpoint", {}, _CHECKPOINT),
    _CLEANUP,
    log_job("cleanup_metadata", {"dry_run": False}, _CLEANUP),
)
