"""A job without a suite, and a scheduler, never pay for importing Great Expectations or pandas."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.repository import ROOT

STATEMENTS = [
    "import spark_jobs",
    "import spark_jobs.quality",
    "import spark_jobs.quality.gate",
    "import spark_jobs.job_kinds",
    "import spark_jobs.main",
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_importing_loads_neither(statement: str) -> None:
    program = f"import sys\n{statement}\nprint(sorted({{'great_expectations', 'pandas'}} & set(sys.modules)))"
    answer = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert answer.stdout.strip() == "[]", answer.stdout + answer.stderr
