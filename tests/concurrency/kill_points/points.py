"""The points, found by recording an undisturbed run of each operation in each place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

from tests.concurrency.kill_points.every import EVERY
from tests.concurrency.kill_points.operation import Start
from tests.concurrency.kill_points.operations import OPERATIONS
from tests.concurrency.kill_points.places import DECIDES, Place
from tests.concurrency.kill_points.power import PowerLoss
from tests.concurrency.kill_points.steps import RETURNED, Moment
from tests.concurrency.kill_points.system_calls import watched_names

_SYSTEM_CALL = re.compile(rf"(before|after|halfway in) ({'|'.join(watched_names())}) ")
_COMMIT = re.compile(r"put_if_absent _delta_log/\d{20}\.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One process's end.

    Attributes:
        at: the step.
        lands: False before the step that decides the commit has begun, True after it has ended; None
            while it is under way, and where there is no commit, or more than one.
        power: what becomes of what was not flushed; None where the machine goes on.
    """

    operation: str
    place: Place
    at: Moment
    lands: bool | None
    power: PowerLoss | None = None

    def __str__(self) -> str:
        label, number = self.at
        often = f" ({number}.)" if number > 1 else ""
        failed = f", power fails: {self.power}" if self.power else ""
        return f"{self.operation}, {self.place}: {label}{often}{failed}"


def pairs() -> list[tuple[str, Place]]:
    """Every operation in every place where there is something to do."""
    return [
        (name, place)
        for name, operation in OPERATIONS.items()
        for place in Place
        if operation.start is not Start.INTERRUPTED or place is Place.DYNAMODB
    ]


def points_of(operation: str, place: Place, moments: Sequence[Moment]) -> list[Point]:
    """A point for each end that differs, and for a directory's system calls each failure of the power."""
    begins, ends = _decision(operation, place, moments)
    return [
        Point(
            operation=operation,
            place=place,
            at=moment,
            lands=None if begins is None or begins <= index < ends else index >= ends,
            power=power,
        )
        for index, moment in enumerate(moments)
        if not _is_the_next(moments, index)
        for power in ((None, *PowerLoss) if _may_lose(place, moment) else (None,))
    ]


def _is_the_next(moments: Sequence[Moment], index: int) -> bool:
    """Whether nothing happens from a moment to the next: after one step is before the one that follows.

    So it is between two that begin and two that end, when a call of a store makes requests of its own.
    """
    if index + 1 == len(moments):
        return False
    here, following = moments[index][0], moments[index + 1][0]
    ended = here.startswith("after ") and following.startswith(("before ", "after ", RETURNED))
    return ended or (here.startswith("before ") and following.startswith("before "))


def _may_lose(place: Place, moment: Moment) -> bool:
    """Whether something may be waiting to be flushed that was not before the moment."""
    return place is Place.LOCAL and (moment[0] == RETURNED or _SYSTEM_CALL.match(moment[0]) is not None)


def _decision(operation: str, place: Place, moments: Sequence[Moment]) -> tuple[int | None, int]:
    """Where the one step that decides begins and ends."""
    found = [index for index, (label, _) in enumerate(moments) if _decides(label, place)]
    if len(EVERY[operation].commits) != 1 or not found:
        return None, 0
    begins, ends = found
    return begins, ends


def _decides(label: str, place: Place) -> bool:
    if place is Place.DYNAMODB:
        return label.endswith(f", {DECIDES}")
    return _COMMIT.search(label) is not None


def sample(points: Iterable[Point], count: int, *, seed: str) -> list[Point]:
    """So many: of every operation in every place as many, as far as that goes."""
    draw = Random(seed)
    groups: dict[tuple[str, Place], list[Point]] = {}
    for point in points:
        groups.setdefault((point.operation, point.place), []).append(point)
    for group in groups.values():
        draw.shuffle(group)
    waiting = list(groups.values())
    draw.shuffle(waiting)
    chosen: list[Point] = []
    while len(chosen) < count and waiting:
        chosen += [group.pop() for group in waiting[: count - len(chosen)]]
        waiting = [group for group in waiting if group]
    return chosen
