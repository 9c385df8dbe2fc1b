"""`python -m benchmarks.fleet_store`: a fleet in an S3 server whose every request takes 20 ms longer.

Generates tables, puts them below the server's folder, and measures the first observation, an unchanged one,
and one after maintenance: seconds, and requests a table as the proxy in front of the server counts them.
Needs the server of `make emulators`. Prints JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from delta_core.fleet.apply import Application, apply_plan
from delta_core.fleet.control import Control
from delta_core.fleet.ledger import Ledger
from delta_core.fleet.registry import registry
from delta_core.jobs.context import JobContext
from delta_core.policies.load import parse_policies
from demo.fleet_tables import KINDS, make_fleet
from tests.support.delay_proxy import DelayProxy, delay_proxy
from tests.support.emulators.object_server import CONTAINER, object_server

SHARES = {**KINDS, "long_tail": 0.02, "healthy": KINDS["healthy"] + KINDS["long_tail"] - 0.02}
"""The share of each kind. A commit without a checkpoint costs a request: few tables have thirty of them."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=2000)
    parser.add_argument("--files", type=int, default=30)
    parser.add_argument("--milliseconds", type=float, default=20)
    parser.add_argument("--maintained", type=int, default=20, help="number of tables that are maintained")
    parser.add_argument("--directory", type=Path, default=None)
    options = parser.parse_args()
    print(
        json.dumps(
            measure(
                tables=options.tables,
                files=options.files,
                milliseconds=options.milliseconds,
                maintained=options.maintained,
                directory=options.directory,
            ),
            indent=2,
        )
    )
    return 0


def measure(
    *, tables: int, files: int, milliseconds: float, maintained: int, directory: Path | None = None
) -> dict[str, Any]:
    """The seconds and the requests of the observations of a fleet behind the proxy."""
    root = Path(tempfile.mkdtemp(prefix="fleet-store-", dir=directory))
    try:
        with _store(root, milliseconds) as (proxy, options):
            made = make_fleet(
                root / "server" / "buckets" / CONTAINER / "lake",
                tables=tables,
                files=files,
                usual_checkpoints=True,
                kinds=SHARES,
            )
            kinds = {table.path: table.kind for table in made}
            policies = parse_policies(
                "defaults: {compaction: {min_small_files: 4}, checkpoint: {interval: 10}, "
                "vacuum: {dry_run: false, min_bytes: 1}}\n"
                f"fleet: {{control_root: {root}/control, prefixes: [{{uri: s3://{CONTAINER}/lake}}]}}"
            )
            began, before = time.monotonic(), proxy.requests()
            found = registry(policies, storage_options=options)
            result: dict[str, Any] = {
                "tables": len(found.tables),
                "milliseconds": milliseconds,
                "discovery": _cost(began, before, proxy, len(found.tables)),
            }

            def control() -> Control:
                return Control(
                    registry=found,
                    ledger=Ledger(control_root=f"{root}/control"),
                    storage_options=options,
                )

            began, before = time.monotonic(), proxy.requests()
            observed = control().observe(found.tables, run_id="first")
            result["first"] = _cost(began, before, proxy, len(observed))
            result["unreadable"] = sum(item.error is not None for item in observed)
            control().rebuild(run_id="first")
            began, before = time.monotonic(), proxy.requests()
            rows = control().refresh(run_id="second")
            result["unchanged"] = _cost(began, before, proxy, len(rows))
            plan = control().plan(rows, run_id="second")
            part = plan.batch(0, max(1, len({entry.uri for entry in plan.entries}) // max(1, maintained)))
            application = Application(ledger=control().ledger, context=JobContext(storage_options=options))
            began, before = time.monotonic(), proxy.requests()
            outcomes = Counter(row["outcome"] for row in apply_plan(part, application))
            result["maintained"] = {
                **_cost(began, before, proxy, max(1, len({entry.uri for entry in part.entries}))),
                "outcomes": dict(outcomes),
            }
            began, before = time.monotonic(), proxy.requests()
            rows = control().refresh(run_id="third")
            result["after_maintenance"] = _cost(began, before, proxy, len(rows))
            result["kinds"] = dict(Counter(kinds.values()))
            return result
    finally:
        shutil.rmtree(root, ignore_errors=True)


@contextlib.contextmanager
def _store(root: Path, milliseconds: float) -> Iterator[tuple[DelayProxy, dict[str, str]]]:
    with (
        object_server("versitygw", root / "server") as server,
        delay_proxy(server.endpoint, milliseconds=milliseconds) as proxy,
    ):
        access: Any = server
        yield (
            proxy,
            {
                "aws_endpoint": proxy.endpoint,
                "aws_access_key_id": access.access_key,
                "aws_secret_access_key": access.secret_key,
                "aws_region": access.region,
                "aws_allow_http": "true",
                "aws_virtual_hosted_style_request": "false",
            },
        )


def _cost(began: float, before: int, proxy: DelayProxy, tables: int) -> dict[str, Any]:
    return {
        "seconds": round(time.monotonic() - began, 2),
        "requests_per_table": round((proxy.requests() - before) / max(1, tables), 3),
    }


if __name__ == "__main__":
    raise SystemExit(main())
