"""What makes a table, or numbers its rows, while somebody else works on it, on its source or in its place.

Whoever else it is commits when all is prepared and before the commit's one request. A clone is
what its source was when it was planned; where another has made a table nothing is replaced and nothing is
left; numbering goes on whatever the others do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, clone_table, convert_to_deltalake, write_deltalake
from delta_core.errors import (
    ConcurrentModificationError,
    DeltaError,
    MissingDataFileError,
    TableExistsError,
)
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.maintenance.backfill.apply import enable_row_tracking
from delta_core.maintenance.clone import apply_clone, plan_clone
from delta_core.maintenance.convert import apply_conversion, plan_conversion
from delta_core.run import Run
from delta_core.schema.types import INTEGER, LONG, StructField
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from tests.concurrency.matrix.featured import id_faults, log_faults
from tests.support.soak import drawn

pytestmark = pytest.mark.slow

NUMBERED = 20

PROPERTIES = {
    "delta.enableDeletionVectors": "true",
    "delta.enableRowTracking": "true",
    "delta.enableInCommitTimestamps": "true",
}
UNTRACKED = {key: value for key, value in PROPERTIES.items() if "RowTracking" not in key}
RESTORED = 2

_ALONE = InlineExecutor(1)


@dataclass
class RacingStore(LocalLogStore):
    """A directory in which somebody else comes first at some commits, counted from 0."""

    root_folder: Path
    race: Callable[[], object]
    at: frozenset[int] = frozenset({0})
    commits: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        super().__init__(self.root_folder)

    def put_if_absent(self, path: str, data: bytes) -> None:
        if path.endswith(".json"):
            number, self.commits = self.commits, self.commits + 1
            if number in self.at:
                self.race()
        super().put_if_absent(path, data)


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array([f"v{n}" for n in ids], pa.string())})


def make(root: Path, properties: dict[str, str] = PROPERTIES) -> None:
    """Three files of ten rows; row 15 has gone by a vector."""
    table = DeltaTable.create(root, rows().schema, configuration=properties)
    for first in (0, 10, 20):
        write_deltalake(table, rows(*range(first, first + 10)), mode="append")
    table.delete("id = 15")


def _widening(root: Path) -> None:
    table = DeltaTable(root)
    table.alter.set_properties({"delta.enableTypeWidening": "true"})
    table.alter.add_columns(StructField(name="n", data_type=INTEGER))
    table.alter.change_type("n", LONG)


CHANGES: dict[str, Callable[[Path], object]] = {
    "append": lambda root: write_deltalake(root, rows(100), mode="append"),
    "delete": lambda root: DeltaTable(root).delete("id IN (3, 14)"),
    "delete of a file": lambda root: DeltaTable(root).delete("id < 10"),
    "update": lambda root: DeltaTable(root).update({"v": "concat(v, '!')"}, "id IN (4, 25)"),
    "compaction": lambda root: DeltaTable(root).optimize.compact(executor=_ALONE),
    "purge": lambda root: DeltaTable(root).optimize.purge(executor=_ALONE),
    "overwrite": lambda root: write_deltalake(root, rows(200), mode="overwrite"),
    "restore": lambda root: DeltaTable(root).restore(RESTORED),
    "drop of vectors": lambda root: DeltaTable(root).alter.drop_feature("deletionVectors", executor=_ALONE),
    "drop of commit times": lambda root: DeltaTable(root).alter.drop_feature("inCommitTimestamp"),
    "widening": _widening,
    "names of their own": lambda root: DeltaTable(root).alter.set_properties(
        {"delta.columnMapping.mode": "name"}
    ),
    "vacuum": lambda root: DeltaTable(root).vacuum(
        retention_hours=0, enforce_retention=False, force=True, dry_run=False, executor=_ALONE
    ),
}


def content(
    root: Path, *, allowed_roots: tuple[Path, ...] = (), version: int | None = None
) -> list[tuple[int, str]]:
    table = DeltaTable(root, version=version, allowed_roots=allowed_roots)
    found = table.to_pyarrow_table(["id", "v"]).to_pydict()
    return sorted(zip(found["id"], found["v"], strict=True))


def files(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


def clone(source: Path, target: Path, race: Callable[[], object], *, shallow: bool) -> None:
    """A clone, with somebody else before its commit, when its files have been copied."""
    plan = plan_clone(Snapshot.load(LocalLogStore(source)), RacingStore(target, race), shallow=shallow)
    apply_clone(plan, run=Run(executor=_ALONE))


@pytest.mark.parametrize("shallow", [False, True], ids=["deep", "shallow"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_clone_is_what_its_source_was(tmp_path: Path, change: str, shallow: bool) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    make(source)
    version, before = DeltaTable(source).version(), content(source)
    clone(source, target, lambda: CHANGES[change](source), shallow=shallow)
    assert content(target, allowed_roots=(source,)) == before == content(source, version=version)
    assert log_faults(target) == log_faults(source) == []
    # Again: what was done to the source meanwhile comes as well.
    clone_table(source, target, shallow=shallow)
    assert content(target, allowed_roots=(source,)) == content(source)


def test_a_file_that_a_vacuum_takes_is_missed_and_nothing_stays(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    make(source)
    plan = plan_clone(Snapshot.load(LocalLogStore(source)), LocalLogStore(target), shallow=False)
    CHANGES["compaction"](source)
    CHANGES["vacuum"](source)
    with pytest.raises(MissingDataFileError):
        apply_clone(plan, run=Run(executor=_ALONE))
    assert not target.exists() or files(target) == {}


@pytest.mark.parametrize("shallow", [False, True], ids=["deep", "shallow"])
@pytest.mark.parametrize("other", ["another table", "the same clone"])
def test_of_two_that_make_a_table_one_does(tmp_path: Path, other: str, shallow: bool) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    make(source)
    seen: dict[str, bytes] = {}

    def race() -> None:
        mine = set(files(target)) if target.exists() else set()
        if other == "another table":
            write_deltalake(target, rows(1000))
        else:
            clone_table(source, target, shallow=shallow, executor=_ALONE)
        seen.update({name: data for name, data in files(target).items() if name not in mine})

    with pytest.raises(ConcurrentModificationError):
        clone(source, target, race, shallow=shallow)
    assert files(target) == seen


@pytest.mark.parametrize("change", [name for name in CHANGES if name != "vacuum"])
def test_a_clone_that_is_changed_meanwhile_is_not_cloned_again(tmp_path: Path, change: str) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    make(source)
    clone_table(source, target, executor=_ALONE)
    for number in (40, 41, 42):
        write_deltalake(target, rows(number), mode="append")
    write_deltalake(source, rows(50), mode="append")
    after: list[dict[str, bytes]] = []
    mine: list[set[str]] = []

    def race() -> None:
        before = set(files(target))
        CHANGES[change](target)
        new = files(target)
        # What is there by now and was not at the start is the clone's, or the winner's.
        mine.append(before - start)
        after.append(new)

    start = set(files(target))
    try:
        clone(source, target, race, shallow=False)
    except ConcurrentModificationError:
        assert files(target) == {name: data for name, data in after[0].items() if name not in mine[0]}
        return
    # Only what changes no row of the clone may go before it.
    assert change in ("compaction", "purge")
    assert content(target) == content(source)


def test_a_folder_that_becomes_a_table_meanwhile_is_not_converted(tmp_path: Path) -> None:
    makers: dict[str, Callable[[Path], object]] = {
        "create": lambda root: DeltaTable.create(root, rows().schema),
        "write": lambda root: write_deltalake(root, rows(7)),
        "convert": lambda root: convert_to_deltalake(root, executor=_ALONE),
    }
    for name, maker in makers.items():
        root = tmp_path / name
        root.mkdir()
        pq.write_table(rows(1, 2), root / "a.parquet")
        made: dict[str, bytes] = {}

        def race(
            root: Path = root, maker: Callable[[Path], object] = maker, made: dict[str, bytes] = made
        ) -> None:
            maker(root)
            made.update(files(root))

        plan = plan_conversion(RacingStore(root, race), run=Run(executor=_ALONE))
        with pytest.raises(TableExistsError):
            apply_conversion(plan)
        assert files(root) == made


@pytest.mark.parametrize(
    ("change", "at"), drawn(((change, at) for change in CHANGES for at in range(4)), usual=NUMBERED)
)
def test_rows_are_numbered_whatever_others_do(tmp_path: Path, change: str, at: int) -> None:
    make(tmp_path, UNTRACKED)
    twin = tmp_path.with_name(f"{tmp_path.name}-twin")
    make(twin, UNTRACKED)
    CHANGES[change](twin)
    store = RacingStore(tmp_path, lambda: CHANGES[change](tmp_path), at=frozenset({at}))
    result: object
    try:
        result = enable_row_tracking(Snapshot.load(store), files_per_commit=2)
    except DeltaError as error:
        result = error
    assert store.commits > at, "the other never came"
    # Where a definition was changed in between it says so, and goes on when it is called again.
    if isinstance(result, DeltaError):
        assert isinstance(result, ConcurrentModificationError), result
        enable_row_tracking(Snapshot.load(LocalLogStore(tmp_path)), files_per_commit=2)
    assert content(tmp_path) == content(twin)
    table = DeltaTable(tmp_path)
    assert table.metadata().configuration["delta.enableRowTracking"] == "true"
    assert id_faults(table.snapshot, table.to_pyarrow_table(row_ids=True), {}) == []
    assert log_faults(tmp_path) == []
