"""The simulation itself: it repeats to the letter, and its judge finds out those who get it wrong."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.simulation.naive import Mistake, program_with
from tests.simulation.simulation import simulate
from tests.support.repository import ROOT
from tests.support.soak import SEED

SEARCHED = 300
REPEATED = 6

DIGESTS = """
import sys
from tests.simulation.simulation import simulate
for number in range(int(sys.argv[2])):
    print(simulate(f"{sys.argv[1]}:{number}").digest)
"""


def digests(hash_seed: str) -> list[str]:
    """The traces of some seeds in a process of its own, whose sets have another order."""
    done = subprocess.run(
        [sys.executable, "-c", DIGESTS, SEED, str(REPEATED)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
    )
    return done.stdout.split()


def test_same_seed_repeats_to_the_letter_in_another_process() -> None:
    here = [simulate(f"{SEED}:{number}").digest for number in range(REPEATED)]
    assert digests("1") == here
    assert digests("2") == here
    assert len(set(here)) == REPEATED, "every seed is a history of its own"


def test_threads_and_greenlets_give_the_same_history() -> None:
    for number in range(REPEATED):
        usual, threaded = (simulate(f"{SEED}:{number}", threads=threads) for threads in (False, True))
        assert usual.trace == threaded.trace
        assert len(usual.trace) > 5


@pytest.mark.parametrize(
    ("mistake", "sign"),
    [
        (Mistake.EXISTS_IS_ANOTHERS, "are one transaction"),
        (Mistake.ERROR_IS_FAILURE, "was applied"),
        (Mistake.NOT_FOUND_IS_FREE, "was created after version"),
    ],
)
def test_judge_finds_a_naive_committer_out(mistake: Mistake, sign: str) -> None:
    program = program_with(mistake)
    for number in range(SEARCHED):
        verdict = simulate(f"{SEED}:{number}", program=program)
        if any(sign in violation for violation in verdict.violations):
            assert verdict.plan.seed in verdict.report()
            return
    pytest.fail(f"no history of {SEARCHED} shows: {mistake}")
