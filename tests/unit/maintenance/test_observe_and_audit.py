from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from delta_core import write_deltalake
from delta_core.clock import SYSTEM_CLOCK, ManualClock
from delta_core.errors import ConfigurationError
from delta_core.maintenance.apply_rewrite import apply_rewrite
from delta_core.maintenance.audit import audit
from delta_core.maintenance.clustering import plan_z_order
from delta_core.maintenance.compaction import plan_compaction
from delta_core.maintenance.observe import MaintenanceRules, TableHealth, decide, observe
from delta_core.storage.local import LocalLogStore

MakeTable = Callable[..., Path]
DAY_MS = 86_400_000


def test_facts_of_a_table_of_small_files(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(commits=6, partitioned=True)
    health = observe(helpers.snapshot_of(path))
    assert (health.num_files, health.small_files, health.compactable_files, health.num_partitions) == (
        12,
        12,
        12,
        2,
    )
    assert (health.checkpoint_version, health.log_tail_commits, health.commits_in_log) == (None, 6, 6)
    assert health.total_bytes == sum(f.stat().st_size for f in path.glob("part=*/*.parquet"))
    assert health.last_optimize_ms is None
    assert json.loads(json.dumps(health.to_json()))["version"] == 5


@pytest.mark.parametrize("mode", ["name", "id"])
def test_partitions_of_mapped_columns_are_told_apart(tmp_path: Path, helpers: Any, mode: str) -> None:
    """Each had been taken for one, so a compaction was due for ever that had nothing to do."""
    rows = pa.table({"p": ["a", "b", "c"], "v": [1, 2, 3]})
    configuration = {"delta.columnMapping.mode": mode}
    write_deltalake(tmp_path, rows, partition_by=["p"], configuration=configuration)
    health = observe(helpers.snapshot_of(tmp_path))
    assert (health.num_files, health.num_partitions, health.compactable_files) == (3, 3, 0)


def test_facts_after_a_compaction(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(commits=6, partitioned=True)
    snapshot = helpers.snapshot_of(path)
    apply_rewrite(snapshot, plan_compaction(snapshot))
    health = observe(helpers.snapshot_of(path))
    assert (health.num_files, health.compactable_files) == (2, 0)
    assert (health.tombstones, health.expired_tombstones) == (12, 0)
    assert health.last_optimize_ms is not None
    later = ManualClock(SYSTEM_CLOCK.now_ms() + 8 * DAY_MS)
    assert observe(helpers.snapshot_of(path), clock=later).expired_tombstones == 12


def test_an_empty_table_has_facts_too(tmp_path: Path, helpers: Any) -> None:
    path = tmp_path / "empty"
    deltalake.DeltaTable.create(str(path), schema=deltalake.Schema.from_arrow(helpers.rows(0, 0).schema))
    health = observe(helpers.snapshot_of(path))
    assert (health.num_files, health.average_file_bytes, health.num_partitions) == (0, 0, 0)


@pytest.fixture
def health(make_table: MakeTable, helpers: Any) -> TableHealth:
    return observe(helpers.snapshot_of(make_table(commits=4)))


def due(health: TableHealth, **rules: Any) -> list[str]:
    return [d.verb for d in decide(health, MaintenanceRules(**rules)) if d.due]


def test_each_verb_is_due_at_its_limit(health: TableHealth) -> None:
    assert due(health) == []
    assert due(health, compaction_min_small_files=4) == ["optimize"]
    assert due(health, compaction_min_small_files=5) == []
    assert due(health, checkpoint_interval=4) == ["checkpoint"]
    expired = replace(health, expired_tombstones=2, expired_tombstone_bytes=100)
    assert due(expired, vacuum_min_bytes=100) == ["vacuum"]
    assert due(expired, vacuum_min_bytes=101) == []
    stale = replace(expired, last_vacuum_ms=expired.observed_ms - 8 * DAY_MS)
    assert due(stale, vacuum_min_bytes=1000) == ["vacuum"]
    assert due(replace(stale, last_vacuum_ms=stale.observed_ms), vacuum_min_bytes=1000) == []


def test_a_verb_that_is_off_is_never_due(health: TableHealth) -> None:
    off = dict.fromkeys(("compaction_enabled", "checkpoint_enabled", "vacuum_enabled"), False)
    assert due(health, compaction_min_small_files=2, checkpoint_interval=1, **off) == []
    decisions = decide(health, MaintenanceRules(**off))
    assert {d.reason for d in decisions} == {"switched off by policy"}


def test_z_order_is_due_by_the_share_of_bytes_outside_it(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(commits=3)
    rules = MaintenanceRules(cluster_columns=("id", "day"), cluster_min_new_fraction=0.5)

    def decision() -> Any:
        health = observe(helpers.snapshot_of(path), cluster_columns=("ID", "day"))
        return next(d for d in decide(health, rules) if d.verb == "cluster")

    first = decision()
    assert (first.due, first.urgency, first.params) == (True, 2.0, {"z_order_by": ["id", "day"]})
    assert "100% of the bytes" in first.reason
    assert "id, day" in first.reason
    snapshot = helpers.snapshot_of(path)
    apply_rewrite(snapshot, plan_z_order(snapshot, ["id", "day"]))
    assert (decision().due, decision().urgency) == (False, 0.0)
    deltalake.write_deltalake(str(path), helpers.rows(900, 5), mode="append")
    some = decision()
    assert some.urgency > 0
    health = observe(helpers.snapshot_of(path), cluster_columns=("id", "day"))
    assert health.unclustered_files == 1
    assert some.due == (health.unclustered_bytes >= 0.5 * health.total_bytes)
    other = observe(helpers.snapshot_of(path), cluster_columns=("day", "id"))
    assert other.unclustered_bytes == other.total_bytes, "another order of columns is another Z-order"
    sized = replace(rules, compaction_target_size_bytes=77)
    assert decide(health, sized)[1].params["target_size_bytes"] == 77
    with pytest.raises(ConfigurationError, match="no column 'nope'"):
        observe(helpers.snapshot_of(path), cluster_columns=("nope",))


def test_rules_with_columns_survive_json() -> None:
    rules = MaintenanceRules(cluster_columns=("a", "b"), cluster_min_new_fraction=0.1)
    assert MaintenanceRules.from_json(json.loads(json.dumps(rules.to_json()))) == rules


def test_reasons_hold_the_figures_and_params_fit_the_job(health: TableHealth) -> None:
    rules = MaintenanceRules(
        compaction_min_small_files=2, compaction_target_size_bytes=99, vacuum_retention_hours=200
    )
    optimize, cluster, checkpoint, vacuum = decide(health, rules)
    assert "4 of 4 files" in optimize.reason
    assert optimize.params == {"target_size_bytes": 99}
    assert optimize.urgency == 2.0
    assert (cluster.verb, cluster.due, cluster.urgency) == ("cluster", False, 0.0)
    assert "the table has no checkpoint" in checkpoint.reason
    assert vacuum.params == {"retention_hours": 200}
    assert MaintenanceRules.from_json(rules.to_json()) == rules
    with pytest.raises(ConfigurationError, match="Unknown maintenance rules: colour"):
        MaintenanceRules.from_json({"colour": 1})


def commit(path: Path, version: int, *actions: dict[str, Any]) -> None:
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (path / "_delta_log" / f"{version:020}.json").write_text(text)


def test_an_ordinary_history_has_no_anomalies(make_table: MakeTable, helpers: Any) -> None:
    path = make_table()
    snapshot = helpers.snapshot_of(path)
    apply_rewrite(snapshot, plan_compaction(snapshot))
    report = audit(LocalLogStore(path))
    assert report.anomalies == ()
    assert [entry.operation for entry in report.entries] == ["WRITE"] * 4 + ["OPTIMIZE"]
    assert (report.entries[-1].files_added, report.entries[-1].files_removed) == (1, 4)


def test_anomalies_have_names(make_table: MakeTable) -> None:
    path = make_table(commits=1)
    log = path / "_delta_log"
    add = next(a for a in map(json.loads, (log / f"{0:020}.json").read_text().splitlines()) if "add" in a)
    txn = {"txn": {"appId": "load", "version": 1}}
    info = {
        "timestamp": 2_000_000_000_000,
        "operation": "WRITE",
        "userMetadata": '{"try": 2, "dag": "d", "x": 1}',
    }
    commit(path, 1, {"commitInfo": info}, txn, add)
    commit(path, 2, {"commitInfo": {**info, "operation": "FROBNICATE"}}, txn)
    commit(
        path,
        4,
        {"commitInfo": {**info, "timestamp": 1_900_000_000_000}},
        {"txn": {"appId": "load", "version": 0}},
    )
    commit(path, 5, {"txn": {"appId": "other", "version": 0}})
    report = audit(LocalLogStore(path))
    assert [(a.version, a.name) for a in report.anomalies] == [
        (1, "file_added_twice"),
        (2, "unknown_operation"),
        (2, "transaction_repeated"),
        (4, "version_gap"),
        (4, "clock_went_back"),
        (4, "transaction_went_back"),
        (5, "no_provenance"),
    ]
    assert list(report.entries[1].provenance) == ["dag", "try", "x"]
    assert json.loads(json.dumps(report.to_json()))["anomalies"][0]["version"] == 1
