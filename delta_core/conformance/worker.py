"""A process of a conformance run. Reads commands from standard input and answers on standard output.

Each line is a JSON object. The first is {"uri", "options"}, the prefix and the storage options. Options are
not passed as arguments, since they may contain secrets. The answer to it is {"ready": true}. Commands:

- {"do": "create", "table", "path", "bodies", "at"}: create one object from one thread per body, all at the
  same monotonic time; answers with the outcome of each: `won`, `exists`, `ambiguous` or an error message.
- {"do": "read", "table", "path"}: the SHA-256 of the object, or null.
- {"do": "write", "table", "path", "body", "times"}: create an object of `body` repeated `times` times.
- {"do": "append", "table", "writer", "count", "seconds"}: make commits, each with its own key; answers with
  the version of each.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa

from delta_core.actions import SetTransaction
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.dml.write import write_deltalake
from delta_core.errors import (
    AmbiguousWriteError,
    CommitStateUnknownError,
    DeltaError,
    ObjectExistsError,
    ObjectNotFoundError,
)
from delta_core.storage.cached import without_cache
from delta_core.storage.log_store import LogStore
from delta_core.storage.open import open_store

WON, EXISTS, AMBIGUOUS = "won", "exists", "ambiguous"
BODY_REPEATS = 400
"""How often a racer's line is repeated in its body, which makes the body longer than a packet."""

_MAX_RUNS = 20


def main() -> None:
    """Answer commands until standard input ends."""
    first = json.loads(sys.stdin.readline())
    worker = Worker(first["uri"], first["options"])
    _answer({"ready": True})
    for line in sys.stdin:
        try:
            _answer(worker.perform(json.loads(line)))
        except DeltaError as error:
            _answer({"error": str(error)})


class Worker:
    """The state of a worker process: the prefix, and the stores that it has opened below it."""

    def __init__(self, uri: str, options: Mapping[str, str], *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._uri = uri
        self._options = options
        self._clock = clock
        self._stores: dict[str, LogStore] = {}

    def perform(self, command: Mapping[str, Any]) -> dict[str, Any]:
        """Run one command and return its answer."""
        table = command["table"]
        if command["do"] == "create":
            return {"told": self._create(self._store(table), command)}
        if command["do"] == "read":
            return {"sha256": self._digest(self._store(table), command["path"])}
        if command["do"] == "write":
            self._store(table).put_if_absent(
                command["path"], command["body"].encode() * int(command["times"])
            )
            return {"written": True}
        return {"told": self._append(f"{self._uri}/{table}", command)}

    def _store(self, table: str) -> LogStore:
        if table not in self._stores:
            opened = open_store(f"{self._uri}/{table}", storage_options=self._options)
            self._stores[table] = without_cache(opened)
        return self._stores[table]

    def _digest(self, store: LogStore, path: str) -> str | None:
        try:
            return hashlib.sha256(store.read(path)).hexdigest()
        except ObjectNotFoundError:
            return None

    def _create(self, store: LogStore, command: Mapping[str, Any]) -> list[str]:
        def one(body: str) -> str:
            self._clock.sleep(max(0.0, command["at"] - self._clock.monotonic_seconds()))
            try:
                store.put_if_absent(command["path"], body.encode() * BODY_REPEATS)
            except ObjectExistsError:
                return EXISTS
            except AmbiguousWriteError:
                return AMBIGUOUS
            except DeltaError as error:
                return str(error)
            return WON

        with ThreadPoolExecutor(len(command["bodies"])) as pool:
            return list(pool.map(one, command["bodies"]))

    def _append(self, uri: str, command: Mapping[str, Any]) -> list[dict[str, Any]]:
        deadline = self._clock.monotonic_seconds() + command["seconds"]
        commits: list[dict[str, Any]] = []
        for number in range(command["count"]):
            began = self._clock.monotonic_seconds()
            if began > deadline:
                break
            version, how = self._append_one(uri, command["writer"], number)
            taken = self._clock.monotonic_seconds() - began
            commits.append({"number": number, "version": version, "how": how, "seconds": taken})
        return commits

    def _append_one(self, uri: str, writer: int, number: int) -> tuple[int, str]:
        """Append like a scheduler: repeat with the same key after an unknown or retryable failure."""
        rows = pa.table({"writer": pa.array([writer], pa.int64()), "number": pa.array([number], pa.int64())})
        runs = 0
        while True:
            runs += 1
            try:
                done = write_deltalake(
                    uri,
                    rows,
                    mode="append",
                    storage_options=self._options,
                    txn=SetTransaction(app_id=f"writer-{writer}", version=number),
                )
            except DeltaError as error:
                again = error.retryable or isinstance(error, CommitStateUnknownError)
                if not again or runs == _MAX_RUNS:
                    raise
                self._clock.sleep(0.2)
                continue
            assert done is not None
            how = (
                "already applied" if done.already_applied else "recovered" if done.recovered else "committed"
            )
            return done.version, how


def _answer(document: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
