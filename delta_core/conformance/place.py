"""A fresh prefix below a user's URI: all that a run writes is below it, and all of that is taken away."""

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
"""What the name of a run's prefix begins with; a random UUID follows."""

_DELETING_THREADS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanUp:
    """What became of the objects that a run wrote.

    Attributes:
        deleted: how many objects are gone.
        left: paths below the prefix that are still there, sorted.
        listed: whether the store said what is left.
        why: the error that stopped the first deletion that failed, or the listing; else empty.
    """

    deleted: int
    left: Sequence[str] = field(default=())
    listed: bool = True
    why: str = ""


@runtime_checkable
class KeepsDirectories(Protocol):
    """A store in which directories are things of their own, as is what killed writers leave."""

    def leftovers(self) -> list[str]:
        """What is below the root and no object, in an order in which it can be deleted."""
        ...


class Place:
    """Stores below one fresh prefix, none of them with a cache of this machine.

    Args:
        url: what the prefix is made below; nothing else below it is read or written.
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
                "The URL names no directory that there can be.",
                cause=error.strerror or type(error).__name__,
                fix="Pass the URL of a directory that you may write to.",
            ) from error

    def require_fresh(self) -> None:
        """Make sure that nothing is below the prefix.

        Raises:
            StoreContractError: something is.
            StorageError: it cannot be listed.
        """
        for info in self._store.walk():
            raise StoreContractError(
                f"There is an object {info.path!r} below the new prefix {self.uri!r}.",
                cause="The store answers for names that nobody wrote, or another run has the same name.",
                fix="Run it again; if it happens again, the store's listing is not one to rely on.",
            )

    def table(self, name: str) -> str:
        """The URI of a directory below the prefix; the prefix itself for an empty name."""
        return f"{self.uri}/{name}" if name else self.uri

    def store(self, name: str, **options: str) -> LogStore:
        """A store rooted at a directory below the prefix, with further options."""
        storage_options = {**self.options, **options}
        return without_cache(open_store(self.table(name), storage_options=storage_options, clock=self.clock))

    @property
    def remote(self) -> bool:
        """Whether the store is asked over a network."""
        return self._store.remote

    def clean_up(self, *, seconds: float) -> CleanUp:
        """Delete what is below the prefix, for at most about some seconds; what is left is named."""
        deadline = self.clock.monotonic_seconds() + seconds
        failures: list[str] = []
        deleted = 0

        def delete(path: str) -> bool:
            if self.clock.monotonic_seconds() > deadline:
                failures.append("the time was over")
                return False
            try:
                self._store.delete(path)
            except DeltaError as error:
                failures.append(str(error))
                return False
            return True

        try:
            paths = [info.path for info in self._store.walk()]
            # One first: where deleting is refused, a thousand refusals say no more.
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
        """What is no object, and the prefix itself: what could not be removed, and why."""
        root = local_root(self._store)
        if root is not None:
            # It does not follow links.
            shutil.rmtree(root, ignore_errors=True)
            if self._makes_base:
                with suppress(OSError):
                    root.parent.rmdir()
        elif isinstance(self._store, KeepsDirectories):
            base, _, name = self.uri.rpartition("/")
            try:
                for path in self._store.leftovers():
                    self._store.delete(path)
                # A directory is deleted only when it is empty.
                open_store(base, storage_options=self.options, clock=self.clock).delete(name)
            except StorageError as error:
                return ["(directories, and what killed writers left)"], str(error)
        return [], ""


def package_root() -> str:
    """The folder that processes must find `delta_core` in."""
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
