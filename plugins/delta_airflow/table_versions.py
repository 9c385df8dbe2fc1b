"""Which versions a table has, from names in its log alone: nothing is read."""

from __future__ import annotations

from collections.abc import Mapping

from delta_core.log.log_path import CHECKPOINT_KINDS, LOG_DIRECTORY, LogFileKind, LogPath, version_prefix
from delta_core.storage.open import open_store


def latest_version_from(
    table_uri: str, version: int, *, storage_options: Mapping[str, str] | None = None
) -> int | None:
    """The table's latest version, or None when it is below `version` or there is no table.

    Cost: one listing of the log from `version` on.

    Raises:
        DeltaError: the store cannot be opened or listed.
    """
    store = open_store(table_uri, storage_options=storage_options)
    listed = store.list_directory(LOG_DIRECTORY, start_after=version_prefix(version))
    found = (LogPath.parse(info.path) for info in listed)
    # A checkpoint counts, too: the commit it stands for may have been cleaned up.
    kinds = {LogFileKind.COMMIT, *CHECKPOINT_KINDS}
    return max((entry.version for entry in found if entry and entry.kind in kinds), default=None)
