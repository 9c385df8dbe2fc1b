"""Removal of a feature's uses from the newest version, with one function for each feature that needs it.

Each function first changes the properties so that new writers do not use the feature, then removes the
existing uses, in commits that change no row. Each continues the work of an interrupted run, and commits
nothing when no use is left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from delta_core.actions import RemoveFile
from delta_core.maintenance.apply_rewrite import apply_rewrite
from delta_core.maintenance.backfill.apply import FILES_PER_COMMIT
from delta_core.maintenance.feature_drop.drop import Drop, checkpointed
from delta_core.maintenance.feature_drop.state import (
    deletion_vector_files_without_tombstone,
    files_with_row_ids,
    has_row_ids,
    revived_files,
)
from delta_core.maintenance.feature_drop.steps import repeat_until_done, rewrite_files
from delta_core.maintenance.feature_drop.unmapped_files import without_mapping
from delta_core.maintenance.feature_drop.widened_files import without_widened_columns
from delta_core.maintenance.purge.plan import plan_purge
from delta_core.maintenance.row_counts import counted_adds
from delta_core.snapshot.snapshot import Snapshot
from delta_core.transaction.row_ids import SUSPENDED

Preparation = Callable[[Drop, Snapshot], Snapshot]


def without_deletion_vectors(drop: Drop, latest: Snapshot) -> Snapshot:
    """Remove all deletion vectors, and rewrite live files that have a tombstone with a deletion vector.

    Files with deletion vectors are rewritten without the deleted rows. Older versions still need the files of
    deletion vectors. A vacuum that does not support deletion vectors would take those files for orphan files,
    so they get tombstones of their own.
    """

    def step(now: Snapshot) -> bool:
        if drop.configure(now, {"delta.enableDeletionVectors": None}) is not now:
            return True
        if now.files.has_deletion_vectors:
            plan = plan_purge(now)
            apply_rewrite(now, plan, run=drop.run)
            return True
        revived = revived_files(now)
        if revived:
            rewrite_files(drop, now, revived)
            return True
        unprotected = deletion_vector_files_without_tombstone(now)
        if unprotected:
            now_ms = drop.run.now_ms()
            removes = [
                # The writer that removed the data file may have a clock that is ahead of this one.
                RemoveFile(path=path, deletion_timestamp_ms=max(now_ms, needed_ms), data_change=False)
                for path, needed_ms in unprotected.items()
            ]
            drop.commit(now, *removes, operation="Deletion Vector Tombstones", parameters={})
        return bool(unprotected)

    return repeat_until_done(latest, step)


def without_row_ids(drop: Drop, latest: Snapshot) -> Snapshot:
    """Remove the row ids of all live files, and stop the assignment of new ones.

    Files with row ids are added again without them (PROTOCOL.md, "Row Tracking"), some thousands of files in
    each commit.
    """

    def step(now: Snapshot) -> bool:
        if drop.configure(now, {"delta.enableRowTracking": None, SUSPENDED: "true"}) is not now:
            return True
        if not has_row_ids(now):
            return False
        files = files_with_row_ids(now).slice(0, FILES_PER_COMMIT)
        adds = [
            replace(add, base_row_id=None, default_row_commit_version=None)
            for add in counted_adds(now.store, files, access=drop.run.access)
        ]
        drop.commit(now, *adds, operation="ROW TRACKING UNBACKFILL", parameters={})
        return True

    return repeat_until_done(latest, step)


def without_v2_checkpoint(drop: Drop, latest: Snapshot) -> Snapshot:
    """Set the checkpoint policy to classic, and make the newest version start from a classic checkpoint."""

    def step(now: Snapshot) -> bool:
        return drop.configure(now, {"delta.checkpointPolicy": None}) is not now

    latest = repeat_until_done(latest, step)
    if not latest.has_v2_checkpoint:
        return latest
    checkpoint = latest.segment.checkpoint
    if checkpoint is not None and checkpoint.version == latest.version:
        latest = drop.empty_commit(latest)  # This version may have a V2 checkpoint with a classic name.
    return checkpointed(latest)


PREPARATIONS: Mapping[str, Preparation] = {
    "deletionVectors": without_deletion_vectors,
    "rowTracking": without_row_ids,
    "v2Checkpoint": without_v2_checkpoint,
    "columnMapping": without_mapping,
    "typeWidening": without_widened_columns,
    "typeWidening-preview": without_widened_columns,
}
"""By feature. For other features the drop removes the uses in its commit, or the user must remove them."""
