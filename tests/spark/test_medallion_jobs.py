"""The jobs of medallion_logs with its own contracts, suites and sources: nothing lost, nothing twice."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from delta_core import DeltaTable
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobResult, JobStatus
from delta_core.jobs.job_spec import IdempotencyKey, JobSpec, TableRef
from delta_core.jobs.run_job import run_job
from delta_core.scan.appended import changed_partitions
from spark_jobs.spark_executor import SparkExecutor
from tests.support.dag_modules import dag_config, dag_module

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

log = dag_module("access_log_source")
EVENTS, SEED = 1_500, 7
HOURS = [datetime(2026, 1, 1, 23, tzinfo=UTC), datetime(2026, 1, 2, 0, tzinfo=UTC)]


class Medallion:
    """The three tables below one folder."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._executor = SparkExecutor(spark)
        self.folder = folder

    def table(self, layer: str) -> DeltaTable:
        return DeltaTable(str(self.folder / layer))

    def rows(self, layer: str) -> list[dict[str, Any]]:
        return self.table(layer).to_pyarrow_table().to_pylist()

    def bronze(self, hour: datetime) -> JobResult:
        directory = self.folder / "landing" / f"{hour:%H}"
        log.land(hour, events=EVENTS, seed=SEED, directory=directory)
        source = {"format": "json", "uris": [directory.as_uri()], "corrupt_column": "_corrupt"}
        return self._load("bronze", source, work=f"{hour}", version=0)

    def silver(self, version: int) -> JobResult:
        source = {
            "format": "delta",
            "uris": [str(self.folder / "bronze")],
            "version": version,
            "changes_since": "recorded",
            **dag_config("silver_logs_source"),
        }
        more = {
            "deduplicate": {"keys": ["eventId"], "against_table": True},
            "quality": dag_config("silver_logs_suite"),
            "partition_by": ["day"],
        }
        return self._load("silver", source, work="silver", version=version, **more)

    def gold(self, version: int, known: int) -> JobResult:
        snapshot = DeltaTable(str(self.folder / "silver"), version).snapshot
        changed = changed_partitions(snapshot, since_version=known)
        where = f"day IN ({', '.join(repr(values['day']) for values in changed)})"
        source = {
            "format": "delta",
            "uris": [str(self.folder / "silver")],
            "version": version,
            "where": where,
            **dag_config("gold_logs_source"),
        }
        more = {"mode": "overwrite", "replace_where": where, "partition_by": ["day"]}
        return self._load("gold", source, work="gold", version=version, **more)

    def z_order(self) -> JobResult:
        columns = ["sourceIP", "sourcePort", "destIP", "destPort"]
        return self._run("optimize", "silver", {"z_order_by": columns, "target_size_bytes": 1 << 10})

    def _load(
        self, layer: str, source: dict[str, Any], *, work: str, version: int, **params: Any
    ) -> JobResult:
        params |= {"source": source, "contract": dag_config(f"{layer}_logs_contract")}
        return self._run("load", layer, params, IdempotencyKey(app_id=work, version=version))

    def _run(
        self, kind: str, layer: str, params: dict[str, Any], key: IdempotencyKey | None = None
    ) -> JobResult:
        table = TableRef(uri=str(self.folder / layer))
        spec = JobSpec(kind=kind, table=table, params=params, idempotency=key)
        result = run_job(spec, JobContext(executor=self._executor))
        assert result.status is JobStatus.SUCCEEDED, result.error
        return result


def delivered(hour: datetime) -> tuple[list[dict[str, Any]], int]:
    """The events of the hour's files and the number of lines that are none."""
    return log.events_of(hour, events=EVENTS, seed=SEED), round(EVENTS * log.BROKEN_SHARE)


def is_possible(event: dict[str, Any]) -> bool:
    return event["destPort"] < 65536 and event["action"] is not None and str(event["bytes"]).isdigit()


