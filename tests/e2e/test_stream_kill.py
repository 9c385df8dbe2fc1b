"""Streams whose process is killed at random: each row arrives exactly once."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from tests.support.repository import ROOT
from tests.support.soak import SEED, rounds
from tests.support.stream_driver import WAYS

KILLS = rounds(usual=1, soak=50)
SECONDS = 1500
"""No kills after this time, which a busy machine may need. The result has the number of kills."""

TABLES = [f"{way}-{name}" for way in WAYS for name in ("bus", "copy")]


LOG = "driver.log"
"""The output of the program that was started last, in the test's folder."""


def started(program: str, folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'plugins'}"}
    with (folder / LOG).open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", program, str(folder), *arguments],
            cwd=ROOT,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def finished(program: str, folder: Path) -> int:
    """The exit code of the program that reads and writes what is left."""
    process = started(program, folder, "finish")
    try:
        return process.wait(timeout=900)
    finally:
        if process.poll() is None:
            kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def version_of(table: Path) -> int:
    names = [path.stem for path in (table / "_delta_log").glob("*.json") if path.stem.isdigit()]
    return max(map(int, names), default=-1)


def wait_for(table: Path, version: int, process: subprocess.Popen[bytes], *, seconds: float) -> None:
    end = time.monotonic() + seconds
    while version_of(table) < version:
        if process.poll() is not None:
            said = (table.parent / LOG).read_text(errors="replace")[-20_000:]
            # Spark gives a Python process ten seconds to start, also on a machine that is too busy for that.
            assert "failed to connect back" in said, said
            return
        assert time.monotonic() < end, f"{table} is still at version {version_of(table)}"
        time.sleep(0.02)


def values(table: Path) -> list[int]:
    if version_of(table) < 0:
        return []
    return sorted(DeltaTable(str(table)).to_pyarrow_table()["value"].to_pylist())


def interrupted(folder: Path, way: str, checkpoint: str, target: str) -> str:
    """Where the kill met a query: between batches, in a batch, or between its commit and the checkpoint's."""
    planned, done = (
        max((int(path.name) for path in (folder / f"{way}-{checkpoint}" / kind).glob("[0-9]*")), default=-1)
        for kind in ("offsets", "commits")
    )
    if planned == done:
        return "between batches"
    table = folder / f"{way}-{target}"
    known = DeltaTable(str(table)).transactions().values() if version_of(table) >= 0 else ()
    return "after the commit" if any(txn.version == planned for txn in known) else "in a batch"


@pytest.mark.spark
@pytest.mark.e2e
def test_killed_queries_on_spark(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """Each kill ends a source and a sink of both ways at once."""
    rng = random.Random(f"{SEED}:stream-kill")
    met: Counter[str] = Counter()
    end, kills = time.monotonic() + SECONDS, 0
    while kills < KILLS and time.monotonic() < end:
        process = started("tests.support.stream_driver", tmp_path, "run")
        try:
            table = tmp_path / f"{rng.choice(WAYS)}-{rng.choice(['bus', 'copy', 'copy'])}"
            wait_for(table, version_of(table) + rng.randint(1, 2), process, seconds=300)
            time.sleep(2 * rng.random())
        finally:
            is_killed = process.poll() is None
            kills += is_killed
            met["ended by Spark's own time limit"] += not is_killed
            kill(process)
        for way in WAYS:
            met[f"{way} sink, {interrupted(tmp_path, way, 'in', 'bus')}"] += 1
            met[f"{way} source, {interrupted(tmp_path, way, 'out', 'copy')}"] += 1
    # On a busy machine, Spark's own time limit for the start of a Python worker may end this program too.
    codes = [finished("tests.support.stream_driver", tmp_path)]
    while codes[-1] != 0 and len(codes) < 4:
        codes.append(finished("tests.support.stream_driver", tmp_path))
    assert codes[-1] == 0, codes
    versions = {name: version_of(tmp_path / name) + 1 for name in TABLES}
    assert sum(versions.values()) >= kills, versions
    record_property("kills", kills)
    record_property("commits", sum(versions.values()))
    for name, count in sorted(met.items()):
        record_property(name, count)
    for way in WAYS:
        written = values(tmp_path / f"{way}-bus")
        record_property(f"{way} rows", len(written))
        assert written == list(range(len(written))), way
        assert values(tmp_path / f"{way}-copy") == written, way


@pytest.mark.e2e
def test_killed_followers(tmp_path: Path) -> None:
    """The consumer commits its position with the rows, so that it needs no file."""
    rng = random.Random(f"{SEED}:follow-kill")
    bus, copy = tmp_path / "bus", tmp_path / "copy"
    total = 0
    for _ in range(rounds(usual=3, soak=50)):
        for _ in range(rng.randint(2, 6)):
            new = pa.table({"value": pa.array([total, total + 1], pa.int64())})
            write_deltalake(str(bus), new, mode="append")
            total += 2
        process = started("tests.support.follow_driver", tmp_path)
        time.sleep(0.4 + rng.random())
        kill(process)
    last = started("tests.support.follow_driver", tmp_path, "finish")
    assert last.wait(timeout=60) == 0
    assert values(copy) == values(bus) == list(range(total))
