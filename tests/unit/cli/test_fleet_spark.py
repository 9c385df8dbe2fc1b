from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import write_deltalake
from delta_core.cli import fleet_spark
from delta_core.cli.fleet_spark import SparkDriver, require_spark
from delta_core.errors import ConfigurationError
from delta_core.fleet.control import Control
from delta_core.fleet.ledger import Ledger
from delta_core.fleet.registry import registry
from delta_core.jobs import JobContext, JobSpec, JobStatus, TableRef
from delta_core.policies.load import parse_policies

DRIVER = """
import json, os, pathlib, sys
from delta_core.jobs import JobContext, result_to_json, run_job, spec_from_json
from dataclasses import replace
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
spec = spec_from_json(pathlib.Path(options["--spec"]).read_text())
assert spec.engine == "spark" and spec.job_id and options["--master"] == "local[2]"
assert json.loads(os.environ["DELTAWARD_STORAGE_OPTIONS"]) == {"region": "x"}
if "ended" in spec.table.uri:
    sys.exit("no result")
result = run_job(replace(spec, engine="auto"), JobContext())
pathlib.Path(options["--result"]).write_text(result_to_json(result))
"""


def test_a_job_for_spark_runs_in_a_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "recorded_driver.py").write_text(DRIVER)
    monkeypatch.setattr(fleet_spark, "_DRIVER", "recorded_driver")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    uri = str(tmp_path / "t")
    for number in range(3):
        write_deltalake(uri, pa.table({"id": [number]}), mode="append")
    driver = SparkDriver(master="local[2]")
    spec = JobSpec(kind="optimize", table=TableRef(uri=uri), engine="spark")
    context = JobContext(storage_options={"region": "x"})
    done = driver.run(spec, context)
    assert (done.status, done.actual["files_removed"]) == (JobStatus.SUCCEEDED, 3)
    failed = driver.run(replace(spec, table=TableRef(uri="/ended")), context)
    assert failed.status is JobStatus.FAILED
    assert failed.error is not None
    assert "no result" in failed.error.message
    inline = driver.run(replace(spec, engine="auto"), JobContext())
    assert inline.status is JobStatus.SUCCEEDED


def test_a_plan_for_spark_needs_pyspark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        write_deltalake(str(tmp_path / "t"), pa.table({"id": [number]}), mode="append")
    policies = parse_policies(
        "defaults: {engine: spark, compaction: {min_small_files: 2}, checkpoint: {interval: 2}}\n"
        f"fleet: {{prefixes: [{{uri: {tmp_path}}}]}}"
    )
    control = Control(registry=registry(policies), ledger=Ledger(control_root=f"{tmp_path}/control"))
    plan = control.plan(control.refresh(run_id="r"), run_id="r")
    assert {entry.verb: entry.engine for entry in plan.entries} == {"optimize": "spark", "checkpoint": "auto"}
    require_spark(plan.entries)
    monkeypatch.setattr(fleet_spark.importlib.util, "find_spec", lambda name: None)
    require_spark([entry for entry in plan.entries if entry.verb == "checkpoint"])
    with pytest.raises(ConfigurationError, match="PySpark is not installed"):
        require_spark(plan.entries)
