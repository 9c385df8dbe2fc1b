"""The arguments of the operator that runs a SQL statement."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from delta_airflow.hooks.deltaward import DeltawardHook
from delta_airflow.operators.clearing import reapplies_when_cleared
from delta_airflow.operators.provenance import TaskIdentity
from delta_airflow.operators.sql import DeltaSqlOperator
from delta_core.errors import ConfigurationError

TASK = TaskIdentity(dag_id="d", task_id="t", run_id="r")


def sql(**changes: Any) -> DeltaSqlOperator:
    return DeltaSqlOperator(
        **{"task_id": "t", "table_uri": "/data/t", "statement": "DELETE FROM target WHERE d = :d", **changes}
    )


def test_values_are_templated_and_the_statement_is_not() -> None:
    operator = sql(
        statement="DELETE FROM target WHERE d = '{{ day }}' OR d = :d",
        parameters={"d": "{{ day }}", "n": 1, "none": None},
        tables='{"s": "/data/{{ day }}"}',
        allowed_root_uris=["/data/{{ day }}"],
    )
    operator.render_template_fields({"day": "x' OR true --"})  # type: ignore[typeddict-item]
    assert operator.job_params() == {
        "statement": "DELETE FROM target WHERE d = '{{ day }}' OR d = :d",
        "parameters": {"d": "x' OR true --", "n": 1, "none": None},
        "tables": {"s": "/data/x' OR true --"},
        "allowed_root_uris": ["/data/x' OR true --"],
    }


def test_a_statement_has_a_key_and_is_kept_when_cleared(airflow_connection: Path) -> None:
    spec = sql(work_name="w").build_spec(TASK, hook=DeltawardHook())
    assert spec.kind == "sql"
    assert spec.idempotency is not None
    assert not reapplies_when_cleared(None, "sql", {})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"statement": ""}, "statement"),
        ({"parameters": {"p": [1]}}, "'p'"),
        ({"tables": {"s": 5}}, "'s'"),
        ({"tables": {"Target": "/x"}}, "'Target'"),
    ],
)
def test_arguments_that_are_not_valid_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        sql(**changes).job_params()
