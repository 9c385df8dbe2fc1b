"""Files of one statement that are rewritten side by side."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from delta_core.dml import row_statement
from delta_core.dml.find_rows import FileMatch
from delta_core.dml.row_statement import WrittenGroup, write_groups
from delta_core.errors import ExpressionError, StorageError
from delta_core.storage.local import LocalLogStore
from tests.support.log_builder import add
from tests.unit.dml.test_delete import deltalake_rows, make, our_rows, rows_of

MIB = 1 << 20


def matches(*sizes: int) -> list[FileMatch]:
    return [
        FileMatch(index=index, file=add(f"f{index}", size_bytes=size), rows=None)
        for index, size in enumerate(sizes)
    ]


def paths(group: WrittenGroup) -> list[str]:
    return [one.path for one in group.written]


@pytest.mark.parametrize(
    ("sizes", "cores", "groups"),
    [
        ([40 * MIB] * 8, 4, [2, 2, 2, 2]),
        ([40 * MIB] * 8, 2, [4, 4]),
        ([40 * MIB] * 8, 16, [2, 2, 2, 2]),
        ([40 * MIB] * 8, 1, [8]),
        ([MIB] * 20, 4, [20]),
        ([17 * MIB, 17 * MIB], 4, [1, 1]),
        ([500 * MIB, MIB, MIB], 4, [1, 1, 1]),
        ([100 * MIB], 4, [1]),
        ([], 4, [0]),
    ],
)
def test_groups_are_runs_of_about_equal_bytes(
    tmp_path: Path, sizes: list[int], cores: int, groups: list[int]
) -> None:
    seen: list[tuple[int, int]] = []

    def write(group: Sequence[FileMatch]) -> WrittenGroup:
        seen.append((group[0].index if group else -1, len(group)))
        return WrittenGroup(written=tuple(match.file for match in group), changed_rows=len(group))

    found = write_groups(LocalLogStore(tmp_path), matches(*sizes), write, cores=cores)
    assert paths(found) == [f"f{index}" for index in range(len(sizes))]
    assert found.changed_rows == len(sizes)
    assert [length for _, length in sorted(seen)] == groups


def test_they_run_side_by_side(tmp_path: Path) -> None:
    both_there = threading.Barrier(2, timeout=300)

    def write(group: Sequence[FileMatch]) -> WrittenGroup:
        both_there.wait()
        return WrittenGroup(written=tuple(match.file for match in group))

    found = write_groups(LocalLogStore(tmp_path), matches(40 * MIB, 40 * MIB), write, cores=2)
    assert paths(found) == ["f0", "f1"]


def test_when_one_fails_the_files_of_the_others_go(tmp_path: Path) -> None:
    def write(group: Sequence[FileMatch]) -> WrittenGroup:
        name = group[0].file.path
        if name in ("f1", "f2"):
            raise StorageError(f"{name} failed.")
        (tmp_path / name).write_text("rows")
        return WrittenGroup(written=(group[0].file,))

    (tmp_path / "of-somebody-else").write_text("")
    with pytest.raises(StorageError, match="f1 failed"):
        write_groups(LocalLogStore(tmp_path), matches(*[40 * MIB] * 4), write, cores=4)
    assert [path.name for path in tmp_path.iterdir()] == ["of-somebody-else"]


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four groups for the smallest files, whatever this machine has."""
    monkeypatch.setattr(row_statement, "_GROUP_BYTES", 1)
    monkeypatch.setattr(row_statement.os, "cpu_count", lambda: 4)


@pytest.mark.usefixtures("small_groups")
@pytest.mark.parametrize("dvs", [True, False])
def test_statements_over_many_files_are_as_over_one(tmp_path: Path, dvs: bool) -> None:
    rows = rows_of(600)
    parts = [rows[start : start + 100] for start in range(0, 600, 100)]
    table = make(tmp_path / "many", *parts, dvs=dvs)
    one = make(tmp_path / "one", rows, dvs=dvs)
    for each in (table, one):
        assert each.update({"v": "id"}, "id % 7 = 0").metrics["num_updated_rows"] == 86
        assert each.delete("id % 5 = 1 OR id BETWEEN 90 AND 210").metrics["num_deleted_rows"] == 217
    expected = our_rows(tmp_path / "one")
    assert len(expected) == 600 - 217
    assert our_rows(tmp_path / "many") == expected == deltalake_rows(tmp_path / "many")


@pytest.mark.usefixtures("small_groups")
@pytest.mark.parametrize("dvs", [True, False])
def test_an_update_that_fails_in_one_file_leaves_none(tmp_path: Path, dvs: bool) -> None:
    rows = rows_of(400)
    table = make(tmp_path, *(rows[start : start + 100] for start in range(0, 400, 100)), dvs=dvs)
    before, was = sorted(tmp_path.rglob("*.*")), our_rows(tmp_path)
    with pytest.raises(ExpressionError):
        table.update({"v": "CAST(CASE WHEN id = 250 THEN 'x' ELSE '1' END AS INT)"})
    assert sorted(tmp_path.rglob("*.*")) == before
    assert our_rows(tmp_path) == was
