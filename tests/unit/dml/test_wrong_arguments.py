"""Arguments of the wrong kind are refused by a typed error, before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import (
    ConfigurationError,
    DeltaError,
    ExpressionError,
    InvalidTablePropertyError,
    RestoreError,
)
from delta_core.expressions.ast import Column

Call = Callable[[DeltaTable], Any]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda table: table.delete(b"id = 1"), ExpressionError),
        (lambda table: table.delete(1), ExpressionError),
        (lambda table: table.delete(Column(("id",))), ExpressionError),
        (lambda table: table.delete(Column(("part",))), ExpressionError),
        (lambda table: table.alter.rename_column("id", None), ConfigurationError),
        (lambda table: table.alter.set_properties({"delta.appendOnly": [True]}), InvalidTablePropertyError),
        (lambda table: table.alter.set_properties({"owner": None}), InvalidTablePropertyError),
        (lambda table: table.alter.set_properties({1: "x"}), InvalidTablePropertyError),
        (lambda table: table.alter.add_constraint({" ": "id > 0"}), ConfigurationError),
        (lambda table: table.alter.add_feature(["appendOnly"]), ConfigurationError),
        (lambda table: table.alter.add_feature(None), ConfigurationError),
        (lambda table: table.vacuum("168"), ConfigurationError),
        (lambda table: table.vacuum(True), ConfigurationError),
        (lambda table: table.optimize.compact(target_size_bytes=2**63), ConfigurationError),
        (lambda table: table.load_cdf("0"), ConfigurationError),
        (lambda table: table.load_cdf(None), ConfigurationError),
        (lambda table: table.to_pyarrow_table(columns=[1]), ConfigurationError),
        (lambda table: table.to_pyarrow_table(columns=1), ConfigurationError),
        (lambda table: table.load_as_version("yesterday"), ConfigurationError),
        (lambda table: table.load_as_version("2026-01-31T12:00:00"), ConfigurationError),
        (lambda table: table.load_as_version("2026-01-31T12:00:00Z", timestamp_ms=1), ConfigurationError),
        (lambda table: table.restore("3"), ConfigurationError),
        (lambda table: table.restore(), RestoreError),
    ],
)
def test_wrong_arguments_are_refused(tmp_path: Path, call: Call, error: type[DeltaError]) -> None:
    write_deltalake(
        tmp_path,
        pa.table({"id": [1], "part": ["a"]}),
        partition_by=["part"],
        configuration={"delta.columnMapping.mode": "name"},
    )
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(error):
        call(DeltaTable(tmp_path))
    assert sorted(tmp_path.rglob("*")) == before


def test_properties_of_a_new_table_are_texts(tmp_path: Path) -> None:
    wrong: Any = {"delta.appendOnly": b"true"}
    with pytest.raises(InvalidTablePropertyError, match="Names of table properties are strings"):
        write_deltalake(tmp_path / "t", pa.table({"id": [1]}), configuration=wrong)
    assert not (tmp_path / "t").exists()


def test_the_table_of_another_library_is_no_open_table(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    with pytest.raises(ConfigurationError, match=r"deltalake\.table\.DeltaTable"):
        write_deltalake(deltalake.DeltaTable(str(tmp_path)), pa.table({"id": [2]}), mode="append")


@pytest.mark.parametrize("partition_by", [5, [5], [None]])
def test_partition_columns_are_names(tmp_path: Path, partition_by: Any) -> None:
    with pytest.raises(ConfigurationError, match="partition_by"):
        write_deltalake(tmp_path / "t", pa.table({"id": [1]}), partition_by=partition_by)
    with pytest.raises(ConfigurationError, match="partition_by"):
        DeltaTable.create(tmp_path / "t", pa.schema([("id", pa.int64())]), partition_by=partition_by)
    assert not (tmp_path / "t").exists()


ROWS = pa.table({"id": [1], "part": ["a"]})


@pytest.mark.parametrize(
    "call",
    [
        lambda table: table.to_pyarrow_table(columns=3),
        lambda table: table.to_pyarrow_table(columns=["id", None]),
        lambda table: list(table.to_batches(shard=3)),
        lambda table: list(table.to_batches(shard=("a", "b"))),
        lambda table: list(table.to_batches(shard=(2, 2))),
        lambda table: list(table.appended_batches(None)),
        lambda table: table.load_cdf("first"),
        lambda table: table.load_cdf(None),
        lambda table: table.vacuum("a week"),
        lambda table: DeltaTable(table.table_uri, allowed_roots=None),
        lambda table: DeltaTable(table.table_uri, storage_options=3),
        lambda table: write_deltalake(table, ROWS, mode="append", partition_by=3),
        lambda table: write_deltalake(table, ROWS, mode="append", partition_by=[None]),
        lambda table: write_deltalake(table, ROWS, mode="append", cluster_by=3),
        lambda table: write_deltalake(table, ROWS, mode="append", compression=[]),
        lambda table: write_deltalake(table, ROWS, mode="append", configuration=["x"]),
        lambda table: table.alter.set_properties(3),
        lambda table: table.alter.cluster_by(3),
    ],
)
def test_arguments_of_another_type_are_named(tmp_path: Path, call: Call) -> None:
    write_deltalake(tmp_path, ROWS, configuration={"delta.enableChangeDataFeed": "true"})
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises((ConfigurationError, InvalidTablePropertyError)):
        call(DeltaTable(tmp_path))
    assert sorted(tmp_path.rglob("*")) == before


def test_a_new_table_of_nonsense_is_not_created(tmp_path: Path) -> None:
    wrong: Any = 3
    for arguments in ({"partition_by": wrong}, {"cluster_by": wrong}, {"configuration": wrong}):
        with pytest.raises((ConfigurationError, InvalidTablePropertyError)):
            write_deltalake(tmp_path / "t", ROWS, **arguments)
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize(
    "call",
    [
        lambda table, wrong: table.delete("id = 1", commit_properties=wrong),
        lambda table, wrong: table.update({"id": "2"}, commit_properties=wrong),
        lambda table, wrong: table.restore(0, commit_properties=wrong),
        lambda table, wrong: table.vacuum(commit_properties=wrong),
        lambda table, wrong: table.repair(commit_properties=wrong),
        lambda table, wrong: table.alter.set_name("t", commit_properties=wrong),
        lambda table, wrong: table.alter.set_properties({"a": "b"}, commit_properties=wrong),
        lambda table, wrong: table.alter.drop_feature("deletionVectors", commit_properties=wrong),
        lambda table, wrong: table.optimize.compact(commit_properties=wrong),
        lambda table, wrong: table.optimize.purge(commit_properties=wrong),
        lambda table, wrong: table.optimize.z_order(["id"], commit_properties=wrong),
        lambda table, wrong: table.optimize.cluster(commit_properties=wrong),
        lambda table, wrong: table.optimize.enable_row_tracking(commit_properties=wrong),
        lambda table, wrong: table.optimize.assign_row_ids(wrong),
    ],
)
def test_wrong_commit_properties_are_refused_before_anything_is_read(
    tmp_path: Path, call: Callable[[DeltaTable, Any], Any]
) -> None:
    for number in range(2):
        write_deltalake(tmp_path, pa.table({"id": [number]}), mode="append")
    table = DeltaTable(tmp_path, version=0)
    with pytest.raises(ConfigurationError, match="CommitProperties"):
        call(table, {"author": "ann"})
    assert table.version() == 0, "the handle still shows the version that it was opened at"
