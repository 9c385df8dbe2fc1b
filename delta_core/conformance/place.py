"""A new prefix below a user's URI. A run writes only below the prefix, and deletes all of it."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import ConfigurationError, DeltaError, StorageError, StoreContractError
from delta_core.storage.cached import without_cache
from delta_core.storage.log_store import LogStore
from delta_core.storage.open import local_root, open_store
from delta_core.storage.uri import canonical_table_uri

PREFIX = "deltaward-conformance-"
"""The start of the prefix's name; a random UUID follows."""

_DELETING_THREADS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanUp:
    """The result of deleting the objects of a run.

    Attributes:
        deleted: the number of deleted objects.
        left: the paths below the prefix that still exist, sorted.
        listed: whether the remaining paths could be listed.
        why: the error of the first failed deletion, or of the listing; else empty.
    """

    deleted: int
    left: Sequence[str] = field(default=())
    listed: bool = True
    why: str = ""


@runtime_checkable
class HasDirectories(Protocol):
    """A store in which directories exist without objects, and killed writers leave temporary files."""

    def unlisted_paths(self) -> list[str]:
        """The paths below the root that are not objects, in an order in which they can be deleted."""
        ...


class Place:
    """Stores below one new prefix, without a cache on this machine.

    Args:
        url: the parent of the prefix; nothing else below it is read or written.
        options: storage options, as for `open_store`.

    Raises:
        ConfigurationError: the URI or an option is wrong.
        StorageError: the prefix cannot be listed.
    """

    def __init__(self, url: str, options: Mapping[str, str], *, clock: Clock = SYSTEM_CLOCK) -> None:
        base = canonical_table_uri(url)
        self.uri = f"{base}/{PREFIX}{uuid.uuid4()}"
        self.options = options
        self.clock = clock
        self._store = self.store("")
        root = local_root(self._store)
        try:
            self._makes_base = root is not None and not root.parent.exists()
        except OSError as error:
            raise ConfigurationError(
                "The URL is not a valid directory.",
                cause=error.strerror or type(error).__name__,
                fix="Pass the URL of a directory that you may write to.",
            ) from error

    def require_fresh(self) -> None:
        """Check that nothing exists below the prefix.

        Raises:
            StoreContractError: an object exists.
            StorageError: the prefix cannot be listed.
        """
        for info in self._store.walk():
            raise StoreContractError(
                f"The new prefix {self.uri!r} already contains the object {info.path!r}.",
                cause="The store lists names that were not written, or another run has the same name.",
                fix="Run the checks again. If the error repeats, do not rely on the listings of this store.",
            )

    def table(self, name: str) -> str:
        """The URI of a directory below the prefix; the prefix itself when the name is empty."""
        return f"{self.uri}/{name}" if name else self.uri

    def store(self, name: str, **options: str) -> LogStore:
        """A store whose root is a directory below the prefix; `options` are added to those of the run."""
        storage_options = {**self.options, **options}
        return without_cache(open_store(self.table(name), storage_options=storage_options, clock=self.clock))

    @property
    def remote(self) -> bool:
        """Whether the store is accessed over a network."""
        return self._store.remote

    def clean_up(self, *, seconds: float) -> CleanUp:
        """Delete everything below the prefix, for about `seconds` at most. Returns what remains."""
        deadline = self.clock.monotonic_seconds() + seconds
        failures: list[str] = []
        deleted = 0

        def delete(path: str) -> bool:
            if self.clock.monotonic_seconds() > deadline:
                failures.append("the time limit was reached")
                return False
            try:
                self._store.delete(path)
            except DeltaError as error:
                failures.append(str(error))
                return False
            return True

        try:
            paths = [info.path for info in self._store.walk()]
            # One first: when the store refuses to delete, a thousand more attempts are useless.
            if paths and delete(paths[0]):
                with ThreadPoolExecutor(_DELETING_THREADS) as pool:
                    deleted = 1 + sum(pool.map(delete, paths[1:]))
            left = sorted(info.path for info in self._store.walk()) if failures else []
        except DeltaError as error:
            return CleanUp(deleted=deleted, listed=False, why=str(error))
        if not left:
            left, why = self._remove_directories()
            failures.append(why)
        return CleanUp(deleted=deleted, left=left, why=failures[0] if left else "")

    def _remove_directories(self) -> tuple[list[str], str]:
        """Remove directories, temporary files and the prefix. Returns what could not be removed, and why."""
        root = local_root(self._store)
        if root is not None:
            # rmtree does not follow symbolic links.
            shutil.rmtree(root, ignore_errors=True)
            if self._makes_base:
                with suppress(OSError):
                    root.parent.rmdir()
        elif isinstance(self._store, HasDirectories):
            base, _, name = self.uri.rpartition("/")
            try:
                for path in self._store.unlisted_paths():
                    self._store.delete(path)
                # A directory is deleted only when it is empty.
                open_store(base, storage_options=self.options, clock=self.clock).delete(name)
            except StorageError as error:
                return ["(directories, and temporary files of killed writers)"], str(error)
        return [], ""


def package_root() -> str:
    """The directory from which processes import `delta_core`."""
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
