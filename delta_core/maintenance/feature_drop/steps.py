"""Helpers for preparations: rewriting files, and repeating a step until nothing is left to do."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.errors import ConcurrentModificationError, MaxCommitAttemptsError
from delta_core.maintenance.compaction.bins import rewrite_bins
from delta_core.maintenance.compaction.plan import FILE_COLUMNS, pack_bins
from delta_core.maintenance.feature_drop.drop import Drop
from delta_core.maintenance.rewriting.rewrite import Operation
from delta_core.snapshot.snapshot import Snapshot

MOST_CONFLICTS: Final = 20


def rewrite_files(drop: Drop, latest: Snapshot, paths: Collection[str]) -> frozenset[str]:
    """Rewrite live files, packed for each partition into bins of the target size; no row changes.

    Args:
        drop: the drop.
        latest: the newest version.
        paths: the files' paths, in the log's spelling.

    Returns:
        The new files' paths, in the log's spelling.

    Raises:
        ConcurrentModificationError: another writer removed one of the files meanwhile.
    """
    files = latest.files.to_table(FILE_COLUMNS)
    chosen = files.filter(pc.is_in(files["path"], value_set=pa.array(sorted(paths), pa.string())))
    target = latest.properties.target_file_size_bytes
    rewritten = rewrite_bins(
        latest,
        tuple(pack_bins(chosen, latest, target, smallest_bin=1)),
        planned_version=latest.version,
        operation=Operation(name="REORG", parameters={"predicate": [], "applyPurge": True}),
        run=drop.run,
    )
    return frozenset(add.path for add in rewritten.adds)


def repeat_until_done(latest: Snapshot, step: Callable[[Snapshot], bool]) -> Snapshot:
    """Repeat a step until it returns False, also after conflicts; returns the newest version."""
    conflicts = 0
    while True:
        try:
            if not step(latest):
                return latest
        except (ConcurrentModificationError, MaxCommitAttemptsError):
            conflicts += 1
            if conflicts > MOST_CONFLICTS:
                raise
        latest = latest.refresh()
