"""An operation that is planned anew after each conflict, as often and as long as its properties allow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random

from delta_core.clock import Clock
from delta_core.errors import DeltaError, MaxCommitAttemptsError
from delta_core.transaction.backoff import FullJitter
from delta_core.transaction.commit_properties import CommitProperties


@dataclass(slots=True, kw_only=True)
class Attempts:
    """Tries of one operation; between them is a short pause, so that those who collide are spread out.

    Attributes:
        properties: the operation's; its limits are for all tries together. The deadline is counted from the
            first commit on: to write the rows before it may take any time.
        clock: where time comes from.
        random: where the pauses come from.
        number: of the try that is made, from 0 on.
    """

    properties: CommitProperties
    clock: Clock
    random: Random = field(default_factory=Random)
    number: int = 0
    _until_seconds: float | None = field(init=False, default=None)

    def __iter__(self) -> Iterator[int]:
        """The number of each try.

        It does not end by itself: whoever has failed asks `is_last`, once, and gives up or goes on.
        """
        pauses = FullJitter(random=self.random)
        while True:
            yield self.number
            self.number += 1
            self.clock.sleep(pauses.next_seconds())

    def commit_properties(self) -> CommitProperties:
        """The properties of the commit that is about to be made: what time is left is its deadline."""
        return replace(self.properties, deadline_seconds=max(self._left_seconds, 0.0))

    def given_up(self, conflict: DeltaError) -> MaxCommitAttemptsError:
        """The error that ends the operation after its last try, of which `conflict` was the outcome."""
        return MaxCommitAttemptsError(
            "Other writers were faster each time the rows were made ready for the table as it was.",
            cause=f"{self.number + 1} attempts were made; the last one: {conflict.problem}",
            fix="Run the operation again when fewer writers are active, or raise max_attempts or "
            "deadline_seconds.",
        )

    @property
    def is_last(self) -> bool:
        """Whether no other try is allowed."""
        return self.number + 1 >= self.properties.max_attempts or self._left_seconds <= 0

    @property
    def _left_seconds(self) -> float:
        now_seconds = self.clock.monotonic_seconds()
        if self._until_seconds is None:
            self._until_seconds = now_seconds + self.properties.deadline_seconds
        return self._until_seconds - now_seconds
