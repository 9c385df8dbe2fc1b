"""UPDATE without Spark: the rows as other engines read them, what the log says, and what is refused."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable as PeerTable
from deltalake import write_deltalake as peer_write

from delta_core import DeltaTable, write_deltalake
from delta_core.dml.delete import delete_rows
from delta_core.dml.update import update_rows
from delta_core.errors import (
    ConcurrentModificationError,
    ConfigurationError,
    ConstraintViolationError,
    DeltaError,
    ExpressionError,
    InvalidTableError,
    SchemaMismatchError,
)
from delta_core.expressions.ast import Arithmetic, ArithmeticOperator, Column, Literal
from delta_core.schema.types import INTEGER, LONG, StructField, StructType
from delta_core.transaction.commit_properties import CommitProperties
from tests.unit.dml.test_delete import (
    Row,
    as_table,
    deltalake_rows,
    duckdb_rows,
    make,
    of_kind,
    our_rows,
    rows_of,
)


def changed(rows: list[Row], matches: Callable[[Row], bool], to: Callable[[Row], Row]) -> list[Row]:
    return sorted((to(row) if matches(row) else row for row in rows), key=repr)


@pytest.mark.parametrize("dvs", [True, False])
@pytest.mark.parametrize("partition_by", [(), ("p",)])
def test_updated_rows_are_read_equal_by_others(
    tmp_path: Path, dvs: bool, partition_by: tuple[str, ...]
) -> None:
    rows = rows_of(300)
    table = make(tmp_path, rows[:200], rows[200:], dvs=dvs, partition_by=partition_by)
    result = table.update({"v": "v * 2 + id", "p": "CASE WHEN p = 'a' THEN 'c' ELSE p END"}, "id % 3 = 0")

    def to(row: Row) -> Row:
        i, p, v = row
        return i, "c" if p == "a" else p, None if v is None else v * 2 + i

    expected = changed(rows, lambda row: row[0] % 3 == 0, to)
    assert result.metrics["num_updated_rows"] == 100
    assert result.metrics["num_copied_rows"] == (0 if dvs else 200)
    assert our_rows(tmp_path) == expected
    assert deltalake_rows(tmp_path) == expected
    assert duckdb_rows(tmp_path) == expected


def test_deltalake_comes_to_the_same_rows_and_counts(tmp_path: Path) -> None:
    data = as_table(rows_of(100))
    for name in ("ours", "theirs"):
        peer_write(str(tmp_path / name), data, partition_by=["p"])
    statements: list[dict[str, Any]] = [
        {"updates": {"v": "v + 1"}, "predicate": "id > 50"},
        {"updates": {"p": "'z'"}, "predicate": "p = 'a' AND id < 20"},
        {"new_values": {"v": 1.5, "p": "q"}, "predicate": "v IS NULL"},
        {"updates": {"id": "id + 1000"}},
        {"updates": {"v": "0"}, "predicate": "id < 0"},
    ]
    for statement in statements:
        mine = DeltaTable(tmp_path / "ours").update(**statement).metrics
        theirs = PeerTable(str(tmp_path / "theirs")).update(**statement)
        assert mine["num_updated_rows"] == theirs["num_updated_rows"]
        assert mine["num_copied_rows"] == theirs["num_copied_rows"]
        assert our_rows(tmp_path / "ours") == deltalake_rows(tmp_path / "theirs")


def test_old_rows_go_by_vector_and_new_ones_come_in_a_file(tmp_path: Path) -> None:
    table = make(tmp_path, rows_of(50), dvs=True)
    path = of_kind(tmp_path, "add")[0]["path"]
    table.update({"v": "0"}, "id IN (3, 4)")
    with_deletion_vector, new = of_kind(tmp_path, "add")
    assert (with_deletion_vector["path"], with_deletion_vector["deletionVector"]["cardinality"]) == (path, 2)
    assert "deletionVector" not in new
    assert [remove["path"] for remove in of_kind(tmp_path, "remove")] == [path]
    (info,) = of_kind(tmp_path, "commitInfo")
    assert info["operation"] == "UPDATE"
    assert info["operationMetrics"]["numUpdatedRows"] == "2"


def test_assigning_what_a_row_has_counts_and_no_match_commits_nothing(tmp_path: Path) -> None:
    table = make(tmp_path, rows_of(10), dvs=False)
    assert table.update({"id": "id"}, "id < 3").metrics["num_updated_rows"] == 3
    before = table.version()
    assert table.update({"id": "id"}, "id < 0").committed is None
    assert DeltaTable(tmp_path).version() == before


NESTED = pa.schema(
    [
        ("id", pa.int64()),
        ("s", pa.struct([("a", pa.int32()), ("t", pa.struct([("b", pa.string())]))])),
        ("l", pa.list_(pa.int32())),
        ("m", pa.map_(pa.string(), pa.int64())),
    ]
)


def nested_table(root: Path, **configuration: str) -> DeltaTable:
    rows = [
        {"id": 1, "s": {"a": 1, "t": {"b": "x"}}, "l": [1], "m": [("k", 1)]},
        {"id": 2, "s": None, "l": None, "m": None},
        {"id": 3, "s": {"a": None, "t": None}, "l": [], "m": []},
    ]
    write_deltalake(root, pa.Table.from_pylist(rows, schema=NESTED), configuration=configuration)
    return DeltaTable(root)


def by_id(root: Path, column: str) -> list[Any]:
    table = DeltaTable(root).to_pyarrow_table().sort_by("id")
    found: list[Any] = table.column(column).to_pylist()
    return found


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_fields_within_structs_are_assigned_beside_the_others(tmp_path: Path, mode: str) -> None:
    table = nested_table(tmp_path, **({} if mode == "none" else {"delta.columnMapping.mode": mode}))
    table.update({"s.t.b": "concat('n', CAST(id AS STRING))", ("s", "a"): "id * 10"}, "id > 1")
    assert by_id(tmp_path, "s") == [
        {"a": 1, "t": {"b": "x"}},
        {"a": 20, "t": {"b": "n2"}},
        {"a": 30, "t": {"b": "n3"}},
    ]
    table.update(new_values={"l": [7, None], "m": {"z": 2}, "s": {"A": 5}}, predicate="id = 2")
    assert by_id(tmp_path, "l") == [[1], [7, None], []]
    assert by_id(tmp_path, "m") == [[("k", 1)], [("z", 2)], []]
    assert by_id(tmp_path, "s")[1] == {"a": 5, "t": None}


@pytest.mark.parametrize(
    ("updates", "error", "said"),
    [
        ({}, ConfigurationError, "assigns no column"),
        ({"s": "NULL", "s.a": "1"}, ConfigurationError, "both assigned"),
        ({"S.A": "1", "s.a": "2"}, ConfigurationError, "both assigned"),
        ({"nobody": "1"}, ExpressionError, "does not exist"),
        ({"l.element": "1"}, ExpressionError, "no fields"),
        ({"id": "nobody"}, ExpressionError, "does not exist"),
        ({"id": "'x'"}, ExpressionError, "not of type"),
        ({"s.a": "s.t.b"}, ExpressionError, "cannot be assigned"),
        ({"s.a": "id > 1"}, ExpressionError, "cannot be assigned"),
        ({"s.a": "id * 2000000000"}, ExpressionError, "does not fit s.a"),
        ({"l": "m"}, ExpressionError, "cannot be assigned"),
        ({"id": ["1"]}, ExpressionError, "cannot be assigned"),
        ({7: "1"}, ConfigurationError, "does not name a column"),
    ],
)
def test_what_does_not_fit_changes_nothing(
    tmp_path: Path, updates: dict[Any, Any], error: type[DeltaError], said: str
) -> None:
    table = nested_table(tmp_path)
    files = sorted(tmp_path.rglob("*"))
    with pytest.raises(error, match=said):
        table.update(updates)
    assert sorted(tmp_path.rglob("*")) == files


def test_rows_are_counted_where_nobody_else_says_how_many_there_are(tmp_path: Path) -> None:
    configuration = {"delta.dataSkippingNumIndexedCols": "0"}
    write_deltalake(tmp_path, as_table(rows_of(7)), configuration=configuration)
    log = tmp_path / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        action.get("add", {}).pop("stats", None)
    log.write_text("\n".join(map(json.dumps, actions)))
    assert DeltaTable(tmp_path).update({"v": "0"}).metrics["num_updated_rows"] == 7


def test_a_name_with_a_dot_is_a_column_or_a_field_and_never_a_guess(tmp_path: Path) -> None:
    both = pa.table({"a": [{"b": 1}], "a.b": [2], "my col": [3]})
    write_deltalake(tmp_path, both, configuration={"delta.columnMapping.mode": "name"})
    table = DeltaTable(tmp_path)
    with pytest.raises(ConfigurationError, match="is ambiguous"):
        table.update({"a.b": "0"})
    table.update({("a", "b"): "5", "`a.b`": "6", "my col": "`my col` + `a.b` + a.b"})
    assert table.to_pyarrow_table().to_pylist() == [{"a": {"b": 5}, "a.b": 6, "my col": 6}]
    with pytest.raises(ConfigurationError, match="mapping"):
        table.update(["a"])  # type: ignore[arg-type]


def test_required_columns_and_fields_are_written_beside_copied_rows(tmp_path: Path) -> None:
    inner = StructType((StructField(name="x", data_type=LONG, nullable=False),))
    schema = StructType(
        (
            StructField(name="id", data_type=LONG, nullable=False),
            StructField(name="s", data_type=inner, nullable=False),
        )
    )
    table = DeltaTable.create(tmp_path, schema)
    rows = [{"id": number, "s": {"x": number}} for number in range(4)]
    write_deltalake(table, pa.Table.from_pylist(rows), mode="append")
    table.update({"s.x": "id + 10", "id": "id"}, "id >= 2")
    assert by_id(tmp_path, "s") == [{"x": 0}, {"x": 1}, {"x": 12}, {"x": 13}]
    with pytest.raises(ConstraintViolationError, match=r"s\.x"):
        table.update({"s.x": "NULL"}, "id = 1")


@pytest.mark.parametrize(
    "new_values",
    [
        {"s": {"zz": 1}},
        {"s": {"A": 1, "a": 2}},
        {"s": 7},
        {"l": "abc"},
        {"l": {"a": 1}},
        {"l": [1.5]},
        {"m": 7},
        {"m": {"a": "b"}},
        {"m": [("k", 1), ("k", 2)]},
    ],
)
def test_a_python_value_of_another_shape_is_refused(tmp_path: Path, new_values: dict[str, Any]) -> None:
    table = nested_table(tmp_path)
    with pytest.raises(ExpressionError):
        table.update(new_values=new_values)
    assert table.version() == 0


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("i", 1.5),
        ("i", 2**40),
        ("i", True),
        ("d", 5),
        ("d", dt.datetime(2020, 1, 1)),
        ("s", 5),
        ("x", "1.234"),
        ("f", 1e300),
        ("f", -3.41e38),
        ("f", Decimal("1e300")),
        ("f", 10**400),
    ],
)
def test_a_python_value_is_taken_exactly_or_not_at_all(tmp_path: Path, column: str, value: Any) -> None:
    schema = pa.schema(
        [
            ("i", pa.int32()),
            ("d", pa.date32()),
            ("s", pa.string()),
            ("x", pa.decimal128(5, 2)),
            ("f", pa.float32()),
        ]
    )
    row = [[1], [dt.date(2020, 1, 1)], ["a"], [Decimal("1.10")], [0.5]]
    write_deltalake(tmp_path, pa.table(row, schema=schema))
    table = DeltaTable(tmp_path)
    with pytest.raises(ExpressionError):
        table.update(new_values={column: value})
    table.update({"i": 3, "d": "date_add(d, 1)"}, new_values={"s": "i + 1", "x": 2, "f": -math.inf})
    assert table.to_pyarrow_table().to_pylist() == [
        {"i": 3, "d": dt.date(2020, 1, 2), "s": "i + 1", "x": Decimal("2.00"), "f": -math.inf}
    ]


def test_a_tree_is_an_expression_and_names_match_without_case(tmp_path: Path) -> None:
    table = make(tmp_path, rows_of(3), dvs=False)
    plus = Arithmetic(ArithmeticOperator.ADD, Column(("ID",)), Literal(10))
    table.update({"Id": plus})
    assert {row[0] for row in our_rows(tmp_path)} == {10, 11, 12}


def test_what_the_table_demands_of_rows_is_checked_and_the_row_is_shown(tmp_path: Path) -> None:
    schema = StructType(
        (
            StructField(name="id", data_type=LONG, nullable=False),
            StructField(name="n", data_type=INTEGER),
        )
    )
    table = DeltaTable.create(tmp_path, schema, configuration={"delta.constraints.small": "n < 10"})
    write_deltalake(
        table, pa.table({"id": pa.array([1, 2]), "n": pa.array([1, 2], pa.int32())}), mode="append"
    )
    files = sorted(tmp_path.rglob("*"))
    with pytest.raises(ConstraintViolationError, match=r"small.*'n': 12"):
        table.update({"n": "n + 10"}, "id = 2")
    with pytest.raises(ConstraintViolationError, match=r"NOT NULL.*'n': 2"):
        table.update({"id": "NULL"}, "id = 2")
    assert sorted(tmp_path.rglob("*")) == files


def test_generated_columns_follow_and_identity_values_stay(tmp_path: Path) -> None:
    schema = StructType(
        (
            StructField(name="n", data_type=INTEGER),
            StructField(name="g", data_type=INTEGER, metadata={"delta.generationExpression": "n + 1"}),
            StructField(
                name="i",
                data_type=LONG,
                metadata={
                    "delta.identity.start": 1,
                    "delta.identity.step": 1,
                    "delta.identity.allowExplicitInsert": False,
                },
            ),
            StructField(
                name="d", data_type=INTEGER, metadata={"CURRENT_DEFAULT": "42", "EXISTS_DEFAULT": "42"}
            ),
        )
    )
    table = DeltaTable.create(
        tmp_path, schema, configuration={"delta.feature.allowColumnDefaults": "supported"}
    )
    data = pa.table({"n": pa.array([1, 2, 3], pa.int32()), "d": pa.array([0, 0, 0], pa.int32())})
    write_deltalake(table, data, mode="append")
    table.update({"n": "n * 10", "d": "DEFAULT"}, "n > 1")
    rows = table.to_pyarrow_table().sort_by("n").to_pylist()
    assert [(row["n"], row["g"], row["d"]) for row in rows] == [(1, 2, 0), (20, 21, 42), (30, 31, 42)]
    assert [row["i"] for row in rows] == [1, 2, 3]
    with pytest.raises(ConstraintViolationError, match="Generated column g"):
        table.update({"g": "7"})
    table.update({"g": "8", "n": "7"}, "n = 1")
    with pytest.raises(SchemaMismatchError, match="identity column i"):
        table.update({"i": "7"})


def test_an_append_only_table_is_refused(tmp_path: Path) -> None:
    table = make(
        tmp_path,
        rows_of(5),
        dvs=False,
        configuration={"delta.appendOnly": "true"},
        features=("appendOnly",),
    )
    with pytest.raises(InvalidTableError, match="UPDATE"):
        table.update({"v": "0"})


def test_a_key_makes_the_statement_happen_once(tmp_path: Path) -> None:
    table = make(tmp_path, rows_of(5), dvs=True)
    key = CommitProperties(txn=("job", 1))
    table.update({"id": "id + 1"}, commit_properties=key)
    again = table.update({"id": "id + 1"}, commit_properties=key).committed
    assert again is not None
    assert again.already_applied
    assert {row[0] for row in our_rows(tmp_path)} == {1, 2, 3, 4, 5}


@pytest.mark.parametrize(("dvs", "predicate"), [(True, "id < 3"), (False, "id = 2")])
def test_a_second_update_conflicts_and_leaves_no_file(tmp_path: Path, dvs: bool, predicate: str) -> None:
    table = make(tmp_path, rows_of(4000), dvs=dvs)
    stale = table.snapshot
    table.update({"v": "1"}, "id = 1")
    before = sorted(tmp_path.rglob("*.*"))
    with pytest.raises(ConcurrentModificationError):
        update_rows(stale, {"v": "2"}, predicate)
    assert sorted(tmp_path.rglob("*.*")) == before


def test_by_vectors_other_rows_of_a_file_are_updated_at_the_same_time(tmp_path: Path) -> None:
    rows = rows_of(40)
    table = make(
        tmp_path,
        rows,
        dvs=True,
        configuration={"delta.enableChangeDataFeed": "true"},
        features=("changeDataFeed",),
    )
    stale = table.snapshot
    table.update({"v": "-1"}, "id = 1")
    delete_rows(stale, "id = 2")
    update_rows(stale, {"v": "-3"}, "id = 3")
    with pytest.raises(ConcurrentModificationError):
        update_rows(stale, {"v": "-4"}, "id = 2")
    left = [row for row in rows if row[0] > 3 or row[0] == 0]
    expected = sorted([*left, (1, "b", -1.0), (3, "b", -3.0)], key=repr)
    assert our_rows(tmp_path) == expected == deltalake_rows(tmp_path)
    told = DeltaTable(tmp_path).load_cdf(2).read_all().to_pylist()
    assert [(row["_commit_version"], row["_change_type"], row["id"], row["v"]) for row in told] == [
        (2, "update_preimage", 1, 0.5),
        (2, "update_postimage", 1, -1.0),
        (3, "delete", 2, 1.0),
        (4, "update_preimage", 3, 1.5),
        (4, "update_postimage", 3, -3.0),
    ]


TRACKED = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_row-id-col",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-version-col",
}


@pytest.mark.parametrize("dvs", [True, False])
def test_rows_keep_their_ids_and_only_updated_ones_a_new_version(tmp_path: Path, dvs: bool) -> None:
    table = make(
        tmp_path,
        rows_of(20),
        dvs=dvs,
        configuration=TRACKED,
        features=("rowTracking", "domainMetadata"),
    )

    def ids() -> dict[int, tuple[int, int]]:
        rows = DeltaTable(tmp_path).to_pyarrow_table(row_ids=True).to_pylist()
        return {row["id"]: (row["_row_id"], row["_row_commit_version"]) for row in rows}

    before = ids()
    table.update({"v": "0"}, "id IN (3, 4)")
    table.delete("id = 7")
    # What is copied by a replaceWhere keeps its id, too.
    write_deltalake(table, as_table(rows_of(1, start=5)), mode="overwrite", predicate="id = 5")
    after = ids()
    assert {key: found[0] for key, found in after.items() if key != 5} == {
        key: found[0] for key, found in before.items() if key not in (5, 7)
    }
    assert {key for key, found in after.items() if found[1] != 1} == {3, 4, 5}
    assert (after[3][1], after[5][1]) == (2, 4)
    assert after[5][0] > max(found[0] for found in before.values())
    assert of_kind(tmp_path, "commitInfo")[0]["tags"] == {"delta.rowTracking.preserved": "true"}
