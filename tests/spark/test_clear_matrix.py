"""Six kinds of work, five ways in which a task runs once more: docs/clearing.md says what becomes of each.

The tables are read by another library. Each case runs the operator of a first try; then what the work is made
of changes, as when somebody mends a source; then the task runs once more in one of the five ways. What counts
is whether the table shows the change.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable as PeerTable
from deltalake import write_deltalake as peer_write

from delta_airflow.hooks.deltaward import DeltawardHook
from delta_airflow.hooks.settings import RunnerName
from delta_airflow.operators.base import DeltaTableOperator
from delta_airflow.operators.load import DeltaLoadOperator
from delta_airflow.operators.merge import DeltaMergeOperator
from delta_airflow.operators.optimize import DeltaOptimizeOperator
from delta_airflow.operators.restore import DeltaRestoreOperator
from delta_airflow.runners.base import EventCallback, require_success
from delta_airflow.runners.run_directory import RunDirectory
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobResult
from delta_core.jobs.job_spec import JobSpec
from delta_core.jobs.registry import JobRegistry
from delta_core.jobs.run_job import run_job
from spark_jobs.job_kinds import register
from spark_jobs.spark_executor import SparkExecutor
from tests.support.airflow import airflow_connection
from tests.support.cleared_tasks import RETRIES, Instance
from tests.support.soak import drawn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["airflow_connection"]

pytestmark = [pytest.mark.airflow, pytest.mark.slow]

FIRST: Final = Instance()
DONE, NOTHING = "done again", "nothing was done"


class SessionRunner:
    """Runs jobs with the tests' own Spark session, in this process."""

    def __init__(self, spark: SparkSession) -> None:
        from delta_core.jobs.builtin import default_registry

        self._context = JobContext(executor=SparkExecutor(spark))
        self._registry = JobRegistry(group=None)
        for name in ("optimize", "restore"):
            self._registry.register(default_registry().get(name))
        register(self._registry)

    def run(self, spec: JobSpec, *, on_event: EventCallback) -> JobResult:
        result = run_job(spec, self._context, registry=self._registry)
        require_success(result)
        return result

    def cancel(self) -> None:
        raise AssertionError("nothing is cancelled here")


@pytest.fixture(autouse=True)
def session_runner(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, airflow_connection: Path) -> None:
    # Airflow lets every logger through, and this one speaks when the streams are closed.
    logging.getLogger("py4j").setLevel(logging.WARNING)
    runner = SessionRunner(spark)

    def get_runner(
        hook: DeltawardHook, name: RunnerName | None = None, *, directory: RunDirectory, **_: Any
    ) -> SessionRunner:
        return runner

    monkeypatch.setattr(DeltawardHook, "get_runner", get_runner)


class Table:
    """A table, the file that loads read, and what is in the table by another library's account."""

    def __init__(self, folder: Path) -> None:
        self.uri = folder / "table"
        self.source = folder / "source.parquet"
        peer_write(self.uri, pa.table({"part": ["a", "b"], "n": [1, 2]}), mode="append")
        self.deliver(10)

    def deliver(self, n: int) -> None:
        """The source has one row of part `a`."""
        pq.write_table(pa.table({"part": ["a"], "n": [n]}), self.source)

    def append(self, n: int) -> None:
        """Somebody else adds a row."""
        peer_write(self.uri, pa.table({"part": ["c"], "n": [n]}), mode="append")

    @property
    def rows(self) -> list[tuple[str, int]]:
        found = PeerTable(self.uri).to_pyarrow_table().to_pylist()
        return sorted((row["part"], row["n"]) for row in found)

    @property
    def files(self) -> int:
        return len(PeerTable(self.uri).file_uris())


@dataclass(frozen=True, kw_only=True)
class Work:
    """One kind of work.

    Attributes:
        operator: makes the task.
        change: what changes between the first run and the next.
        was_done: whether the table shows that the work was done after the change.
        rows: what else must be so of the rows when it was done again.
    """

    operator: Callable[[Table], DeltaTableOperator]
    change: Callable[[Table], None]
    was_done: Callable[[Table], bool]
    rows: Callable[[Table], bool] = lambda table: True


def load(table: Table, **arguments: Any) -> DeltaTableOperator:
    return DeltaLoadOperator(
        task_id="t",
        table_uri=str(table.uri),
        source={"format": "parquet", "uris": [str(table.source)]},
        retries=RETRIES,
        **arguments,
    )


def merge(table: Table) -> DeltaTableOperator:
    return DeltaMergeOperator(
        task_id="t",
        table_uri=str(table.uri),
        source={"format": "parquet", "uris": [str(table.source)]},
        on="t.part = s.part",
        matched=[{"action": "update_all"}],
        not_matched=[{"action": "insert_all"}],
        retries=RETRIES,
    )


def optimize(table: Table) -> DeltaTableOperator:
    return DeltaOptimizeOperator(task_id="t", table_uri=str(table.uri), retries=RETRIES)


def restore(table: Table) -> DeltaTableOperator:
    return DeltaRestoreOperator(
        task_id="t", table_uri=str(table.uri), version=0, dry_run=False, retries=RETRIES
    )


