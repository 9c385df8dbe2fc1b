"""Change data of DELETE, UPDATE and partial overwrites: by our reader, and by deltalake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable as PeerTable

from delta_core import DeltaTable, write_deltalake
from delta_core.dml import replace_where
from delta_core.dml.delete import delete_rows
from delta_core.dml.update import update_rows
from delta_core.errors import ConcurrentModificationError, ConstraintViolationError, SchemaError, StorageError
from delta_core.schema.types import LONG, STRING, StructField
from tests.unit.dml.test_delete import as_table, make, of_kind, our_rows, rows_of

FEED = {"delta.enableChangeDataFeed": "true"}
Told = list[tuple[Any, ...]]


def fed(root: Path, *files: list[Any], dvs: bool = False, partition_by: tuple[str, ...] = ()) -> DeltaTable:
    return make(
        root,
        *files,
        dvs=dvs,
        partition_by=partition_by,
        configuration=FEED,
        features=("changeDataFeed",),
    )


def told(table: pa.Table) -> Told:
    names = [name for name in table.schema.names if not name.startswith("_commit_")]
    return sorted((tuple(row[name] for name in names) for row in table.select(names).to_pylist()), key=repr)


def ours(root: Path, version: int | None = None) -> Told:
    table = DeltaTable(root)
    version = table.version() if version is None else version
    return told(table.load_cdf(version, version).read_all())


def theirs(root: Path, version: int | None = None) -> Told:
    table = PeerTable(str(root))
    version = table.version() if version is None else version
    changes = table.load_cdf(starting_version=version, ending_version=version).read_all()
    found = pa.table(changes)
    return told(found.select([*DeltaTable(root).schema().names, "_change_type"]))


def change_files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in (root / "_change_data").rglob("*.parquet"))


@pytest.mark.parametrize("partition_by", [(), ("p",)])
def test_a_rewriting_delete_tells_all_that_it_deletes(tmp_path: Path, partition_by: tuple[str, ...]) -> None:
    rows = rows_of(40)
    table = fed(tmp_path, rows[:10], rows[10:], partition_by=partition_by)
    table.delete("id < 12")
    expected = sorted(((*row, "delete") for row in rows[:12]), key=repr)
    assert ours(tmp_path) == theirs(tmp_path) == expected
    assert all(path.startswith("_change_data/") for path in change_files(tmp_path))
    for action in of_kind(tmp_path, "cdc"):
        assert action["dataChange"] is False
        assert (tmp_path / action["path"].replace("%253D", "=").replace("%3D", "=")).stat().st_size == action[
            "size"
        ]


@pytest.mark.parametrize("dvs", [True, False])
def test_no_change_file_where_the_log_tells_it_all(tmp_path: Path, dvs: bool) -> None:
    rows = rows_of(40)
    table = fed(tmp_path, rows, dvs=dvs, partition_by=("p",))
    assert ours(tmp_path) == theirs(tmp_path) == sorted(((*row, "insert") for row in rows), key=repr)
    table.delete("p = 'a'")
    assert ours(tmp_path) == theirs(tmp_path)
    assert {row[-1] for row in ours(tmp_path)} == {"delete"}
    new = [(100, "b", 1.0), (101, "q", 2.0)]
    write_deltalake(table, as_table(new), mode="overwrite", partition_overwrite_mode="dynamic")
    gone = [(*row, "delete") for row in rows if row[1] == "b"]
    expected = sorted([*gone, *((*row, "insert") for row in new)], key=repr)
    assert ours(tmp_path) == theirs(tmp_path) == expected
    write_deltalake(table, as_table(rows_of(1)), mode="overwrite")
    assert ours(tmp_path) == theirs(tmp_path)
    if dvs:
        write_deltalake(table, as_table(rows_of(9)), mode="append")
        table.delete("id = 3")
        assert ours(tmp_path) == theirs(tmp_path) == [(3, "b", 1.5, "delete")]
    assert change_files(tmp_path) == []


@pytest.mark.parametrize("dvs", [True, False])
@pytest.mark.parametrize("partition_by", [(), ("p",)])
def test_an_update_tells_rows_as_they_were_and_as_they_are(
    tmp_path: Path, dvs: bool, partition_by: tuple[str, ...]
) -> None:
    rows = rows_of(30)
    table = fed(tmp_path, rows[:20], rows[20:], dvs=dvs, partition_by=partition_by)
    for predicate in ("id % 4 = 1", "p = 'q'", None):
        before = our_rows(tmp_path)
        table.update({"p": "'q'", "v": "id"}, predicate)
        matching = [
            r for r in before if predicate is None or (r[0] % 4 == 1 if "id" in predicate else r[1] == "q")
        ]
        expected = [(*row, "update_preimage") for row in matching]
        expected += [(row[0], "q", float(row[0]), "update_postimage") for row in matching]
        assert ours(tmp_path) == theirs(tmp_path) == sorted(expected, key=repr)
    assert len(our_rows(tmp_path)) == 30


def test_a_replace_where_that_copies_rows_tells_what_goes_and_what_comes(tmp_path: Path) -> None:
    rows = rows_of(20)
    table = fed(tmp_path, rows[:10], rows[10:], partition_by=("p",))
    new = [(7, "new", 0.5), (13, None, None)]
    write_deltalake(table, as_table(new), mode="overwrite", predicate="id BETWEEN 5 AND 15")
    gone = [(*row, "delete") for row in rows if 5 <= row[0] <= 15]
    assert ours(tmp_path) == theirs(tmp_path) == sorted([*gone, *((*r, "insert") for r in new)], key=repr)
    assert our_rows(tmp_path) == sorted([r for r in rows if not 5 <= r[0] <= 15] + new, key=repr)


def test_a_replace_where_beside_vectors_tells_only_rows_that_were_there(tmp_path: Path) -> None:
    rows = rows_of(20)
    table = fed(tmp_path, rows, dvs=True)
    table.delete("id IN (2, 3)")
    write_deltalake(table, as_table([]), mode="overwrite", predicate="id < 5")
    assert ours(tmp_path) == theirs(tmp_path) == sorted(((*rows[i], "delete") for i in (0, 1, 4)), key=repr)


def test_a_merged_column_is_in_what_comes_and_null_in_what_goes(tmp_path: Path) -> None:
    table = fed(tmp_path, rows_of(3))
    data = pa.table({"id": [1], "p": ["x"], "v": [1.0], "more": [7]})
    write_deltalake(table, data, mode="overwrite", predicate="id = 1", schema_mode="merge")
    assert ours(tmp_path) == theirs(tmp_path) == [(1, "b", 0.5, None, "delete"), (1, "x", 1.0, 7, "insert")]


@pytest.mark.parametrize("mode", ["name", "id"])
def test_mapped_columns_go_by_their_physical_names(tmp_path: Path, mode: str) -> None:
    table = DeltaTable.create(
        tmp_path,
        as_table([]).schema,
        partition_by=["p"],
        configuration={**FEED, "delta.columnMapping.mode": mode},
    )
    write_deltalake(table, as_table(rows_of(6)), mode="append")
    table.alter.rename_column("v", "value")
    table.update({"value": "-1", "p": "'z'"}, "id = 3")
    assert ours(tmp_path) == [(3, "b", 1.5, "update_preimage"), (3, "z", -1.0, "update_postimage")]
    names = pq.read_schema(next((tmp_path / "_change_data").rglob("*.parquet"))).names
    assert names[-1] == "_change_type"
    assert "value" not in names
    assert "p" not in {name for action in of_kind(tmp_path, "cdc") for name in action["partitionValues"]}


def test_files_of_a_narrower_type_are_told_in_the_new_one(tmp_path: Path) -> None:
    table = DeltaTable.create(
        tmp_path,
        pa.schema([("id", pa.int32()), ("n", pa.int16())]),
        configuration={**FEED, "delta.enableTypeWidening": "true"},
    )
    narrow = pa.table({"id": pa.array([1, 2], pa.int32()), "n": pa.array([1, 2], pa.int16())})
    write_deltalake(table, narrow, mode="append")
    table.alter.change_type("n", LONG)
    table.update({"n": "n + 3000000000"}, "id = 2")
    assert ours(tmp_path) == [(2, 2, "update_preimage"), (2, 3000000002, "update_postimage")]


def test_what_does_not_happen_leaves_no_change_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = fed(tmp_path, rows_of(10))
    table.alter.add_constraint({"few": "id < 100"})
    stale = table.snapshot
    write_deltalake(table, as_table(rows_of(1, start=3)), mode="overwrite", predicate="id = 3")
    files = sorted(tmp_path.rglob("*.*"))
    for late in (lambda: update_rows(stale, {"v": "0"}, "id = 4"), lambda: delete_rows(stale, "id = 4")):
        with pytest.raises(ConcurrentModificationError):
            late()
    with pytest.raises(ConstraintViolationError):
        table.update({"id": "id + 95"})

    def fails(*_: object, **__: object) -> None:
        raise StorageError("the disk is full")

    monkeypatch.setattr(replace_where, "write_inserts", fails)
    with pytest.raises(StorageError):
        write_deltalake(table, as_table(rows_of(1, start=4)), mode="overwrite", predicate="id = 4")
    assert sorted(tmp_path.rglob("*.*")) == files


def test_a_feed_is_turned_on_later_and_off_again(tmp_path: Path) -> None:
    write_deltalake(tmp_path, as_table(rows_of(5)))
    table = DeltaTable(tmp_path)
    table.delete("id = 0")
    table.alter.set_properties(FEED)
    table.delete("id = 1")
    assert ours(tmp_path) == [(1, "b", 0.5, "delete")]
    table.alter.unset_properties("delta.enableChangeDataFeed")
    table.delete("id = 2")
    assert of_kind(tmp_path, "cdc") == []


def test_a_column_of_a_name_that_the_feed_has_is_refused(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("_Change_Type", pa.string())])
    with pytest.raises(SchemaError, match="_Change_Type"):
        DeltaTable.create(tmp_path / "new", schema, configuration=FEED)
    table = DeltaTable.create(tmp_path / "old", schema)
    with pytest.raises(SchemaError, match="_Change_Type"):
        table.alter.set_properties(FEED)
    fed_table = fed(tmp_path / "fed", rows_of(1))
    with pytest.raises(SchemaError, match="_commit_version"):
        fed_table.alter.add_columns(StructField(name="_commit_version", data_type=STRING))
    data = pa.table({"id": [1], "p": ["a"], "v": [1.0], "_change_type": ["x"]})
    with pytest.raises(SchemaError, match="_change_type"):
        write_deltalake(fed_table, data, mode="append", schema_mode="merge")
