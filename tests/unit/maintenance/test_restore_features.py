"""Restoring tables whose rows or definition take a table feature."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_delta
import pyarrow as pa
import pytest
from deltalake import DeltaTable as PeerTable
from deltalake import QueryBuilder

from delta_core import DeltaTable, clone_table, write_deltalake
from delta_core.actions import AddFile, DomainMetadata, Metadata, Protocol, RemoveFile
from delta_core.actions.json_codec import decode_commit
from delta_core.errors import (
    ConcurrentModificationError,
    MissingDataFileError,
    UnsupportedTableFeatureError,
)
from delta_core.maintenance.restore import apply_restore, diff_rows, plan_restore
from delta_core.maintenance.restore.files import file_keys
from delta_core.schema.json import schema_from_json
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.table_features.identity import identity_columns
from tests.support.deletion_vector_tables import DeletionVectorTable, every_kind_of_deletion_vector
from tests.support.log_builder import LogBuilder, add, metadata, protocol, remove

pytestmark = pytest.mark.slow

Rows = set[tuple[int, int]]


def by_us(root: Path) -> Rows:
    found = DeltaTable(root).to_pyarrow_table()
    return set(zip(found["file"].to_pylist(), found["id"].to_pylist(), strict=True))


def by_deltalake(root: Path) -> Rows:
    query = QueryBuilder().register("t", PeerTable(str(root)))
    found = pa.table(query.execute("SELECT file, id FROM t").read_all())
    return set(zip(found["file"].to_pylist(), found["id"].to_pylist(), strict=True))


def by_duckdb(root: Path) -> Rows:
    (extension,) = Path(duckdb_extension_delta.__file__).parent.rglob("delta.duckdb_extension")
    with duckdb.connect() as connection:
        connection.load_extension(str(extension))
        return set(connection.execute("SELECT file, id FROM delta_scan(?)", [str(root)]).fetchall())


READERS: tuple[Callable[[Path], Rows], ...] = (by_us, by_deltalake, by_duckdb)


def actions_of(root: Path, version: int) -> list[Any]:
    path = root / "_delta_log" / f"{version:020}.json"
    return decode_commit(path.read_bytes(), path=path.name)


@pytest.fixture
def dvs(tmp_path: Path) -> DeletionVectorTable:
    return every_kind_of_deletion_vector(tmp_path / "t")


@pytest.mark.slow
def test_every_version_comes_back_with_its_deleted_rows(dvs: DeletionVectorTable) -> None:
    last = DeltaTable(dvs.root).version()
    for version, rows in enumerate(dvs.expected, last - len(dvs.expected) + 1):
        DeltaTable(dvs.root).restore(version)
        for reader in READERS:
            assert reader(dvs.root) == rows, f"version {version} by {reader.__name__}"


def test_files_that_differ_by_their_vectors_are_removed_and_added(dvs: DeletionVectorTable) -> None:
    table = DeltaTable(dvs.root)
    plan = table.restore(table.version() - 1)
    changed = {file.path for file in plan.removed}
    assert changed
    assert changed < {file.path for file in plan.added}, "a file without rows has gone meanwhile"
    assert plan.predicted()["rows_added"] == sum(file.rows or 0 for file in plan.added)
    assert (plan.predicted()["rows_added"] or 0) - (plan.predicted()["rows_removed"] or 0) == len(
        dvs.expected[-2]
    ) - len(dvs.expected[-1])
    commit = actions_of(dvs.root, table.version())
    adds = {a.path: a.deletion_vector for a in commit if isinstance(a, AddFile)}
    removes = {a.path: a.deletion_vector for a in commit if isinstance(a, RemoveFile)}
    assert removes.keys() == changed
    assert all(adds[path] != removes[path] for path in removes)
    assert table.restore(table.version()).is_empty


def test_a_missing_vector_makes_its_file_missing(dvs: DeletionVectorTable) -> None:
    table = DeltaTable(dvs.root)
    target = table.version()
    stored = [v for v in dvs.live_deletion_vectors if v.storage_type == "u"]
    assert stored
    table.restore(target - len(dvs.expected) + 1)
    for file in dvs.root.rglob("*.bin"):
        file.unlink()
    plan = table.restore(target, dry_run=True)
    assert len(plan.missing) >= len(stored)
    with pytest.raises(MissingDataFileError):
        table.restore(target)
    table.restore(target, ignore_missing_files=True)
    # Whole files are left out: none shows rows that are deleted.
    assert by_us(dvs.root) < dvs.expected[-1]
    assert by_us(dvs.root) == by_duckdb(dvs.root)


def test_a_vector_that_is_cut_short_counts_as_missing(dvs: DeletionVectorTable) -> None:
    table = DeltaTable(dvs.root)
    target = table.version()
    table.restore(target - len(dvs.expected) + 1)
    for file in dvs.root.rglob("*.bin"):
        file.write_bytes(file.read_bytes()[:3])
    assert table.restore(target, dry_run=True).missing


def test_rows_of_such_tables_are_not_compared(dvs: DeletionVectorTable) -> None:
    snapshot = DeltaTable(dvs.root).snapshot
    plan = plan_restore(snapshot, version=snapshot.version - 1)
    with pytest.raises(UnsupportedTableFeatureError, match="compare the rows"):
        diff_rows(snapshot, plan)


def test_a_commit_in_between_that_matters_is_a_conflict(dvs: DeletionVectorTable) -> None:
    snapshot = DeltaTable(dvs.root).snapshot
    plan = plan_restore(snapshot, version=snapshot.version - 1)
    number, row = min(dvs.expected[-1])
    dvs.delete({number: [row]}, inline_max_bytes=-1)
    with pytest.raises(ConcurrentModificationError):
        apply_restore(snapshot, plan)


# ---------------------------------------------------------------- definitions, by hand


def schema(*fields: Mapping[str, Any]) -> str:
    filled = [{"nullable": True, "metadata": {}, "type": "long", **field} for field in fields]
    return json.dumps({"type": "struct", "fields": filled})


def mapped(name: str, physical: str, number: int) -> dict[str, Any]:
    ids = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
    return {"name": name, "metadata": ids}


def data_file(root: Path, columns: Mapping[str, list[int]]) -> AddFile:
    """A file in the table's directory, written by a writer that knows nothing of mapping."""
    other = root.parent / f"made-{len(list(root.parent.iterdir()))}"
    write_deltalake(other, pa.table({name: pa.array(v, pa.int64()) for name, v in columns.items()}))
    (made,) = DeltaTable(other).snapshot.files.to_table().to_pylist()
    root.mkdir(exist_ok=True)
    (root / made["path"]).write_bytes((other / made["path"]).read_bytes())
    return AddFile(
        path=made["path"],
        size_bytes=made["size_bytes"],
        modification_time_ms=made["modification_time_ms"],
        stats=made["stats"],
    )


