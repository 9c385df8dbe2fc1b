"""Dynamic partition overwrite: exactly the partitions that the new rows name, whatever their values."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import ConcurrentModificationError, ConfigurationError
from tests.unit.dml.test_delete import as_table, deltalake_rows, last_commit, of_kind, our_rows, rows_of


def overwrite(table: DeltaTable | Path, data: pa.Table, **options: Any) -> None:
    write_deltalake(table, data, mode="overwrite", partition_overwrite_mode="dynamic", **options)


def test_other_partitions_stay_untouched_and_unread(tmp_path: Path) -> None:
    rows = rows_of(20)
    write_deltalake(tmp_path, as_table(rows), partition_by=["p"])
    for file in tmp_path.glob("p=*/*.parquet"):
        if "p=b" not in str(file):
            file.rename(file.with_suffix(".away"))
    new = [(100, "b", 1.0), (101, "c", None)]
    overwrite(tmp_path, as_table(new))
    for file in tmp_path.rglob("*.away"):
        file.rename(file.with_suffix(".parquet"))
    expected = sorted([row for row in rows if row[1] != "b"] + new, key=repr)
    assert our_rows(tmp_path) == expected == deltalake_rows(tmp_path)
    assert {remove["partitionValues"]["p"] for remove in of_kind(tmp_path, "remove")} == {"b"}
    (info,) = of_kind(tmp_path, "commitInfo")
    assert info["operationParameters"]["mode"] == "Overwrite"
    overwrite(tmp_path, as_table([(200, None, None)]))
    assert our_rows(tmp_path) == sorted(
        [row for row in expected if row[1] is not None] + [(200, None, None)], key=repr
    )


def test_no_rows_replace_nothing(tmp_path: Path) -> None:
    write_deltalake(tmp_path, as_table(rows_of(6)), partition_by=["p"])
    overwrite(tmp_path, as_table([]))
    assert our_rows(tmp_path) == sorted(rows_of(6), key=repr)
    assert [action for action in last_commit(tmp_path) if "remove" in action] == []


VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "text": (pa.string(), ["a'b", "%", "ü/x", "1", "01", None]),
    "long": (pa.int64(), [-1, 0, 10, 2**40, None]),
    "double": (pa.float64(), [0.1, 1e300, math.inf, math.nan, None]),
    "decimal": (pa.decimal128(10, 3), [Decimal("1.100"), Decimal("-0.001"), None]),
    "date": (pa.date32(), [dt.date(2020, 2, 29), dt.date(1600, 1, 1), None]),
    "time": (
        pa.timestamp("us", "UTC"),
        [dt.datetime(2020, 1, 1, 1, 2, 3, 4, tzinfo=dt.UTC), dt.datetime(2020, 1, 1, tzinfo=dt.UTC), None],
    ),
    "flag": (pa.bool_(), [True, False, None]),
    "bytes": (pa.binary(), [b"a", b"b c", None]),
}


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("mapped", [False, True])
def test_partitions_are_told_apart_by_value(tmp_path: Path, kind: str, mapped: bool) -> None:
    data_type, values = VALUES[kind]
    schema = pa.schema([("k", data_type), ("two", pa.int32()), ("n", pa.int64())])

    def made(keys: list[Any], n: int) -> pa.Table:
        both = [(key, two) for key in keys for two in (1, 2)]
        return pa.table([[key for key, _ in both], [two for _, two in both], [n] * len(both)], schema=schema)

    configuration = {"delta.columnMapping.mode": "name"} if mapped else {}
    write_deltalake(tmp_path, made(values, 0), partition_by=["k", "two"], configuration=configuration)
    for index, value in enumerate(values, start=1):
        overwrite(tmp_path, made([value], index).slice(1, 1))
        rows = DeltaTable(tmp_path).to_pyarrow_table().to_pylist()
        found = {(str(row["k"]), row["two"]): row["n"] for row in rows}
        assert len(rows) == len(found) == 2 * len(values)
        assert {n for (_, two), n in found.items() if two == 1} == {0}
        assert {key: n for (key, two), n in found.items() if two == 2} == {
            str(one): at if at <= index else 0 for at, one in enumerate(values, start=1)
        }


@pytest.mark.parametrize(("partition", "conflicts"), [("a", True), ("c", False)])
def test_another_commit_conflicts_only_in_those_partitions(
    tmp_path: Path, partition: str, conflicts: bool
) -> None:
    configuration = {"delta.isolationLevel": "Serializable"}
    write_deltalake(tmp_path, as_table(rows_of(9)), partition_by=["p"], configuration=configuration)

    def batches() -> Any:
        yield as_table([(50, "a", 1.0)]).to_batches()[0]
        # In the middle of our write, which knows nothing of it.
        write_deltalake(tmp_path, as_table([(60, partition, 1.0)]), mode="append")

    reader = pa.RecordBatchReader.from_batches(as_table([]).schema, batches())
    if conflicts:
        with pytest.raises(ConcurrentModificationError):
            overwrite(tmp_path, reader)
        assert (50, "a", 1.0) not in our_rows(tmp_path)
    else:
        overwrite(tmp_path, reader)
        assert {(50, "a", 1.0), (60, "c", 1.0)} <= set(our_rows(tmp_path))


def test_a_merged_column_comes_with_the_rows(tmp_path: Path) -> None:
    write_deltalake(tmp_path, as_table(rows_of(6)), partition_by=["p"])
    overwrite(tmp_path, pa.table({"id": [9], "p": ["a"], "more": [7]}), schema_mode="merge")
    rows = DeltaTable(tmp_path).to_pyarrow_table().to_pylist()
    assert [row for row in rows if row["p"] == "a"] == [{"id": 9, "p": "a", "v": None, "more": 7}]


def test_what_makes_no_sense_is_refused_before_any_file(tmp_path: Path) -> None:
    data = as_table(rows_of(3))
    write_deltalake(tmp_path / "flat", data)
    files = sorted(tmp_path.rglob("*"))
    with pytest.raises(ConfigurationError, match="not partitioned"):
        overwrite(tmp_path / "flat", data)
    with pytest.raises(ConfigurationError, match="not partitioned"):
        overwrite(tmp_path / "new", data)
    for wrong in (
        {"mode": "append"},
        {"mode": "overwrite", "predicate": "id = 1"},
        {"mode": "overwrite", "schema_mode": "overwrite"},
    ):
        with pytest.raises(ConfigurationError, match="does not fit the other arguments"):
            write_deltalake(tmp_path / "flat", data, partition_overwrite_mode="dynamic", **wrong)
    with pytest.raises(ConfigurationError, match="is not a partition overwrite mode"):
        write_deltalake(tmp_path / "flat", data, mode="overwrite", partition_overwrite_mode="some")  # type: ignore[arg-type]
    assert [path for path in sorted(tmp_path.rglob("*")) if path.name != "new"] == files
    overwrite(tmp_path / "begun", data, partition_by=["p"])
    assert our_rows(tmp_path / "begun") == sorted(rows_of(3), key=repr)
