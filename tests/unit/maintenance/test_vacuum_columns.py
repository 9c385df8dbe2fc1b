"""Vacuum in columns decides as the functions of single paths do, and its plan is what it was."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.listing_store import ListingStore
from delta_core import write_deltalake
from delta_core.clock import SYSTEM_CLOCK, ManualClock
from delta_core.errors import MaintenanceError
from delta_core.maintenance.inner_tables import inner_root, is_within
from delta_core.maintenance.vacuum import VacuumFile, VacuumPlan, plan_vacuum
from delta_core.maintenance.vacuum.file_keys import FileKeys, ListedPaths
from delta_core.maintenance.vacuum.files import VacuumFiles
from delta_core.maintenance.vacuum.listing import (
    KINDS,
    RESERVED_DIRECTORIES,
    FileKind,
    classify,
    listed_files,
)
from delta_core.maintenance.vacuum.path_identity import is_protected, protected_keys
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.listed_files import BATCH_ROWS
from delta_core.storage.local import LocalLogStore
from delta_core.storage.log_store import ObjectInfo
from delta_core.storage.name_columns import name_column, names_in
from tests.support.log_builder import LogBuilder, metadata, protocol

PARTS = (
    *("_delta_log", "_deltaward", "_temporary", "_change_data", "metadata", "day=1", "_day=1", "_x=1"),
    *(".h", "job", "a", "ü", "u\u0308", "_SUCCESS", "x.parquet", "\udcff", ".", "a b", "%20"),
)
PATHS = st.lists(st.sampled_from(PARTS), min_size=1, max_size=5).map("/".join)
COLUMNS = ("day", "_day")


def classified(path: str, *, for_iceberg: bool) -> FileKind:
    """The rules for one path, as they were written down first."""
    parts = path.split("/")
    if parts[0] in RESERVED_DIRECTORIES or (for_iceberg and parts[0] == "metadata" and len(parts) > 1):
        return FileKind.KEPT
    is_job = not parts[0].startswith(("_", ".")) and "=" not in parts[0]
    if len(parts) > 2 and parts[1] == "_temporary" and is_job:
        return FileKind.STAGING
    is_change_data = path.startswith("_change_data/")
    *directories, name = parts[1:] if is_change_data else parts
    if name.startswith(("_", ".")):
        return FileKind.KEPT
    prefixes = tuple(f"{column}=" for column in COLUMNS)
    if any(part.startswith(("_", ".")) and not part.startswith(prefixes) for part in directories):
        return FileKind.KEPT
    return FileKind.CHANGE_DATA if is_change_data else FileKind.DATA


class Listed(LocalLogStore):
    """A table's store that lists what it is told to."""

    infos: list[ObjectInfo]

    def walk(self, path: str = "") -> Iterator[ObjectInfo]:
        return iter(self.infos)


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    """A table with partition columns, and one that may be Iceberg's, too."""
    found = {}
    for iceberg in (False, True):
        root = tmp_path_factory.mktemp(f"iceberg-{iceberg}")
        formats = {"delta.universalFormat.enabledFormats": "iceberg"} if iceberg else {}
        LogBuilder(root).commit(protocol(), metadata(partition_columns=COLUMNS, configuration=formats))
        found[iceberg] = root
    return found


@given(st.lists(st.tuples(PATHS, st.integers(0, 99), st.integers(0, 9)), max_size=30), st.booleans())
def test_a_listing_is_what_each_path_says(
    roots: dict[bool, Path], files: list[tuple[str, int, int]], iceberg: bool
) -> None:
    store = Listed(roots[iceberg])
    store.infos = [ObjectInfo(path=path, size_bytes=size, modified_ms=time) for path, size, time in files]
    snapshot = Snapshot.load(store)
    assert snapshot.partition_columns == COLUMNS

    kinds = {path: classified(path, for_iceberg=iceberg) for path, *_ in files}
    for path, kind in kinds.items():
        assert classify(path, partition_columns=COLUMNS, for_iceberg=iceberg) is kind
    inner = {
        root
        for path in kinds
        if (root := inner_root(path)) is not None and root.split("/")[0] not in RESERVED_DIRECTORIES
    }
    looked = [
        (path, size, time)
        for path, size, time in files
        if kinds[path] is not FileKind.KEPT and not is_within(path, inner)
    ]

    found, old_files = listed_files(snapshot, cutoff_ms=5)

    assert found.inner_tables == tuple(sorted(inner))
    assert (found.num_files, found.total_bytes) == (len(looked), sum(size for _, size, _ in looked))
    assert found.num_directories == len({path.rpartition("/")[0] for path, *_ in looked})
    columns = old_files.to_pydict()
    rows = zip(
        names_in(old_files["path"]),
        columns["size_bytes"],
        columns["modified_ms"],
        (KINDS[kind] for kind in columns["kind"]),
        strict=True,
    )
    assert sorted(rows, key=repr) == sorted(
        ((*file, kinds[file[0]]) for file in looked if file[2] < 5), key=repr
    )


