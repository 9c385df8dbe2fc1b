"""The library with one guarantee of the protocol taken out: a test that passes without the fault notices it.

Every fault whose killer runs in `make test` is tried here, in processes that are forked for it. Those of
other areas, and what each area catches besides, `make soak-seeded-faults` tries.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import IO, Any

import pytest

from tests.faults.fault import Fault
from tests.faults.table import FAULTS
from tests.support.repository import ROOT

pytestmark = pytest.mark.slow

QUICK = [fault for fault in FAULTS.values() if fault.area == "test"]


class Judge:
    """Asks the server."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._asked: IO[str] = process.stdin
        self._answered: IO[str] = process.stdout
        assert "ready" in self._answer()

    def __call__(self, fault: Fault) -> dict[str, Any]:
        self._asked.write(fault.name + "\n")
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
    files = sorted({fault.killer.partition("::")[0] for fault in QUICK})
    command = [sys.executable, "-m", "tests.faults.server", *files]
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


@pytest.mark.parametrize("fault", QUICK, ids=lambda fault: fault.name)
def test_a_fault_is_noticed(fault: Fault, judge: Judge) -> None:
    verdict = judge(fault)
    assert "error" not in verdict, verdict["error"]
    assert verdict["failed"], f"{fault.killer} passes with it: {verdict}"
