"""The arguments of the operators that delete and update rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from delta_airflow.hooks.deltaward import DeltawardHook
from delta_airflow.operators.clearing import reapplies_when_cleared
from delta_airflow.operators.delete import DeltaDeleteOperator
from delta_airflow.operators.provenance import TaskIdentity
from delta_airflow.operators.update import DeltaUpdateOperator
from delta_core.errors import ConfigurationError

TASK = TaskIdentity(dag_id="d", task_id="t", run_id="r")


def delete(**changes: Any) -> DeltaDeleteOperator:
    return DeltaDeleteOperator(**{"task_id": "t", "table_uri": "/data/t", "where": "id = 1", **changes})


def update(**changes: Any) -> DeltaUpdateOperator:
    return DeltaUpdateOperator(
        **{"task_id": "t", "table_uri": "/data/t", "set": {"price": "price * 2"}, **changes}
    )


def test_templates_are_rendered() -> None:
    operator = delete(where="day < '{{ day }}'", target_alias="{{ alias }}", allowed_root_uris='["/a", "/b"]')
    operator.render_template_fields({"day": "2026-01-01", "alias": "o"})  # type: ignore[typeddict-item]
    assert operator.job_params() == {
        "where": "day < '2026-01-01'",
        "target_alias": "o",
        "allowed_root_uris": ["/a", "/b"],
    }
    assert delete(where="true").job_params() == {"where": "true"}
    other = update(set={"day": "'{{ day }}'"}, where="id = 1")
    other.render_template_fields({"day": "2026-01-01"})  # type: ignore[typeddict-item]
    assert other.job_params() == {"set": {"day": "'2026-01-01'"}, "where": "id = 1"}
    assert update(set=json.dumps({"a": "1"})).job_params() == {"set": {"a": "1"}}


def test_a_statement_has_a_key(airflow_connection: Path) -> None:
    for operator, kind in ((delete(work_name="w"), "delete"), (update(work_name="w"), "update")):
        spec = operator.build_spec(TASK, hook=DeltawardHook())
        assert spec.kind == kind
        assert spec.idempotency is not None


def test_clearing_deletes_again_and_keeps_an_update() -> None:
    assert reapplies_when_cleared(None, "delete", {})
    assert not reapplies_when_cleared(None, "update", {})


@pytest.mark.parametrize(
    ("kind", "changes", "words"),
    [
        ("delete", {"where": ""}, "where"),
        ("delete", {"where": 3}, "where"),
        ("update", {"set": {}}, "set"),
        ("update", {"set": "[]"}, "set"),
        ("update", {"set": {"a": 1}}, "set"),
        ("update", {"where": 3}, "where"),
    ],
)
def test_what_cannot_be_meant_is_refused(kind: str, changes: Mapping[str, Any], words: str) -> None:
    operator = delete(**changes) if kind == "delete" else update(**changes)
    with pytest.raises(ConfigurationError, match=words):
        operator.job_params()
