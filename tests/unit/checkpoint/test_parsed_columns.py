"""Statistics and partition values in their types: what the texts say, no more, and read equal by all."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from delta_core import DeltaTable as OurTable
from delta_core import write_deltalake as ours_write
from delta_core.actions import DeletionVectorDescriptor
from delta_core.checkpoint import rows as rows_module
from delta_core.checkpoint.classic import write_checkpoint
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.open import open_store
from tests.support.log_builder import LogBuilder, add, metadata, protocol, remove

STRUCT = {"delta.checkpoint.writeStatsAsStruct": "true"}
STRUCT_ONLY = {**STRUCT, "delta.checkpoint.writeStatsAsJson": "false"}


def _schema(**types: Any) -> str:
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in types.items()]
    return json.dumps({"type": "struct", "fields": fields})


def _log(
    path: Path, schema: str, configuration: dict[str, str], *, partitions: tuple[str, ...] = ()
) -> LogBuilder:
    log = LogBuilder(path)
    log.commit(
        protocol(),
        metadata(schema_string=schema, partition_columns=partitions, configuration=configuration),
    )
    return log


def _adds(log: LogBuilder, version: int) -> list[dict[str, Any]]:
    table = pq.read_table(log.log / f"{version:020d}.checkpoint.parquet", columns=["add"])
    return [row["add"] for row in table.to_pylist() if row["add"]]


def _load(log: LogBuilder) -> Snapshot:
    return Snapshot.load(log.store, clock=log.clock)


def test_every_type_as_its_text_says(tmp_path: Path) -> None:
    log = _log(
        tmp_path,
        _schema(
            i="integer",
            b="byte",
            f="float",
            d="double",
            m="decimal(20,3)",
            s="string",
            day="date",
            at="timestamp",
            wall="timestamp_ntz",
            flag="boolean",
            list={"type": "array", "elementType": "integer", "containsNull": True},
            inner={
                "type": "struct",
                "fields": [{"name": "x", "type": "long", "nullable": True, "metadata": {}}],
            },
        ),
        STRUCT,
    )
    values = {
        "i": -5,
        "b": 7,
        "f": 0.1,
        "d": 2.5,
        "m": 12345678901234567.891,
        "s": 'ü"',
        "day": "1969-12-31",
        "at": "2024-02-29T12:00:00.123Z",
        "wall": "2024-02-29T12:00:00.123456",
        "inner": {"x": 9},
    }
    nulls = {**dict.fromkeys(values, 0), "flag": 1, "list": 2, "inner": {"x": 3}}
    text = json.dumps(
        {"numRecords": 4, "minValues": values, "maxValues": values, "nullCount": nulls}
    ).replace("1.2345678901234568e+16", "12345678901234567.891")
    log.commit(add("f", stats=text))
    write_checkpoint(_load(log))
    (found,) = _adds(log, 1)
    parsed = found["stats_parsed"]
    assert parsed["minValues"] == parsed["maxValues"], "no bound is moved on its way"
    assert parsed["minValues"] == {
        "i": -5,
        "b": 7,
        "f": pytest.approx(0.1, rel=1e-7),
        "d": 2.5,
        "m": Decimal("12345678901234567.891"),
        "s": 'ü"',
        "day": dt.date(1969, 12, 31),
        "at": dt.datetime(2024, 2, 29, 12, 0, 0, 123000, tzinfo=dt.UTC),
        "wall": dt.datetime(2024, 2, 29, 12, 0, 0, 123456),
        "inner": {"x": 9},
    }
    assert parsed["nullCount"] == nulls
    assert parsed["numRecords"] == 4
    assert found["stats"] == text
    assert "partitionValues_parsed" not in found
    kind = pq.read_schema(log.log / f"{1:020d}.checkpoint.parquet").field("add").type
    bounds = kind.field("stats_parsed").type.field("minValues").type
    assert {item.name: str(item.type) for item in bounds} == {
        "i": "int32",
        "b": "int8",
        "f": "float",
        "d": "double",
        "m": "decimal128(20, 3)",
        "s": "string",
        "day": "date32[day]",
        "at": "timestamp[us, tz=UTC]",
        "wall": "timestamp[us]",
        "inner": "struct<x: int64>",
    }


def test_what_does_not_parse_is_null(tmp_path: Path) -> None:
    log = _log(tmp_path, _schema(p="integer", i="integer", s="string"), STRUCT, partitions=("p",))
    bounds = '"maxValues":{"i":1,"s":"a"},"nullCount":{"i":0,"s":0}'
    strings = {
        "good": f'{{"numRecords":1,"minValues":{{"i":1,"s":"a"}},{bounds}}}',
        "other_type": '{"numRecords":1,"minValues":{"i":"one","s":"a"},"maxValues":{"i":1,"s":5}}',
        "too_large": '{"numRecords":1,"minValues":{"i":99999999999},"maxValues":{},"nullCount":{}}',
        "no_json": "{",
        "none": None,
    }
    partitions = {"good": "7", "other_type": "seven", "too_large": "99999999999", "no_json": "", "none": None}
    for name, text in strings.items():
        log.commit(add(name, stats=text, partition_values={"p": partitions[name]}))
    write_checkpoint(_load(log))
    found = {row["path"]: row for row in _adds(log, 5)}
    nothing = {"i": None, "s": None}
    assert found["good"]["stats_parsed"]["minValues"] == {"i": 1, "s": "a"}
    assert found["other_type"]["stats_parsed"]["minValues"] == {"i": None, "s": "a"}
    assert found["other_type"]["stats_parsed"]["maxValues"] == {"i": 1, "s": None}
    assert found["too_large"]["stats_parsed"]["minValues"] == nothing
    assert found["no_json"]["stats_parsed"]["minValues"] == nothing
    assert found["no_json"]["stats_parsed"]["numRecords"] is None
    assert found["none"]["stats_parsed"] is None
    assert {name: row["partitionValues_parsed"]["p"] for name, row in found.items()} == {
        "good": 7,
        "other_type": None,
        "too_large": None,
        "no_json": None,
        "none": None,
    }


def test_one_value_out_of_range_costs_no_other(tmp_path: Path) -> None:
    log = _log(tmp_path, _schema(i="integer"), STRUCT)
    form = '{{"numRecords":1,"minValues":{{"i":{0}}},"maxValues":{{"i":{0}}},"nullCount":{{"i":0}}}}'
    log.commit(*(add(f"f{n}", stats=form.format(n)) for n in (1, 2**31, 3)))
    write_checkpoint(_load(log))
    assert [row["stats_parsed"]["maxValues"]["i"] for row in _adds(log, 1)] == [1, None, 3]


def test_only_columns_with_statistics_by_their_physical_names(tmp_path: Path) -> None:
    fields = [
        {
            "name": name,
            "type": "long",
            "nullable": True,
            "metadata": {"delta.columnMapping.id": at, "delta.columnMapping.physicalName": f"col-{at}"},
        }
        for at, name in enumerate(["part", "a", "b", "c"], start=1)
    ]
    log = LogBuilder(tmp_path)
    log.commit(
        protocol(min_reader_version=2, min_writer_version=5),
        metadata(
            schema_string=json.dumps({"type": "struct", "fields": fields}),
            partition_columns=("part",),
            configuration={
                **STRUCT,
                "delta.columnMapping.mode": "name",
                "delta.dataSkippingStatsColumns": "a,c",
            },
        ),
        add(
            "f",
            partition_values={"col-1": "5"},
            stats='{"numRecords":1,"minValues":{"col-2":1,"col-3":2,"col-4":3},"maxValues":{},"nullCount":{}}',
        ),
    )
    rows = rows_module.CheckpointRows.of(_load(log))
    (batch,) = rows.file_groups()
    (found,) = (row["add"] for row in batch.to_pylist())
    assert found["partitionValues_parsed"] == {"col-1": 5}
    assert found["stats_parsed"]["minValues"] == {"col-2": 1, "col-4": 3}
    assert found["stats_parsed"]["nullCount"] == {"col-2": None, "col-4": None}


def test_tables_with_deletion_vectors_say_if_bounds_are_tight(tmp_path: Path) -> None:
    features = frozenset({"deletionVectors"})
    log = LogBuilder(tmp_path)
    vector = DeletionVectorDescriptor(
        storage_type="u", path_or_inline_dv="dv", offset=1, size_in_bytes=1, cardinality=2
    )
    log.commit(
        protocol(
            min_reader_version=3, min_writer_version=7, reader_features=features, writer_features=features
        ),
        metadata(configuration=STRUCT),
        add("wide", deletion_vector=vector, stats='{"numRecords":9,"tightBounds":false}'),
        add("tight", stats='{"numRecords":9,"tightBounds":true}'),
        add("silent", stats='{"numRecords":9,"minValues":{"id":1}}'),
        add("odd", stats='{"numRecords":9,"tightBounds":"no"}'),
    )
    (batch,) = rows_module.CheckpointRows.of(_load(log)).file_groups()
    found = {row["add"]["path"]: row["add"]["stats_parsed"]["tightBounds"] for row in batch.to_pylist()}
    assert found == {"wide": False, "tight": True, "silent": None, "odd": None}


@pytest.mark.parametrize("configuration", [STRUCT, STRUCT_ONLY], ids=["both", "struct only"])
def test_checkpoints_of_checkpoints_keep_what_they_say(tmp_path: Path, configuration: dict[str, str]) -> None:
    """Nothing drifts, however often statistics go through text and back."""
    log = _log(tmp_path, _schema(at="timestamp", d="double", s="string"), configuration)
    side = {"at": "2024-02-29T12:00:00.123Z", "d": 0.1, "s": "x" * 32 + "\U0010ffff"}
    log.commit(
        add(
            "f",
            stats=json.dumps(
                {"numRecords": 1, "minValues": side, "maxValues": side, "nullCount": dict.fromkeys(side, 0)}
            ),
        )
    )
    write_checkpoint(_load(log))
    first = _adds(log, 1)[0]["stats_parsed"]
    assert ("stats" in _adds(log, 1)[0]) == (configuration == STRUCT)
    for version in range(2, 5):
        log.commit(remove(f"gone-{version}"))
        write_checkpoint(_load(log))
        log.remove_commits([version - 1])
        assert _adds(log, version)[0]["stats_parsed"] == first


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 100])
def test_pieces_of_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(rows_module, "ROW_GROUP_ROWS", 4)
    log = LogBuilder(tmp_path).create(configuration=STRUCT)
    log.commit(*(add(f"f{n}", stats=f'{{"numRecords":{n},"minValues":{{"id":{n}}}}}') for n in range(9)))
    write_checkpoint(_load(log))
    log.remove_commits([0, 1])
    monkeypatch.setattr(rows_module, "_PIECE_ROWS", rows)
    log.commit(remove("f3"), remove("f0"), add("g", stats='{"numRecords":50}'))
    write_checkpoint(_load(log))
    found = {row["path"]: row["stats_parsed"]["numRecords"] for row in _adds(log, 2)}
    assert found == {**{f"f{n}": n for n in (1, 2, 4, 5, 6, 7, 8)}, "g": 50}


@pytest.mark.parametrize("configuration", [STRUCT, STRUCT_ONLY], ids=["both", "struct only"])
def test_deltalake_and_we_read_rows_and_skip_files(tmp_path: Path, configuration: dict[str, str]) -> None:
    uri = str(tmp_path / "t")
    for number in range(4):
        data = pa.table(
            {
                "p": [number % 2, None],
                "n": pa.array([number, None], pa.int64()),
                "s": [f"s{number}", "ü"],
                "at": pa.array(
                    [dt.datetime(2024, 1, 1 + number, tzinfo=dt.UTC), None], pa.timestamp("us", "UTC")
                ),
            }
        )
        write_deltalake(uri, data, mode="append", partition_by=["p"], configuration=configuration)
    before = DeltaTable(uri)
    key = [("n", "ascending"), ("s", "ascending")]
    rows = before.to_pyarrow_table().sort_by(key)
    left = OurTable(uri).file_uris("n = 2")
    assert len(left) == 1
    info = write_checkpoint(Snapshot.load(open_store(uri)))
    for path in (tmp_path / "t" / "_delta_log").glob("*.json"):
        path.unlink()
    after = DeltaTable(uri)
    assert after.version() == info.version
    assert after.to_pyarrow_table().sort_by(key) == rows
    assert pa.table(after.get_add_actions(flatten=True)).num_rows == info.num_add_files
    ours = OurTable(uri)
    assert ours.to_pyarrow_table().sort_by(key).equals(rows.select(ours.to_pyarrow_table().column_names))
    assert ours.file_uris("n = 2") == left
    wanted = pa.table(before.get_add_actions(flatten=True)).sort_by("path")
    found = pa.table(after.get_add_actions(flatten=True)).sort_by("path")
    for name in ("num_records", "null_count.n", "min.n", "max.n", "min.s", "max.s"):
        assert found.column(name).to_pylist() == wanted.column(name).to_pylist(), name


def test_columns_that_a_table_is_clustered_by_keep_their_statistics(tmp_path: Path) -> None:
    """PROTOCOL.md, "Writer Requirements for Clustered Table": every file has them, of a nested column too."""
    rows = pa.table({"id": [1, 2], "n": [3, 4], "s": [{"x": 5}, {"x": 6}]})
    table = OurTable.create(
        tmp_path,
        rows.schema,
        cluster_by=["n", ["s", "x"]],
        configuration={**STRUCT_ONLY, "delta.dataSkippingNumIndexedCols": "0"},
    )
    ours_write(table, rows, mode="append")
    table.create_checkpoint()
    (found,) = [
        row["add"]["stats_parsed"]
        for row in pq.read_table(tmp_path / "_delta_log" / f"{1:020d}.checkpoint.parquet").to_pylist()
        if row["add"]
    ]
    assert (found["minValues"], found["maxValues"]) == ({"n": 3, "s": {"x": 5}}, {"n": 4, "s": {"x": 6}})
    assert found["nullCount"] == {"n": 0, "s": {"x": 0}}
    for version in range(2):
        (tmp_path / "_delta_log" / f"{version:020d}.json").unlink()
    again = OurTable(tmp_path)
    again.alter.cluster_by(["n"])
    assert again.version() == 2
