"""Each sabotage spoils what it says, and nothing of the repository."""

from __future__ import annotations

import ast
import json
import subprocess
from pathlib import Path

import pytest
import yaml

from demo import sabotage
from demo.layout import Layout
from demo.processes import DemoError
from tests.support.repository import ROOT


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(home=tmp_path / "home")
    layout.make()
    return layout


def test_none_changes_nothing(layout: Layout) -> None:
    prepared = sabotage.prepare(None, layout)
    assert (prepared.dags, prepared.policies, prepared.driver_python) == (None, None, None)
    assert prepared.months_to_load((10, 11, 12)) == (10, 11, 12)


def test_a_month_is_skipped(layout: Layout) -> None:
    prepared = sabotage.prepare(sabotage.SKIP_MONTH, layout)
    assert list(prepared.months_to_load((10, 11, 12))) == [10, 12]


def test_compaction_has_a_target_that_every_file_exceeds(layout: Layout) -> None:
    policies = sabotage.prepare(sabotage.COMPACT_NOOP, layout).policies
    assert policies is not None
    spoiled = yaml.safe_load(policies.read_text())
    original = yaml.safe_load((ROOT / "dags" / "config" / "tables.yaml").read_text())
    assert spoiled["defaults"]["compaction"].pop("target_size_bytes") == 1
    assert original["defaults"]["compaction"].pop("target_size_bytes") == "128mb"
    assert spoiled == original


def test_the_copied_dag_has_every_task_but_verify(layout: Layout) -> None:
    dags = sabotage.prepare(sabotage.VERIFY_DROPPED, layout).dags
    assert dags is not None
    assert _task_ids(ROOT / "dags" / "table_maintenance.py") - _task_ids(dags / "table_maintenance.py") == {
        "verify"
    }
    others = {path.name for path in dags.glob("*.py")} - {"table_maintenance.py"}
    assert {(dags / name).read_text() == (ROOT / "dags" / name).read_text() for name in others} == {True}


@pytest.mark.parametrize("code", [0, 1, 3])
def test_the_driver_says_success_whatever_happened(layout: Layout, tmp_path: Path, code: int) -> None:
    driver = sabotage.prepare(sabotage.EXIT_CODE_SWALLOWED, layout).driver_python
    result = tmp_path / "result.json"
    program = (
        "import json, sys; "
        "json.dump({'status': 'failed', 'error': {'code': 'X'}}, open(sys.argv[2], 'w')); "
        f"sys.exit({code})"
    )
    done = subprocess.run([str(driver), "-c", program, "--result", str(result)], check=False)
    assert done.returncode == 0
    expected = (
        {"status": "succeeded", "error": None} if code else {"status": "failed", "error": {"code": "X"}}
    )
    assert json.loads(result.read_text()) == expected


def test_an_unknown_name_is_refused(layout: Layout) -> None:
    with pytest.raises(DemoError, match="no sabotage 'burn'"):
        sabotage.prepare("burn", layout)


def _task_ids(path: Path) -> set[str]:
    return {
        keyword.value.value
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "task_id" and isinstance(keyword.value, ast.Constant)
    }
