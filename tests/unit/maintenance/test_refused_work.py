"""Work that is refused or breaks off: the table is as it was, and nothing half-written stays."""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.actions import DeletionVectorDescriptor
from delta_core.errors import (
    CloneError,
    CorruptLogError,
    InvalidTableError,
    MaintenanceError,
    SchemaMismatchError,
    StorageError,
    StorageFullError,
    TableExistsError,
    VerificationError,
)
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.maintenance.apply_rewrite import apply_rewrite
from delta_core.maintenance.clone import apply_clone, plan_clone
from delta_core.maintenance.clustering import plan_z_order
from delta_core.maintenance.clustering.spill import local_spill, spill_output
from delta_core.maintenance.convert import plan_conversion
from delta_core.maintenance.rewriting.reading import read_files
from delta_core.maintenance.vacuum import apply_vacuum, plan_vacuum
from delta_core.maintenance.vacuum.guard import require_table_directory
from delta_core.run import Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from tests.support.log_builder import LogBuilder, add, metadata, protocol

ROWS = pa.table({"id": pa.array(range(2_000), pa.int64())})


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Four files."""
    root = tmp_path / "t"
    for _ in range(4):
        write_deltalake(root, ROWS, mode="append")
    return root


def _files(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def _snapshot(root: Path) -> Snapshot:
    return Snapshot.load(LocalLogStore(root))


# ---------------------------------------------------------------- vacuum


@pytest.mark.parametrize("uri", ["s3://bucket", "s3://bucket/", "file:///", "gs://bucket//"])
def test_a_whole_bucket_is_not_vacuumed(uri: str) -> None:
    with pytest.raises(MaintenanceError, match="cannot be vacuumed"):
        require_table_directory(uri)
    require_table_directory("s3://bucket/table")


def test_a_plan_that_was_changed_to_delete_the_log_deletes_nothing(table: Path) -> None:
    orphan = table / "orphan.parquet"
    orphan.write_bytes(b"x")
    os.utime(orphan, (1, 1))
    plan = plan_vacuum(_snapshot(table))
    (file,) = plan.files
    forged = replace(plan, files=(file, replace(file, path=f"_delta_log/{1:020}.json")))
    before = _files(table)
    with pytest.raises(MaintenanceError, match="The plan contains the file '_delta_log/"):
        apply_vacuum(_snapshot(table), forged)
    assert _files(table) >= before
    assert DeltaTable(table).to_pyarrow_table().num_rows == 8_000


# ---------------------------------------------------------------- clone


class EndsEarly(LocalLogStore):
    """Says the whole size of a data file, and gives less."""

    def open_input(self, path: str) -> pa.NativeFile:
        source = super().open_input(path)
        return pa.PythonFile(_EndsEarly(source), mode="r") if path.endswith(".parquet") else source


class _EndsEarly:
    closed = False

    def __init__(self, source: pa.NativeFile) -> None:
        self._source = source
        self._at_end = False

    def size(self) -> int:
        return int(self._source.size())

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self._source.seek(offset, whence))

    def tell(self) -> int:
        return int(self._source.tell())

    def read(self, size: int = -1) -> bytes:
        if self._at_end:
            return b""
        self._at_end = True
        return bytes(self._source.read(10))

    def close(self) -> None:
        self.closed = True
        self._source.close()


class LosesTheEnd(LocalLogStore):
    """A disk that keeps the first bytes of a data file, and says nothing of the others."""

    @contextmanager
    def open_output(self, path: str) -> Iterator[pa.NativeFile]:
        with super().open_output(path) as sink:
            yield sink
        os.truncate(self.root / path, 10)


@pytest.mark.parametrize(
    ("source", "target", "said"),
    [
        (EndsEarly, LocalLogStore, "The read ended after 10 of "),
        (LocalLogStore, LosesTheEnd, "The copy has 10 bytes instead of "),
    ],
)
def test_a_copy_that_is_too_short_makes_no_clone(
    table: Path, tmp_path: Path, source: type[LocalLogStore], target: type[LocalLogStore], said: str
) -> None:
    plan = plan_clone(Snapshot.load(source(table)), target(tmp_path / "c"), shallow=False)
    with pytest.raises(CloneError, match="cannot be copied") as caught:
        apply_clone(plan, run=Run(executor=InlineExecutor(1)))
    assert said in caught.value.cause
    assert not DeltaTable.is_deltatable(tmp_path / "c")
    assert _files(tmp_path / "c") == set()


@pytest.mark.parametrize(("kind", "name"), [("x", "where"), ("u", "short")])
def test_a_vector_that_is_nowhere_makes_no_clone(tmp_path: Path, kind: str, name: str) -> None:
    features = frozenset({"deletionVectors"})
    dv = DeletionVectorDescriptor(
        storage_type=kind, path_or_inline_dv=name, offset=1, size_in_bytes=40, cardinality=1
    )
    log = LogBuilder(tmp_path / "t")
    log.commit(
        protocol(
            min_reader_version=3, min_writer_version=7, reader_features=features, writer_features=features
        ),
        metadata(),
        add("a", deletion_vector=dv),
    )
    with pytest.raises(CorruptLogError, match=r"deletion vector of .* cannot be found"):
        apply_clone(plan_clone(_snapshot(log.root), LocalLogStore(tmp_path / "c"), shallow=False))
    assert not (tmp_path / "c").exists()


# ---------------------------------------------------------------- conversion


def test_a_table_is_not_planned_to_be_converted(table: Path) -> None:
    with pytest.raises(TableExistsError, match="already a transaction log"):
        plan_conversion(LocalLogStore(table))


def test_types_that_each_fit_the_widest_and_not_each_other_are_refused(tmp_path: Path) -> None:
    """The record of changes is a chain; no chain leads from a whole number over a float to a double."""
    for number, kind in enumerate((pa.float64(), pa.int32(), pa.float32())):
        pq.write_table(pa.table({"c": pa.array([1], kind)}), tmp_path / f"{number}.parquet")
    before = _files(tmp_path)
    with pytest.raises(SchemaMismatchError, match=r"\bc\b"):
        plan_conversion(LocalLogStore(tmp_path), configuration={"delta.enableTypeWidening": "true"})
    assert _files(tmp_path) == before


# ---------------------------------------------------------------- rewriting


class Miscounts(InlineExecutor):
    """A cluster whose answer about spilled rows counts one that was not spilled."""

    def map(self, function: Any, tasks: Any) -> Iterator[tuple[int, Any]]:
        for number, result in super().map(function, tasks):
            if "runs" in result:
                result["runs"][0]["ranges"][0][3] += 1
            yield number, result


def test_rows_that_are_lost_on_their_way_over_disk_leave_the_table_as_it_is(table: Path) -> None:
    before = _files(table)
    snapshot = _snapshot(table)
    with pytest.raises(VerificationError, match=r"rows were read, but .* written"):
        apply_rewrite(
            snapshot,
            plan_z_order(snapshot, ["id"]),
            memory_limit_bytes=20_000,
            run=Run(executor=Miscounts(1)),
        )
    assert _files(table) == before
    assert DeltaTable(table).to_pyarrow_table().num_rows == 8_000


def test_a_place_that_cannot_be_spilled_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "run.arrow").mkdir()
    place = {"uri": str(tmp_path), "directory": ""}
    named = re.escape(str(tmp_path / "run.arrow"))
    with pytest.raises(StorageError, match=named) as caught, spill_output(place, "run.arrow"):
        pass
    assert "TMPDIR" in caught.value.fix


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_place_that_fills_up_while_it_is_spilled_to_is_named(tmp_path: Path, code: int) -> None:
    place = {"uri": str(tmp_path), "directory": "further/in"}
    with pytest.raises(StorageError, match=os.strerror(code)) as caught, spill_output(place, "run.arrow"):
        raise OSError(code, os.strerror(code))
    assert isinstance(caught.value, StorageFullError) is (code == errno.ENOSPC)
    assert "TMPDIR" in caught.value.fix


def test_no_temporary_folder_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/no/such/folder")
    with pytest.raises(StorageError, match="TMPDIR"), local_spill():
        pass


def test_a_footer_that_promises_more_rows_than_its_pages_have_is_noticed(tmp_path: Path) -> None:
    """Copied as they are, the rows that are missing would be gone for good."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"i": [1, 2]}), path)
    data = path.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    # Thrift: field 3 with the number of rows, of the file (row groups follow) and of the row group.
    footer = data[start:].replace(b"\x16\x04\x19", b"\x16\x08\x19").replace(b"\x16\x04\x26", b"\x16\x08\x26")
    path.write_bytes(data[:start] + footer)
    assert pq.read_metadata(path).row_group(0).num_rows == pq.read_metadata(path).num_rows == 4
    with pytest.raises(InvalidTableError, match=r"a.parquet.*cannot be read") as caught:
        list(read_files(LocalLogStore(tmp_path), ["a.parquet"], threads=1, max_bytes=1 << 20))
    assert "2 rows were read, but the footer records 4 rows" in caught.value.cause
