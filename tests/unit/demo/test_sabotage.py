"""Each sabotage spoils what it says, and nothing of the repository."""

from __future__ import annotations

import ast
import json
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from deltalake import DeltaTable, write_deltalake

from demo import sabotage
from demo.layout import Layout
from demo.processes import DemoError
from tests.support.repository import ROOT

DAGS = ROOT / "dags"


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(home=tmp_path / "home")
    layout.make()
    return layout


def spoiled_dags(layout: Layout, *names: str) -> Path:
    dags = sabotage.prepare(names, layout).dags
    assert dags is not None
    return dags


def changed_files(dags: Path) -> set[str]:
    kept = {path.relative_to(DAGS).as_posix() for path in DAGS.rglob("*") if path.suffix in (".py", ".yaml")}
    left = {name for name in kept if (dags / name).exists()}
    return (kept - left) | {name for name in left if (dags / name).read_text() != (DAGS / name).read_text()}


def yaml_of(dags: Path, name: str) -> Any:
    return yaml.safe_load((dags / "config" / name).read_text())


def test_none_changes_nothing(layout: Layout) -> None:
    prepared = sabotage.prepare([], layout)
    assert (prepared.names, prepared.dags, prepared.driver_python) == ((), None, None)
    assert prepared.months_to_load((10, 11, 12)) == (10, 11, 12)


def test_a_month_is_skipped(layout: Layout) -> None:
    prepared = sabotage.prepare([sabotage.SKIP_MONTH], layout)
    assert list(prepared.months_to_load((10, 11, 12))) == [10, 12]


def test_compaction_has_a_target_that_every_file_exceeds(layout: Layout) -> None:
    dags = spoiled_dags(layout, sabotage.COMPACT_NOOP)
    assert changed_files(dags) == {"config/tables.yaml"}
    spoiled, original = yaml_of(dags, "tables.yaml"), yaml_of(DAGS, "tables.yaml")
    assert spoiled["defaults"]["compaction"].pop("target_size_bytes") == 1
    assert original["defaults"]["compaction"].pop("target_size_bytes") == "128mb"
    assert spoiled == original


def test_clustering_is_switched_off(layout: Layout) -> None:
    dags = spoiled_dags(layout, sabotage.ZORDER_NOOP)
    assert changed_files(dags) == {"config/tables.yaml"}
    assert yaml_of(dags, "tables.yaml")["tables"]["flights"]["clustering"]["enabled"] is False
    assert yaml_of(DAGS, "tables.yaml")["tables"]["flights"]["clustering"].get("enabled", True)


def test_the_gate_expects_nothing(layout: Layout) -> None:
    dags = spoiled_dags(layout, sabotage.GATE_OFF)
    assert changed_files(dags) == {"config/flights_suite.yaml"}
    assert not (dags / "config" / "flights_suite.yaml").exists()


def test_the_merge_has_every_clause_but_the_one_that_deletes(layout: Layout) -> None:
    dags = spoiled_dags(layout, sabotage.CORRECTION_LOST)
    assert changed_files(dags) == {"config/flights_corrections.yaml"}
    name = "flights_corrections.yaml"
    left = yaml_of(dags, name)["matched"]
    assert [clause["action"] for clause in left] == ["update_all"]
    assert [clause for clause in yaml_of(DAGS, name)["matched"] if clause not in left] == [
        {"action": "delete", "condition": "s.correction = 'delete'"}
    ]


def test_nobody_is_asked(layout: Layout) -> None:
    dags = spoiled_dags(layout, sabotage.APPROVAL_IGNORED)
    assert changed_files(dags) == {"table_rollback.py"}
    spoiled = (dags / "table_rollback.py").read_text()
    assert "waive=True," in spoiled
    assert _task_ids(dags / "table_rollback.py") == _task_ids(DAGS / "table_rollback.py")


def test_the_copied_dag_leaves_verify_out_and_nothing_else(layout: Layout) -> None:
    dags = spoiled_dags(layout, sabotage.VERIFY_DROPPED)
    name = "table_maintenance.py"
    lines = (dags / name).read_text().splitlines()
    assert lines.count("    verify=False,") == 1
    assert [line for line in lines if "verify=False" not in line] == (DAGS / name).read_text().splitlines()
    assert changed_files(dags) == {name}


def test_several_are_mixed_in_one_copy(layout: Layout) -> None:
    prepared = sabotage.prepare(
        [sabotage.SKIP_MONTH, sabotage.VERIFY_DROPPED, sabotage.COMPACT_NOOP, sabotage.EXIT_CODE_SWALLOWED],
        layout,
    )
    assert prepared.dags is not None
    assert changed_files(prepared.dags) == {"table_maintenance.py", "config/tables.yaml"}
    assert list(prepared.months_to_load((1, 2))) == [2]
    assert prepared.driver_python is not None


def test_some_quarantined_rows_are_lost(layout: Layout) -> None:
    quarantine = layout.table("flights") / "_deltaward" / "quarantine"
    write_deltalake(quarantine, pa.table({"carrier": ["ZZ", "UA"]}))
    sabotage.prepare([sabotage.GATE_OFF], layout).after_gate(layout)
    assert DeltaTable(quarantine).version() == 0
    sabotage.prepare([sabotage.QUARANTINE_DROPPED], layout).after_gate(layout)
    assert DeltaTable(quarantine).to_pyarrow_table()["carrier"].to_pylist() == ["UA"]


@pytest.mark.parametrize("code", [0, 1, 3])
def test_the_driver_says_success_whatever_happened(layout: Layout, tmp_path: Path, code: int) -> None:
    driver = sabotage.prepare([sabotage.EXIT_CODE_SWALLOWED], layout).driver_python
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
    with pytest.raises(DemoError, match="Unknown sabotage 'burn'"):
        sabotage.prepare(["burn"], layout)


def _task_ids(path: Path) -> set[str]:
    return {
        keyword.value.value
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "task_id" and isinstance(keyword.value, ast.Constant)
    }
