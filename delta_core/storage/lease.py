"""Leases: at most one holder of a name at a table, for a time that the holder can extend.

The lease L of a table is `_deltaward/leases/L/<number>.json`: who creates the next number, which only one
can, has it. Renewing and releasing create the next number, too; so does taking over from a holder whose time
has run out. Whether it has is told by the store's own times, so clocks that differ do not matter. The holder
measures its time with its monotonic clock from before the request that began it, and so stops earlier than
others may begin.

What a lease alone cannot do: between `Lease.check` and what its holder does next, the holder may be suspended
for longer than the lease lasts. Whoever relies on it must make the next holder's first act void the late one;
for commits that is a commit (`delta_core.jobs.lease`).
"""

from __future__ import annotations

import logging
import os
import re
import socket
import threading
import uuid
from dataclasses import replace
from types import TracebackType
from typing import Final, Self

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import (
    ConfigurationError,
    DeltaError,
    LeaseError,
    LeaseHeldError,
    LeaseLostError,
    StorageError,
)
from delta_core.storage.lease_files import (
    RESERVED_DIRECTORY,
    LeaseFile,
    LeaseFiles,
    LeaseRecord,
    LeaseState,
)
from delta_core.storage.log_store import LogStore

DEFAULT_TTL_SECONDS: Final = 60.0
MIN_TTL_SECONDS: Final = 0.1

FILES_KEPT: Final = 4
"""How many numbers of a lease stay in the store; older ones are deleted by its holder."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_TRIES: Final = 4

_log = logging.getLogger(__name__)


def acquire_lease(
    store: LogStore,
    name: str,
    *,
    holder: str | None = None,
    ttl_seconds: float = DEFAULT_TTL_SECONDS,
    fence_above: int = 0,
    clock: Clock = SYSTEM_CLOCK,
) -> Lease:
    """Become the holder of a lease, if nobody else is.

    Five requests for a lease that is free, two more for one whose holder's time may have run out.

    Args:
        store: the table's store.
        name: letters, digits, `.`, `_` and `-`.
        holder: who asks, for people; machine and process when None.
        ttl_seconds: how long the lease lasts without a renewal.
        fence_above: the fencing number is higher than this; for when the lease's files may have been deleted.
        clock: its monotonic part measures the holder's own time.

    Raises:
        LeaseHeldError: another holder has it; says who and when it ends.
        LeaseFileError: its newest file is damaged or of a newer format.
        LeaseError: the store is one on which nobody can tell.
        ConfigurationError: the name or the time is not possible.
        StorageError: the store fails, or it cannot be told whether the lease was had; then it ends by itself.
    """
    files = LeaseFiles(store=store, directory=lease_directory(name), clock=clock)
    template = _template(holder or this_process(), ttl_seconds)
    for _ in range(_TRIES):
        newest = files.newest()
        if newest is not None and newest.record.state is LeaseState.HELD:
            remaining_ms = newest.remaining_ms(files.store_time_ms())
            if remaining_ms > 0:
                raise _held(name, newest, remaining_ms)
        number = max(0 if newest is None else newest.number, fence_above) + 1
        lease = Lease(
            files=files,
            name=name,
            record=replace(template, fence=number),
            follows=newest,
            clock=clock,
        )
        if lease._begin(number):
            return lease
    raise LeaseHeldError(f"Others take the lease {name!r} again and again.", fix="Try again later.")


def open_pin_lease(
    store: LogStore,
    directory: str,
    *,
    version: int,
    table_id: str,
    holder: str | None,
    ttl_seconds: float,
    clock: Clock,
) -> Lease:
    """The lease behind a reader's pin, in a directory that nobody else uses. Three requests.

    Raises:
        ConfigurationError: the time is not possible.
        LeaseError: the store is one on which nobody can tell.
        StorageError: the store fails.
    """
    template = _template(holder or this_process(), ttl_seconds)
    lease = Lease(
        files=LeaseFiles(store=store, directory=directory, clock=clock),
        name=directory,
        record=replace(template, fence=1, version=version, table_id=table_id),
        follows=None,
        clock=clock,
    )
    if not lease._begin(1):
        raise StorageError(f"The pin {directory!r} was not made.", cause="The directory is in use.")
    return lease


def lease_directory(name: str) -> str:
    """Where a lease's files are.

    Raises:
        ConfigurationError: it is no name for a lease.
    """
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"{name!r} is no name for a lease.",
            fix="Use up to 100 letters, digits, dots, underscores and hyphens, with a letter or digit first.",
        )
    return f"{RESERVED_DIRECTORY}/leases/{name}"


def this_process() -> str:
    """A holder's name: machine and process."""
    return f"{socket.gethostname()}:{os.getpid()}"


