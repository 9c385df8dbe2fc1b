"""Writers that all create the same object at the same moment."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import obstore
from obstore.exceptions import AlreadyExistsError

WRITERS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RaceResult:
    """The numbers of the writers that were told they had created the object, and what it then holds."""

    winners: tuple[int, ...]
    losers: tuple[int, ...]
    stored: bytes

    def require_one_winner(self) -> None:
        """Raises AssertionError unless exactly one created it and its bytes are what is stored."""
        assert len(self.winners) == 1, f"{len(self.winners)} writers created the same object: {self.winners}"
        assert self.stored == body_of(self.winners[0])


def body_of(writer: int) -> bytes:
    """What a writer writes: like no other's, and longer than what fits a packet."""
    return f"writer {writer:04d}\n".encode() * 500


def race(create: Callable[[int], bool], *, writers: int = WRITERS) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Run `create(n)` of all writers at once; the numbers that said True, and those that said False."""
    barrier = threading.Barrier(writers)

    def one(number: int) -> bool:
        barrier.wait(timeout=300)
        return create(number)

    with ThreadPoolExecutor(writers) as pool:
        answers = list(pool.map(one, range(writers)))
    won = tuple(number for number, answer in enumerate(answers) if answer)
    return won, tuple(number for number in range(writers) if number not in won)


def race_to_create(store: Any, path: str, *, writers: int = WRITERS) -> RaceResult:
    """Let the writers create one object through obstore; an error that is not "already exists" is raised."""

    def create(number: int) -> bool:
        try:
            obstore.put(store, path, body_of(number), mode="create")
        except AlreadyExistsError:
            return False
        return True

    winners, losers = race(create, writers=writers)
    return RaceResult(winners=winners, losers=losers, stored=bytes(obstore.get(store, path).bytes()))
