"""mutmut's mutants of what the protocol rests on, against the quick tests that call the mutated function.

    nice python benchmarks/soak/mutation.py [--mutants 400] [--seconds 3600] [--seed 1]

The mutants are judged in an order that the seed draws, so whatever has been judged is a sample of them all.
Writes `benchmarks/results/soak-mutation.json` after each batch, and goes on from it when seed and sources are
still the same. Exits with 1 when less than 90 % are killed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import selectors
import subprocess
import sys
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "plugins")]

from tests.support.mutation.calls import CallMap, call_map  # noqa: E402 - a program
from tests.support.mutation.code_swap import MutantGone, swap  # noqa: E402
from tests.support.mutation.forked_tests import ForkedTests, collect  # noqa: E402
from tests.support.mutation.operators import EXCLUDED, SourceMutant, source_mutants  # noqa: E402
from tests.support.soak_report import report_head  # noqa: E402

RESULT = REPOSITORY / "benchmarks" / "results" / "soak-mutation.json"
CALLS = REPOSITORY / ".ci" / "out" / "mutation-calls"

AREAS = {
    "commit": ("delta_core/transaction",),
    "replay": (
        "delta_core/replay",
        "delta_core/log",
        "delta_core/snapshot/open_log.py",
        "delta_core/snapshot/snapshot.py",
        "delta_core/snapshot/monotonic_versions.py",
    ),
    "cleanup": (
        "delta_core/maintenance/vacuum",
        "delta_core/maintenance/fsck",
        "delta_core/maintenance/restore/apply.py",
        "delta_core/checkpoint",
    ),
    "feature drop": ("delta_core/maintenance/feature_drop", "delta_core/dml/definition/identity.py"),
    "leases": (
        "delta_core/leases/lease.py",
        "delta_core/leases/lease_files.py",
        "delta_core/jobs/lease.py",
    ),
    "stores": (
        "delta_core/storage/local.py",
        "delta_core/storage/local_system.py",
        "delta_core/storage/log_store.py",
        "delta_core/storage/cached.py",
        "delta_core/storage/dynamodb_entries.py",
        "delta_core/storage/s3_dynamodb.py",
    ),
}
"""What is mutated: folders, without those in them, and files."""

TESTS = (
    "tests/unit/transaction",
    "tests/unit/replay",
    "tests/unit/log",
    "tests/unit/snapshot",
    "tests/unit/checkpoint",
    "tests/unit/maintenance/test_vacuum.py",
    "tests/unit/maintenance/test_vacuum_report.py",
    "tests/unit/maintenance/test_vacuum_vectors.py",
    "tests/unit/maintenance/test_pins.py",
    "tests/unit/maintenance/test_fsck.py",
    "tests/unit/maintenance/test_restore.py",
    "tests/unit/maintenance/test_compaction.py",
    "tests/unit/maintenance/test_feature_drop.py",
    "tests/unit/maintenance/test_feature_drop_columns.py",
    "tests/unit/maintenance/test_feature_drop_history.py",
    "tests/unit/maintenance/test_feature_drop_refusals.py",
    "tests/unit/maintenance/test_shallow_clone_rewriting.py",
    "tests/unit/storage/test_local.py",
    "tests/unit/storage/test_local_links.py",
    "tests/unit/storage/test_backup_links.py",
    "tests/unit/storage/test_cached.py",
    "tests/unit/leases/test_lease.py",
    "tests/unit/storage/test_s3_dynamodb.py",
    "tests/unit/storage/test_dynamodb_attempts.py",
    "tests/unit/jobs/test_job_lease.py",
    "tests/unit/dml",
    "tests/unit/scan",
    "tests/concurrency/test_ambiguous_writes.py",
    "tests/concurrency/test_reordering.py",
)
LEAST_SCORE = 0.9
BATCH = 40
WITNESS_SECONDS = 20.0
"""Tests of about so many seconds are asked about one mutant."""

LETTERS = {"killed": "k", "timeout": "t", "crashed": "c", "survived": "s", "equal": "e", "invalid": "i"}

Verdict = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutants", type=int, help="judge so many and stop; all when not given")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no batch later than this")
    parser.add_argument("--seed", default=os.environ.get("DELTAWARD_SEED", "1"))
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--output", type=Path, default=RESULT)
    parser.add_argument("--judge", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.chdir(REPOSITORY)
    mutants = drawn(options.seed)
    if options.judge:
        answers = os.dup(1)
        os.dup2(2, 1)
        return collect(TESTS, lambda tests: judge(tests, mutants, answers))
    began = time.monotonic()
    code = collect(TESTS, lambda tests: warn_of(call_map(tests, CALLS).failing))
    if code:
        return code
    tally = Tally.resume(options.output, options.seed, mutants)
    wanted = min(options.mutants or len(mutants), len(mutants))
    with workers(options.workers, options.seed) as started:
        while len(tally.verdicts) < wanted and time.monotonic() - began < options.seconds:
            first = len(tally.verdicts)
            tally.add(ask(started, range(first, min(first + BATCH, wanted))))
            tally.save(options.output, time.monotonic() - began)
            print(f"{len(tally.verdicts)} judged, {tally.score():.1%} killed", flush=True)
    return 0 if tally.score() >= LEAST_SCORE else 1


def drawn(seed: str) -> list[SourceMutant]:
    """All mutants of the areas, in the order that the seed draws."""
    files = [path for places in AREAS.values() for place in places for path in _files(Path(place))]
    found = [mutant for path in sorted(files) for mutant in source_mutants(str(path), path.read_text())]
    random.Random(f"mutation:{seed}").shuffle(found)
    return found


def warn_of(failing: Sequence[str]) -> None:
    """Name the tests that are no witnesses."""
    for name in failing:
        print(f"fails without a mutant: {name}", file=sys.stderr)


def judge(tests: ForkedTests, mutants: Sequence[SourceMutant], answers: int) -> None:
    """Judge every mutant whose number comes in; a line goes out for each."""
    calls = call_map(tests, CALLS)
    killers: dict[str, list[str]] = defaultdict(list)
    for line in sys.stdin:
        mutant = mutants[int(line)]
        earlier = killers[f"{mutant.path}:{mutant.function}"]
        verdict = _judged(tests, mutant, calls, earlier)
        if "by" in verdict:
            earlier[:] = [verdict["by"], *(name for name in earlier if name != verdict["by"])][:8]
        answer = {"number": int(line), "mutant": mutant.name, **verdict}
        os.write(answers, json.dumps(answer).encode() + b"\n")


def _judged(
    tests: ForkedTests, mutant: SourceMutant, calls: CallMap, earlier: Sequence[str]
) -> dict[str, str]:
    module = import_module(mutant.path.removesuffix(".py").replace("/", "."))
    function = f"{mutant.path}:{mutant.function}"
    witnesses = calls.witnesses(function, first=earlier, most_seconds=WITNESS_SECONDS)
    try:
        mutated = swap(module, mutant.function, mutant.source)
    except MutantGone:
        # The compiler makes the same of both.
        return {"verdict": "equal"}
    except (SyntaxError, ValueError):
        return {"verdict": "invalid"}
    if not witnesses:
        return {"verdict": "survived", "why": "no test calls it"}
    seconds = 10.0 + 2 * sum(calls.seconds[name] for name in witnesses)
    outcome = tests.run(witnesses, before=mutated.apply, seconds=seconds)
    if outcome.failed:
        return {"verdict": "killed", "by": outcome.failed[0]}
    if outcome.timed_out or outcome.crashed:
        return {"verdict": "timeout" if outcome.timed_out else "crashed"}
    return {"verdict": "survived", "why": f"{len(witnesses)} tests pass"}


@contextmanager
def workers(count: int, seed: str) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that judge; each has collected the tests by itself."""
    command = [sys.executable, str(Path(__file__)), "--judge", "--seed", seed]
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            for _ in range(count)
        ]


