"""The samples of a run are those of its seed, and a worker that takes too much memory is named."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support import memory
from tests.support.repository import ROOT
from tests.support.soak import SAMPLE_SEED, drawn

_DRAWS = "from tests.support.soak import drawn; print(drawn(range(1000), usual=5))"


def _drawn_elsewhere(**variables: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DELTAWARD_S")}
    return subprocess.run(
        [sys.executable, "-c", _DRAWS],
        cwd=ROOT,
        env=kept | variables,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_a_sample_is_the_same_until_its_seed_changes() -> None:
    fixed = _drawn_elsewhere()
    assert fixed == _drawn_elsewhere(DELTAWARD_SEED=SAMPLE_SEED)
    assert fixed != _drawn_elsewhere(DELTAWARD_SEED="another")
    assert _drawn_elsewhere(DELTAWARD_SOAK="1") == f"{list(range(1000))}\n"


def test_a_sample_keeps_the_order_and_takes_no_more_than_there_is() -> None:
    some = drawn(range(1000), usual=50)
    assert len(some) == 50
    assert some == sorted(set(some))
    assert drawn("abc", usual=9) == ["a", "b", "c"]


_PROPERTY = """
from hypothesis import given, strategies as st
{constants}

def test_draws(record_property):
    seen = []

    @given(st.integers() | st.text())
    def draw(value):
        seen.append(value)

    draw()
    record_property("seen", str(seen))
"""


@pytest.mark.slow
def test_a_property_draws_by_the_seed_under_ci_too(tmp_path: Path) -> None:
    """Hypothesis has a profile for CI that hears of no seed, and one for elsewhere with a limit of time."""

    def seen(run_seed: str, constants: str = "") -> str:
        (tmp_path / "test_property.py").write_text(_PROPERTY.format(constants=constants))
        report = tmp_path / "report.xml"
        ours = [f"--rootdir={ROOT}", "-c", str(ROOT / "pyproject.toml"), "-p", "tests.conftest"]
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *ours, f"--junitxml={report}"]
        subprocess.run(
            [*command, str(tmp_path / "test_property.py")],
            cwd=ROOT,
            env={**os.environ, "CI": "true", "DELTAWARD_SEED": run_seed},
            check=True,
            capture_output=True,
        )
        (told,) = ElementTree.parse(report).iter("property")
        return str(told.get("value"))

    first = seen("1")
    assert seen("1") == first
    (tmp_path / "constants.py").write_text(
        "".join(f"C{n} = {n}77712345, 'a string {n}'\n" for n in range(1, 500))
    )
    unused = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import constants"
    assert seen("1", unused) == first, "the constants of our modules are no part of a sample"
    assert seen("2") != first
    assert settings.default is not None
    assert settings.default.deadline is None


def test_a_worker_with_too_much_memory_is_named() -> None:
    (line,) = memory.too_much({"gw0": memory.MOST_BYTES, "gw1": memory.MOST_BYTES + (1 << 20)})
    assert line.startswith("gw1 took 1537 MiB")
    assert 0 < memory.peak_bytes() < 1 << 40


def test_the_files_that_raised_the_peak_most_are_named() -> None:
    seen = [("collection", 1 << 20), ("a", 4 << 20), ("b", 4 << 20), ("c", 9 << 20)]
    assert memory.steepest(seen) == "+5 in c, +3 in a"


@pytest.mark.slow
def test_what_shorter_tests_imply_runs_when_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "test_both.py").write_text(
        "import pytest\n\ndef test_short(): pass\n\n@pytest.mark.soak\ndef test_implied(): pass\n"
    )

    def collected(*arguments: str, **variables: str) -> set[str]:
        ours = [f"--rootdir={ROOT}", "-c", str(ROOT / "pyproject.toml"), "-p", "tests.conftest"]
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--collect-only", "-q", *ours]
        kept = {name: value for name, value in os.environ.items() if name != "DELTAWARD_SOAK"}
        told = subprocess.run(
            [*command, str(tmp_path / "test_both.py"), *arguments],
            cwd=ROOT,
            env=kept | variables,
            capture_output=True,
            text=True,
            check=True,
        )
        return {line.rpartition("::")[2] for line in told.stdout.splitlines() if "::" in line}

    assert collected() == {"test_short"}
    assert collected("-m", "not slow") == {"test_short"}
    assert collected("-m", "soak") == {"test_implied"}
    assert collected(DELTAWARD_SOAK="1") == {"test_short", "test_implied"}
