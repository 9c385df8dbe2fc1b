"""Pins: a reader keeps a version readable for a limited time, independent of the table's retention.

A pin is a lease below `_deltaward/pins/`, and its files contain the version. Vacuum keeps the data files of
the version, and log cleanup keeps the log files from which it is read. Pin a version while it is within the
table's retention: a pin does not protect files that a running vacuum or log cleanup has already selected.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from delta_core.errors import LeaseFileError, ObjectNotFoundError
from delta_core.leases.lease import Lease, LeaseKeeper, open_pin_lease
from delta_core.leases.lease_files import (
    RESERVED_DIRECTORY,
    Following,
    LeaseFile,
    LeaseState,
    is_lease_file,
    read_lease_file,
)
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import LogStore, ObjectInfo

PINS_DIRECTORY: Final = f"{RESERVED_DIRECTORY}/pins"

_TRIES: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedVersion:
    """A pin that is in force.

    Attributes:
        path: the newest file of the pin.
        holder: the holder of the pin, for display.
        version: the pinned version.
        table_id: the id of the pinned table.
        following: the files that a stream needs; None for those of the version.
        expires_ms: when it expires without a renewal, by the store's clock.
    """

    path: str
    holder: str
    version: int
    table_id: str
    following: Following | None = None
    expires_ms: int = 0

    @property
    def identity(self) -> tuple[int, str, Following | None]:
        """A value that distinguishes pins which need other files."""
        return self.version, self.table_id, self.following

    @property
    def label(self) -> str:
        """A description of the pin for messages."""
        return f"the pin of version {self.version} by {self.holder} ({self.path})"


class Pin:
    """A context manager that keeps a version readable: a thread renews the pin until the context ends.

    If the reader dies, the pin expires after its time.
    """

    def __init__(self, lease: Lease, *, version: int) -> None:
        """Create a pin of a lease; callers use `pin_version`."""
        self.version = version
        self.lease = lease
        self._keeper = LeaseKeeper(lease)

    def __enter__(self) -> Self:
        """Start to renew the pin."""
        self._keeper.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Release the pin."""
        self._keeper.__exit__(kind, error, trace)
        self.release()

    def renew(self) -> None:
        """Extend the pin to its full time from now. For use without a context.

        Raises:
            LeaseLostError: the pin's files were deleted, so the version may be unreadable, too.
            StorageError: the store failed; the pin keeps its current expiry.
        """
        self.lease.renew()

    def release(self) -> None:
        """Release the pin. For use without a context. A store failure is logged, and the pin then expires."""
        self.lease.forget()


def pin_version(snapshot: Snapshot, *, ttl_seconds: float, holder: str | None = None) -> Pin:
    """Pin the snapshot's version. Three requests.

    Args:
        snapshot: the version to keep: its data files, its deletion vectors and its log segment.
        ttl_seconds: the time until the pin expires without a renewal.
        holder: the name of the holder, for display; None takes the machine and the process.

    Raises:
        ConfigurationError: the time is invalid.
        LeaseError: the listings of the store are only eventually consistent.
        StorageError: the store failed.
    """
    lease = open_pin_lease(
        snapshot.store,
        f"{PINS_DIRECTORY}/{uuid.uuid4().hex}",
        version=snapshot.version,
        table_id=snapshot.metadata.id,
        holder=holder,
        ttl_seconds=ttl_seconds,
        clock=snapshot.clock,
    )
    return Pin(lease, version=snapshot.version)


def pins_in_force(store: LogStore, *, store_now_ms: int) -> tuple[PinnedVersion, ...]:
    """The pins that have not expired, by version. One listing, and one request for each pin.

    Args:
        store: the table's store.
        store_now_ms: a time by the store's clock that is not later than now. An earlier time is safe: pins
            then count as in force for longer.

    Raises:
        LeaseFileError: a pin is damaged or has a newer format. Its version is unknown, so the caller must not
            delete anything.
        StorageError: the store failed; the caller must not delete anything.
    """
    for attempt in range(_TRIES):
        try:
            files = [read_lease_file(store, info) for info in _newest_of_each(store).values()]
        except ObjectNotFoundError:
            # The pin was renewed or released since the listing.
            if attempt == _TRIES - 1:
                raise
        else:
            break
    pins = [
        _pinned(store, file)
        for file in files
        if file.record.state is LeaseState.HELD and file.remaining_ms(store_now_ms) > 0
    ]
    return tuple(sorted(pins, key=lambda pin: (pin.version, pin.path)))


def _newest_of_each(store: LogStore) -> Mapping[str, ObjectInfo]:
    newest: dict[str, ObjectInfo] = {}
    for info in store.walk(PINS_DIRECTORY):
        directory, _, name = info.path.rpartition("/")
        if not is_lease_file(name):
            if name.endswith(".json"):
                raise _invalid_pin(store, info.path, "Its name is not the name of a pin's file.")
        elif directory not in newest or newest[directory].path < info.path:
            newest[directory] = info
    return newest


def _pinned(store: LogStore, file: LeaseFile) -> PinnedVersion:
    record = file.record
    if record.version is None or record.table_id is None:
        raise _invalid_pin(store, file.path, "The file contains no version or no table id.")
    return PinnedVersion(
        path=file.path,
        holder=record.holder,
        version=record.version,
        table_id=record.table_id,
        following=record.following,
        expires_ms=file.modified_ms + record.ttl_ms,
    )


def _invalid_pin(store: LogStore, path: str, cause: str) -> LeaseFileError:
    return LeaseFileError(
        f"The pin {store.uri}/{path} is invalid, so its version is unknown.",
        cause=cause,
        fix="Delete the file if no reader needs the pinned version.",
    )