WORK: Final[Mapping[str, Work]] = {
    "append": Work(
        operator=load,
        change=lambda table: table.deliver(20),
        was_done=lambda table: ("a", 20) in table.rows,
        rows=lambda table: table.rows == [("a", 1), ("a", 10), ("a", 20), ("b", 2)],
    ),
    "overwrite": Work(
        operator=lambda table: load(table, mode="overwrite"),
        change=lambda table: table.deliver(20),
        was_done=lambda table: table.rows == [("a", 20)],
    ),
    "replace_where": Work(
        operator=lambda table: load(table, mode="replace_where", replace_where="part = 'a'"),
        change=lambda table: table.deliver(20),
        was_done=lambda table: table.rows == [("a", 20), ("b", 2)],
    ),
    "merge": Work(
        operator=merge,
        change=lambda table: table.deliver(20),
        was_done=lambda table: table.rows == [("a", 20), ("b", 2)],
    ),
    "optimize": Work(
        operator=optimize,
        change=lambda table: table.append(30),
        was_done=lambda table: table.files == 1,
        rows=lambda table: ("c", 30) in table.rows,
    ),
    "restore": Work(
        operator=restore,
        change=lambda table: table.append(30),
        was_done=lambda table: table.rows == [("a", 1), ("b", 2)],
    ),
}
REPLACES = frozenset(WORK) - {"append"}
WAYS = ["retry", "clear task", "clear run", "backfill", "zombie"]


def expected(work: str, way: str) -> str:
    """What the page says."""
    if way == "backfill":
        return DONE  # A run of its own is work of its own.
    return DONE if way in ("clear task", "clear run") and work in REPLACES else NOTHING


def run(operator: DeltaTableOperator, instance: Instance) -> Any:
    return operator.execute(instance.context)


def once_more(operator: DeltaTableOperator, way: str) -> dict[str, Any]:
    """The run that counts, after `FIRST` has applied the work."""
    match way:
        case "retry":
            return run(operator, FIRST.retry())
        case "clear task":
            return run(operator, FIRST.clear())
        case "clear run":
            # All of the run's tasks were cleared; this one's worker is lost after it has committed.
            done = run(operator, FIRST.clear())
            again = run(operator, FIRST.clear().retry())
            assert again["already_applied"] is True
            return done
        case "backfill":
            return run(operator, replace(FIRST, run_id="backfill__2026-01-01"))
        case "zombie":
            # The driver of the first try lives on, and goes over its work once more.
            return run(operator, FIRST)
    raise AssertionError(way)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path)


@pytest.mark.parametrize(("name", "way"), drawn(product(WORK, WAYS), usual=5))
def test_a_task_that_runs_once_more_does_what_the_page_says(table: Table, name: str, way: str) -> None:
    work = WORK[name]
    if name in ("optimize", "restore"):
        table.append(5)
    operator = work.operator(table)
    first = run(operator, FIRST)
    assert len(first["commits"]) == 1
    before = PeerTable(table.uri).version()
    work.change(table)
    changed = PeerTable(table.uri).version()
    result = once_more(operator, way)
    if expected(name, way) == DONE:
        assert (result["already_applied"], result["note"]) == (False, None)
        assert len(result["commits"]) == 1
        assert work.was_done(table), table.rows
        assert work.rows(table), table.rows
        assert PeerTable(table.uri).version() == changed + 1
    else:
        assert result["already_applied"] is True
        assert result["note"] == f"applied by run {FIRST.run_id} at version {before}; {NOTHING}"
        assert not work.was_done(table)
        assert PeerTable(table.uri).version() == changed


@pytest.mark.parametrize("name", sorted(REPLACES - {"optimize"}))
def test_a_driver_of_an_earlier_clearing_comes_too_late(table: Table, name: str) -> None:
    """It hung before its commit; somebody cleared the task; then it goes on."""
    work = WORK[name]
    if name == "restore":
        table.append(5)
    operator = work.operator(table)
    run(operator, FIRST.clear())
    version = PeerTable(table.uri).version()
    work.change(table)
    changed = PeerTable(table.uri).version()
    assert run(operator, FIRST)["note"].endswith(f"at version {version}; {NOTHING}")
    assert PeerTable(table.uri).version() == changed


# ------------------------------------------------------------ named work


def named(table: Table, delivery: int, **arguments: Any) -> DeltaTableOperator:
    shared = {"mode": "replace_where", "replace_where": "part = 'a'"}
    return load(table, work_name="part a", work_version=delivery, **{**shared, **arguments})


def test_a_delivery_whose_task_is_cleared_is_loaded_again_in_its_place(table: Table) -> None:
    assert run(named(table, 1), FIRST)["already_applied"] is False
    table.deliver(11)
    other_run = replace(FIRST, run_id="manual__1")
    assert run(named(table, 1), other_run)["note"].startswith(f"applied by run {FIRST.run_id} ")
    assert run(named(table, 1), FIRST.clear())["already_applied"] is False
    assert run(named(table, 1), FIRST.clear().retry())["already_applied"] is True
    assert table.rows == [("a", 11), ("b", 2)]
    assert run(named(table, 2), other_run)["already_applied"] is False, "the next one still follows"


def test_an_outdated_delivery_stays_fenced_when_its_task_is_cleared(table: Table) -> None:
    run(named(table, 1), FIRST)
    table.deliver(20)
    second = replace(FIRST, run_id="manual__2")
    at = run(named(table, 2), second)["version_to"]
    table.deliver(11)
    cleared = run(named(table, 1), FIRST.clear())
    assert cleared["note"] == f"applied by run manual__2 at version {at}; {NOTHING}"
    assert table.rows == [("a", 20), ("b", 2)]


def test_an_append_is_added_again_when_its_task_says_so(table: Table) -> None:
    once = {"mode": "append", "replace_where": None, "on_clear": "reapply"}
    run(named(table, 1, **once), FIRST)
    assert run(named(table, 1, **once), FIRST.retry())["already_applied"] is True
    assert run(named(table, 1, **once), FIRST.clear())["already_applied"] is False
    assert run(named(table, 1, **once), FIRST.clear().retry())["already_applied"] is True
    assert table.rows == [("a", 1), ("a", 10), ("a", 10), ("b", 2)]
