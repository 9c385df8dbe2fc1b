"""Work with a name and a number: fenced in the table, and asked for from a DAG."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from delta_airflow.hooks.deltaward import DeltawardHook
from delta_airflow.operators.load import DeltaLoadOperator
from delta_airflow.operators.provenance import TaskIdentity, idempotency_key
from delta_airflow.table_versions import recorded_version
from delta_core import write_deltalake
from delta_core.actions import SetTransaction
from delta_core.errors import ConfigurationError
from delta_core.jobs.job_spec import IdempotencyKey, JobSpec, TableRef
from delta_core.storage.uri import canonical_table_uri
from delta_core.transaction.commit_properties import CommitProperties

TASK = TaskIdentity(dag_id="d", task_id="t", run_id="r")


def spec_of(**arguments: object) -> JobSpec:
    operator = DeltaLoadOperator(
        task_id="load", table_uri="/data/t", source={"format": "csv", "uris": ["/x"]}, **arguments
    )
    return operator.build_spec(TASK, hook=DeltawardHook())


def key_of(**arguments: object) -> IdempotencyKey:
    key = spec_of(**arguments).idempotency
    assert key is not None
    return key


@pytest.mark.usefixtures("airflow_connection")
def test_a_delivery_has_the_number_that_a_template_renders() -> None:
    first, second = key_of(work_name="w", work_version="7"), key_of(work_name="w", work_version=8)
    assert (first.version, second.version) == (7, 8)
    assert first.app_id == second.app_id == key_of(work_name="w").app_id


@pytest.mark.usefixtures("airflow_connection")
@pytest.mark.parametrize(
    "arguments",
    [
        {"work_version": 3},
        {"work_name": "w", "work_version": "-1"},
        {"work_name": "w", "work_version": ""},
        {"work_name": "w", "work_version": "None"},
    ],
)
def test_a_number_without_a_name_below_zero_or_empty_is_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError, match="work_version"):
        spec_of(**arguments)


@pytest.mark.usefixtures("airflow_connection")
def test_deduplication_is_handed_to_the_job() -> None:
    rule = {"keys": ["k"], "order_by": ["n DESC"], "against_table": True}
    assert spec_of(deduplicate=rule).params["deduplicate"] == rule
    assert "deduplicate" not in spec_of().params


def test_a_table_says_how_far_named_work_has_come(tmp_path: Path) -> None:
    assert recorded_version(str(tmp_path), "w") is None
    table = TableRef(uri=canonical_table_uri(str(tmp_path)))
    for version in (4, 9):
        app_id = idempotency_key(TASK, table, name="w", version=version).app_id
        properties = CommitProperties(txn=SetTransaction(app_id=app_id, version=version))
        write_deltalake(str(tmp_path), pa.table({"n": [1]}), mode="append", commit_properties=properties)
    assert recorded_version(tmp_path.as_uri(), "w") == 9
    assert recorded_version(str(tmp_path), "other") is None
