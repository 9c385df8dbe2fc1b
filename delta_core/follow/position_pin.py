"""The pin of a stream: what the stream has not read stays readable, in vacuum and in log cleanup."""

from __future__ import annotations

import logging
import uuid
from typing import Final

from delta_core.errors import DeltaError
from delta_core.follow.options import PinOptions
from delta_core.follow.position import StreamPosition
from delta_core.leases.lease import Lease, take_over_pin_lease
from delta_core.leases.lease_files import Following
from delta_core.leases.pins import PINS_DIRECTORY
from delta_core.snapshot.snapshot import Snapshot

STREAM_PINS: Final = f"{PINS_DIRECTORY}/streams"
"""The directory of the pins that have names."""

_ADVANCE_SECONDS: Final = 30.0
_ADVANCES: Final = 10

_log = logging.getLogger(__name__)


class PositionPin:
    """Pins what a stream has not read. Without options it does nothing.

    The pin follows the position at most every 30 seconds, or every tenth of its time: an older pin
    keeps more.
    Not safe for use by several threads at once.
    """

    def __init__(self, snapshot: Snapshot, options: PinOptions | None, *, change_feed: bool) -> None:
        """Create it for a stream; `keep` makes the pin.

        Args:
            snapshot: any version of the table.
            options: the name and the time of the pin.
            change_feed: whether the stream reads changes, and so the files that commits remove.
        """
        self._snapshot = snapshot
        self._options = options
        self._changes = change_feed
        self._lease: Lease | None = None
        self._needed: tuple[int, Following] | None = None
        self._done_at = 0.0

    def keep(self, position: StreamPosition, *, at_once: bool = False) -> None:
        """Pin everything from a position on, and renew the pin when half of its time is over.

        Requests: five for each change and renewal.

        Args:
            position: the next position that is read.
            at_once: whether to follow to this position even if the last change was just before.

        Raises:
            LeaseLostError: another stream has the pin, or its files were deleted.
            LeaseError: the store's listings lag, so a pin is not possible.
            StorageError: the store failed.
        """
        if self._options is None:
            return
        clock, seconds = self._snapshot.clock, self._options.seconds
        needed, now = self._needs(position), self._snapshot.clock.monotonic_seconds()
        if self._lease is None:
            name = self._options.name
            self._lease = take_over_pin_lease(
                self._snapshot.store,
                f"{PINS_DIRECTORY}/{uuid.uuid4().hex}" if name is None else f"{STREAM_PINS}/{name}",
                version=needed[0],
                following=needed[1],
                table_id=self._snapshot.metadata.id,
                holder="a stream" if name is None else f"the stream {name}",
                ttl_seconds=seconds,
                clock=clock,
            )
        else:
            passed = now - self._done_at
            may_follow = passed >= min(_ADVANCE_SECONDS, seconds / _ADVANCES)
            if not (at_once or passed >= seconds / 2 or (may_follow and needed != self._needed)):
                return
            self._lease.advance(*needed)
        self._needed, self._done_at = needed, now

    def close(self, position: StreamPosition | None = None) -> None:
        """End the pin, if it has no name. Otherwise its time counts from now. Does not raise."""
        if self._lease is None or self._options is None:
            return
        if self._options.name is None:
            self._lease.forget()
        elif position is not None:
            try:
                self.keep(position, at_once=True)
            except DeltaError as error:
                _log.warning("The pin of a stream was not renewed.", extra={"error": str(error)})
        self._lease = None

    def _needs(self, position: StreamPosition) -> tuple[int, Following]:
        if position.is_initial_snapshot or position.version == 0:
            # The files of version 0 are those of its commit.
            return position.version, Following.SNAPSHOT
        return position.version - 1, Following.CHANGES if self._changes else Following.COMMITS
