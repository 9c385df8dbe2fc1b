"""Ranking of what is due: by gain and cost, with ageing, under a budget. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from delta_core.policies.fleet_model import BudgetPolicy

_LEAST_COST: Final = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A verb that could run on a table.

    Attributes:
        gain: bytes that the reads of a day do not read any more.
        cpu_seconds: the predicted cost.
        size_bytes: bytes to rewrite; they count against the budget.
        money: the predicted price.
        age_hours: for how long the verb is due.
        max_age_hours: the age at which the verb must have run.
        next_chance_hours: the time until a later run could do it, at most half of the maximum age.
    """

    uri: str
    verb: str
    gain: float
    cpu_seconds: float
    size_bytes: int
    money: float = 0.0
    priority: float = 1.0
    age_hours: float = 0.0
    max_age_hours: float = 168.0
    next_chance_hours: float = 0.0

    @property
    def starved(self) -> bool:
        """Whether the verb has waited for its maximum age, or would have at its next chance."""
        ahead = min(self.next_chance_hours, self.max_age_hours / 2)
        return self.age_hours + ahead >= self.max_age_hours

    @property
    def value(self) -> float:
        """Gain for each CPU second, times the priority, and up to twice as much with the age."""
        return self.gain * self.priority / max(self.cpu_seconds, _LEAST_COST) * (1 + self._waited)

    @property
    def _waited(self) -> float:
        return min(1.0, self.age_hours / self.max_age_hours)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """The part of a budget that was spent, or that remains; infinite without a limit."""

    size_bytes: float
    cpu_seconds: float
    money: float

    def fits(self, candidate: Candidate) -> bool:
        """Whether the candidate costs no more than this."""
        return (
            candidate.size_bytes <= self.size_bytes
            and candidate.cpu_seconds <= self.cpu_seconds
            and candidate.money <= self.money
        )

    def without(self, candidate: Candidate) -> Spent:
        """The remainder after the candidate."""
        return Spent(
            size_bytes=self.size_bytes - candidate.size_bytes,
            cpu_seconds=self.cpu_seconds - candidate.cpu_seconds,
            money=self.money - candidate.money,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The candidates in the order in which they should run, and the deferred ones with the reason."""

    chosen: tuple[Candidate, ...]
    deferred: tuple[tuple[Candidate, str], ...]


NOTHING_SPENT: Final = Spent(size_bytes=0, cpu_seconds=0, money=0)


def remaining(budget: BudgetPolicy, spent_today: Spent = NOTHING_SPENT) -> Spent:
    """The allowance of one run: the limits of a run, and what is left of those of a day."""
    endless = float("inf")

    def least(run: float | None, day: float | None, spent: float) -> float:
        left = endless if day is None else max(0.0, day - spent)
        return min(endless if run is None else run, left)

    return Spent(
        size_bytes=least(budget.bytes, budget.bytes_per_day, spent_today.size_bytes),
        cpu_seconds=least(budget.cpu_seconds, budget.cpu_seconds_per_day, spent_today.cpu_seconds),
        money=least(budget.money, budget.money_per_day, spent_today.money),
    )


def rank(candidates: Iterable[Candidate], allowance: Spent) -> Ranking:
    """Choose candidates that together fit into the allowance.

    Candidates whose maximum age comes before their next chance go first, the longest waiting one first. The
    others follow by value. A candidate that does not fit is passed over, and cheaper ones behind it may still
    run, except that nothing passes a starved candidate that would fit into the whole allowance: otherwise
    many cheap ones could keep it waiting.

    Args:
        candidates: what is due.
        allowance: what the run may spend.
    """
    listed = sorted(candidates, key=_order)
    starved = [item for item in listed if item.starved]
    fresh = [item for item in listed if not item.starved]
    chosen, rest, left = _fill(starved, allowance)
    waiting = [item for item in rest if allowance.fits(item)]
    deferred = [(item, _why(item, allowance, left)) for item in rest]
    if waiting:
        first = f"{waiting[0].verb} of {waiting[0].uri} waits for the budget and goes first"
        deferred += [(item, first) for item in fresh]
        return Ranking(chosen=tuple(chosen), deferred=tuple(deferred))
    taken, passed, after = _fill(fresh, left)
    # The best single candidate may be worth more than many good ones that leave no room for it.
    single = max((item for item in passed if left.fits(item)), key=lambda item: item.gain, default=None)
    if single is not None and single.gain * single.priority > sum(i.gain * i.priority for i in taken):
        others, passed, after = _fill([item for item in fresh if item is not single], left.without(single))
        taken = [single, *others]
    deferred += [(item, _why(item, allowance, after)) for item in passed]
    return Ranking(chosen=(*chosen, *taken), deferred=tuple(deferred))


def _order(item: Candidate) -> tuple[float, float, str, str]:
    waited = item.age_hours / item.max_age_hours if item.starved else 0.0
    return (-waited, -item.value, item.uri, item.verb)


def _fill(items: list[Candidate], left: Spent) -> tuple[list[Candidate], list[Candidate], Spent]:
    chosen, passed = [], []
    for item in items:
        if left.fits(item):
            chosen.append(item)
            left = left.without(item)
        else:
            passed.append(item)
    return chosen, passed, left


def _why(item: Candidate, allowance: Spent, left: Spent) -> str:
    limits: tuple[tuple[str, Callable[[Spent], float], float], ...] = (
        ("bytes", lambda spent: spent.size_bytes, item.size_bytes),
        ("CPU seconds", lambda spent: spent.cpu_seconds, item.cpu_seconds),
        ("money", lambda spent: spent.money, item.money),
    )
    for name, of, cost in limits:
        if cost > of(allowance):
            return f"it needs {cost:.6g} {name}, and a run may spend {of(allowance):.6g}"
    for name, of, cost in limits:
        if cost > of(left):
            return f"it needs {cost:.6g} {name}, and {of(left):.6g} of the budget are left"
    return "the budget is used up"