class Lease:
    """A lease that was had when this object was made; `acquire_lease` makes one.

    Attributes:
        name: the lease's name.
        follows: the file of the holder before; None when there was none. If its state is `held`, that holder
            did not say that it has ended.
    """

    def __init__(
        self, *, files: LeaseFiles, name: str, record: LeaseRecord, follows: LeaseFile | None, clock: Clock
    ) -> None:
        self.name = name
        self.follows = follows
        self._files = files
        self._record = record
        self._clock = clock
        self._number = 0
        self._ends_at_seconds = float("-inf")
        self._released = False

    @property
    def fence(self) -> int:
        """The fencing number: higher than that of every holder before."""
        return self._record.fence

    @property
    def holder(self) -> str:
        """Who has it, for people."""
        return self._record.holder

    @property
    def ttl_seconds(self) -> float:
        """How long it lasts without a renewal."""
        return self._record.ttl_ms / 1000

    @property
    def path(self) -> str:
        """The file that makes this the holder."""
        return self._files.path(self._number)

    def renew(self) -> None:
        """Have it for its whole time from now. Five requests, and the deletion of old files.

        Raises:
            LeaseLostError: another holder has it, or its files are gone.
            StorageError: the store fails, or it cannot be told whether this went through; the lease goes on
                as it was.
        """
        if self._released:
            raise self._lost("It was released.")
        for _ in range(_TRIES):
            # Higher than known when an earlier renewal came through although nobody could tell.
            self._number = self._own_newest().number
            if self._begin(self._number + 1):
                self._files.delete_below(self._number + 1 - FILES_KEPT)
                return
        raise StorageError(f"The lease {self.name!r} could not be renewed.")

    def check(self) -> None:
        """Make sure that this is the holder still. Two requests.

        Raises:
            LeaseLostError: its time has run out, another holder has it, or its files are gone.
            StorageError: the store does not tell.
        """
        if self._released:
            raise self._lost("It was released.")
        self._own_newest()
        if self._clock.monotonic_seconds() >= self._ends_at_seconds:
            raise self._lost(f"It was not renewed for the {self.ttl_seconds:g} seconds that it lasts.")

    def release(self) -> None:
        """Let others have it at once. Call it when nothing of what it was for can happen any more.

        What the store does not take is logged; the lease ends by itself then. Three requests, and the
        deletion of old files.
        """
        if self._released:
            return
        self._released = True
        try:
            for _ in range(_TRIES):
                self._number = self._own_newest().number
                released = replace(self._record, state=LeaseState.RELEASED, nonce=uuid.uuid4().hex)
                if self._files.create(self._number + 1, released):
                    self._number += 1
                    self._files.delete_below(self._number + 1 - FILES_KEPT)
                    return
        except DeltaError as error:
            _log.warning("lease not released", extra={"lease": self.name, "error": str(error)})

    def forget(self) -> None:
        """As `release`, and no file is left: for a lease whose name nobody uses again."""
        self.release()
        self._files.delete_below(self._number + 1)

    def _begin(self, number: int) -> bool:
        """Create a number; True when that makes this the holder, from just before the request."""
        began_at_seconds = self._clock.monotonic_seconds()
        if not self._files.create(number, replace(self._record, nonce=uuid.uuid4().hex)):
            return False
        # A number that was used and deleted long ago can be created again by who slept meanwhile.
        newest = self._files.newest()
        if newest is None or newest.record.token != self._record.token:
            return False
        self._number = newest.number
        self._ends_at_seconds = began_at_seconds + self.ttl_seconds
        return True

    def _own_newest(self) -> LeaseFile:
        newest = self._files.newest()
        if newest is None:
            raise self._lost("Its files were deleted.")
        if newest.record.token != self._record.token:
            raise self._lost(f"It was taken over by {newest.record.holder}, with number {newest.number}.")
        return newest

    def _lost(self, cause: str) -> LeaseLostError:
        return LeaseLostError(
            f"The lease {self.name!r} is no longer held by {self.holder}.",
            cause=cause,
            fix="Look at what the present holder does, then run the job again.",
        )


class LeaseKeeper:
    """Renews a lease from a thread of its own while a context lasts.

    A renewal that fails is tried again as long as the lease lasts; once it is lost the thread ends, and
    `Lease.check` says why.
    """

    def __init__(self, lease: Lease, *, interval_seconds: float | None = None) -> None:
        """For a lease; it is renewed after each third of its time unless told otherwise."""
        self._lease = lease
        self._interval_seconds = lease.ttl_seconds / 3 if interval_seconds is None else interval_seconds
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="deltaward-lease", daemon=True)

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End; nothing is renewed afterwards."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        pause_seconds = self._interval_seconds
        while not self._ended.wait(pause_seconds):
            pause_seconds = self._interval_seconds
            try:
                self._lease.renew()
            except LeaseError as error:
                _log.warning("lease lost", extra={"lease": self._lease.name, "error": str(error)})
                return
            except Exception as error:  # the next try may do better, and the check tells if none does
                _log.warning("lease not renewed", extra={"lease": self._lease.name, "error": str(error)})
                pause_seconds = self._interval_seconds / 4


def _template(holder: str, ttl_seconds: float) -> LeaseRecord:
    """A record without fencing number and nonce. Raises ConfigurationError."""
    if not MIN_TTL_SECONDS <= ttl_seconds <= 366 * 86_400:
        raise ConfigurationError(
            f"A lease cannot last {ttl_seconds} seconds.",
            fix=f"Choose from {MIN_TTL_SECONDS} seconds to a year.",
        )
    return LeaseRecord(
        fence=0, holder=holder[:200], token=uuid.uuid4().hex, nonce="", ttl_ms=round(ttl_seconds * 1000)
    )


def _held(name: str, newest: LeaseFile, remaining_ms: int) -> LeaseHeldError:
    return LeaseHeldError(
        f"The lease {name!r} is held by {newest.record.holder}.",
        cause=f"It ends in {remaining_ms / 1000:.1f} seconds, unless it is renewed or released before.",
        fix="Try again when it has ended, or after the job that has it.",
    )
