"""Tables in folders to which another writes: none is made there, and a vacuum keeps the files of both."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from obstore.store import MemoryStore

from delta_core import DeltaTable, clone_table, convert_to_deltalake, write_deltalake
from delta_core.clock import SYSTEM_CLOCK, ManualClock
from delta_core.dml import create_table
from delta_core.errors import MaintenanceError, NestedTableError, StorageError, StorePermissionError
from delta_core.leases.pins import pin_version
from delta_core.log.outer_tables import outer_tables
from delta_core.maintenance.vacuum import VacuumPlan, apply_vacuum, plan_vacuum
from delta_core.maintenance.vacuum.guard import require_table_directory
from delta_core.schema.arrow import from_arrow
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.storage.log_store import LogStore
from delta_core.storage.object_store import Clients, ObjectLogStore
from delta_core.storage.remote_uri import parse_remote_uri
from delta_core.storage.request_meter import METER
from delta_core.transaction import Transaction
from tests.support.log_builder import DAY_MS

NOW = {"retention_hours": 0, "enforce_retention": False, "force": True}
DAYS = pa.table({"day": [1, 2], "a": [1, 2]})
ROWS = pa.table({"b": [1, 2]})


@pytest.fixture
def outer(tmp_path: Path) -> Path:
    """A table with the folders `day=1` and `day=2`."""
    write_deltalake(tmp_path / "outer", DAYS, partition_by=["day"])
    return tmp_path / "outer"


def move_into(made: Path, folder: Path) -> None:
    """Put what a table consists of into a folder that is there already."""
    folder.mkdir(exist_ok=True)
    for item in list(made.iterdir()):
        item.rename(folder / item.name)
    made.rmdir()


@pytest.fixture
def inner(outer: Path, tmp_path: Path) -> Path:
    """A table in the folder `day=1`, as other engines make it, with a live file and a removed one."""
    made = tmp_path / "made"
    for rows in (1, 2):
        write_deltalake(made, pa.table({"b": [rows]}), mode="overwrite")
    move_into(made, outer / "day=1")
    return outer / "day=1"


def replace_long_ago(table: Path) -> None:
    """Replace the rows, as if thirty days ago."""
    past = ManualClock(SYSTEM_CLOCK.now_ms() - 30 * DAY_MS)
    write_deltalake(table, DAYS.slice(1), mode="overwrite", clock=past)


def below(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def rows_of(table: Path) -> int:
    return DeltaTable(table).to_pyarrow_table().num_rows


# ---------------------------------------------------------------- making a table


def write(place: Path) -> None:
    write_deltalake(place, ROWS, mode="append")


def create(place: Path) -> None:
    DeltaTable.create(place, ROWS.schema)


def convert(place: Path) -> None:
    convert_to_deltalake(place)


def clone(place: Path, **options: Any) -> None:
    clone_table(_source(place), place, **options)


def clone_shallow(place: Path) -> None:
    clone(place, shallow=True)


def clone_with_history(place: Path) -> None:
    clone(place, keep_history=True)


def begin(place: Path) -> None:
    Transaction.create(LocalLogStore(place))


def _source(place: Path) -> Path:
    source = next(folder for folder in place.parents if (folder / "outer").is_dir()) / "source"
    write_deltalake(source, ROWS, mode="overwrite")
    return source


@pytest.mark.parametrize("make", [write, create, convert, clone, clone_shallow, clone_with_history, begin])
@pytest.mark.parametrize("where", ["day=1", "day=1/x", "day=3", "_change_data", "_delta_log", "_delta_log/x"])
def test_no_table_is_made_in_folders_of_another(
    outer: Path, make: Callable[[Path], None], where: str
) -> None:
    before = below(outer)
    with pytest.raises(NestedTableError, match="No table can be created") as refused:
        make(outer / where)
    assert refused.value.code == "NESTED_TABLE"
    assert below(outer) == before
    assert rows_of(outer) == 2


def test_a_log_that_is_linked_is_seen(outer: Path, tmp_path: Path) -> None:
    (outer / "_delta_log").rename(tmp_path / "logs")
    (outer / "_delta_log").symlink_to(tmp_path / "logs")
    with pytest.raises(NestedTableError):
        write(outer / "day=1")


@pytest.mark.parametrize(
    "where", ["_deltaward/quarantine", "archive", "archive/2023", "_x/day=1", ".hidden/day=1/t", "../day=1"]
)
def test_tables_elsewhere_are_made(outer: Path, where: str) -> None:
    write(outer / where)
    assert rows_of(outer / where) == 2


def test_a_table_in_such_a_folder_is_still_written(inner: Path) -> None:
    write_deltalake(inner, pa.table({"b": [3]}), mode="append")
    assert rows_of(inner) == 2


def _bucket() -> Callable[[str], ObjectLogStore]:
    memory = MemoryStore()
    clients = Clients(lambda: (memory, memory), proved=True, place="memory")
    return lambda uri: ObjectLogStore(parse_remote_uri(uri), clients)


def _requests(call: Callable[[], object]) -> int:
    before = METER.totals().requests
    call()
    return METER.totals().requests - before


def test_the_requests_of_a_creation() -> None:
    """Only a folder `name=value` on the way costs one more, and the refusal nothing but that."""
    store = _bucket()
    schema = from_arrow(ROWS.schema)
    plain = _requests(lambda: create_table(store("s3://b/x/y/z"), schema=schema))
    assert _requests(lambda: create_table(store("s3://b/x/year=1/z"), schema=schema)) == plain + 1
    assert _requests(lambda: create_table(store("s3://b/w/year=1/month=2"), schema=schema)) == plain + 2
    create_table(store("s3://b/t"), schema=schema)
    with pytest.raises(NestedTableError, match="the table s3://b/t,"):
        create_table(store("s3://b/t/year=1"), schema=schema)
    assert _requests(lambda: Transaction.create(store("s3://b/x/y/w"))) == 0


# ---------------------------------------------------------------- vacuum


def test_a_vacuum_keeps_what_the_table_above_names(outer: Path, inner: Path, helpers: Any) -> None:
    helpers.age_files(outer, 30)
    snapshot = helpers.snapshot_of(inner)
    live = {Path(path).name for path in DeltaTable(outer).file_uris()}

    plan = VacuumPlan.from_json(json.loads(json.dumps(plan_vacuum(snapshot, **NOW).to_json())))
    result = apply_vacuum(snapshot, plan)

    assert plan.outer_tables == (outer.as_uri(),)
    assert len(plan.files) == 1
    assert not live & {file.path for file in plan.files}
    assert (result.deleted_files, result.kept) == (1, ())
    assert (rows_of(outer), rows_of(inner)) == (2, 1)


def test_a_vacuum_keeps_what_the_table_above_has_removed_or_not_yet_committed(
    outer: Path, inner: Path, helpers: Any
) -> None:
    removed = next(path for path in DeltaTable(outer).file_uris() if "day=1" in path)
    DeltaTable(outer).delete("day = 1")
    helpers.age_files(outer, 30)
    (inner / "part-of-a-running-write.parquet").write_bytes(b"x")
    plan = plan_vacuum(helpers.snapshot_of(inner), **NOW)
    names = {file.path for file in plan.files}
    assert len(names) == 1
    assert not names & {Path(removed).name, "part-of-a-running-write.parquet"}
    assert plan.outer_tables == (outer.as_uri(),)


def test_a_vacuum_keeps_what_is_pinned_above(outer: Path, inner: Path, helpers: Any) -> None:
    pin = pin_version(helpers.snapshot_of(outer), ttl_seconds=3600, holder="a report")
    replace_long_ago(outer)
    helpers.age_files(outer, 30)
    snapshot = helpers.snapshot_of(inner)
    assert len(plan_vacuum(snapshot, **NOW).files) == 1
    pin.release()
    assert len(plan_vacuum(snapshot, **NOW).files) == 2


def test_a_vacuum_keeps_change_data_of_the_table_above(tmp_path: Path, helpers: Any) -> None:
    outer = tmp_path / "outer"
    write_deltalake(outer, ROWS, configuration={"delta.enableChangeDataFeed": "true"})
    DeltaTable(outer).update(new_values={"b": "7"}, predicate="b = 1")
    changes = below(outer / "_change_data")
    assert changes
    made = tmp_path / "made"
    write_deltalake(made, ROWS)
    move_into(made, outer / "_change_data")
    helpers.age_files(outer, 30)
    plan = plan_vacuum(helpers.snapshot_of(outer / "_change_data"), **NOW)
    assert plan.is_empty
    assert plan.outer_tables == (outer.as_uri(),)


def test_a_table_that_is_put_around_it_after_the_plan_keeps_its_files(
    outer: Path, inner: Path, tmp_path: Path, helpers: Any
) -> None:
    helpers.age_files(outer, 30)
    (outer / "_delta_log").rename(tmp_path / "aside")
    snapshot = helpers.snapshot_of(inner)
    plan = plan_vacuum(snapshot, **NOW)
    assert (len(plan.files), plan.outer_tables) == (2, ())
    (tmp_path / "aside").rename(outer / "_delta_log")

    result = apply_vacuum(snapshot, plan)

    assert (result.deleted_files, len(result.kept)) == (1, 1)
    assert (rows_of(outer), rows_of(inner)) == (2, 1)


def test_a_version_that_comes_back_above_keeps_its_files(outer: Path, inner: Path, helpers: Any) -> None:
    """Files that the outer table removed long ago may be deleted, until a restore brings them back."""
    replace_long_ago(outer)
    helpers.age_files(outer, 30)
    snapshot = helpers.snapshot_of(inner)
    plan = plan_vacuum(snapshot, **NOW)
    assert (len(plan.files), plan.outer_tables) == (2, ())
    DeltaTable(outer).restore(0)

    result = apply_vacuum(snapshot, plan)

    assert (result.deleted_files, len(result.kept)) == (1, 1)
    assert (rows_of(outer), rows_of(inner)) == (2, 1)


def test_a_table_between_folders_has_its_own_retention(outer: Path, tmp_path: Path, helpers: Any) -> None:
    """The outer table writes no files to `archive`, so a file there belongs to no other table."""
    made = tmp_path / "made"
    for rows in (1, 2):
        write_deltalake(made, pa.table({"b": [rows]}), mode="overwrite")
    move_into(made, outer / "archive")
    helpers.age_files(outer, 1)
    plan = plan_vacuum(helpers.snapshot_of(outer / "archive"), **NOW)
    assert (len(plan.files), plan.outer_tables) == (1, ())


def test_what_a_damaged_table_above_needs_is_not_known(outer: Path, inner: Path, helpers: Any) -> None:
    helpers.age_files(outer, 30)
    snapshot = helpers.snapshot_of(inner)
    plan = plan_vacuum(snapshot, **NOW)
    (outer / "_delta_log" / f"{1:020}.json").write_text("{")
    before = below(inner)
    with pytest.raises(MaintenanceError, match=r"'day=1' cannot be determined"):
        plan_vacuum(snapshot, **NOW)
    with pytest.raises(MaintenanceError, match=r"'day=1' cannot be determined"):
        apply_vacuum(snapshot, plan)
    assert below(inner) == before


def test_a_log_without_versions_is_no_table(tmp_path: Path, helpers: Any) -> None:
    made = tmp_path / "made"
    for rows in (1, 2):
        write_deltalake(made, pa.table({"b": [rows]}), mode="overwrite")
    (tmp_path / "outer" / "_delta_log").mkdir(parents=True)
    (tmp_path / "outer" / "_delta_log" / "README").write_text("x")
    move_into(made, tmp_path / "outer" / "day=1")
    helpers.age_files(tmp_path, 30)
    plan = plan_vacuum(helpers.snapshot_of(tmp_path / "outer" / "day=1"), **NOW)
    assert (len(plan.files), plan.outer_tables) == (1, ())


def test_a_table_in_a_log_is_not_vacuumed() -> None:
    with pytest.raises(MaintenanceError, match="cannot be vacuumed") as refused:
        require_table_directory("s3://b/t/_delta_log/x")
    assert "in the log" in refused.value.cause


# ---------------------------------------------------------------- finding the tables above


def test_the_tables_above() -> None:
    store = _bucket()
    schema = from_arrow(ROWS.schema)
    for uri in ("s3://b", "s3://b/t", "s3://b/t/_x/u"):
        create_table(store(uri), schema=schema)
    found = outer_tables(store("s3://b/t/u/v=1"))
    assert [(outer.store.uri, outer.path, outer.writes_here) for outer in found] == [
        ("s3://b/t", "u/v=1", False),
        ("s3://b", "t/u/v=1", False),
    ]
    inside = outer_tables(store("s3://b/t/_x/u/_v=1/w"))
    assert [(outer.store.uri, outer.path, outer.writes_here) for outer in inside] == [
        ("s3://b/t/_x/u", "_v=1/w", True)
    ]
    assert outer_tables(store("s3://b/t/_deltaward/quarantine")) == ()
    assert _requests(lambda: outer_tables(store("s3://b/t/_deltaward/quarantine"))) == 1
    assert _requests(lambda: outer_tables(store("s3://b/t/u/v"))) == 3
    assert outer_tables(store("s3://b")) == ()


def test_what_may_not_be_listed_is_no_table(outer: Path, inner: Path) -> None:
    error: StorageError = StorePermissionError("denied")

    class Above(LocalLogStore):
        def walk(self, path: str = "") -> Any:
            raise error

    class Inner(LocalLogStore):
        def parent(self) -> Any:
            return Above(self.root.parent)

    assert outer_tables(Inner(inner)) == ()
    error = StorageError("503")
    with pytest.raises(StorageError, match="503"):
        outer_tables(Inner(inner))


def test_a_store_without_parents_has_no_tables_above(inner: Path) -> None:
    class Wrapped:
        uri = LocalLogStore(inner).uri
        remote = False

    store: LogStore = Wrapped()  # type: ignore[assignment]
    assert outer_tables(store) == ()


def test_tables_above_in_any_spelling(outer: Path, inner: Path, tmp_path: Path) -> None:
    os.symlink(outer, tmp_path / "link")
    for path in (inner, tmp_path / "link" / "day=1", inner / ".." / "day=1"):
        (found,) = outer_tables(LocalLogStore(path))
        assert (found.store.uri, found.path) == (outer.as_uri(), "day=1")
        assert Snapshot.load(found.store).version == 0
