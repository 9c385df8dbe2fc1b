"""Logs that say two things at once, or what cannot be, are refused with the line; statistics only prune."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import CorruptLogError, DeltaError, UnsupportedTableFeatureError
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore

PROTOCOL = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
FIELD = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
DEPTH = 3_000


def metadata(schema: str | None = None, **changes: Any) -> dict[str, Any]:
    text = schema or json.dumps({"type": "struct", "fields": [FIELD]})
    fields = {"id": "a", "format": {"provider": "parquet", "options": {}}, "schemaString": text}
    return {"metaData": {**fields, "partitionColumns": [], "configuration": {}, **changes}}


def add(**changes: Any) -> dict[str, Any]:
    fields = {
        "path": "a.parquet",
        "partitionValues": {},
        "size": 1,
        "modificationTime": 1,
        "dataChange": True,
    }
    return {"add": {**fields, **changes}}


REMOVE = {"remove": {"path": "%61.parquet", "deletionTimestamp": 1, "dataChange": True}}
DEEP = (
    '{"type":"struct","fields":[{"name":"a","nullable":true,"metadata":{},"type":'
    + '{"type":"array","containsNull":true,"elementType":' * DEPTH
    + '"long"'
    + "}" * DEPTH
    + "}]}"
)


def read(folder: Path, *lines: dict[str, Any] | str) -> Snapshot:
    log = folder / "_delta_log"
    log.mkdir()
    strings = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    (log / f"{0:020}.json").write_text("\n".join(strings))
    snapshot = Snapshot.load(LocalLogStore(folder))
    assert snapshot.schema is not None
    DeltaTable(folder).to_pyarrow_table()
    return snapshot


@pytest.mark.parametrize(
    "lines",
    [
        (PROTOCOL, PROTOCOL, metadata()),
        (PROTOCOL, metadata(), metadata()),
        (PROTOCOL, metadata(), add(), add()),
        (PROTOCOL, metadata(), add(), add(path="%61.parquet")),
        (PROTOCOL, metadata(), add(), REMOVE),
        (PROTOCOL, metadata(), add(size=-1)),
        (PROTOCOL, metadata(), add(size=10**30)),
        (PROTOCOL, metadata(), add(size="1")),
        (PROTOCOL, metadata(), add(partitionValues=[])),
        (PROTOCOL, metadata(), '{"add": {"path": "a", "path": "b"}}'),
        (PROTOCOL, metadata(), {"txn": {"appId": "a", "version": 1}}, {"txn": {"appId": "a", "version": 2}}),
        (PROTOCOL, metadata(), '{"add": ' + "[" * DEPTH),
    ],
    ids=str,
)
def test_a_commit_that_contradicts_itself_is_refused(tmp_path: Path, lines: Any) -> None:
    with pytest.raises(CorruptLogError, match=r"Line \d+ of '_delta_log/0{20}\.json'") as refused:
        read(tmp_path, *lines)
    assert refused.value.cause


@pytest.mark.parametrize("lines", [(PROTOCOL, metadata(DEEP)), (PROTOCOL, metadata("[" * 100_000))], ids=len)
def test_a_schema_without_an_end_is_refused(tmp_path: Path, lines: Any) -> None:
    with pytest.raises(DeltaError):
        read(tmp_path, *lines)


def test_a_feature_that_nobody_knows_is_refused_by_name(tmp_path: Path) -> None:
    unknown = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["x"], "writerFeatures": ["x"]}
    with pytest.raises(UnsupportedTableFeatureError, match="unsupported table feature x"):
        read(tmp_path, {"protocol": unknown}, metadata())


def test_bounds_that_are_the_wrong_way_round_change_no_row_that_is_shown_without_them(tmp_path: Path) -> None:
    """What the statistics say may hide rows from a predicate that relies on them, and from nothing else."""
    write_deltalake(tmp_path, pa.table({"id": [1, 2, 3]}))
    log = tmp_path / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "add" in line:
            stats = {"numRecords": 3, "minValues": {"id": 9}, "maxValues": {"id": -9}, "nullCount": {"id": 3}}
            line["add"]["stats"] = json.dumps(stats)
    log.write_text("\n".join(map(json.dumps, lines)))
    table = DeltaTable(tmp_path)
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == [1, 2, 3]
    for condition in ("id > 1", "id IS NULL", "id = 9"):
        found = table.to_pyarrow_table(filters=condition)["id"].to_pylist()
        assert set(found) <= {2, 3}, condition
