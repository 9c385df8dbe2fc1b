"""Taking away what the newest version needs a feature for, one function for each feature that has one.

Each first makes sure that no new writer brings it back, then takes away what is there, in commits that change
no row. Each finds what an earlier run left, and commits nothing where nothing is left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from delta_core.actions import RemoveFile
from delta_core.maintenance.backfill.apply import FILES_PER_COMMIT
from delta_core.maintenance.feature_drop.run import Run, checkpointed
from delta_core.maintenance.feature_drop.state import (
    deletion_vector_files_without_tombstone,
    has_row_ids,
    numbered_files,
    revived_files,
)
from delta_core.maintenance.feature_drop.steps import repeated, rewrite_files
from delta_core.maintenance.feature_drop.unmapped_files import without_mapping
from delta_core.maintenance.feature_drop.widened_files import without_widened_columns
from delta_core.maintenance.purge.apply import apply_purge
from delta_core.maintenance.purge.plan import plan_purge
from delta_core.maintenance.row_counts import counted_adds
from delta_core.snapshot.snapshot import Snapshot
from delta_core.transaction.row_ids import SUSPENDED

Preparation = Callable[[Run, Snapshot], Snapshot]


def without_deletion_vectors(run: Run, latest: Snapshot) -> Snapshot:
    """No live file has a deletion vector, and none is live that has been removed with one.

    Files with vectors are written again without the deleted rows. Older versions still need the vectors; a
    vacuum by who does not know what they are would take them for nobody's, so they get tombstones, too.
    """

    def step(now: Snapshot) -> bool:
        if run.configure(now, {"delta.enableDeletionVectors": None}) is not now:
            return True
        if now.files.has_deletion_vectors:
            plan = plan_purge(now)
            apply_purge(
                now,
                plan,
                allowed_roots=run.access.allowed_roots,
                executor=run.executor,
                properties=run.without_key,
                observer=run.observer,
                clock=run.clock,
            )
            return True
        revived = revived_files(now)
        if revived:
            rewrite_files(run, now, revived)
            return True
        unknown = deletion_vector_files_without_tombstone(now)
        if unknown:
            now_ms = run.clock.now_ms()
            removes = [
                # Who removed the data file may have a clock that is ahead of this one.
                RemoveFile(path=path, deletion_timestamp_ms=max(now_ms, needed_ms), data_change=False)
                for path, needed_ms in unknown.items()
            ]
            run.commit(now, *removes, operation="Deletion Vector Tombstones", parameters={})
        return bool(unknown)

    return repeated(latest, step)


def without_row_ids(run: Run, latest: Snapshot) -> Snapshot:
    """No live file says which ids its rows have, and no new one will.

    Files that do are added again without (PROTOCOL.md, "Row Tracking"), some thousands in each commit.
    """

    def step(now: Snapshot) -> bool:
        if run.configure(now, {"delta.enableRowTracking": None, SUSPENDED: "true"}) is not now:
            return True
        if not has_row_ids(now):
            return False
        files = numbered_files(now).slice(0, FILES_PER_COMMIT)
        adds = [
            replace(add, base_row_id=None, default_row_commit_version=None)
            for add in counted_adds(now.store, files, access=run.access)
        ]
        run.commit(now, *adds, operation="ROW TRACKING UNBACKFILL", parameters={})
        return True

    return repeated(latest, step)


def without_v2_checkpoint(run: Run, latest: Snapshot) -> Snapshot:
    """The policy asks for classic checkpoints, and the newest version is read from one."""

    def step(now: Snapshot) -> bool:
        return run.configure(now, {"delta.checkpointPolicy": None}) is not now

    latest = repeated(latest, step)
    if not latest.has_v2_checkpoint:
        return latest
    checkpoint = latest.segment.checkpoint
    if checkpoint is not None and checkpoint.version == latest.version:
        latest = run.nothing(latest)  # its version may have one of the second kind under the classic name
    return checkpointed(latest)


PREPARATIONS: Mapping[str, Preparation] = {
    "deletionVectors": without_deletion_vectors,
    "rowTracking": without_row_ids,
    "v2Checkpoint": without_v2_checkpoint,
    "columnMapping": without_mapping,
    "typeWidening": without_widened_columns,
    "typeWidening-preview": without_widened_columns,
}
"""By feature. What others are in use for is switched off by the drop, or is the user's to take away."""
