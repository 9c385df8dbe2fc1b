"""Which requests on the way to a server meet which fault."""

from __future__ import annotations

import random
import re
import threading
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class FaultKind(StrEnum):
    """What the client sees in place of the answer."""

    DROP = "drop"
    ERROR_500 = "500"
    ERROR_503 = "503"
    CONFLICT_409 = "409"
    HANG = "hang"
    DUPLICATE = "duplicate"


class FaultPoint(StrEnum):
    """Whether the server has carried the request out by then."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One disturbance; a duplicate reaches the server twice whatever its point, and answers the second."""

    kind: FaultKind
    point: FaultPoint = FaultPoint.AFTER


ALL_FAULTS = tuple(Fault(kind=kind, point=point) for kind in FaultKind for point in FaultPoint)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFilter:
    """Which requests a plan is asked about: these methods (none: all) whose target holds the pattern.

    The target is the path with its query, still percent-encoded.
    """

    methods: frozenset[str] = frozenset()
    path: str = ""

    def matches(self, method: str, target: str) -> bool:
        """Whether the plan has a say in this request."""
        return (not self.methods or method in self.methods) and re.search(self.path, target) is not None


class FaultPlan(Protocol):
    """Decides about one request after another."""

    def next_fault(self, method: str, target: str) -> Fault | None:
        """What happens to this request; None lets it pass."""
        ...


class FaultQueue:
    """Faults used up in order, one for each request that the filter chooses; None lets that one pass."""

    def __init__(self, faults: Iterable[Fault | None]) -> None:
        self._faults = deque(faults)
        self._lock = threading.Lock()

    @property
    def left(self) -> int:
        """How many have not been used."""
        return len(self._faults)

    def next_fault(self, method: str, target: str) -> Fault | None:
        with self._lock:
            return self._faults.popleft() if self._faults else None


class RandomFaults:
    """A share of the requests meets a fault, drawn by the seed.

    The n-th request of one method and target draws the same whatever else runs at the time, so a seed
    repeats a run of several threads as far as they send the same requests.
    """

    def __init__(self, *, seed: str, rate: float, faults: Sequence[Fault] = ALL_FAULTS) -> None:
        self._seed, self._rate, self._faults = seed, rate, tuple(faults)
        self._seen: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()

    def next_fault(self, method: str, target: str) -> Fault | None:
        with self._lock:
            self._seen[method, target] += 1
            number = self._seen[method, target]
        draw = random.Random(f"{self._seed}:{method}:{target}:{number}")
        return draw.choice(self._faults) if draw.random() < self._rate else None
