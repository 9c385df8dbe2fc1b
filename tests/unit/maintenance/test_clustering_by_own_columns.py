"""OPTIMIZE of tables that have clustering columns (PROTOCOL.md, "Clustered Table")."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable as OtherReader

from delta_core import CommitProperties, DeltaTable, write_deltalake
from delta_core.errors import (
    ConcurrentDeleteDeleteError,
    ConcurrentModificationError,
    ConfigurationError,
    MaintenanceError,
)
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_spec import JobSpec, TableRef
from delta_core.jobs.run_job import run_job
from delta_core.maintenance.apply_rewrite import apply_rewrite
from delta_core.maintenance.clone import clone_table
from delta_core.maintenance.clustering import ClusteringPlan, cluster_plan, plan_clustering
from delta_core.maintenance.observe import MaintenanceRules, decide, observe
from delta_core.run import Run
from delta_core.scan.scan import Scan
from delta_core.snapshot.snapshot import Snapshot

SCHEMA = pa.schema(
    [
        ("x", pa.int64()),
        ("y", pa.float64()),
        ("s", pa.struct([("name", pa.string()), ("deep", pa.struct([("n", pa.int32())]))])),
        ("text", pa.string()),
    ]
)


def rows(seed: int, count: int = 500) -> pa.Table:
    numbers = np.random.default_rng(seed)
    x, y = numbers.integers(0, 10_000, count), numbers.random(count)
    inner = [
        None if n % 11 == 0 else {"name": f"n{n % 97:02}", "deep": None if n % 13 == 0 else {"n": n % 1000}}
        for n in x.tolist()
    ]
    return pa.table({"x": x, "y": y, "s": inner, "text": [str(n) for n in x.tolist()]}, schema=SCHEMA)


def make(path: Path, cluster_by: Any = ("x", "y"), *, commits: int = 4, **configuration: str) -> DeltaTable:
    table = DeltaTable.create(path, SCHEMA, cluster_by=list(cluster_by), configuration=configuration)
    for seed in range(commits):
        write_deltalake(table, rows(seed), mode="append")
    return DeltaTable(path)


def sorted_rows(table: DeltaTable | OtherReader) -> list[str]:
    return sorted(map(str, table.to_pyarrow_table().to_pylist()))


def files(table: DeltaTable) -> list[dict[str, Any]]:
    columns = ["path", "clustering_provider", "tags"]
    return [
        {**row, "tags": dict(row["tags"] or ())} for row in table.snapshot.files.to_table(columns).to_pylist()
    ]


def skipped(table: DeltaTable, predicate: str) -> float:
    report = Scan(table.snapshot, predicate=predicate).report
    return 1 - report.files_after_statistics / report.files_total


@pytest.mark.parametrize("memory", [None, 60_000])
def test_rows_come_into_the_order_of_the_columns(tmp_path: Path, memory: int | None) -> None:
    table = make(tmp_path, commits=6)
    before = sorted_rows(table)
    box = "x BETWEEN 1000 AND 1500 AND y BETWEEN 0.7 AND 0.75"
    assert skipped(table, box) == 0
    target = table.snapshot.files.total_bytes // 16
    metrics = table.optimize.cluster(target_size_bytes=target, memory_limit_bytes=memory)
    assert metrics["numFilesRemoved"] == 6
    assert metrics["numFilesAdded"] >= 14
    assert sorted_rows(table) == before == sorted_rows(OtherReader(tmp_path))
    assert skipped(table, box) >= 0.75
    assert skipped(table, "x < 500") >= 0.5
    assert skipped(table, "y < 0.05") >= 0.5


def test_fewer_files_are_read_than_in_z_order(tmp_path: Path) -> None:
    numbers = np.random.default_rng(5)
    points = pa.table({name: numbers.integers(0, 1_000_000, 50_000) for name in ("x", "y")})
    read = []
    for name, columns in (("curve", ["x", "y"]), ("z", None)):
        write_deltalake(tmp_path / name, points, cluster_by=columns)
        table = DeltaTable(tmp_path / name)
        target = table.snapshot.files.total_bytes // 50
        if columns:
            table.optimize.cluster(target_size_bytes=target)
        else:
            table.optimize.z_order(["x", "y"], target_size_bytes=target)
        corners = np.random.default_rng(7).integers(0, 900_000, (40, 2)).tolist()
        boxes = [f"x BETWEEN {a} AND {a + 50_000} AND y BETWEEN {b} AND {b + 50_000}" for a, b in corners]
        read.append(sum(1 - skipped(table, box) for box in boxes))
    assert read[0] <= 0.8 * read[1]


def test_the_log_says_what_liquid_clustering_says(tmp_path: Path) -> None:
    table = make(tmp_path, ["x", ["s", "deep", "n"]])
    table.optimize.cluster()
    (file,) = files(table)
    assert file["clustering_provider"] == "liquid"
    newest = (tmp_path / "_delta_log" / f"{table.version():020}.json").read_text()
    assert '"dataChange":true' not in newest
    assert newest.count('"dataChange":false') == 5
    assert file["tags"]["ZCUBE_ZORDER_BY"] == '["x","s.deep.n"]'
    assert len(file["tags"]["ZCUBE_ID"]) == 36
    info = table.history(1)[0].commit_info
    assert info.operation == "OPTIMIZE"
    parameters = info.operation_parameters
    assert (parameters["clusterBy"], parameters["zOrderBy"]) == ('["x","s.deep.n"]', "[]")
    assert (parameters["isFull"], parameters["auto"]) == ("false", "false")


def test_an_odd_name_is_written_as_spark_writes_it(tmp_path: Path) -> None:
    schema = pa.schema([("a b", pa.int64()), ("1", pa.int64()), ("_c1", pa.int64())])
    table = DeltaTable.create(
        tmp_path,
        schema,
        cluster_by=["a b", "1", "_c1"],
        configuration={"delta.columnMapping.mode": "name"},
    )
    write_deltalake(table, pa.table([[2, 1], [1, 2], [0, 0]], schema=schema), mode="append")
    table = DeltaTable(tmp_path)
    table.optimize.cluster()
    assert files(table)[0]["tags"]["ZCUBE_ZORDER_BY"] == '["`a b`","`1`","_c1"]'
    assert table.optimize.plan_cluster().is_empty


def test_nothing_new_no_commit_and_new_files_join_the_cube(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.optimize.cluster()
    version = table.version()
    assert table.optimize.cluster()["numFilesRemoved"] == 0
    assert table.version() == version
    write_deltalake(table, rows(9, 10), mode="append")
    assert table.optimize.cluster(min_new_fraction=0.5)["numFilesRemoved"] == 0
    metrics = table.optimize.cluster()
    stats = metrics["clusteringStats"]
    assert (stats["inputZCubeFiles"]["numFiles"], stats["inputOtherFiles"]["numFiles"]) == (1, 1)
    assert (stats["inputNumZCubes"], stats["numOutputZCubes"], stats["mergedFiles"]["numFiles"]) == (1, 1, 2)
    assert len(files(table)) == 1


def test_a_full_cube_is_left_alone_and_much_is_cut_into_cubes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path)
    monkeypatch.setattr(cluster_plan, "FULL_CUBE_FILES", 2)
    before = sorted_rows(table)
    one = table.snapshot.files.total_bytes // 4
    metrics = table.optimize.cluster(target_size_bytes=int(one * 0.7))
    assert metrics["numBins"] == 2, "four files of 1 in cubes of at most 2.1"
    assert metrics["partitionsOptimized"] == 1
    old = {file["path"] for file in files(table)}
    assert len({file["tags"]["ZCUBE_ID"] for file in files(table)}) == 2
    write_deltalake(table, rows(9), mode="append")
    metrics = table.optimize.cluster(target_size_bytes=int(one * 0.7))
    assert metrics["numFilesRemoved"] == 1
    assert old < {file["path"] for file in files(table)}
    assert table.optimize.plan_cluster(target_size_bytes=int(one * 0.7)).is_empty
    assert len(sorted_rows(table)) == len(before) + 500


def test_other_columns_and_other_engines_are_left_alone_unless_in_full(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.optimize.cluster()
    table.alter.cluster_by(["y"])
    assert table.optimize.plan_cluster().is_empty
    plan = table.optimize.plan_cluster(full=True)
    assert (plan.num_files, plan.groups[0].ordered_files) == (1, 0)
    table.optimize.cluster(full=True)
    assert files(table)[0]["tags"]["ZCUBE_ZORDER_BY"] == '["y"]'
    assert table.history(1)[0].commit_info.operation_parameters["isFull"] == "true"
    newest = tmp_path / "_delta_log" / f"{table.version():020}.json"
    newest.write_text(newest.read_text().replace('"liquid"', '"somebody"'))
    other = DeltaTable(tmp_path)
    assert other.optimize.plan_cluster().is_empty
    assert other.optimize.plan_cluster(full=True).num_files == 1


def test_rows_from_writers_are_not_clustered_and_moved_ones_stay_so(tmp_path: Path) -> None:
    table = make(tmp_path, **{"delta.enableDeletionVectors": "true"})
    assert {file["clustering_provider"] for file in files(table)} == {None}
    table.optimize.cluster()
    table.delete("x < 100")
    assert [file["clustering_provider"] for file in files(table)] == ["liquid"]
    table.optimize.purge()
    assert [file["clustering_provider"] for file in files(table)] == ["liquid"]
    assert table.optimize.plan_cluster().is_empty
    table.alter.set_properties({"delta.enableDeletionVectors": "false"})
    table.update({"text": "'new'"}, predicate="x BETWEEN 200 AND 300")
    assert None in {file["clustering_provider"] for file in files(table)}


def test_row_ids_and_changes_stay(tmp_path: Path) -> None:
    table = make(
        tmp_path,
        **{"delta.enableRowTracking": "true", "delta.enableChangeDataFeed": "true"},
    )
    version = table.version()
    table.optimize.cluster()
    before, after = (
        sorted(map(str, DeltaTable(tmp_path, version=v).to_pyarrow_table(row_ids=True).to_pylist()))
        for v in (version, table.version())
    )
    assert before == after
    assert table.load_cdf(starting_version=table.version()).read_all().num_rows == 0


def test_a_renamed_column_is_found_and_its_old_order_left_alone(tmp_path: Path) -> None:
    table = make(tmp_path, **{"delta.columnMapping.mode": "name"})
    table.optimize.cluster()
    table.alter.rename_column("x", "renamed")
    assert table.optimize.plan_cluster().columns == ("renamed", "y")
    assert table.optimize.cluster()["numFilesRemoved"] == 0
    before = sorted_rows(table)
    table.optimize.cluster(full=True)
    assert sorted_rows(table) == before
    assert files(table)[0]["tags"]["ZCUBE_ZORDER_BY"] == '["renamed","y"]'


def test_a_table_that_is_not_clustered_says_so(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path, SCHEMA)
    with pytest.raises(ConfigurationError, match="no clustering columns"):
        table.optimize.cluster()
    table.alter.cluster_by(["x"])
    for name, value in (("target_size_bytes", "1"), ("min_new_fraction", 1.5), ("min_new_fraction", "1")):
        with pytest.raises(ConfigurationError, match=f"The {name} cannot be"):
            table.optimize.cluster(**{name: value})
    with pytest.raises(ConfigurationError, match="Files of 0 bytes cannot be written"):
        table.optimize.cluster(target_size_bytes=0)
    with pytest.raises(ConfigurationError, match="memory limit of 0 bytes is too small"):
        table.optimize.cluster(memory_limit_bytes=0)
    table.alter.cluster_by(None)
    with pytest.raises(ConfigurationError, match="no clustering columns"):
        table.optimize.cluster()


def test_a_column_without_an_order_in_the_domain_is_named(tmp_path: Path) -> None:
    table = make(tmp_path, commits=1)
    first = tmp_path / "_delta_log" / f"{0:020}.json"
    first.write_text(first.read_text().replace('[\\"y\\"]', '[\\"s\\"]'))
    with pytest.raises(ConfigurationError, match="cannot be clustered by s"):
        DeltaTable(tmp_path).optimize.cluster()
    assert table.version() == 1


def test_a_plan_goes_through_json_and_stays_with_its_columns(tmp_path: Path) -> None:
    table = make(tmp_path)
    plan = ClusteringPlan.from_json(json.loads(json.dumps(table.optimize.plan_cluster().to_json())))
    assert plan == plan_clustering(table.snapshot)
    with pytest.raises(MaintenanceError, match="not a clustering plan"):
        ClusteringPlan.from_json({"plan": "z_order", "format_version": 1})
    with pytest.raises(MaintenanceError, match="clustering plan"):
        ClusteringPlan.from_json({"plan": "clustering", "format_version": 1, "groups": 3})
    table.alter.cluster_by(["y", "x"])
    with pytest.raises(MaintenanceError, match="clustered by y, x, but the plan is for x, y"):
        apply_rewrite(table.snapshot, plan)
    table.alter.cluster_by(["x", "y"])
    assert apply_rewrite(table.snapshot, plan).rows == 2000


def test_what_comes_between(tmp_path: Path) -> None:
    table = make(tmp_path)
    plan = table.optimize.plan_cluster()
    write_deltalake(tmp_path, rows(8), mode="append")
    assert apply_rewrite(table.snapshot, plan).rows == 2000
    plan = DeltaTable(tmp_path).optimize.plan_cluster()
    DeltaTable(tmp_path).delete("x < 5000")
    with pytest.raises(ConcurrentDeleteDeleteError):
        apply_rewrite(table.snapshot, plan)


def test_columns_that_change_while_rows_are_sorted_are_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path)
    from delta_core.maintenance.clustering import ordering

    inner = ordering.GroupRunner.rewrite

    def rewrite(self: Any, groups: Any) -> Any:
        found = inner(self, groups)
        DeltaTable(tmp_path).alter.cluster_by(["y"])
        return found

    monkeypatch.setattr(ordering.GroupRunner, "rewrite", rewrite)
    with pytest.raises(ConcurrentModificationError):
        table.optimize.cluster()
    live = {file["path"] for file in files(DeltaTable(tmp_path))}
    assert {path.name for path in tmp_path.glob("*.parquet")} == live


def test_an_idempotent_run_clusters_once(tmp_path: Path) -> None:
    table = make(tmp_path)
    again = DeltaTable(tmp_path)
    plan = again.optimize.plan_cluster()
    properties = CommitProperties(txn=("run", 1))
    table.optimize.cluster(commit_properties=properties)
    before = sorted_rows(table)
    with pytest.raises(ConcurrentDeleteDeleteError):
        apply_rewrite(again.snapshot, plan, run=Run(commit=properties))
    assert sorted_rows(DeltaTable(tmp_path)) == before


def job(path: Path, kind: str = "optimize", **params: Any) -> Any:
    spec = JobSpec(kind=kind, table=TableRef(uri=str(path)), params=params)
    return run_job(spec, JobContext())


def test_the_job_clusters_what_has_columns(tmp_path: Path) -> None:
    table = make(tmp_path)
    plan = job(tmp_path, dry_run=True).output["plan"]
    assert (plan["plan"], plan["columns"]) == ("clustering", ["x", "y"])
    result = job(tmp_path, memory_limit_bytes=1 << 30, full=True)
    assert result.actual["files_removed"] == 4
    table.update_incremental()
    assert files(table)[0]["clustering_provider"] == "liquid"
    assert job(tmp_path).commits == ()
    for params, why in (
        ({"predicate": "x > 1"}, "The option predicate does not apply"),
        ({"min_file_size_bytes": 5}, "The option min_file_size_bytes does not apply"),
        ({"z_order_by": ["x"]}, "cannot be put into Z-order"),
    ):
        error = job(tmp_path, **params).error
        assert error is not None
        assert why in str(error)


def test_maintenance_goes_by_the_tables_columns(tmp_path: Path) -> None:
    table = make(tmp_path)
    health = observe(table.snapshot)
    assert (health.clustered_by, health.unclustered_files, health.compactable_files) == (("x", "y"), 4, 4)
    cluster = {item.verb: item for item in decide(health, MaintenanceRules())}["cluster"]
    assert (cluster.due, cluster.params) == (True, {})
    assert "not clustered by x, y" in cluster.reason
    off = decide(health, MaintenanceRules(cluster_enabled=False))
    assert not next(item for item in off if item.verb == "cluster").due
    plan = job(tmp_path, "plan")
    assert "cluster" in plan.output["due"]
    assert plan.output["compaction"]["files_removed"] == 4
    table.optimize.cluster(target_size_bytes=table.snapshot.files.total_bytes // 3)
    health = observe(table.snapshot, cluster_columns=["text"])
    assert (health.unclustered_files, health.compactable_files) == (0, 0)
    assert not any(item.due for item in decide(health, MaintenanceRules(compaction_min_small_files=2))[:2])


def test_clones_and_restored_tables_are_clustered_as_their_source(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.optimize.cluster()
    for shallow in (True, False):
        path = tmp_path / f"clone-{shallow}"
        clone_table(table.table_uri, path, shallow=shallow)
        clone = DeltaTable(path)
        assert clone.detail()["clustering_columns"] == ["x", "y"]
        assert clone.optimize.plan_cluster().is_empty
    write_deltalake(clone, rows(7), mode="append")
    clone.optimize.cluster()
    assert sorted_rows(clone) == sorted([*sorted_rows(table), *map(str, rows(7).to_pylist())])
    version = table.version()
    table.alter.cluster_by(["text"])
    assert table.detail()["clustering_columns"] == ["text"]
    table.restore(version)
    assert DeltaTable(tmp_path / "t").detail()["clustering_columns"] == ["x", "y"]
    assert table.optimize.plan_cluster().is_empty


def test_detail_names_nested_columns(tmp_path: Path) -> None:
    assert make(tmp_path, [["s", "name"]]).detail()["clustering_columns"] == ["s.name"]
    assert Snapshot.load(DeltaTable(tmp_path).snapshot.store).version == 4
