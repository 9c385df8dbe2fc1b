"""Applies named faults and runs their killers: names come in by the line, what became of each goes out.

    python -m tests.faults.server FILE...

A program of its own, since a process that runs tests has threads, and such a one is not to be forked.
"""

from __future__ import annotations

import json
import os
import sys

from tests.faults.apply import FaultGone, put_in
from tests.faults.fault import Fault
from tests.faults.table import FAULTS
from tests.support.mutation.forked_tests import ForkedTests, Outcome, collect

_SECONDS = 25.0


class Server:
    """Answers from standard input to what was standard output."""

    def __init__(self, answers: int) -> None:
        self._answers = answers
        self._without: dict[str, Outcome] = {}

    def serve(self, tests: ForkedTests) -> None:
        """Until the input ends."""
        self._answer({"ready": len(tests.items)})
        for line in sys.stdin:
            self._answer(self._judge(tests, FAULTS[line.rstrip("\n")]))

    def _judge(self, tests: ForkedTests, fault: Fault) -> dict[str, object]:
        killers = tests.named(fault.killer)
        if not killers:
            return {"error": f"there is no test {fault.killer}"}
        if fault.killer not in self._without:
            self._without[fault.killer] = tests.run(killers, seconds=_SECONDS)
        without = self._without[fault.killer]
        if not without.passed:
            return {"error": f"without the fault: {without}"}
        problems: list[str] = []
        found = tests.run(
            killers, before=lambda: _put_in(fault, problems), after=lambda: problems, seconds=_SECONDS
        )
        if found.found:
            return {"error": found.found[0]}
        return {"failed": found.failed, "timed_out": found.timed_out, "crashed": found.crashed}

    def _answer(self, found: dict[str, object]) -> None:
        os.write(self._answers, json.dumps(found).encode() + b"\n")


def _put_in(fault: Fault, problems: list[str]) -> None:
    try:
        put_in(fault)
    except FaultGone as error:
        problems.append(str(error))


def main(paths: list[str]) -> int:
    """Collect the killers and serve."""
    answers = os.dup(1)
    os.dup2(2, 1)
    return collect(paths, Server(answers).serve)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