RAW_PARTS = (
    *("a", "b c", "p=1", "p=%31", "p=ü", "p=u\u0308", "%2e%2e", "..", ".", "", "a%2520b", "%FF", "x:y"),
    *(".h", "c\\d", "A", "x.parquet", "~", "\x01", "a\0b", "\x7f", "-", "%"),
)
RAW_PATHS = st.builds(
    lambda root, parts: root + "/".join(parts),
    st.sampled_from(["", "", "", "/", "//", "file:///table/", "file:/table/", "/table/", "s3://b/t/", "x:"]),
    st.lists(st.sampled_from(RAW_PARTS), min_size=1, max_size=3),
)
STORE_PATHS = st.lists(
    st.sampled_from(
        (
            *("a", "b c", "p=1", "p=ü", "p=u\u0308", "p=%31", "a%20b", "a b", "\udcff", "x:y", "c\\d"),
            *("c", "d", ".h", "A", "x.parquet", "~", "-", "%", "..", "\x7f"),
        )
    ),
    min_size=1,
    max_size=3,
).map("/".join)


@given(
    st.lists(RAW_PATHS, max_size=8),
    st.lists(STORE_PATHS, max_size=20),
    st.sampled_from(["file:///table", "s3://b/t"]),
)
@settings(max_examples=150)
def test_a_column_of_paths_protects_what_each_of_them_does(
    raw: list[str], listed: list[str], root_uri: str
) -> None:
    wanted = [is_protected(path, protected_keys(raw, root_uri=root_uri)) for path in listed]
    paths = ListedPaths(name_column(listed))
    cut = len(raw) // 2
    whole = FileKeys(root_uri=root_uri)
    whole.add_paths(pa.array(raw, pa.string()))
    parts, rest = FileKeys(root_uri=root_uri), FileKeys(root_uri=root_uri)
    parts.add_paths(raw[:cut])
    rest.add_paths(pa.chunked_array([raw[cut:]], pa.string()))
    parts.add_all(rest)
    assert whole.protect(paths).tolist() == wanted
    assert parts.protect(paths).tolist() == wanted


def test_a_path_with_half_a_character_protects_all_the_same() -> None:
    keys = FileKeys(root_uri="file:///table")
    keys.add_paths(["ok.parquet", "half\ud800.parquet"])
    paths = ListedPaths(name_column(["ok.parquet", "half\ud800.parquet", "other"]))
    assert keys.protect(paths).tolist() == [True, True, False]


# ---------------------------------------------------------------- the plan's files

FILES = tuple(
    VacuumFile(
        path=path, size_bytes=number, modified_ms=number * 1000, age_hours=number / 4, reason=f"r{number % 2}"
    )
    for number, path in enumerate(["a.parquet", "p=ü/b.parquet", "p=\udcff/c.parquet", "d"])
)


