"""A run leaves out the files that cannot hold a test it asks for, and no other."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.support.marked_files import WRITTEN, can_hold, is_left_out
from tests.support.repository import ROOT, python_files

QUICK = "not e2e and not extra and not slow"


@pytest.mark.parametrize(
    ("text", "expression", "held"),
    [
        ("def test(): ...", "", True),
        ("def test(): ...", QUICK, True),
        ("def test(): ...", "slow and not e2e", False),
        ("@pytest.mark.slow\ndef test(): ...", "slow and not e2e", True),
        ("@pytest.mark.slow\ndef test(): ...", QUICK, True),
        ("slow = 'mark slow'", "slow", False),
        ("@pytest.mark.extra\ndef test(): ...", "slow and not e2e", False),
        ("@pytest.mark.extra\n@pytest.mark.slow\ndef test(): ...", "extra and not slow", True),
        ("def test(): ...", "spark", True),
        ("def test(): ...", "spark and soak", False),
        ("pytestmark = [pytest.mark.spark, pytest.mark.soak]", "soak", True),
    ],
)
def test_a_file_can_hold_what_its_marks_allow(text: str, expression: str, held: bool) -> None:
    assert can_hold(text, expression) is held


def test_marks_stand_in_the_file_of_their_test() -> None:
    """A mark that another module gives away under a name would not be seen."""
    mark = re.compile(r"\bmark\.(" + "|".join(WRITTEN) + r")\b")
    elsewhere = [
        str(path)
        for path in python_files("tests")
        if not path.name.startswith("test_") and mark.search((ROOT / path).read_text())
    ]
    assert elsewhere == []


def test_a_named_file_is_collected_whatever_is_asked_for() -> None:
    file = "tests/unit/test_marked_files.py"
    assert is_left_out(ROOT / "tests/unit/test_own_signal.py", "extra")
    asked = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "e2e and spark and airflow", file],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "deselected" in asked.stdout