def test_columns_come_back_under_the_names_that_they_had(tmp_path: Path) -> None:
    root = tmp_path / "t"
    log = LogBuilder(root)
    mapping = {"delta.columnMapping.mode": "name"}
    first, second = data_file(root, {"id": [1], "c-b": [5]}), data_file(root, {"id": [2], "c-c": [7]})
    before = metadata(
        schema_string=schema(mapped("id", "id", 1), mapped("b", "c-b", 2)),
        partition_columns=(),
        configuration={**mapping, "delta.columnMapping.maxColumnId": "2"},
    )
    log.commit(protocol(min_reader_version=2, min_writer_version=5), before, first)
    after = replace(
        before,
        schema_string=schema(mapped("id", "id", 1), mapped("b", "c-c", 3)),
        configuration={**mapping, "delta.columnMapping.maxColumnId": "3"},
    )
    log.commit(after, remove(first.path, size_bytes=first.size_bytes), second)
    table = DeltaTable(root)
    table.restore(0)
    assert table.to_pyarrow_table().to_pylist() == [{"id": 1, "b": 5}]
    assert table.metadata().configuration["delta.columnMapping.maxColumnId"] == "3"
    assert table.metadata().schema_string == before.schema_string
    found = pa.table(QueryBuilder().register("t", PeerTable(str(root))).execute("SELECT * FROM t").read_all())
    assert found.to_pylist() == [{"id": 1, "b": 5}]
    table.restore(1)
    assert table.to_pyarrow_table().to_pylist() == [{"id": 2, "b": 7}]


