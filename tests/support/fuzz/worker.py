"""The process that reads mutants: `python -m tests.support.fuzz.worker CORPUS SCRATCH SEED`.

It is told a number in a line, perhaps with the word `brief`, and answers with a line of JSON. What it
cannot answer any more, because it is dead or hangs, its parent sees.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.support.fuzz.judge import FAULT, Verdict, judge, lacked_memory
from tests.support.fuzz.mutants import Corpus
from tests.support.fuzz.reading import DEAR_WAYS, Reading, read_everything
from tests.support.fuzz.slow_reader import Answer

MEMORY_BYTES = 1 << 30
SECONDS = 10.0
_ADDRESS_SPACE_BYTES = 8 << 30


class Worker:
    """Reads mutants in its own copy of the corpus."""

    def __init__(self, corpus: Path, scratch: Path, seed: str) -> None:
        self._corpus = Corpus(corpus)
        self._root = scratch
        self._seed = seed
        shutil.copytree(corpus, scratch, copy_function=shutil.copy2)
        _move_absolute_paths(scratch, corpus)
        self._corpus = Corpus(scratch)
        self._whole: dict[str, Answer] = {}
        for table in sorted(path.name for path in scratch.iterdir()):
            reading = read_everything(scratch / table)
            if reading.faults or reading.wrong_warnings or reading.warned:
                raise RuntimeError(f"{table} is not whole: {reading.errors} {reading.wrong_warnings}")
            self._whole[table] = {**reading.values}

    def run(self, number: int, *, brief: bool = False) -> dict[str, Any]:
        """Damage, read, judge, repair.

        Args:
            number: the mutant's.
            brief: take only one of the dear ways of reading, in turn.
        """
        without = [way for at, way in enumerate(DEAR_WAYS) if brief and at != number % len(DEAR_WAYS)]
        mutant = self._corpus.mutant(self._seed, number)
        root = self._root / mutant.table
        path = root / mutant.path
        before = path.read_bytes()
        times = path.stat()
        limit_memory(MEMORY_BYTES)
        path.write_bytes(mutant.data)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        try:
            began, busy = time.monotonic(), time.process_time()
            reading = read_everything(root, without=without)
            if lacked_memory(reading):
                reading = self._read_measured(root, without) or reading
            seconds, busy = time.monotonic() - began, time.process_time() - busy
            limit_memory(None)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                verdict = judge(reading, root, mutant.path, self._whole[mutant.table])
        finally:
            path.write_bytes(before)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        # Of the processor, so that a busy machine is no fault; who waits without end is seen by the parent.
        if busy > SECONDS:
            verdict = Verdict(outcome=FAULT, detail=f"took {busy:.1f} s")
        return {
            "number": number,
            "table": mutant.table,
            "file": mutant.path,
            "kind": mutant.kind,
            "mutator": mutant.mutator,
            "outcome": verdict.outcome,
            "detail": verdict.detail,
            "warned": len(reading.warned),
            "seconds": round(seconds, 4),
        }

    def _read_measured(self, root: Path, without: Sequence[str]) -> Reading | None:
        """Once more, with address space enough; None when it uses more memory than it may.

        Arrow reserves what a page's header claims and lets go of it when the page is decoded and shorter.
        """
        limit_memory(_ADDRESS_SPACE_BYTES)
        before = forget_peak()
        reading = read_everything(root, without=without)
        return reading if peak_bytes() - before <= MEMORY_BYTES else None


def forget_peak() -> int:
    """Measure the peak from here on; gives the bytes that the process uses now."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak_bytes()


def peak_bytes() -> int:
    """The most memory that the process has really used."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith("VmHWM")))


def limit_memory(more_bytes: int | None) -> None:
    """Let the process have so many bytes of address space more than it has; None lifts the limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = hard
    if more_bytes is not None:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + more_bytes
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def _move_absolute_paths(root: Path, old: Path) -> None:
    """The copy's absolute paths name the copy."""
    for path in root.rglob("*.json"):
        data = path.read_bytes()
        if str(old).encode() in data:
            times = path.stat()
            path.write_bytes(data.replace(str(old).encode(), str(root).encode()))
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def main(corpus: str, scratch: str, seed: str) -> None:
    """Answer until there are no more numbers."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints must not get between the answers
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    worker = Worker(Path(corpus), Path(scratch), seed)
    print("ready", file=out, flush=True)
    for line in sys.stdin:
        number, _, how = line.strip().partition(" ")
        print(json.dumps(worker.run(int(number), brief=how == "brief")), file=out, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
