"""Tables of ours with each feature that we write: deltalake reads all versions, and writes on."""

from __future__ import annotations

from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.schema.types import INTEGER, LONG, STRING, StructField, StructType
from delta_core.variants.python_values import variant_array
from tests.state_machine.features import Way, open_ways
from tests.state_machine.reading import deltalake_rows
from tests.state_machine.values import KINDS
from tests.support.rows import canonical_rows
from tests.support.soak import drawn

_COLUMNS = (
    StructField(name="id", data_type=LONG),
    StructField(name="n", data_type=INTEGER),
    StructField(name="p", data_type=STRING),
)


def _rows(way: Way, keys: range) -> pa.Table:
    """Rows for a writer: what the table makes by itself is left out."""
    columns = {
        "id": pa.array(keys, pa.int64()),
        "n": pa.array([None if key % 3 == 0 else key for key in keys], pa.int32()),
        "p": pa.array([None if key % 5 == 0 else f"p {key % 2}" for key in keys], pa.string()),
    }
    for column in way.columns:
        if column.is_given and column.default is None:
            kind = KINDS[column.kind].arrow
            numbers = pa.array(list(keys), pa.int64())
            columns[column.name] = variant_array(keys) if column.kind == "variant" else numbers.cast(kind)
    return pa.table(columns)


def _written(way: Way, path: Path) -> DeltaTable:
    schema = StructType(fields=(*_COLUMNS, *(column.to_field() for column in way.columns)))
    table = DeltaTable.create(path, schema, partition_by=["p"], configuration=dict(way.properties))
    write_deltalake(table, _rows(way, range(8)), mode="append", max_rows_per_file=2)
    write_deltalake(table, _rows(way, range(4, 7)), mode="overwrite", predicate="id BETWEEN 4 AND 6")
    write_deltalake(table, _rows(way, range(20, 24)), mode="append")
    write_deltalake(
        table, _rows(way, range(2, 5)), mode="overwrite", predicate="p = 'p 0' AND id < 0 OR id IN (2, 3, 4)"
    )
    table.create_checkpoint()
    write_deltalake(table, _rows(way, range(30, 33)), mode="append")
    return table


@pytest.mark.parametrize("way", drawn(open_ways(), usual=10), ids=lambda way: way.name)
def test_deltalake_reads_every_version_or_names_the_feature(way: Way, tmp_path: Path) -> None:
    table = _written(way, tmp_path / "table")
    for version in range(table.version() + 1):
        theirs = deltalake_rows(tmp_path / "table", version)
        if theirs is None:
            assert way.feature in (table.protocol().reader_features or ())
            return
        ours = DeltaTable(tmp_path / "table", version).to_pyarrow_table()
        assert theirs == canonical_rows(ours), f"version {version}"


@pytest.mark.parametrize("way", drawn(open_ways(), usual=10), ids=lambda way: way.name)
def test_deltalake_goes_on_from_our_checkpoint(way: Way, tmp_path: Path) -> None:
    path = tmp_path / "table"
    table = _written(way, path)
    table.create_checkpoint()
    for version in range(table.version()):
        (path / "_delta_log" / f"{version:020d}.json").unlink()
    before = DeltaTable(path).to_pyarrow_table()
    more = _rows(way, range(40, 44))
    try:
        deltalake.write_deltalake(str(path), more, mode="append")
    except Exception as error:
        if not any(word in str(error).lower() for word in ("unsupported", "not supported")):
            raise
        assert DeltaTable(path).version() == table.version()
        return
    after = DeltaTable(path)
    assert after.version() == table.version() + 1
    assert after.to_pyarrow_table().num_rows == before.num_rows + more.num_rows
    found = {row["id"]: row for row in after.to_pyarrow_table().to_pylist()}
    for row in [*before.to_pylist(), *more.to_pylist()]:
        assert row.items() <= found[row["id"]].items()
    assert after.snapshot.checksum_discrepancies == ()
