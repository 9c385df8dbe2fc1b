"""Applies mutants and runs their killers: names come in by the line, what became of each goes out.

    python -m tests.mutants.server FILE...

A program of its own, since a process that runs tests has threads, and such a one is not to be forked.
"""

from __future__ import annotations

import json
import os
import sys

from tests.mutants.table import MUTANTS
from tests.support.mutation.code_swap import MutantGone
from tests.support.mutation.forked_tests import ForkedTests, Outcome, collect

_SECONDS = 25.0


class Server:
    """Answers from standard input to what was standard output."""

    def __init__(self, answers: int) -> None:
        self._answers = answers
        self._unmutated: dict[str, Outcome] = {}

    def serve(self, tests: ForkedTests) -> None:
        """Until the input ends."""
        self._answer({"ready": len(tests.items)})
        for line in sys.stdin:
            self._answer(self._judge(tests, line.rstrip("\n")))

    def _judge(self, tests: ForkedTests, name: str) -> dict[str, object]:
        mutant = MUTANTS[name]
        killers = tests.named(mutant.killer)
        if not killers:
            return {"error": f"there is no test {mutant.killer}"}
        if mutant.killer not in self._unmutated:
            self._unmutated[mutant.killer] = tests.run(killers, seconds=_SECONDS)
        unmutated = self._unmutated[mutant.killer]
        if not unmutated.passed:
            return {"error": f"without the mutant: {unmutated}"}
        try:
            swap = mutant.swap()
        except MutantGone as error:
            return {"error": str(error)}
        mutated = tests.run(killers, before=swap.apply, seconds=_SECONDS)
        return {"failed": mutated.failed, "timed_out": mutated.timed_out, "crashed": mutated.crashed}

    def _answer(self, found: dict[str, object]) -> None:
        os.write(self._answers, json.dumps(found).encode() + b"\n")


def main(paths: list[str]) -> int:
    """Collect the killers and serve."""
    answers = os.dup(1)
    os.dup2(2, 1)
    return collect(paths, Server(answers).serve)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
