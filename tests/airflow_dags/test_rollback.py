"""The DAG table_rollback, run with every answer that it can get."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable as PeerTable
from deltalake import write_deltalake as peer_write

from tests.support.airflow import AirflowHome, airflow_database, connection_json
from tests.support.repository import ROOT
from tests.support.soak import SOAKING

__all__ = ["airflow_database"]

pytestmark = [pytest.mark.airflow, pytest.mark.slow]

WORKER = Path(__file__).parent / "rollback_worker.py"
ORDER = ("dry_run", "apply", "approve", "restore", "verify", "outcome")
# The demonstration, which `programs` runs, asks for a rollback that is rejected, and for two that are not.
OF_SOAKS = ("rejected", "plan only", "nothing to do", "waived", "approved at once")
ALL_CASES: dict[str, dict[str, Any]] = {
    "rejected": {"option": "Reject", "user": "ann"},
    "unanswered": {"option": "nobody", "conf": {"response_hours": 3}},
    "moved": {"option": "Approve", "append": True},
    "plan only": {"conf": {"dry_run_only": True}},
    "nothing to do": {"conf": {"version": 2}},
    "files gone": {"conf": {"version": 1}},
    "waived without leave": {"conf": {"waive_approval": True}},
    "waived": {"conf": {"waive_approval": True}, "waive": "true"},
    "approved": {"option": "Approve", "user": "ann"},
    "approved at once": {"option": "Approve", "user": "ann", "hurry": True},
}
CASES = {name: case for name, case in ALL_CASES.items() if SOAKING or name not in OF_SOAKS}


@pytest.fixture(scope="module")
def seen(airflow_database: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What came of each case, on a table of its own, with the table's state before and after."""
    home = AirflowHome(path=tmp_path_factory.mktemp("rollback"))
    home.dags.mkdir()
    # Alone: every run parses its folder anew.
    shutil.copy(ROOT / "dags" / "table_rollback.py", home.dags)
    shutil.copy(airflow_database, home.path / "airflow.db")
    requests, tables = [], {}
    for number, (name, case) in enumerate(CASES.items()):
        table = home.path / "tables" / str(number)
        for ids in ([1, 2], [3], [4, 5]):
            peer_write(str(table), pa.table({"id": ids}), mode="append")
        if name == "files gone":
            gone = PeerTable(str(table), version=1).file_uris()[0]
            PeerTable(str(table)).delete()
            (table / Path(gone).name).unlink()
        tables[name] = table
        conf = {"table": str(table), "version": 0, **case.get("conf", {})}
        append = {"append": str(table)} if case.get("append") else {}
        requests.append({**case, **append, "conf": conf})
    environment = home.environment(
        AIRFLOW_CONN_DELTAWARD_DEFAULT=connection_json(work_dir=str(home.path / "work")),
        DELTAWARD_APPROVERS="ann, admin",
    )
    done = subprocess.run(
        [sys.executable, str(WORKER), json.dumps(requests)],
        env=environment,
        cwd=home.path,
        capture_output=True,
        text=True,
        check=False,
        timeout=1500,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("SEEN ")]
    assert lines, done.stdout[-4000:] + done.stderr[-6000:]
    answers = json.loads(lines[-1].removeprefix("SEEN "))
    return {
        name: {**answer, "table": tables[name], "log": done.stdout + done.stderr}
        for name, answer in zip(CASES, answers, strict=True)
    }


def ids(table: Path) -> list[int]:
    return sorted(PeerTable(str(table)).to_pyarrow_table()["id"].to_pylist())


def states(run: dict[str, Any]) -> list[str]:
    return [run["tasks"][name] for name in ORDER]


def test_an_approved_rollback_is_carried_out_in_the_approvers_name(seen: dict[str, Any]) -> None:
    run = seen["approved"]
    assert (run["state"], states(run)) == ("success", ["success"] * 6)
    assert run["result"] == {"outcome": "restored", "version": 3, "approver": "ann"}
    assert run["outcome"] == "restored"
    assert ids(run["table"]) == [1, 2]
    (latest,) = PeerTable(str(run["table"])).history(1)
    assert json.loads(latest["userMetadata"])["approver"] == "ann"


