"""Attempts of an operation that is planned again after each conflict, within its limits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random

from delta_core.errors import DeltaError, MaxCommitAttemptsError
from delta_core.run import Run
from delta_core.transaction.backoff import FullJitter


@dataclass(slots=True, kw_only=True)
class Attempts:
    """Attempts of one operation. Short random pauses between them spread out colliding writers.

    Attributes:
        run: the surroundings of the operation. The limits of its commit properties apply to all attempts
            together. The deadline starts with the first commit: writing the rows before it may take any time.
        random: the source of the pauses.
        number: the number of the current attempt, starting at 0.
    """

    run: Run
    random: Random = field(default_factory=Random)
    number: int = 0
    _until_seconds: float | None = field(init=False, default=None)

    def __iter__(self) -> Iterator[int]:
        """The number of each attempt.

        The iteration does not end. After a failed attempt the caller checks `is_last` once, and then fails or
        continues.
        """
        pauses = FullJitter(random=self.random)
        while True:
            yield self.number
            self.number += 1
            self.run.clock.sleep(pauses.next_seconds())

    def next_run(self) -> Run:
        """The surroundings of the next commit. Its deadline is the remaining time."""
        left_seconds = max(self._left_seconds, 0.0)
        return self.run.with_commit(replace(self.run.commit, deadline_seconds=left_seconds))

    def given_up(self, conflict: DeltaError) -> MaxCommitAttemptsError:
        """The error that ends the operation after its last attempt, which ended with `conflict`."""
        return MaxCommitAttemptsError(
            "Every attempt of the operation conflicted with another writer's commit.",
            cause=f"The number of attempts was {self.number + 1}. The last one failed: {conflict.problem}",
            fix="Run the operation again when fewer writers are active, or raise max_attempts or "
            "deadline_seconds.",
        )

    @property
    def is_last(self) -> bool:
        """Whether the limits allow no attempt after the current one."""
        return self.number + 1 >= self.run.commit.max_attempts or self._left_seconds <= 0

    @property
    def _left_seconds(self) -> float:
        now_seconds = self.run.clock.monotonic_seconds()
        if self._until_seconds is None:
            self._until_seconds = now_seconds + self.run.commit.deadline_seconds
        return self._until_seconds - now_seconds
