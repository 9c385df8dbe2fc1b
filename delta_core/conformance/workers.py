"""The worker processes of a conformance run, as seen by the process that starts them."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import IO, Any

from delta_core.conformance.place import Place, package_root
from delta_core.errors import StorageError

_SHOWN_CHARACTERS = 600


class WorkerProcess:
    """One worker process."""

    def __init__(self, process: subprocess.Popen[str], errors: IO[str]) -> None:
        self._process = process
        self._errors = errors

    def send(self, command: Mapping[str, Any]) -> None:
        """Send a command. `answer` waits for its answer."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(command) + "\n")
            self._process.stdin.flush()
        except OSError as error:
            raise self._ended() from error

    def answer(self) -> dict[str, Any]:
        """The answer to the oldest command without an answer.

        Raises: StorageError: the command failed, or the process has ended.
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise self._ended()
        document: dict[str, Any] = json.loads(line)
        if "error" in document:
            raise StorageError(document["error"])
        return document

    def ask(self, command: Mapping[str, Any]) -> dict[str, Any]:
        """Send a command and return its answer."""
        self.send(command)
        return self.answer()

    def kill(self) -> None:
        """Kill the process at once."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Kill the process and close its streams."""
        self.kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._errors.close()

    def _ended(self) -> StorageError:
        self._process.wait()
        self._errors.seek(0)
        error_output = self._errors.read()[-_SHOWN_CHARACTERS:].strip()
        return StorageError(
            f"A process of the run ended with {self._process.returncode}.",
            cause=f"Its error output was: {error_output or 'nothing'}",
            fix="Run the checks again, with fewer --writers if the machine has little memory.",
        )


@contextmanager
def worker_processes(place: Place, count: int) -> Iterator[Sequence[WorkerProcess]]:
    """Start `count` processes for a place's prefix and options. They end with the context."""
    # The processes use no cache, and import the same package as this process.
    paths = [package_root(), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "DELTAWARD_CACHE_BYTES": "0", "PYTHONPATH": os.pathsep.join(paths)}
    with contextlib.ExitStack() as stack:
        workers = []
        for _ in range(count):
            errors = stack.enter_context(TemporaryFile("w+", encoding="utf-8", errors="replace"))
            process = subprocess.Popen(
                [sys.executable, "-m", "delta_core.conformance.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environment,
            )
            worker = WorkerProcess(process, errors)
            stack.callback(worker.close)
            workers.append(worker)
        for worker in workers:
            worker.send({"uri": place.uri, "options": dict(place.options)})
        for worker in workers:
            worker.answer()
        yield workers
