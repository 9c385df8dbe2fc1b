"""What `make coverage-read` and `make coverage-write` make of a report."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import path_coverage
from tests.support.path_coverage import PATHS, UNRAISED, branches, never_raised, unexpected
from tests.support.repository import ROOT as REPOSITORY

SOURCE = """\
def refuse(value, known):
    if value:
        raise ValueError(value)
    try:
        return known[value]
    except KeyError:
        raise
    raise AssertionError("a value is there or is not")
"""


def report(missing: list[int]) -> dict[str, object]:
    summary = {"covered_branches": 3, "num_branches": 4}
    file = {"missing_lines": missing, "summary": summary}
    return {"files": {"delta_core/dml/a.py": file, "delta_core/dml/b.py": file, "delta_core/cli/c.py": file}}


@pytest.fixture(autouse=True)
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path_coverage, "ROOT", tmp_path)
    for name in ("dml/a.py", "dml/b.py", "cli/c.py"):
        (tmp_path / "delta_core" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "delta_core" / name).write_text(SOURCE)


def test_errors_that_are_made_and_not_reached_are_named() -> None:
    """Neither what passes an error on, nor what cannot happen, nor another path's files."""
    expected = [(f"delta_core/dml/{name}.py: refuse: ValueError", 3) for name in "ab"]
    found = never_raised(report([3, 7, 8]), PATHS["write"])
    assert [(one.where, one.line) for one in found] == expected
    assert list(never_raised(report([7, 8]), PATHS["write"])) == []


def test_a_list_of_what_is_never_raised_is_neither_short_nor_stale() -> None:
    found = list(never_raised(report([3]), PATHS["write"]))
    first, second = (one.where for one in found)
    assert unexpected(found, {first: "why", second: "why"}) == []
    assert unexpected(found, {second: "why"}) == [f"{first} (line 3)"]
    (stale,) = unexpected(found[:1], {first: "why", second: "why"})
    assert stale.startswith(second)


def test_each_reason_is_about_a_statement_that_is_there() -> None:
    for where, reason in UNRAISED.items():
        file, function, error = where.split(": ")
        source = (REPOSITORY / file).read_text()
        assert f"def {function}(" in source
        assert f"raise {error}" in source
        assert reason


def test_branches_are_counted_by_part() -> None:
    assert branches(report([]), PATHS["write"]) == {"dml": (6, 8)}
    assert branches(report([]), PATHS["read"]) == {}
