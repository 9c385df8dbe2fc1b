from __future__ import annotations

import json
import os

import jsonschema
import yaml

from delta_core.policies.fleet_model import policy_schema
from delta_core.policies.load import parse_policies
from delta_core.policies.model import PolicyFile
from tests.support.repository import ROOT, code_blocks

PAGE = ROOT / "docs" / "fleet-policy.schema.json"


def test_the_published_schema_is_that_of_the_model() -> None:
    text = json.dumps(policy_schema(PolicyFile), indent=2) + "\n"
    if os.environ.get("UPDATE"):
        PAGE.write_text(text)
    assert PAGE.read_text() == text, "run this test with UPDATE=1"


def test_the_example_of_the_page_and_the_file_of_the_dags_are_valid() -> None:
    examples = [block.body for block in code_blocks("docs/fleet.md") if block.language == "yaml"]
    assert examples
    schema = json.loads(PAGE.read_text())
    for text in (*examples, (ROOT / "dags/config/tables.yaml").read_text()):
        parse_policies(text, environment={"DELTAWARD_TABLES_ROOT": "/t"})
        jsonschema.validate(yaml.safe_load(text), schema)
