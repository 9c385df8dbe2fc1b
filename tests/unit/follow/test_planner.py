"""Batches of a stream, against a model of delta-spark's rules and against what a table has."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable, Scan, write_deltalake
from delta_core.errors import TableChangedError
from delta_core.follow import BatchLimits, BatchPlanner, FollowOptions, StreamPosition
from delta_core.snapshot.snapshot import Snapshot
from tests.support.soak import SEED, rounds
from tests.support.stream_histories import random_history
from tests.support.stream_model import ModelOptions, RefusedError, batches

_CASES = range(rounds(usual=8, soak=200))


def planned(
    table: Path, position: StreamPosition, options: FollowOptions, limits: BatchLimits, *, replay: bool
) -> tuple[list[list[str]], bool]:
    """The paths of each batch, and whether the stream ended at a commit that it refuses."""
    found: list[list[str]] = []
    planner = BatchPlanner(DeltaTable(str(table)).snapshot, options)
    while True:
        try:
            batch = planner.plan_batch(position, limits)
        except TableChangedError:
            return found, True
        if replay:
            again = BatchPlanner(DeltaTable(str(table)).snapshot, options)
            assert again.between(batch.start, batch.position).files == batch.files
            planner = again
        if batch.files:
            found.append([file.path for file in batch.files])
        if batch.position == position:
            return found, False
        position = StreamPosition.from_json(batch.position.to_json())


@pytest.mark.parametrize("case", _CASES)
def test_batches_are_those_of_the_model(tmp_path: Path, case: int) -> None:
    rng = random.Random(f"{SEED}:{case}")
    random_history(tmp_path, rng, steps=8, changes=case % 2 == 1, vectors=rng.random() < 0.5)
    newest = DeltaTable(str(tmp_path)).version()
    for _ in range(4):
        max_files, max_bytes = rng.choice([(None, None), (1, None), (2, None), (3, 2000), (None, 1500)])
        flags = {
            name: rng.random() < 0.4 for name in ("ignore_deletes", "ignore_changes", "skip_change_commits")
        }
        model = ModelOptions(**flags, max_files=max_files, max_bytes=max_bytes)
        options = FollowOptions(**flags)
        version = rng.randint(0, newest)
        start = (version, -1, rng.random() < 0.5)
        expected, refused = [], False
        try:
            expected.extend(batches(tmp_path, start, newest, model))
        except RefusedError:
            refused = True
        position = StreamPosition(
            table_id=DeltaTable(str(tmp_path)).metadata().id, version=version, is_initial_snapshot=start[2]
        )
        limits = BatchLimits(max_files=max_files, max_bytes=max_bytes)
        found = planned(tmp_path, position, options, limits, replay=rng.random() < 0.3)
        assert found == (expected, refused), (start, model)


@pytest.mark.parametrize("case", range(rounds(usual=4, soak=60)))
def test_a_change_feed_leads_from_one_version_to_another(tmp_path: Path, case: int) -> None:
    rng = random.Random(f"{SEED}:feed:{case}")
    random_history(tmp_path, rng, steps=8, changes=True, vectors=case % 2 == 0, feed=True)
    newest = DeltaTable(str(tmp_path)).version()
    first = rng.randint(0, newest)
    rows = Counter(ids(Snapshot.load(DeltaTable(str(tmp_path)).store, version=first)))
    seen: Counter[int] = Counter()
    position = StreamPosition(
        table_id=DeltaTable(str(tmp_path)).metadata().id, version=first, is_initial_snapshot=True
    )
    found = list(DeltaTable(str(tmp_path)).follow(position, change_feed=True, max_files=rng.randint(1, 3)))
    for batch in found:
        for row in batch.to_table().to_pylist():
            seen[row["id"]] += 1 if row["_change_type"] in ("insert", "update_postimage") else -1
    assert +seen == Counter(ids(DeltaTable(str(tmp_path)).snapshot))
    assert not -seen
    since_first = [
        row
        for batch in DeltaTable(str(tmp_path)).follow(
            StreamPosition(table_id=position.table_id, version=first + 1), change_feed=True
        )
        for row in batch.to_table().to_pylist()
    ]
    expected = (
        DeltaTable(str(tmp_path)).load_cdf(starting_version=first + 1).read_all().to_pylist()
        if first < newest
        else []
    )
    assert sorted(map(str, since_first)) == sorted(map(str, expected))
    assert sum(rows.values()) >= 0


def ids(snapshot: Snapshot) -> list[int]:
    return [row for batch in Scan(snapshot, columns=["id"]).to_batches() for row in batch["id"].to_pylist()]


def test_every_row_of_appends_is_read_once(tmp_path: Path) -> None:
    for start in range(0, 50, 10):
        write_deltalake(str(tmp_path), pa.table({"id": range(start, start + 10)}), mode="append")
    table = DeltaTable(str(tmp_path))
    assert sorted(r for b in table.follow(max_files=2) for r in b.to_table()["id"].to_pylist()) == list(
        range(50)
    )
    later = [b.to_table()["id"].to_pylist() for b in table.follow(starting_version=3, max_files=1)]
    assert later == [list(range(30, 40)), list(range(40, 50))]
