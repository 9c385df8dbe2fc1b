"""Ids of rows: materialised ones count, the others follow from the file and the position in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable
from delta_core.actions import Metadata, Protocol
from delta_core.errors import (
    ConfigurationError,
    InvalidTableError,
    RowTrackingDisabledError,
    SchemaError,
)
from delta_core.scan.record_batches import RowPositions, runs_of_row_groups
from delta_core.scan.scan import Scan
from tests.support.deletion_vectors import inline_deletion_vector
from tests.support.log_builder import LogBuilder, add

PROPERTIES = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_row-id-col-1",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col-1",
}
PROTOCOL = Protocol(
    min_reader_version=3,
    min_writer_version=7,
    reader_features=frozenset({"deletionVectors"}),
    writer_features=frozenset({"deletionVectors", "rowTracking", "domainMetadata"}),
)


def schema_string(*names: str) -> str:
    fields = [{"name": name, "type": "long", "nullable": True, "metadata": {}} for name in names]
    return json.dumps({"type": "struct", "fields": fields})


def create(
    log: LogBuilder,
    *,
    properties: dict[str, str] | None = None,
    protocol: Protocol = PROTOCOL,
    names: tuple[str, ...] = ("n",),
) -> None:
    metadata = Metadata(
        id="t",
        schema_string=schema_string(*names),
        configuration=PROPERTIES if properties is None else properties,
    )
    log.commit(protocol, metadata)


def write(log: LogBuilder, path: str, columns: dict[str, Any], **changes: Any) -> None:
    """One more file, of row groups of four rows."""
    log.root.mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), log.root / path, row_group_size=4)
    log.commit(add(path, **{"partition_values": {}, "stats": None} | changes))


def read(log: LogBuilder, **options: Any) -> list[tuple[int, ...]]:
    table = DeltaTable(log.root).to_pyarrow_table(row_ids=True, **options)
    assert table.column_names[-2:] == ["_row_id", "_row_commit_version"]
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))


def test_ids_follow_from_the_position_in_the_file(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path)
    create(log)
    write(log, "a.parquet", {"n": list(range(10))}, base_row_id=0, default_row_commit_version=1)
    write(log, "b.parquet", {"n": [10, 11]}, base_row_id=1 << 40, default_row_commit_version=2)
    expected = [(n, n, 1) for n in range(10)] + [(10, 1 << 40, 2), (11, (1 << 40) + 1, 2)]
    assert read(log) == expected


def test_positions_count_deleted_rows_and_row_groups_that_are_not_read(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path)
    create(log)
    write(
        log,
        "a.parquet",
        {"n": list(range(12))},
        base_row_id=100,
        default_row_commit_version=1,
        deletion_vector=inline_deletion_vector([0, 5, 6]),
    )
    assert [row[:2] for row in read(log)] == [(n, 100 + n) for n in (1, 2, 3, 4, 7, 8, 9, 10, 11)]
    assert read(log, filters="n >= 7 AND n < 10") == [(n, 100 + n, 1) for n in (7, 8, 9)]
    assert read(log, filters="n > 9") == [(10, 110, 1), (11, 111, 1)]


def test_materialised_values_count_where_there_are_some(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path)
    create(log)
    columns = {
        "n": [0, 1, 2],
        "_row-id-col-1": [7, None, 5],
        "_row-commit-version-col-1": [None, 1, None],
    }
    write(log, "a.parquet", columns, base_row_id=20, default_row_commit_version=3)
    assert read(log) == [(0, 7, 3), (1, 21, 1), (2, 5, 3)]
    assert read(log, columns=[]) == [(5, 3), (7, 3), (21, 1)]
    assert read(log, filters="n = 2") == [(2, 5, 3)]


def test_hidden_columns_are_none_of_the_tables_own(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path)
    create(log)
    write(log, "a.parquet", {"n": [1], "_row-id-col-1": [7]}, base_row_id=0, default_row_commit_version=1)
    table = DeltaTable(tmp_path)
    assert [field.name for field in table.schema()] == ["n"]
    assert table.to_pyarrow_table().column_names == ["n"]
    with pytest.raises(SchemaError, match="does not exist"):
        table.to_pyarrow_table(columns=["_row-id-col-1"])


def test_one_of_the_columns_alone_and_in_batches(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path)
    create(log)
    write(log, "a.parquet", {"n": list(range(9))}, base_row_id=3, default_row_commit_version=1)
    snapshot = DeltaTable(tmp_path).snapshot
    scan = Scan(snapshot, columns=[], metadata_columns=["_row_id"], batch_rows=2)
    batches = list(scan.to_batches())
    assert [batch.num_rows for batch in batches] == [2, 2, 2, 2, 1]
    assert [value for batch in batches for value in batch["_row_id"].to_pylist()] == list(range(3, 12))
    assert scan.schema == pa.schema([pa.field("_row_id", pa.int64(), nullable=False)])


@pytest.mark.parametrize(
    ("properties", "protocol", "cause"),
    [
        ({}, PROTOCOL, "delta.enableRowTracking is not true"),
        (PROPERTIES | {"delta.enableRowTracking": "false"}, PROTOCOL, "is not true"),
        (PROPERTIES, Protocol(min_reader_version=1, min_writer_version=2), "does not list the feature"),
    ],
)
def test_a_table_that_does_not_keep_ids_is_refused(
    tmp_path: Path, properties: dict[str, str], protocol: Protocol, cause: str
) -> None:
    log = LogBuilder(tmp_path)
    create(log, properties=properties, protocol=protocol)
    write(log, "a.parquet", {"n": [1]}, base_row_id=0, default_row_commit_version=1)
    with pytest.raises(RowTrackingDisabledError, match=cause):
        DeltaTable(tmp_path).to_batches(row_ids=True)
    assert DeltaTable(tmp_path).to_pyarrow_table().num_rows == 1


@pytest.mark.parametrize("missing", list(PROPERTIES)[1:])
def test_hidden_columns_without_a_name_are_an_error(tmp_path: Path, missing: str) -> None:
    log = LogBuilder(tmp_path)
    create(log, properties={key: value for key, value in PROPERTIES.items() if key != missing})
    with pytest.raises(InvalidTableError, match=f"{missing} (is )?''"):
        DeltaTable(tmp_path).to_pyarrow_table(row_ids=True)


@pytest.mark.parametrize(
    ("columns", "numbers", "name"),
    [
        ({}, {"default_row_commit_version": 1}, "_row_id"),
        ({"_row-id-col-1": [1, None]}, {"default_row_commit_version": 1}, "_row_id"),
        ({}, {"base_row_id": 0}, "_row_commit_version"),
        ({"_row-id-col-1": ["x", "y"]}, {"base_row_id": 0, "default_row_commit_version": 1}, "_row_id"),
    ],
)
def test_rows_without_a_number_are_an_error(
    tmp_path: Path, columns: dict[str, Any], numbers: dict[str, int], name: str
) -> None:
    log = LogBuilder(tmp_path)
    create(log)
    write(log, "a.parquet", {"n": [1, 2]} | columns, **numbers)
    with pytest.raises(InvalidTableError, match=f"a.parquet have no {name}"):
        DeltaTable(tmp_path).to_pyarrow_table(row_ids=True)


def test_the_log_need_not_number_a_file_that_numbers_every_row(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path)
    create(log)
    write(log, "a.parquet", {"n": [1, 2], "_row-id-col-1": [8, 9]}, default_row_commit_version=4)
    assert read(log) == [(1, 8, 4), (2, 9, 4)]


def test_what_can_be_asked_for(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path)
    create(log, names=("n", "_ROW_ID"))
    snapshot = DeltaTable(tmp_path).snapshot
    with pytest.raises(SchemaError, match="_row_id has the same name"):
        Scan(snapshot, metadata_columns=["_row_id"])
    for columns in (["row_id"], ["_row_commit_version", "_row_commit_version"]):
        with pytest.raises(ConfigurationError, match="_row_id and _row_commit_version"):
            Scan(snapshot, metadata_columns=columns)


def test_positions_of_some_row_groups(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": range(25)}), tmp_path / "f", row_group_size=7)
    metadata = pq.ParquetFile(tmp_path / "f").metadata
    positions = RowPositions(metadata, [1, 3])
    assert positions.slice(0, 11).tolist() == [*range(7, 14), *range(21, 25)]
    assert positions.slice(5, 4).tolist() == [12, 13, 21, 22]
    assert positions.slice(3, 0).dtype == np.int64


def test_row_groups_that_are_decoded_together(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": range(25)}), tmp_path / "f", row_group_size=7)
    metadata = pq.ParquetFile(tmp_path / "f").metadata
    groups = [0, 1, 2, 3]
    for max_rows, runs in (
        (14, [[0, 1], [2, 3]]),
        (1, [[0], [1], [2], [3]]),
        (21, [[0, 1, 2], [3]]),
        (99, [groups]),
    ):
        assert list(runs_of_row_groups(metadata, groups, max_rows=max_rows)) == runs
    assert list(runs_of_row_groups(metadata, [], max_rows=5)) == []
