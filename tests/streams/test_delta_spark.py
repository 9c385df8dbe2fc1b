"""Streams of random tables: the batches are those of delta-spark with the same limits."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import spark_jobs
from delta_core import DeltaTable
from delta_core.errors import StreamSchemaChangedError
from tests.support.delta_spark import by_delta_spark
from tests.support.delta_spark_streams import as_string, strings_of
from tests.support.soak import SEED, SOAKING, rounds
from tests.support.stream_histories import random_history

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.extra, pytest.mark.spark]

HISTORIES = rounds(usual=3, soak=30)
NAMES = {
    "maxFilesPerTrigger": "max_files",
    "maxBytesPerTrigger": "max_bytes",
    "skipChangeCommits": "skip_change_commits",
    "ignoreChanges": "ignore_changes",
    "ignoreDeletes": "ignore_deletes",
    "startingVersion": "starting_version",
    "readChangeFeed": "change_feed",
}

Request = dict[str, Any]


def drawn_options(rng: random.Random, newest: int, *, feed: bool) -> Request:
    options: Request = rng.choice(
        [{}, {"maxFilesPerTrigger": 1}, {"maxFilesPerTrigger": 2}, {"maxBytesPerTrigger": 1500}]
    )
    if rng.random() < 0.5:
        options = {**options, "startingVersion": rng.randint(0, newest)}
    if feed:
        return {**options, "readChangeFeed": True}
    return {**options, rng.choice(["skipChangeCommits", "ignoreChanges"]): True}


def histories(folder: Path, area: str, count: int, *, columns: bool) -> list[Request]:
    """Random tables, each with the options of two streams."""
    requests = []
    for case in range(count):
        rng = random.Random(f"{SEED}:{area}:{case}")
        table, feed = folder / f"t{case}", case % 2 == 1 and not columns
        vectors = rng.random() < 0.5
        random_history(table, rng, steps=7, changes=True, vectors=vectors, feed=feed, columns=columns)
        newest = DeltaTable(str(table)).version()
        for _ in range(2):
            requests.append({"table": str(table), "options": drawn_options(rng, newest, feed=feed)})
    return requests


def by_delta(folder: Path, requests: Sequence[Request]) -> list[tuple[list[list[str]], str | None]]:
    """The batches of delta-spark, and the error that ended each stream."""
    (folder / "requests").write_text(json.dumps(requests))
    by_delta_spark("streams", str(folder / "requests"), str(folder / "out"))
    found: list[tuple[list[list[str]], str | None]] = json.loads((folder / "out").read_text())
    assert len(found) == len(requests)
    return found


def followed(request: Request) -> list[list[str]]:
    """The batches of `DeltaTable.follow`."""
    arguments = {NAMES[name]: value for name, value in request["options"].items()}
    reader = DeltaTable(request["table"]).follow(**arguments)
    found = [sorted(as_string(row) for row in batch.to_table().to_pylist()) for batch in reader]
    return [rows for rows in found if rows]


def streamed(spark: SparkSession, request: Request, checkpoint: Path, way: str) -> list[list[str]]:
    """The batches of a query on Spark."""
    found: list[list[str]] = []

    def keep(rows: DataFrame, batch_id: int) -> None:
        found.append(strings_of(rows))

    table, options = request["table"], request["options"]
    if way == "fast":
        stream = spark_jobs.stream(spark, table, **options).foreach_batch(keep)
        query = stream.trigger(availableNow=True).start(checkpoint)
    else:
        rows = spark.readStream.format("deltaward").options(**options).load(table)
        writer = rows.writeStream.foreachBatch(keep).option("checkpointLocation", str(checkpoint))
        query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return [rows for rows in found if rows]


def test_batches_are_those_of_delta_spark(
    tmp_path: Path, request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> None:
    """`make soak-streams` compares queries on Spark, too. Other tests compare a few with `follow`."""
    requests = histories(tmp_path, "streams", HISTORIES, columns=False)
    batches = 0
    for number, (one, (expected, problem)) in enumerate(
        zip(requests, by_delta(tmp_path, requests), strict=True)
    ):
        assert problem is None, one
        assert followed(one) == expected, one
        batches += len(expected)
        if SOAKING:
            # Of the two streams of a history, one goes each way.
            way, spark = ("fast", "source")[number % 2], request.getfixturevalue("spark")
            assert streamed(spark, one, tmp_path / f"c-{number}", way) == expected, (way, one)
    record_property("histories", HISTORIES)
    record_property("streams", len(requests))
    record_property("batches", batches)


def test_changes_of_columns_are_refused_where_delta_spark_refuses_them(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    requests = histories(tmp_path, "columns", rounds(usual=2, soak=30), columns=True)
    refused = 0
    for one, (expected, problem) in zip(requests, by_delta(tmp_path, requests), strict=True):
        if problem is None:
            assert followed(one) == expected, one
            continue
        refused += 1
        with pytest.raises(StreamSchemaChangedError):
            followed(one)
    record_property("streams", len(requests))
    record_property("refused by both", refused)
