"""Fixtures for every tier: the seed, the golden tables, an environment without the user's own settings."""

from __future__ import annotations

import gc
import os
import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from demo.class_archive import submit_options
from tests.support import memory
from tests.support.marked_files import is_left_out
from tests.support.parallel import SPARK, ByFile, scope_of
from tests.support.repository import ROOT
from tests.support.soak import SEED, SOAKING

if "PYTEST_XDIST_WORKER" in os.environ:
    # What modules and tests are made of lives to the end: until all are there, nothing is worth looking for.
    gc.disable()

_SCRATCH = Path(tempfile.mkdtemp(prefix="deltaward-tests-"))

# Airflow reads its home when it is first imported, so this comes before any test module does.
if "PYTEST_XDIST_WORKER" in os.environ:
    # A worker of a parallel run would have the home that the run's main process has set.
    os.environ.pop("AIRFLOW_HOME", None)
os.environ.setdefault("AIRFLOW_HOME", str(_SCRATCH / "airflow"))
os.environ.setdefault("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
os.environ.setdefault("AIRFLOW__CORE__PLUGINS_FOLDER", str(_SCRATCH / "no-plugins"))
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
# Most JVMs of a run live for seconds: compiling for speed later costs more than it brings.
os.environ.setdefault("SPARK_SUBMIT_OPTS", submit_options())

# Under CI Hypothesis would load a profile of its own, which hears of no seed. A slow minute fails no test.
settings.register_profile(
    "deltaward",
    deadline=None,
    derandomize=False,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile("deltaward")
# Hypothesis would draw constants of whichever modules of ours are imported by then: another sample after each
# change of a constant, and in another order of tests. There is no setting for it.
assert callable(providers._get_local_constants), "Hypothesis has changed: what else does it draw from?"
providers._get_local_constants = lambda: providers._local_constants


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Where files stay together, a worker in place of a crashed one waits for ever: the run ends instead."""
    if getattr(config.option, "maxworkerrestart", "") is None:
        config.option.maxworkerrestart = "0"
    # Files of units are many and short: last, as they are collected, they keep every worker busy to the end.
    config.option.loadscopereorder = False
    if getattr(config.option, "hypothesis_seed", "") is None:
        config.option.hypothesis_seed = SEED
    if SOAKING and getattr(config.option, "timeout", "") is None:
        config.option.timeout = 0


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file that is named is collected all the same, so that pytest says what `-m` leaves out of it."""
    given = config.invocation_params
    if collection_path in {given.dir / str(argument).split("::", 1)[0] for argument in given.args}:
        return None
    return is_left_out(collection_path, config.option.markexpr) or None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What shorter tests imply is left to soaks, unless `-m` names them. The longest come first."""
    items.sort(key=_rank)
    if SOAKING or "soak" in config.option.markexpr:
        return
    left = [item for item in items if item.get_closest_marker("soak")]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]


def _rank(item: pytest.Item) -> int:
    """Whole programs, Spark on stores and what shares a Spark session take longest.

    What starts a Spark with credentials in its environment must also be the first to start one in its worker.
    """
    if item.get_closest_marker("e2e") or item.path.name == "test_spark_on_stores.py":
        return 0
    return 1 if scope_of(item.nodeid.split("::", 1)[0]).startswith(SPARK) else 2


def pytest_report_header() -> str:
    return f"deltaward: DELTAWARD_SEED={SEED}"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Files that share a Spark session go to one worker, and each other file is kept whole."""
    return ByFile(config, log)


_PEAKS = pytest.StashKey[dict[str, int]]()
_RISES = pytest.StashKey[dict[str, str]]()
_SEEN: list[tuple[str, int]] = []


def pytest_collection_finish() -> None:
    memory.keep_what_is_there()
    gc.enable()
    _SEEN.append(("collection", memory.peak_bytes()))


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    if nextitem is None or nextitem.path != item.path:
        memory.free_what_is_left()
        _SEEN.append((item.path.name, memory.peak_bytes()))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker tells the run its peak of memory; a run fails when one had too much."""
    told = getattr(session.config, "workeroutput", None)
    if told is not None:
        told["peak_bytes"] = memory.peak_bytes()
        told["rises"] = memory.steepest(_SEEN)
        return
    peaks = session.config.stash.setdefault(_PEAKS, {})
    if not peaks:
        peaks["the run"] = memory.peak_bytes()
    if memory.too_much(peaks) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: WorkerController) -> None:
    told = getattr(node, "workeroutput", {})
    if "peak_bytes" in told:
        node.config.stash.setdefault(_PEAKS, {})[node.gateway.id] = told["peak_bytes"]
        node.config.stash.setdefault(_RISES, {})[node.gateway.id] = told["rises"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    peaks = terminalreporter.config.stash.get(_PEAKS, {})
    rises = terminalreporter.config.stash.get(_RISES, {})
    for worker, peak in sorted(peaks.items()):
        rose = rises.get(worker)
        terminalreporter.write_line(
            f"peak memory: {worker} {peak >> 20} MiB" + (f" ({rose})" if rose else "")
        )
    for line in memory.too_much(peaks):
        terminalreporter.write_line(f"ERROR: {line}", red=True)


def pytest_unconfigure() -> None:
    shutil.rmtree(_SCRATCH, ignore_errors=True)


@pytest.fixture(scope="session")
def seed() -> str:
    """The run's seed, as printed in the header; set DELTAWARD_SEED to repeat a run."""
    return SEED


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """A generator of this test's own: the same seed and test draw the same."""
    return random.Random(f"{SEED}:{request.node.nodeid}")


@pytest.fixture(scope="session")
def golden_dir() -> Path:
    """The golden tables: in the folder that `DELTAWARD_GOLDEN` or `make golden` has named."""
    given = os.environ.get("DELTAWARD_GOLDEN")
    folder = Path(given) if given else ROOT / ".tools" / "golden"
    if not (folder / "manifest.json").is_file():
        if given:
            pytest.fail(f"DELTAWARD_GOLDEN={given} holds no manifest.json")
        pytest.skip("nobody has named the golden tables: make golden GOLDEN=FOLDER")
    return folder.resolve()
