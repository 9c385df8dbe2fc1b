"""What clearing a task does to its work, from Airflow's numbers to what the log says."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from airflow.models.taskinstance import clear_task_instances
from airflow.sdk.exceptions import AirflowFailException
from deltalake import DeltaTable as PeerTable
from deltalake import write_deltalake as peer_write

from delta_airflow.operators.base import DeltaTableOperator
from delta_airflow.operators.clearing import clearing_number, differing_retries, reapplies_when_cleared
from delta_airflow.operators.job import DeltaJobOperator
from delta_airflow.operators.load import DeltaLoadOperator
from delta_airflow.operators.optimize import DeltaOptimizeOperator
from delta_airflow.operators.provenance import TaskIdentity
from delta_airflow.operators.restore import DeltaRestoreOperator
from delta_airflow.operators.summary import applied_note, summarize
from delta_core.errors import ConfigurationError
from delta_core.jobs.job_result import JobResult, JobStatus
from delta_core.transaction.applied_commit import AppliedCommit
from tests.support.cleared_tasks import RETRIES, Instance

SOURCE = {"format": "parquet", "uris": ["/in"]}
GOES_ON = {**SOURCE, "format": "delta", "changes_since": "recorded"}


# ------------------------------------------------------------ the number of a clearing


def number_of(instance: Instance) -> int:
    return TaskIdentity.of(instance.context).clearing


def test_airflow_still_counts_as_the_number_is_told_by() -> None:
    source = inspect.getsource(clear_task_instances)
    assert re.search(r"ti\.max_tries = ti\.try_number \+ task\.retries", source)


def test_tries_of_one_clearing_have_its_first_try_as_their_number() -> None:
    first = Instance()
    assert [number_of(one) for one in (first, first.retry(), first.retry().retry())] == [1, 1, 1]
    second = first.retry().clear()
    assert [number_of(one) for one in (second, second.retry())] == [3, 3]
    assert number_of(second.retry().clear()) == 5
    assert number_of(second.clear()) == 4


@pytest.mark.parametrize(
    ("try_number", "max_tries", "retries", "number"),
    [
        (1, None, None, 1),  # not told: as a task that nobody cleared
        (1, 0, 0, 1),
        (2, 2, 5, 1),  # `retries` was raised since
        (2, 5, 1, 2),  # `retries` was lowered since: never a try that is yet to come
    ],
)
def test_a_number_lies_between_the_first_try_and_this_one(
    try_number: int, max_tries: int | None, retries: int | None, number: int
) -> None:
    assert clearing_number(try_number=try_number, max_tries=max_tries, retries=retries) == number


# ------------------------------------------------------------ what is applied again


@pytest.mark.parametrize(
    ("kind", "params", "again"),
    [
        ("load", {"mode": "append", "source": SOURCE}, False),
        ("load", {"mode": "overwrite", "source": SOURCE}, True),
        ("load", {"mode": "overwrite", "replace_where": "a = 1", "source": SOURCE}, True),
        ("load", {"mode": "overwrite", "source": GOES_ON}, False),
        ("merge", {"source": SOURCE}, True),
        ("merge", {"source": GOES_ON}, False),
        ("optimize", {}, True),
        ("vacuum", {"dry_run": False}, True),
        ("restore", {"version": 1}, True),
        ("repair", {"dry_run": False}, True),
        ("a_kind_of_another_package", {}, False),
    ],
)
def test_what_replaces_is_applied_again_and_what_adds_is_kept(
    kind: str, params: dict[str, Any], again: bool
) -> None:
    assert reapplies_when_cleared(None, kind, params) is again
    assert reapplies_when_cleared("", kind, params) is again
    assert reapplies_when_cleared("keep", kind, params) is False
    if params.get("source") != GOES_ON:
        assert reapplies_when_cleared(" reapply ", kind, params) is True


def test_what_goes_on_where_the_table_says_cannot_be_applied_again() -> None:
    with pytest.raises(ConfigurationError, match="recorded version"):
        reapplies_when_cleared("reapply", "merge", {"source": GOES_ON})


def test_another_answer_fails_the_task_for_good(airflow_connection: Path) -> None:
    operator = DeltaOptimizeOperator(task_id="t", table_uri="/t", on_clear="perhaps")
    with pytest.raises(AirflowFailException, match="'perhaps' of on_clear"):
        operator.execute(Instance().context)


def test_answer_and_lease_are_templated_and_go_into_the_spec(airflow_connection: Path) -> None:
    from delta_airflow.hooks.deltaward import DeltawardHook

    operator: Any = DeltaLoadOperator(
        task_id="t", table_uri="/t", source=SOURCE, on_clear="{{ answer }}", lease="{{ lease }}"
    )
    operator.render_template_fields({"answer": "reapply", "lease": "upkeep"})
    spec = operator.build_spec(TaskIdentity.of(Instance().clear().context), hook=DeltawardHook())
    assert spec.lease == "upkeep"
    assert spec.idempotency is not None
    assert spec.idempotency.version == 1
    assert DeltaOptimizeOperator(task_id="t", table_uri="/t").lease is None


# ------------------------------------------------------------ what is said of it


def applied(by: AppliedCommit | None) -> JobResult:
    return JobResult(job_id="j", kind="load", status=JobStatus.SUCCEEDED, already_applied=True, applied_by=by)


@pytest.mark.parametrize(
    ("by", "note"),
    [
        (
            AppliedCommit(version=7, user_metadata={"run": "manual__1", "dag": "d"}),
            "applied by run manual__1 at version 7; nothing was done",
        ),
        (AppliedCommit(version=7), "applied at version 7; nothing was done"),
        (AppliedCommit(version=7, user_metadata={"run": ["x"]}), "applied at version 7; nothing was done"),
        (None, "applied by a commit that is no longer in the log; nothing was done"),
    ],
)
def test_the_note_names_run_and_version_as_far_as_they_are_known(by: AppliedCommit | None, note: str) -> None:
    assert applied_note(applied(by)) == note
    summary = summarize(applied(by), result_uri="file:///r")
    assert summary["note"] == note
    assert (summary["applied_by"] is None) is (by is None)
    assert json.loads(json.dumps(summary)) == summary


def test_work_that_was_done_has_no_note() -> None:
    result = JobResult(job_id="j", kind="load", status=JobStatus.SUCCEEDED)
    assert applied_note(result) is None
    assert summarize(result, result_uri="file:///r")["applied_by"] is None


def run(operator: DeltaTableOperator, instance: Instance) -> Any:
    return operator.execute(instance.context)


def test_a_retry_says_who_did_it_in_log_and_xcom(
    airflow_connection: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "table"
    for number in (1, 2):
        peer_write(table, pa.table({"id": [number]}), mode="append")
    operator = DeltaOptimizeOperator(task_id="t", table_uri=str(table), retries=RETRIES)
    first = run(operator, Instance())
    assert first["commits"] == [2]
    peer_write(table, pa.table({"id": [3]}), mode="append")
    again = run(operator, Instance().retry())
    assert again["already_applied"] is True
    assert again["note"] == "applied by run scheduled__2026-01-01 at version 2; nothing was done"
    assert again["applied_by"] == {
        "version": 2,
        "dag": "d",
        "task": "t",
        "run": "scheduled__2026-01-01",
        "try": 1,
        "map_index": -1,
    }
    assert again["note"] in capsys.readouterr().out


def test_a_restore_that_is_kept_when_cleared_brings_nothing_back(
    airflow_connection: Path, tmp_path: Path
) -> None:
    table = tmp_path / "table"
    for number in (1, 2):
        peer_write(table, pa.table({"id": [number]}), mode="append")
    operator = DeltaRestoreOperator(
        task_id="t", table_uri=str(table), version=0, dry_run=False, on_clear="keep", retries=RETRIES
    )
    assert run(operator, Instance())["commits"] == [2]
    peer_write(table, pa.table({"id": [3]}), mode="append")
    assert run(operator, Instance().clear())["already_applied"] is True
    assert sorted(PeerTable(table).to_pyarrow_table()["id"].to_pylist()) == [1, 3]


def test_a_job_of_any_kind_goes_by_its_kind(airflow_connection: Path, tmp_path: Path) -> None:
    table = tmp_path / "table"
    for number in (1, 2):
        peer_write(table, pa.table({"id": [number]}), mode="append")
    operator = DeltaJobOperator(task_id="t", table_uri=str(table), kind="optimize", retries=RETRIES)
    assert run(operator, Instance())["commits"] == [2]
    peer_write(table, pa.table({"id": [3]}), mode="append")
    assert run(operator, Instance().clear())["commits"] == [4]


@pytest.mark.parametrize(
    ("try_number", "max_tries", "retries", "warned"),
    [
        (1, 2, 2, False),
        (1, 5, 2, True),
        (1, 0, None, False),
        (1, 2, None, True),
        (2, 5, 2, False),
        (1, None, 2, False),
    ],
)
def test_other_retries_of_scheduler_and_worker_are_warned_of(
    try_number: int, max_tries: int | None, retries: int | None, warned: bool
) -> None:
    warning = differing_retries(try_number=try_number, max_tries=max_tries, retries=retries)
    assert (warning is not None) is warned
    assert warning is None or str(max_tries) in warning
