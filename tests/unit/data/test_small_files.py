"""Files of many small partitions, written whole: they equal the files that are written one by one."""

from __future__ import annotations

import datetime as dt
import functools
import json
import math
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.data.file_writer import MAX_OPEN_FILES, PartitionedWriter
from delta_core.errors import ObjectExistsError, PathEscapeError, StorageError
from delta_core.storage.local import LocalLogStore
from delta_core.storage.log_store import stand_in

MANY = MAX_OPEN_FILES + 12
ROWS = 4 * MANY

TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "long": (pa.int64(), [-(1 << 62), 0, 5, None]),
    "byte": (pa.int8(), [-128, 127, None]),
    "double": (pa.float64(), [-0.0, 0.0, 1.5, math.nan, math.inf, None]),
    "float": (pa.float32(), [0.5, math.nan, None]),
    "decimal": (pa.decimal128(38, 10), [Decimal("-12345678901234567890.5"), Decimal("0E-10"), None]),
    "date": (pa.date32(), [dt.date(1, 1, 1), dt.date(2024, 2, 29), None]),
    "ntz": (pa.timestamp("us"), [dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), None]),
    "time": (pa.timestamp("us", "UTC"), [dt.datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=dt.UTC), None]),
    "string": (pa.string(), ["", "a" * 40, "é" * 33 + "\U0010ffff", "z" * 5000, None]),
    "boolean": (pa.bool_(), [True, False, None]),
    "binary": (pa.binary(), [b"", b"\xff", None]),
    "list": (pa.list_(pa.int64()), [[1, None], [], None]),
    "map": (pa.map_(pa.string(), pa.int64()), [[("a", 1)], [], None]),
    "struct": (
        pa.struct([("a", pa.int64()), ("b", pa.struct([("c", pa.float64())]))]),
        [{"a": 1, "b": {"c": math.nan}}, {"a": None, "b": None}, None],
    ),
}


def rows(seed: int) -> pa.Table:
    draw = random.Random(seed)
    columns: dict[str, pa.Array] = {"p": pa.array([draw.randrange(MANY) for _ in range(ROWS)])}
    for name, (kind, values) in TYPES.items():
        columns[name] = pa.array([draw.choice(values) for _ in range(ROWS)], kind)
    columns["p"] = pa.concat_arrays([pa.array(range(MANY)), columns["p"].slice(MANY)])
    return pa.table(columns)


def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PartitionedWriter, "takes_groups", lambda writer, rows: False)


def statistics_of(root: Path) -> dict[str, str]:
    """The statistics of each partition's only file, as they are in the log."""
    found: dict[str, str] = {}
    for log in sorted((root / "_delta_log").glob("*.json")):
        for line in log.read_text().splitlines():
            add = json.loads(line).get("add")
            if add is not None:
                assert found.setdefault(json.dumps(add["partitionValues"]), add["stats"]) == add["stats"]
    return found


def contents_of(root: Path) -> list[tuple[str, str, str]]:
    """The directory, the schema and the raw rows of each data file, in the order of the first two."""
    files = [path for path in root.rglob("*.parquet") if "_delta_log" not in path.parts]
    tables = [(path, pq.read_table(path, partitioning=None)) for path in files]
    return sorted(
        (str(path.parent.relative_to(root)), str(table.schema), repr(table.to_pylist()))
        for path, table in tables
    )


@pytest.mark.parametrize("seed", range(3))
def test_whole_files_equal_files_that_are_written_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    data = rows(seed)
    write_deltalake(tmp_path / "whole", data, partition_by=["p"])
    one_by_one(monkeypatch)
    write_deltalake(tmp_path / "single", data, partition_by=["p"])
    whole, single = tmp_path / "whole", tmp_path / "single"
    assert len(statistics_of(whole)) == MANY
    assert statistics_of(whole) == statistics_of(single)
    assert contents_of(whole) == contents_of(single)


def test_a_date_without_a_python_form_gets_no_bounds(tmp_path: Path) -> None:
    days = pa.array([3_000_000, *range(MANY - 1)], pa.int32()).cast(pa.date32())
    write_deltalake(tmp_path, pa.table({"p": range(MANY), "day": days}), partition_by=["p"])
    bounds = [json.loads(stats)["minValues"] for stats in statistics_of(tmp_path).values()]
    assert len(bounds) == MANY
    assert [found for found in bounds if "day" not in found] == [{}]


def test_rewritten_rows_keep_their_ids_and_physical_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configuration = {"delta.enableRowTracking": "true", "delta.columnMapping.mode": "name"}
    data = pa.table({"p": [*range(MANY)] * 2, "v": range(2 * MANY)})
    for name in ("whole", "single"):
        table = DeltaTable.create(
            tmp_path / name, schema=data.schema, partition_by=["p"], configuration=configuration
        )
        write_deltalake(tmp_path / name, data, mode="append")
        table = DeltaTable(tmp_path / name)
        table.update({"v": "v + 1000"}, predicate="v % 2 = 0")
        one_by_one(monkeypatch)
    read = [DeltaTable(tmp_path / name).to_pyarrow_table(row_ids=True) for name in ("whole", "single")]
    whole, single = (table.sort_by("v").to_pylist() for table in read)
    assert len({row["_row_id"] for row in whole}) == 2 * MANY
    assert whole == single


def test_a_file_that_cannot_be_created_leaves_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = LocalLogStore.create_unflushed
    created: list[str] = []

    @functools.wraps(original)
    def create(store: LocalLogStore, path: str, data: pa.Buffer) -> None:
        created.append(path)
        if len(created) > MANY // 2:
            raise StorageError("The disk is full.")
        original(store, path, data)

    monkeypatch.setattr(LocalLogStore, "create_unflushed", create)
    with pytest.raises(StorageError, match="The disk is full"):
        write_deltalake(tmp_path / "t", pa.table({"p": range(MANY), "v": range(MANY)}), partition_by=["p"])
    assert len(created) == MANY // 2 + 1
    assert list(tmp_path.rglob("*.parquet")) == []


def test_an_object_is_created_once_and_not_through_links(tmp_path: Path) -> None:
    store = LocalLogStore(tmp_path / "t")
    store.create_unflushed("p=1/a", b"1")
    with pytest.raises(ObjectExistsError):
        store.create_unflushed("p=1/a", b"2")
    assert (tmp_path / "t" / "p=1" / "a").read_bytes() == b"1"
    (tmp_path / "t" / "link").symlink_to(tmp_path)
    with pytest.raises(PathEscapeError):
        store.create_unflushed("link/a", b"1")
    with pytest.raises(StorageError, match="Not a directory"):
        store.create_unflushed("p=1/a/b", b"1")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t"]
    assert stand_in(store, "create_unflushed") is not None
