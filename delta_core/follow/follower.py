"""Reading a stream's batches one after the other, with a durable position."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from delta_core.clock import Clock
from delta_core.follow.batch import StreamBatch
from delta_core.follow.options import BatchLimits
from delta_core.follow.planner import BatchPlanner
from delta_core.follow.position import StreamPosition
from delta_core.follow.position_file import PositionFile
from delta_core.leases.pins import Pin, pin_version
from delta_core.snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowLoop:
    """How the batches of a stream are read one after the other.

    Attributes:
        since: the position to start at; None takes that of the file, or else the start of the planner.
        limits: how much one batch has.
        position_file: keeps the position.
        wait: wait for new commits. Otherwise the stream ends with the versions that exist when it starts.
        poll_seconds: the time between two looks at the log while there is nothing new.
        pin_seconds: pin the version of the position for this time, renewed with each batch; None pins
            nothing.
    """

    since: StreamPosition | None
    limits: BatchLimits
    position_file: PositionFile | None
    wait: bool
    poll_seconds: float
    pin_seconds: float | None = None


def follow_batches(planner: BatchPlanner, loop: FollowLoop, *, clock: Clock) -> Iterator[StreamBatch]:
    """The batches with rows, in order.

    A batch counts as read when the caller takes the next one. Then its position goes to the position file.

    Raises:
        DeltaError: see `BatchPlanner.plan_batch`, `PositionFile` and `pin_version`.
    """
    file = loop.position_file
    position = loop.since
    if position is None and file is not None:
        position = file.load()
    if position is None:
        position = planner.start()
        if file is not None:
            file.save(position)
    until = None if loop.wait else planner.end(position)
    pins = _Pins(planner.snapshot, loop.pin_seconds)
    try:
        while True:
            pins.keep(position)
            batch = planner.plan_batch(position, loop.limits, until=until)
            if batch.files:
                yield batch
            if batch.position != position:
                position = batch.position
                if file is not None:
                    file.save(position)
            elif not loop.wait:
                return
            else:
                clock.sleep(loop.poll_seconds)
    finally:
        pins.release()


class _Pins:
    """The pin of the version that a stream reads next."""

    def __init__(self, snapshot: Snapshot, seconds: float | None) -> None:
        self._snapshot = snapshot
        self._seconds = seconds
        self._pin: Pin | None = None
        self._renew_at = 0.0

    def keep(self, position: StreamPosition) -> None:
        """Pin the version of the position, and renew the pin when half of its time is over."""
        if self._seconds is None:
            return
        clock = self._snapshot.clock
        version = position.version if position.is_initial_snapshot else max(0, position.version - 1)
        if self._pin is not None and self._pin.version == version:
            if clock.monotonic_seconds() >= self._renew_at:
                self._pin.renew()
                self._renew_at = clock.monotonic_seconds() + self._seconds / 2
            return
        snapshot = self._snapshot
        if snapshot.version != version:
            snapshot = Snapshot.load(snapshot.store, version=version, clock=clock)
        newer = pin_version(snapshot, ttl_seconds=self._seconds, holder="deltaward stream")
        self.release()
        self._pin = newer
        self._renew_at = clock.monotonic_seconds() + self._seconds / 2

    def release(self) -> None:
        """Release the pin."""
        if self._pin is not None:
            self._pin.release()
            self._pin = None
