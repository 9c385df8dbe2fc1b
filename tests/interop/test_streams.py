"""Streams of random tables: the batches are those of delta-spark with the same limits."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from delta_core import DeltaTable
from tests.support.delta_spark import by_delta_spark
from tests.support.delta_spark_streams import as_string
from tests.support.soak import SEED, rounds
from tests.support.stream_histories import random_history

pytestmark = [pytest.mark.extra, pytest.mark.spark]

NAMES = {
    "maxFilesPerTrigger": "max_files",
    "maxBytesPerTrigger": "max_bytes",
    "skipChangeCommits": "skip_change_commits",
    "ignoreChanges": "ignore_changes",
    "ignoreDeletes": "ignore_deletes",
    "startingVersion": "starting_version",
    "readChangeFeed": "change_feed",
}


def drawn_options(rng: random.Random, newest: int, *, feed: bool) -> dict[str, Any]:
    options: dict[str, Any] = rng.choice(
        [{}, {"maxFilesPerTrigger": 1}, {"maxFilesPerTrigger": 2}, {"maxBytesPerTrigger": 1500}]
    )
    if rng.random() < 0.5:
        options = {**options, "startingVersion": rng.randint(0, newest)}
    if feed:
        return {**options, "readChangeFeed": True}
    return {**options, rng.choice(["skipChangeCommits", "ignoreChanges"]): True}


def test_batches_are_those_of_delta_spark(tmp_path: Path) -> None:
    requests = []
    for case in range(rounds(usual=4, soak=30)):
        rng = random.Random(f"{SEED}:streams:{case}")
        table = tmp_path / f"t{case}"
        feed = case % 2 == 1
        random_history(table, rng, steps=7, changes=True, vectors=rng.random() < 0.5, feed=feed)
        newest = DeltaTable(str(table)).version()
        for _ in range(2):
            options = drawn_options(rng, newest, feed=feed)
            requests.append({"table": str(table), "options": options})
    (tmp_path / "requests").write_text(json.dumps(requests))
    by_delta_spark("streams", str(tmp_path / "requests"), str(tmp_path / "out"))
    expected = json.loads((tmp_path / "out").read_text())
    assert len(expected) == len(requests)
    for request, batches in zip(requests, expected, strict=True):
        arguments = {NAMES[name]: value for name, value in request["options"].items()}
        reader = DeltaTable(request["table"]).follow(**arguments)
        ours = [sorted(as_string(row) for row in batch.to_table().to_pylist()) for batch in reader]
        assert [rows for rows in ours if rows] == batches, request
