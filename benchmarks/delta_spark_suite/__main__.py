"""delta-spark's own Python tests with `spark_jobs` in its place, on classic Spark or on Connect.

    python -m benchmarks.delta_spark_suite --source CHECKOUT [--tag v4.4.0] [--connect] [--only NAME ...]
    python -m benchmarks.delta_spark_suite --source CHECKOUT --examples

CHECKOUT is a git directory of github.com/delta-io/delta. The tests are read from it and run as they are.
With `--examples`, its examples run instead, with another session.
Writes `benchmarks/results/delta-spark-suite.json`, with an entry for each way.
Exits with 1 when a test failed that is not known to fail.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.delta_spark_suite.adapter import install
from spark_jobs.connect_server import ConnectServer
from spark_jobs.session import get_session
from tests.support.soak_report import report_head
from tests.support.spark import CONF as SMALL

RESULT = Path(__file__).resolve().parents[1] / "results" / "delta-spark-suite.json"
FILES = ("test_deltatable", "test_sql")
EXAMPLES = (
    "quickstart",
    "utilities",
    "table_exists",
    "quickstart_sql",
    "quickstart_sql_on_paths",
    "change_data_feed",
)
CONF = {**SMALL, "spark.ui.enabled": "false"}
JVM_ONLY = ("test_verify_paritionedBy_compatibility",)
"""Tests that delta-spark itself leaves out on Connect, because they call the JVM."""
KNOWN = {"test_create_table_geo_types": "geometry and geography, a preview of delta-spark, are refused"}


def main() -> int:
    """Run the tests; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--tag", default="v4.4.0")
    parser.add_argument("--connect", action="store_true")
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--examples", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.connect:
            with ConnectServer.start(directory=folder, master="local[2]", conf=CONF) as server:
                return _run(options, get_session(f"sc://127.0.0.1:{server.port}"), Path(folder))
        conf = CONF | {"spark.sql.warehouse.dir": f"{folder}/warehouse"}
        return _run(options, get_session(master="local[2]", conf=conf), Path(folder))


def _run(options: argparse.Namespace, spark: Any, folder: Path) -> int:
    install(spark)
    suite = unittest.TestSuite()
    if options.examples:
        suite.addTests(_examples(options, folder))
    for name in () if options.examples else FILES:
        _add(suite, _module(options, name, folder), options)
    began = time.monotonic()
    result = unittest.TextTestRunner(verbosity=2 if options.verbose else 1).run(suite)
    failed = {_name(test): text.strip().splitlines()[-1] for test, text in result.failures + result.errors}
    skipped = {_name(test): reason for test, reason in result.skipped}
    passed = result.testsRun - len(failed) - len(skipped)
    where = ("examples, " if options.examples else "") + ("connect" if options.connect else "classic")
    print(f"{where}, {options.tag}: {passed} of {result.testsRun - len(skipped)} passed")
    if not options.only:
        _keep(where, options.tag, passed, failed, skipped, seconds=time.monotonic() - began)
    spark.stop()
    return int(any(name not in KNOWN for name in failed))


def _keep(
    where: str, tag: str, passed: int, failed: dict[str, str], skipped: dict[str, str], *, seconds: float
) -> None:
    known = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    known[f"{where}, {tag}"] = {
        **report_head("delta-spark-suite", seed=None, seconds=seconds),
        "command": "python -m benchmarks.delta_spark_suite --source CHECKOUT"
        + (" --examples" if "examples" in where else "")
        + (" --connect" if "connect" in where else ""),
        "passed": passed,
        "failed": {name: {"error": text, "known": KNOWN.get(name)} for name, text in failed.items()},
        "skipped": skipped,
    }
    RESULT.write_text(json.dumps(known, indent=2) + "\n")


def _examples(options: argparse.Namespace, folder: Path) -> list[unittest.TestCase]:
    """The examples as tests: the session is the one that runs, and paths are in a folder of their own."""
    return [
        _example(name, _text_of(options, f"examples/python/{name}.py"), folder)
        for name in options.only or EXAMPLES
    ]


def _example(name: str, code: str, folder: Path) -> unittest.TestCase:
    code = re.sub(
        r"SparkSession\s*\\?\s*\.builder.*?\.getOrCreate\(\)", "SparkSession.active()", code, flags=re.DOTALL
    )
    code = code.replace("/tmp/", f"{folder}/{name}/").replace("spark.stop()", "pass")

    class Example(unittest.TestCase):
        def id(self) -> str:
            return name

        def runTest(self) -> None:  # noqa: N802 - unittest's name
            (folder / name).mkdir()
            exec(compile(code, f"{name}.py", "exec"), {"__name__": "__main__"})

    return Example()


def _text_of(options: argparse.Namespace, path: str) -> str:
    """A file of the checkout."""
    found = subprocess.run(
        ["git", "-C", str(options.source), "show", f"{options.tag}:{path}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return found.stdout


def _module(options: argparse.Namespace, name: str, folder: Path) -> ModuleType:
    """A test file of the checkout, as a module."""
    path = folder / f"{name}.py"
    path.write_text(_text_of(options, f"python/delta/tests/{name}.py"))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _add(suite: unittest.TestSuite, module: ModuleType, options: argparse.Namespace) -> None:
    for test in unittest.defaultTestLoader.loadTestsFromModule(module):
        for case in test if isinstance(test, unittest.TestSuite) else [test]:
            name = _name(case)
            if options.only and name not in options.only:
                continue
            if options.connect and name in JVM_ONLY:
                continue
            suite.addTest(case)


def _name(test: Any) -> str:
    return str(test.id()).rsplit(".", 1)[-1]


if __name__ == "__main__":
    sys.exit(main())
