"""Predicates that fail on one partition value: right for the others, an error, never rows too many."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import ExpressionError
from delta_core.expressions.parse import parse_predicate
from delta_core.scan.partition_pruning import _evaluated
from delta_core.scan.scan import Scan
from delta_core.schema.arrow import from_arrow

STRINGS = ["1", "2", "x", None]
NUMBERS = [0, 1, 2, 2**31 - 1]


def made(root: Path, values: list[str | None] | list[int], kind: pa.DataType) -> DeltaTable:
    for number, value in enumerate(values):
        rows = {"p": pa.array([value], kind), "k": ["n"], "v": pa.array([number], pa.int32())}
        write_deltalake(root, pa.table(rows), mode="append", partition_by=["p"])
    return DeltaTable(root)


@pytest.fixture
def strings(tmp_path: Path) -> DeltaTable:
    return made(tmp_path / "texts", STRINGS, pa.string())


@pytest.fixture
def numbers(tmp_path: Path) -> DeltaTable:
    return made(tmp_path / "numbers", NUMBERS, pa.int32())


def found(table: DeltaTable, predicate: str) -> list[int]:
    whole = sorted(table.to_pyarrow_table(filters=predicate).column("v").to_pylist())
    streamed = [value for batch in table.to_batches(filters=predicate) for value in batch["v"].to_pylist()]
    assert whole == sorted(streamed)
    return whole


@pytest.mark.parametrize(
    "predicate",
    [
        "CAST(p AS INT) = 1",
        "CAST(p AS INT) = 1 AND v >= 0",
        "CAST(p AS INT) = 1 AND k = 'n'",
        "CAST(p AS INT) < 9",
    ],
)
def test_a_value_at_fault_is_an_error(strings: DeltaTable, predicate: str) -> None:
    with pytest.raises(ExpressionError, match="cannot be cast"):
        found(strings, predicate)


@pytest.mark.parametrize("predicate", ["10 / p = 5", "p + 1 = 2", "10 % p = 0", "p * 2 = 4"])
def test_a_number_at_fault_is_an_error(numbers: DeltaTable, predicate: str) -> None:
    with pytest.raises(ExpressionError):
        found(numbers, predicate)


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("p = '1' AND CAST(p AS INT) = 1", [0]),
        ("p <> 'x' AND CAST(p AS INT) = 1", [0]),
        ("CAST(p AS INT) = 2 AND p <> 'x'", [1]),
        ("v < 2 AND CAST(p AS INT) = 2", [1]),
        ("v < 2 AND CAST(p AS INT) > 0", [0, 1]),
    ],
)
def test_another_condition_rules_the_value_out(
    strings: DeltaTable, predicate: str, expected: list[int]
) -> None:
    assert found(strings, predicate) == expected


def test_another_condition_rules_the_number_out(numbers: DeltaTable) -> None:
    assert found(numbers, "p <> 0 AND 10 / p = 5") == [2]
    assert found(numbers, "p < 100 AND p + 1 = 2") == [1]


def test_a_value_that_no_file_has_any_more_is_nobodys_trouble(strings: DeltaTable) -> None:
    kept = DeltaTable(strings.table_uri)
    empty = pa.table({"p": [], "k": [], "v": []}, schema=pa.schema(kept.schema().to_arrow()))
    write_deltalake(strings, empty, mode="overwrite", predicate="p = 'x'")
    kept.update_incremental()
    for table in (kept, DeltaTable(strings.table_uri)):
        assert found(table, "CAST(p AS INT) = 1") == [0]


def test_what_replaces_partitions_removes_nothing_on_an_error(numbers: DeltaTable) -> None:
    rows = pa.table({"p": pa.array([1], pa.int32()), "k": ["n"], "v": pa.array([100], pa.int32())})
    with pytest.raises(ExpressionError, match="does not fit"):
        write_deltalake(numbers, rows, mode="overwrite", predicate="p + 1 = 2")
    assert DeltaTable(numbers.table_uri).version() == 3
    assert found(numbers, "p >= 0") == [0, 1, 2, 3]
    write_deltalake(numbers, rows, mode="overwrite", predicate="p < 100 AND p + 1 = 2")
    assert found(DeltaTable(numbers.table_uri), "p >= 0") == [0, 2, 3, 100]


def test_a_maintenance_plan_does_not_guess(strings: DeltaTable) -> None:
    with pytest.raises(ExpressionError, match="cannot be cast"):
        strings.optimize.compact(predicate="CAST(p AS INT) = 1")


def test_files_that_may_match_are_listed(strings: DeltaTable) -> None:
    paths = Scan(strings.snapshot, predicate="CAST(p AS INT) = 1").files(["path"]).column("path").to_pylist()
    assert sorted(path.split("/")[0] for path in paths) == ["p=1", "p=x"]


def test_many_values_at_fault_do_not_take_forever() -> None:
    values = pa.table({"p": [f"x{number}" for number in range(6000)]})
    found = _evaluated(parse_predicate("CAST(p AS INT) = 1", from_arrow(values.schema)), values)
    assert found.undecided.all()
    assert isinstance(found.error, ExpressionError)
