"""Reading a stream's batches one after the other, with a durable position."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from delta_core.clock import Clock
from delta_core.follow.batch import StreamBatch
from delta_core.follow.options import BatchLimits, PinOptions
from delta_core.follow.planner import BatchPlanner
from delta_core.follow.position import StreamPosition
from delta_core.follow.position_file import PositionFile
from delta_core.follow.position_pin import PositionPin


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowLoop:
    """How the batches of a stream are read one after the other.

    Attributes:
        since: the position to start at; None takes that of the file, or else the start of the planner.
        limits: how much one batch has.
        position_file: keeps the position.
        wait: wait for new commits. Otherwise the stream ends with the versions that exist when it starts.
        poll_seconds: the time between two looks at the log while there is nothing new.
        pin: how the stream pins what it has not read; None pins nothing.
    """

    since: StreamPosition | None
    limits: BatchLimits
    position_file: PositionFile | None
    wait: bool
    poll_seconds: float
    pin: PinOptions | None = None


def follow_batches(planner: BatchPlanner, loop: FollowLoop, *, clock: Clock) -> Iterator[StreamBatch]:
    """The batches with rows, in order.

    A batch counts as read when the caller takes the next one. Then its position goes to the position file.

    Raises:
        DeltaError: see `BatchPlanner.plan_batch`, `PositionFile` and `PositionPin.keep`.
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
    pin = PositionPin(planner.snapshot, loop.pin, change_feed=planner.options.change_feed)
    try:
        while True:
            pin.keep(position)
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
        pin.close(position)
