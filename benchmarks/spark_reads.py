"""Measure `spark_jobs.read` against `spark.read.parquet` of the same files of lineitem.

    nice python -m benchmarks.spark_reads [--pairs 7] [--scale 1] [--cache DIR] [--tables plain]

One local session with two cores, warm: after one warm-up, pairs of the two reads in turn, each made anew
and run with the listing settings of our reader. Prints a table as Markdown, and writes all measurements to
`benchmarks/results/bench-spark-reads.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import geometric_mean
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

import spark_jobs
from benchmarks.data import lineitem
from benchmarks.statistics import paired_ratio
from delta_core import DeltaTable, write_deltalake
from delta_core.schema.column_mapping import ColumnMapping
from spark_jobs.schema import to_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RESULT = Path(__file__).parent / "results" / "bench-spark-reads.json"
FILES = 8
LISTING = {"spark.sql.sources.parallelPartitionDiscovery.parallelism": "16"}

TABLES: Mapping[str, Mapping[str, str]] = {
    "plain": {},
    "mapping by name": {"delta.columnMapping.mode": "name"},
    "mapping by id": {"delta.columnMapping.mode": "id"},
    "deletion vectors on 5 % of the rows": {"delta.enableDeletionVectors": "true"},
    "deletion vectors on 5 % of the rows of one file": {"delta.enableDeletionVectors": "true"},
}
DELETED = {
    "deletion vectors on 5 % of the rows": "(l_orderkey + l_linenumber) % 20 = 3",
    "deletion vectors on 5 % of the rows of one file": "l_orderkey < 700000 AND "
    "(l_orderkey + l_linenumber) % 20 = 3",
}

QUERIES: Mapping[str, str] = {
    "Q1": "SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice), "
    "sum(l_extendedprice * (1 - l_discount)), sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)), "
    "avg(l_quantity), avg(l_extendedprice), avg(l_discount), count(*) FROM t "
    "WHERE l_shipdate <= date'1998-09-02' GROUP BY l_returnflag, l_linestatus",
    "Q6": "SELECT sum(l_extendedprice * l_discount) FROM t WHERE l_shipdate >= date'1994-01-01' "
    "AND l_shipdate < date'1995-01-01' AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24",
    "three columns": "SELECT sum(l_quantity), max(l_extendedprice), min(l_shipdate) FROM t",
    "every column": "SELECT sum(hash(*)) FROM t",
}


def main() -> None:
    """Run the pairs and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--scale", default="1")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "deltaward-bench")
    parser.add_argument("--tables", default=",".join(TABLES))
    options = parser.parse_args()
    spark = spark_jobs.get_session(
        master="local[2]", conf={"spark.driver.memory": "3g", "spark.log.level": "ERROR"}, app_name="bench"
    )
    for key, value in LISTING.items():
        spark.conf.set(key, value)
    report: dict[str, Any] = {
        "machine": {"cpus": os.cpu_count(), "system": platform.system()},
        "pairs": options.pairs,
        "scale": options.scale,
        "tables": {},
    }
    print(f"| table | {' | '.join(QUERIES)} | mean |\n| --- |{' --- |' * (len(QUERIES) + 1)}")
    for name in options.tables.split(","):
        path = _table(options.cache, name, options.scale)
        ratios = {}
        for query, sql in QUERIES.items():
            ours, theirs = _pairs(spark, path, sql, options.pairs)
            ratio = paired_ratio(ours, theirs)
            ratios[query] = {"ours": ours, "theirs": theirs, **ratio.to_json()}
        mean = geometric_mean(found["median"] for found in ratios.values())
        report["tables"][name] = {"queries": ratios, "mean": mean}
        cells = [
            f"{found['median']:.2f} [{found['low']:.2f}, {found['high']:.2f}]" for found in ratios.values()
        ]
        print(f"| {name} | {' | '.join(cells)} | {mean:.2f} |", flush=True)
        RESULT.write_text(json.dumps(report, indent=1) + "\n")


def _table(cache: Path, name: str, scale: str) -> Path:
    path = cache / f"spark-reads-{scale}-{name.replace(' ', '-').replace('%', 'percent')}"
    if (path / "_delta_log").exists():
        return path
    rows = pq.read_table(lineitem(cache, scale=scale))
    size = -(-rows.num_rows // FILES)
    write_deltalake(path, rows, configuration=dict(TABLES[name]), max_rows_per_file=size)
    if name in DELETED:
        DeltaTable(path).delete(DELETED[name])
    return path


def _pairs(spark: SparkSession, path: Path, sql: str, pairs: int) -> tuple[list[float], list[float]]:
    def ours() -> DataFrame:
        return spark_jobs.read(spark, str(path))

    snapshot = DeltaTable(path).snapshot
    mapping: ColumnMapping = snapshot.column_mapping
    files = DeltaTable(path).snapshot.files.to_table(["path"]).column("path").to_pylist()
    physical = {mapping.physical_name(field): field.name for field in snapshot.schema}
    schema = to_spark(snapshot.schema)
    for field, name in zip(schema.fields, physical, strict=True):
        field.name = name
    schema.names = list(physical)

    def theirs() -> DataFrame:
        frame = spark.read.schema(schema).parquet(*[f"{path}/{file}" for file in files])
        return frame.toDF(*physical.values())

    for read in (ours, theirs):
        _seconds(read, sql)
    taken: tuple[list[float], list[float]] = ([], [])
    for index in range(pairs):
        for which in (0, 1) if index % 2 else (1, 0):
            taken[which].append(_seconds((ours, theirs)[which], sql))
    return taken


def _seconds(read: Callable[[], DataFrame], sql: str) -> float:
    began = time.perf_counter()
    frame = read()
    frame.createOrReplaceTempView("t")
    frame.sparkSession.sql(sql).collect()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
