"""Which columns a table may name for statistics: those that delta-spark takes, which refuses others later."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, convert_to_deltalake, write_deltalake
from delta_core.errors import InvalidTablePropertyError
from delta_core.schema.column_names import STATS_COLUMNS_KEY
from delta_core.variants.marks import variant_field

SCHEMA = pa.schema(
    [
        pa.field("a", pa.int64()),
        pa.field("s", pa.struct([("x", pa.int64()), ("y.z", pa.string()), ("l", pa.list_(pa.int64()))])),
        pa.field("l", pa.list_(pa.int64())),
        pa.field("m", pa.map_(pa.string(), pa.int64())),
        pa.field("flag", pa.bool_()),
        pa.field("raw", pa.binary()),
        variant_field("v"),
        pa.field("c,d", pa.int64()),
        pa.field("p", pa.string()),
    ]
)
MAPPED = {"delta.columnMapping.mode": "name"}


@pytest.mark.parametrize(
    "listed",
    ["", "a", " A , S . X ", "s", "s.l", "`s`.`y.z`,a", "`c,d`", "v", "s.x,s.`y.z`"],
)
def test_lists_that_go(tmp_path: Path, listed: str) -> None:
    created = DeltaTable.create(
        tmp_path / "created", SCHEMA, partition_by=["p"], configuration={STATS_COLUMNS_KEY: listed, **MAPPED}
    )
    altered = DeltaTable.create(tmp_path / "altered", SCHEMA, partition_by=["p"], configuration=MAPPED)
    altered.alter.set_properties({STATS_COLUMNS_KEY: listed})
    for table in (created, altered):
        assert table.metadata().configuration[STATS_COLUMNS_KEY] == listed


@pytest.mark.parametrize(
    ("listed", "cause"),
    [
        ("nope", "no column nope"),
        ("s.nope", r"no column s\.nope"),
        ("a.b", r"no column a\.b"),
        ("l.element", r"no column l\.element"),
        ("p", "p is a partition column"),
        ("a,P", "P is a partition column"),
        ("l", "l is of type array"),
        ("m", "m is of type map"),
        ("flag", "flag is of type boolean"),
        ("raw", "raw is of type binary"),
        ("a,A", "names a twice"),
        ("s.x,s", r"names s\.x twice"),
        ("a,", "no list of columns"),
        ("a b", "no list of columns"),
        ("größe", "no list of columns"),
        ("`a", "no list of columns"),
        ("*", "no list of columns"),
    ],
)
def test_lists_that_do_not_go(tmp_path: Path, listed: str, cause: str) -> None:
    wrong = {STATS_COLUMNS_KEY: listed}
    with pytest.raises(InvalidTablePropertyError, match=cause):
        DeltaTable.create(tmp_path, SCHEMA, partition_by=["p"], configuration=wrong | MAPPED)
    assert not list(tmp_path.iterdir())
    table = DeltaTable.create(tmp_path, SCHEMA, partition_by=["p"], configuration=MAPPED)
    with pytest.raises(InvalidTablePropertyError, match=cause):
        table.alter.set_properties(wrong)
    assert table.version() == 0


def test_a_new_schema_has_the_columns_that_are_named(tmp_path: Path) -> None:
    table = write_deltalake(tmp_path, pa.table({"a": [1], "b": [1]}), configuration={STATS_COLUMNS_KEY: "b"})
    assert table is not None
    for data, partition_by in ((pa.table({"a": [1]}), None), (pa.table({"a": [1], "b": [2]}), ["b"])):
        with pytest.raises(InvalidTablePropertyError, match=STATS_COLUMNS_KEY):
            write_deltalake(
                tmp_path, data, mode="overwrite", schema_mode="overwrite", partition_by=partition_by
            )
    write_deltalake(tmp_path, pa.table({"b": ["x"]}), mode="overwrite", schema_mode="overwrite")
    assert DeltaTable(tmp_path).to_pyarrow_table().to_pylist() == [{"b": "x"}]


def test_so_does_a_converted_directory(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    with pytest.raises(InvalidTablePropertyError, match="no column b"):
        convert_to_deltalake(tmp_path, configuration={STATS_COLUMNS_KEY: "b"})
    convert_to_deltalake(tmp_path, configuration={STATS_COLUMNS_KEY: "a"})
    assert DeltaTable(tmp_path).to_pyarrow_table().num_rows == 1


def test_a_table_of_others_whose_list_does_not_fit_is_written_and_altered(tmp_path: Path) -> None:
    """Only who says something of the list is told of it."""
    table = DeltaTable.create(tmp_path, SCHEMA, configuration=MAPPED)
    log = tmp_path / "_delta_log" / f"{0:020}.json"
    log.write_text(
        log.read_text().replace('"configuration":{', f'"configuration":{{"{STATS_COLUMNS_KEY}":"nope",')
    )
    for checksum in log.parent.glob("*.crc"):
        checksum.unlink()
    table = DeltaTable(tmp_path)
    assert table.metadata().configuration[STATS_COLUMNS_KEY] == "nope"
    write_deltalake(table, pa.table({"a": [1]}), mode="append")
    table.alter.add_columns(pa.field("more", pa.int64()))
    table.alter.set_properties({"owner": "ann"})
    assert table.version() == 3
