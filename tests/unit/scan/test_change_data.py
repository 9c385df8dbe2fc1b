"""Change data: told by change files, by whole files, and by what differs between two deletion vectors."""

from __future__ import annotations

import dataclasses
import gc
import json
import weakref
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable as PeerTable
from deltalake import write_deltalake

from delta_core import DeltaTable
from delta_core.actions import AddCdcFile, CommitInfo, Metadata, Protocol
from delta_core.checkpoint.classic import write_checkpoint
from delta_core.errors import (
    ConfigurationError,
    CorruptLogError,
    SchemaError,
    TableChangedError,
    VersionNotFoundError,
)
from delta_core.scan.change_data import ChangeDataScan
from delta_core.snapshot.snapshot import Snapshot
from tests.support.deletion_vectors import inline_deletion_vector
from tests.support.log_builder import NOW_MS, LogBuilder, add, protocol, remove

FEATURES = frozenset({"deletionVectors"})
PROTOCOL = Protocol(
    min_reader_version=3,
    min_writer_version=7,
    reader_features=FEATURES,
    writer_features=FEATURES | {"changeDataFeed"},
)


def metadata(*, enabled: bool = True, fields: tuple[str, ...] = ("p", "id"), **changes: Any) -> Metadata:
    types = {"p": "string", "id": "long", "extra": "long"}
    schema = {
        "type": "struct",
        "fields": [{"name": f, "type": types[f], "nullable": True, "metadata": {}} for f in fields],
    }
    return Metadata(
        id="1",
        schema_string=json.dumps(schema),
        partition_columns=("p",),
        configuration={"delta.enableChangeDataFeed": str(enabled).lower()},
        **changes,
    )


@pytest.fixture
def log(tmp_path: Path) -> LogBuilder:
    built = LogBuilder(tmp_path)
    for name, ids in (("a", [1, 2, 3, 4]), ("b", [5, 6])):
        pq.write_table(pa.table({"id": ids}), tmp_path / f"{name}.parquet")
    return built


def changes(log: LogBuilder, first: int, last: int | None = None, **options: Any) -> list[tuple[Any, ...]]:
    scan = ChangeDataScan(Snapshot.load(log.store, version=last), starting_version=first, **options)
    table = scan.to_table()
    assert table.schema == scan.schema
    names = [name for name in table.schema.names if name != "_commit_timestamp"]
    return [tuple(row[name] for name in names) for row in table.to_pylist()]


def test_whole_files_and_change_files(log: LogBuilder) -> None:
    log.commit(PROTOCOL, metadata(), add("a.parquet"))
    log.commit(
        remove("a.parquet", partition_values={"p": "1"}), add("b.parquet", partition_values={"p": "2"})
    )
    (log.root / "_change_data").mkdir()
    cdc = pa.table(
        {"id": [5, 7], "_change_type": ["update_preimage", "update_postimage"]},
    )
    pq.write_table(cdc, log.root / "_change_data" / "c.parquet")
    log.commit(
        # With a change file, the other files say nothing.
        remove("b.parquet", partition_values={"p": "2"}),
        add("a.parquet"),
        AddCdcFile(path="_change_data/c.parquet", partition_values={"p": "2"}, size_bytes=1),
    )
    log.commit(add("b.parquet", data_change=False))
    inserted = [("1", number, "insert", 0) for number in (1, 2, 3, 4)]
    replaced = [("1", number, "delete", 1) for number in (1, 2, 3, 4)]
    replaced += [("2", 5, "insert", 1), ("2", 6, "insert", 1)]
    updated = [("2", 5, "update_preimage", 2), ("2", 7, "update_postimage", 2)]
    assert changes(log, 0) == inserted + replaced + updated
    assert changes(log, 1, 1) == replaced
    assert changes(log, 3) == []
    times = ChangeDataScan(Snapshot.load(log.store), starting_version=2).to_table()["_commit_timestamp"]
    assert {value.timestamp() for value in times.to_pylist()} == {(NOW_MS + 2000) / 1000}


def test_predicates_and_columns_reach_the_change_columns(log: LogBuilder) -> None:
    log.commit(PROTOCOL, metadata(), add("a.parquet"))
    log.commit(
        remove("a.parquet", partition_values={"p": "1"}), add("b.parquet", partition_values={"p": "2"})
    )
    where = "_change_type = 'delete' AND _commit_version >= 1 AND id < 3"
    assert changes(log, 0, predicate=where, columns=["id", "_change_type"]) == [(1, "delete"), (2, "delete")]
    assert changes(log, 0, columns=["_commit_version"], predicate="p = '2'") == [(1,), (1,)]


