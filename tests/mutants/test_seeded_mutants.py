"""The library with one guarantee taken out, many times: a test that passes without it must notice each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from typing import IO, Any

import pytest

from tests.concurrency.matrix.specification import ERRORS
from tests.mutants.mutant import Mutant
from tests.mutants.table import GROUPS, MUTANTS
from tests.simulation.test_mutants import MUTANTS as SIMULATED
from tests.support.mutation.code_swap import MutantGone, Target, edited
from tests.support.repository import ROOT

AT_LEAST = 36
"""Distinct mutants in all, those of the simulation and of the conflict matrix included."""


class Judge:
    """Asks the server."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._asked: IO[str] = process.stdin
        self._answered: IO[str] = process.stdout
        assert "ready" in self._answer()

    def __call__(self, mutant: Mutant) -> dict[str, Any]:
        self._asked.write(mutant.name + "\n")
        self._asked.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        line = self._answered.readline()
        if not line:
            pytest.fail("the server ended: its standard error says why")
        found: dict[str, Any] = json.loads(line)
        return found


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    files = sorted({mutant.killer.partition("::")[0] for mutant in MUTANTS.values()})
    command = [sys.executable, "-m", "tests.mutants.server", *files]
    path = os.pathsep.join([str(ROOT), str(ROOT / "plugins"), os.environ.get("PYTHONPATH", "")])
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env={**environment, "PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Judge(process)
        assert process.stdin is not None
        process.stdin.close()


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=lambda mutant: mutant.name)
def test_a_mutant_is_killed(mutant: Mutant, judge: Judge) -> None:
    verdict = judge(mutant)
    assert "error" not in verdict, verdict["error"]
    assert verdict["failed"], f"{mutant.killer} passes with it: {verdict}"


def test_there_are_enough_and_no_two_are_alike() -> None:
    listed = [mutant for group in GROUPS.values() for mutant in group]
    assert len(MUTANTS) == len(listed), Counter(mutant.name for mutant in listed).most_common(1)
    assert len({(mutant.target, mutant.edits) for mutant in listed}) == len(listed)
    assert len(listed) + len(SIMULATED) + len(ERRORS) >= AT_LEAST
    assert all(len(group) >= 7 for group in GROUPS.values())


@pytest.mark.parametrize(
    ("target", "edits", "reason"),
    [
        ("delta_core.no_such_module:f", (), "no_such_module"),
        ("delta_core.log.listing:no_such_function", (), "no such function"),
        ("delta_core.log.listing:list_log", (("no such text", ""),), "is there 0 times"),
        ("delta_core.log.listing:list_log", (("commits", ""),), r"is there \d+ times"),
        ("delta_core.log.listing:list_log", (("if path is None or", "if path is None  or"),), "is the same"),
    ],
)
def test_a_mutant_without_its_place_is_an_error(
    target: str, edits: tuple[tuple[str, str], ...], reason: str
) -> None:
    with pytest.raises(MutantGone, match=reason):
        edited(Target.parse(target), edits)
