"""MERGE in Arrow: what each kind of clause, name, type and feature does."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from delta_core import (
    CommitProperties,
    DeltaTable,
    IdentityGenerator,
    define_column,
    deltalake,
    write_deltalake,
)
from delta_core.errors import (
    ConfigurationError,
    ConstraintViolationError,
    DeltaError,
    ExpressionError,
    InputDataError,
    InvalidTableError,
    MergeDuplicateMatchError,
    SchemaMismatchError,
)
from delta_core.expressions.ast import Column, Comparison, ComparisonOperator, Literal
from delta_core.merge import source_keys, statement
from delta_core.merge.source import MergeSource, fixed_source
from delta_core.schema.arrow import from_arrow
from tests.support.rows import canonical_rows

ON = "target.id = source.id"


def table_of(
    uri: Path, rows: list[dict[str, Any]], schema: pa.Schema | None = None, **options: Any
) -> DeltaTable:
    data = pa.Table.from_pylist(rows, schema)
    made = DeltaTable.create(uri, data.schema, **options)
    write_deltalake(made, data, mode="append")
    return made


def numbered(uri: Path, count: int = 4, **options: Any) -> DeltaTable:
    rows = [{"id": number, "v": f"old{number}"} for number in range(count)]
    return table_of(uri, rows, **options)


def source_of(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": [f"new{number}" for number in ids]})


def rows_of(table: DeltaTable) -> list[tuple[Any, ...]]:
    found = table.to_pyarrow_table().to_pylist()
    return sorted((tuple(row.values()) for row in found), key=str)


def upsert(table: DeltaTable, source: Any, on: str = ON, **options: Any) -> Any:
    return table.merge(source, on, **options).when_matched_update_all().when_not_matched_insert_all()


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_updates_deletes_and_inserts_in_one_commit(tmp_path: Path, vectors: str) -> None:
    table = numbered(tmp_path, configuration={"delta.enableDeletionVectors": vectors})
    result = (
        table.merge(source_of(1, 2, 9), ON)
        .when_matched_delete("source.id = 2")
        .when_matched_update({"v": "concat(target.v, '/', source.v)"})
        .when_not_matched_insert({"id": "source.id", "v": "upper(source.v)"})
        .when_not_matched_by_source_update({"v": "'alone'"}, "target.id = 3")
        .execute()
    )
    assert rows_of(table) == [(0, "old0"), (1, "old1/new1"), (3, "alone"), (9, "NEW9")]
    assert table.version() == result.version == 2
    assert dict(result)["num_source_rows"] == result["num_source_rows"] == 3
    counts = [result[f"num_target_rows_{name}"] for name in ("inserted", "updated", "deleted", "copied")]
    assert counts == [1, 2, 1, 0 if vectors == "true" else 1]
    entry = table.history(1)[0].commit_info
    assert entry.operation == "MERGE"
    assert entry.operation_parameters["predicate"] == f'["{ON}"]'
    assert entry.operation_metrics["numTargetRowsNotMatchedBySourceUpdated"] == "1"


def test_names_need_an_alias_only_where_both_sides_have_the_column(tmp_path: Path) -> None:
    table = numbered(tmp_path)
    source = pa.table({"key": [1], "w": ["x"]})
    table.merge(source, "id = key").when_matched_update({"v": "w"}).execute()
    assert (1, "x") in rows_of(table)
    with pytest.raises(ExpressionError, match=r"Write target\.id or source\.id"):
        table.merge(source_of(1), "id = 1").when_matched_delete().execute()
    builder = table.merge(source_of(9), ON).when_not_matched_insert({"id": "source.id", "v": "target.v"})
    with pytest.raises(ExpressionError, match="cannot be used here"):
        builder.execute()
    with pytest.raises(ConfigurationError, match="same alias"):
        table.merge(source_of(1), ON, source_alias="T", target_alias="t").when_matched_delete().execute()


def test_columns_may_be_left_out_of_all_columns(tmp_path: Path) -> None:
    table = numbered(tmp_path)
    builder = table.merge(source_of(1, 9), ON)
    builder.when_matched_update_all(except_cols=["v"]).when_not_matched_insert_all(
        except_cols=["v"]
    ).execute()
    assert rows_of(table) == [(0, "old0"), (1, "old1"), (2, "old2"), (3, "old3"), (9, None)]


def test_conditions_and_values_may_be_trees(tmp_path: Path) -> None:
    table = numbered(tmp_path)
    on = Comparison(ComparisonOperator.EQ, Column(("target", "id")), Column(("source", "id")))
    table.merge(source_of(1), on).when_matched_update({"v": Literal("tree")}).execute()
    assert rows_of(table)[1] == (1, "tree")
    parameters = table.history(1)[0].commit_info.operation_parameters
    assert parameters["predicate"] == '["(`target`.`id` = `source`.`id`)"]'


def test_null_keys_match_nothing_except_by_the_null_safe_operator(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("v", pa.string())])
    table = table_of(tmp_path, [{"id": None, "v": "a"}, {"id": 1, "v": "b"}], schema)
    source = pa.Table.from_pylist([{"id": None, "v": "s"}], schema)
    table.merge(source, ON).when_matched_update_all().execute()
    assert rows_of(table) == [(1, "b"), (None, "a")]
    table.merge(source, "target.id <=> source.id").when_matched_update_all().execute()
    assert rows_of(table) == [(1, "b"), (None, "s")]


@pytest.mark.parametrize(
    ("target", "source", "matches"),
    [
        (pa.array([float("nan"), -0.0, 1.5]), pa.array([float("nan"), 0.0]), [0, 1]),
        (
            pa.array([Decimal("1.50"), Decimal("2.00")], pa.decimal128(5, 2)),
            pa.array([Decimal("1.5")], pa.decimal128(10, 3)),
            [0],
        ),
        (pa.array([1, 2], pa.int32()), pa.array([2.0]), [1]),
        (pa.array([1, 2], pa.int8()), pa.array([2**40, 2], pa.int64()), [1]),
        (
            pa.array([dt.date(2026, 1, 2), dt.date(2026, 1, 3)]),
            pa.array([dt.datetime(2026, 1, 2), dt.datetime(2026, 1, 3, 1)], pa.timestamp("us")),
            [0],
        ),
        (pa.array(["a", "A", ""]), pa.array(["", "a"], pa.large_string()), [0, 2]),
        (pa.array([b"x", b"y"]), pa.array([b"y"]), [1]),
        (pa.array([True, False]), pa.array([False]), [1]),
    ],
)
def test_keys_are_equal_as_on_spark(
    tmp_path: Path, target: pa.Array, source: pa.Array, matches: list[int]
) -> None:
    data = pa.table({"key": target, "place": range(len(target))})
    table = DeltaTable.create(tmp_path, data.schema)
    write_deltalake(table, data, mode="append")
    merged = table.merge(pa.table({"key": source}), "target.key = source.key").when_matched_delete().execute()
    left = set(table.to_pyarrow_table().column("place").to_pylist())
    assert left == set(range(len(target))) - set(matches)
    assert merged["num_target_rows_deleted"] == len(matches)


@pytest.mark.parametrize(
    ("kind", "far"),
    [(pa.date32(), 3_000_000), (pa.timestamp("us", "UTC"), 253_402_300_800_000_005)],
)
@pytest.mark.parametrize("few", [0, 5_000])
def test_keys_that_python_cannot_represent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: pa.DataType, far: int, few: int
) -> None:
    monkeypatch.setattr("delta_core.merge.source.FEW_ROWS", few)
    keys = pa.array([far, 1], pa.int32() if kind == pa.date32() else pa.int64()).cast(kind)
    write_deltalake(tmp_path, pa.table({"key": keys, "n": [1, 2]}))
    source = pa.table({"key": keys.slice(0, 1), "n": [7]})
    table = DeltaTable(tmp_path)
    upsert(table, source, "target.key = source.key").execute()
    assert sorted(table.to_pyarrow_table()["n"].to_pylist()) == [2, 7]


def test_a_condition_without_an_equality_compares_all_pairs(tmp_path: Path) -> None:
    table = numbered(tmp_path, count=6)
    ranges = pa.table({"low": [0, 4], "high": [1, 4], "name": ["a", "b"]})
    on = "target.id BETWEEN source.low AND source.high"
    table.merge(ranges, on).when_matched_update({"v": "source.name"}).execute()
    assert [row[1] for row in rows_of(table)] == ["a", "a", "old2", "old3", "b", "old5"]


@pytest.mark.parametrize("on", [ON, "target.id <= source.id AND target.id >= source.id"])
def test_several_source_rows_for_one_row_are_refused_by_their_keys(tmp_path: Path, on: str) -> None:
    table = numbered(tmp_path)
    with pytest.raises(MergeDuplicateMatchError, match=r"id=2 \(2 source rows\)"):
        upsert(table, source_of(2, 1, 2), on).execute()
    assert table.version() == 1
    table.merge(source_of(2, 1, 2), on).when_matched_delete().execute()
    assert rows_of(table) == [(0, "old0"), (3, "old3")]


def test_nothing_is_committed_when_no_row_changes(tmp_path: Path) -> None:
    table = numbered(tmp_path)
    result = table.merge(source_of(9), ON).when_matched_update_all().execute()
    assert result.committed is None
    assert (table.version(), result["num_target_rows_updated"]) == (1, 0)
    assert table.merge(source_of(), ON).when_matched_delete().execute().committed is None


def test_an_idempotency_key_applies_a_merge_once(tmp_path: Path) -> None:
    table = numbered(tmp_path)
    for _ in range(2):
        properties = CommitProperties(txn=("merges", 1))
        builder = table.merge(source_of(1), ON, commit_properties=properties)
        builder.when_matched_update({"v": "concat(target.v, '!')"}).execute()
    assert (table.version(), rows_of(table)[1]) == (2, (1, "old1!"))


@pytest.mark.parametrize("limit", [0, 1 << 30])
def test_a_stream_is_read_once_and_may_be_kept_in_a_file(tmp_path: Path, limit: int) -> None:
    data = source_of(*range(100))
    reader = pa.RecordBatchReader.from_batches(data.schema, data.to_batches(max_chunksize=7))
    with fixed_source(reader, from_arrow(data.schema), spill_bytes=limit) as source:
        assert isinstance(source, MergeSource)
        assert source.num_rows == data.num_rows
        rows = [row for block in source.stored.blocks(data.column_names) for row in block.to_pylist()]
        assert rows == data.to_pylist()
        chosen = pa.array([50, 3, 99, 3])
        found = source.rows(["v"], chosen.to_numpy())
        assert found is not None
        assert [row["v"] for row in found.to_pylist()] == ["new50", "new3", "new99", "new3"]


@pytest.mark.parametrize("limit", [0, 1 << 30])
def test_a_large_source_is_matched_by_the_hashes_of_its_keys(
    tmp_path: Path, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statement, "SPILL_BYTES", limit)
    monkeypatch.setattr(source_keys, "HASHED_ROWS", 10)
    table = numbered(tmp_path, count=20)
    data = source_of(*range(10, 40))
    reader = pa.RecordBatchReader.from_batches(data.schema, data.to_batches(max_chunksize=7))
    result = upsert(table, reader).execute()
    assert (result["num_target_rows_updated"], result["num_target_rows_inserted"]) == (10, 20)
    assert dict(rows_of(table)) == {n: f"{'new' if n > 9 else 'old'}{n}" for n in range(40)}


def test_sources_of_every_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statement, "SPILL_BYTES", 0)
    table = numbered(tmp_path / "t")
    frame = pd.DataFrame({"id": [0], "v": ["frame"]})
    batches = pa.RecordBatchReader.from_batches(source_of(1).schema, source_of(1).to_batches())
    dataset = ds.dataset(source_of(2))
    for source in (frame, batches, dataset, [source_of(3), source_of(4)]):
        upsert(table, source).execute()
    assert [row[1] for row in rows_of(table)] == ["frame", "new1", "new2", "new3", "new4"]


def test_files_without_the_sources_keys_are_not_read(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path, source_of(0).append_column("p", [["a"]]).schema, partition_by=["p"])
    for first, partition in ((0, "a"), (10, "a"), (20, "b"), (0, "b")):
        data = source_of(*range(first, first + 3))
        write_deltalake(table, data.append_column("p", [[partition] * 3]), mode="append")
    source = source_of(11, 12).append_column("p", [["a", "a"]])
    result = upsert(table, source, "target.id = source.id AND target.p = source.p").execute()
    assert (result["num_target_files_scanned"], result["num_target_files_skipped_during_scan"]) == (1, 3)
    result = table.merge(source, ON).when_not_matched_by_source_delete("target.p = 'b'").execute()
    assert (result["num_target_files_scanned"], result["num_target_rows_deleted"]) == (3, 6)


def test_schema_evolution_adds_the_columns_that_clauses_use(tmp_path: Path) -> None:
    table = numbered(tmp_path, count=2, configuration={"delta.enableChangeDataFeed": "true"})
    source = source_of(1, 9).append_column("w", [["x", "y"]]).append_column("other", [[1, 2]])
    with pytest.raises(SchemaMismatchError, match="'w'"):
        table.merge(source, ON).when_matched_update({"w": "source.w"}).execute()
    builder = table.merge(source, ON, merge_schema=True).when_matched_update({"w": "source.w"})
    builder.when_not_matched_insert({"id": "source.id"}).execute()
    assert table.to_pyarrow_table().schema.names == ["id", "v", "w"]
    assert rows_of(table) == [(0, "old0", None), (1, "old1", "x"), (9, None, None)]
    upsert(table, source, merge_schema=True).execute()
    assert rows_of(table) == [(0, "old0", None, None), (1, "new1", "x", 1), (9, "new9", "y", 2)]


def test_generated_identity_and_default_columns(tmp_path: Path) -> None:
    table = DeltaTable.create(
        tmp_path,
        [
            define_column("id", pa.int64()),
            define_column("v", pa.string(), default="'none'"),
            define_column("double", pa.int64(), generated_always_as="id * 2"),
            define_column("number", pa.int64(), generated_always_as=IdentityGenerator()),
        ],
    )
    write_deltalake(table, source_of(1, 2), mode="append")
    before = dict(
        zip(*[table.to_pyarrow_table().column(n).to_pylist() for n in ("id", "number")], strict=True)
    )
    builder = table.merge(pa.table({"id": [2, 9], "to": [5, 9]}), ON)
    builder.when_matched_update({"id": "source.to", "v": "DEFAULT"})
    builder.when_not_matched_insert({"id": "source.id"}).execute()
    found = {row[0]: row for row in rows_of(table)}
    assert found[5][:3] == (5, "none", 10)
    assert found[9][:3] == (9, "none", 18)
    assert found[5][3] == before[2]
    assert len({row[3] for row in found.values()}) == 3
    with pytest.raises(SchemaMismatchError, match="identity column"):
        table.merge(source_of(1), ON).when_matched_update({"number": "7"}).execute()


def test_constraints_are_checked_and_no_file_is_left(tmp_path: Path) -> None:
    table = numbered(tmp_path)
    table.alter.add_constraint({"short": "length(v) < 6"})
    files = set(tmp_path.rglob("*.parquet"))
    with pytest.raises(ConstraintViolationError, match="short"):
        table.merge(source_of(1), ON).when_matched_update({"v": "'much too long'"}).execute()
    with pytest.raises(ConstraintViolationError, match="short"):
        table.merge(source_of(9), ON).when_not_matched_insert({"id": "9", "v": "'much too long'"}).execute()
    assert set(tmp_path.rglob("*.parquet")) == files


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_row_ids_are_kept(tmp_path: Path, vectors: str) -> None:
    features = {"delta.enableRowTracking": "true", "delta.enableDeletionVectors": vectors}
    table = numbered(tmp_path, configuration=features)

    def ids() -> dict[int, tuple[int, int]]:
        rows = table.to_pyarrow_table(row_ids=True).to_pydict()
        pairs = zip(rows["_row_id"], rows["_row_commit_version"], strict=True)
        return dict(zip(rows["id"], pairs, strict=True))

    before = ids()
    upsert(table, source_of(1, 9)).execute()
    after = ids()
    assert after[0] == before[0]
    assert after[1] == (before[1][0], 2)
    assert after[9][0] not in {number for number, _ in before.values()}


def test_values_that_do_not_fit(tmp_path: Path) -> None:
    table = table_of(tmp_path, [{"id": 1, "n": 5}, {"id": 2, "n": 6}])
    source = pa.table({"id": [1, 2], "n": ["12", "many"]})
    with pytest.raises(ExpressionError, match="does not fit n"):
        upsert(table, source).execute()
    upsert(table, source, error_on_type_mismatch=False).execute()
    assert rows_of(table) == [(1, 12), (2, None)]


def test_append_only_tables_take_insertions(tmp_path: Path) -> None:
    table = numbered(tmp_path, configuration={"delta.appendOnly": "true"})
    table.merge(source_of(1, 9), ON).when_not_matched_insert_all().execute()
    assert rows_of(table)[-1] == (9, "new9")
    with pytest.raises(InvalidTableError, match="append-only"):
        upsert(table, source_of(1)).execute()


@pytest.mark.parametrize(
    "given",
    [
        lambda table: table.merge(source_of(1), ON),
        lambda table: table.merge(source_of(1), ON).when_matched_update({}),
        lambda table: table.merge(source_of(1), ON).when_matched_delete().when_matched_update_all(),
        lambda table: table.merge(source_of(1), ON).when_matched_update({"v": "'a'", "V": "'b'"}),
        lambda table: table.merge(source_of(1), "target.id").when_matched_delete(),
        lambda table: table.merge(source_of(1), "target.id = 'x' AND").when_matched_delete(),
        lambda table: table.merge(7, ON).when_matched_delete(),
        lambda table: table.merge(pa.table({"id": [1], "ID": [1]}), ON).when_matched_delete(),
        lambda table: table.merge(pa.table({"id": [1]}), ON).when_matched_update_all(),
    ],
)
def test_wrong_merges_are_refused(tmp_path: Path, given: Any) -> None:
    table = numbered(tmp_path)
    files = set(tmp_path.rglob("*"))
    with pytest.raises(DeltaError):
        given(table).execute()
    assert set(tmp_path.rglob("*")) == files


def test_change_data_tells_what_changed(tmp_path: Path) -> None:
    table = numbered(tmp_path, configuration={"delta.enableChangeDataFeed": "true"})
    builder = upsert(table, source_of(1, 9)).when_not_matched_by_source_delete("target.id = 3")
    builder.execute()
    changes = table.load_cdf(starting_version=2).read_all().select(["id", "v", "_change_type"])
    assert canonical_rows(changes) == canonical_rows(
        pa.table(
            {
                "id": [1, 1, 9, 3],
                "v": ["old1", "new1", "new9", "old3"],
                "_change_type": ["update_preimage", "update_postimage", "insert", "delete"],
            }
        )
    )


@pytest.mark.parametrize("opened", [DeltaTable, deltalake.DeltaTable], ids=["core", "compatible"])
def test_a_stream_that_was_read_is_not_an_empty_source(tmp_path: Path, opened: Any) -> None:
    numbered(tmp_path)
    source = source_of(0, 1)
    stream = pa.RecordBatchReader.from_batches(source.schema, source.to_batches())

    def merger() -> Any:
        builder = opened(tmp_path).merge(stream, ON, source_alias="source", target_alias="target")
        return builder.when_matched_update_all().when_not_matched_by_source_delete()

    first = merger()
    first.execute()
    for again in (first, merger()):
        with pytest.raises(InputDataError, match="has read before"):
            again.execute()
    assert DeltaTable(tmp_path).count() == 2
