"""Concurrent transactions on many small tables, recorded and searched for isolation anomalies.

    nice python benchmarks/soak/anomalies.py [--transactions 5000] [--seed 1]

Histories of 50 transactions, by turns Serializable and WriteSerializable; one in five runs on threads, the
others are interleaved by the seed. Writes `benchmarks/results/soak-anomalies.json`; exits 1 when there was an
anomaly.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

from delta_core.transaction import IsolationLevel  # noqa: E402 - a program
from tests.concurrency.anomalies.checker import Kind, find_anomalies, reorderings  # noqa: E402
from tests.concurrency.anomalies.workload import Workload  # noqa: E402
from tests.support.soak_report import report_head  # noqa: E402

RESULT = REPOSITORY / "benchmarks" / "results" / "soak-anomalies.json"
LENGTH = 50
LEVELS = (IsolationLevel.SERIALIZABLE, IsolationLevel.WRITE_SERIALIZABLE)


def record(number: int, seed: str) -> dict[str, Any]:
    """One history, and what is wrong with it."""
    level = LEVELS[number % len(LEVELS)]
    workload = Workload(seed=f"{seed}:{number}", level=level)
    threads = number % 5 == 4
    history = workload.race(LENGTH, threads=4) if threads else workload.interleave(LENGTH)
    overlapped = sum(
        attempt.version > attempt.read_version + 1 for attempt in history.attempts if attempt.version
    )
    return {
        "number": number,
        "level": level.value,
        "transactions": len(history.attempts),
        "committed": len(history.commits),
        "overlapped": overlapped,
        "conflicts": workload.conflicts,
        "reads": sum(len(attempt.reads) for attempt in history.attempts),
        "reorderings": reorderings(history),
        "anomalies": [
            {"kind": found.kind.value, "transaction": found.transaction, "detail": found.detail}
            for found in find_anomalies(history)
        ],
    }


def summary(results: list[dict[str, Any]], seed: str, seconds: float) -> dict[str, Any]:
    """What was recorded, how much of it overlapped, and what was found."""
    anomalies = [{"history": r["number"], "level": r["level"], **a} for r in results for a in r["anomalies"]]
    kinds = Counter(anomaly["kind"] for anomaly in anomalies)
    counts = ("transactions", "committed", "overlapped", "conflicts", "reads", "reorderings")
    levels = {
        level.value: {name: sum(r[name] for r in results if r["level"] == level) for name in counts}
        for level in LEVELS
    }
    return {
        **report_head("anomalies", seed=seed, seconds=seconds),
        "histories": len(results),
        "transactions": sum(r["transactions"] for r in results),
        "levels": levels,
        "anomalies": {kind.value: kinds[kind.value] for kind in Kind},
        "failed": len(anomalies),
        "failures": anomalies[:20],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transactions", type=int, default=5_000)
    parser.add_argument("--seed", default=os.environ.get("DELTAWARD_SEED", "1"))
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args()
    began = time.monotonic()
    numbers = range(-(-options.transactions // LENGTH))
    with ProcessPoolExecutor(options.workers) as pool:
        results = list(pool.map(record, numbers, [options.seed] * len(numbers)))
    document = summary(results, options.seed, time.monotonic() - began)
    options.output.write_text(json.dumps(document, indent=2) + "\n")
    print(f"{options.output.name}: {document['transactions']} transactions, {document['failed']} anomalies")
    return 1 if document["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
