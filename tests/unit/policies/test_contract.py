"""Contracts as values: what a file may say, and how what is wrong with it is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from delta_core.errors import ConfigurationError
from delta_core.policies.contract import (
    Contract,
    Evolution,
    MissingColumns,
    NewColumns,
    load_contract,
    parse_contract,
    schema_of_columns,
)
from delta_core.policies.drift import Change
from delta_core.schema.types import ArrayType, DecimalType, StructField, StructType
from tests.support.repository import ROOT, code_blocks

STRING = """
columns:
  - {name: id, type: bigint, nullable: false, description: of the order}
  - name: address
    type: {type: struct, fields: [{name: city, type: INT}]}
  - {name: tags, type: {type: array, elementType: smallint, containsNull: true}}
  - {name: price, type: "decimal(10, 2)"}
constraints:
  - {name: positive, expression: id > 0}
evolution: {new_columns: add, missing_columns: refuse, widen_types: true}
show_rows: false
"""


def test_a_file_becomes_a_contract(tmp_path: Path) -> None:
    path = tmp_path / "contract.yaml"
    path.write_text(STRING)
    contract = load_contract(path)
    assert contract.columns is not None
    assert [str(field.data_type) for field in contract.columns] == [
        "long",
        "struct<city:integer>",
        "array<short>",
        "decimal(10,2)",
    ]
    first = contract.columns.fields[0]
    assert (first.nullable, first.metadata) == (False, {"comment": "of the order"})
    assert contract.constraints == (("positive", "id > 0"),)
    assert contract.rules == Evolution(
        new_columns=NewColumns.ADD, missing_columns=MissingColumns.REFUSE, widen_types=True
    )
    assert contract.show_rows is False


def test_what_is_not_said_is_strict() -> None:
    assert parse_contract({}) == Contract()
    assert parse_contract({"evolution": None, "columns": None}).rules == Evolution()
    assert (Evolution().new_columns, Evolution().widen_types) == (NewColumns.REFUSE, False)
    assert Evolution().missing_columns is MissingColumns.NULL


def test_types_have_the_names_of_sql_and_delta_at_every_depth() -> None:
    nested = {
        "type": "array",
        "elementType": {"type": "struct", "fields": [{"name": "n", "type": "numeric"}]},
    }
    schema = schema_of_columns([{"name": "a", "type": nested, "description": None}])
    inner = StructType((StructField(name="n", data_type=DecimalType(10, 0)),))
    assert schema.fields[0].data_type == ArrayType(element_type=inner)


@pytest.mark.parametrize(
    ("document", "key", "why"),
    [
        ({"kolumns": []}, "kolumns", "unknown"),
        ({"columns": [{"name": "a", "type": "int", "nulable": True}]}, "columns.0.nulable", "unknown"),
        ({"columns": [{"name": "a", "type": "nonsense"}]}, "columns", "nonsense"),
        ({"columns": [{"name": "a"}]}, "columns.0.type", "required"),
        ({"columns": [{"name": "a", "type": "int"}, {"name": "A", "type": "int"}]}, "columns", "same name"),
        ({"constraints": [{"name": "x", "expression": ""}]}, "constraints.0.expression", "at least 1"),
        (
            {"constraints": [{"name": "x", "expression": "a"}, {"name": "X", "expression": "b"}]},
            "constraints",
            "twice",
        ),
        ({"evolution": {"new_columns": "drop"}}, "evolution.new_columns", "add"),
        ({"evolution": {"widen": True}}, "evolution.widen", "unknown"),
        ({"evolution": {"widen_types": "yes"}}, "evolution.widen_types", "boolean"),
        ({"show_rows": 1}, "show_rows", "boolean"),
    ],
)
def test_a_bad_contract_is_refused_with_its_key(document: dict[str, Any], key: str, why: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_contract(document, source="x.yaml")
    assert f"x.yaml is not valid at {key}" in caught.value.problem
    assert why in caught.value.cause


@pytest.mark.parametrize(
    "text", ["a: [", "- a", "columns: &a []\nconstraints: *a", "columns: []\ncolumns: []"]
)
def test_a_file_that_is_no_yaml_mapping_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "contract.yaml"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=r"contract\.yaml"):
        load_contract(path)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_contract(tmp_path / "none.yaml")


def test_the_page_shows_a_contract_that_is_valid_and_names_every_key() -> None:
    text = (ROOT / "docs" / "contracts.md").read_text()
    (shown,) = [block for block in code_blocks("docs/contracts.md") if block.language == "yaml"]
    contract = parse_contract(yaml.safe_load(shown.body))
    assert contract.columns is not None
    assert contract.rules.missing_columns is MissingColumns.NULL
    keys = [*yaml.safe_load(shown.body), *(f"evolution.{key}" for key in Evolution.__dataclass_fields__)]
    assert [key for key in keys if key != "evolution" and f"| `{key}` |" not in text] == []
    assert [change for change in Change if f"`{change.value}`" not in text] == []