def test_the_files_of_a_plan_are_a_tuple_to_their_users() -> None:
    files = VacuumFiles.of(FILES)
    assert files == FILES
    assert FILES == files  # noqa: SIM300
    assert files == VacuumFiles.of(list(FILES))
    assert files != FILES[:3]
    assert files != VacuumFiles.of(reversed(FILES))
    assert files != list(FILES)
    assert hash(files) == hash(FILES)
    assert (len(files), bool(files), bool(VacuumFiles.of(()))) == (4, True, False)
    assert (files[0], files[-1]) == (FILES[0], FILES[-1])
    for at in (slice(1, 3), slice(None), slice(3, 1), slice(None, None, -1), slice(-2, None), slice(0, 4, 2)):
        assert files[at] == FILES[at]
    with pytest.raises(IndexError):
        files[4]
    assert (*files, FILES[0]) == (*FILES, FILES[0]) == files + (FILES[0],)  # noqa: RUF005
    assert FILES[2] in files
    assert files.index(FILES[2]) == 2
    assert list(files.each_path()) == files.paths
    assert VacuumFiles.of(files[1:]).paths == [file.path for file in FILES[1:]]
    assert files[1:].column("size_bytes").to_pylist() == [1, 2, 3]
    assert VacuumFiles.of(()).column("path").to_pylist() == []
    assert repr(files) == "<4 files, 6 bytes>"
    for again in (copy.deepcopy(files), pickle.loads(pickle.dumps(files))):
        assert again == files
    # The same texts in another order of their dictionary.
    assert VacuumFiles.of(reversed(FILES))[::-1] == files


def test_a_plan_takes_any_sequence_and_is_read_back(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"a": [1]}))
    plan = replace(plan_vacuum(Snapshot.load(LocalLogStore(tmp_path))), files=FILES)
    assert plan.files == FILES
    assert plan.total_bytes == 6
    assert not plan.is_empty
    document = json.loads(json.dumps(plan.to_json()))
    assert document["files"][2] == {
        "path": "p=\udcff/c.parquet",
        "size_bytes": 2,
        "modified_ms": 2000,
        "age_hours": 0.5,
        "reason": "r0",
    }
    again = VacuumPlan.from_json(document)
    assert again == plan
    assert hash(again) == hash(plan)


@pytest.mark.parametrize(
    "change",
    [
        {"path": None},
        {"path": 5},
        {"size_bytes": "1"},
        {"size_bytes": None},
        {"size_bytes": 1 << 80},
        {"modified_ms": 1.5},
        {"age_hours": "old"},
        {"reason": 1},
        {"reason": None},
        {"more": 1},
    ],
)
def test_a_plan_with_another_value_in_a_file_is_malformed(tmp_path: Path, change: dict[str, Any]) -> None:
    write_deltalake(tmp_path, pa.table({"a": [1]}))
    plan = replace(plan_vacuum(Snapshot.load(LocalLogStore(tmp_path))), files=FILES)
    document = plan.to_json()
    document["files"][1] |= change
    with pytest.raises(MaintenanceError, match="malformed"):
        VacuumPlan.from_json(document)
    lacking = plan.to_json()
    del lacking["files"][1][next(iter(change)) if "more" not in change else "path"]
    with pytest.raises(MaintenanceError, match="malformed"):
        VacuumPlan.from_json(lacking)
    with pytest.raises(MaintenanceError, match="malformed"):
        VacuumPlan.from_json({**plan.to_json(), "files": ["a.parquet"]})


def test_a_long_listing_is_not_held(tmp_path: Path) -> None:
    """Of 200,000 files one of a hundred is old, and only those are kept in memory."""
    write_deltalake(tmp_path, pa.table({"a": [1]}))
    held: list[int] = []
    idle = pa.total_allocated_bytes()
    store = ListingStore(
        tmp_path,
        files=200_000,
        young_ms=SYSTEM_CLOCK.now_ms(),
        at_batch=lambda: held.append(pa.total_allocated_bytes() - idle),
    )
    batches = -(-200_000 // BATCH_ROWS)
    plan = plan_vacuum(Snapshot.load(store))
    # The store's listing has a directory for each batch.
    assert (plan.listed_files, plan.listed_bytes, plan.num_directories) == (200_000, 200_000, batches)
    assert len(plan.files) == 2000
    assert {file.reason for file in plan.files} == {"not referenced by the table, older than 168 h"}
    assert len(held) == batches
    # The names of all files have twenty MiB.
    assert held[-1] - held[1] < 2 << 20


def test_a_plan_is_the_same_by_columns_and_object_by_object(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"a": [1]}))
    store = ListingStore(tmp_path, files=40_000, young_ms=SYSTEM_CLOCK.now_ms())
    clock = ManualClock(SYSTEM_CLOCK.now_ms())
    plan = plan_vacuum(Snapshot.load(store), clock=clock)
    store.walk = store.walk  # type: ignore[method-assign]
    assert plan_vacuum(Snapshot.load(store), clock=clock) == plan
    assert len(plan.files) == 400