@pytest.fixture(scope="module")
def refined(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Medallion:
    """Two hours, the second of another day; each step again, as a retry would."""
    medallion = Medallion(spark, tmp_path_factory.mktemp("medallion"))
    known = -1
    for hour in HOURS:
        medallion.bronze(hour)
        bronze = medallion.bronze(hour)
        assert bronze.already_applied
        assert bronze.version_to is not None
        silver = medallion.silver(bronze.version_to)
        assert medallion.silver(bronze.version_to).already_applied
        assert silver.version_to is not None
        medallion.gold(silver.version_to, known)
        known = silver.version_to
    return medallion


def test_bronze_has_every_line_and_the_field_that_nobody_announced(refined: Medallion) -> None:
    rows = refined.rows("bronze")
    broken = [row for row in rows if row["_corrupt"] is not None]
    lines = [
        line
        for path in (refined.folder / "landing").rglob("*.json")
        for line in path.read_text().splitlines()
    ]
    assert len(rows) == len(lines)
    assert 0 < len(broken) <= 2 * delivered(HOURS[0])[1]
    assert all(row["_corrupt"] in lines for row in broken)
    assert {row["tlsVersion"] for row in rows if row["_corrupt"] is None} == {"1.2", "1.3"}
    first = DeltaTable(str(refined.folder / "bronze"), 0)
    assert "tlsVersion" in first.schema().names


def test_a_field_comes_up_when_the_log_first_has_it(spark: SparkSession, tmp_path: Path) -> None:
    medallion = Medallion(spark, tmp_path)
    for hour in (log.EVOLVES_AT - timedelta(hours=1), log.EVOLVES_AT):
        medallion.bronze(hour)
    before, after = (DeltaTable(str(tmp_path / "bronze"), version).schema().names for version in (0, 1))
    assert set(after) - set(before) == {"tlsVersion"}


def test_silver_has_each_possible_event_once_and_quarantine_the_others(refined: Medallion) -> None:
    events = [event for hour in HOURS for event in delivered(hour)[0]]
    # The first delivery repeats some events of the hour before it, which was not loaded itself.
    before = {e["eventId"]: e for e in log.events_of(HOURS[0] - timedelta(hours=1), events=EVENTS, seed=SEED)}
    seen = Counter(row["eventId"] for row in refined.rows("silver"))
    assert set(seen.values()) == {1}
    wanted = {event["eventId"] for event in events if is_possible(event)}
    assert wanted <= set(seen)
    assert set(seen) - wanted <= {key for key, event in before.items() if is_possible(event)}
    quarantined = DeltaTable(str(refined.folder / "silver" / "_deltaward" / "quarantine"))
    kept = quarantined.to_pyarrow_table().to_pylist()
    assert {event["eventId"] for event in events if not is_possible(event)} <= {
        row["eventId"] for row in kept
    }
    assert all(row["_quarantine_reason"] for row in kept)


def test_gold_is_the_sum_of_silver_also_for_the_day_that_was_late(refined: Medallion) -> None:
    sums: dict[tuple[Any, ...], list[int]] = {}
    for row in refined.rows("silver"):
        hour = row["time"].replace(minute=0, second=0, microsecond=0)
        entry = sums.setdefault((row["day"], hour, row["sourceIP"]), [0, 0, 0])
        entry[0] += 1
        entry[1] += row["bytes"]
        entry[2] += row["action"] == "deny"
    found = {
        (row["day"], row["hour"], row["sourceIP"]): [row["events"], row["bytes"], row["denied"]]
        for row in refined.rows("gold")
    }
    assert found == sums
    last = refined.table("gold").history(1)[0].commit_info
    assert "2026-01-01" in json.dumps(dict(last.operation_parameters or {}))


def test_in_z_order_a_search_for_one_end_opens_few_files(refined: Medallion) -> None:
    before = refined.rows("silver")
    refined.z_order()
    silver = refined.table("silver")
    assert sorted(map(repr, silver.to_pyarrow_table().to_pylist())) == sorted(map(repr, before))
    files = len(silver.file_uris())
    assert files >= 40
    for column in ("sourceIP", "destIP"):
        values = [value for value, _ in Counter(row[column] for row in before).most_common()]
        opened = [len(silver.file_uris(f"{column} = '{value}'")) for value in values[:: len(values) // 20]]
        assert sum(opened) / len(opened) < 0.75 * files, (column, opened, files)
