"""Several streams into one table, beside a program that compacts it again and again: nothing is aborted."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import spark_jobs
from delta_core import DeltaTable, write_deltalake
from tests.support.soak import rounds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

STREAMS = rounds(usual=2, soak=4)
SECONDS = rounds(usual=2, soak=120)
ROWS = 10
OFTEN = {"processingTime": "100 milliseconds"}


def started(spark: SparkSession, name: str, number: int, table: Path, folder: Path) -> StreamingQuery:
    """A query of counted rows with its name: every other one through the data source."""
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).load()
    rows = rows.selectExpr(f"'{name}' AS stream", "value")
    if number % 2 == 0:
        return spark_jobs.stream_to(rows, str(table), checkpoint=folder / name, trigger=OFTEN)
    writer = rows.writeStream.format("deltaward").option("checkpointLocation", str(folder / name))
    return writer.trigger(**OFTEN).start(str(table))


def batches_of(checkpoint: Path, table: DeltaTable) -> int:
    """How many batches of a query the table has."""
    app_id = json.loads((checkpoint / "metadata").read_text())["id"]
    return table.transactions()[app_id].version + 1


@pytest.mark.spark
@pytest.mark.slow
def test_streams_into_one_table_beside_a_compaction(
    spark: SparkSession, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    target = tmp_path / "target"
    empty = pa.table({"stream": pa.array([], pa.string()), "value": pa.array([], pa.int64())})
    write_deltalake(str(target), empty, mode="append")
    names = [f"s{number}" for number in range(STREAMS)]
    queries = [started(spark, name, number, target, tmp_path) for number, name in enumerate(names)]
    compactions = 0
    try:
        end: float | None = None
        while end is None or time.monotonic() < end:
            table = DeltaTable(str(target))
            if end is None and len(table.transactions()) == STREAMS:
                end = time.monotonic() + SECONDS
            if table.optimize.compact()["numFilesRemoved"]:
                compactions += 1
            assert all(query.isActive for query in queries), [query.exception() for query in queries]
    finally:
        for query in queries:
            query.stop()
    aborts = [query.exception() for query in queries if query.exception() is not None]
    table = DeltaTable(str(target))
    record_property("streams", STREAMS)
    record_property("versions", table.version())
    record_property("compactions", compactions)
    record_property("aborts", len(aborts))
    assert aborts == []
    assert compactions > 0
    rows = table.to_pyarrow_table()
    found = Counter(zip(rows["stream"].to_pylist(), rows["value"].to_pylist(), strict=True))
    expected = {(name, value) for name in names for value in range(ROWS * batches_of(tmp_path / name, table))}
    assert found == Counter(expected)
