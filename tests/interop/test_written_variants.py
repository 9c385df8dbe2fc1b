"""Variants that we write: delta-spark reads the same values from them and goes on; so does deltalake read."""

from __future__ import annotations

import datetime as dt
import json
import random
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.schema.arrow import variant_field
from delta_core.variants.python_values import variant_array
from tests.state_machine.reading import deltalake_rows
from tests.support.delta_spark import by_delta_spark
from tests.support.rows import canonical_rows
from tests.support.soak import SEED, rounds
from tests.support.variant_values import as_json, same_numbers

TABLES: Mapping[str, Mapping[str, str]] = {
    "plain": {},
    "vectors": {"delta.enableDeletionVectors": "true"},
    "by-name": {"delta.columnMapping.mode": "name", "delta.enableChangeDataFeed": "true"},
    "by-id": {"delta.columnMapping.mode": "id", "delta.enableRowTracking": "true"},
}
VALUES: list[Any] = [
    {"b": [1, -(2**40), None, {"ü": ""}], "a": Decimal("-1.25"), "": True},
    None,
    "x" * 64,
    dt.date(2024, 2, 29),
    dt.datetime(2024, 2, 29, 12, 30, 0, 123456, tzinfo=dt.UTC),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
    b"\x00\xff",
    2**70,
    0.1,
    [],
    {f"k{number:03}": number for number in range(300)},
    ["y" * 300, [None] * 300],
]
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        variant_field("v"),
        pa.field("s", pa.struct([variant_field("x")])),
        pa.field("l", pa.list_(variant_field("element"))),
        pa.field("m", pa.map_(pa.string(), variant_field("value"))),
    ]
)


def rows(first: int) -> pa.Table:
    variants = variant_array(VALUES)
    plain = variants.to_pylist()
    columns = [
        pa.array(range(first, first + len(plain)), pa.int64()),
        variants,
        pa.array([{"x": one} if one else None for one in plain], SCHEMA.field("s").type),
        pa.array([[one, None] for one in plain], SCHEMA.field("l").type),
        pa.array([[("k", one)] for one in plain], SCHEMA.field("m").type),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def made(path: Path, properties: Mapping[str, str]) -> DeltaTable:
    """A table with a history of each kind of change."""
    table = DeltaTable.create(path, SCHEMA, configuration=dict(properties))
    write_deltalake(table, rows(0), mode="append")
    write_deltalake(table, rows(50), mode="append", max_rows_per_file=5)
    table.delete("id IN (3, 55) OR (id > 50 AND v IS NULL)")
    table.update({"v": "s.x", "s.x": "NULL"}, "id IN (2, 50)")
    table.update(new_values={"v": {"new": [1.5]}}, predicate="id = 6")
    table.create_checkpoint()
    table.optimize.compact()
    return table


def ours(table: DeltaTable) -> dict[int, list[Any]]:
    """The rows as JSON: a missing variant is null in JSON, too, but within an array or a map."""
    return {
        row["id"]: [
            as_json(row["v"]),
            row["s"] and as_json(row["s"]["x"]),
            row["l"] and [as_json(one) for one in row["l"]],
            row["m"] and {key: as_json(one) for key, one in row["m"]},
        ]
        for row in table.to_pyarrow_table().to_pylist()
    }


def theirs(row: list[Any]) -> list[Any]:
    return [same_numbers(text) for text in row]


@pytest.mark.parametrize("name", TABLES)
def test_deltalake_reads_the_bytes_of_every_version(name: str, tmp_path: Path) -> None:
    table = made(tmp_path / "t", TABLES[name])
    for version in range(1, table.version() + 1):
        found = deltalake_rows(tmp_path / "t", version)
        assert found == canonical_rows(DeltaTable(tmp_path / "t", version).to_pyarrow_table()), version


@pytest.mark.extra
@pytest.mark.spark
def test_delta_spark_reads_the_values_and_goes_on(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    newest = {str(tmp_path / name): made(tmp_path / name, TABLES[name]).version() for name in TABLES}
    continued = rng.sample(sorted(newest), rounds(usual=1, soak=len(newest)))
    requests = [
        {
            "table": path,
            "versions": [*sorted(rng.sample(range(1, last), rounds(usual=1, soak=last - 1))), last],
            "goes_on": path in continued,
        }
        for path, last in newest.items()
    ]
    (tmp_path / "requests").write_text(json.dumps(requests))
    by_delta_spark("variants", str(tmp_path / "requests"), str(tmp_path / "answers"))
    answers = json.loads((tmp_path / "answers").read_text())
    for path, last in newest.items():
        assert str(last) in answers[path]
        for version, found in answers[path].items():
            expected = ours(DeltaTable(path, version=int(version)))
            assert {row[0]: theirs(row[1:]) for row in found} == expected, (path, version)
        if path not in continued:
            assert DeltaTable(path).version() == last
            continue
        before = ours(DeltaTable(path, version=last))
        after = ours(DeltaTable(path))
        added = {"n": "0", "t": ["1.5", None]}
        assert after[100] == [added, None, ["7", None], None]
        assert after[101] == [None, None, ["7", None], None]
        assert after[1002] == before[2]
        assert after.keys() == {
            *(key + 1000 * (key == 2) for key in before if before[key][0] is not None),
            100,
            101,
        }
        assert all(after[key] == before[key] for key in after.keys() & before.keys())
        write_deltalake(path, rows(2000), mode="append")
        assert DeltaTable(path).to_pyarrow_table().num_rows == len(after) + len(VALUES)
