"""A Delta table in a folder below another one's is not touched by what maintains the outer one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import InvalidTableError
from delta_core.maintenance.convert import convert_to_deltalake
from delta_core.maintenance.inner_tables import inner_root, inner_tables, is_within
from delta_core.maintenance.vacuum import VacuumPlan, apply_vacuum, plan_vacuum
from delta_core.storage.local import LocalLogStore

MakeTable = Callable[..., Path]


def inner_table(outer: Path, where: str) -> Path:
    """A table with a live file and one that its own vacuum would delete some day, moved to its place."""
    made = outer.with_name(f"{outer.name}-made")
    for rows in (1, 2):
        write_deltalake(made, pa.table({"b": [rows]}), mode="overwrite")
    (outer / where).parent.mkdir(parents=True, exist_ok=True)
    made.rename(outer / where)
    return outer / where


def link_log(inner: Path, logs: Path, how: str) -> None:
    """Put a table's log elsewhere, and links in its place."""
    log = inner / "_delta_log"
    if how == "each file":
        logs.mkdir()
        for file in list(log.iterdir()):
            file.rename(logs / file.name)
            file.symlink_to(logs / file.name)
        return
    log.rename(logs)
    log.symlink_to(logs)
    if how == "nowhere":
        logs.rename(logs.with_name("unmounted"))


def below(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "where",
    [
        *("archive", "archive/2023", "day=1/inner", "A/b c/%20", "1/_delta_log2", "_change_data/t"),
        *("etl/_temporary", "etl/_temporary/0"),
    ],
)
def test_a_vacuum_lists_names_and_keeps_it(make_table: MakeTable, helpers: Any, where: str) -> None:
    outer = make_table()
    inner = inner_table(outer, where)
    (outer / "orphan.parquet").write_bytes(b"x")
    helpers.age_files(outer, 30)
    before = below(inner)
    snapshot = helpers.snapshot_of(outer)

    plan = VacuumPlan.from_json(json.loads(json.dumps(plan_vacuum(snapshot).to_json())))
    result = apply_vacuum(snapshot, plan)

    assert plan.inner_tables == (where,)
    assert [file.path for file in plan.files] == ["orphan.parquet"]
    assert result.deleted_files == 1
    assert below(inner) == before
    assert DeltaTable(inner).to_pyarrow_table().num_rows == 1


@pytest.mark.parametrize("how", ["its directory", "each file", "nowhere"])
def test_a_table_whose_log_is_linked_is_one(make_table: MakeTable, helpers: Any, how: str) -> None:
    outer = make_table()
    inner = inner_table(outer, "archive")
    link_log(inner, outer.parent / "logs", how)
    (outer / "orphan.parquet").write_bytes(b"x")
    helpers.age_files(outer, 30)
    before = below(inner)
    snapshot = helpers.snapshot_of(outer)
    plan = plan_vacuum(snapshot)
    assert plan.inner_tables == ("archive",)
    assert [file.path for file in plan.files] == ["orphan.parquet"]
    assert apply_vacuum(snapshot, plan).deleted_files == 1
    assert below(inner) == before


@pytest.mark.parametrize("how", ["its directory", "each file"])
def test_a_folder_whose_log_is_linked_after_the_plan_keeps_its_files(
    make_table: MakeTable, helpers: Any, how: str
) -> None:
    outer = make_table()
    inner = inner_table(outer, "late")
    aside = outer.parent / "aside"
    (inner / "_delta_log").rename(aside)
    helpers.age_files(outer, 30)
    snapshot = helpers.snapshot_of(outer)
    plan = plan_vacuum(snapshot)
    assert len(plan.files) == 2
    aside.rename(inner / "_delta_log")
    link_log(inner, outer.parent / "logs", how)
    assert apply_vacuum(snapshot, plan).deleted_files == 0
    assert DeltaTable(inner).to_pyarrow_table().num_rows == 1


def test_each_is_named_when_tables_lie_in_tables(make_table: MakeTable, helpers: Any) -> None:
    outer = make_table()
    for where in ("a/b", "a/b/c/d", "e"):
        inner_table(outer, where)
    helpers.age_files(outer, 30)
    plan = plan_vacuum(helpers.snapshot_of(outer))
    assert plan.inner_tables == ("a/b", "a/b/c/d", "e")
    assert plan.is_empty


def test_a_folder_that_becomes_a_table_after_the_plan_keeps_its_files(
    make_table: MakeTable, helpers: Any
) -> None:
    outer = make_table()
    moved = inner_table(outer.parent, "elsewhere")
    (outer / "late").mkdir()
    for file in moved.glob("*.parquet"):
        file.rename(outer / "late" / file.name)
    (outer / "orphan.parquet").write_bytes(b"x")
    helpers.age_files(outer, 30)
    snapshot = helpers.snapshot_of(outer)
    plan = plan_vacuum(snapshot)
    assert len(plan.files) == 3
    (moved / "_delta_log").rename(outer / "late" / "_delta_log")

    result = apply_vacuum(snapshot, plan)

    assert len(result.kept) == 2
    assert result.deleted_files == 1
    assert DeltaTable(outer / "late").to_pyarrow_table().num_rows == 1


def test_an_empty_folder_of_that_name_makes_no_table(make_table: MakeTable, helpers: Any) -> None:
    outer = make_table()
    (outer / "folder" / "_delta_log").mkdir(parents=True)
    (outer / "folder" / "orphan.parquet").write_bytes(b"x")
    helpers.age_files(outer, 30)
    plan = plan_vacuum(helpers.snapshot_of(outer))
    assert plan.inner_tables == ()
    assert [file.path for file in plan.files] == ["folder/orphan.parquet"]


def test_a_conversion_names_it(tmp_path: Path) -> None:
    inner_table(tmp_path, "archive/2023")
    with pytest.raises(Exception, match=r"'archive/2023'.* is a Delta table"):
        convert_to_deltalake(str(tmp_path))
    assert not (tmp_path / "_delta_log").exists()


@pytest.mark.parametrize("how", ["its directory", "each file", "nowhere"])
def test_a_conversion_names_a_table_whose_log_is_linked(tmp_path: Path, how: str) -> None:
    raw = tmp_path / "raw"
    link_log(inner_table(raw, "archive"), tmp_path / "logs", how)
    with pytest.raises(InvalidTableError, match=r"'archive'.* is a Delta table"):
        convert_to_deltalake(raw)
    assert not (raw / "_delta_log").exists()


def test_other_links_do_not_stop_a_conversion(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    pq.write_table(pa.table({"a": [1]}), raw / "a.parquet")
    (raw / "link").symlink_to(tmp_path)
    convert_to_deltalake(raw)
    assert DeltaTable(raw).to_pyarrow_table().num_rows == 1


def test_folders_on_the_way_to_a_file(tmp_path: Path) -> None:
    assert inner_root("a/b/_delta_log/0.json") == "a/b"
    assert inner_root("_delta_log/0.json") is None
    assert inner_root("a/_delta_log/") == "a"
    assert inner_root("a/_delta_logs/0.json") is None
    assert is_within("a/b/c.parquet", {"a"})
    assert not is_within("ab/c.parquet", {"a"})
    (tmp_path / "a" / "_delta_log").mkdir(parents=True)
    (tmp_path / "a" / "_delta_log" / "0.json").write_text("{}")
    assert inner_tables(LocalLogStore(tmp_path), ["a/b/c.parquet", "d/e.parquet", "f.parquet"]) == {"a"}
