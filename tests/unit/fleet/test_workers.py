from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from delta_core import DeltaTable
from delta_core.errors import ConfigurationError
from delta_core.fleet.apply import Application
from delta_core.fleet.workers import apply_in_processes
from demo.fleet_tables import Made
from tests.unit.fleet.conftest import Make


@pytest.mark.slow
def test_processes_observe_and_apply_what_one_does(control: Make, lake: list[Made], tmp_path: Path) -> None:
    alone, several = control(), control()
    rows = alone.refresh(run_id="one")
    again = several.refresh(run_id="two", jobs=2)
    changing = ("observed_at", "due_since")

    def facts(found: dict[str, Any]) -> dict[str, Any]:
        return {
            uri: {name: value for name, value in row.items() if name not in changing}
            for uri, row in found.items()
        }

    assert facts(again) == facts(rows)
    plan = alone.plan(rows, run_id="one")
    done = list(apply_in_processes(plan, Application(ledger=alone.ledger), jobs=2))
    assert Counter((row["uri"], row["verb"]) for row in done) == Counter(
        (entry.uri, entry.verb) for entry in plan.entries
    )
    assert {row["outcome"] for row in done} == {"succeeded"}
    assert len(alone.ledger.runs()) == len(done)
    for table in lake:
        history = DeltaTable(f"{tmp_path}/lake/{table.path}").history()
        operations = [entry.commit_info.operation for entry in history]
        assert operations.count("OPTIMIZE") == (table.kind == "small_files")
    with pytest.raises(ConfigurationError, match="65"):
        list(apply_in_processes(plan, Application(ledger=alone.ledger), jobs=65))
