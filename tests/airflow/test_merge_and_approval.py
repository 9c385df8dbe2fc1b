"""The merge operator's arguments, the restore's approval, and texts for people in XCom."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from delta_airflow.hooks.deltaward import DeltawardHook
from delta_airflow.operators.approval import WAIVED, WAIVER_VARIABLE, DeltaApprovalOperator, approver_of
from delta_airflow.operators.merge import DeltaMergeOperator
from delta_airflow.operators.provenance import TaskIdentity
from delta_airflow.operators.restore import DeltaRestoreOperator
from delta_airflow.operators.summary import MAX_MARKDOWN_CHARACTERS, bounded_markdown, summarize
from delta_core.errors import ConfigurationError
from delta_core.jobs.job_result import JobResult, JobStatus

SOURCE = {"format": "parquet", "uris": ["/in/{{ day }}.parquet"]}
UPDATE = {"action": "update", "condition": "s.seq > t.seq", "set": {"price": "s.price"}}


def merge(**changes: Any) -> DeltaMergeOperator:
    arguments = {
        "task_id": "t",
        "table_uri": "/data/t",
        "source": SOURCE,
        "on": "t.id = s.id",
        "matched": [UPDATE],
        "not_matched": [{"action": "insert_all"}],
    }
    return DeltaMergeOperator(**{**arguments, **changes})


def test_merge_takes_its_arguments_over() -> None:
    operator = merge(
        not_matched_by_source=[{"action": "delete", "condition": "t.day = '{{ day }}'"}],
        deduplicate={"keys": ["id"], "order_by": ["seq DESC"]},
        contract={"columns": [{"name": "id", "type": "long", "nullable": False}]},
        merge_schema="true",
        source_alias="{{ alias }}",
    )
    operator.render_template_fields({"day": "2026-01-01", "alias": "events"})  # type: ignore[typeddict-item]
    assert dict(operator.job_params()) == {
        "source": {"format": "parquet", "uris": ["/in/2026-01-01.parquet"]},
        "on": "t.id = s.id",
        "merge_schema": True,
        "matched": [UPDATE],
        "not_matched": [{"action": "insert_all"}],
        "not_matched_by_source": [{"action": "delete", "condition": "t.day = '2026-01-01'"}],
        "contract": {"columns": [{"name": "id", "type": "long", "nullable": False}]},
        "deduplicate": {"keys": ["id"], "order_by": ["seq DESC"]},
        "source_alias": "events",
    }


def test_clauses_can_be_json_text() -> None:
    params = merge(matched=json.dumps([UPDATE]), not_matched="None").job_params()
    assert params["matched"] == [UPDATE]
    assert "not_matched" not in params


def test_a_merge_has_a_key_and_runs_where_the_connection_says(airflow_connection: Path) -> None:
    task = TaskIdentity(dag_id="d", task_id="t", run_id="r")
    spec = merge(work_name="prices").build_spec(task, hook=DeltawardHook())
    assert spec.kind == "merge"
    assert spec.idempotency is not None
    assert DeltaMergeOperator.default_runner is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"matched": None, "not_matched": []}, "no clause"),
        ({"matched": [{"action": "insert_all"}]}, r"matched\[0\].action must be .* is 'insert_all'"),
        ({"not_matched": [{"action": "update_all"}]}, "insert, insert_all"),
        ({"not_matched_by_source": [{"action": "update_all"}]}, "update, delete"),
        ({"matched": [{"action": "update"}]}, "sets no column"),
        ({"matched": [{"action": "update", "set": {}}]}, "sets no column"),
        ({"matched": [{"action": "update", "set": {"a": " "}}]}, "value of 'a' in the clause"),
        ({"not_matched": [{"action": "insert", "set": {"a": "1"}}]}, r"not_matched\[0\].set is unknown"),
        ({"matched": [{"action": "delete", "when": "true"}]}, r"matched\[0\].when is unknown"),
        ({"matched": [{"action": "delete", "condition": " "}]}, r"condition of the clause matched\[0\]"),
        ({"matched": [{"action": "delete"}, UPDATE]}, "never apply"),
        ({"matched": [{"action": "update_all"}, {"action": "delete"}]}, "except the last"),
        ({"matched": {"action": "delete"}}, "list of objects"),
        ({"matched": "[1]"}, r"matched\[0\]"),
        ({"matched": "["}, "list of objects"),
        ({"on": " "}, "on"),
        ({"source": "{"}, "source"),
        ({"deduplicate": {"order_by": ["a"]}}, "deduplicate.keys is missing"),
        ({"deduplicate": {"keys": "id"}}, "deduplicate.keys must be an array"),
        ({"merge_schema": "perhaps"}, "merge_schema"),
    ],
)
def test_a_merge_that_cannot_be_meant_is_refused(changes: Mapping[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        merge(**changes).job_params()


# ------------------------------------------------------------ restore


def restore(**changes: Any) -> DeltaRestoreOperator:
    return DeltaRestoreOperator(**{"task_id": "t", "table_uri": "/t", "version": 3, **changes})


def test_restore_takes_diff_and_the_expected_version() -> None:
    operator = restore(diff="rows", sample_rows="5", expected_version="7")
    expected = {"version": 3, "dry_run": True, "diff": "rows", "sample_rows": 5, "expected_version": 7}
    assert dict(operator.job_params()) == expected
    assert dict(restore(sample_rows=5, expected_version="None").job_params()) == {
        "version": 3,
        "dry_run": True,
    }
    for changes in ({"diff": "bytes"}, {"diff": "rows", "sample_rows": -1}, {"expected_version": "x"}):
        with pytest.raises(ConfigurationError):
            restore(**changes).job_params()


@pytest.mark.parametrize(
    "answer",
    [
        None,
        {"chosen_options": ["Reject"], "responded_by_user": {"id": "1", "name": "ann"}},
        {"chosen_options": ["Approve"], "responded_by_user": None},
        {"chosen_options": ["Approve"]},
        "Approve",
    ],
)
def test_a_restore_needs_its_approval_on_record(airflow_connection: Path, answer: Any) -> None:
    """Also when the approval's task was marked as successful by hand, which leaves no answer."""
    instance = SimpleNamespace(xcom_pull=lambda task_ids: answer)
    operator = restore(approval_task_id="approve", dry_run=False)
    with pytest.raises(AirflowFailException, match="no approval on record"):
        operator.execute({"ti": instance})  # type: ignore[typeddict-item]


