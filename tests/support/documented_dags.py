"""The DAGs that the documents show, as a reader would use them: one file each in a DAG folder."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.airflow import AirflowHome
from tests.support.repository import ROOT, CodeBlock, code_blocks, tracked_files

DOCUMENT = "docs/airflow.md"
DOCUMENTS = [
    DOCUMENT,
    *(str(p) for p in tracked_files() if p.match("docs/operators/*.md") or p.match("docs/dags/*.md")),
]
_WORKER = ROOT / "tests" / "airflow" / "docs_worker.py"


def examples() -> list[CodeBlock]:
    """Every DAG in the documents; blocks marked `query` look at tables, and tests/unit/docs runs them."""
    blocks = [block for page in DOCUMENTS for block in code_blocks(page) if block.language == "python"]
    return [block for block in blocks if "query" not in block.tags]


def connection() -> str:
    """The value that the document's `export` line gives the connection's variable."""
    (block,) = [block for block in code_blocks(DOCUMENT) if block.language == "bash"]
    command, assignment = shlex.split(block.body)
    name, _, value = assignment.partition("=")
    assert (command, name) == ("export", "AIRFLOW_CONN_DELTAWARD_DEFAULT")
    return value


def write_examples(home: AirflowHome, *, data: Path) -> None:
    """Put the examples, with /data moved to `data`, into the home's DAG folder."""
    for number, block in enumerate(examples()):
        body = block.body.replace('"/data/', f'"{data}/')
        (home.dags / f"example_{number}.py").write_text(body)


def run_examples(home: AirflowHome, *arguments: str, data: Path) -> dict[str, Any]:
    """Run some of the DAGs, one after the other in one process, as `docs_worker.py` is told to."""
    moved = connection().replace("/var/lib/deltaward", str(home.path / "work")).replace("/data", str(data))
    environment = home.environment(AIRFLOW_CONN_DELTAWARD_DEFAULT=moved)
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    done = subprocess.run(
        [sys.executable, str(_WORKER), *arguments],
        env=environment,
        cwd=home.path,
        capture_output=True,
        text=True,
        check=False,
        timeout=1500,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("SEEN ")]
    assert lines, done.stdout[-4000:] + done.stderr[-4000:]
    seen: dict[str, Any] = json.loads(lines[-1].removeprefix("SEEN "))
    assert seen["import_errors"] == {}
    return seen