def test_replaced_deletion_vectors(log: LogBuilder) -> None:
    values = {"p": "1"}
    before, after = inline_deletion_vector([0]), inline_deletion_vector([1, 3])
    log.commit(PROTOCOL, metadata(), add("a.parquet", deletion_vector=before))
    log.commit(
        remove("a.parquet", partition_values=values, deletion_vector=before),
        add("a.parquet", deletion_vector=after),
    )
    log.commit(remove("a.parquet", partition_values=values, deletion_vector=after), add("a.parquet"))
    log.commit(remove("a.parquet", partition_values=values))
    assert changes(log, 0, 0) == [("1", 2, "insert", 0), ("1", 3, "insert", 0), ("1", 4, "insert", 0)]
    assert changes(log, 1, 1) == [("1", 2, "delete", 1), ("1", 4, "delete", 1), ("1", 1, "insert", 1)]
    assert changes(log, 2, 2) == [("1", 2, "insert", 2), ("1", 4, "insert", 2)]
    assert len(changes(log, 3, 3)) == 4


def test_a_remove_without_its_partition_is_looked_up(log: LogBuilder) -> None:
    log.commit(PROTOCOL, metadata(), add("a.parquet", partition_values={"p": "x"}))
    log.commit(remove("a.parquet", partition_values=None))
    assert changes(log, 1) == [("x", number, "delete", 1) for number in (1, 2, 3, 4)]


def test_a_remove_is_looked_up_in_the_version_right_before_it(log: LogBuilder) -> None:
    log.commit(
        PROTOCOL,
        metadata(),
        add("a.parquet", partition_values={"p": "x"}),
        add("b.parquet", partition_values={"p": "y"}),
    )
    log.commit(remove("b.parquet", partition_values=None), remove("a.parquet", partition_values=None))
    log.commit(add("a.parquet", partition_values={"p": "z"}))
    log.commit(remove("a.parquet", partition_values={}))
    assert [(p, change, version) for p, _, change, version in changes(log, 1)] == [
        *[("y", "delete", 1)] * 2,
        *[("x", "delete", 1)] * 4,
        *[("z", "insert", 2)] * 4,
        *[("z", "delete", 3)] * 4,
    ]


def test_a_remove_of_a_file_that_nobody_knows_is_refused(log: LogBuilder) -> None:
    log.commit(PROTOCOL, metadata(), add("b.parquet"))
    log.commit(remove("a.parquet", partition_values=None))
    with pytest.raises(TableChangedError, match=r"Version 1 .* does not record the partition") as caught:
        changes(log, 1)
    assert "'a.parquet' has no partition values, and is not in the version before" in caught.value.cause


def test_a_version_that_was_cleaned_up_is_named(log: LogBuilder) -> None:
    log.commit(protocol(), metadata(), add("a.parquet"))
    log.commit(add("b.parquet"))
    log.commit(add("c.parquet", data_change=False))
    write_checkpoint(Snapshot.load(log.store, version=1))
    log.remove_commits([0, 1])
    with pytest.raises(
        VersionNotFoundError, match=r"changes of version 1 of .* are not in the log"
    ) as caught:
        changes(log, 1)
    assert caught.value.fix == "Read the whole table, and continue after the version that you read."
    assert changes(log, 2) == []


def test_maps_and_lists_may_gain_fields_and_lose_none(log: LogBuilder) -> None:
    def nested(**types: str) -> Metadata:
        inner = {
            "type": "struct",
            "fields": [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in types.items()],
        }
        kinds = {
            "p": "string",
            "m": {"type": "map", "keyType": inner, "valueType": inner, "valueContainsNull": True},
            "l": {"type": "array", "elementType": inner, "containsNull": True},
        }
        fields = [{"name": n, "type": k, "nullable": True, "metadata": {}} for n, k in kinds.items()]
        return dataclasses.replace(metadata(), schema_string=json.dumps({"type": "struct", "fields": fields}))

    log.commit(PROTOCOL, nested(a="long"))
    log.commit(nested(a="long", b="string"))
    assert changes(log, 0) == []
    log.commit(nested(b="string"))
    with pytest.raises(TableChangedError, match=r"Its schema has m\.key\.a"):
        changes(log, 1)
    log.commit(nested(b="long"))
    with pytest.raises(TableChangedError, match=r"Its schema has m\.key\.b as string"):
        changes(log, 2)


