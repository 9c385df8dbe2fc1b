"""Deliveries of monthly partitions, loaded by real jobs, and the table that they must lead to."""

from __future__ import annotations

import random
import threading
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable as PeerTable

from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobResult, JobStatus
from delta_core.jobs.job_spec import IdempotencyKey, JobSpec, TableRef
from delta_core.jobs.registry import JobRegistry
from delta_core.jobs.run_job import run_job
from delta_core.transaction.observer import NULL_OBSERVER, TransactionObserver
from spark_jobs.job_kinds import register
from spark_jobs.spark_executor import SparkExecutor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows = list[tuple[str, int, int]]

CONTRACT = {
    "columns": [
        {"name": "month", "type": "string", "nullable": False},
        {"name": "flight", "type": "int", "nullable": False},
        {"name": "delivery", "type": "int", "nullable": False},
    ],
    "constraints": [{"name": "a_month", "expression": "month LIKE '____-__'"}],
}
MAX_TRIES = 30
"""As often as an orchestrator runs a load again that lost against another writer."""


def months(count: int) -> list[str]:
    """Names of consecutive months."""
    return [f"{2012 + number // 12}-{number % 12 + 1:02}" for number in range(count)]


@dataclass(frozen=True)
class Delivery:
    """One delivery of a month; a later one has other rows, and more or fewer of them."""

    month: str
    number: int = 1

    @property
    def rows(self) -> Rows:
        """What the delivery holds, the same each time."""
        drawn = random.Random(f"{self.month} {self.number}")
        return [(self.month, drawn.randrange(10_000), self.number) for _ in range(drawn.randint(1, 6))]


class Backfill:
    """A table that deliveries are loaded into, and what it must hold."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.uri = folder / "table"
        self.context = JobContext(executor=SparkExecutor(spark))
        self.registry = JobRegistry(group=None)
        register(self.registry)
        self._folder = folder
        self._lock = threading.Lock()
        self.delivered: dict[str, int] = defaultdict(int)
        self.retries = 0

    def spec(self, delivery: Delivery) -> JobSpec:
        """The load of a delivery: replaces its month, fenced by the month's name and its number."""
        file = self._folder / f"{delivery.month}-{delivery.number}.csv"
        with self._lock:
            lines = [",".join(map(str, row)) for row in delivery.rows]
            file.write_text("\n".join(["month,flight,delivery", *lines, ""]))
        return JobSpec(
            kind="load",
            table=TableRef(uri=str(self.uri)),
            params={
                "source": {"format": "csv", "uris": [str(file)]},
                "mode": "overwrite",
                "replace_where": f"month = '{delivery.month}'",
                "partition_by": ["month"],
                "contract": CONTRACT,
            },
            idempotency=IdempotencyKey(app_id=f"load {delivery.month}", version=delivery.number),
        )

    def attempt(self, delivery: Delivery, *, observer: TransactionObserver = NULL_OBSERVER) -> JobResult:
        """One run of the load, whatever becomes of it."""
        context = JobContext(executor=self.context.executor, observer=observer)
        return run_job(self.spec(delivery), context, registry=self.registry)

    def load(self, delivery: Delivery, *, observer: TransactionObserver = NULL_OBSERVER) -> JobResult:
        """The load, run again as an orchestrator would when it lost against another writer."""
        for _ in range(MAX_TRIES):
            result = self.attempt(delivery, observer=observer)
            if result.status is JobStatus.SUCCEEDED:
                with self._lock:
                    latest = self.delivered[delivery.month]
                    self.delivered[delivery.month] = max(latest, delivery.number)
                return result
            assert result.error is not None
            assert result.error.retryable, result.error
            with self._lock:
                self.retries += 1
        raise AssertionError(f"{delivery} lost {MAX_TRIES} times")

    def load_all(self, deliveries: Sequence[Delivery], *, parallel: int = 1) -> list[JobResult]:
        """The loads, in order or several at once."""
        with ThreadPoolExecutor(parallel) as pool:
            return list(pool.map(self.load, deliveries))

    def expected(self) -> Rows:
        """The model: of each month the rows of its highest delivery."""
        return sorted(row for month, number in self.delivered.items() for row in Delivery(month, number).rows)

    def found(self, version: int | None = None) -> Rows:
        """The table's rows, as another library reads them."""
        table = PeerTable(str(self.uri), version=version).to_pyarrow_table()
        columns = [table.column(name).to_pylist() for name in ("month", "flight", "delivery")]
        return sorted(zip(*columns, strict=True))

    def check_every_version(self) -> None:
        """No version mixes two deliveries of a month, loses a month or goes back to an older delivery."""
        before: dict[str, int] = {}
        for version in range(PeerTable(str(self.uri)).version() + 1):
            seen: dict[str, set[int]] = defaultdict(set)
            for month, _, number in self.found(version):
                seen[month].add(number)
            assert all(len(numbers) == 1 for numbers in seen.values()), (version, seen)
            after = {month: max(numbers) for month, numbers in seen.items()}
            moved = {month: after.get(month, 0) - number for month, number in before.items()}
            assert all(step >= 0 for step in moved.values()), (version, moved)
            before = after

    def history(self) -> list[dict[str, Any]]:
        """The table's commits, newest first."""
        commits: list[dict[str, Any]] = PeerTable(str(self.uri)).history()
        return commits
