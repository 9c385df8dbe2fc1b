"""Great Expectations and pandas are imported only for an expectation that no native rule judges."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from spark_jobs.quality.batch_expectations import LIBRARY_EXPECTATIONS
from tests.support.quality import NOT_NULL, expect, quality
from tests.support.repository import ROOT
from tests.support.verdicts import CASES, ROWS

STATEMENTS = [
    "import spark_jobs",
    "import spark_jobs.quality",
    "import spark_jobs.quality.gate",
    "import spark_jobs.job_kinds",
    "import spark_jobs.main",
]
LOADED = "import sys; print(sorted({'great_expectations', 'pandas'} & set(sys.modules)))"

GATE = """
import json, sys
from pathlib import Path
import pyarrow.parquet as pq
from delta_core.storage.open import open_store
from spark_jobs.quality.gate import GateContext, QualityGate
from delta_core.jobs.params.quality import parse_quality
from tests.support.staged import stage

folder = Path(sys.argv[1])
files = stage(folder / "table", pq.read_table(folder / "rows.parquet"))
context = GateContext(store=files.store, job_id="job", session=lambda: None)
gate = QualityGate(parse_quality(json.loads((folder / "quality.json").read_text())), context)
gate.prepare(files.schema)
assert gate.audit(files).rows > 0
assert gate.output["quarantined_rows"] > 0
"""


def loaded_by(program: str, *arguments: str) -> str:
    answer = subprocess.run(
        [sys.executable, "-c", f"{program}\n{LOADED}", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout.splitlines()[-1]


def gated(folder: Path, *expectations: dict[str, Any], before: str = "") -> str:
    """What a gate has imported that judged rows and put some of them into quarantine.

    Args:
        folder: an empty folder.
        expectations: the suite.
        before: statements that run first.
    """
    (folder / "table").mkdir()
    pq.write_table(ROWS, folder / "rows.parquet")
    document = quality(*expectations, on_failure="quarantine")
    (folder / "quality.json").write_text(json.dumps(document))
    return loaded_by(before + GATE, str(folder))


@pytest.mark.parametrize("statement", STATEMENTS)
def test_importing_loads_neither(statement: str) -> None:
    assert loaded_by(statement) == "[]"


def test_a_suite_that_native_rules_judge_imports_no_library(tmp_path: Path) -> None:
    assert "great_expectations" not in gated(tmp_path, expect(NOT_NULL, column="n"), *_native())


def test_a_suite_that_native_rules_judge_needs_neither(tmp_path: Path) -> None:
    # pyarrow imports pandas where it can, so only its absence shows that nothing needs it.
    before = (
        "from tests.support.absent_packages import AbsentPackages\n"
        "AbsentPackages('great_expectations', 'pandas').install()"
    )
    gated(tmp_path, expect(NOT_NULL, column="n"), *_native(), before=before)


@pytest.mark.slow
def test_a_suite_that_needs_the_library_loads_it(tmp_path: Path) -> None:
    kind = "expect_column_value_z_scores_to_be_less_than"
    scores = expect(kind, column="id", threshold=9, double_sided=True)
    loaded = gated(tmp_path, expect(NOT_NULL, column="n"), scores)
    assert loaded == "['great_expectations', 'pandas']"


def _native() -> list[dict[str, Any]]:
    return [
        case.expectation | {"severity": "warning"}
        for case in CASES
        if case.expectation["type"] not in LIBRARY_EXPECTATIONS and _is_json(case.expectation)
    ]


def _is_json(expectation: dict[str, Any]) -> bool:
    try:
        json.dumps(expectation)
    except TypeError:
        return False
    return True
