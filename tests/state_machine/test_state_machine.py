"""Whatever is done to a table through the public facade, it is what a dict of rows says.

`make soak-state-machine` runs it at full counts; `benchmarks/results/soak-state-machine.json` is its result.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.state_machine.machine import TALLY, machine_of
from tests.state_machine.operations.registry import OPERATIONS
from tests.support.soak import SEED, SOAKING, rounds

EXAMPLES = rounds(usual=10, soak=300)
STEPS = rounds(usual=25, soak=50)
AT_A_TIME = 10

Record = Callable[[str, object], None]


@pytest.mark.slow
def test_a_table_is_what_the_model_says(record_property: Record) -> None:
    TALLY.clear()
    # Examples of one run resemble each other, since some are made of earlier ones: a seed for each few.
    for chunk in range(EXAMPLES // AT_A_TIME):
        run_state_machine_as_test(
            seed(zlib.crc32(f"{SEED}:{chunk}".encode() if chunk else SEED.encode()))(machine_of()),
            settings=settings(
                max_examples=AT_A_TIME,
                stateful_step_count=STEPS,
                suppress_health_check=list(HealthCheck),
                phases=[Phase.generate, Phase.shrink],
                print_blob=True,
            ),
        )
    record_property("rules", len(OPERATIONS))
    record_property("examples", EXAMPLES)
    record_property("steps_at_most", STEPS)
    for what in sorted(TALLY):
        record_property(what, TALLY[what])
    idle = [one.name for one in OPERATIONS if not TALLY[f"did: {one.name}"]]
    # Some need what others must bring about first, which a sample need not hit upon; all steps together do.
    assert len(idle) <= (0 if SOAKING else len(OPERATIONS) // 5), f"these operations never came up: {idle}"


def test_there_are_rules_enough() -> None:
    assert len(OPERATIONS) >= 25
    assert len({one.name for one in OPERATIONS}) == len(OPERATIONS)
