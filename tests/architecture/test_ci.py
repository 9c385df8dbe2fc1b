"""The whole check covers every test that `make test` leaves out."""

from __future__ import annotations

import re
import subprocess

from benchmarks.soak import samples
from tests.faults.areas import AREAS
from tests.support.parallel import ENGINE, SPARK, scope_of
from tests.support.repository import ROOT, tracked_files

CI = (ROOT / ".ci" / "run").read_text()


def test_every_mark_has_an_area() -> None:
    """What `make test` leaves out bears one of three marks, and the last two areas ask for all of these."""
    make = (ROOT / "Makefile").read_text()
    assert '-m "not e2e and not extra and not slow"' in make
    assert '-m "extra and not slow and not e2e"' in CI
    assert '-m "slow or e2e"' in make
    files = [path for path in tracked_files() if path.match("tests/e2e/test_*.py")]
    assert files
    assert all("pytest.mark.e2e" in (ROOT / path).read_text() for path in files)


def test_every_area_has_a_time_box() -> None:
    areas = re.findall(r"^ *(?:area|tests) (\w+) (\S+)", CI, re.MULTILINE)
    assert {"install", "test", "style", "types", "imports", "extras"} <= {name for name, _ in areas}
    assert all(box.isdigit() and int(box) <= 1300 for _, box in areas), areas
    total = re.search(r"^TOTAL_SECONDS=(\d+)$", CI, re.MULTILINE)
    assert total
    assert int(total[1]) <= 60 * 60


def test_fresh_samples_are_of_areas_that_there_are() -> None:
    areas = set(re.findall(r"^(?:area|tests) (\w+) ", CI, re.MULTILINE))
    assert {samples.SHARED, *AREAS} <= areas


def test_the_guide_says_what_each_area_is_for() -> None:
    areas = re.findall(r"^(?:area|tests) (\w+) ", CI, re.MULTILINE)
    guide = (ROOT / "CONTRIBUTING.md").read_text()
    guide = guide.split("## What each area is for", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| (`.+`) \| .+ \| \d+ \|$", guide, re.MULTILINE)
    assert [name for names in rows for name in re.findall(r"`(\w+)`", names)] == areas


def test_a_name_that_is_no_area_ends_it_at_once() -> None:
    answer = subprocess.run(
        [".ci/run", "style", "kill_points"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 2
    assert answer.stdout == ""
    said = "deltaward: kill_points is no area; there are: install golden prepare test "
    assert answer.stderr.startswith(said)


def test_it_ends_with_the_line_that_is_counted() -> None:
    assert "%d passed, %d failed, %d skipped" in CI
    assert CI.rstrip().endswith('[ "$failed" -eq 0 ]')


def test_one_worker_gets_what_shares_the_spark_session() -> None:
    files = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("tests/spark/test_*.py"))
    sharing = {file for file in files if "spark: SparkSession" in (ROOT / file).read_text()}
    assert len(sharing) > 10
    assert {file for file in files if scope_of(file) == SPARK} == sharing
    assert {scope_of(file, sessions=2) for file in sharing} == {SPARK, f"{SPARK} 1"}
    assert scope_of("tests/spark/test_main.py") == "tests/spark/test_main.py"


def test_one_worker_gets_what_shares_the_engine() -> None:
    files = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("tests/airflow_dags/test_*.py"))
    sharing = {file for file in files if "engine: dict" in (ROOT / file).read_text()}
    assert len(sharing) > 2
    assert {file for file in files if scope_of(file) == ENGINE} == sharing
