"""The examples of the pages about flights_etl and table_maintenance are accepted by what they are for."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
import yaml

from delta_core.jobs.params.quality import QUALITY_SCHEMA
from delta_core.policies.load import parse_policies
from delta_core.policies.resolve import resolve_all
from tests.support.repository import CodeBlock, code_blocks

pytestmark = pytest.mark.airflow

PAGES = ["docs/dags/flights_etl.md", "docs/dags/table_maintenance.md"]


def blocks(language: str) -> list[CodeBlock]:
    found = [block for page in PAGES for block in code_blocks(page) if block.language == language]
    assert found, f"no example in {language}"
    return found


@pytest.mark.slow
def test_each_example_of_a_run_is_accepted_by_its_dag(parsed: dict) -> None:
    seen = set()
    for block in blocks("json"):
        (dag_id,) = block.tags
        schemas = parsed["dags"][dag_id]["params"]
        for name, value in json.loads(block.body).items():
            jsonschema.validate(value, schemas[name])
        seen.add(dag_id)
    assert seen == {"flights_corrections", "flights_delays", "flights_etl", "table_maintenance"}


def test_the_example_suite_is_one() -> None:
    (block,) = [block for block in blocks("yaml") if "suite" in block.tags]
    jsonschema.validate(yaml.safe_load(block.body), dict(QUALITY_SCHEMA))


def test_the_example_registry_means_what_the_page_says() -> None:
    (block,) = [block for block in blocks("yaml") if "policies" in block.tags]
    policies = parse_policies(block.body, environment={"DELTAWARD_TABLES_ROOT": "/tables"})
    by_name: dict[str, Any] = {policy.name: policy for policy in resolve_all(policies)}
    assert by_name["flights"].uri == "/tables/flights"
    assert by_name["flights"].rules().cluster_columns == ("carrier", "dest")
    assert (by_name["flights"].vacuum.dry_run, by_name["visits"].vacuum.dry_run) == (True, False)
    assert by_name["visits"].vacuum.retention_hours == 168
