"""Sidecars that no checkpoint refers to (PROTOCOL.md, "Metadata Cleanup", steps 4 and 5)."""

from __future__ import annotations

from collections.abc import Iterable

from delta_core.errors import CorruptLogError, ObjectNotFoundError
from delta_core.log.checkpoint_reader import CheckpointReader
from delta_core.log.listing import CheckpointFiles, list_log
from delta_core.log.log_path import SIDECAR_DIRECTORY
from delta_core.storage.cached import without_cache
from delta_core.storage.log_store import LogStore, ObjectInfo
from delta_core.table_features.table_properties import DAY_MS


def unreferenced_sidecars(
    store: LogStore, *, known: Iterable[CheckpointFiles], from_version: int, now_ms: int
) -> list[ObjectInfo]:
    """The sidecars that no checkpoint refers to, now or once a checkpoint in progress is written.

    A writer creates sidecars before the checkpoint that refers to them. So sidecars that are less than a day
    old at the last midnight (UTC) are not returned. If any checkpoint cannot be read, its sidecars are
    unknown, and the result is empty. The table's checkpoint policy is ignored, since it may have changed.

    Requests: one listing. If there are old sidecars: another listing, and opening every checkpoint.

    Args:
        store: the table's store.
        known: the checkpoints of an earlier listing; a weakly consistent store may omit them from the next
            listing.
        from_version: checkpoints before this version are deleted or about to be deleted, and are ignored.
        now_ms: the current time in epoch milliseconds.
    """
    cutoff_ms = now_ms // DAY_MS * DAY_MS - DAY_MS
    # Listed before the checkpoints, so that a new checkpoint that refers to an old sidecar is seen.
    old = [info for info in store.list_directory(SIDECAR_DIRECTORY) if info.modified_ms < cutoff_ms]
    if not old:
        return []
    referenced: set[str] = set()
    for files in {item.names: item for item in (*known, *list_log(store).checkpoints)}.values():
        if files.version < from_version:
            continue
        try:
            referenced.update(CheckpointReader.open(without_cache(store), files).sidecar_paths())
        except (CorruptLogError, ObjectNotFoundError):
            return []
    return [info for info in old if info.path not in referenced]
