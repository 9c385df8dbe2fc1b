"""Vacuum and the files that no path of a data file names: deletion vectors and change data."""

from __future__ import annotations

import dataclasses
import os
import uuid
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_core.actions import AddCdcFile, AddFile, DeletionVectorDescriptor, RemoveFile
from delta_core.checkpoint.classic import write_checkpoint
from delta_core.clock import ManualClock
from delta_core.deletion_vectors import z85
from delta_core.deletion_vectors.file_update import update_deletion_vector
from delta_core.deletion_vectors.reader import deletion_vector_path, read_deletion_vector
from delta_core.deletion_vectors.writer import write_deletion_vectors
from delta_core.errors import MaintenanceError
from delta_core.leases.pins import pin_version
from delta_core.maintenance.vacuum import VacuumPlan, apply_vacuum, plan_vacuum
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.table_features.table_properties import TableProperties
from tests.support.hostile_paths import AuditedStore, hostile_paths
from tests.support.log_builder import DAY_MS, NOW_MS, LogBuilder, add, metadata, protocol, remove
from tests.support.stored_deletion_vectors import inline_descriptor

LONG_AGO_MS = NOW_MS - 400 * DAY_MS
LISTED = protocol(
    min_reader_version=3,
    min_writer_version=7,
    reader_features=frozenset({"deletionVectors"}),
    writer_features=frozenset({"deletionVectors"}),
)


