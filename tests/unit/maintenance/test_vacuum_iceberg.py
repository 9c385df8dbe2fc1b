"""A vacuum of a table that is Iceberg's too: no Delta log names the files of Iceberg's metadata."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import MaintenanceError
from delta_core.maintenance.vacuum import apply_vacuum, plan_vacuum
from delta_core.maintenance.vacuum.listing import FileKind, classify, may_have_iceberg_metadata
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from tests.support.log_builder import LogBuilder, metadata, protocol

METADATA = "metadata/v1.metadata.json"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (METADATA, FileKind.KEPT),
        ("metadata/deep/snap-1.avro", FileKind.KEPT),
        ("metadata", FileKind.DATA),
        ("metadata=1/part-1.parquet", FileKind.DATA),
        ("day=1/metadata/x.parquet", FileKind.DATA),
        ("part-1.parquet", FileKind.DATA),
    ],
)
def test_its_folder_is_kept_where_it_may_be(path: str, kind: FileKind) -> None:
    assert classify(path, partition_columns=["day"], for_iceberg=True) is kind
    assert classify(path, partition_columns=["day"]) is FileKind.DATA


@pytest.mark.parametrize("version", [1, 2])
def test_only_what_no_log_names_goes(tmp_path: Path, version: int) -> None:
    key = f"delta.enableIcebergCompatV{version}"
    write_deltalake(tmp_path, pa.table({"id": [1]}), configuration={key: "true"})
    table = DeltaTable(tmp_path)
    for name in (METADATA, "left/over.parquet"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(b"x")
        os.utime(tmp_path / name, (0, 0))
    plan = plan_vacuum(table.snapshot)
    (found,) = plan.files
    assert found.path == "left/over.parquet"
    # Such as a plan from before the table was Iceberg's.
    with pytest.raises(MaintenanceError, match="must not delete"):
        apply_vacuum(table.snapshot, replace(plan, files=(replace(found, path=METADATA),)))
    assert (tmp_path / METADATA).exists()
    table.alter.set_properties({key: "false"})
    assert len(plan_vacuum(table.snapshot).files) == 1
    table.alter.drop_feature(f"icebergCompatV{version}")
    assert {item.path for item in plan_vacuum(table.snapshot).files} == {found.path, METADATA}


def test_so_is_that_of_a_table_in_both_formats(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path)
    log.commit(protocol(), metadata(configuration={"delta.universalFormat.enabledFormats": "hudi, Iceberg"}))
    assert may_have_iceberg_metadata(Snapshot.load(LocalLogStore(tmp_path)))
    log.commit(metadata(configuration={"delta.universalFormat.enabledFormats": "hudi"}))
    assert not may_have_iceberg_metadata(Snapshot.load(LocalLogStore(tmp_path)))
