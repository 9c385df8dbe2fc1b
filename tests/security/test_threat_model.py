"""The threat model names, for each row, tests that are there."""

from __future__ import annotations

import re

from tests.support.repository import ROOT, tracked_files

PAGE = (ROOT / "docs" / "threat-model.md").read_text()
ROWS = {"S1", "S2", "S3", "S4", "S5", *(f"S{number}" for number in range(8, 16))}


def test_every_row_names_tests_that_exist() -> None:
    rows = dict(re.findall(r"^\| (S\d+) \|.*\| ([^|]+) \|$", PAGE, re.MULTILINE))
    assert set(rows) == ROWS
    for row, cell in rows.items():
        named = re.findall(r"`(tests/[\w/.]+)`", cell)
        assert named, row
        assert [path for path in named if not (ROOT / path).is_file()] == [], row
        for path in named:
            assert re.search(r"^ *(async )?def test_", (ROOT / path).read_text(), re.MULTILINE), path


def test_every_security_test_is_named() -> None:
    files = [str(path) for path in tracked_files() if path.match("tests/security/test_*.py")]
    assert files
    assert [path for path in files if path not in PAGE and "threat_model" not in path] == []


def test_it_is_found_from_where_people_look() -> None:
    assert "docs/threat-model.md" in (ROOT / "SECURITY.md").read_text()
    assert "docs/threat-model.md" in (ROOT / "README.md").read_text()
