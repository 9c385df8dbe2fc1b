"""Recognition of a table that was replaced by another table at the same location."""

from __future__ import annotations

from delta_core.errors import ObjectNotFoundError, StaleCommitError
from delta_core.snapshot.snapshot import Snapshot


def require_same_table(before: Snapshot, latest: Snapshot) -> Snapshot:
    """Return the latest version when it belongs to the table of an earlier snapshot.

    No request while the table id is the same. Otherwise one: other writers may give a table a new id when
    they overwrite its schema, and the earlier version is then still in the log.

    Raises:
        StaleCommitError: another table is at the location.
    """
    if latest.metadata.id == before.metadata.id or _is_in_log(before):
        return latest
    raise StaleCommitError(
        f"The table at {before.store.uri!r} is no longer the one that was read.",
        cause=f"The table was deleted or replaced since version {before.version} was read.",
        fix="Open the table again and repeat the operation.",
    )


def _is_in_log(snapshot: Snapshot) -> bool:
    file = snapshot.segment.version_file
    try:
        return file is not None and snapshot.store.head(file.path) == file
    except ObjectNotFoundError:
        return False