def test_the_approver_is_known_by_name_or_else_by_id() -> None:
    for person, name in (({"id": "7", "name": "ann"}, "ann"), ({"id": "7", "name": ""}, "7")):
        assert approver_of({"chosen_options": ["Approve"], "responded_by_user": person}) == name


# ------------------------------------------------------------ approval


def approval(**changes: Any) -> DeltaApprovalOperator:
    return DeltaApprovalOperator(**{"task_id": "approve", "subject": "Go on?", **changes})


def test_an_approval_is_rejected_by_default_and_ends_in_time() -> None:
    operator = approval()
    assert operator.defaults == ["Reject"]
    assert operator.response_hours == 24
    assert {"subject", "body", "response_hours", "waive"} <= set(operator.template_fields)
    for changes in ({"defaults": "Approve"}, {"response_timeout": timedelta(1)}):
        with pytest.raises(ConfigurationError, match="response_hours"):
            approval(**changes)


@pytest.mark.parametrize("changes", [{"response_hours": "0"}, {"response_hours": "x"}, {"waive": "maybe"}])
def test_an_approval_that_makes_no_sense_fails(changes: dict[str, Any]) -> None:
    with pytest.raises(AirflowFailException, match="INVALID_CONFIGURATION"):
        approval(**changes).execute({})


@pytest.mark.parametrize("value", [None, "", "false", "1"])
def test_a_waiver_without_the_deployments_leave_fails(
    monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    monkeypatch.delenv(WAIVER_VARIABLE, raising=False)
    if value is not None:
        monkeypatch.setenv(WAIVER_VARIABLE, value)
    with pytest.raises(AirflowFailException, match="does not allow"):
        approval(waive="True").execute({})


def test_a_waiver_that_is_allowed_says_that_nobody_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(WAIVER_VARIABLE, "true")
    pushed: dict[str, Any] = {}
    instance = SimpleNamespace(xcom_push=lambda key, value: pushed.update({key: value}))
    result = approval(waive="True").execute({"ti": instance})  # type: ignore[typeddict-item]
    assert approver_of(result) == approver_of(pushed["answer"]) == WAIVED


# ------------------------------------------------------------ texts in XCom


def test_a_text_for_people_is_its_own_part_of_the_xcom() -> None:
    output = {"markdown": "**five** rows", "plan": {"files": []}}
    value = summarize(
        JobResult(job_id="j", kind="restore", status=JobStatus.SUCCEEDED, output=output),
        result_uri="file:///r",
    )
    assert value["markdown"] == "**five** rows"
    assert value["output"] == {"plan": {"files": []}}
    assert "shortened" not in value


def test_a_long_text_is_cut_at_a_line_and_its_code_is_closed() -> None:
    text = "head\n\n```json\n" + "\n".join(json.dumps({"id": n}) for n in range(2000)) + "\n```"
    output = {"markdown": text, "target_version": 3, "plan": ["x" * 100] * 1000}
    value = summarize(
        JobResult(job_id="j", kind="restore", status=JobStatus.SUCCEEDED, output=output),
        result_uri="file:///r",
    )
    assert value["shortened"] == ["markdown", "output"]
    assert value["output"] == {"target_version": 3}
    assert len(value["markdown"]) < MAX_MARKDOWN_CHARACTERS + 200
    lines = value["markdown"].splitlines()
    assert lines.count("```") == 1
    assert all(json.loads(line) for line in lines if line.startswith("{"))
    assert lines[-1].startswith("This report was cut")
    assert bounded_markdown("short") == ("short", False)
