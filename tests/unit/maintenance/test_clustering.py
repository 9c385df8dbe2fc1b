from __future__ import annotations

import gc
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import numpy as np
import pyarrow as pa
import pytest

from delta_core.errors import (
    ConcurrentDeleteDeleteError,
    ConfigurationError,
    ExpressionError,
    InvalidTableError,
    MaintenanceError,
)
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.maintenance.apply_rewrite import apply_rewrite
from delta_core.maintenance.clustering import ZOrderPlan, external, plan_z_order
from delta_core.maintenance.compaction import plan_compaction
from delta_core.maintenance.vacuum import plan_vacuum
from delta_core.run import Run
from delta_core.scan.scan import Scan
from delta_core.snapshot.history import history
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table import DeltaTable
from tests.support.repository import ROOT
from tests.support.z_order_case import check_case

MakeTable = Callable[..., Path]


@pytest.fixture
def spill_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go in this test."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def random_points(tmp_path: Path) -> Path:
    """Ten files of points at random, each of which covers the whole area."""
    path = tmp_path / "points"
    numbers = np.random.default_rng(5)
    for _ in range(10):
        x, y = numbers.integers(0, 10_000, 2_000), numbers.integers(0, 10_000, 2_000)
        deltalake.write_deltalake(str(path), pa.table({"x": x, "y": y, "n": [1.5] * 2_000}), mode="append")
    return path


def skipped(snapshot: Snapshot, predicate: str) -> float:
    """The share of files that a query does not have to read."""
    report = Scan(snapshot, predicate=predicate).report
    return 1 - report.files_after_statistics / report.files_total


@pytest.mark.parametrize("case", range(4))
def test_random_tables_keep_their_rows_and_get_the_order(
    case: int, rng: random.Random, tmp_path: Path
) -> None:
    check_case(rng, tmp_path / f"t{case}")