def test_a_mapping_that_came_since_goes_and_its_highest_id_stays(tmp_path: Path) -> None:
    root = tmp_path / "t"
    log = LogBuilder(root)
    first = data_file(root, {"id": [1]})
    plain = metadata(schema_string=schema({"name": "id"}), partition_columns=())
    log.commit(protocol(), plain, first)
    log.commit(
        protocol(min_reader_version=2, min_writer_version=5),
        replace(
            plain,
            schema_string=schema(mapped("renamed", "id", 1)),
            configuration={"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "1"},
        ),
    )
    table = DeltaTable(root)
    plan = table.restore(0)
    assert plan.changes.kept_features == (
        "changeDataFeed",
        "checkConstraints",
        "columnMapping",
        "generatedColumns",
    )
    assert table.to_pyarrow_table().to_pylist() == [{"id": 1}]
    assert dict(table.metadata().configuration) == {"delta.columnMapping.maxColumnId": "1"}
    assert (table.protocol().min_reader_version, table.protocol().min_writer_version) == (2, 5)
    assert PeerTable(str(root)).to_pyarrow_table().to_pylist() == [{"id": 1}]


def test_a_feature_that_was_dropped_since_comes_back(tmp_path: Path) -> None:
    root = tmp_path / "t"
    log = LogBuilder(root)
    listed = frozenset({"deletionVectors", "appendOnly"})
    table_metadata = metadata(schema_string=schema({"name": "id"}), partition_columns=())
    log.commit(
        protocol(
            min_reader_version=3,
            min_writer_version=7,
            reader_features=frozenset({"deletionVectors"}),
            writer_features=listed,
        ),
        replace(table_metadata, configuration={"delta.enableDeletionVectors": "true"}),
        data_file(root, {"id": [1]}),
    )
    log.commit(protocol(min_writer_version=7, writer_features=frozenset({"appendOnly", "domainMetadata"})))
    log.commit(table_metadata)
    table = DeltaTable(root)
    plan = table.restore(0)
    assert plan.changes.returning_features == ("deletionVectors",)
    assert table.protocol() == Protocol(
        min_reader_version=3,
        min_writer_version=7,
        reader_features=frozenset({"deletionVectors"}),
        writer_features=listed | {"domainMetadata"},
    )
    assert table.metadata().configuration["delta.enableDeletionVectors"] == "true"
    assert table.restore(0).is_empty
    assert "deletionVectors" in plan.to_json()["changes"]["returning_features"]
    assert "deletionVectors" in plan.to_markdown()


def test_widened_types_go_back_with_their_files(tmp_path: Path) -> None:
    root = tmp_path / "t"
    log = LogBuilder(root)
    write_deltalake(tmp_path / "narrow", pa.table({"id": pa.array([1], pa.int32())}))
    (made,) = DeltaTable(tmp_path / "narrow").snapshot.files.to_table().to_pylist()
    root.mkdir(exist_ok=True)
    (root / made["path"]).write_bytes((tmp_path / "narrow" / made["path"]).read_bytes())
    narrow = AddFile(
        path=made["path"], size_bytes=made["size_bytes"], modification_time_ms=1, stats=made["stats"]
    )
    before = metadata(
        schema_string=schema({"name": "id", "type": "integer"}),
        partition_columns=(),
        configuration={"delta.enableTypeWidening": "true"},
    )
    features = frozenset({"typeWidening"})
    log.commit(
        protocol(
            min_reader_version=3, min_writer_version=7, reader_features=features, writer_features=features
        ),
        before,
        narrow,
    )
    changes = {"delta.typeChanges": [{"fromType": "integer", "toType": "long"}]}
    wide = data_file(root, {"id": [1 << 40]})
    log.commit(replace(before, schema_string=schema({"name": "id", "metadata": changes})), wide)
    table = DeltaTable(root)
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == [1, 1 << 40]
    table.restore(0)
    found = table.to_pyarrow_table()
    assert (found["id"].to_pylist(), found.schema.field("id").type) == ([1], pa.int32())
    table.restore(1)
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == [1, 1 << 40]


def test_the_marks_of_identity_columns_stay_ahead(tmp_path: Path) -> None:
    def identity(mark: int, step: int = 1) -> dict[str, Any]:
        entries = {
            "delta.identity.start": 1,
            "delta.identity.step": step,
            "delta.identity.highWaterMark": mark,
            "delta.identity.allowExplicitInsert": False,
        }
        return {"name": "id", "metadata": entries}

    for step, past, present in ((1, 10, 50), (-1, -10, -50)):
        root = tmp_path / f"t{step}"
        log = LogBuilder(root)
        before = metadata(schema_string=schema(identity(past, step), {"name": "old"}), partition_columns=())
        log.commit(protocol(min_writer_version=6), before)
        log.commit(replace(before, schema_string=schema(identity(present, step))))
        table = DeltaTable(root)
        table.restore(0)
        restored = schema_from_json(table.metadata().schema_string)
        assert list(restored.names) == ["id", "old"]
        assert [column.high_water_mark for column in identity_columns(restored)] == [present]


ROW_TRACKING = frozenset({"rowTracking", "domainMetadata", "appendOnly", "invariants"})


def row_tracked(root: Path) -> LogBuilder:
    log = LogBuilder(root)
    names = {
        "delta.enableRowTracking": "true",
        "delta.rowTracking.materializedRowIdColumnName": "_id",
        "delta.rowTracking.materializedRowCommitVersionColumnName": "_version",
    }
    log.commit(
        protocol(min_writer_version=7, writer_features=ROW_TRACKING),
        metadata(schema_string=schema({"name": "id"}), partition_columns=(), configuration=names),
    )
    return log


def watermark(value: int) -> DomainMetadata:
    return DomainMetadata(domain="delta.rowTracking", configuration=json.dumps({"rowIdHighWaterMark": value}))


def test_rows_come_back_with_their_ids_and_no_id_is_given_twice(tmp_path: Path) -> None:
    root = tmp_path / "t"
    log = row_tracked(root)
    numbers = {"default_row_commit_version": 1}
    first = replace(data_file(root, {"id": [10, 11]}), base_row_id=0, **numbers)
    second = replace(data_file(root, {"id": [12]}), base_row_id=2, **numbers)
    log.commit(first, second, watermark(2))
    gone = remove(first.path, size_bytes=first.size_bytes, base_row_id=0, default_row_commit_version=1)
    third = replace(data_file(root, {"id": [13]}), base_row_id=7, default_row_commit_version=2)
    log.commit(gone, third, watermark(7))
    table = DeltaTable(root)
    table.restore(1)
    rows = {row["id"]: row for row in table.to_pyarrow_table(row_ids=True).to_pylist()}
    assert {number: row["_row_id"] for number, row in rows.items()} == {10: 0, 11: 1, 12: 2}
    assert {row["_row_commit_version"] for row in rows.values()} == {1}
    assert json.loads(table.domain_metadata()["delta.rowTracking"].configuration) == {"rowIdHighWaterMark": 7}
    info = json.loads((root / "_delta_log" / f"{3:020}.json").read_text().splitlines()[0])["commitInfo"]
    assert info["tags"] == {"delta.rowTracking.preserved": "true"}


def test_files_of_before_row_tracking_get_ids_when_they_come_back(tmp_path: Path) -> None:
    root = tmp_path / "t"
    log = LogBuilder(root)
    plain = metadata(schema_string=schema({"name": "id"}), partition_columns=())
    first = data_file(root, {"id": [10, 11]})
    log.commit(protocol(min_writer_version=7, writer_features=ROW_TRACKING - {"rowTracking"}), plain, first)
    log.commit(protocol(min_writer_version=7, writer_features=ROW_TRACKING), watermark(4))
    log.commit(remove(first.path, size_bytes=first.size_bytes))
    table = DeltaTable(root)
    table.restore(0)
    (row,) = table.snapshot.files.to_table().to_pylist()
    assert (row["base_row_id"], row["default_row_commit_version"]) == (5, 3)
    assert json.loads(table.domain_metadata()["delta.rowTracking"].configuration) == {"rowIdHighWaterMark": 6}


def test_domains_go_back(tmp_path: Path) -> None:
    root = tmp_path / "t"
    log = row_tracked(root)
    kept = DomainMetadata(domain="kept", configuration="1")
    changed = DomainMetadata(domain="changed", configuration="1")
    dropped = DomainMetadata(domain="dropped", configuration="1")
    log.commit(kept, changed, dropped)
    log.commit(replace(changed, configuration="2"), replace(dropped, removed=True))
    log.commit(DomainMetadata(domain="new", configuration="3"))
    table = DeltaTable(root)
    plan = table.restore(1)
    assert plan.changes.domains == ("changed", "dropped", "new")
    assert dict(table.domain_metadata()) == {d.domain: d for d in (kept, changed, dropped)}
    committed = [a for a in actions_of(root, table.version()) if isinstance(a, DomainMetadata)]
    assert DomainMetadata(domain="new", configuration="3", removed=True) in committed
    table.create_checkpoint()
    assert set(DeltaTable(root).domain_metadata()) == {"kept", "changed", "dropped"}
    assert table.restore(1).is_empty


def test_in_commit_times_go_on(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    table = DeltaTable(tmp_path)
    table.alter.set_properties({"delta.enableInCommitTimestamps": "true"})
    told = dict(table.metadata().configuration)
    assert table.restore(0).is_empty
    write_deltalake(tmp_path, pa.table({"id": [2]}), mode="append")
    table.restore(0)
    assert dict(table.metadata().configuration) == told
    lines = (tmp_path / "_delta_log" / f"{3:020}.json").read_text().splitlines()
    assert json.loads(lines[0])["commitInfo"]["inCommitTimestamp"] > 0


def test_a_vector_without_fields_is_none(tmp_path: Path) -> None:
    """Some checkpoints hold a struct of nulls where there is no vector."""
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    table = DeltaTable(tmp_path)
    files = table.snapshot.files.to_table(["path", "deletion_vector"])
    kind = files.schema.field("deletion_vector").type
    empty = pa.array([dict.fromkeys([child.name for child in kind])], kind)
    from_checkpoint = files.set_column(1, "deletion_vector", empty)
    assert file_keys(from_checkpoint) == file_keys(files)


def test_a_shallow_clone_is_restored_below_its_allowed_roots(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": pa.array([1], pa.int64())}))
    clone_table(tmp_path / "t", tmp_path / "c", shallow=True)
    write_deltalake(tmp_path / "c", pa.table({"id": pa.array([2], pa.int64())}), mode="overwrite")
    with pytest.raises(MissingDataFileError):
        DeltaTable(tmp_path / "c").restore(0)
    table = DeltaTable(tmp_path / "c", allowed_roots=[tmp_path / "t"])
    table.restore(0)
    assert table.to_pyarrow_table().to_pylist() == [{"id": 1}]


def test_the_change_feed_of_a_restore_says_what_changed(tmp_path: Path) -> None:
    root = tmp_path / "t"
    log = LogBuilder(root)
    first, second = data_file(root, {"id": [1]}), data_file(root, {"id": [2]})
    fed = metadata(
        schema_string=schema({"name": "id"}),
        partition_columns=(),
        configuration={"delta.enableChangeDataFeed": "true"},
    )
    log.commit(protocol(min_writer_version=4), fed, first)
    log.commit(remove(first.path, size_bytes=first.size_bytes), second)
    table = DeltaTable(root)
    table.restore(0)
    ours = table.load_cdf(2).read_all()
    theirs = pa.table(PeerTable(str(root)).load_cdf(starting_version=2).read_all())
    for found in (ours, theirs):
        kinds = zip(found["id"].to_pylist(), found["_change_type"].to_pylist(), strict=True)
        assert sorted(kinds) == [(1, "insert"), (2, "delete")]


def test_what_restoring_does_not_do_is_refused_by_name(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path)
    listed = frozenset({"inCommitTimestamp-preview"})
    log.commit(
        protocol(min_writer_version=7, writer_features=listed),
        metadata(configuration={"delta.enableInCommitTimestamps-preview": "true"}),
        add("a"),
    )
    log.commit(remove("a"))
    with pytest.raises(UnsupportedTableFeatureError, match="inCommitTimestamp-preview"):
        DeltaTable(tmp_path).restore(0, ignore_missing_files=True)
    assert Snapshot.load(LocalLogStore(tmp_path)).version == 1
    assert isinstance(DeltaTable(tmp_path).metadata(), Metadata)
