"""The checks of refused deliveries: they violate the contract, or have too many bad rows for the gate."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.compute as pc

from demo.checks.evidence import Check, Evidence, task_states
from demo.deliveries import BAD_BATCHES, BAD_TAIL_NUMBER, ROTTEN


def refused(evidence: Evidence) -> Iterator[Check]:
    """Bad batches."""
    bad = {run["batch"]: run for run in evidence.runs("bad")}
    for batch in (*BAD_BATCHES, ROTTEN):
        run = bad.get(batch)
        states = {
            name: task_states(run, name) if run else None
            for name in ("extract_flights", "load_flights", "verify_flights")
        }
        failed = states == {
            "extract_flights": ["success"],
            "load_flights": ["failed"],
            "verify_flights": ["upstream_failed"],
        }
        yield Check(
            name=f"bad batch {batch}: its load and its run failed",
            held=failed and run is not None and run["state"] == "failed",
            detail="" if failed else f"run {run and run['state']}, tasks {states}",
        )
        same = run is not None and run["log_before"] == run["log_after"] and bool(run["log_before"])
        yield Check(name=f"bad batch {batch}: the table's log did not change", held=same)
        reason = (run or {}).get("reason") or ""
        yield Check(name=f"bad batch {batch}: the run records the reason", held=bool(reason), detail=reason)
    table = evidence.tables["flights"]
    before, after = evidence.version("loaded", "flights"), evidence.version("after_bad", "flights")
    seen = [
        version
        for version in range(table.latest_version + 1)
        if BAD_TAIL_NUMBER in pc.unique(table.rows(version)["tailnum"]).to_pylist()
    ]
    yield Check(
        name="no row of a bad batch is visible at any version",
        held=not seen and before == after,
        detail=f"versions {seen}" if seen else f"versions 0 to {table.latest_version}",
    )
