"""Hands numbers to worker processes and sees to it that each is answered, or its worker ended."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.support.fuzz.corpus import make_corpus
from tests.support.fuzz.judge import FAULT
from tests.support.fuzz.worker import SECONDS
from tests.support.repository import ROOT

_START_SECONDS = 600.0
# Only what hangs takes so long: the worker itself measures, by its own CPU, whether a read takes too much.
_ANSWER_SECONDS = 60 * SECONDS
# A worker that has read thousands of mutants starts anew: what one left behind must not hurt the next.
_READS_PER_PROCESS = 5000

Result = dict[str, Any]


class WorkerProcess:
    """One worker; started anew when it dies, hangs or has worked long enough."""

    def __init__(self, folder: Path, corpus: Path, seed: str) -> None:
        self._folder = folder
        self._corpus = corpus
        self._seed = seed
        self.process: subprocess.Popen[str] | None = None
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._starts = 0
        self._reads = 0

    def read(self, number: int, *, brief: bool = False) -> Result:
        """The result of a mutant; a FAULT when there is no answer in time. `brief` as in `Worker.run`."""
        if self.process is None or self._reads >= _READS_PER_PROCESS:
            self.close()
            self._start()
        process = self.process
        assert process is not None
        assert process.stdin is not None
        self._reads += 1
        try:
            process.stdin.write(f"{number}{' brief' if brief else ''}\n")
            process.stdin.flush()
            line = self._lines.get(timeout=_ANSWER_SECONDS)
        except (queue.Empty, BrokenPipeError):
            line = None
        if line is not None:
            result: Result = json.loads(line)
            return result
        ended = process.poll()
        self.close()
        said = (self._folder / f"said-{self._starts}.txt").read_text(errors="replace")[-1500:]
        what = f"no answer in {_ANSWER_SECONDS:.0f} s" if ended is None else f"the process died ({ended})"
        return {"number": number, "outcome": FAULT, "detail": f"{what}: {said}", "kind": "unknown"}

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for pipe in (self.process.stdin, self.process.stdout):
                assert pipe is not None
                with suppress(BrokenPipeError):
                    pipe.close()
            self.process = None

    def _start(self) -> None:
        self._starts += 1
        self._reads = 0
        scratch = self._folder / f"tables-{self._starts}"
        said = self._folder / f"said-{self._starts}.txt"
        environment = {
            **os.environ,
            # Bounded address space means something only where an allocator does not reserve ahead.
            "ARROW_DEFAULT_MEMORY_POOL": "system",
            "MALLOC_ARENA_MAX": "2",
        }
        command = [
            sys.executable,
            "-m",
            "tests.support.fuzz.worker",
            str(self._corpus),
            str(scratch),
            self._seed,
        ]
        with said.open("w") as errors:
            self.process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self._lines = queue.Queue()
        threading.Thread(target=_pump, args=(self.process, self._lines), daemon=True).start()
        try:
            ready = self._lines.get(timeout=_START_SECONDS)
        except queue.Empty:
            ready = None
        if ready is None:
            self.close()
            raise RuntimeError(f"a worker did not start: {said.read_text(errors='replace')[-3000:]}")


def _pump(process: subprocess.Popen[str], lines: queue.Queue[str | None]) -> None:
    assert process.stdout is not None
    try:
        for line in process.stdout:
            lines.put(line)
    except ValueError:
        pass  # closed on this side
    lines.put(None)


def run_mutants(
    numbers: Iterable[int], *, seed: str, workers: int = 1, brief: bool = False
) -> Iterator[Result]:
    """Read the mutants of some numbers; the results come as they are ready.

    Args:
        numbers: which; taken one by one, so that the caller can stop giving more.
        seed: draws the mutants.
        workers: how many processes read at a time.
        brief: as in `Worker.run`.
    """
    with tempfile.TemporaryDirectory(prefix="deltaward-fuzz-", dir=_fast_folder()) as folder:
        corpus = Path(folder) / "corpus"
        corpus.mkdir()
        make_corpus(corpus)
        tasks = iter(numbers)
        lock = threading.Lock()
        results: queue.Queue[Result | BaseException | None] = queue.Queue()

        def work(index: int) -> None:
            own = Path(folder) / f"worker-{index}"
            own.mkdir()
            process = WorkerProcess(own, corpus, seed)
            try:
                while True:
                    with lock:
                        number = next(tasks, None)
                    if number is None:
                        break
                    results.put(process.read(number, brief=brief))
            except BaseException as error:
                results.put(error)
            finally:
                process.close()
                results.put(None)

        threads = [threading.Thread(target=work, args=(index,)) for index in range(workers)]
        for thread in threads:
            thread.start()
        running = workers
        try:
            while running:
                result = results.get()
                if result is None:
                    running -= 1
                elif isinstance(result, BaseException):
                    raise result
                else:
                    yield result
        finally:
            with lock:
                tasks = iter(())
            for thread in threads:
                thread.join()


def _fast_folder() -> str | None:
    """Memory, where the system has a folder for it."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
