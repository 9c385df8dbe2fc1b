"""Writers that race for the versions of one table on a store with latency.

    python -m benchmarks.contention [--writers 8] [--seconds 30] [--put-ms 50] [--get-ms 10]

What is measured: commits a second against one over the round trip of a PUT, the most that a log of one
create-only object a version allows (goodput); how evenly the writers get their turns (Jain's index, 1 is
even); and requests for each append, alone and against each other. Every append is a row under a key of its
own, and the log's bytes are held against what the writers were told. Writes
`benchmarks/results/bench-contention.json`.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.contestant import ROOT
from benchmarks.latency_store import LatencyStore
from delta_core.actions import SetTransaction
from delta_core.dml.commit_files import commit_new_files
from delta_core.dml.write import write_deltalake
from delta_core.schema.arrow import from_arrow
from delta_core.table_features.feature import WriterKind
from tests.concurrency.matrix.memory_store import MemoryStore
from tests.support.table_handle import StoreTable

RESULT = ROOT / "benchmarks" / "results" / "bench-contention.json"
GOODPUT, FAIRNESS, REQUESTS = 0.6, 0.8, 4.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--put-ms", type=float, default=50)
    parser.add_argument("--get-ms", type=float, default=10)
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args()
    alone = run(1, options.seconds, options)
    together = run(options.writers, options.seconds, options)
    report = {
        "command": "python -m benchmarks.contention " + " ".join(sys.argv[1:]),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": {"cores": os.cpu_count(), "platform": platform.machine()},
        "put_ms": options.put_ms,
        "get_ms": options.get_ms,
        "alone": alone,
        "together": together,
        "bars": {"goodput": GOODPUT, "fairness": FAIRNESS, "requests_of_a_lone_append": REQUESTS},
    }
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps({"alone": alone, "together": together}, indent=2))
    kept = (
        together["goodput"] >= GOODPUT
        and together["fairness"] >= FAIRNESS
        and alone["requests_per_append"] <= REQUESTS
    )
    return 0 if kept else 1


def run(writers: int, seconds: float, options: argparse.Namespace) -> dict[str, Any]:
    """Let so many writers append for a while, each through a handle of its own."""
    store = LatencyStore(put_seconds=options.put_ms / 1000, get_seconds=options.get_ms / 1000)
    _create(store)
    handles = [StoreTable(store) for _ in range(writers)]
    before = store.requests.total()
    end = time.monotonic() + seconds
    told: list[list[int]] = [[] for _ in handles]

    def work(number: int) -> None:
        while time.monotonic() < end:
            key = SetTransaction(app_id=f"writer-{number}", version=len(told[number]))
            rows = pa.table({"id": pa.array([len(told[number])], pa.int64())})
            done = write_deltalake(handles[number], rows, mode="append", txn=key)
            assert done is not None
            told[number].append(done.version)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(writers)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - began
    requests = store.requests.total() - before
    _require_log(store, told)
    counts = [len(versions) for versions in told]
    rate = sum(counts) / took
    return {
        "writers": writers,
        "seconds": round(took, 1),
        "appends": sum(counts),
        "appends_of_each": counts,
        "commits_per_second": round(rate, 2),
        "goodput": round(rate * options.put_ms / 1000, 3),
        "fairness": round(jain(counts), 3),
        "requests_per_append": round(requests / sum(counts), 2),
        "requests": dict(store.requests),
    }


def jain(counts: Sequence[int]) -> float:
    """Jain's index of fairness: 1 when all have the same, 1/n when one has all."""
    squares = sum(count * count for count in counts)
    return sum(counts) ** 2 / (len(counts) * squares) if squares else 0.0


def _create(store: LatencyStore) -> None:
    schema = from_arrow(pa.schema([("id", pa.int64())]))
    commit_new_files(
        None,
        store,
        writer_kind=WriterKind.ARROW_ROWS,
        mode="create",
        adds=[],
        schema=schema,
    )


def _require_log(store: LatencyStore, told: Sequence[Sequence[int]]) -> None:
    """Each append is in the one version that its writer was told of."""
    found: dict[tuple[str, int], int] = {}
    version = 1
    while f"_delta_log/{version:020d}.json" in store.paths():
        data = MemoryStore.read(store, f"_delta_log/{version:020d}.json")
        for line in data.splitlines():
            key = json.loads(line).get("txn")
            if key is not None:
                assert (key["appId"], key["version"]) not in found, key
                found[key["appId"], key["version"]] = version
        version += 1
    wanted = {
        (f"writer-{writer}", number): landed
        for writer, versions in enumerate(told)
        for number, landed in enumerate(versions)
    }
    if found != wanted:
        raise AssertionError("what the writers were told is not what is in the log")


if __name__ == "__main__":
    sys.exit(main())