def test_versions_without_change_data_are_refused(log: LogBuilder) -> None:
    log.commit(PROTOCOL, metadata(enabled=False), add("a.parquet"))
    log.commit(metadata())
    log.commit(add("b.parquet"))
    log.commit(metadata(enabled=False))
    with pytest.raises(TableChangedError, match=r"changes of version 0.*DeltaTable\.appended_batches"):
        changes(log, 0)
    assert len(changes(log, 1, 2)) == 2
    assert len(changes(log, 2, 2)) == 2
    with pytest.raises(TableChangedError, match="changes of version 3"):
        changes(log, 1)


def test_schemas_in_between(log: LogBuilder) -> None:
    log.commit(PROTOCOL, metadata(), add("a.parquet"))
    log.commit(metadata(fields=("p", "id", "extra")), add("b.parquet"))
    assert changes(log, 0)[0] == ("1", 1, None, "insert", 0)
    log.commit(metadata(fields=("p", "extra")))
    with pytest.raises(TableChangedError, match="Its schema has id"):
        changes(log, 0)


def unpartitioned(log: LogBuilder, name: str, **columns: list[Any]) -> None:
    pq.write_table(pa.table(columns), log.root / name)


NOWHERE: dict[str, str | None] = {}


def repartitioned(**changes: Any) -> Metadata:
    return dataclasses.replace(metadata(), **changes)


@pytest.mark.parametrize("known", [NOWHERE, None])
def test_files_are_read_as_they_were_partitioned_before(
    log: LogBuilder, known: dict[str, str | None] | None
) -> None:
    unpartitioned(log, "u", p=["x", "y"], id=[7, 8])
    log.commit(PROTOCOL, repartitioned(partition_columns=()), add("u", partition_values=NOWHERE))
    log.commit(metadata(), remove("u", partition_values=known), add("a.parquet", partition_values={"p": "z"}))
    inserted = [("x", 7, "insert", 0), ("y", 8, "insert", 0)]
    deleted = [("x", 7, "delete", 1), ("y", 8, "delete", 1)]
    later = [("z", number, "insert", 1) for number in (1, 2, 3, 4)]
    assert changes(log, 0) == inserted + deleted + later
    assert changes(log, 1) == deleted + later
    assert changes(log, 0, 0) == inserted
    assert changes(log, 0, predicate="p = 'y'") == [inserted[1], deleted[1]]
    assert changes(log, 0, columns=["p"], predicate="_change_type = 'delete'") == [("x",), ("y",)]


@pytest.mark.parametrize("known", [{"p": "1"}, None])
def test_files_are_read_as_they_were_partitioned_when_later_ones_are_not(
    log: LogBuilder, known: dict[str, str | None] | None
) -> None:
    unpartitioned(log, "u", p=["x"], id=[7])
    log.commit(PROTOCOL, metadata(), add("b.parquet"))
    log.commit(
        repartitioned(partition_columns=()),
        remove("b.parquet", partition_values=known),
        add("u", partition_values=NOWHERE),
    )
    before, after = [("1", 5, "insert", 0), ("1", 6, "insert", 0)], [("x", 7, "insert", 1)]
    deleted = [("1", 5, "delete", 1), ("1", 6, "delete", 1)]
    assert changes(log, 0) == before + deleted + after
    assert changes(log, 1) == deleted + after


def test_a_time_that_is_no_date_names_the_commit(log: LogBuilder) -> None:
    on = repartitioned(configuration=metadata().configuration | {"delta.enableInCommitTimestamps": "true"})
    log.commit(CommitInfo(in_commit_timestamp_ms=2**63 - 1), PROTOCOL, on, add("b.parquet"))
    with pytest.raises(CorruptLogError, match=r"00000000000000000000.json.*out of range") as caught:
        changes(log, 0)
    assert str(2**63 - 1) in caught.value.cause