def ask(started: Sequence[subprocess.Popen[str]], numbers: Iterable[int]) -> list[Verdict]:
    """The verdicts on some mutants, in their order."""
    waiting = deque(numbers)
    found: dict[int, Verdict] = {}

    def send(process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        process.stdin.write(f"{waiting.popleft()}\n")
        process.stdin.flush()

    with selectors.DefaultSelector() as ready:
        for process in started:
            if waiting:
                ready.register(process.stdout or sys.stdin, selectors.EVENT_READ, process)
                send(process)
        while ready.get_map():
            for key, _ in ready.select():
                process = key.data
                line = process.stdout.readline()
                if not line:
                    raise RuntimeError("a judging process ended: its standard error says why")
                verdict = json.loads(line)
                found[verdict["number"]] = verdict
                if waiting:
                    send(process)
                else:
                    ready.unregister(key.fileobj)
    return [found[number] for number in sorted(found)]


class Tally:
    """What has been judged so far.

    Attributes:
        verdicts: a letter for each mutant judged, in the order drawn.
    """

    def __init__(self, seed: str, mutants: Sequence[SourceMutant]) -> None:
        self.seed = seed
        self.mutants = mutants
        places = [place for places in AREAS.values() for place in places]
        self.sources = _hash_of(*places, "tests/support/mutation")
        self.verdicts = ""
        self.earlier_seconds = 0.0

    @classmethod
    def resume(cls, path: Path, seed: str, mutants: Sequence[SourceMutant]) -> Tally:
        """Go on from a result of the same seed and sources, else begin."""
        tally = cls(seed, mutants)
        if path.is_file():
            before = json.loads(path.read_text())
            if (before["seed"], before["sources"]) == (seed, tally.sources):
                tally.verdicts = before["verdicts"]
                tally.earlier_seconds = before["duration_seconds"]
        return tally

    def add(self, found: Sequence[Verdict]) -> None:
        """Count some more, which come next in the order drawn."""
        for one in found:
            self.verdicts += LETTERS[one["verdict"]]
            if one["verdict"] == "survived":
                print(f"{one['mutant']} ({one['why']})", file=sys.stderr, flush=True)

    def counts(self, area: str | None = None) -> dict[str, Any]:
        """Of one area, or of all: a mutant that is equal to the original or no Python is none."""
        judged = zip(self.verdicts, self.mutants, strict=False)
        found = Counter(letter for letter, mutant in judged if area in (None, _area_of(mutant.path)))
        mutants = found.total() - found["e"] - found["i"]
        noticed = found["k"] + found["t"] + found["c"]
        named = {name: found[letter] for name, letter in LETTERS.items()}
        return {"mutants": mutants, **named, "score": round(noticed / mutants, 4) if mutants else None}

    def score(self) -> float:
        """The share of all mutants judged that a test noticed."""
        return float(self.counts()["score"] or 0.0)

    def save(self, path: Path, seconds: float) -> None:
        """Write the result; a reader never sees half of it."""
        judged = zip(self.verdicts, self.mutants, strict=False)
        report = {
            **report_head("mutation", seed=self.seed, seconds=self.earlier_seconds + seconds),
            "tool": f"the operators of mutmut {version('mutmut')}, run by tests/support/mutation",
            "not_mutated": EXCLUDED,
            "sources": self.sources,
            "mutants_in_all": len(self.mutants),
            "is_a_sample": len(self.verdicts) < len(self.mutants),
            "judged": self.counts(),
            "areas": {area: self.counts(area) for area in AREAS},
            "survivors": sorted(mutant.name for letter, mutant in judged if letter == "s"),
            "verdicts": self.verdicts,
        }
        draft = path.with_suffix(".part")
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(json.dumps(report, indent=2) + "\n")
        draft.replace(path)


def _area_of(path: str) -> str:
    return next(area for area, places in AREAS.items() if path.startswith(places))


def _files(place: Path) -> list[Path]:
    return [place] if place.is_file() else list(place.glob("*.py"))


def _hash_of(*places: str) -> str:
    """Of some Python files, or all in some folders: another text may give other mutants and witnesses."""
    digest = hashlib.sha256()
    for path in sorted(path for place in places for path in _files(Path(place))):
        digest.update(str(path).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


if __name__ == "__main__":
    sys.exit(main())
