"""Nothing that writes is without kill points, and nothing that a store can do goes by unseen."""

from __future__ import annotations

import os
from pathlib import Path

from delta_core.jobs.kinds import BUILTIN_KINDS
from delta_core.storage.local import LocalLogStore
from delta_core.storage.object_store import ObjectLogStore
from tests.concurrency.kill_points.every import EVERY
from tests.concurrency.kill_points.operations import (
    ELSEWHERE,
    NAMES_ELSEWHERE,
    OPERATIONS,
    READING_JOBS,
    missing,
)
from tests.concurrency.kill_points.places import Place
from tests.concurrency.kill_points.points import Point, pairs, points_of, sample
from tests.concurrency.kill_points.steps import CALLS_OF_SOME, RETURNED, STORE_CALLS, Steps
from tests.concurrency.kill_points.system_calls import Below, watched_names
from tests.concurrency.matrix.committed import committed_names
from tests.concurrency.matrix.operations import OPERATIONS as PAIRED


def test_every_operation_that_writes_is_killed() -> None:
    assert missing() == set()
    assert set(ELSEWHERE) <= set(PAIRED)
    assert set(READING_JOBS) < {kind.name for kind in BUILTIN_KINDS}


def test_every_name_that_the_package_commits_is_among_them() -> None:
    killed = {name for operation in EVERY.values() for name in operation.commits}
    left_out = {name for operation in ELSEWHERE for name in PAIRED[operation].commits}
    assert committed_names() - killed - left_out == set(NAMES_ELSEWHERE)


def test_every_operation_is_killed_in_every_place() -> None:
    found = pairs()
    assert len(found) == len(set(found))
    for place in Place:
        left_out = set(OPERATIONS) - {name for name, where in found if where is place}
        assert all(name.startswith("recovery") for name in left_out)
    assert {name for name, place in found if place is Place.DYNAMODB} == set(OPERATIONS)


def test_every_call_of_a_store_is_a_step() -> None:
    public = {name for name in vars(LocalLogStore) if not name.startswith("_")}
    # What stands in for calls of the protocol makes those calls itself where they are steps.
    standing_in = {name for name in public if hasattr(getattr(LocalLogStore, name), "__in_place_of__")}
    assert standing_in == {"walk_batches", "delete_unchanged", "open_unflushed", "create_unflushed"}
    # Only the discovery of tables lists directories, and it writes nothing.
    others = {"uri", "root", "consistent_listing", "remote", "parent", "list_directories"}
    assert public - {*STORE_CALLS, *CALLS_OF_SOME} - standing_in == others
    assert set(STORE_CALLS) <= set(dir(ObjectLogStore))
    changing = {"open", "write", "fsync", "link", "unlink", "replace", "mkdir", "rename", "rmdir", "truncate"}
    assert changing <= set(watched_names())


def test_a_system_call_is_known_by_what_it_is_about(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "file").touch()
    below = Below(root)
    file, directory = os.open(root / "file", os.O_RDONLY), os.open(root, os.O_RDONLY)
    try:
        assert below.name((file, b""), {}) == "file"
        assert below.name((directory,), {}) == "."
        assert below.name(("file",), {"dir_fd": directory}) == "file"
        assert below.name((root / "a", root / "b"), {}) == "a -> b"
        assert below.name((tmp_path / "elsewhere", root / "b"), {}) == "b"
        assert below.name((tmp_path / "elsewhere",), {}) is None
    finally:
        os.close(file)
        os.close(directory)


def test_a_step_has_the_same_name_in_every_run() -> None:
    steps = Steps()
    for path in ("part-1b4e28ba-2fa1-41d2-883f-0016d3cca427.parquet", "part-0.parquet", "part-0.parquet"):
        steps("before put", path)
    assert steps.seen == [
        ("before put part-*.parquet", 1),
        ("before put part-0.parquet", 1),
        ("before put part-0.parquet", 2),
    ]


_COMMIT = "put_if_absent _delta_log/00000000000000000006.json"


def _points_of(*labels: str) -> list[Point]:
    return points_of("append", Place.OBJECTS, [(label, 1) for label in (*labels, RETURNED)])


def test_a_commit_lands_between_two_steps() -> None:
    points = _points_of(
        "before read", "after read", f"before {_COMMIT}", f"after {_COMMIT}", "before head", "after head"
    )
    assert [(point.at[0], point.lands) for point in points] == [
        ("before read", False),
        (f"before {_COMMIT}", None),
        ("before head", True),
        (RETURNED, True),
    ]


def test_two_moments_with_nothing_in_between_are_one_point() -> None:
    labels = ("before open_output", "before mkdir", "after mkdir", "opened", "partly written", "written")
    points = _points_of(*labels, "before fsync", "after fsync", "after open_output")
    assert [point.at[0] for point in points] == [
        "before mkdir",
        "after mkdir",
        "opened",
        "partly written",
        "written",
        "before fsync",
        RETURNED,
    ]


def test_a_sample_has_something_of_everything() -> None:
    points = _points_of("1", "2", "3", "4") + points_of(
        "delete", Place.OBJECTS, [(str(n), 1) for n in range(30)]
    )
    drawn = sample(points, 8, seed="1")
    assert [sum(point.operation == name for point in drawn) for name in ("append", "delete")] == [4, 4]
    assert drawn == sample(points, 8, seed="1")
    assert len(sample(points, 99, seed="1")) == len(points)
