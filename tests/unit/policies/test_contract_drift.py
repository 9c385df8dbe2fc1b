"""Drift as a pure function: every kind of difference under every evolution."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from delta_core.cli.app import app
from delta_core.policies.contract import Contract, parse_contract, schema_of_columns
from delta_core.policies.drift import drift, table_drift, written_schema
from delta_core.schema.types import StructType

ADDRESS = {"type": "struct", "fields": [{"name": "city", "type": "string"}, {"name": "zip", "type": "long"}]}


def schema(**columns: Any) -> StructType:
    """Columns by name; a type that ends in `!` is NOT NULL."""
    return schema_of_columns(
        [
            {"name": name, "type": given[:-1], "nullable": False}
            if isinstance(given, str) and given.endswith("!")
            else {"name": name, "type": given}
            for name, given in columns.items()
        ]
    )


def contract(columns: dict[str, Any] | None = None, **evolution: Any) -> Contract:
    made = parse_contract({"evolution": evolution} if evolution else {})
    return Contract(columns=schema(**columns) if columns else None, evolution=made.evolution)


def seen(report: Any) -> list[tuple[str, str, bool]]:
    return [(change.column, change.change.value, change.allowed) for change in report.changes]


BASE = {"id": "long!", "name": "string"}


def test_equal_and_reordered_columns_are_no_drift() -> None:
    report = drift(contract(BASE), schema(name="string", id="long"))
    assert report.changes == ()
    assert report.allowed
    assert drift(contract(), schema(a="int")).allowed, "nothing to compare with"


@pytest.mark.parametrize(("policy", "allowed"), [("refuse", False), ("add", True), ("ignore", True)])
def test_a_new_column_by_policy(policy: str, allowed: bool) -> None:
    given = contract(BASE, new_columns=policy)
    found = schema(id="long", name="string", more="int")
    report = drift(given, found)
    assert seen(report) == [("more", "new_column", allowed)]
    assert report.changes[0].to_json()["found"] == "integer"
    names = written_schema(given, found).names
    assert names == (("id", "name", "more") if policy == "add" else ("id", "name"))


def test_an_added_column_must_fit_what_the_table_has_of_it() -> None:
    given = contract(BASE, new_columns="add")
    found = schema(id="long", name="string", more="string")
    table = schema(id="long!", name="string", more="long")
    report = drift(given, found, table)
    assert seen(report) == [("more", "new_column", False)]
    assert "long" in report.changes[0].why
    assert drift(given, found, schema(id="long!", name="string", more="string")).allowed


def test_a_column_of_nothing_but_null_is_not_added() -> None:
    given = contract({**BASE, "at": ADDRESS}, new_columns="add")
    inner = {"type": "struct", "fields": [{"name": "city", "type": "string"}, {"name": "x", "type": "void"}]}
    found = schema(id="long", name="void", at=inner, more="void")
    assert drift(given, found).allowed
    assert written_schema(given, found) == given.columns


@pytest.mark.parametrize(
    ("column", "policy", "allowed"),
    [("name", "null", True), ("name", "refuse", False), ("id", "null", False), ("id", "refuse", False)],
)
def test_a_missing_column_by_policy(column: str, policy: str, allowed: bool) -> None:
    left = {name: "long" if name == "id" else "string" for name in BASE if name != column}
    report = drift(contract(BASE, missing_columns=policy), schema(**left))
    assert seen(report) == [(column, "missing_column", allowed)]


def test_a_column_that_is_not_null_in_the_table_may_not_be_missing() -> None:
    report = drift(contract(BASE), schema(id="long"), schema(id="long!", name="string!"))
    assert seen(report) == [("name", "missing_column", False)]
    report = drift(contract(BASE), schema(id="long", name="string"), schema(**BASE, extra="int!"))
    assert seen(report) == [("extra", "missing_column", False)]


@pytest.mark.parametrize(
    ("found", "widen", "allowed"),
    [
        ("int", True, True),
        ("int", False, False),
        ("double", True, False),
        ("string", True, False),
    ],
)
def test_a_type_is_widened_only_when_asked_and_without_loss(found: str, widen: bool, allowed: bool) -> None:
    report = drift(contract(BASE, widen_types=widen), schema(id=found, name="string"))
    assert seen(report) == [("id", "type_changed", allowed)]
    assert report.allowed is allowed
    assert written_schema(contract(BASE, widen_types=True), schema(id="int", name="string")) == schema(**BASE)


def test_another_case_is_the_same_column() -> None:
    report = drift(contract(BASE), schema(ID="long", Name="string"))
    assert seen(report) == [("id", "case_changed", True), ("name", "case_changed", True)]
    assert report.allowed


def test_two_columns_that_differ_in_case_alone_are_refused() -> None:
    twice = StructType((*schema(id="long", name="string").fields, *schema(ID="long").fields))
    assert seen(drift(contract(BASE), twice)) == [("ID", "duplicate_column", False)]


def test_nested_fields_have_paths() -> None:
    tags = {"type": "array", "elementType": ADDRESS, "containsNull": True}
    prices = {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True}
    given = contract({"id": "long", "at": ADDRESS, "tags": tags, "prices": prices})
    moved = {"type": "struct", "fields": [{"name": "city", "type": "long"}, {"name": "floor", "type": "int"}]}
    found = schema(
        id="long",
        at=moved,
        tags={**tags, "elementType": moved},
        prices={**prices, "valueType": "string"},
    )
    assert seen(drift(given, found)) == [
        ("at.city", "type_changed", False),
        ("at.zip", "missing_column", True),
        ("at.floor", "new_column", False),
        ("tags.element.city", "type_changed", False),
        ("tags.element.zip", "missing_column", True),
        ("tags.element.floor", "new_column", False),
        ("prices.value", "type_changed", False),
    ]
    whole = drift(given, schema(id="long", at="string", tags=tags, prices=prices))
    assert seen(whole) == [("at", "type_changed", False)]


def test_nested_new_fields_are_added() -> None:
    given = contract({"at": ADDRESS}, new_columns="add")
    more = {"type": "struct", "fields": [*ADDRESS["fields"], {"name": "floor", "type": "int"}]}
    assert drift(given, schema(at=more)).allowed
    assert (
        str(written_schema(given, schema(at=more))) == "struct<at:struct<city:string,zip:long,floor:integer>>"
    )


def test_the_contract_against_the_table_that_is_loaded() -> None:
    found = schema(id="long", name="string")
    assert seen(drift(contract(BASE), found, schema(id="long!"))) == [("name", "missing_on_table", False)]
    assert drift(contract(BASE), found, schema(id="long!"), merge_schema=True).allowed
    assert drift(contract(BASE, new_columns="add"), found, schema(id="long!")).allowed
    narrower = drift(contract(BASE, widen_types=True), found, schema(id="int", name="string"))
    assert seen(narrower) == [("id", "table_type_differs", False)]
    wider = schema(id="decimal(20,0)", name="string")
    assert seen(drift(contract(BASE, widen_types=True), found, wider)) == [("id", "table_type_differs", True)]
    assert not drift(contract(BASE), found, wider).allowed


def test_without_columns_the_table_is_the_contract() -> None:
    table = schema(**BASE)
    given = contract(None, new_columns="add")
    found = schema(id="long", name="string", more="int")
    assert seen(drift(given, found, table)) == [("more", "new_column", True)]
    assert written_schema(given, found, table).names == ("id", "name", "more")
    assert written_schema(given, found) == found, "a new table takes what there is"


def test_the_report_is_json_and_every_refusal_is_named() -> None:
    report = drift(contract(BASE), schema(id="string", extra="int"))
    document = json.loads(json.dumps(report.to_json()))
    assert document["allowed"] is False
    assert set(document["changes"][0]) == {"column", "change", "expected", "found", "allowed", "why"}
    assert [change.column for change in report.refused] == ["id", "extra"]
    assert "id is string, the contract requires long" in str(report.refused[0])


def test_a_table_against_its_contract() -> None:
    rules = {
        "columns": [
            {"name": "id", "type": "long", "nullable": False},
            {"name": "name", "type": "string"},
            {"name": "gone", "type": "int"},
            {"name": "amount", "type": "long"},
        ],
        "constraints": [
            {"name": "kept", "expression": "id > 0"},
            {"name": "other", "expression": "id > 1"},
            {"name": "lost", "expression": "id > 2"},
            {"name": "bad", "expression": "nothing > 2"},
        ],
    }
    table = schema(id="long", NAME="string!", amount="string", own="int")
    properties = {"delta.constraints.kept": "(id>0)", "delta.constraints.other": "id > 9"}
    report = table_drift(parse_contract(rules), table, properties)
    assert seen(report) == [
        ("id", "nullability_changed", False),
        ("name", "case_changed", True),
        ("name", "nullability_changed", False),
        ("gone", "missing_column", False),
        ("amount", "table_type_differs", False),
        ("own", "new_column", False),
        ("other", "constraint_changed", True),
        ("lost", "constraint_missing_on_table", True),
        ("bad", "constraint_invalid", False),
    ]
    lenient = table_drift(parse_contract({**rules, "evolution": {"new_columns": "add"}}), table, properties)
    assert [change.column for change in lenient.refused] == ["name", "amount", "bad"]


def test_the_command_compares_and_exits(tmp_path: Path) -> None:
    table, file = tmp_path / "t", tmp_path / "contract.yaml"
    deltalake.write_deltalake(str(table), pa.table({"id": [1], "own": ["x"]}))

    def call(text: str, *options: str) -> Any:
        file.write_text(text)
        return CliRunner().invoke(app, ["contract", str(table), "--contract", str(file), *options])

    same = call("columns: [{name: id, type: long}, {name: own, type: string}]")
    assert (same.exit_code, same.stdout) == (0, "version 0 matches the contract\n")
    other = call("columns: [{name: id, type: long}]")
    assert other.exit_code == 1
    assert "new_column" in other.stdout
    as_json = call("columns: [{name: id, type: long}]\nevolution: {new_columns: ignore}", "--json")
    assert as_json.exit_code == 0
    assert json.loads(as_json.stdout)["changes"][0]["column"] == "own"
    assert call("kolumns: []").exit_code == 2