@pytest.mark.parametrize("memory", [None, 100_000])
def test_a_box_skips_most_files(random_points: Path, helpers: Any, memory: int | None) -> None:
    before = helpers.snapshot_of(random_points)
    box = "x BETWEEN 1000 AND 1500 AND y BETWEEN 7000 AND 7500"
    assert skipped(before, box) == 0
    plan = plan_z_order(before, ["x", "y"], target_size_bytes=before.files.total_bytes // 16)
    result = apply_rewrite(before, plan, memory_limit_bytes=memory)
    assert result.groups[0].spilled == (memory is not None)
    after = helpers.snapshot_of(random_points)
    assert after.files.num_files == len(result.groups[0].files) >= 16
    assert skipped(after, box) >= 0.8
    assert skipped(after, "x < 500") >= 0.5
    assert skipped(after, "y < 500") >= 0.5
    files = deltalake.DeltaTable(str(random_points)).file_uris()
    assert duckdb.sql(f"SELECT count(*), sum(n) FROM read_parquet({files!r})").fetchone() == (20_000, 30_000)


def test_the_commit_looks_like_delta_sparks_and_changes_no_data(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(commits=5)
    before = helpers.content(path)
    snapshot = helpers.snapshot_of(path)
    result = apply_rewrite(snapshot, plan_z_order(snapshot, ["Day", "id"]))
    assert result.version == 5
    assert helpers.content(path) == before
    actions = [json.loads(line) for line in (path / "_delta_log" / f"{5:020}.json").read_text().splitlines()]
    added = [action["add"] for action in actions if "add" in action]
    assert not any(action["dataChange"] for action in added)
    assert not any(action["remove"]["dataChange"] for action in actions if "remove" in action)
    tags = added[0]["tags"]
    assert (tags["ZCUBE_ZORDER_BY"], tags["ZCUBE_ZORDER_CURVE"]) == ('["day","id"]', "zorder")
    assert len(tags["ZCUBE_ID"]) == 36
    info = history(helpers.snapshot_of(path), limit=1)[0].commit_info
    assert info.operation == "OPTIMIZE"
    assert info.operation_parameters["predicate"] == "[]"
    assert info.operation_parameters["zOrderBy"] == '["day","id"]'
    assert (info.operation_metrics["numRemovedFiles"], info.operation_metrics["numAddedFiles"]) == ("5", "1")
    stats = result.metrics["zOrderStats"]
    assert (stats["inputOtherFiles"]["num"], stats["inputCubeFiles"]["num"]) == (5, 0)
    assert (stats["mergedFiles"]["num"], stats["numOutputCubes"]) == (5, 1)
    assert result.metrics["numFilesRemoved"] == 5
    assert result.rows == 50


def test_only_what_has_enough_new_rows_is_rewritten_again(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(commits=4, rows_each=100, partitioned=True)
    table = DeltaTable(str(path))
    assert table.optimize.z_order(["id", "day"])["partitionsOptimized"] == 2
    version = table.version()
    assert table.optimize.z_order(["id", "day"])["numFilesRemoved"] == 0
    assert table.version() == version, "nothing new, no commit"
    new = helpers.rows(5000, 4)
    deltalake.write_deltalake(
        str(path), new.filter(pa.compute.equal(new["part"], "a")), mode="append", partition_by=["part"]
    )
    assert table.optimize.z_order(["id", "day"], min_new_fraction=0.9)["numFilesRemoved"] == 0
    plan = table.optimize.plan_z_order(["id", "day"])
    assert [dict(group.partition_values) for group in plan.groups] == [{"part": "a"}]
    assert (plan.groups[0].ordered_files, len(plan.groups[0].files), plan.groups[0].cubes) == (1, 2, 1)
    metrics = table.optimize.z_order(["id", "day"])
    assert metrics["zOrderStats"]["inputCubeFiles"]["num"] == 1
    assert table.optimize.plan_z_order(["id", "day"]).is_empty
    assert len(table.optimize.plan_z_order(["id", "day"], full=True).groups) == 2
    assert len(table.optimize.plan_z_order(["day", "id"]).groups) == 2, "another order"
    assert len(table.optimize.plan_z_order(["id", "day"], "part = 'a'", full=True).groups) == 1


def test_compacted_files_are_out_of_order_again(make_table: MakeTable, helpers: Any) -> None:
    path = make_table()
    table = DeltaTable(str(path))
    table.optimize.z_order(["id"])
    deltalake.write_deltalake(str(path), helpers.rows(900, 5), mode="append")
    snapshot = helpers.snapshot_of(path)
    apply_rewrite(snapshot, plan_compaction(snapshot))
    assert not table.optimize.plan_z_order(["id"]).is_empty


def test_what_cannot_be_ordered_by_is_refused_with_a_fix(make_table: MakeTable, helpers: Any) -> None:
    snapshot = helpers.snapshot_of(make_table(partitioned=True, commits=1))
    for columns, kind, text in (
        ([], ConfigurationError, "at least one column"),
        (["part"], ConfigurationError, "partition column"),
        (["id", "ID"], ConfigurationError, "twice"),
        (["nope"], ConfigurationError, "no column 'nope'"),
        ([1], ConfigurationError, "list of strings"),
        ("id", ConfigurationError, "list of strings"),
        (["point.a"], ConfigurationError, "fields of structs"),
        (["tags"], ConfigurationError, "no order"),
        (["point"], ConfigurationError, "no order"),
        ([f"c{n}" for n in range(11)], ConfigurationError, "limit is 10"),
    ):
        with pytest.raises(kind, match=text):
            plan_z_order(snapshot, columns)
    with pytest.raises(ExpressionError, match="not partitioned by: id"):
        plan_z_order(snapshot, ["day"], predicate="id = 1")
    for target, fraction in ((0, 0.0), (1, 1.5), (1, -0.1)):
        with pytest.raises(ConfigurationError):
            plan_z_order(snapshot, ["id"], target_size_bytes=target, min_new_fraction=fraction)
    with pytest.raises(ConfigurationError, match="memory"):
        apply_rewrite(snapshot, plan_z_order(snapshot, ["id"]), memory_limit_bytes=0)


def test_a_column_without_statistics_is_refused(tmp_path: Path, helpers: Any) -> None:
    for name, configuration in (
        ("count", {"delta.dataSkippingNumIndexedCols": "1"}),
        ("names", {"delta.dataSkippingStatsColumns": "id"}),
    ):
        path = tmp_path / name
        deltalake.write_deltalake(str(path), helpers.rows(0, 5), configuration=configuration)
        snapshot = helpers.snapshot_of(path)
        assert not plan_z_order(snapshot, ["id"]).is_empty
        with pytest.raises(ConfigurationError, match=r"no statistics of day.*dataSkippingStatsColumns"):
            plan_z_order(snapshot, ["id", "day"])


def test_a_plan_survives_json_and_is_applied_from_it(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(partitioned=True)
    snapshot = helpers.snapshot_of(path)
    plan = plan_z_order(snapshot, ["id"], predicate="part = 'a'")
    loaded = ZOrderPlan.from_json(json.loads(json.dumps(plan.to_json())))
    assert loaded == plan
    assert plan.predicted() == {
        "files_removed": 4,
        "files_added": 1,
        "bytes_removed": plan.total_bytes,
        "bytes_added": plan.total_bytes,
        "partitions": 1,
    }
    assert apply_rewrite(snapshot, loaded).metrics["numFilesRemoved"] == 4
    for document in ({}, {"plan": "compaction"}, {"plan": "z_order", "format_version": 1}):
        with pytest.raises(MaintenanceError):
            ZOrderPlan.from_json(document)


def test_a_planned_file_that_is_gone_is_a_conflict(make_table: MakeTable, helpers: Any) -> None:
    path = make_table()
    snapshot = helpers.snapshot_of(path)
    plan = plan_z_order(snapshot, ["id"])
    deltalake.DeltaTable(str(path)).delete("id < 10")
    before = data_files(path)
    with pytest.raises(ConcurrentDeleteDeleteError, match="no longer in the table"):
        apply_rewrite(snapshot, plan)
    assert data_files(path) == before
    other = helpers.snapshot_of(make_table(name="other"))
    with pytest.raises(MaintenanceError, match="another table"):
        apply_rewrite(other, plan)


def test_a_delete_while_rows_are_sorted_conflicts_and_leaves_no_new_file(
    make_table: MakeTable, helpers: Any
) -> None:
    path = make_table()

    class Deleting(InlineExecutor):
        def map(self, function: Any, tasks: Any) -> Iterator[Any]:
            results = list(super().map(function, tasks))
            deltalake.DeltaTable(str(path)).delete("id < 10")
            yield from results

    snapshot = helpers.snapshot_of(path)
    with pytest.raises(ConcurrentDeleteDeleteError):
        apply_rewrite(snapshot, plan_z_order(snapshot, ["id"]), run=Run(executor=Deleting(1)))
    now = helpers.snapshot_of(path)
    live = set(now.files.to_table(["path"])["path"].to_pylist())
    old = set(snapshot.files.to_table(["path"])["path"].to_pylist())
    assert data_files(path) == live | old


def test_an_append_while_rows_are_sorted_does_not_disturb(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(commits=3)
    snapshot = helpers.snapshot_of(path)
    plan = plan_z_order(snapshot, ["id"])
    deltalake.write_deltalake(str(path), helpers.rows(500, 5), mode="append")
    assert apply_rewrite(snapshot, plan).version == 4
    assert len(helpers.content(path)) == 35


@pytest.mark.parametrize("failing", ["sample_files", "spill_runs", "write_ranges"])
def test_a_task_that_fails_leaves_the_table_and_no_spilled_row(
    random_points: Path, helpers: Any, spill_folder: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    seen: list[int] = []
    real = getattr(external, failing)

    def broken(task: Any) -> Any:
        if failing == "write_ranges" and task["part"] == 0:
            return real(task)
        if failing != "write_ranges":
            real(task)
        seen.append(len(list(spill_folder.rglob("*.arrow"))))
        raise InvalidTableError("no more", cause="the test says so", fix="-")

    monkeypatch.setattr(f"delta_core.maintenance.clustering.execute.{failing}", broken)
    snapshot = helpers.snapshot_of(random_points)
    before, content = data_files(random_points), helpers.content(random_points)
    plan = plan_z_order(snapshot, ["x"], target_size_bytes=snapshot.files.total_bytes // 4)
    with pytest.raises(InvalidTableError, match="no more"):
        apply_rewrite(snapshot, plan, memory_limit_bytes=50_000, run=Run(executor=InlineExecutor(1)))
    assert (seen[-1] > 0) == (failing != "sample_files"), "rows had been spilled"
    assert list(spill_folder.iterdir()) == []
    assert helpers.snapshot_of(random_points).version == snapshot.version
    assert helpers.content(random_points) == content
    assert data_files(random_points) == before, "the files that were written are deleted again"


@pytest.mark.slow
def test_files_of_a_run_that_was_killed_are_listed_by_vacuum(
    random_points: Path, helpers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("delta_core.maintenance.clustering.execute.delete_unused", lambda *_: None)
    real = external.write_ranges

    def killed(task: Any) -> Any:
        real(task)
        raise KeyboardInterrupt

    monkeypatch.setattr("delta_core.maintenance.clustering.execute.write_ranges", killed)
    snapshot = helpers.snapshot_of(random_points)
    before = data_files(random_points)
    with pytest.raises(KeyboardInterrupt):
        apply_rewrite(snapshot, plan_z_order(snapshot, ["x"]), memory_limit_bytes=50_000)
    left = data_files(random_points) - before
    assert left
    helpers.age_files(random_points, days=30)
    listed = plan_vacuum(helpers.snapshot_of(random_points))
    assert {file.path for file in listed.files} == left


def test_equal_rows_beyond_the_memory_go_out_unsorted(tmp_path: Path, helpers: Any) -> None:
    path = tmp_path / "same"
    for start in range(3):
        rows = pa.table({"x": [7] * 5000, "id": range(start * 5000, start * 5000 + 5000)})
        deltalake.write_deltalake(str(path), rows, mode="append")
    snapshot = helpers.snapshot_of(path)
    result = apply_rewrite(snapshot, plan_z_order(snapshot, ["x"]), memory_limit_bytes=100_000)
    assert result.groups[0].spilled
    assert sorted(DeltaTable(str(path)).to_pyarrow_table()["id"].to_pylist()) == list(range(15_000))


def test_rows_that_turn_out_larger_than_guessed_go_over_disk(tmp_path: Path, helpers: Any) -> None:
    path = tmp_path / "squeezed"
    rows = pa.table({name: [7] * 100_000 for name in ("x", "y", "z")})
    deltalake.write_deltalake(str(path), rows, mode="append")
    snapshot = helpers.snapshot_of(path)
    assert snapshot.files.total_bytes < 50_000
    result = apply_rewrite(snapshot, plan_z_order(snapshot, ["x"]), memory_limit_bytes=1 << 20)
    assert result.groups[0].spilled
    assert result.rows == 100_000


_MEASURED = """
import sys, json
import pyarrow as pa
from delta_core.maintenance.clustering import plan_z_order
from delta_core.maintenance.apply_rewrite import apply_rewrite
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
pa.set_memory_pool(pa.system_memory_pool())

def planned(path):
    snapshot = Snapshot.load(LocalLogStore(path))
    return snapshot, plan_z_order(snapshot, ["x", "y"], target_size_bytes=4 << 20)

# What the library loads when it is first needed is no memory of the rows'.
apply_rewrite(*planned(sys.argv[3]))
snapshot, plan = planned(sys.argv[1])

def peak():
    # The resource module's figure would count what the parent had.
    return next(int(l.split()[1]) << 10 for l in open("/proc/self/status") if l.startswith("VmHWM"))

before = peak()
result = apply_rewrite(snapshot, plan, memory_limit_bytes=int(sys.argv[2]))
grown = peak() - before
print(json.dumps({"arrow": pa.default_memory_pool().max_memory(), "grown": grown,
                  "spilled": result.groups[0].spilled, "rows": result.rows}))
"""


@pytest.mark.slow
def test_memory_stays_below_the_limit_for_a_table_of_five_times_as_much(tmp_path: Path) -> None:
    path, small, limit = tmp_path / "large", tmp_path / "small", 22 << 20
    numbers = np.random.default_rng(3)
    size = 0
    for _ in range(24):
        rows = pa.table(
            {
                "x": numbers.integers(0, 1 << 40, 50_000),
                "y": numbers.random(50_000),
                "text": pa.array([f"{n:060x}" for n in numbers.integers(0, 1 << 60, 50_000)]),
            }
        )
        size += rows.nbytes
        deltalake.write_deltalake(str(path), rows, mode="append")
    assert size > 4 * limit
    for _ in range(2):
        deltalake.write_deltalake(str(small), rows.slice(0, 100), mode="append")
    del rows
    gc.collect()
    answer = subprocess.run(
        [sys.executable, "-c", _MEASURED, str(path), str(limit), str(small)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    seen = json.loads(answer.stdout)
    assert seen["spilled"]
    assert seen["rows"] == 1_200_000
    assert seen["arrow"] <= limit
    assert seen["grown"] <= limit + (96 << 20), "numpy, the sample and the Parquet library come on top"


def test_the_examples_in_the_documentation_run() -> None:
    text = (ROOT / "docs" / "clustering.md").read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(examples) == 2
    program = "\n".join(examples)
    done = subprocess.run([sys.executable, "-c", program], check=False, cwd=ROOT, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.soak
@pytest.mark.extra
@pytest.mark.spark
def test_rows_and_skipping_hold_against_delta_sparks(tmp_path: Path, seed: str) -> None:
    program = [sys.executable, "benchmarks/soak/z_order.py", "--cases", "0", "--lock-step", "1"]
    answer = subprocess.run(
        [*program, "--seed", seed, "--output", str(tmp_path / "out.json")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={key: value for key, value in os.environ.items() if not key.startswith("SPARK_")},
    )
    assert answer.returncode == 0, answer.stderr[-4000:]
    assert json.loads((tmp_path / "out.json").read_text())["against_delta_spark"]["passed"] == 1


def data_files(path: Path) -> set[str]:
    return {str(f.relative_to(path)) for f in path.rglob("*.parquet") if "_delta_log" not in f.parts}
