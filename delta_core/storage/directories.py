"""Listing the directories in a directory of a store."""

from __future__ import annotations

from delta_core.errors import ConfigurationError
from delta_core.storage.log_store import LogStore


def list_directories(store: LogStore, path: str = "") -> list[str]:
    """The names of the directories directly in a directory, sorted; a missing directory is empty.

    Requests: one for each thousand names, of files and directories.

    Raises:
        ConfigurationError: the store, of another package, cannot list directories.
        StorageError: the store fails.
    """
    listing = getattr(store, "list_directories", None)
    if listing is None:
        raise ConfigurationError(
            f"The directories of {store.uri!r} cannot be listed.",
            cause=f"The store {type(store).__name__} has no method list_directories.",
            fix="List the tables in the policy file instead of discovering them.",
        )
    names: list[str] = listing(path)
    return names
