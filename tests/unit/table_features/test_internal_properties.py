"""Properties that record what happened: not for users to change, not for a restore to undo."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import InvalidTablePropertyError
from delta_core.table_features.internal_properties import (
    COLUMN_MAPPING_MODE,
    ENABLEMENT_TIMESTAMP,
    ENABLEMENT_VERSION,
    IN_COMMIT_TIMESTAMPS,
    INTERNAL_PROPERTIES,
    MAX_COLUMN_ID,
    ROW_ID_COLUMN,
    refuse_internal_properties,
    refuse_unset_of_mapping,
    restored_configuration,
)

ROWS = pa.table({"id": [1]})


@pytest.mark.parametrize("key", sorted(INTERNAL_PROPERTIES))
def test_they_are_neither_set_nor_unset_nor_given_to_a_new_table(tmp_path: Path, key: str) -> None:
    uri = tmp_path / "table"
    write_deltalake(uri, ROWS)
    table = DeltaTable(uri)
    for change in (
        lambda: table.alter.set_properties({key: "7"}),
        lambda: table.alter.set_properties({key.upper(): "7"}),
        lambda: table.alter.unset_properties([key]),
        lambda: DeltaTable.create(tmp_path / "new", ROWS.schema, configuration={key: "7"}),
        lambda: write_deltalake(tmp_path / "new", ROWS, configuration={key: "7"}),
    ):
        with pytest.raises(InvalidTablePropertyError, match="by hand") as caught:
            change()
        assert key in caught.value.problem
        assert INTERNAL_PROPERTIES[key].records in caught.value.cause
    assert DeltaTable(uri).version() == 0
    assert not DeltaTable.is_deltatable(tmp_path / "new")


def test_others_pass() -> None:
    assert refuse_internal_properties(["delta.appendOnly", "owner", COLUMN_MAPPING_MODE]) is None


def test_the_mode_stays_while_columns_are_mapped() -> None:
    mapped = {COLUMN_MAPPING_MODE: "name"}
    with pytest.raises(InvalidTablePropertyError, match="cannot be unset while columns are mapped"):
        refuse_unset_of_mapping([COLUMN_MAPPING_MODE], mapped)
    refuse_unset_of_mapping(["owner"], mapped)
    refuse_unset_of_mapping([COLUMN_MAPPING_MODE], {COLUMN_MAPPING_MODE: "none"})
    refuse_unset_of_mapping([COLUMN_MAPPING_MODE], {})


@pytest.mark.parametrize(
    ("now", "then", "after"),
    [
        ({"a": "1"}, {"a": "2", "b": "3"}, {"a": "2", "b": "3"}),
        ({MAX_COLUMN_ID: "9"}, {MAX_COLUMN_ID: "10"}, {MAX_COLUMN_ID: "10"}),
        ({MAX_COLUMN_ID: "10"}, {MAX_COLUMN_ID: "9"}, {MAX_COLUMN_ID: "10"}),
        ({MAX_COLUMN_ID: "10"}, {}, {MAX_COLUMN_ID: "10"}),
        ({MAX_COLUMN_ID: "?"}, {MAX_COLUMN_ID: "3"}, {MAX_COLUMN_ID: "3"}),
        ({}, {ROW_ID_COLUMN: "old"}, {ROW_ID_COLUMN: "old"}),
        ({ROW_ID_COLUMN: "new"}, {ROW_ID_COLUMN: "old"}, {ROW_ID_COLUMN: "old"}),
        ({ROW_ID_COLUMN: "new"}, {}, {ROW_ID_COLUMN: "new"}),
        ({}, {ENABLEMENT_VERSION: "3", ENABLEMENT_TIMESTAMP: "5", IN_COMMIT_TIMESTAMPS: "true"}, {}),
        (
            {ENABLEMENT_VERSION: "8", ENABLEMENT_TIMESTAMP: "9", IN_COMMIT_TIMESTAMPS: "true"},
            {ENABLEMENT_VERSION: "3", ENABLEMENT_TIMESTAMP: "5"},
            {ENABLEMENT_VERSION: "8", ENABLEMENT_TIMESTAMP: "9", IN_COMMIT_TIMESTAMPS: "true"},
        ),
        ({IN_COMMIT_TIMESTAMPS: "true"}, {IN_COMMIT_TIMESTAMPS: "false"}, {IN_COMMIT_TIMESTAMPS: "true"}),
        (
            {"delta.requireCheckpointProtectionBeforeVersion": "5"},
            {},
            {"delta.requireCheckpointProtectionBeforeVersion": "5"},
        ),
    ],
)
def test_what_a_restore_leaves(now: dict[str, str], then: dict[str, str], after: dict[str, str]) -> None:
    assert restored_configuration(now, then) == after


def test_a_restore_of_a_table_keeps_its_records(tmp_path: Path) -> None:
    write_deltalake(tmp_path, ROWS)
    table = DeltaTable(tmp_path)
    table.alter.set_properties({"owner": "ann"})
    log = tmp_path / "_delta_log" / f"{1:020d}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "metaData" in action:
            action["metaData"]["configuration"][MAX_COLUMN_ID] = "9"
    log.write_text("\n".join(json.dumps(action) for action in actions) + "\n")
    table = DeltaTable(tmp_path)
    table.restore(0)
    assert dict(table.metadata().configuration) == {MAX_COLUMN_ID: "9"}