class Table:
    """A table by hand; whatever lies in it was written long ago, and commits are a second apart."""

    def __init__(self, root: Path, *, listed: bool = True) -> None:
        self.log = LogBuilder(root)
        self.log.commit(LISTED if listed else protocol(), metadata())

    @property
    def root(self) -> Path:
        return self.log.root

    def file(self, path: str, *, at_ms: int = LONG_AGO_MS, content: bytes = b"x") -> str:
        """Write a file with a time of its own."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        self.age(path, at_ms)
        return path

    def age(self, path: str, at_ms: int = LONG_AGO_MS) -> None:
        os.utime(self.root / path, (at_ms / 1000, at_ms / 1000))

    def data_file(self, path: str) -> AddFile:
        self.file(path)
        return add(path, stats='{"numRecords":1000}')

    def dvs(self, *rows: list[int], prefix: bool = False) -> tuple[list[DeletionVectorDescriptor], str]:
        """Vectors in one file, and its path."""
        properties = TableProperties({"delta.randomizeFilePrefixes": "true"}) if prefix else None
        store = LocalLogStore(self.root)
        written = write_deletion_vectors(store, rows, inline_max_bytes=-1, properties=properties)
        (path,) = written.paths
        self.age(path)
        return list(written.descriptors), path

    def update(self, file: AddFile, dv: DeletionVectorDescriptor, *, at_ms: int = NOW_MS) -> AddFile:
        """Commit a file with another vector."""
        changed = update_deletion_vector(file, dv, deletion_timestamp_ms=at_ms)
        assert changed.add is not None
        self.log.commit(changed.remove, changed.add)
        return changed.add

    def plan(self, *, days: float = 30, **options: float) -> VacuumPlan:
        """What a vacuum would delete some days after the commits."""
        clock = ManualClock(NOW_MS + round(days * DAY_MS))
        return plan_vacuum(Snapshot.load(LocalLogStore(self.root), clock=clock), clock=clock, **options)

    def planned(self, *, days: float = 30, **options: float) -> list[str]:
        return [file.path for file in self.plan(days=days, **options).files]

    def vacuum(self, plan: VacuumPlan) -> list[str]:
        """Carry a plan out; what is gone then."""
        before = self.found()
        apply_vacuum(Snapshot.load(LocalLogStore(self.root)), plan)
        return sorted(before - self.found())

    def found(self) -> set[str]:
        return {
            str(path.relative_to(self.root))
            for path in self.root.rglob("*")
            if path.is_file() and "_delta_log" not in path.parts
        }


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path / "t")


@pytest.mark.parametrize("checkpointed", [False, True])
@pytest.mark.parametrize("prefix", [False, True])
def test_vectors_of_live_files_stay(table: Table, prefix: bool, checkpointed: bool) -> None:
    (dv,), path = table.dvs([1, 2], prefix=prefix)
    _, orphan = table.dvs([3], prefix=prefix)
    plain = table.data_file("plain.parquet")
    table.log.commit(plain, dataclasses.replace(table.data_file("a.parquet"), deletion_vector=dv))
    table.log.commit(
        dataclasses.replace(table.data_file("b.parquet"), deletion_vector=inline_descriptor([7]))
    )
    if checkpointed:
        write_checkpoint(Snapshot.load(LocalLogStore(table.root)))
    assert table.planned() == [orphan]
    plan = table.plan()
    assert plan.files[0].reason == "not referenced by the table, older than 168 h"
    assert table.vacuum(plan) == [orphan]
    assert (table.root / path).exists()
    assert read_deletion_vector(LocalLogStore(table.root), dv, num_rows=10).tolist() == [1, 2]


@pytest.mark.parametrize("listed", [True, False], ids=["feature listed", "feature dropped"])
def test_a_replaced_vector_goes_after_the_retention(tmp_path: Path, listed: bool) -> None:
    table = Table(tmp_path, listed=listed)
    (old,), old_path = table.dvs([1])
    file = dataclasses.replace(table.data_file("a.parquet"), deletion_vector=old)
    table.log.commit(file)
    (new,), new_path = table.dvs([1, 2])
    if listed:
        table.update(file, new)
    else:
        # As a purge before the feature is dropped leaves it: the old file is needed with its vector.
        table.log.commit(table.data_file("purged.parquet"), remove("a.parquet", deletion_vector=old))
        (table.root / new_path).unlink()
    assert table.planned(days=6.9) == []
    gone = [old_path] if listed else ["a.parquet", old_path]
    plan = table.plan(days=7.1)
    assert [one.path for one in plan.files] == gone
    assert {one.reason for one in plan.files} == {"removed at version 2, the retention of 168 h passed"}
    assert table.vacuum(plan) == gone


def test_a_file_of_vectors_stays_for_the_last_of_them(table: Table) -> None:
    (first, second), path = table.dvs([1], [2])
    one = dataclasses.replace(table.data_file("a.parquet"), deletion_vector=first)
    two = dataclasses.replace(table.data_file("b.parquet"), deletion_vector=second)
    table.log.commit(one, two)
    table.update(one, inline_descriptor([1, 5]))
    assert table.planned() == []
    table.update(two, inline_descriptor([2, 5]))
    assert table.planned() == [path]


def test_a_longer_retention_finds_vectors_in_the_log(table: Table) -> None:
    (old,), path = table.dvs([1])
    file = dataclasses.replace(table.data_file("a.parquet"), deletion_vector=old)
    table.log.commit(file)
    table.update(file, inline_descriptor([1, 2]))
    late = ManualClock(NOW_MS + 30 * DAY_MS)
    write_checkpoint(Snapshot.load(LocalLogStore(table.root), clock=late))
    assert Snapshot.load(LocalLogStore(table.root)).tombstones(since_ms=0).num_rows == 0
    assert table.planned(retention_hours=60 * 24) == []
    assert table.planned() == [path]


def test_a_vector_that_a_restore_brought_back_is_kept(table: Table) -> None:
    (old,), path = table.dvs([1, 2])
    file = dataclasses.replace(table.data_file("a.parquet"), deletion_vector=old)
    table.log.commit(file)
    now = table.update(file, inline_descriptor([1, 2, 3]))
    plan = table.plan()
    assert [one.path for one in plan.files] == [path]
    table.log.commit(remove(now.path, deletion_vector=now.deletion_vector), file)
    assert table.vacuum(plan) == []


def named(prefix: str) -> str:
    return prefix + z85.encode(uuid.UUID(int=7).bytes)


@pytest.mark.parametrize(
    ("prefix", "directory"),
    [("a%20b", "a b"), ("a%20b", "a%20b"), ("x/y", "x/y"), ("./x", "x"), ("x/../y", "y"), ("a\\b", "a/b")],
)
def test_every_spelling_of_a_prefix_protects(table: Table, prefix: str, directory: str) -> None:
    """Our reader takes a plain name only, but another one may have found the file."""
    path = table.file(f"{directory}/deletion_vector_{uuid.UUID(int=7)}.bin")
    dv = DeletionVectorDescriptor(
        storage_type="u", path_or_inline_dv=named(prefix), offset=1, size_in_bytes=1, cardinality=1
    )
    assert table.planned() == [path]
    table.log.commit(dataclasses.replace(table.data_file("a.parquet"), deletion_vector=dv))
    assert table.planned() == []


def test_an_absolute_path_below_the_root_protects(table: Table) -> None:
    (dv,), path = table.dvs([4])
    for absolute in (f"file://{table.root}/{path}", f"{table.root}/{path}"):
        own = dataclasses.replace(dv, storage_type="p", path_or_inline_dv=absolute)
        table.log.commit(dataclasses.replace(table.data_file("a.parquet"), deletion_vector=own))
        assert table.planned() == []
        table.log.commit(remove("a.parquet", deletion_vector=own, deletion_timestamp_ms=LONG_AGO_MS))
        table.log.commit(remove("a.parquet", deletion_timestamp_ms=LONG_AGO_MS))
        assert path in table.planned()


def test_hostile_descriptors_neither_protect_nor_delete_outside(table: Table, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    victim = outside / f"deletion_vector_{uuid.UUID(int=7)}.bin"
    for file in (victim, outside / "secret.bin"):
        file.write_bytes(b"x")
        os.utime(file, (1, 1))
    (table.root / "link").symlink_to(outside)
    stray = table.file("stray.parquet")
    data = table.data_file("live.parquet")
    table.log.commit(data)
    hostile = [("p", raw) for raw in hostile_paths(table.root, victim)]
    climbs = ("../outside", "..", "%2e%2e/outside", "x/../../outside", str(outside), "..\\outside", "link")
    hostile += [("u", named(prefix)) for prefix in climbs]
    # A hostile file is live, and one is a tombstone of a moment ago.
    for kind, text in hostile:
        if "\0" in text:
            continue
        dv = DeletionVectorDescriptor(
            storage_type=kind, path_or_inline_dv=text, offset=1, size_in_bytes=1, cardinality=1
        )
        table.log.commit(
            dataclasses.replace(data, deletion_vector=dv),
            remove("gone.parquet", deletion_vector=dv, deletion_timestamp_ms=NOW_MS + 30 * DAY_MS),
        )
    store = AuditedStore(table.root)
    clock = ManualClock(NOW_MS + 30 * DAY_MS)
    plan = plan_vacuum(Snapshot.load(store, clock=clock), clock=clock)
    assert [file.path for file in plan.files] == [stray]
    apply_vacuum(Snapshot.load(store), plan)
    assert store.outside() == []
    assert victim.exists()
    assert (outside / "secret.bin").exists()


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("x", named(""), "storage type 'x'"),
        ("u", "short", "five|UUID|16"),
        ("u", "~" * 20, "outside of the alphabet"),
        ("u", "", "16"),
    ],
)
@pytest.mark.parametrize("live", [True, False])
def test_nothing_is_deleted_when_a_vector_s_file_cannot_be_told(
    table: Table, kind: str, text: str, said: str, live: bool
) -> None:
    stray = table.file("stray.parquet")
    plan = table.plan()
    dv = DeletionVectorDescriptor(
        storage_type=kind, path_or_inline_dv=text, offset=1, size_in_bytes=1, cardinality=1
    )
    if live:
        table.log.commit(dataclasses.replace(table.data_file("a.parquet"), deletion_vector=dv))
    else:
        table.log.commit(remove("a.parquet", deletion_vector=dv, deletion_timestamp_ms=NOW_MS + 30 * DAY_MS))
    with pytest.raises(MaintenanceError, match=r"deletion vector .* Nothing was deleted") as info:
        table.plan()
    assert info.match(said)
    with pytest.raises(MaintenanceError, match="Nothing was deleted"):
        table.vacuum(plan)
    assert (table.root / stray).exists()
    assert Snapshot.load(LocalLogStore(table.root)).version == 1, "it ends before it says that it begins"


def test_a_damaged_vector_from_before_the_retention_stops_nothing(table: Table) -> None:
    dv = DeletionVectorDescriptor(
        storage_type="u", path_or_inline_dv="?", offset=1, size_in_bytes=1, cardinality=1
    )
    table.file("a.parquet")
    table.log.commit(remove("a.parquet", deletion_vector=dv))
    assert table.planned() == ["a.parquet"]


# ---------------------------------------------------------------- change data


def cdc(path: str) -> AddCdcFile:
    return AddCdcFile(path=path, partition_values={"p": "1"}, size_bytes=1)


def test_change_data_goes_when_its_versions_are_from_before_the_retention(table: Table) -> None:
    old = table.file("_change_data/p=1/cdc-0.parquet")
    young = table.file("_change_data/cdc-1.parquet", at_ms=NOW_MS + 25 * DAY_MS)
    orphan = table.file("_change_data/cdc-orphan.parquet")
    table.file("_change_data/.cdc-0.parquet.crc")
    table.file("_change_data/_staged/x.parquet")
    table.log.commit(cdc(old))
    table.log.commit(cdc(young), time_ms=NOW_MS + 25 * DAY_MS)
    assert table.planned(days=6.9) == [orphan]
    plan = table.plan()
    assert [file.path for file in plan.files] == [orphan, old]
    assert {file.reason for file in plan.files} == {"change data of versions from before the retention"}
    assert plan.listed_files == 3
    assert table.vacuum(plan) == [orphan, old]
    assert (table.root / young).exists()


@pytest.mark.parametrize("spelling", ["_change_data/c%20d.parquet", "_change_data/c d.parquet", "absolute"])
def test_change_data_that_was_committed_late_stays(table: Table, spelling: str) -> None:
    late = table.file("_change_data/c d.parquet")
    assert table.planned() == [late]
    raw = f"file://{table.root}/_change_data/c%20d.parquet" if spelling == "absolute" else spelling
    table.log.commit(cdc(raw), time_ms=NOW_MS + 29 * DAY_MS)
    assert table.planned() == []
    assert table.planned(days=40) == [late]


def test_change_data_that_is_committed_after_the_plan_stays(table: Table) -> None:
    late = table.file("_change_data/late.parquet")
    other = table.file("_change_data/other.parquet")
    plan = table.plan()
    assert len(plan.files) == 2
    table.log.commit(cdc(late), time_ms=NOW_MS + 30 * DAY_MS)
    assert table.vacuum(plan) == [other]


def test_change_data_outside_of_the_table_protects_nothing(table: Table) -> None:
    stray = table.file("_change_data/stray.parquet")
    for raw in hostile_paths(table.root, table.root.parent / "outside" / "x.parquet"):
        if raw and "\0" not in raw:
            table.log.commit(cdc(raw), time_ms=NOW_MS + 29 * DAY_MS)
    assert table.planned() == [stray]


def test_a_pinned_version_keeps_its_vectors_and_its_change_data(table: Table) -> None:
    (old,), vector_path = table.dvs([1])
    change = table.file("_change_data/c.parquet")
    file = dataclasses.replace(table.data_file("a.parquet"), deletion_vector=old)
    table.log.commit(file, cdc(change))
    table.update(file, inline_descriptor([1, 2]))
    assert table.planned() == [change, vector_path]
    # A pin lasts by the store's clock, which is this machine's.
    pinned = Snapshot.load(LocalLogStore(table.root), version=1)
    with pin_version(pinned, ttl_seconds=3600, holder="the reader"):
        plan = plan_vacuum(Snapshot.load(LocalLogStore(table.root)))
        assert plan.is_empty
        assert (plan.pins[0].version, plan.pins[0].files) == (1, 2)
    assert not plan_vacuum(Snapshot.load(LocalLogStore(table.root))).is_empty


# ---------------------------------------------------------------- any history


@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["file", "inline", "gone"])), max_size=12),
    st.integers(0, 24),
    st.booleans(),
)
@settings(max_examples=25)
def test_what_versions_within_the_retention_need_stays_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, str]], days: int, checkpointed: bool
) -> None:
    """One change a day of one of three files; vacuumed on some day, by a model that only knows versions."""
    table = Table(tmp_path_factory.mktemp("t"))
    live: dict[str, AddFile] = {}
    lost: list[tuple[int, AddFile]] = []
    for day, (number, kind) in enumerate(steps):
        at_ms = NOW_MS + day * DAY_MS
        name = f"{number}.parquet"
        old = live.pop(name, None)
        if old is not None:
            lost.append((at_ms, old))
        actions: list[AddFile | RemoveFile] = []
        if old is not None:
            actions.append(remove(old.path, deletion_vector=old.deletion_vector, deletion_timestamp_ms=at_ms))
        if kind != "gone":
            rows = list(range(day + 1))
            dv = inline_descriptor(rows) if kind == "inline" else table.dvs(rows)[0][0]
            live[name] = dataclasses.replace(table.data_file(name), deletion_vector=dv)
            actions.append(live[name])
        table.log.commit(*actions, time_ms=at_ms)
    if checkpointed:
        clock = ManualClock(NOW_MS + days * DAY_MS)
        write_checkpoint(Snapshot.load(LocalLogStore(table.root), clock=clock))
    cutoff_ms = NOW_MS + days * DAY_MS - 7 * DAY_MS - 5 * 60_000
    needed: set[str] = set()
    for file in [*live.values(), *(file for at_ms, file in lost if at_ms >= cutoff_ms)]:
        assert file.deletion_vector is not None
        vector_path = deletion_vector_path(file.deletion_vector, root_uri="file:///t")
        needed |= {file.path, *([vector_path] if vector_path else [])}
    assert set(table.planned(days=days)) == table.found() - needed