@pytest.mark.parametrize("name", ["_change_type", "_Commit_Version", "_COMMIT_TIMESTAMP"])
@pytest.mark.parametrize("physical", [False, True])
def test_a_table_with_a_column_of_change_data_is_refused(log: LogBuilder, name: str, physical: bool) -> None:
    mapped = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": name} if physical else {}
    field = {"name": "mine" if physical else name, "type": "string", "nullable": True, "metadata": mapped}
    configuration = metadata().configuration | ({"delta.columnMapping.mode": "name"} if physical else {})
    schema = json.dumps({"type": "struct", "fields": [field]})
    features = FEATURES | {"columnMapping"}
    log.commit(
        dataclasses.replace(PROTOCOL, reader_features=features, writer_features=features),
        repartitioned(schema_string=schema, partition_columns=(), configuration=configuration),
    )
    with pytest.raises(SchemaError, match="cannot be read") as caught:
        changes(log, 0)
    assert field["name"] in caught.value.cause


def test_a_scan_is_gone_with_its_last_user(log: LogBuilder) -> None:
    """In a circle, what its snapshot holds would stay until the next collection of garbage."""
    log.commit(PROTOCOL, metadata(), add("a.parquet"))
    scan = ChangeDataScan(Snapshot.load(log.store), starting_version=0)
    seen = weakref.ref(scan)
    gc.disable()
    try:
        assert scan.to_table().num_rows == 4
        del scan
        assert seen() is None
    finally:
        gc.enable()


def test_ranges(log: LogBuilder) -> None:
    log.commit(PROTOCOL, metadata(), add("a.parquet"))
    log.commit(add("b.parquet"))
    for first in (-1, 2):
        with pytest.raises(ConfigurationError, match="first version"):
            changes(log, first)
    log.commit(add("b.parquet"))
    table = DeltaTable(log.root)
    assert table.load_cdf(1, 1).read_all().num_rows == 2
    assert table.load_cdf(starting_timestamp_ms=NOW_MS + 500).read_all().num_rows == 4
    assert table.load_cdf(0, ending_timestamp_ms=NOW_MS + 1500).read_all().num_rows == 6
    with pytest.raises(VersionNotFoundError, match="or later"):
        table.load_cdf(starting_timestamp_ms=NOW_MS + 9_000_000)
    with pytest.raises(VersionNotFoundError):
        table.load_cdf(0, 9)


def test_equal_to_deltalakes(tmp_path: Path) -> None:
    data = pa.table({"id": list(range(20)), "p": [number % 3 for number in range(20)]})
    write_deltalake(tmp_path, data, partition_by=["p"], configuration={"delta.enableChangeDataFeed": "true"})
    PeerTable(tmp_path).update(predicate="id > 15", updates={"id": "id + 100"})
    PeerTable(tmp_path).delete("id < 4")
    write_deltalake(tmp_path, data.slice(0, 5), mode="append")
    write_deltalake(tmp_path, data.slice(5, 2), mode="overwrite")
    for first, last in ((0, 4), (1, 2), (3, 3), (4, 4)):
        peer = PeerTable(tmp_path).load_cdf(starting_version=first, ending_version=last)
        theirs = pa.table(peer.read_all()).to_pylist()
        ours = DeltaTable(tmp_path).load_cdf(first, last).read_all().to_pylist()
        columns = ("id", "p", "_change_type", "_commit_version")
        assert sorted(tuple(row[name] for name in columns) for row in ours) == sorted(
            tuple(row[name] for name in columns) for row in theirs
        )
        assert ours


def test_changes_go_on_where_column_mapping_was_enabled(tmp_path: Path) -> None:
    """They were refused, although columns keep the names that they have in files."""
    feed = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(tmp_path, pa.table({"id": [1, 2], "x": ["a", "b"]}), configuration=feed)
    table = DeltaTable(tmp_path)
    table.update({"x": "'c'"}, predicate="id = 2")
    table.alter.set_properties({"delta.columnMapping.mode": "name"})
    table.alter.rename_column("x", "y")
    table.delete("id = 1")
    found = DeltaTable(tmp_path).load_cdf(0).read_all().to_pylist()
    assert sorted((row["_commit_version"], row["_change_type"], row["id"], row["y"]) for row in found) == [
        (0, "insert", 1, "a"),
        (0, "insert", 2, "b"),
        (1, "update_postimage", 2, "c"),
        (1, "update_preimage", 2, "b"),
        (4, "delete", 1, "a"),
    ]
    table.alter.drop_columns("y")
    with pytest.raises(TableChangedError, match="changes of version 0 ") as caught:
        DeltaTable(tmp_path).load_cdf(0).read_all()
    assert caught.value.cause == "Its schema has x, which the later schema does not have."
