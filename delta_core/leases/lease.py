"""Leases: at most one holder of a name at a table, for a time that the holder can extend.

The files of the lease L of a table are `_deltaward/leases/L/<number>.json`. The process that creates the
next number is the holder; only one process can create a number. Renewing, releasing and taking over an
expired lease also create the next number. Whether a lease has expired is decided by the store's own times,
so clocks that differ between machines do not matter. The holder measures its time with its monotonic clock
from before the request that started the lease, and so stops earlier than others may begin.

A lease alone does not prevent the following: between `Lease.check` and the next action of its holder, the
holder may be suspended for longer than the lease lasts. A caller that relies on a lease must make sure that
the first action of the next holder invalidates a late action of this one; for commits that is a commit
(`delta_core.jobs.lease`).
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
from delta_core.leases.lease_files import (
    RESERVED_DIRECTORY,
    Following,
    LeaseFile,
    LeaseFiles,
    LeaseRecord,
    LeaseState,
)
from delta_core.storage.log_store import LogStore

DEFAULT_TTL_SECONDS: Final = 60.0
MIN_TTL_SECONDS: Final = 0.1

FILES_KEPT: Final = 4
"""How many numbers of a lease stay in the store. The holder deletes older ones."""

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
    """Acquire a lease that no other holder has.

    Five requests for a free lease, two more for a lease whose time may have run out.

    Args:
        store: the table's store.
        name: letters, digits, `.`, `_` and `-`.
        holder: the name of the holder, shown to people; machine and process when None.
        ttl_seconds: how long the lease lasts without a renewal.
        fence_above: the fencing number is higher than this; for leases whose files may have been deleted.
        clock: its monotonic clock measures the holder's time.

    Raises:
        LeaseHeldError: another holder has the lease; the message names the holder and the end.
        LeaseFileError: the newest file of the lease is damaged or of a newer format.
        LeaseError: the store's listings lag, so a lease is not possible.
        ConfigurationError: the name or the time is not valid.
        StorageError: the store failed, or it is not known whether the lease was acquired; then it expires.
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
    raise LeaseHeldError(
        f"The lease {name!r} could not be acquired: in each attempt another process took it first.",
        fix="Acquire the lease again later.",
    )


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
    """The lease behind a reader's pin, in a directory that no other process uses. Three requests.

    Raises:
        ConfigurationError: the time is not valid.
        LeaseError: the store's listings lag, so a pin is not possible.
        StorageError: the store failed.
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
        raise StorageError(
            f"The version was not pinned: the directory {directory!r} of the pin is not empty.",
            cause="Another pin has the same random name.",
            fix="Pin the version again: the pin gets a new name.",
        )
    return lease


def take_over_pin_lease(
    store: LogStore,
    directory: str,
    *,
    version: int,
    table_id: str,
    following: Following,
    holder: str,
    ttl_seconds: float,
    clock: Clock,
) -> Lease:
    """The lease behind the pin of a stream. An earlier holder of the same directory loses it. Four requests.

    Raises:
        LeaseFileError: the newest file of the pin is damaged or of a newer format.
        ConfigurationError: the time is not valid.
        LeaseError: the store's listings lag, so a pin is not possible.
        StorageError: the store failed.
    """
    files = LeaseFiles(store=store, directory=directory, clock=clock)
    template = _template(holder, ttl_seconds)
    for _ in range(_TRIES):
        newest = files.newest()
        number = 1 if newest is None else newest.number + 1
        lease = Lease(
            files=files,
            name=directory,
            record=replace(template, fence=number, version=version, table_id=table_id, following=following),
            follows=newest,
            clock=clock,
        )
        if lease._begin(number):
            files.delete_below(number + 1 - FILES_KEPT)
            return lease
    raise StorageError(
        f"The pin {directory!r} could not be acquired: in each attempt another process took it first.",
        cause="Two streams use the same name for their pins.",
        fix="Give each stream a name of its own.",
    )


def lease_directory(name: str) -> str:
    """The directory of a lease's files.

    Raises:
        ConfigurationError: the name is not valid.
    """
    return f"{RESERVED_DIRECTORY}/leases/{checked_name(name, 'a lease')}"


def checked_name(name: object, what: str) -> str:
    """A name that is used as the name of a directory.

    Raises:
        ConfigurationError: the name is not valid.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"{name!r} is not a valid name for {what}.",
            fix="Use up to 100 letters, digits, dots, underscores and hyphens, with a letter or digit first.",
        )
    return name


def this_process() -> str:
    """The default name of a holder: machine and process."""
    return f"{socket.gethostname()}:{os.getpid()}"


