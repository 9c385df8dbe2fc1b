"""The real core in simulated histories with faults: nothing that was promised is broken.

A failure names its seed; `simulate(SEED).report()` repeats the history.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from tests.simulation.simulation import Verdict, collect_garbage_rarely, simulate
from tests.support.soak import SEED, rounds

Record = Callable[[str, object], None]
HISTORIES = rounds(usual=400, soak=20_000)


@pytest.mark.slow
def test_real_core_keeps_its_promises(record_property: Record) -> None:
    collect_garbage_rarely()
    broken: list[Verdict] = []
    outcomes: Counter[str] = Counter()
    for number in range(HISTORIES):
        verdict = simulate(f"{SEED}:{number}")
        outcomes.update(verdict.outcomes)
        if verdict.new_violations:
            broken.append(verdict)
    record_property("histories", HISTORIES)
    record_property("violations", len(broken))
    seeds = [verdict.plan.seed for verdict in broken]
    assert not broken, f"{len(broken)} of {HISTORIES} histories: {seeds[:20]}\n{broken[0].report()}"
    # A sample in which nothing went wrong would prove nothing.
    expected = {"committed", "already applied", "conflict", "rejected", "unknown", "crashed", "error"}
    assert {name for name, count in outcomes.items() if count >= HISTORIES // 100} == expected
