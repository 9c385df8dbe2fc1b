"""MERGE: what the random merges do not reach."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import spark_jobs
from delta_core.errors import (
    CommitStateUnknownError,
    ConcurrentAppendError,
    ConcurrentDeleteReadError,
    ConfigurationError,
    ConstraintViolationError,
    DeltaError,
    InvalidTableError,
    JobFailedError,
    MergeDuplicateMatchError,
    SchemaMismatchError,
)
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobResult, JobStatus
from delta_core.jobs.job_spec import IdempotencyKey, JobSpec, TableRef
from delta_core.jobs.registry import JobRegistry
from delta_core.jobs.run_job import run_job
from delta_core.merge.clauses import MergeAction
from delta_core.run import Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.open import open_store
from delta_core.transaction.observer import CommitPhase
from spark_jobs.dml import target as target_module
from spark_jobs.dml.clauses import MergeClause, MergeClauses
from spark_jobs.dml.merge import MergeRequest, merge_into
from spark_jobs.file_uris import metadata_value
from spark_jobs.job_kinds import register
from spark_jobs.scoped_conf import scoped_conf
from spark_jobs.spark_executor import SparkExecutor
from spark_jobs.writer import staging as staging_module
from tests.support.faulty_store import FaultyLocalStore, PutFault
from tests.support.soak import drawn
from tests.support.spark import files_below, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

UPSERT = MergeClauses(
    matched=(MergeClause(action=MergeAction.UPDATE_ALL),),
    not_matched=(MergeClause(action=MergeAction.INSERT_ALL),),
)


@pytest.fixture(name="table")
def table_fixture(tmp_path: Path) -> Path:
    """Keys 0 to 9 in two files: 0 to 4 and 5 to 9."""
    for start in (0, 5):
        rows = {"id": pa.array(range(start, start + 5), pa.int64()), "name": ["old"] * 5}
        write_deltalake(str(tmp_path / "t"), pa.table(rows), mode="append")
    return tmp_path / "t"


def updates(spark: SparkSession, *rows: tuple[int | None, str]) -> DataFrame:
    return spark.createDataFrame(list(rows), "id bigint, name string").alias("s")


def upsert(table: Path, frame: DataFrame, **request: Any) -> JobResult:
    wanted = MergeRequest(**{"on": "t.id = s.id", "clauses": UPSERT, **request})
    return merge_into(frame, Snapshot.load(open_store(str(table))), wanted)


def refused(error: type[DeltaError], match: str, table: Path, merge: Callable[[], object]) -> DeltaError:
    before, version = files_below(table), DeltaTable(str(table)).version()
    with pytest.raises(error, match=match) as caught:
        merge()
    assert files_below(table) == before
    assert DeltaTable(str(table)).version() == version
    return caught.value


def test_only_files_with_a_match_are_read_and_rewritten(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plans = []
    write_files = staging_module.write_files

    def seen(frame: DataFrame, **arguments: Any) -> Any:
        plans.append(frame)
        return write_files(frame, **arguments)

    monkeypatch.setattr(staging_module, "write_files", seen)
    result = upsert(table, updates(spark, (7, "new"), (20, "added"), (None, "null")))
    metrics = result.output["metrics"]
    assert (metrics["numTargetFilesRemoved"], metrics["numTargetRowsCopied"]) == (1, 4)
    assert (metrics["numTargetRowsUpdated"], metrics["numTargetRowsInserted"]) == (1, 2)
    assert result.commits == (2,)
    names = {row["id"]: row["name"] for row in rows_of(table)}
    assert names == {**dict.fromkeys(range(10), "old"), 7: "new", 20: "added", None: "null"}
    (frame,) = plans
    capsys.readouterr()
    frame.explain("extended")
    explained = capsys.readouterr().out
    assert "BroadcastHashJoin" in explained
    assert "Python" not in explained
    assert "MapInArrow" not in explained


def test_a_merge_that_only_inserts_leaves_every_file(spark: SparkSession, table: Path) -> None:
    before = files_below(table)
    clauses = MergeClauses(not_matched=(MergeClause(action=MergeAction.INSERT_ALL),))
    result = upsert(table, updates(spark, (7, "x"), (20, "a"), (20, "b")), clauses=clauses)
    assert result.output["metrics"]["numTargetRowsInserted"] == 2
    assert result.output["metrics"]["numTargetFilesRemoved"] == 0
    assert before <= files_below(table)


def test_a_duplicate_match_names_the_keys(spark: SparkSession, table: Path) -> None:
    twice = updates(spark, (3, "a"), (3, "b"), (20, "c"))
    error = refused(MergeDuplicateMatchError, "id=3 .2 source rows", table, lambda: upsert(table, twice))
    assert error.code == "MERGE_DUPLICATE_MATCH"
    deleting = MergeClauses(matched=(MergeClause(action=MergeAction.DELETE),))
    metrics = upsert(table, twice, clauses=deleting).output["metrics"]
    assert metrics["numTargetRowsDeleted"] == 1


@pytest.mark.slow
def test_what_fails_leaves_no_file(spark: SparkSession, table: Path) -> None:
    write_table = DeltaTable(str(table))
    write_table.alter.add_constraint({"named": "name <> 'bad'"})
    bad = updates(spark, (3, "bad"))
    refused(ConstraintViolationError, "named", table, lambda: upsert(table, bad))

    def setting(value: str) -> MergeClauses:
        return MergeClauses(matched=(MergeClause(action=MergeAction.UPDATE, values={"id": value}),))

    one = updates(spark, (3, "x"))
    failing = setting("raise_error('broken')")
    refused(JobFailedError, "writing", table, lambda: upsert(table, one, clauses=failing))
    text = setting("s.name")
    refused(ConstraintViolationError, "type of id", table, lambda: upsert(table, one, clauses=text))
    refused(SchemaMismatchError, "lacks", table, lambda: upsert(table, one.select("id").alias("s")))
    nothing = MergeClauses(matched=(MergeClause(action=MergeAction.UPDATE, values={"none": "1"}),))
    refused(SchemaMismatchError, "'none'", table, lambda: upsert(table, one, clauses=nothing))
    refused(ConfigurationError, "condition", table, lambda: upsert(table, one, on="t.id = s.id + rand()"))


def test_an_append_only_table_takes_inserts_alone(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    rows = pa.table({"id": pa.array([1], pa.int64()), "name": ["a"]})
    write_deltalake(str(table), rows, configuration={"delta.appendOnly": "true"})
    new = updates(spark, (1, "x"), (2, "b"))
    refused(InvalidTableError, "append-only", table, lambda: upsert(table, new))
    upsert(table, new, clauses=MergeClauses(not_matched=UPSERT.not_matched))
    assert [row["id"] for row in rows_of(table)] == [1, 2]


@pytest.mark.slow
def test_another_writer_in_between(spark: SparkSession, table: Path) -> None:
    def against(change: Callable[[], object]) -> Callable[[], JobResult]:
        class Racing:
            def on_phase(self, phase: CommitPhase, version: int) -> None:
                if phase is CommitPhase.PREPARED:
                    change()

        snapshot = Snapshot.load(open_store(str(table)))
        request = MergeRequest(on="t.id = s.id", clauses=UPSERT)
        return lambda: merge_into(updates(spark, (7, "new")), snapshot, request, run=Run(observer=Racing()))

    def append() -> None:
        rows = pa.table({"id": pa.array([50], pa.int64()), "name": ["late"]})
        write_deltalake(str(table), rows, mode="append")

    # A blind append may be ordered after the merge.
    assert against(append)().commits == (3,)
    # A merge of the same key is no blind append: its row might have matched.
    with pytest.raises(ConcurrentAppendError):
        against(lambda: upsert(table, updates(spark, (7, "other"))))()
    assert {row["id"]: row["name"] for row in rows_of(table)}[7] == "other"
    # One that touches keys outside of the source's gets along.
    assert against(lambda: upsert(table, updates(spark, (90, "far"))))().status is JobStatus.SUCCEEDED
    before = files_below(table)
    with pytest.raises(ConcurrentDeleteReadError):
        against(lambda: DeltaTable(str(table)).delete("id < 40"))()
    assert files_below(table) == before
    assert [row["id"] for row in rows_of(table)] == [50, 90]


@pytest.mark.slow
@pytest.mark.parametrize("fault", drawn([PutFault.DROP_RESPONSE, PutFault.DROP_REQUEST], usual=1))
def test_what_an_unclear_commit_may_name_stays(spark: SparkSession, table: Path, fault: PutFault) -> None:
    before = files_below(table)
    store = FaultyLocalStore(table)
    snapshot = Snapshot.load(store)
    store.faults.puts = [fault]
    store.faults.before_put = lambda path: setattr(store.faults, "failing_reads", 1_000)
    request = MergeRequest(on="t.id = s.id", clauses=UPSERT)

    with pytest.raises(CommitStateUnknownError):
        merge_into(updates(spark, (2, "new"), (40, "x")), snapshot, request)

    landed = fault is PutFault.DROP_RESPONSE
    assert DeltaTable(str(table)).version() == (2 if landed else 1)
    assert {path for path in files_below(table) - before if path.endswith(".parquet")}
    assert {row["name"] for row in rows_of(table)} == ({"old", "new", "x"} if landed else {"old"})


@pytest.mark.slow
def test_a_commit_whose_answer_is_lost_is_found(spark: SparkSession, table: Path) -> None:
    store = FaultyLocalStore(table)
    snapshot = Snapshot.load(store)
    store.faults.puts = [PutFault.DROP_RESPONSE]
    merged = merge_into(updates(spark, (2, "new")), snapshot, MergeRequest(on="t.id = s.id", clauses=UPSERT))
    assert merged.commits == (2,)
    assert [row["name"] for row in rows_of(table)].count("new") == 1


@pytest.mark.slow
def test_new_columns_come_when_they_may(spark: SparkSession, table: Path) -> None:
    wide = spark.sql("select 7L as ID, 'seven' as extra union all select 30L, 'thirty'").alias("s")
    refused(SchemaMismatchError, "lacks", table, lambda: upsert(table, wide))
    upsert(table, wide, merge_schema=True)
    rows = {row["id"]: row for row in rows_of(table)}
    assert rows[7] == {"id": 7, "name": "old", "extra": "seven"}
    assert rows[30] == {"id": 30, "name": None, "extra": "thirty"}
    assert rows[1]["extra"] is None


@pytest.mark.slow
def test_a_source_that_answers_differently_each_time_is_read_once(spark: SparkSession, table: Path) -> None:
    frame = spark.range(10).selectExpr("cast(floor(rand() * 1000) as bigint) as id", "uuid() as name")
    metrics = upsert(table, frame.dropDuplicates(["id"]).alias("s")).output["metrics"]
    assert len(rows_of(table)) == 10 + metrics["numTargetRowsInserted"]
    assert metrics["numSourceRows"] == metrics["numTargetRowsInserted"] + metrics["numTargetRowsUpdated"]


@pytest.mark.slow
def test_files_that_spark_passes_over_take_part(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_deltalake(str(table), pa.table({"id": pa.array([1, 2], pa.int64()), "name": ["a", "b"]}))
    (file,) = table.glob("*.parquet")
    file.rename(file.with_name("_hidden.parquet"))
    log = table / "_delta_log" / f"{0:020d}.json"
    log.write_text(log.read_text().replace(file.name, "_hidden.parquet"))
    upsert(table, updates(spark, (2, "new"), (3, "c")))
    assert [row["name"] for row in rows_of(table)] == ["a", "new", "c"]


def merge_job(spark: SparkSession, table: Path, key: int, **params: Any) -> JobResult:
    spec = JobSpec(
        kind="merge",
        table=TableRef(uri=str(table)),
        idempotency=IdempotencyKey(app_id="corrections", version=key),
        params={"on": "t.id = s.id", "matched": [{"action": "update_all"}],
                "not_matched": [{"action": "insert_all"}], **params},
    )  # fmt: skip
    registry = JobRegistry(group=None)
    register(registry)
    return run_job(spec, JobContext(executor=SparkExecutor(spark)), registry=registry)


def test_the_job_deduplicates_checks_and_applies_once(spark: SparkSession, table: Path) -> None:
    late = table.parent / "late.parquet"
    rows = {"id": pa.array([7, 7, 40], pa.int64()), "name": ["older", "newest", "x"], "seq": [1, 2, 1]}
    pq.write_table(pa.table(rows), late)
    source = {"format": "parquet", "uris": [str(late)]}
    params: dict[str, Any] = {
        "source": source, "deduplicate": {"keys": ["id"], "order_by": ["seq DESC"]}
    }  # fmt: skip
    contract = {"constraints": [{"name": "short", "expression": "id < 40"}]}
    failed = merge_job(spark, table, 1, **params, contract=contract)
    assert failed.error is not None
    assert failed.error.code == "CONSTRAINT_VIOLATION"
    assert "short" in failed.error.message
    done = merge_job(spark, table, 1, **params)
    assert done.error is None
    assert done.output["metrics"]["numTargetRowsInserted"] == 1
    assert {row["id"]: row["name"] for row in rows_of(table)}[7] == "newest"
    again = merge_job(spark, table, 1, **params)
    assert again.already_applied
    wrong = merge_job(spark, table, 2, source=source, matched=[{"action": "insert"}])
    assert wrong.error is not None
    assert wrong.error.code == "INVALID_JOB_SPEC"


def test_the_table_class_has_delta_sparks_names(spark: SparkSession, table: Path) -> None:
    handle = spark_jobs.DeltaTable.forPath(spark, str(table)).alias("people")
    changed = (
        handle.merge(updates(spark, (1, "one"), (60, "sixty")).alias("news"), "people.id = news.id")
        .whenMatchedUpdate("news.name <> people.name", {"name": "concat(people.name, news.name)"})
        .whenMatchedDelete()
        .whenNotMatchedInsert(values={"id": "news.id", "name": "'new'"})
        .whenNotMatchedBySourceDelete("id > 8")
        .withCommitProperties(txn=("names", 1), user_metadata="why")
        .execute()
    )
    (counts,) = [row.asDict() for row in changed.collect()]
    assert counts["num_affected_rows"] == sum(counts.values()) / 2
    result = spark_jobs.last_result(str(table))
    assert result is not None
    assert result.output["metrics"]["numTargetRowsNotMatchedBySourceDeleted"] == 1
    last = handle.history(1).collect()[0]
    assert (last["operation"], last["userMetadata"]) == ("MERGE", "why")
    assert last["operationParameters"]["predicate"] == '["people.id = news.id"]'
    assert last["operationParameters"]["matchedPredicates"] == (
        '[{"predicate":"news.name <> people.name","actionType":"update"},{"actionType":"delete"}]'
    )
    names = {row["id"]: row["name"] for row in handle.toDF().collect()}
    assert (names[1], names[60], 9 in names) == ("oldone", "new", False)
    handle.optimize().executeCompaction().collect()
    handle.optimize().executeZOrderBy("id").collect()
    assert handle.vacuum().collect() == []
    handle.restoreToVersion(1).collect()
    assert len(rows_of(table)) == 10
    assert spark_jobs.DeltaTable.isDeltaTable(spark, str(table))


@pytest.mark.slow
def test_files_of_one_name_in_partitions_that_java_escapes(spark: SparkSession, tmp_path: Path) -> None:
    """One task writes one file name into many partitions, so whole paths tell the files apart."""
    table = tmp_path / "t"
    cities = ["東京", "東京\u3000都", "a\u00a0b", "c d%"]
    rows = [(number, city) for number, city in enumerate(cities)]
    frame = spark.createDataFrame(rows, "id bigint, city string").coalesce(1)
    spark_jobs.write(frame, str(table), mode="append", partition_by=["city"])
    changed = spark.createDataFrame([(n + 10, c) for n, c in rows], "id bigint, city string").alias("s")
    upsert(table, changed, on="t.city = s.city")
    assert sorted((row["id"], row["city"]) for row in rows_of(table)) == sorted(
        (number + 10, city) for number, city in rows
    )
    read = spark_jobs.read(spark, str(table)).collect()
    assert sorted((row["id"], row["city"]) for row in read) == sorted((n + 10, c) for n, c in rows)


def test_a_file_that_spark_calls_otherwise_stops_the_merge(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target_module, "metadata_value", lambda *where: f"{metadata_value(*where)}?")
    error = refused(
        JobFailedError, "not a file of the table", table, lambda: upsert(table, updates(spark, (3, "new")))
    )
    assert "Nothing was written" in error.fix


@pytest.mark.slow
def test_a_merge_in_another_time_zone_finds_what_spark_finds(spark: SparkSession, tmp_path: Path) -> None:
    """At 3 in the morning in UTC the day before has not ended in New York."""
    table = tmp_path / "t"
    at = [dt.datetime(2024, 1, 2, 3, tzinfo=dt.UTC), dt.datetime(2024, 1, 5, tzinfo=dt.UTC)]
    for number, moment in enumerate(at):
        data = {"id": pa.array([number], pa.int64()), "at": pa.array([moment], pa.timestamp("us", "UTC"))}
        write_deltalake(str(table), pa.table(data), mode="append")
    with scoped_conf(spark, {"spark.sql.session.timeZone": "America/New_York"}):
        source = spark.sql("SELECT 0L AS id, TIMESTAMP '2024-01-09 00:00:00' AS at").alias("s")
        upsert(table, source, on="t.id = s.id AND t.at < '2024-01-02'")
    assert sorted((row["id"], row["at"].day) for row in rows_of(table)) == [(0, 9), (1, 5)]


@pytest.mark.slow
def test_a_struct_without_all_of_its_fields_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """The missing field once became null in every row that was updated."""
    table = tmp_path / "t"
    frame = spark.sql("SELECT 1L AS id, named_struct('street', 'a', 'zip', '1') AS addr")
    spark_jobs.write(frame, str(table), mode="append")
    for given, said in (
        ("named_struct('street', 'b')", "no field addr.zip"),
        ("named_struct('street', 'b', 'zip', '2', 'town', 'c')", "table has no field addr.town"),
    ):
        source = spark.sql(f"SELECT 1L AS id, {given} AS addr").alias("s")
        refused(SchemaMismatchError, said, table, lambda source=source: upsert(table, source))
    source = spark.sql("SELECT 1L AS id, named_struct('zip', '2', 'STREET', 'b') AS addr").alias("s")
    upsert(table, source)
    assert [row["addr"] for row in rows_of(table)] == [{"street": "b", "zip": "2"}]
