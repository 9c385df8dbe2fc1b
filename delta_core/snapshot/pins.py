"""Pins: a reader asks that a version stay readable for a time, however old it gets.

A pin is a lease of its own below `_deltaward/pins/`, whose files name a version. Vacuum keeps the data files
that the version has, log cleanup the log that it is read from. A pin is for a version that is still
within the table's retention when it is made: what a vacuum or a cleanup that is already under way has picked
is not saved by it.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from delta_core.errors import LeaseFileError, ObjectNotFoundError
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.lease import Lease, LeaseKeeper, open_pin_lease
from delta_core.storage.lease_files import (
    RESERVED_DIRECTORY,
    LeaseFile,
    LeaseState,
    is_lease_file,
    read_lease_file,
)
from delta_core.storage.log_store import LogStore, ObjectInfo

PINS_DIRECTORY: Final = f"{RESERVED_DIRECTORY}/pins"

_TRIES: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedVersion:
    """A pin that is in force.

    Attributes:
        path: its newest file.
        holder: whose it is, for people.
        table_id: the id of the table that was pinned.
    """

    path: str
    holder: str
    version: int
    table_id: str

    @property
    def label(self) -> str:
        """The pin in words."""
        return f"the pin of version {self.version} by {self.holder} ({self.path})"


class Pin:
    """Keeps a version while a context lasts; renewed by a thread meanwhile, gone afterwards.

    A reader that dies leaves it behind; then it ends when its time runs out.
    """

    def __init__(self, lease: Lease, *, version: int) -> None:
        """Made by `pin_version`."""
        self.version = version
        self.lease = lease
        self._keeper = LeaseKeeper(lease)

    def __enter__(self) -> Self:
        """Begin to renew it."""
        self._keeper.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give it up."""
        self._keeper.__exit__(kind, error, trace)
        self.release()

    def renew(self) -> None:
        """Keep the version for the pin's whole time from now, without a context.

        Raises:
            LeaseLostError: its files are gone, so the version may be, too.
            StorageError: the store fails; the pin goes on as it was.
        """
        self.lease.renew()

    def release(self) -> None:
        """Give it up, without a context. What the store does not take is logged; it ends by itself."""
        self.lease.forget()


def pin_version(snapshot: Snapshot, *, ttl_seconds: float, holder: str | None = None) -> Pin:
    """Pin the snapshot's version. Three requests.

    Args:
        snapshot: its version is kept: its data files, deletion vectors, and the log it is read from.
        ttl_seconds: how long, without a renewal.
        holder: who, for people; machine and process when None.

    Raises:
        ConfigurationError: the time is not possible.
        LeaseError: the store is one whose listings lag.
        StorageError: the store fails.
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
    """The pins that have not ended, by version. One listing, and a request for each pin.

    Args:
        store: the table's store.
        store_now_ms: a time of the store that is not later than now; an earlier one only keeps more.

    Raises:
        LeaseFileError: a pin is damaged or of a newer format. Nobody knows what it keeps, so nothing may be
            deleted.
        StorageError: the store fails; nothing may be deleted then either.
    """
    for attempt in range(_TRIES):
        try:
            files = [read_lease_file(store, info) for info in _newest_of_each(store).values()]
        except ObjectNotFoundError:
            # Renewed or given up since the listing.
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
                raise _not_a_pin(store, info.path, "Its name is not that of a pin's file.")
        elif directory not in newest or newest[directory].path < info.path:
            newest[directory] = info
    return newest


def _pinned(store: LogStore, file: LeaseFile) -> PinnedVersion:
    record = file.record
    if record.version is None or record.table_id is None:
        raise _not_a_pin(store, file.path, "It names no version.")
    return PinnedVersion(
        path=file.path, holder=record.holder, version=record.version, table_id=record.table_id
    )


def _not_a_pin(store: LogStore, path: str, cause: str) -> LeaseFileError:
    return LeaseFileError(
        f"What the pin {store.uri}/{path} keeps cannot be told.",
        cause=cause,
        fix="Delete the file when nobody needs what it holds.",
    )