@pytest.mark.soak
def test_an_answer_before_the_task_has_ended_counts_once(seen: dict[str, Any]) -> None:
    run = seen["approved at once"]
    assert (run["state"], states(run)) == ("success", ["success"] * 6)
    assert [asked["status"] for asked in run["asked"]] == [200]
    assert ids(run["table"]) == [1, 2]


def test_the_question_holds_the_exact_difference(seen: dict[str, Any]) -> None:
    (question,) = seen["approved"]["asked"]
    assert question["subject"] == f"Restore {seen['approved']['table']} to version 0?"
    assert "**exactly 3 rows lost**" in question["body"]
    assert '{"id": 3}' in question["body"]
    assert (question["defaults"], question["status"], question["hours"]) == (["Reject"], 200, 24)
    assert seen["approved"]["plan"]["markdown"] == question["body"]


@pytest.mark.soak
def test_a_rejected_rollback_changes_nothing_and_says_who_rejected_it(seen: dict[str, Any]) -> None:
    run = seen["rejected"]
    expected = ["success", "success", "success", "skipped", "skipped", "failed"]
    assert (run["state"], states(run)) == ("failed", expected)
    assert (run["outcome"], run["result"], run["restore"]) == ("rejected", None, None)
    assert "Rejected by ann. Nothing was restored." in run["log"]
    assert ids(run["table"]) == [1, 2, 3, 4, 5]
    assert PeerTable(str(run["table"])).version() == 2


def test_no_answer_in_time_is_a_rejection(seen: dict[str, Any]) -> None:
    run = seen["unanswered"]
    assert (run["state"], run["outcome"]) == ("failed", "rejected")
    assert run["tasks"]["restore"] == "skipped"
    assert run["asked"][0]["hours"] == 3
    assert "Rejected because of no answer within 3 hours." in run["log"]
    assert PeerTable(str(run["table"])).version() == 2


def test_what_was_not_approved_is_not_restored_over(seen: dict[str, Any]) -> None:
    """A row was added between the plan and the answer."""
    run = seen["moved"]
    expected = ["success", "success", "success", "failed", "upstream_failed", "upstream_failed"]
    assert (run["state"], states(run)) == ("failed", expected)
    assert "RESTORE_PLAN_OUTDATED" in run["log"]
    assert ids(run["table"]) == [1, 2, 3, 4, 5, 100]


@pytest.mark.soak
@pytest.mark.parametrize("name", ["plan only", "nothing to do"])
def test_nobody_is_asked_when_nothing_is_to_be_done(seen: dict[str, Any], name: str) -> None:
    run = seen[name]
    assert (run["state"], states(run)) == ("success", ["success"] * 2 + ["skipped"] * 4)
    assert run["asked"] == []
    assert PeerTable(str(run["table"])).version() == 2


def test_nobody_is_asked_for_what_cannot_be_done(seen: dict[str, Any]) -> None:
    run = seen["files gone"]
    assert run["state"] == "failed"
    assert (run["tasks"]["apply"], run["tasks"]["restore"]) == ("failed", "upstream_failed")
    assert run["asked"] == []
    assert "Data files of version 1 are missing in the store: 1." in run["log"]


def test_asking_nobody_needs_the_deployments_leave(seen: dict[str, Any]) -> None:
    refused = seen["waived without leave"]
    assert (refused["state"], refused["tasks"]["approve"]) == ("failed", "failed")
    assert "which this deployment does not allow" in refused["log"]
    assert PeerTable(str(refused["table"])).version() == 2


@pytest.mark.soak
def test_nobody_is_asked_where_the_deployment_allows_it(seen: dict[str, Any]) -> None:
    allowed = seen["waived"]
    assert (allowed["state"], allowed["asked"]) == ("success", [])
    assert allowed["result"]["approver"] == "no person (approval waived)"
    (latest,) = PeerTable(str(allowed["table"])).history(1)
    assert json.loads(latest["userMetadata"])["approver"] == "no person (approval waived)"
