"""Loads from JSON lines and from other Delta tables: what they refuse, keep, group and go on from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobResult, JobStatus
from delta_core.jobs.job_spec import IdempotencyKey, JobSpec, TableRef
from delta_core.jobs.registry import JobRegistry
from delta_core.jobs.run_job import run_job
from spark_jobs.job_kinds import register
from spark_jobs.spark_executor import SparkExecutor
from tests.support.soak import drawn
from tests.support.spark import files_below, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

SCHEMA = [
    {"name": "id", "type": "long"},
    {"name": "at", "type": "timestamp"},
    {
        "name": "where",
        "type": {
            "type": "struct",
            "fields": [
                {"name": "lat", "type": "double", "nullable": True, "metadata": {}},
                {
                    "name": "tags",
                    "type": {"type": "array", "elementType": "integer", "containsNull": True},
                    "nullable": True,
                    "metadata": {},
                },
            ],
        },
    },
    {"name": "raw", "type": "string"},
]


def load(spark: SparkSession, table: Path, source: dict[str, Any], **params: Any) -> JobResult:
    key = params.pop("key", None)
    spec = JobSpec(
        kind="load",
        table=TableRef(uri=str(table)),
        params={"source": source, **params},
        idempotency=None if key is None else IdempotencyKey(app_id="consumer", version=key),
    )
    registry = JobRegistry(group=None)
    register(registry)
    return run_job(spec, JobContext(executor=SparkExecutor(spark)), registry=registry)


def json_source(path: Path, *lines: str, **settings: Any) -> dict[str, Any]:
    path.write_text("\n".join(lines) + "\n")
    return {"format": "json", "uris": [str(path)], **settings}


def done(result: JobResult) -> JobResult:
    assert result.status is JobStatus.SUCCEEDED, result.error
    return result


def test_json_is_typed_by_its_schema_at_every_depth(spark: SparkSession, tmp_path: Path) -> None:
    source = json_source(
        tmp_path / "a.json",
        '{"id": 1, "at": "2026-01-01T00:00:00Z", "where": {"lat": 1.5, "tags": [1, 2]}, "raw": {"n": 10}}',
        "",
        '{"id": 2, "where": null}',
        schema=SCHEMA,
    )
    done(load(spark, tmp_path / "t", source))
    first, second = sorted(rows_of(tmp_path / "t"), key=lambda row: row["id"])
    assert (first["where"], first["raw"]) == ({"lat": 1.5, "tags": [1, 2]}, '{"n":10}')
    assert first["at"].isoformat() == "2026-01-01T00:00:00+00:00"
    assert second == {"id": 2, "at": None, "where": None, "raw": None}


BAD_LINES = [
    "no json",
    '{"id": 1} and more',
    '{"id": 1}{"id": 2}',
    '{"id": 1},{"id": 2}',
    '{"id": 1}],[{"id": 2}',
    '[{"id": 1}]',
    "5",
    "null",
    '{"id": "soon"}',
    '{"id": {"a": 1}}',
    '{"where": 7}',
    '{"where": {"lat": "north"}}',
    '{"where": {"tags": [1, "x"]}}',
]


@pytest.mark.parametrize("line", drawn([BAD_LINES[1], BAD_LINES[4], BAD_LINES[8], BAD_LINES[12]], usual=2))
def test_a_line_that_does_not_fit_fails_the_load_and_is_shown(
    spark: SparkSession, tmp_path: Path, line: str
) -> None:
    result = load(spark, tmp_path / "t", json_source(tmp_path / "a.json", '{"id": 9}', line, schema=SCHEMA))
    assert result.error is not None
    assert result.error.code == "CONSTRAINT_VIOLATION"
    assert line.replace('"', '\\"') in result.error.message
    assert files_below(tmp_path / "t") == set()


def test_lines_that_do_not_fit_are_kept_where_the_source_says(spark: SparkSession, tmp_path: Path) -> None:
    for number, line in enumerate(BAD_LINES):
        (tmp_path / f"{number}.json").write_text(f'{line}\n{{"id": {number}}}\n')
    # A file of its own for each: the shape of a field is inferred from all lines of a source.
    wanted = {"format": "json", "schema": SCHEMA, "corrupt_column": "_corrupt"}
    uris = [str(tmp_path / f"{number}.json") for number in range(len(BAD_LINES))]
    done(load(spark, tmp_path / "t", {**wanted, "uris": uris}))
    rows = rows_of(tmp_path / "t")
    assert sorted(row["_corrupt"] for row in rows if row["_corrupt"]) == sorted(BAD_LINES)
    assert sorted(row["id"] for row in rows if not row["_corrupt"]) == list(range(len(BAD_LINES)))


@pytest.mark.parametrize(("line", "name"), [('{"new": 1}', "new"), ('{"where": {"lon": 2}}', "where.lon")])
def test_a_field_that_the_schema_does_not_name_is_refused(
    spark: SparkSession, tmp_path: Path, line: str, name: str
) -> None:
    result = load(spark, tmp_path / "t", json_source(tmp_path / "a.json", line, schema=SCHEMA))
    assert result.error is not None
    assert (result.error.code, name in result.error.message) == ("SCHEMA_MISMATCH", True)


def test_without_a_schema_every_field_is_text_and_new_ones_can_be_merged(
    spark: SparkSession, tmp_path: Path
) -> None:
    kept = {"corrupt_column": "_corrupt"}
    done(load(spark, tmp_path / "t", json_source(tmp_path / "a.json", '{"n": 1}', **kept)))
    wider = json_source(tmp_path / "b.json", '{"n": "x", "extra": true}', "?", **kept)
    assert load(spark, tmp_path / "t", wider).status is JobStatus.FAILED
    done(load(spark, tmp_path / "t", wider, merge_schema=True))
    assert rows_of(tmp_path / "t") == sorted(
        [
            {"n": "1", "_corrupt": None, "extra": None},
            {"n": "x", "_corrupt": None, "extra": "true"},
            {"n": None, "_corrupt": "?", "extra": None},
        ],
        key=repr,
    )


def bronze(table: Path, *values: tuple[str, int], mode: str = "append") -> int:
    days, numbers = zip(*values, strict=True)
    rows = pa.table({"day": list(days), "n": pa.array(numbers, pa.int64())})
    write_deltalake(str(table), rows, mode=mode, partition_by=["day"])  # type: ignore[arg-type]
    return DeltaTable(str(table)).version()


def test_a_consumer_goes_on_where_its_own_table_says(spark: SparkSession, tmp_path: Path) -> None:
    source_table, target = tmp_path / "s", tmp_path / "t"
    source = {
        "format": "delta",
        "uris": [str(source_table)],
        "changes_since": "recorded",
        "where": "n % 2 = 0",
        "select": {"n": "n", "twice": "2 * n"},
    }

    def consume(version: int) -> JobResult:
        return done(load(spark, target, {**source, "version": version}, key=version))

    bronze(source_table, ("a", 1), ("a", 2))
    assert consume(0).metrics.rows == 1
    bronze(source_table, ("a", 4))
    DeltaTable(str(source_table)).optimize.compact()
    last = bronze(source_table, ("b", 6), ("b", 7))
    assert last == 3
    assert consume(last).metrics.rows == 2
    assert consume(last).already_applied
    assert consume(1).already_applied
    assert [row["n"] for row in rows_of(target)] == [2, 4, 6]
    bronze(source_table, ("a", 0), mode="overwrite")
    refused = load(spark, target, {**source, "version": 4}, key=4)
    assert refused.error is not None
    assert refused.error.code == "TABLE_CHANGED"


@pytest.mark.parametrize("key", [None, 7])
def test_progress_must_be_recorded_by_the_version_that_is_read(
    spark: SparkSession, tmp_path: Path, key: int | None
) -> None:
    bronze(tmp_path / "s", ("a", 1))
    source = {"format": "delta", "uris": [str(tmp_path / "s")], "version": 0, "changes_since": "recorded"}
    result = load(spark, tmp_path / "t", source, key=key)
    assert result.error is not None
    assert result.error.code == "INVALID_CONFIGURATION"


def test_groups_replace_their_partition(spark: SparkSession, tmp_path: Path) -> None:
    source_table, target = tmp_path / "s", tmp_path / "t"
    bronze(source_table, ("a", 1), ("a", 2), ("b", 5))
    source = {
        "format": "delta",
        "uris": [str(source_table)],
        "group_by": {"day": "day"},
        "select": {"total": "sum(n)", "rows": "count(*)"},
    }
    done(load(spark, target, source, partition_by=["day"]))
    bronze(source_table, ("b", 6))
    where = "day IN ('b')"
    done(load(spark, target, {**source, "where": where}, mode="overwrite", replace_where=where))
    assert rows_of(target) == [
        {"day": "a", "total": 3, "rows": 2},
        {"day": "b", "total": 11, "rows": 2},
    ]


def test_one_row_stays_for_each_key_in_the_batch_and_in_the_table(
    spark: SparkSession, tmp_path: Path
) -> None:
    lines = ['{"k": "a", "v": 1}', '{"k": "a", "v": 3}', '{"v": 4}', '{"v": 5}']
    select = {"k": "k", "v": "cast(v AS int)"}
    rule = {"keys": ["k"], "order_by": ["v DESC"], "against_table": True}
    source = json_source(tmp_path / "a.json", *lines, select=select)
    done(load(spark, tmp_path / "t", source, deduplicate=rule))
    assert [(row["k"], row["v"]) for row in rows_of(tmp_path / "t")] == [("a", 3), (None, 4), (None, 5)]
    source = json_source(
        tmp_path / "b.json", '{"k": "a", "v": 9}', '{"k": "b", "v": 1}', '{"v": 7}', select=select
    )
    assert done(load(spark, tmp_path / "t", source, deduplicate=rule)).metrics.rows == 2
    assert sorted(row["v"] for row in rows_of(tmp_path / "t")) == [1, 3, 4, 5, 7]


@pytest.mark.parametrize(
    ("order", "stays"),
    [("v DESC NULLS FIRST, w DESC", 5), ("v desc nulls last", 2), ("coalesce(v, 9) ASC", 1)],
)
def test_an_order_is_one_of_spark_sql(spark: SparkSession, tmp_path: Path, order: str, stays: int) -> None:
    lines = [
        '{"k": "a", "v": 1, "w": 1}',
        '{"k": "a", "v": 3, "w": 2}',
        '{"k": "a", "w": 4}',
        '{"k": "a", "w": 5}',
    ]
    select = {"k": "k", "v": "cast(v AS int)", "w": "cast(w AS int)"}
    source = json_source(tmp_path / "a.json", *lines, select=select)
    done(load(spark, tmp_path / "t", source, deduplicate={"keys": ["k"], "order_by": [order]}))
    assert [row["w"] for row in rows_of(tmp_path / "t")] == [stays]


@pytest.mark.parametrize("order", ["v +", "nowhere", "no_function(v)", "v DESC NULLS SOMEWHERE"])
def test_an_order_that_is_none_is_told(spark: SparkSession, tmp_path: Path, order: str) -> None:
    source = json_source(tmp_path / "a.json", '{"k": "a", "v": 1}', select={"k": "k", "v": "v"})
    result = load(spark, tmp_path / "t", source, deduplicate={"keys": ["k"], "order_by": [order]})
    assert result.error is not None
    assert result.error.code == "JOB_FAILED"
    assert "deduplicating the rows" in result.error.message


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"format": "parquet", "version": 1}, "version"),
        ({"format": "delta", "corrupt_column": "c"}, "corrupt_column"),
        ({"format": "delta", "uris": ["a", "b"]}, "one table"),
        ({"format": "delta", "changes_since": "yesterday"}, "yesterday"),
        ({"format": "json", "group_by": {"a": "a"}}, "aggregates"),
        ({"format": "json", "uris": []}, "no source"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(
    spark: SparkSession, tmp_path: Path, settings: dict[str, Any], words: str
) -> None:
    result = load(spark, tmp_path / "t", {"uris": ["x"], **settings})
    assert result.error is not None
    assert (result.error.code, words in result.error.message) == ("INVALID_JOB_SPEC", True)
