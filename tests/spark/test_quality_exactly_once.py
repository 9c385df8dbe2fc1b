"""Every row of a gated batch is in exactly one place, and a bad batch is in none that a reader sees."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from delta_core.errors import ConcurrentAppendError
from delta_core.jobs.job_result import JobStatus
from spark_jobs.writer import write as write_module
from tests.spark.test_quality_gate import load
from tests.support.quality import BETWEEN, IN_SET, NOT_NULL, UNIQUE, expect, quality
from tests.support.soak import rounds
from tests.support.spark import rows_of

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POOL = [
    (expect(NOT_NULL, column="value"), lambda row, _: row["value"] is None),
    (
        expect(BETWEEN, column="value", min_value=0),
        lambda row, _: row["value"] is not None and row["value"] < 0,
    ),
    (expect(IN_SET, column="name", value_set=["a", "b"]), lambda row, _: row["name"] not in (None, "a", "b")),
    (expect(UNIQUE, column="key"), lambda row, rows: sum(r["key"] == row["key"] for r in rows) > 1),
]


def batch(rng: random.Random, first: int) -> list[dict[str, Any]]:
    return [
        {
            "id": first + number,
            "key": rng.choice([first + number, first]),
            "value": rng.choice([None, -1, 0, 1, 2]),
            "name": rng.choice([None, "a", "b", "c"]),
            "part": rng.choice([None, 1, 2]),
        }
        for number in range(rng.randint(0, 20))
    ]


def columns(rows: list[dict[str, Any]]) -> dict[str, pa.Array]:
    types = {
        "id": pa.int64(),
        "key": pa.int64(),
        "value": pa.int32(),
        "name": pa.string(),
        "part": pa.int32(),
    }
    return {name: pa.array([row[name] for row in rows], kind) for name, kind in types.items()}


def ids(table: Path | str, *, version: int | None = None) -> Counter[int]:
    try:
        return Counter(row["id"] for row in rows_of(table, version=version))
    except TableNotFoundError:
        return Counter()


def test_published_and_quarantined_rows_are_the_input(
    spark: SparkSession, tmp_path: Path, rng: random.Random
) -> None:
    table, aside = tmp_path / "t", tmp_path / "t" / "_deltaward" / "quarantine"
    published: Counter[int] = Counter()
    quarantined: Counter[int] = Counter()
    seen = Counter[str]()
    for number in range(rounds(usual=8, soak=200)):
        rows = batch(rng, number * 100)
        chosen = rng.sample(POOL, rng.randint(1, len(POOL)))
        policy = rng.choice(["fail", "warn", "quarantine", "quarantine"])
        limit = rng.choice([None, None, 3])
        bad = {row["id"] for row in rows if any(breaks(row, rows) for _, breaks in chosen)}
        suite = quality(*[item for item, _ in chosen], on_failure=policy, max_bad_rows=limit)
        result = load(
            spark, table, key=f"batch {number}", rows=columns(rows), quality=suite, partition_by=["part"]
        )
        outcome = result.output["quality"]
        label = f"batch {number}: {policy}, {limit}, {outcome}"
        seen[outcome["outcome"]] += 1
        refused = bool(bad) and (policy == "fail" or (limit is not None and len(bad) > limit))
        assert (result.status is JobStatus.FAILED) is refused, label
        assert (outcome["rows"], outcome["bad_rows"]) == (len(rows), len(bad)), label
        if not refused:
            assert outcome["published_rows"] + outcome["quarantined_rows"] == len(rows), label
            apart = bad if policy == "quarantine" else set()
            published.update(row["id"] for row in rows if row["id"] not in apart)
            quarantined.update(apart)
        assert ids(table) == published, label
        assert ids(aside) == quarantined, label
    assert len(seen) >= 2, seen


def _interrupted(error: BaseException) -> Any:
    def commit(*_: Any, **__: Any) -> None:
        raise error

    return commit


def test_a_retry_after_the_quarantines_commit_puts_every_row_in_one_place(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, aside = tmp_path / "t", tmp_path / "t" / "_deltaward" / "quarantine"
    suite = quality(expect(NOT_NULL, column="value"), on_failure="quarantine")
    rows = [
        {"id": number, "key": number, "value": None if number < 3 else 1, "name": "a", "part": 1}
        for number in range(6)
    ]
    with monkeypatch.context() as patch:
        # As a kill between the two commits leaves things: nothing is cleaned up.
        patch.setattr(write_module, "commit_new_files", _interrupted(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            load(spark, table, key="a", rows=columns(rows), quality=suite)
    assert (ids(table), ids(aside)) == (Counter(), Counter([0, 1, 2]))

    rows[0]["value"] = 7  # the source was corrected in between
    result = load(spark, table, key="a", rows=columns(rows), quality=suite)

    assert result.output["quality"]["quarantined_rows"] == 2
    assert (ids(table), ids(aside)) == (Counter([0, 3, 4, 5]), Counter([1, 2]))
    assert load(spark, table, key="a", rows=columns(rows), quality=suite).already_applied
    assert ids(aside) == Counter([1, 2])


def test_a_batch_that_passes_at_last_leaves_the_quarantine(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, aside = tmp_path / "t", tmp_path / "t" / "_deltaward" / "quarantine"
    suite = quality(expect(NOT_NULL, column="value"), on_failure="quarantine")
    row = {"id": 1, "key": 1, "value": None, "name": "a", "part": 1}
    load(spark, table, key="other", rows=columns([row | {"id": 9}]), quality=suite)
    with monkeypatch.context() as patch:
        patch.setattr(write_module, "commit_new_files", _interrupted(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            load(spark, table, key="a", rows=columns([row]), quality=suite)
    assert ids(aside) == Counter([1, 9])
    result = load(spark, table, key="a", rows=columns([row | {"value": 1}]), quality=suite)
    assert result.output["quality"]["outcome"] == "passed"
    assert (ids(table), ids(aside)) == (Counter([1]), Counter([9]))


def test_a_publishing_commit_that_lost_takes_its_rows_out_of_quarantine(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, aside = tmp_path / "t", tmp_path / "t" / "_deltaward" / "quarantine"
    suite = quality(expect(NOT_NULL, column="value"), on_failure="quarantine")
    row = {"id": 1, "key": 1, "value": None, "name": "a", "part": 1}
    with monkeypatch.context() as patch:
        patch.setattr(write_module, "commit_new_files", _interrupted(ConcurrentAppendError("lost")))
        result = load(spark, table, key="a", rows=columns([row]), quality=suite)
    assert result.error is not None
    assert result.error.code == "CONCURRENT_APPEND"
    assert ids(aside) == Counter()
    load(spark, table, key="a", rows=columns([row]), quality=suite)
    assert ids(aside) == Counter([1])


def test_a_reader_never_sees_a_bad_batch(spark: SparkSession, tmp_path: Path, rng: random.Random) -> None:
    table = tmp_path / "t"
    good, bad = expect(NOT_NULL, column="value"), -999
    suite = quality(good, expect(BETWEEN, column="value", min_value=0))
    load(spark, table, rows=columns([{"id": 0, "key": 0, "value": 1, "name": "a", "part": 1}]), quality=suite)
    over, polls, wrong = threading.Event(), Counter[int](), []

    def read() -> None:
        while not over.is_set():
            reader = DeltaTable(str(table))
            values = reader.to_pyarrow_table(columns=["value"]).column("value").to_pylist()
            polls[reader.version()] += 1
            if bad in values or None in values:
                wrong.append(reader.version())
            time.sleep(0.02)

    thread = threading.Thread(target=read)
    thread.start()
    expected = 1
    try:
        for number in range(1, 16):
            count, broken = rng.randint(1, 50), number % 3 == 0
            rows = [
                {"id": number * 100 + i, "key": i, "value": 1, "name": "a", "part": i % 2}
                for i in range(count)
            ]
            if broken:
                rows[rng.randrange(count)]["value"] = rng.choice([bad, None])
            expected += 0 if broken else count
            result = load(spark, table, rows=columns(rows), quality=suite, partition_by=None)
            assert (result.status is JobStatus.FAILED) is broken, result.error
    finally:
        over.set()
        thread.join()
    assert not wrong
    assert len(polls) >= 5, polls
    newest = DeltaTable(str(table)).version()
    assert newest == 10
    for version in range(newest + 1):
        assert {row["value"] for row in rows_of(table, version=version)} == {1}
    assert len(rows_of(table)) == expected
