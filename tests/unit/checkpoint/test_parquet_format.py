"""The codec and the pages that a table wants are those of its data files and of its checkpoints."""

from __future__ import annotations

from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import InvalidTablePropertyError
from tests.support.log_builder import LogBuilder, metadata, protocol

CODEC = "delta.parquet.compression.codec"
PAGES = "delta.parquet.format.version"
ROWS = pa.table({"id": list(range(50)), "t": [None if n % 3 else f"row {n}" for n in range(50)]})


def codecs_of(path: Path) -> set[str]:
    footer = pq.read_metadata(path)
    return {
        footer.row_group(group).column(column).compression
        for group in range(footer.num_row_groups)
        for column in range(footer.num_columns)
    }


def page_kinds(path: Path) -> set[int]:
    """The kinds of a file's first data pages, as the Parquet format numbers them: 0 is v1, 3 is v2."""
    footer, data = pq.read_metadata(path), path.read_bytes()
    kinds = set()
    for group in range(footer.num_row_groups):
        for column in range(footer.num_columns):
            header = data[footer.row_group(group).column(column).data_page_offset :]
            # A compact Thrift struct, whose first field is the kind, in zigzag.
            assert header[0] == 0x15
            kinds.add(header[1] >> 1)
    return kinds


def parquet_files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.parquet"))


@pytest.mark.parametrize(
    ("named", "found"),
    [
        ("zstd", "ZSTD"),
        ("GZIP", "GZIP"),
        ("uncompressed", "UNCOMPRESSED"),
        ("lz4_raw", "LZ4"),
        (None, "SNAPPY"),
    ],
)
@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_checkpoints_have_the_codec_of_the_table(
    tmp_path: Path, named: str | None, found: str, policy: str
) -> None:
    configuration = {"delta.checkpointPolicy": policy} | ({} if named is None else {CODEC: named})
    write_deltalake(tmp_path, ROWS, configuration=configuration)
    table = DeltaTable(tmp_path)
    table.create_checkpoint()
    files = parquet_files(tmp_path)
    assert len(files) == (2 if policy == "classic" else 3)
    assert [codecs_of(path) for path in files] == [{found}] * len(files)
    (tmp_path / "_delta_log" / f"{0:020d}.json").unlink()
    assert DeltaTable(tmp_path).to_pyarrow_table().num_rows == ROWS.num_rows
    if policy == "classic":
        assert deltalake.DeltaTable(tmp_path).to_pyarrow_table().num_rows == ROWS.num_rows


@pytest.mark.parametrize(("version", "kind"), [("1.0.0", 0), ("2.12.0", 3), ("2.0.0", 3), (None, 0)])
def test_all_files_have_the_pages_that_the_table_wants(
    tmp_path: Path, version: str | None, kind: int
) -> None:
    configuration = {"delta.enableChangeDataFeed": "true"} | ({} if version is None else {PAGES: version})
    table = DeltaTable.create(tmp_path, ROWS.schema, configuration=configuration)
    for _ in range(2):
        write_deltalake(table, ROWS, mode="append")
    table.optimize.compact()
    table.update({"t": "'new'"}, "id = 7")
    table.create_checkpoint()
    files = parquet_files(tmp_path)
    assert {path.parent.name for path in files} >= {"_change_data", "_delta_log"}
    assert [page_kinds(path) for path in files] == [{kind}] * len(files)
    for path in (tmp_path / "_delta_log").glob("*.json"):
        path.unlink()
    counts = {"id": 2 * ROWS.num_rows, "new": 2}
    for rows in (DeltaTable(tmp_path).to_pyarrow_table(), deltalake.DeltaTable(tmp_path).to_pyarrow_table()):
        assert {"id": rows.num_rows, "new": rows.column("t").to_pylist().count("new")} == counts


@pytest.mark.parametrize("version", ["2", "1.0", "3.0.0", "2.x.x", "", "1.0.0 "])
def test_what_is_no_version_of_pages_is_refused(tmp_path: Path, version: str) -> None:
    with pytest.raises(InvalidTablePropertyError, match=r"delta\.parquet\.format\.version"):
        write_deltalake(tmp_path, ROWS, configuration={PAGES: version})
    table = DeltaTable.create(tmp_path, ROWS.schema)
    with pytest.raises(InvalidTablePropertyError, match=r"2\.12\.0"):
        table.alter.set_properties({PAGES: version})


@pytest.mark.parametrize("setting", [{CODEC: "lzo"}, {PAGES: "3.0.0"}])
def test_a_checkpoint_is_written_whatever_another_writer_has_set(
    tmp_path: Path, setting: dict[str, str]
) -> None:
    LogBuilder(tmp_path).commit(protocol(), metadata(configuration=setting))
    table = DeltaTable(tmp_path)
    table.create_checkpoint()
    (path,) = parquet_files(tmp_path)
    assert (codecs_of(path), page_kinds(path)) == ({"SNAPPY"}, {0})
    with pytest.raises(InvalidTablePropertyError):
        write_deltalake(table, pa.table({"id": [1]}), mode="append")


@pytest.mark.parametrize("wanted", ["true", "false"])
def test_partition_columns_are_in_files_where_the_table_prefers_it(tmp_path: Path, wanted: str) -> None:
    data = pa.table({"p": ["a", "b", None], "id": [1, 2, 3]})
    key = "delta.writePartitionColumnsToParquet"
    write_deltalake(tmp_path, data, partition_by=["p"], configuration={key: wanted})
    table = DeltaTable(tmp_path)
    assert table.protocol().min_writer_version == 2, "it asks nothing of other writers"
    names = {tuple(pq.read_schema(path).names) for path in parquet_files(tmp_path)}
    assert names == {("id", "p") if wanted == "true" else ("id",)}
    write_deltalake(table, data, mode="append")
    table.optimize.compact()
    assert (
        tuple(pq.read_schema(max(parquet_files(tmp_path), key=lambda p: p.stat().st_mtime_ns)).names) in names
    )
    found = deltalake.DeltaTable(tmp_path).to_pyarrow_table().sort_by("id")
    assert found.column("p").to_pylist() == ["a", "a", "b", "b", None, None]
    stats = table.snapshot.files.to_table(["stats"]).column("stats").to_pylist()
    assert not any('"p"' in text for text in stats)
