"""The check of a clone's location."""

from __future__ import annotations

from delta_core.errors import CloneError
from delta_core.storage.log_store import LogStore


def require_separate_locations(source: LogStore, target: LogStore) -> None:
    """Refuse a target within the source, or a source within the target. Raises CloneError."""
    source_root, target_root = source.uri + "/", target.uri + "/"
    if source_root.startswith(target_root) or target_root.startswith(source_root):
        raise CloneError(
            f"The table at {source.uri} cannot be cloned to {target.uri}.",
            cause="One of the two locations lies within the other. A vacuum of the outer table would delete "
            "files of the inner table.",
            fix="Choose a target outside the source's directory.",
        )
