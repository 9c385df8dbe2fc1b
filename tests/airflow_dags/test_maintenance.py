"""The DAG table_maintenance does to each table what its policy says about retention, and no more."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from deltalake import write_deltalake as peer_write

from delta_core import write_deltalake
from tests.support.airflow import AirflowHome, connection_json
from tests.support.repository import ROOT

pytestmark = [pytest.mark.airflow, pytest.mark.slow]

WORKER = ROOT / "tests" / "airflow" / "docs_worker.py"
AGAIN = 'table_maintenance={"tables": ["plans"]}'
OLD_HOURS = 200
CLUSTERED = "clustered"
POLICIES = {
    "plans": {"dry_run": True},
    "deletes": {"dry_run": False},
    "too_short": {"dry_run": False, "retention_hours": 1.0},
    "not_due": {"dry_run": False, "min_bytes": "1gb"},
    CLUSTERED: {},
}


def table_with_an_old_removal(path: Path) -> str:
    """A table whose first file was removed long ago; returns that file's name."""
    peer_write(path, pa.table({"id": [1]}))
    (old,) = [file.name for file in path.glob("*.parquet")]
    peer_write(path, pa.table({"id": [2]}), mode="overwrite")
    then = time.time() - OLD_HOURS * 3600
    commit = path / "_delta_log" / f"{1:020}.json"
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    for action in actions:
        if "remove" in action:
            action["remove"]["deletionTimestamp"] = int(then * 1000)
    commit.write_text("".join(json.dumps(action) + "\n" for action in actions))
    os.utime(path / old, (then, then))
    return old


@pytest.fixture(scope="module")
def maintained(airflow_database: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One run over tables that differ in their policy only: its state, what tasks returned, what is left."""
    home = AirflowHome(path=tmp_path_factory.mktemp("maintenance"))
    home.dags.mkdir()
    shutil.copy(ROOT / "dags" / "table_maintenance.py", home.dags)
    shutil.copy(airflow_database, home.path / "airflow.db")
    tables = {name: home.path / "tables" / name for name in POLICIES}
    old = {name: table_with_an_old_removal(path) for name, path in tables.items() if name != CLUSTERED}
    for first in (0, 10):
        write_deltalake(
            tables[CLUSTERED],
            pa.table({"id": range(first, first + 10), "x": range(10)}),
            mode="append",
            cluster_by=["id", "x"],
        )
    registry = {
        "defaults": {
            "compaction": {"enabled": False},
            "checkpoint": {"enabled": False},
            "vacuum": {"retention_hours": 168.0, "min_bytes": 0},
        },
        "tables": {name: {"uri": str(tables[name]), "vacuum": policy} for name, policy in POLICIES.items()},
    }
    # Whatever is said here, a clustered table goes by its own columns.
    registry["tables"][CLUSTERED]["clustering"] = {"columns": ["x"]}
    (home.path / "registry.yaml").write_text(yaml.safe_dump(registry, sort_keys=False))
    environment = home.environment(
        AIRFLOW_CONN_DELTAWARD_DEFAULT=connection_json(work_dir=str(home.path / "work")),
        DELTAWARD_POLICIES=str(home.path / "registry.yaml"),
        DELTAWARD_MAINTENANCE_SCHEDULE="",
    )
    done = subprocess.run(
        [sys.executable, str(WORKER), "table_maintenance", AGAIN],
        env=environment,
        cwd=home.path,
        capture_output=True,
        text=True,
        check=False,
        timeout=1500,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("SEEN ")]
    seen = json.loads(line.removeprefix("SEEN "))
    run, again = seen["table_maintenance"], seen[AGAIN]
    results = {
        name: {
            step: run["xcoms"].get(f"maintain.{step}[{index}]")
            for step in ("plan", "compact", "cluster", "verify", "checkpoint", "vacuum")
        }
        for index, name in enumerate(POLICIES)
    }
    left = {name: (tables[name] / file).exists() for name, file in old.items()}
    log = done.stdout + done.stderr
    return {"state": run["state"], "results": results, "left": left, "log": log, "again": again}


def test_a_policy_that_says_to_delete_deletes_what_the_retention_has_passed(maintained: dict) -> None:
    assert maintained["left"]["deletes"] is False
    assert maintained["results"]["deletes"]["vacuum"]["actual"]["files_deleted"] == 1
    assert maintained["results"]["deletes"]["verify"]["status"] == "succeeded"


def test_a_policy_that_says_to_plan_deletes_nothing(maintained: dict) -> None:
    assert maintained["left"]["plans"] is True
    planned = maintained["results"]["plans"]["vacuum"]
    assert (planned["actual"], len(planned["output"]["plan"]["files"])) == ({}, 1)


def test_what_is_not_due_is_not_deleted(maintained: dict) -> None:
    assert maintained["left"]["not_due"] is True
    assert maintained["results"]["not_due"]["vacuum"] is None
    assert maintained["results"]["not_due"]["verify"]["status"] == "succeeded"


def test_no_policy_goes_below_the_protected_retention(maintained: dict) -> None:
    assert maintained["left"]["too_short"] is True
    assert maintained["results"]["too_short"]["vacuum"] is None
    assert maintained["state"] == "failed"
    assert "Tables with a failed step: too_short (vacuum)" in maintained["log"]


def test_what_the_policy_switches_off_is_left_out(maintained: dict) -> None:
    for name, results in maintained["results"].items():
        assert results["compact"] is None
        assert (results["cluster"] is None) == (name != CLUSTERED)


def test_a_clustered_table_is_clustered_by_its_own_columns(maintained: dict) -> None:
    clustered = maintained["results"][CLUSTERED]
    assert clustered["plan"]["output"]["health"]["clustered_by"] == ["id", "x"]
    assert clustered["cluster"]["actual"]["files_removed"] == 2
    assert clustered["cluster"]["output"]["metrics"]["clusteringStats"]["numOutputZCubes"] == 1
    assert clustered["verify"]["actual"] == {"checks": 3, "failed": []}


def test_where_nothing_was_committed_nothing_is_verified(maintained: dict) -> None:
    for name, results in maintained["results"].items():
        if name != CLUSTERED:
            assert results["verify"]["note"] == "no commit to verify; nothing was done"


def test_a_table_that_has_not_changed_costs_one_listing_in_the_next_run(maintained: dict) -> None:
    again = maintained["again"]
    assert again["state"] == "success"
    first, second = maintained["results"]["plans"]["plan"], again["xcoms"]["maintain.plan[0]"]
    assert second["metrics"]["requests"] == 1 < first["metrics"]["requests"]
    assert second["output"]["due"] == first["output"]["due"]
    assert [table["name"] for table in again["xcoms"]["record[-1]"]] == ["plans"]
