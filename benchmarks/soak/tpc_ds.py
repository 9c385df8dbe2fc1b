"""Twenty queries of TPC-DS through `spark_jobs.sql`, equal to Spark over plain Parquet: `make soak-tpc-ds`.

    python benchmarks/soak/tpc_ds.py [--scale 0.05] [--only q3 q7]

The data is made by `io.trino.tpcds` from Maven. Each table is written as Parquet by Spark, and as a Delta
table by `spark_jobs.write` (store_sales in partitions). Each query runs twice: over the tables by
`spark_jobs.sql`, and over views of the Parquet files by Spark. Writes a result, and
exits with 1 when the rows of a query differ.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from py4j.java_gateway import set_field

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY)]

import spark_jobs  # noqa: E402 - a program
from benchmarks.tpc_ds_queries import QUERIES, TABLES  # noqa: E402
from spark_jobs.session import get_session  # noqa: E402
from tests.support.delta_spark_reader import jars_to_ourselves  # noqa: E402
from tests.support.soak_report import report_head  # noqa: E402

PACKAGE = "io.trino.tpcds:tpcds:1.4"
RESULT = REPOSITORY / "benchmarks" / "results" / "soak-tpc-ds.json"
TYPES = {"INTEGER": "int", "IDENTIFIER": "bigint", "DATE": "date", "TIME": "string"}
CLUSTERED = {"item": ["i_item_sk"], "customer": ["c_customer_sk"]}


def main() -> int:
    """Run the queries; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.05, help="the scale factor: gigabytes of data")
    parser.add_argument("--only", nargs="*", default=list(QUERIES))
    options = parser.parse_args()
    conf = {
        "spark.jars.packages": PACKAGE,
        "spark.jars.ivy": str(REPOSITORY / ".tools" / "ivy"),
        "spark.sql.shuffle.partitions": "2",
        "spark.log.level": "ERROR",
        "spark.driver.memory": "2g",
    }
    began = time.monotonic()
    with jars_to_ourselves():
        spark = get_session(master="local[2]", conf=conf, app_name="tpc-ds")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = {table: _make(spark, table, folder, options.scale) for table in TABLES}
        tables = {table: str(folder / "delta" / table) for table in TABLES}
        results = {name: _compare(spark, QUERIES[name], tables) for name in options.only}
    spark.stop()
    equal = sum(result["equal"] for result in results.values())
    report = {
        **report_head("tpc-ds", seed=None, seconds=time.monotonic() - began),
        "package": PACKAGE,
        "scale": options.scale,
        "rows": rows,
        "equal": equal,
        "queries": results,
    }
    RESULT.write_text(json.dumps(report, indent=2) + "\n")
    print(f"{RESULT.relative_to(REPOSITORY)}: {equal} of {len(results)} equal")
    return int(equal < len(results))


def _make(spark: Any, name: str, folder: Path, scale: float) -> int:
    """Generate a table, and write it as Parquet and as a Delta table; the number of its rows."""
    generator = spark._jvm.io.trino.tpcds
    table = generator.Table.getTable(name)
    raw = folder / "raw"
    for needed in (raw, folder / "parquet", folder / "delta"):
        needed.mkdir(exist_ok=True)
    options = generator.Options()
    values = {"scale": scale, "directory": str(raw), "table": name, "overwrite": True, "doNotTerminate": True}
    for key, value in values.items():
        set_field(options, key, value)
    generator.TableGenerator(options.toSession()).generateTable(table)
    columns = ", ".join(f"`{column.getName()}` {_type(column.getType())}" for column in table.getColumns())
    reader = spark.read.schema(columns).option("sep", "|").option("mode", "FAILFAST")
    rows = reader.option("encoding", "ISO-8859-1").csv(str(raw / f"{name}.dat"))
    rows.write.parquet(str(folder / "parquet" / name))
    plain = spark.read.parquet(str(folder / "parquet" / name))
    plain.createOrReplaceTempView(name)
    target = str(folder / "delta" / name)
    if name == "store_sales":
        spark_jobs.write(
            plain.withColumn("ss_part", (plain.ss_item_sk % 4).cast("int")),
            target,
            mode="error",
            partition_by=["ss_part"],
        )
    else:
        spark_jobs.write(plain, target, mode="error", cluster_by=CLUSTERED.get(name))
    return int(plain.count())


def _type(found: Any) -> str:
    base = found.getBase().toString()
    if base == "DECIMAL":
        return f"decimal({found.getPrecision().get()},{found.getScale().get()})"
    return TYPES.get(base, "string")


def _compare(spark: Any, query: str, tables: dict[str, str]) -> dict[str, Any]:
    """Run a query both ways: the rows in any order, since ORDER BY leaves ties."""
    began = time.monotonic()
    ours = spark_jobs.sql(spark, query, tables=tables).collect()
    between = time.monotonic()
    theirs = spark.sql(query).collect()
    ended = time.monotonic()
    return {
        "equal": sorted(map(repr, ours)) == sorted(map(repr, theirs)),
        "rows": len(theirs),
        "seconds": round(between - began, 2),
        "seconds_parquet": round(ended - between, 2),
    }


if __name__ == "__main__":
    sys.exit(main())
