"""Paths and links out of a table, as maintenance and Spark are told of files: nothing outside is opened."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.actions import AddFile
from delta_core.errors import DeltaError, PathEscapeError
from delta_core.maintenance.apply_rewrite import apply_rewrite
from delta_core.maintenance.clustering.plan import plan_z_order
from delta_core.maintenance.verify.checks import verify_table
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import TABLE_ONLY
from delta_core.storage.local import LocalLogStore
from spark_jobs.reader.table_files import located_files, table_files
from tests.support.hostile_paths import AuditedStore, hostile_paths
from tests.support.log_builder import LogBuilder, add, metadata, protocol
from tests.support.soak import drawn


def z_order(snapshot: Snapshot) -> None:
    plan = plan_z_order(snapshot, ["id"], full=True)
    apply_rewrite(snapshot, plan)


def verify(snapshot: Snapshot) -> None:
    report = verify_table(snapshot)
    if not report.passed:
        raise PathEscapeError(str([check for check in report.checks if not check.passed]))


def spark_files(snapshot: Snapshot) -> None:
    files = table_files(snapshot.files.to_table(["path", "partition_values"]))
    located_files(files, store=snapshot.store, access=TABLE_ONLY)


class Table:
    """A table with one good file, next to a file that is none of its business."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.outside = folder / "outside" / "secret.parquet"
        self.outside.parent.mkdir()
        pq.write_table(pa.table({"p": ["1"], "id": [1]}), self.outside)
        self.log = LogBuilder(folder / "table")
        self.log.root.mkdir()
        pq.write_table(pa.table({"p": ["1"], "id": [1]}), self.log.root / "a.parquet")
        self.log.commit(protocol(), metadata(partition_columns=()), self.good("a.parquet"))

    def good(self, path: str) -> AddFile:
        return add(path, size_bytes=self.outside.stat().st_size, stats=None, partition_values={})

    def opened(self) -> Snapshot:
        self.store = AuditedStore(self.log.root)
        return Snapshot.load(self.store)


def test_maintenance_and_spark_refuse_them(tmp_path: Path) -> None:
    wrong: list[str] = []
    spellings = hostile_paths(Path("/base/table"), Path("/base/outside/secret.parquet"))
    for number, raw in enumerate(drawn(spellings, usual=60)):
        folder = tmp_path / str(number)
        raw = raw.replace("/base/", f"{folder}/").replace("%2fbase%2f", f"{folder}/".replace("/", "%2f"))
        table = Table(folder)
        table.log.commit(table.good(raw))
        for operation in (verify, spark_files, z_order):
            try:
                operation(table.opened())
            except DeltaError:
                pass
            else:
                # Spark itself says that a name below the root is no file's.
                if operation is not spark_files:
                    wrong.append(f"{operation.__name__} of {raw}: no error")
            if table.store.outside():
                wrong.append(f"{operation.__name__} of {raw}: opened {table.store.outside()}")
    assert wrong == []


@pytest.mark.parametrize("of", ["file", "directory"])
def test_spark_is_given_no_link_out_of_the_table(tmp_path: Path, of: str) -> None:
    table = Table(tmp_path / "t")
    if of == "file":
        (table.log.root / "link.parquet").symlink_to(table.outside)
        path = "link.parquet"
    else:
        (table.log.root / "links").symlink_to(table.outside.parent)
        path = "links/secret.parquet"
    table.log.commit(table.good(path))
    with pytest.raises(PathEscapeError, match="leads through a symbolic link"):
        spark_files(table.opened())


def test_links_that_stay_in_the_table_and_a_root_that_is_a_link_are_fine(tmp_path: Path) -> None:
    table = Table(tmp_path / "t")
    (table.log.root / "inner").mkdir()
    (table.log.root / "inner" / "l.parquet").symlink_to(table.log.root / "a.parquet")
    (table.log.root / "other").symlink_to(table.log.root / "inner")
    (tmp_path / "root").symlink_to(table.log.root)
    store = LocalLogStore(tmp_path / "root")
    TABLE_ONLY.require_links_inside_roots(
        store, ["a.parquet", "inner/l.parquet", "other/l.parquet", "missing/x"]
    )
    (table.log.root / "up").symlink_to(tmp_path)
    with pytest.raises(PathEscapeError):
        TABLE_ONLY.require_links_inside_roots(store, ["up/t/outside/secret.parquet"])
