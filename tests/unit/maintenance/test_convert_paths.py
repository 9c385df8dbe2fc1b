"""Files whose names look like something else in the log."""

from __future__ import annotations

import shutil
from pathlib import Path
from urllib.parse import unquote, urlsplit

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, convert_to_deltalake, write_deltalake
from delta_core.errors import SchemaError


@pytest.mark.parametrize(
    "name", ["a:b.parquet", "x:/f.parquet", "file:/f.parquet", "s3:/b/f.parquet", "d/a:b.parquet"]
)
def test_no_name_with_a_colon_is_taken_for_a_scheme(tmp_path: Path, name: str) -> None:
    """The path of an action is a URI, whose scheme is what stands before a first colon."""
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": [1, 2]}), path)
    convert_to_deltalake(tmp_path)
    table = DeltaTable(tmp_path)
    (raw,) = table.snapshot.files.to_table(["path"]).column("path").to_pylist()
    assert urlsplit(raw).scheme == ""
    assert unquote(raw) == name
    assert (
        table.to_pyarrow_table().num_rows == deltalake.DeltaTable(tmp_path).to_pyarrow_table().num_rows == 2
    )
    table.delete("id = 1")
    assert DeltaTable(tmp_path).to_pyarrow_table().column("id").to_pylist() == [2]
    names = table.vacuum(retention_hours=0, dry_run=False, enforce_retention=False, force=True)
    assert [unquote(path) for path in names] == [name]


@pytest.mark.parametrize("text", ["x" * 300, "日" * 100])
def test_a_directory_without_the_whole_value_is_refused(tmp_path: Path, text: str) -> None:
    """Its name ends in a digest; the value was in a log that is lost."""
    write_deltalake(tmp_path, pa.table({"id": [1], "p": [text]}), partition_by=["p"])
    shutil.rmtree(tmp_path / "_delta_log")
    with pytest.raises(SchemaError, match="no complete partition value for the column p"):
        convert_to_deltalake(tmp_path, partition_by=pa.schema({"p": pa.string()}))
    assert not (tmp_path / "_delta_log").exists()
