"""DELETE without Spark: the rows that are left, as other engines read them, and what the log says of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_delta
import pyarrow as pa
import pytest
from deltalake import DeltaTable as PeerTable
from deltalake import QueryBuilder
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_core import DeltaTable, write_deltalake
from delta_core.dml.delete import delete_rows
from delta_core.errors import ConcurrentModificationError, InvalidTableError, UnsupportedTableFeatureError
from delta_core.schema.arrow import from_arrow
from delta_core.schema.json import schema_to_json
from delta_core.transaction.commit_properties import CommitProperties
from tests.support.log_builder import LogBuilder, metadata, protocol

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.float64())])
DELETION_VECTORS = {"delta.enableDeletionVectors": "true"}
Row = tuple[int, str | None, float | None]


def rows_of(count: int, *, start: int = 0) -> list[Row]:
    return [
        (i, None if i % 7 == 0 else "ab"[i % 2], None if i % 5 == 0 else i / 2)
        for i in range(start, start + count)
    ]


def as_table(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def make(
    root: Path,
    *files: list[Row],
    dvs: bool,
    partition_by: tuple[str, ...] = (),
    configuration: dict[str, str] | None = None,
    features: tuple[str, ...] = (),
) -> DeltaTable:
    """A table, its protocol written by hand, with each list of rows in files of its own."""
    root.mkdir(parents=True, exist_ok=True)
    reader = frozenset({"deletionVectors"}) if dvs else frozenset[str]()
    LogBuilder(root).commit(
        protocol(
            min_reader_version=3 if dvs else 1,
            min_writer_version=7,
            reader_features=reader or None,
            writer_features=reader | frozenset(features),
        ),
        metadata(
            schema_string=schema_to_json(from_arrow(SCHEMA)),
            partition_columns=partition_by,
            configuration={**(DELETION_VECTORS if dvs else {}), **(configuration or {})},
        ),
    )
    table = DeltaTable(root)
    for rows in files:
        write_deltalake(table, as_table(rows), mode="append")
    return table


def our_rows(root: Path) -> list[Row]:
    found = DeltaTable(root).to_pyarrow_table().to_pylist()
    return sorted((tuple(row[name] for name in SCHEMA.names) for row in found), key=repr)


def deltalake_rows(root: Path) -> list[Row]:
    found = _peer_table(root).to_pylist()
    return sorted((tuple(row[name] for name in SCHEMA.names) for row in found), key=repr)


def _peer_table(root: Path) -> Any:
    return pa.table(QueryBuilder().register("t", PeerTable(str(root))).execute("select * from t"))


def duckdb_rows(root: Path) -> list[Row]:
    (extension,) = Path(duckdb_extension_delta.__file__).parent.rglob("delta.duckdb_extension")
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as connection:
        connection.execute(f"LOAD '{extension}'")
        found = connection.execute(f"SELECT id, p, v FROM delta_scan('{root}')").fetchall()
    return sorted(found, key=repr)


def last_commit(root: Path) -> list[dict[str, Any]]:
    newest = max((root / "_delta_log").glob("*.json"))
    return [json.loads(line) for line in newest.read_text().splitlines()]


def of_kind(root: Path, kind: str) -> list[dict[str, Any]]:
    return [action[kind] for action in last_commit(root) if kind in action]


@pytest.mark.parametrize("dvs", [True, False])
@pytest.mark.parametrize("partition_by", [(), ("p",)])
def test_what_is_left_is_read_equal_by_others(
    tmp_path: Path, dvs: bool, partition_by: tuple[str, ...]
) -> None:
    rows = rows_of(400)
    table = make(tmp_path, rows[:200], rows[200:], dvs=dvs, partition_by=partition_by)
    assert table.delete("id % 3 = 0 AND v > 20").metrics["num_deleted_rows"] == sum(
        1 for i, _, v in rows if i % 3 == 0 and v is not None and v > 20
    )
    table.delete("id BETWEEN 100 AND 260 OR p = 'b' AND id < 60")
    expected = sorted(
        (
            row
            for row in rows
            if not (row[0] % 3 == 0 and row[2] is not None and row[2] > 20)
            and not (100 <= row[0] <= 260 or (row[1] == "b" and row[0] < 60))
        ),
        key=repr,
    )
    assert our_rows(tmp_path) == expected
    assert deltalake_rows(tmp_path) == expected
    assert duckdb_rows(tmp_path) == expected


def test_a_vector_keeps_the_file_and_a_second_one_names_the_rows_of_the_first(tmp_path: Path) -> None:
    table = make(tmp_path, rows_of(50), dvs=True)
    path = of_kind(tmp_path, "add")[0]["path"]
    table.delete("id = 3")
    table.delete("id = 4")
    (added,) = of_kind(tmp_path, "add")
    (gone,) = of_kind(tmp_path, "remove")
    assert added["path"] == gone["path"] == path
    assert added["deletionVector"]["cardinality"] == 2
    assert gone["deletionVector"]["cardinality"] == 1
    stats = json.loads(added["stats"])
    assert (stats["numRecords"], stats["tightBounds"]) == (50, False)
    assert len(list(tmp_path.glob("*.parquet"))) == 1


def test_many_rows_get_a_file_of_vectors(tmp_path: Path) -> None:
    rows = rows_of(4000)
    table = make(tmp_path, rows, dvs=True)
    result = table.delete("id % 2 = 1 AND id % 3 = 0")
    assert len(list(tmp_path.glob("deletion_vector_*.bin"))) == 1
    assert result.metrics["num_deletion_vectors_added"] == 1
    expected = sorted((row for row in rows if not (row[0] % 2 == 1 and row[0] % 3 == 0)), key=repr)
    assert our_rows(tmp_path) == expected == deltalake_rows(tmp_path) == duckdb_rows(tmp_path)


@pytest.mark.parametrize("dvs", [True, False])
def test_a_file_that_loses_all_its_rows_is_removed(tmp_path: Path, dvs: bool) -> None:
    table = make(tmp_path, rows_of(10), rows_of(10, start=10), dvs=dvs)
    table.delete("id = 2")
    result = table.delete("id < 10")
    assert result.metrics["num_deleted_rows"] == 9
    assert of_kind(tmp_path, "add") == []
    assert len(of_kind(tmp_path, "remove")) == 1
    assert our_rows(tmp_path) == sorted(rows_of(10, start=10), key=repr)


def test_a_partition_goes_without_being_read(tmp_path: Path) -> None:
    table = make(tmp_path, rows_of(20), dvs=False, partition_by=("p",))
    for file in tmp_path.glob("p=a/*.parquet"):
        file.write_bytes(b"nobody reads this")
    result = table.delete("p = 'a'")
    assert result.metrics["num_deleted_rows"] == sum(1 for row in rows_of(20) if row[1] == "a")
    assert result.metrics["num_added_files"] == 0
    assert our_rows(tmp_path) == sorted((row for row in rows_of(20) if row[1] != "a"), key=repr)


@pytest.mark.parametrize("dvs", [True, False])
def test_all_rows_go_without_a_predicate(tmp_path: Path, dvs: bool) -> None:
    table = make(tmp_path, rows_of(10), dvs=dvs)
    table.delete("id = 1")
    assert table.delete().metrics["num_deleted_rows"] == 9
    assert our_rows(tmp_path) == deltalake_rows(tmp_path) == []


def test_nothing_matches_nothing_is_committed(tmp_path: Path) -> None:
    table = make(tmp_path, rows_of(10), dvs=True)
    before = table.version()
    result = table.delete("v < 0")
    assert (result.committed, result.version, result.metrics["num_deleted_rows"]) == (None, None, 0)
    assert DeltaTable(tmp_path).version() == before


def test_a_key_is_noted_even_if_nothing_matched_and_then_the_statement_is_done(tmp_path: Path) -> None:
    table = make(tmp_path, rows_of(10), dvs=True)
    key = CommitProperties(txn=("job", 1))
    assert table.delete("id = 10", commit_properties=key).version is not None
    write_deltalake(table, as_table(rows_of(1, start=10)), mode="append")
    again = table.delete("id = 10", commit_properties=key)
    assert again.committed is not None
    assert again.committed.already_applied
    assert len(our_rows(tmp_path)) == 11


def test_an_append_only_table_is_refused_before_it_is_read(tmp_path: Path) -> None:
    table = make(
        tmp_path,
        rows_of(5),
        dvs=False,
        configuration={"delta.appendOnly": "true"},
        features=("appendOnly",),
    )
    for file in tmp_path.glob("*.parquet"):
        file.unlink()
    with pytest.raises(InvalidTableError, match="append-only"):
        table.delete("id = 1")


def test_a_feature_that_is_not_written_is_refused_before_any_file(tmp_path: Path) -> None:
    table = make(
        tmp_path,
        dvs=True,
        features=("inCommitTimestamp-preview",),
        configuration={"delta.enableInCommitTimestamps-preview": "true"},
    )
    with pytest.raises(UnsupportedTableFeatureError, match=r"Cannot delete rows.*inCommitTimestamp-preview"):
        table.delete("id = 1")


def test_two_deletes_that_rewrite_one_file_conflict_and_leave_no_file(tmp_path: Path) -> None:
    table = make(tmp_path, rows_of(4000), dvs=False)
    stale = table.snapshot
    table.delete("id % 5 = 1")
    before = sorted(tmp_path.rglob("*.*"))
    with pytest.raises(ConcurrentModificationError):
        delete_rows(stale, "id % 5 = 2")
    assert sorted(tmp_path.rglob("*.*")) == before


def test_two_deletes_of_one_file_by_vectors_both_happen(tmp_path: Path) -> None:
    table = make(tmp_path, rows_of(4000), dvs=True)
    stale = table.snapshot
    table.delete("id % 5 = 1")
    assert delete_rows(stale, "id % 5 <= 2").metrics["num_deleted_rows"] == 1600
    expected = sorted((row for row in rows_of(4000) if row[0] % 5 > 2), key=repr)
    assert our_rows(tmp_path) == expected == deltalake_rows(tmp_path)


def test_a_delete_conflicts_with_matching_rows_that_came_only_where_it_must(tmp_path: Path) -> None:
    table = make(tmp_path, rows_of(50), dvs=True)
    stale = table.snapshot
    write_deltalake(table, as_table(rows_of(5, start=1000)), mode="append")
    assert delete_rows(stale, "id = 3").committed is not None
    assert len(our_rows(tmp_path)) == 54


def test_replace_where_and_overwrite_heed_vectors(tmp_path: Path) -> None:
    rows = rows_of(40)
    table = make(tmp_path, rows, dvs=True)
    table.delete("id IN (3, 30)")
    new = [(30, "n", 1.0)]
    write_deltalake(table, as_table(new), mode="overwrite", predicate="id >= 20")
    expected = sorted([row for row in rows if row[0] < 20 and row[0] != 3] + new, key=repr)
    assert our_rows(tmp_path) == expected == deltalake_rows(tmp_path) == duckdb_rows(tmp_path)
    table.delete("id = 4")
    write_deltalake(table, as_table(new), mode="overwrite")
    assert our_rows(tmp_path) == deltalake_rows(tmp_path) == new


def test_the_history_says_what_was_done(tmp_path: Path) -> None:
    table = make(tmp_path, rows_of(10), dvs=False)
    table.delete("id = 1")
    (info,) = of_kind(tmp_path, "commitInfo")
    assert info["operation"] == "DELETE"
    metrics = info["operationMetrics"]
    counted = [
        metrics[name] for name in ("numDeletedRows", "numCopiedRows", "numRemovedFiles", "numAddedFiles")
    ]
    assert counted == ["1", "9", "1", "1"]


PREDICATES = {
    "id < {}": lambda row, n: row[0] < n,
    "v > {}": lambda row, n: row[2] is not None and row[2] > n,
    "p = 'a' AND id > {}": lambda row, n: row[1] == "a" and row[0] > n,
    "p IS NULL OR id = {}": lambda row, n: row[1] is None or row[0] == n,
    "id % 4 = {} % 4": lambda row, n: row[0] % 4 == n % 4,
    "p = 'b'": lambda row, n: row[1] == "b",
}
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(sorted(PREDICATES)), st.integers(0, 60)),
        st.tuples(st.just("append"), st.integers(1, 12)),
        st.tuples(st.just("checkpoint"), st.just(0)),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=25)
@given(steps=STEPS, dvs=st.booleans(), partitioned=st.booleans())
def test_any_sequence_leaves_the_rows_of_a_model(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str, int]],
    dvs: bool,
    partitioned: bool,
) -> None:
    root = tmp_path_factory.mktemp("model")
    model = rows_of(20)
    table = make(root, model, dvs=dvs, partition_by=("p",) if partitioned else ())
    for text, number in steps:
        if text == "append":
            new = rows_of(number, start=number * 3)
            write_deltalake(table, as_table(new), mode="append")
            model = model + new
        elif text == "checkpoint":
            table.create_checkpoint()
        else:
            result = table.delete(text.format(number))
            left = [row for row in model if not PREDICATES[text](row, number)]
            assert result.metrics["num_deleted_rows"] == len(model) - len(left)
            model = left
        assert our_rows(root) == sorted(model, key=repr)
    assert deltalake_rows(root) == sorted(model, key=repr)
