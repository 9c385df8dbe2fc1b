"""DELETE and UPDATE on Spark: beside delta_core's own statements, and what these do not reach."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import spark_jobs
from delta_core import CommitProperties, DeltaTable, write_deltalake
from delta_core.errors import (
    ConcurrentModificationError,
    ConfigurationError,
    ConstraintViolationError,
    DeltaError,
    ExpressionError,
    InvalidTableError,
    SchemaMismatchError,
)
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobResult, JobStatus
from delta_core.jobs.job_spec import IdempotencyKey, JobSpec, TableRef
from delta_core.jobs.registry import JobRegistry
from delta_core.jobs.run_job import run_job
from delta_core.run import Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.open import open_store
from spark_jobs.dml import positions as positions_module
from spark_jobs.dml.delete import delete_from
from spark_jobs.dml.statement import StatementRequest
from spark_jobs.dml.update import update_in
from spark_jobs.job_kinds import register
from spark_jobs.spark_executor import SparkExecutor
from tests.support.row_statement_runs import (
    KINDS,
    VECTORS,
    Kind,
    by_peer,
    check_statements,
    make_table,
)
from tests.support.soak import drawn, rounds
from tests.support.spark import files_below

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALWAYS = ("everything", "computed")


@pytest.fixture(name="table")
def table_fixture(tmp_path: Path) -> Path:
    """Keys 0 to 9 in two files, with deletion vectors."""
    return table_of(tmp_path / "t", VECTORS)


def table_of(uri: Path, properties: dict[str, str]) -> Path:
    for start in (0, 5):
        rows = {"id": pa.array(range(start, start + 5), pa.int64()), "name": ["old"] * 5}
        write_deltalake(uri, pa.table(rows), mode="append", configuration=properties)
    return uri


def ids_of(uri: Path) -> list[int]:
    found: list[int] = by_peer(uri)["id"].to_pylist()
    return sorted(found)


def test_columns_with_dots_and_backticks_are_updated_with_their_changes(
    spark: SparkSession, tmp_path: Path
) -> None:
    names = {**VECTORS, "delta.enableChangeDataFeed": "true", "delta.columnMapping.mode": "name"}
    rows = pa.table({"id": [1, 2], "a.b": [3, 4], "c`d": [5, 6]})
    write_deltalake(tmp_path, rows, mode="append", configuration=names)
    spark_jobs.update(spark, tmp_path, {"`a.b`": "`c``d`"}, "id = 1")
    found = DeltaTable(str(tmp_path)).to_pyarrow_table().sort_by("id").to_pydict()
    assert found == {"id": [1, 2], "a.b": [5, 4], "c`d": [5, 6]}


@pytest.mark.parametrize("name", [*ALWAYS, *drawn(sorted(set(KINDS) - set(ALWAYS)), usual=1)])
def test_statements_equal_those_of_delta_core(
    spark: SparkSession, tmp_path: Path, seed: str, name: str
) -> None:
    for number in range(rounds(usual=1, soak=20)):
        folder = tmp_path / str(number)
        folder.mkdir()
        made = check_statements(spark, name, f"{seed}:{number}", folder, statements=rounds(usual=2, soak=5))
        assert made >= 0


@pytest.mark.parametrize("properties", [{}, VECTORS], ids=["copies", "vectors"])
def test_the_log_alone_decides_without_a_job(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, properties: dict[str, str]
) -> None:
    uri = tmp_path / "t"
    data = pa.table({"id": pa.array(range(6), pa.int64()), "day": ["a", "a", "b", "b", "c", "c"]})
    write_deltalake(uri, data, partition_by=["day"], configuration=properties)

    def refused(*_: Any, **__: Any) -> None:
        raise AssertionError("rows are read")

    monkeypatch.setattr("spark_jobs.dml.target.TargetFiles.scan", refused)
    result = spark_jobs.delete(spark, str(uri), "day = 'b' OR t.day > 'b'", alias="t")
    assert result.output["metrics"]["numRemovedFiles"] == 2
    assert result.output["metrics"]["numDeletedRows"] == 4
    assert ids_of(uri) == [0, 1]
    assert spark_jobs.delete(spark, str(uri), "true").output["metrics"]["numDeletedRows"] == 2
    nothing = spark_jobs.delete(spark, str(uri), "day = 'a'")
    assert (nothing.commits, nothing.output["metrics"]["numDeletedRows"]) == ((), 0)
    assert [entry.commit_info.operation_parameters for entry in DeltaTable(uri).history(2)] == [
        {"predicate": json.dumps(["true"])},
        {"predicate": json.dumps(["day = 'b' OR t.day > 'b'"])},
    ]


def test_columns_and_unknown_functions_are_conditions(spark: SparkSession, table: Path) -> None:
    from pyspark.sql import functions as fn

    spark_jobs.delete(spark, str(table), (fn.col("t.id") == 3) & (fn.col("name") == "old"), alias="t")
    spark_jobs.delete(spark, str(table), "id = 4 AND now() > timestamp'2020-01-01'")
    spark_jobs.update(
        spark, str(table), {"name": fn.concat("name", fn.lit("!"))}, "crc32(string(id)) >= 0 AND id > 7"
    )
    rows = sorted((row["id"], row["name"]) for row in by_peer(table).to_pylist())
    names = dict.fromkeys((0, 1, 2, 5, 6, 7), "old") | {8: "old!", 9: "old!"}
    assert rows == sorted(names.items())


def test_many_positions_become_bitmaps_in_the_executors(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = tmp_path / "t"
    ids = pa.table({"id": pa.array(range(100_000), pa.int64())})
    write_deltalake(uri, ids, configuration=VECTORS)
    monkeypatch.setattr(positions_module, "POSITIONS_IN_DRIVER", 10)
    first = spark_jobs.delete(spark, str(uri), "id % 3 = 0 OR id IN (32767, 32768, 99999)")
    second = spark_jobs.update(spark, str(uri), {"id": "-id"}, "id % 5 = 1 AND id > 60000")
    assert first.output["metrics"]["numDeletionVectorsAdded"] == 1
    assert second.output["metrics"]["numDeletionVectorsUpdated"] == 1
    kept = [key for key in range(100_000) if key % 3 and key not in (32767, 32768, 99999)]
    assert ids_of(uri) == sorted(-key if key % 5 == 1 and key > 60000 else key for key in kept)


REFUSED: dict[str, tuple[type[DeltaError], str, Any]] = {
    "a subquery": (
        ConfigurationError,
        "subquery",
        lambda s, t: spark_jobs.delete(s, t, "id IN (SELECT 1)"),
    ),
    "a subquery as a value": (
        ConfigurationError,
        "subquery",
        lambda s, t: spark_jobs.update(s, t, {"id": "(select max(id) from x)"}),
    ),
    "a random condition": (
        ExpressionError,
        "not valid",
        lambda s, t: spark_jobs.delete(s, t, "rand() < 0.5"),
    ),
    "an unknown column": (ExpressionError, "nope", lambda s, t: spark_jobs.delete(s, t, "nope = 1")),
    "no boolean": (ExpressionError, "not valid", lambda s, t: spark_jobs.delete(s, t, "id + 1")),
    "no SQL": (ExpressionError, "not valid", lambda s, t: spark_jobs.delete(s, t, "id = = 1")),
    "no text": (ConfigurationError, "int", lambda s, t: spark_jobs.delete(s, t, 1)),
    "no assignment": (ConfigurationError, "assigns no", lambda s, t: spark_jobs.update(s, t, {})),
    "an unknown target": (ExpressionError, "nope", lambda s, t: spark_jobs.update(s, t, {"nope": "1"})),
    "an unknown value": (ExpressionError, "nope", lambda s, t: spark_jobs.update(s, t, {"id": "nope"})),
    "the same column twice": (
        ConfigurationError,
        "both assigned",
        lambda s, t: spark_jobs.update(s, t, {"id": "1", "ID": "2"}),
    ),
    "a misfit": (
        ConstraintViolationError,
        "type of id",
        lambda s, t: spark_jobs.update(s, t, {"id": "name"}, "id = 3"),
    ),
    "an unknown engine": (
        ConfigurationError,
        "engine_io",
        lambda s, t: spark_jobs.delete(s, t, engine_io="fast"),
    ),
    "no alias": (ConfigurationError, "alias", lambda s, t: spark_jobs.delete(s, t, alias="")),
    "no clauses": (
        ConfigurationError,
        "clauses",
        lambda s, t: spark_jobs.merge(s, t, s.range(1), "1", {}),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_leaves_nothing(spark: SparkSession, table: Path, case: str) -> None:
    error, words, call = REFUSED[case]
    before, version = files_below(table), DeltaTable(table).version()
    with pytest.raises(error, match=words):
        call(spark, str(table))
    assert files_below(table) == before
    assert DeltaTable(table).version() == version


def test_constraints_and_append_only_hold(spark: SparkSession, table: Path) -> None:
    DeltaTable(table).alter.add_constraint({"named": "name <> 'bad'"})
    before = files_below(table)
    with pytest.raises(ConstraintViolationError, match="named"):
        spark_jobs.update(spark, str(table), {"name": "'bad'"}, "id = 3")
    assert files_below(table) == before
    DeltaTable(table).alter.set_properties({"delta.appendOnly": "true"})
    with pytest.raises(InvalidTableError, match="append-only"):
        spark_jobs.delete(spark, str(table), "id = 3")


def test_values_are_defaults_structs_and_casts(spark: SparkSession, tmp_path: Path) -> None:
    make_table(tmp_path / "t", Kind(is_computed=True, properties=VECTORS), random.Random(1))
    uri = str(tmp_path / "t")
    spark_jobs.update(spark, uri, {"kind": "'x'"})
    assigned = {"kind": "DEFAULT", "v": "'7.5'", "s": "named_struct('b', 'z', 'a', 1)", "p": "DEFAULT"}
    spark_jobs.update(spark, uri, assigned, "id = 4")
    spark_jobs.update(spark, uri, {"id": "id + 50", "twice": "2 * (id + 50)"}, "id = 5")
    rows = {row["id"]: row for row in by_peer(tmp_path / "t").to_pylist()}
    changed = rows[4]
    assert (changed["kind"], changed["v"], changed["p"], changed["twice"]) == ("taxi", 7.5, None, 8)
    assert changed["s"] == {"a": 1, "b": "z"}
    assert (rows[55]["twice"], rows[55]["kind"]) == (110, "x")
    with pytest.raises(ConstraintViolationError, match="twice"):
        spark_jobs.update(spark, uri, {"twice": "1"}, "id = 6")
    with pytest.raises(SchemaMismatchError, match="identity"):
        spark_jobs.update(spark, uri, {"number": "1"})
    with pytest.raises(SchemaMismatchError, match=r"s\.a"):
        spark_jobs.update(spark, uri, {"s": "named_struct('b', 'z')"})


def test_an_idempotency_key_applies_once(spark: SparkSession, table: Path) -> None:
    key = CommitProperties(txn=("clean", 3), user_metadata="why")
    first = spark_jobs.update(spark, str(table), {"id": "id + 100"}, "id < 2", commit_properties=key)
    again = spark_jobs.update(spark, str(table), {"id": "id + 100"}, "id < 2", commit_properties=key)
    assert (first.already_applied, again.already_applied) == (False, True)
    assert (first.version_to, again.version_to, again.commits) == (2, 2, ())
    assert ids_of(table) == [2, 3, 4, 5, 6, 7, 8, 9, 100, 101]
    other = CommitProperties(txn=("clean", 4))
    nothing = spark_jobs.delete(spark, str(table), "id = 77", commit_properties=other)
    assert nothing.commits == (3,)  # the key must be in the table
    assert DeltaTable(table).history(2)[1].commit_info.user_metadata == "why"


def test_statements_on_disjoint_rows_of_one_file_all_commit(spark: SparkSession, table: Path) -> None:
    """Spark plans, and delta_core commits in between; the vectors are united."""
    snapshot = Snapshot.load(open_store(str(table)))

    def winner() -> None:
        DeltaTable(table).delete("id IN (0, 5)")

    request = StatementRequest(where="id IN (1, 6)")
    deleted = delete_from(spark, snapshot, request, before_commit=winner)
    assert deleted.output["metrics"]["numDeletionVectorsUpdated"] == 2
    snapshot = Snapshot.load(open_store(str(table)))

    def other() -> None:
        DeltaTable(table).delete("id = 2")
        DeltaTable(table).delete("id = 7")

    request = StatementRequest(where="id IN (3, 8)")
    update_in(spark, snapshot, {"name": "'new'"}, request, before_commit=other)
    rows = sorted((row["id"], row["name"]) for row in by_peer(table).to_pylist())
    assert rows == [(3, "new"), (4, "old"), (8, "new"), (9, "old")]


def test_statements_follow_rows_that_a_compaction_moved(spark: SparkSession, table: Path) -> None:
    def compact() -> None:
        DeltaTable(table).optimize.compact()

    snapshot = Snapshot.load(open_store(str(table)))
    delete_from(spark, snapshot, StatementRequest(where="id IN (1, 6)"), before_commit=compact)
    write_deltalake(table, pa.table({"id": pa.array([20], pa.int64()), "name": ["old"]}), mode="append")
    snapshot = Snapshot.load(open_store(str(table)))
    request = StatementRequest(where="id IN (2, 20)")
    update_in(spark, snapshot, {"name": "'new'"}, request, before_commit=compact)
    names = {row["id"]: row["name"] for row in by_peer(table).to_pylist()}
    assert names == dict.fromkeys((0, 3, 4, 5, 7, 8, 9), "old") | {2: "new", 20: "new"}


def test_a_statement_that_loses_leaves_no_file(spark: SparkSession, tmp_path: Path) -> None:
    for name, properties in (("copies", {}), ("vectors", VECTORS)):
        table = table_of(tmp_path / name, properties)
        snapshot = Snapshot.load(open_store(str(table)))
        after: set[str] = set()

        def winner(table: Path = table, after: set[str] = after) -> None:
            DeltaTable(table).delete("id = 3")
            after |= files_below(table)

        written = files_below(table)
        with pytest.raises(ConcurrentModificationError):
            update_in(
                spark,
                snapshot,
                {"name": "'new'"},
                StatementRequest(where="id = 3"),
                before_commit=winner,
                run=Run(),
            )
        assert written < files_below(table) <= after
        assert "new" not in {row["name"] for row in by_peer(table).to_pylist()}


def test_jobs_do_the_same(spark: SparkSession, table: Path) -> None:
    registry = JobRegistry(group=None)
    register(registry)

    def run(kind: str, params: dict[str, Any]) -> JobResult:
        spec = JobSpec(
            kind=kind,
            table=TableRef(uri=str(table)),
            params=params,
            idempotency=IdempotencyKey(app_id=kind, version=1),
        )
        return run_job(spec, JobContext(executor=SparkExecutor(spark)), registry=registry)

    deleted = run("delete", {"where": "t.id > 6", "target_alias": "t"})
    updated = run("update", {"set": {"name": "'new'"}, "where": "id = 0"})
    assert (deleted.status, updated.status) == (JobStatus.SUCCEEDED, JobStatus.SUCCEEDED)
    assert updated.output["metrics"]["numUpdatedRows"] == 1
    assert run("update", {"set": {"name": "'new'"}, "where": "id = 0"}).already_applied
    assert ids_of(table) == list(range(7))
    refused = run("delete", {})
    assert refused.error is not None
    assert refused.error.code == "INVALID_JOB_SPEC"
