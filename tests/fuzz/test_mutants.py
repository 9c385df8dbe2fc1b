"""Damaged and hostile tables are read right or refused with a typed error that names the file.

These mutants are the same in every run: a fault that a new seed draws is for the soak to find, not for
whoever commits next. `benchmarks/soak/fuzz_reading.py` draws others, a hundred times as many, and reads a
single one again with `--seed` and `--again`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fuzz.corpus import make_corpus
from tests.support.fuzz.judge import FAULT, OTHER, REFUSED, RIGHT
from tests.support.fuzz.mutants import KINDS, Corpus
from tests.support.fuzz.runner import WorkerProcess

pytestmark = pytest.mark.slow

SEED = "bc6ae09fbdd2"
BATCHES = 2
MUTANTS = 120


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    make_corpus(folder)
    return folder


@pytest.fixture(scope="module")
def worker(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerProcess]:
    process = WorkerProcess(tmp_path_factory.mktemp("worker"), corpus, SEED)
    yield process
    process.close()


@pytest.mark.parametrize("batch", range(BATCHES))
def test_mutants_are_read_right_or_refused(worker: WorkerProcess, batch: int) -> None:
    results = [worker.read(number, brief=True) for number in range(batch * MUTANTS, (batch + 1) * MUTANTS)]
    faults = [result for result in results if result["outcome"] == FAULT]
    assert not faults, f"seed {SEED}: {faults[:5]}"
    # A reader that refuses everything, or a mutator that damages nothing, would prove nothing.
    outcomes = Counter(result["outcome"] for result in results)
    assert outcomes[RIGHT] > MUTANTS / 10
    assert outcomes[REFUSED] > MUTANTS / 10
    assert outcomes[OTHER]


def test_mutants_are_drawn_alike_and_of_every_kind(corpus: Path) -> None:
    one, other = Corpus(corpus), Corpus(corpus)
    drawn = [one.mutant("a", number) for number in range(200)]
    assert drawn == [other.mutant("a", number) for number in range(200)]
    assert {mutant.kind for mutant in drawn} == KINDS.keys()
    assert sum(mutant.data != one.content[f"{mutant.table}/{mutant.path}"] for mutant in drawn) > 150
