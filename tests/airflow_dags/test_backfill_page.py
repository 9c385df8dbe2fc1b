"""The DAG of docs/backfill.md: months loaded twice by other runs, corrected, and delivered late."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.support.airflow import AirflowHome, connection_json
from tests.support.repository import ROOT, code_blocks

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.slow, pytest.mark.soak]

DOCUMENT = "docs/backfill.md"
WORKER = ROOT / "tests" / "airflow_dags" / "backfill_worker.py"


def backfill(
    home: AirflowHome,
    tmp_path: Path,
    requests: list[tuple[str, dict[str, Any] | None]],
    engine: Mapping[str, str],
) -> Any:
    """Run the document's DAG once per request, with /data moved below tmp_path."""
    (block,) = [block for block in code_blocks(DOCUMENT) if block.language == "python"]
    (home.dags / "orders_by_month.py").write_text(block.body.replace("/data/", f"{tmp_path}/data/"))
    connection = connection_json(work_dir=str(tmp_path / "work"), **engine)
    done = subprocess.run(
        [sys.executable, str(WORKER), "orders_by_month", json.dumps(requests)],
        env=home.environment(AIRFLOW_CONN_DELTAWARD_DEFAULT=connection),
        cwd=home.path,
        capture_output=True,
        text=True,
        check=False,
        timeout=1400,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("SEEN ")]
    assert lines, done.stdout[-4000:] + done.stderr[-4000:]
    return json.loads(lines[-1].removeprefix("SEEN "))


@pytest.mark.soak  # the demonstration backfills months, and test_backfill.py repeats and corrects them
def test_months_backfilled_twice_apply_once_and_a_correction_replaces_its_month(
    airflow_home: AirflowHome, tmp_path: Path, engine: dict[str, str]
) -> None:
    incoming = tmp_path / "data" / "incoming"
    incoming.mkdir(parents=True)
    for month, number, rows in ((1, 1, "1,10\n2,20\n"), (2, 1, "3,30\n"), (2, 2, "3,31\n4,40\n")):
        lines = "".join(f"2012-{month:02}-01,{row}\n" for row in rows.split())
        (incoming / f"2012-{month:02}-01.{number}.csv").write_text(f"month,id,amount\n{lines}")
    # A run takes the last whole month before its date, so each pass has runs of its own.
    seen = backfill(
        airflow_home,
        tmp_path,
        [
            ("2012-03-01", None),
            ("2012-02-01", None),
            ("2012-03-12", {"delivery": 2}),
            ("2012-03-13", None),
        ],
        engine,
    )
    assert [run["state"] for run in seen] == ["success"] * 4
    assert [run["start"][5:7] for run in seen] == ["02", "01", "02", "02"]
    assert len({run["run_id"] for run in seen}) == 4
    done = [run["load"]["already_applied"] for run in seen]
    assert done == [False, False, False, True]
    table = DeltaTable(str(tmp_path / "data" / "orders"))
    rows = sorted((row["month"], row["id"], row["amount"]) for row in table.to_pyarrow_table().to_pylist())
    first, second = date(2012, 1, 1), date(2012, 2, 1)
    assert rows == [(first, 1, 10), (first, 2, 20), (second, 3, 31), (second, 4, 40)]
    assert table.version() == 2
