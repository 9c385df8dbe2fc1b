"""Every job on a small table in one session, beside what delta_core makes of the same."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

import spark_jobs
from delta_core import DeltaTable, write_deltalake
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_spec import JobSpec, TableRef
from delta_core.jobs.registry import JobRegistry
from delta_core.jobs.run_job import run_job
from spark_jobs.job_kinds import register
from spark_jobs.spark_executor import SparkExecutor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("t", pa.timestamp("us", "UTC")),
        ("n", pa.timestamp("us")),
        ("d", pa.date32()),
        ("k", pa.float64()),
        ("x", pa.decimal128(20, 10)),
        ("s", pa.string()),
        ("p", pa.timestamp("us", "UTC")),
        ("q", pa.decimal128(12, 8)),
    ]
)
PREDICATES = (
    "CAST(t AS DATE) = DATE '2023-12-31'",
    "t >= DATE '2024-01-01'",
    "date_trunc('year', t) = TIMESTAMP '2023-01-01 00:00:00'",
    "n > TIMESTAMP '2023-06-01 00:00:00' OR d < '1300-01-01'",
    "k > 5",
    "k = 0.0",
    "s LIKE '%\\\\\\\\%' OR s = 'it\\'s'",
    "p < '2024-03-10 08:00:00' AND id > 0",
)


def rows() -> list[dict[str, Any]]:
    """Rows at which settings show: old dates, hours around midnight, NaN, both zeros, tiny decimals."""
    utc = dt.UTC
    times = [
        dt.datetime(2023, 6, 1, tzinfo=utc),
        dt.datetime(2024, 1, 1, 2, tzinfo=utc),
        dt.datetime(2023, 12, 31, 21, 30, tzinfo=utc),
        dt.datetime(1200, 3, 1, 12, tzinfo=utc),
        dt.datetime(2024, 3, 10, 7, 30, tzinfo=utc),
        None,
    ]
    return [
        {
            "id": at,
            "t": time,
            "n": None if time is None else time.replace(tzinfo=None),
            "d": None if time is None else time.date(),
            "k": [1.0, math.nan, -0.0, 0.0, 7.5, None][at],
            "x": [Decimal("0E-10"), Decimal("1.5"), Decimal("-1E-10"), Decimal(2), None, Decimal("0.5")][at],
            "s": ["a\\b", "it's", 'say "so"', "", None, "\\n"][at],
            "p": dt.datetime(2024, 3, 10, 7 + at % 2 * 4, tzinfo=utc),
            "q": [Decimal("0E-8"), Decimal("1E-8")][at % 2],
        }
        for at, time in enumerate(times)
    ]


def table_of(folder: Path, *, files: int = 2) -> str:
    """A table of these rows, by delta_core, in so many files, partitioned by times and decimals."""
    uri, data = str(folder), rows()
    for at in range(files):
        part = pa.Table.from_pylist(data[at::files], schema=SCHEMA)
        write_deltalake(uri, part, mode="append", partition_by=["p", "q"])
    return uri


def run_all(spark: SparkSession, folder: Path) -> list[int]:
    """Run every job and compare; the ids that are in the table then."""
    folder.mkdir(exist_ok=True)
    source = table_of(folder / "source")
    reads(spark, source)
    written = str(folder / "written")
    writes(spark, source, written)
    merges(spark, written)
    return sorted(DeltaTable(written).to_pyarrow_table(["id"])["id"].to_pylist())


def reads(spark: SparkSession, uri: str) -> None:
    """`read(where=)`: the rows of each predicate, all at once."""
    from pyspark.sql import functions as fn

    found: dict[int, list[int]] = {at: [] for at in range(len(PREDICATES))}
    frames = [
        spark_jobs.read(spark, uri, where=text).select(fn.lit(at).alias("at"), "id")
        for at, text in enumerate(PREDICATES)
    ]
    union = frames[0]
    for frame in frames[1:]:
        union = union.union(frame)
    for row in union.collect():
        found[row["at"]].append(row["id"])
    core = DeltaTable(uri)
    for at, text in enumerate(PREDICATES):
        expected = core.to_pyarrow_table(["id"], filters=text)["id"].to_pylist()
        assert (text, sorted(found[at])) == (text, sorted(expected))


def writes(spark: SparkSession, source: str, uri: str) -> None:
    """An append of all rows, then a day replaced by itself; partition values as delta_core has them."""
    everything = spark_jobs.read(spark, source)
    constraints = [("late", "t IS NULL OR hour(t) IN (0, 2, 7, 12, 21)")]
    spark_jobs.write(everything, uri, mode="append", partition_by=["p", "q"], constraints=constraints)
    assert contents(uri) == contents(source)
    day = "CAST(t AS DATE) = DATE '2023-12-31'"
    rows_of_day = spark_jobs.read(spark, uri, where=day)
    spark_jobs.write(rows_of_day, uri, mode="overwrite", replace_where=day)
    assert contents(uri) == contents(source)
    assert partitions(uri) == partitions(source)


def merges(spark: SparkSession, uri: str) -> None:
    """A merge that sets one column and inserts: the rows that it does not name stay as they are."""
    wanted = "select id, concat('m', id) as s from values (1L), (3L), (9L) as v(id)"
    news = spark.sql(wanted).alias("s")
    (
        spark_jobs.DeltaTable.forPath(spark, uri)
        .alias("t")
        .merge(news, "t.id = s.id AND (t.k > -1 OR t.k IS NULL)")
        .whenMatchedUpdate(set={"s": "s.s"})
        .whenNotMatchedInsert(values={"id": "s.id", "s": "s.s"})
        .execute()
    )
    changed = {1: "m1", 3: "m3"}
    after = {row["id"]: row for row in DeltaTable(uri).to_pyarrow_table().to_pylist()}
    kept = {row["id"]: row for row in pa.Table.from_pylist(rows(), schema=SCHEMA).to_pylist()}
    assert sorted(after) == [*sorted(kept), 9]
    for key, row in kept.items():
        assert _string(after[key]) == _string(row | ({"s": changed[key]} if key in changed else {}))
    assert after[9] == dict.fromkeys(SCHEMA.names) | {"id": 9, "s": "m9"}


def loads(spark: SparkSession, folder: Path) -> None:
    """A load of Parquet files under a contract with a constraint."""
    files = folder / "files.parquet"
    data = pa.Table.from_pylist(rows(), schema=SCHEMA).drop_columns(["n"])
    pq.write_table(data, files)
    target = folder / "loaded"
    registry = JobRegistry(group=None)
    register(registry)
    spec = JobSpec(
        kind="load",
        table=TableRef(uri=str(target)),
        params={
            "source": {"format": "parquet", "uris": [str(files)], "where": "k > 5D OR k = 0D OR id < 9"},
            "contract": {"constraints": [{"name": "late", "expression": "t IS NULL OR hour(t) < 22"}]},
        },
    )
    result = run_job(spec, JobContext(executor=SparkExecutor(spark)), registry=registry)
    assert result.error is None
    assert contents(str(target)) == sorted(map(_string, data.to_pylist()))


def optimizes(spark: SparkSession, folder: Path) -> str:
    """Compaction and Z-order by Spark's workers: the same rows; the name of what the history tells last."""
    uri = table_of(folder / "optimized")
    before = contents(uri)
    table = spark_jobs.DeltaTable.forPath(spark, uri)
    table.optimize().executeCompaction().collect()
    table.optimize().executeZOrderBy("t", "k").collect()
    assert contents(uri) == before
    return str(table.history(1).collect()[0]["operation"])


def contents(uri: str) -> list[str]:
    """The table's rows as delta_core reads them, in the order of their text."""
    return sorted(map(_string, DeltaTable(uri).to_pyarrow_table().to_pylist()))


def _string(row: dict[str, Any]) -> str:
    return repr(sorted(row.items()))


def partitions(uri: str) -> set[str]:
    """The partition values of all files that were added, as the log's text has them."""
    lines = [line for log in Path(uri, "_delta_log").glob("*.json") for line in log.read_text().splitlines()]
    adds = [action["add"] for action in map(json.loads, lines) if "add" in action]
    return {json.dumps(add["partitionValues"], sort_keys=True) for add in adds}
