"""Histories with faults of tables whose commits depend on the version, on rows, and on features that go.

`make soak-featured-simulation` runs them at full counts, apart from those that `make soak-simulation` is of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from tests.simulation.drops import DropProgram, dropping
from tests.simulation.history import draw_plan, stamped
from tests.simulation.rows import RowProgram, rowed
from tests.simulation.simulation import Verdict, collect_garbage_rarely, run_plan
from tests.support.soak import SEED, rounds

Record = Callable[[str, object], None]
STAMPED_HISTORIES = rounds(usual=130, soak=20_000)
ROWED_HISTORIES = rounds(usual=130, soak=100_000)
DROPPING_HISTORIES = rounds(usual=30, soak=5_000)


@pytest.mark.slow
def test_times_go_up_and_row_ids_are_unique_whatever_happens(record_property: Record) -> None:
    """The same histories on tables whose commits depend on the version that they become."""
    collect_garbage_rarely()
    broken: list[Verdict] = []
    outcomes: Counter[str] = Counter()
    for number in range(STAMPED_HISTORIES):
        verdict = run_plan(stamped(draw_plan(f"{SEED}:{number}")))
        outcomes.update(verdict.outcomes)
        if verdict.new_violations:
            broken.append(verdict)
    record_property("histories", STAMPED_HISTORIES)
    record_property("violations", len(broken))
    seeds = [verdict.plan.seed for verdict in broken]
    assert not broken, f"{len(broken)} of {STAMPED_HISTORIES} histories: {seeds[:20]}\n{broken[0].report()}"
    assert outcomes["committed"] > STAMPED_HISTORIES
    assert outcomes["conflict"] > 0


@pytest.mark.slow
def test_rows_that_are_gone_stay_gone_and_no_other_goes(record_property: Record) -> None:
    """Deletions and updates by vectors meet on one file, and numbers are generated, with everything else."""
    collect_garbage_rarely()
    broken: list[Verdict] = []
    outcomes: Counter[str] = Counter()
    joined = carried = relocated = 0
    for number in range(ROWED_HISTORIES):
        verdict = run_plan(rowed(draw_plan(f"{SEED}:{number}")), program=RowProgram)
        outcomes.update(verdict.outcomes)
        joined += verdict.joined
        carried += verdict.carried
        relocated += verdict.relocated
        if verdict.new_violations:
            broken.append(verdict)
    record_property("histories", ROWED_HISTORIES)
    record_property("violations", len(broken))
    for name, count in (("united", joined), ("carried over", carried), ("relocated", relocated)):
        record_property(name, count)
    seeds = [verdict.plan.seed for verdict in broken]
    assert not broken, f"{len(broken)} of {ROWED_HISTORIES} histories: {seeds[:20]}\n{broken[0].report()}"
    assert outcomes["committed"] > ROWED_HISTORIES
    assert outcomes["conflict"] > 0
    assert joined > ROWED_HISTORIES // 100, "hardly two deletions have met"
    assert min(carried, relocated) > ROWED_HISTORIES // 400, "hardly a deletion has met a rewrite"


@pytest.mark.slow
def test_features_that_are_dropped_are_needed_by_nobody(record_property: Record) -> None:
    """Features are dropped and switched on again, in several commits each, with everything else."""
    collect_garbage_rarely()
    broken: list[Verdict] = []
    outcomes: Counter[str] = Counter()
    dropped = 0
    for number in range(DROPPING_HISTORIES):
        verdict = run_plan(dropping(draw_plan(f"{SEED}:{number}")), program=DropProgram)
        outcomes.update(verdict.outcomes)
        dropped += verdict.dropped
        if verdict.new_violations:
            broken.append(verdict)
    record_property("histories", DROPPING_HISTORIES)
    record_property("violations", len(broken))
    seeds = [verdict.plan.seed for verdict in broken]
    assert not broken, f"{len(broken)} of {DROPPING_HISTORIES} histories: {seeds[:20]}\n{broken[0].report()}"
    assert outcomes["committed"] > DROPPING_HISTORIES
    assert dropped > DROPPING_HISTORIES // 4, "hardly a feature was dropped"
