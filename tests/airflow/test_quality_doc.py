"""The examples of docs/quality.md: the suite can be checked, the DAG's load fits the job."""

from __future__ import annotations

from datetime import date
from typing import Any

import yaml

from delta_core.jobs.params.quality import QUALITY_SCHEMA, OnFailure, Severity, parse_quality
from delta_core.schema.types import STRING, TIMESTAMP, StructField, StructType
from spark_jobs.job_kinds import LOAD
from spark_jobs.quality.quarantine import quarantine_schema
from spark_jobs.quality.row_tests import IsWithin
from spark_jobs.quality.rules import RowRule
from spark_jobs.quality.suite import plan_suite
from tests.support.repository import ROOT, code_blocks

DOCUMENT = "docs/quality.md"
TEXT = (ROOT / DOCUMENT).read_text()


def _block(language: str) -> str:
    (block,) = [block for block in code_blocks(DOCUMENT) if block.language == language]
    return block.body


def test_the_suite_can_be_checked() -> None:
    params = parse_quality(yaml.safe_load(_block("yaml")))
    assert params is not None
    assert params.on_failure is OnFailure.QUARANTINE
    schema = StructType(
        tuple(
            StructField(name=name, data_type=data_type)
            for name, data_type in (("tail", STRING), ("departed_at", TIMESTAMP), ("carrier", STRING))
        )
    )
    planned = plan_suite(params, schema)
    assert [item.spec.severity for item in planned].count(Severity.WARNING) == 1
    rule = planned[1].rule
    assert isinstance(rule, RowRule)
    assert isinstance(rule.test, IsWithin)
    assert rule.test.bounds.low.as_py().date() == date(2013, 1, 1)


def test_the_dags_load_is_a_valid_job() -> None:
    names: dict[str, Any] = {}
    exec(compile(_block("python"), DOCUMENT, "exec"), names)
    (task,) = names["dag"].tasks
    LOAD.check_params(task.job_params())
    assert parse_quality(task.job_params()["quality"]) is not None


def test_every_key_and_every_column_is_explained() -> None:
    for key in QUALITY_SCHEMA["properties"]:
        assert f"`{key}`" in TEXT, key
    own = [name for name in quarantine_schema(StructType(())).names if name.startswith("_quarantine")]
    for name in own:
        assert f"`{name}`" in TEXT, name