class Lease:
    """An acquired lease; `acquire_lease` creates it.

    Attributes:
        name: the lease's name.
        follows: the newest file of the previous holder; None for the first holder. When its
            state is `held`, that holder did not release the lease.
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
        """The fencing number: higher than that of every previous holder."""
        return self._record.fence

    @property
    def holder(self) -> str:
        """The name of the holder, shown to people."""
        return self._record.holder

    @property
    def ttl_seconds(self) -> float:
        """How long the lease lasts without a renewal."""
        return self._record.ttl_ms / 1000

    @property
    def path(self) -> str:
        """The path of this holder's newest file, which proves that it has the lease."""
        return self._files.path(self._number)

    def renew(self) -> None:
        """Extend the lease to its whole time from now. Five requests, and the deletion of old files.

        Raises:
            LeaseLostError: another holder has it, or its files are missing.
            StorageError: the store failed, or it is not known whether the renewal succeeded; the lease keeps
                its previous end.
        """
        if self._released:
            raise self._lost("The lease was released.")
        for _ in range(_TRIES):
            # The number is higher than expected when an earlier renewal succeeded without an answer.
            self._number = self._own_newest().number
            if self._begin(self._number + 1):
                self._files.delete_below(self._number + 1 - FILES_KEPT)
                return
        raise StorageError(
            f"The lease {self.name!r} could not be renewed.", fix="Renew it again while it lasts."
        )

    def advance(self, version: int, following: Following) -> None:
        """`renew`, with another version and other files for a stream that has read on; raises as `renew`."""
        self._record = replace(self._record, version=version, following=following)
        self.renew()

    def check(self) -> None:
        """Check that this holder still has the lease. Two requests.

        Raises:
            LeaseLostError: its time has run out, another holder has it, or its files are missing.
            StorageError: the store failed.
        """
        if self._released:
            raise self._lost("The lease was released.")
        self._own_newest()
        if self._clock.monotonic_seconds() >= self._ends_at_seconds:
            raise self._lost(f"The lease was not renewed for the {self.ttl_seconds:g} seconds that it lasts.")

    def release(self) -> None:
        """Free the lease at once. Call it when the work under the lease can have no further effect.

        A failure of the store is logged; the lease then expires. Three requests, and the deletion of old
        files.
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
            _log.warning("The lease was not released.", extra={"lease": self.name, "error": str(error)})

    def forget(self) -> None:
        """As `release`, and delete all files: for a lease whose name is not used again."""
        self.release()
        self._files.delete_below(self._number + 1)

    def _begin(self, number: int) -> bool:
        """Create the file with a number. True when this becomes the holder, from just before the request."""
        began_at_seconds = self._clock.monotonic_seconds()
        if not self._files.create(number, replace(self._record, nonce=uuid.uuid4().hex)):
            return False
        # A process that was suspended for long may create a number again that was used and deleted.
        newest = self._files.newest()
        if newest is None or newest.record.token != self._record.token:
            return False
        self._number = newest.number
        self._ends_at_seconds = began_at_seconds + self.ttl_seconds
        return True

    def _own_newest(self) -> LeaseFile:
        newest = self._files.newest()
        if newest is None:
            raise self._lost("The lease's files were deleted.")
        if newest.record.token != self._record.token:
            raise self._lost(
                f"The lease was taken over by {newest.record.holder}, with number {newest.number}."
            )
        return newest

    def _lost(self, cause: str) -> LeaseLostError:
        return LeaseLostError(
            f"The lease {self.name!r} is no longer held by {self.holder}.",
            cause=cause,
            fix="Check what the present holder does. Then run the job again.",
        )


class LeaseKeeper:
    """Renews a lease from a background thread while a context lasts.

    A failed renewal is tried again as long as the lease lasts. When the lease is lost, the thread ends, and
    `Lease.check` raises the reason.
    """

    def __init__(self, lease: Lease, *, interval_seconds: float | None = None) -> None:
        """Renew the lease after each third of its time, or after each interval."""
        self._lease = lease
        self._interval_seconds = lease.ttl_seconds / 3 if interval_seconds is None else interval_seconds
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="deltaward-lease", daemon=True)

    def __enter__(self) -> Self:
        """Start renewing."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop renewing."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        pause_seconds = self._interval_seconds
        while not self._ended.wait(pause_seconds):
            pause_seconds = self._interval_seconds
            try:
                self._lease.renew()
            except LeaseError as error:
                _log.warning("The lease was lost.", extra={"lease": self._lease.name, "error": str(error)})
                return
            except Exception as error:  # the next attempt may succeed
                _log.warning(
                    "The lease was not renewed.", extra={"lease": self._lease.name, "error": str(error)}
                )
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
        cause=f"The lease ends in {remaining_ms / 1000:.1f} seconds, unless it is renewed or released.",
        fix="Run the job again when the lease has ended, or when the job that holds it has ended.",
    )
