"""A table whose files lie in another: rows are read where the caller allows it, nothing is changed there."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable
from delta_core.actions import AddCdcFile
from delta_core.errors import PathEscapeError
from tests.support.deletion_vectors import inline_deletion_vector
from tests.support.log_builder import LogBuilder, add, metadata, protocol

FEATURES = frozenset({"deletionVectors", "changeDataFeed"})
PROTOCOL = protocol(
    min_reader_version=3,
    min_writer_version=7,
    reader_features=FEATURES - {"changeDataFeed"},
    writer_features=FEATURES,
)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    root = tmp_path / "source"
    (root / "_change_data").mkdir(parents=True)
    for name, numbers in (("a 1.parquet", [1, 2, 3]), ("b.parquet", [4])):
        pq.write_table(pa.table({"id": numbers}), root / name)
    changes = pa.table({"id": [2], "_change_type": ["delete"]})
    pq.write_table(changes, root / "_change_data" / "c.parquet")
    return root


@pytest.fixture
def clone(tmp_path: Path, source: Path) -> LogBuilder:
    log = LogBuilder(tmp_path / "clone")
    log.commit(PROTOCOL, metadata(configuration={"delta.enableChangeDataFeed": "true"}))
    log.commit(
        add(f"file://{source}/a%201.parquet", stats=None, deletion_vector=inline_deletion_vector([1])),
        add(f"{source}/b.parquet", stats=None),
    )
    log.commit(
        AddCdcFile(path=f"file:{source}/_change_data/c.parquet", partition_values={"p": "1"}, size_bytes=1)
    )
    return log


def ids(table: pa.Table) -> list[int]:
    return sorted(table["id"].to_pylist())


def test_rows_are_read_where_it_is_allowed(clone: LogBuilder, source: Path) -> None:
    table = DeltaTable(clone.root, allowed_roots=[source])
    assert ids(table.to_pyarrow_table()) == [1, 3, 4]
    shards = [pa.Table.from_batches(table.to_batches(shard=(index, 2))) for index in range(2)]
    assert sorted(number for shard in shards for number in ids(shard)) == [1, 3, 4]
    changed = table.load_cdf(starting_version=1).read_all()
    assert sorted(zip(changed["id"].to_pylist(), changed["_change_type"].to_pylist(), strict=True)) == [
        (1, "insert"),
        (2, "delete"),
        (3, "insert"),
        (4, "insert"),
    ]


def test_without_leave_nothing_is_read(clone: LogBuilder, source: Path) -> None:
    table = DeltaTable(clone.root)
    with pytest.raises(PathEscapeError, match="Allow the file's root"):
        table.to_pyarrow_table()
    with pytest.raises(PathEscapeError):
        table.load_cdf(starting_version=1).read_all()
    with pytest.raises(PathEscapeError):
        DeltaTable(clone.root, allowed_roots=[source / "_change_data"]).to_pyarrow_table()


def test_appended_rows_of_a_clone(tmp_path: Path, source: Path) -> None:
    log = LogBuilder(tmp_path / "plain").create()
    log.commit(add(f"{source}/b.parquet", stats=None))
    found = DeltaTable(log.root, allowed_roots=[source]).appended_batches(since_version=0)
    assert [batch["id"].to_pylist() for batch in found] == [[4]]
    with pytest.raises(PathEscapeError):
        list(DeltaTable(log.root).appended_batches(since_version=0))


def test_maintenance_stays_in_the_table(tmp_path: Path, source: Path) -> None:
    """Allowed roots are for reading alone: new files are in the table, and nothing in a root goes."""
    log = LogBuilder(tmp_path / "plain").create()
    log.commit(*(add(f"{source}/{name}", stats=None) for name in ("a%201.parquet", "b.parquet")))
    before = {path: path.read_bytes() for path in source.rglob("*") if path.is_file()}
    table = DeltaTable(log.root, allowed_roots=[source])
    assert ids(table.to_pyarrow_table()) == [1, 2, 3, 4]
    alone = DeltaTable(log.root)
    with pytest.raises(PathEscapeError):
        alone.optimize.compact()
    with pytest.raises(PathEscapeError):
        alone.optimize.z_order(["id"])
    table.optimize.compact()
    table.optimize.z_order(["id"])
    assert ids(DeltaTable(log.root).to_pyarrow_table()) == [1, 2, 3, 4]
    table.restore(0)
    gone = table.vacuum(0, dry_run=False, enforce_retention=False, force=True)
    assert gone
    assert all(not Path(name).is_absolute() and ":" not in name for name in gone)
    assert {path: path.read_bytes() for path in source.rglob("*") if path.is_file()} == before
