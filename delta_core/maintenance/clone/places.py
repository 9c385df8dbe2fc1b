"""Where a clone may be."""

from __future__ import annotations

from delta_core.errors import CloneError
from delta_core.storage.log_store import LogStore


def require_apart(source: LogStore, target: LogStore) -> None:
    """Refuse a place within the source or around it. Raises CloneError."""
    one, other = source.uri + "/", target.uri + "/"
    if one.startswith(other) or other.startswith(one):
        raise CloneError(
            f"The table at {source.uri} cannot be cloned to {target.uri}.",
            cause="One lies within the other: a vacuum of the outer one deletes the inner one's files.",
            fix="Choose a place beside the source.",
        )
