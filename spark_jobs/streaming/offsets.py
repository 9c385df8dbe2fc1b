"""The offsets of a streaming query over a table: positions, each with the position where its batch begins.

Spark keeps the end of each batch in the checkpoint, but not the start of the first one. With its start in its
end, each batch can be planned again after a restart as it was planned before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
)

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import StreamPositionError
from delta_core.follow import (
    BatchLimits,
    BatchPlanner,
    FollowOptions,
    PinOptions,
    PositionPin,
    StreamBatch,
    StreamPosition,
)
from delta_core.follow.options import UNLIMITED
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage import local_root
from spark_jobs.engine_io import ExecutorReach

_FROM = "from"
_PAUSE_SECONDS = 0.2
_LOCAL_PAUSE_SECONDS = 0.05


class TableOffsets:
    """The offsets of one query. Spark calls the methods in one thread of one Python process."""

    def __init__(
        self,
        table: ExecutorReach,
        options: FollowOptions,
        limits: BatchLimits,
        *,
        pin: PinOptions | None = None,
        version: int | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """Open the table.

        Args:
            table: how to open it.
            options: what the query reads.
            limits: how much a batch has.
            pin: how the query pins what it has not read; None pins nothing.
            version: the version whose columns are read; None for the newest.
            clock: used for the pauses between listings.

        Raises:
            DeltaError: see `BatchPlanner`.
        """
        store, access = table.open()
        snapshot = Snapshot.load(store, version=version)
        self._planner = BatchPlanner(snapshot, options, allowed_roots=access.allowed_roots)
        self._pin = PositionPin(snapshot, pin, change_feed=options.change_feed)
        self._pause_seconds = _PAUSE_SECONDS if local_root(store) is None else _LOCAL_PAUSE_SECONDS
        self._limits = limits
        self._clock = clock
        self._stops = False
        self._until: StreamPosition | None = None
        self._idle_at: float | None = None
        self._finished: StreamPosition | None = None

    @property
    def snapshot(self) -> Snapshot:
        """The version with the columns."""
        return self._planner.snapshot

    def initial(self) -> dict[str, Any]:
        """The offset at which a new query starts."""
        position = self._planner.start()
        self._pin.keep(position)
        return position.to_document()

    def default_limit(self) -> ReadLimit:
        """The limit of the options. Spark has no limit of both kinds: `latest` applies the options."""
        if self._limits.max_files is not None:
            return ReadMaxFiles(self._limits.max_files)
        return ReadMaxBytes(self._limits.max_bytes or 1 << 60)

    def stop_at_now(self) -> None:
        """Read up to the version that is the newest at the next call of `latest`."""
        self._stops, self._until = True, None

    def latest(self, start: Mapping[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """The end of the next batch; `start` if there is nothing new. One listing while there is not.

        Raises:
            DeltaError: see `BatchPlanner.plan_batch` and `PositionPin.keep`.
        """
        position = StreamPosition.from_document(start)
        self._pin.keep(position)
        if self._stops and self._until is None:
            self._until = self._planner.end(position)
        self._rest()
        limits = UNLIMITED if isinstance(limit, ReadAllAvailable) else self._limits
        batch = self._planner.plan_batch(position, limits, until=self._until)
        if batch.position == position:
            self._idle_at = self._clock.monotonic_seconds()
            return dict(start)
        self._idle_at = None
        return {**batch.position.to_document(), _FROM: position.to_document()}

    def batch(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> StreamBatch | None:
        """The batch that ends at an offset; None if it ends where it starts.

        Raises:
            DeltaError: see `BatchPlanner.between` and `PositionPin.keep`.
        """
        if start == end:
            return None
        begin = end.get(_FROM)
        if begin is None:
            raise StreamPositionError(
                "The checkpoint of a query is not one of this source.",
                cause="The end of a batch does not record where the batch begins.",
                fix="Start the query with a new checkpoint.",
            )
        position = StreamPosition.from_document(begin)
        self._pin.keep(position)
        return self._planner.between(position, StreamPosition.from_document(end))

    def finish(self, end: Mapping[str, Any]) -> None:
        """Note that the batch that ends at an offset is done: the next one begins there.

        Raises:
            DeltaError: see `PositionPin.keep`.
        """
        self._finished = StreamPosition.from_document(end)
        self._pin.keep(self._finished)

    def close(self) -> None:
        """End the pin, or let its time count from now. Does not raise."""
        self._pin.close(self._finished)

    def _rest(self) -> None:
        """Spark asks again at once when there is nothing new: pause, so that the store is not asked."""
        if self._idle_at is not None and not self._stops:
            passed = self._clock.monotonic_seconds() - self._idle_at
            if passed < self._pause_seconds:
                self._clock.sleep(self._pause_seconds - passed)
