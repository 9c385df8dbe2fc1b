"""Which sidecars nobody needs (PROTOCOL.md, "Metadata Cleanup", steps 4 and 5)."""

from __future__ import annotations

from collections.abc import Iterable

from delta_core.errors import CorruptLogError, ObjectNotFoundError
from delta_core.log.checkpoint_reader import CheckpointReader
from delta_core.log.listing import CheckpointFiles, list_log
from delta_core.log.log_path import SIDECAR_DIRECTORY
from delta_core.storage.cached import without_cache
from delta_core.storage.log_store import LogStore, ObjectInfo
from delta_core.table_features.table_properties import DAY_MS


def unneeded_sidecars(
    store: LogStore, *, known: Iterable[CheckpointFiles], from_version: int, now_ms: int
) -> list[ObjectInfo]:
    """The sidecars that no checkpoint names, and that no checkpoint in the making can name.

    A writer creates sidecars before the checkpoint that names them, so those of less than a day, as of
    midnight (UTC), stay. Where a checkpoint cannot be read nobody knows what it names, and all sidecars stay.
    The table's policy is not asked: it may have been another one. Requests: one listing; where there are old
    sidecars another, and opening every checkpoint.

    Args:
        store: the table's store.
        known: the checkpoints of an earlier listing. A weak store may leave out of the next what it has.
        from_version: checkpoints before this one are gone, or about to be.
        now_ms: the time, epoch milliseconds.
    """
    cutoff_ms = now_ms // DAY_MS * DAY_MS - DAY_MS
    # Listed before the checkpoints: one that comes meanwhile and names an old sidecar is seen.
    old = [info for info in store.list_directory(SIDECAR_DIRECTORY) if info.modified_ms < cutoff_ms]
    if not old:
        return []
    named: set[str] = set()
    for files in {item.names: item for item in (*known, *list_log(store).checkpoints)}.values():
        if files.version < from_version:
            continue
        try:
            named.update(CheckpointReader.open(without_cache(store), files).sidecar_paths())
        except (CorruptLogError, ObjectNotFoundError):
            return []
    return [info for info in old if info.path not in named]
