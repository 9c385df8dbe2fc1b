"""Appends rows to a table, each under a key of its own, and again until it knows that each is there.

python appending_worker.py REQUEST, a JSON object {"uri", "options", "writer", "appends"}. It says `ready`,
waits for a line, and prints a JSON list with, for each append, the version that its call reported, how it was
told (`committed`, `recovered`, `already applied`) and how often it had to be run again.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import pyarrow as pa

from delta_core import write_deltalake
from delta_core.actions import SetTransaction
from delta_core.errors import CommitStateUnknownError, DeltaError

MAX_RUNS = 40


def main(request: dict[str, Any]) -> None:
    print("ready", flush=True)
    sys.stdin.readline()
    told = []
    for number in range(request["appends"]):
        told.append(_append(request, number))
    print(json.dumps(told), flush=True)


def _append(request: dict[str, Any], number: int) -> dict[str, Any]:
    writer = request["writer"]
    rows = pa.table({"writer": pa.array([writer], pa.int64()), "number": pa.array([number], pa.int64())})
    unknown = 0
    for runs in range(1, MAX_RUNS + 1):
        try:
            done = write_deltalake(
                request["uri"],
                rows,
                mode="append",
                storage_options=request["options"],
                txn=SetTransaction(app_id=f"writer-{writer}", version=number),
            )
        except DeltaError as error:
            unknown += isinstance(error, CommitStateUnknownError)
            if not (error.retryable or isinstance(error, CommitStateUnknownError)) or runs == MAX_RUNS:
                raise
            # Whoever runs a job again waits a little.
            time.sleep(0.1)
            continue
        assert done is not None
        how = "already applied" if done.already_applied else "recovered" if done.recovered else "committed"
        return {"version": done.version, "how": how, "runs": runs, "unknown": unknown}
    raise AssertionError("unreachable: the last run returns or raises")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
