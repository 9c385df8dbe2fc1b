"""The wheel beside the oldest and the newest pair of Airflow and pyspark: a DAG of every kind of task.

    nice python benchmarks/soak/airflow_versions.py [--pairs 3.3.0:4.0 3.3:4.3]

For each pair a new environment gets the wheel with its extras `airflow` and `spark`. `airflow dags test` runs
a DAG in a folder of its own: a load and a merge through a connection of type `spark`, a compaction through
`spark_submit`, a Z-order, a vacuum's plan and a restore inline. Then the deltalake package reads the table.

Writes `benchmarks/results/soak-airflow-versions.json` after each pair. Exits with 1 when a run failed.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY)]

from tests.support.clean_environment import (  # noqa: E402 - a program
    build_wheel,
    make_environment,
    run,
    users_shell,
    version_of,
)
from tests.support.soak_report import report_head  # noqa: E402

RESULT = REPOSITORY / "benchmarks" / "results" / "soak-airflow-versions.json"
PAIRS = ("3.3.0:4.0", "3.3:4.3")
PINNED = [re.split("[= #]", line)[0] for line in (REPOSITORY / "constraints.txt").read_text().splitlines()]

DAG = """
from airflow.sdk import DAG
from delta_airflow.operators.load import DeltaLoadOperator
from delta_airflow.operators.merge import DeltaMergeOperator
from delta_airflow.operators.optimize import DeltaOptimizeOperator
from delta_airflow.operators.restore import DeltaRestoreOperator
from delta_airflow.operators.vacuum import DeltaVacuumOperator

DATA = {data!r}
TABLE = DATA + "/orders"

with DAG("every_kind", schedule=None):
    load = DeltaLoadOperator(
        task_id="load",
        spark_conn_id="company_spark",
        spark_conf={{"spark.sql.shuffle.partitions": "2"}},
        table_uri=TABLE,
        source={{"format": "parquet", "uris": [DATA + "/new.parquet"]}},
        mode="append",
    )
    merge = DeltaMergeOperator(
        task_id="merge",
        spark_conn_id="company_spark",
        table_uri=TABLE,
        source={{"format": "parquet", "uris": [DATA + "/changes.parquet"]}},
        on="t.id = s.id",
        matched=[{{"action": "update_all"}}],
        not_matched=[{{"action": "insert_all"}}],
    )
    compact = DeltaOptimizeOperator(task_id="compact", table_uri=TABLE, runner="spark_submit")
    z_order = DeltaOptimizeOperator(task_id="z_order", table_uri=TABLE, runner="inline", z_order_by=["id"])
    vacuum = DeltaVacuumOperator(task_id="vacuum", table_uri=TABLE)
    restore = DeltaRestoreOperator(task_id="restore", table_uri=TABLE, version=0, dry_run=False)
    load >> merge >> compact >> z_order >> vacuum >> restore
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", nargs="+", default=list(PAIRS), help="AIRFLOW:PYSPARK")
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args()
    began = time.monotonic()
    outcomes: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="deltaward-soak-") as scratch:
        wheel = build_wheel(Path(scratch))
        for number, pair in enumerate(options.pairs):
            airflow, pyspark = pair.split(":")
            outcomes[pair] = one_pair(wheel, Path(scratch) / str(number), airflow=airflow, pyspark=pyspark)
            head = report_head("airflow-versions", seed=None, seconds=time.monotonic() - began)
            options.output.write_text(json.dumps({**head, "pairs": outcomes}, indent=2) + "\n")
            print(
                f"Airflow {airflow}, pyspark {pyspark}: {outcomes[pair].get('error', 'passed')}", flush=True
            )
    return 1 if any("error" in outcome for outcome in outcomes.values()) else 0


def one_pair(wheel: Path, folder: Path, *, airflow: str, pyspark: str) -> dict[str, Any]:
    """Install the pair, run the DAG, and look at the table."""
    folder.mkdir()
    began = time.monotonic()
    outcome: dict[str, Any] = {}
    try:
        python = make_environment(
            folder,
            [f"{wheel}[airflow,spark]", _exactly("apache-airflow", airflow), f"pyspark=={pyspark}.*"],
            # Another Airflow requires other versions of the packages that it uses.
            free=PINNED,
            # The client, which Airflow's provider asks for, writes the same folder in another version.
            overrides=[f"pyspark=={pyspark}.*", "pyspark-client; python_version < '3'"],
        )
        outcome["airflow"] = version_of(python, "apache-airflow-core")
        outcome["pyspark"] = version_of(python, "pyspark")
        outcome["operations"] = _run_dag(folder)
    except Exception as error:
        outcome["error"] = f"{type(error).__name__}: {error}"[-3000:]
    return outcome | {"seconds": round(time.monotonic() - began, 1)}


def _exactly(package: str, version: str) -> str:
    return f"{package}=={version}" if version.count(".") == 2 else f"{package}=={version}.*"


def _run_dag(folder: Path) -> list[str]:
    """Run the DAG; returns the operations of the table's history, oldest first."""
    data = folder / "data"
    data.mkdir()
    pq.write_table(pa.table({"id": range(1000), "price": [1.0] * 1000}), data / "new.parquet")
    pq.write_table(pa.table({"id": range(990, 1010), "price": [2.0] * 20}), data / "changes.parquet")
    dags = folder / "dags"
    dags.mkdir()
    (dags / "every_kind.py").write_text(DAG.format(data=str(data)))
    local = {"conn_type": "spark", "host": "local[2]"}
    environment = users_shell(folder) | {
        "AIRFLOW_HOME": str(folder / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW_CONN_DELTAWARD_DEFAULT": json.dumps(
            {"conn_type": "deltaward", "extra": {"master": "local[2]", "allowed_roots": [str(data)]}}
        ),
        "AIRFLOW_CONN_COMPANY_SPARK": json.dumps(local),
    }
    command = str(folder / "venv" / "bin" / "airflow")
    run([command, "db", "migrate"], cwd=folder, environment=environment)
    run([command, "dags", "test", "every_kind"], cwd=folder, environment=environment)
    table = DeltaTable(str(data / "orders"))
    history = sorted(table.history(), key=lambda entry: entry["version"])
    merged = DeltaTable(str(data / "orders"), version=1).to_pyarrow_table()
    if sorted(merged["price"].to_pylist()) != [1.0] * 990 + [2.0] * 20:
        raise ValueError(f"the merge left {merged.num_rows} other rows")
    if sorted(table.to_pyarrow_table()["id"].to_pylist()) != list(range(1000)):
        raise ValueError("the restored table has other rows than version 0")
    return [entry["operation"] for entry in history]


if __name__ == "__main__":
    sys.exit(main())
