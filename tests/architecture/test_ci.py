"""The whole check covers every test that `make test` leaves out."""

from __future__ import annotations

import re

from tests.support.repository import ROOT, tracked_files

CI = (ROOT / ".ci" / "run").read_text()


def test_every_program_test_has_an_area_of_its_own() -> None:
    files = {str(path) for path in tracked_files() if path.match("tests/e2e/test_*.py")}
    assert files
    assert files == set(re.findall(r"tests/e2e/test_\w+\.py", CI))


def test_every_area_has_a_time_box() -> None:
    areas = re.findall(r"^ *(?:area|tests) (\w+) (\S+)", CI, re.MULTILINE)
    assert {"install", "test", "style", "types", "imports", "extras"} <= {name for name, _ in areas}
    assert all(box.isdigit() and int(box) <= 780 for _, box in areas), areas


def test_it_ends_with_the_line_that_is_counted() -> None:
    assert "%d passed, %d failed, %d skipped" in CI
    assert CI.rstrip().endswith('[ "$failed" -eq 0 ]')
