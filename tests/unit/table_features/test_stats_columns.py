"""The list of columns that get statistics names columns that can have some."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, convert_to_deltalake, write_deltalake
from delta_core.errors import InvalidTablePropertyError
from delta_core.schema.arrow import variant_field

KEY = "delta.dataSkippingStatsColumns"
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("p", pa.string()),
        ("m", pa.map_(pa.string(), pa.int64())),
        ("s", pa.struct([("x", pa.int64()), ("f", pa.bool_())])),
        ("b", pa.bool_()),
        ("raw", pa.binary()),
        ("a.b", pa.int64()),
        ("l", pa.list_(pa.int64())),
        variant_field("v"),
    ]
)
MAPPED = {"delta.columnMapping.mode": "name"}


def listed(table: DeltaTable) -> str | None:
    """What the table has there."""
    return table.metadata().configuration.get(KEY)


@pytest.mark.parametrize("text", ["", "id", "ID", "s", "s.x", "S.X, id", "s.f", "`a.b`", "p_ , id", "v"])
def test_columns_that_have_statistics_are_taken(tmp_path: Path, text: str) -> None:
    schema = SCHEMA.append(pa.field("p_", pa.int64()))
    table = DeltaTable.create(tmp_path / "t", schema, partition_by=["p"], configuration=MAPPED)
    table.alter.set_properties({KEY: text})
    assert listed(table) == text
    created = DeltaTable.create(tmp_path / "c", schema, configuration={**MAPPED, KEY: text})
    assert listed(created) == text


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("none", "column none does not exist."),
        ("id, none", "column none does not exist."),
        ("a.b", r"column a\.b does not exist\."),
        ("s.y", r"column s\.y does not exist\."),
        ("id.x", r"column id\.x does not exist\."),
        ("p", "p is a partition column"),
        ("m", "m is of type map<string,long>"),
        ("b", "b is of type boolean"),
        ("raw", "raw is of type binary"),
        ("id,ID", "ID is listed twice."),
        ("s.x,s", "s is listed twice."),
        ("l", "l is of type array<long>"),
        ("l.element", r"column l\.element does not exist\."),
        ("id,", "not a list of names"),
        ("a b", "not a list of names"),
        ("größe", "not a list of names"),
        ("`id", "not a list of names"),
        ("*", "not a list of names"),
    ],
)
def test_what_would_do_nothing_is_refused(tmp_path: Path, text: str, cause: str) -> None:
    table = DeltaTable.create(tmp_path / "t", SCHEMA, partition_by=["p"], configuration=MAPPED)
    with pytest.raises(InvalidTablePropertyError, match=KEY) as caught:
        table.alter.set_properties({KEY: text})
    assert caught.value.cause is not None
    assert pa.compute.match_substring_regex(pa.scalar(caught.value.cause), cause).as_py()
    assert listed(DeltaTable(tmp_path / "t")) is None
    with pytest.raises(InvalidTablePropertyError, match=KEY):
        DeltaTable.create(tmp_path / "c", SCHEMA, partition_by=["p"], configuration={**MAPPED, KEY: text})
    assert not DeltaTable.is_deltatable(tmp_path / "c")


def test_a_conversion_holds_it_against_the_files_columns(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    with pytest.raises(InvalidTablePropertyError, match=KEY):
        convert_to_deltalake(tmp_path, configuration={KEY: "other"})
    convert_to_deltalake(tmp_path, configuration={KEY: "id"})
    assert listed(DeltaTable(tmp_path)) == "id"


def test_what_another_writer_left_there_is_no_reason_against_other_changes(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    log = tmp_path / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "metaData" in action:
            action["metaData"]["configuration"][KEY] = "gone"
    log.write_text("\n".join(json.dumps(action) for action in actions) + "\n")
    DeltaTable(tmp_path).alter.set_properties({"owner": "ann"})
    DeltaTable(tmp_path).alter.set_properties({KEY: "id"})
    assert listed(DeltaTable(tmp_path)) == "id"


@pytest.mark.parametrize(
    ("text", "partition_by", "expected"),
    [
        ("id,km", None, "id"),
        ("km", None, ""),
        ("id,day", ["day"], "id"),
        ("id,km.x", None, "id"),
        ("id,day", None, "id,day"),
    ],
)
def test_an_overwritten_schema_takes_names_out_that_it_no_longer_allows(
    tmp_path: Path, text: str, partition_by: list[str] | None, expected: str
) -> None:
    before = pa.table({"id": [1], "day": ["mon"], "km": [{"x": 1}]})
    write_deltalake(tmp_path, before, configuration={KEY: text})
    after = pa.table({"id": [2], "day": ["tue"]})
    write_deltalake(tmp_path, after, mode="overwrite", schema_mode="overwrite", partition_by=partition_by)
    assert listed(DeltaTable(tmp_path)) == expected
