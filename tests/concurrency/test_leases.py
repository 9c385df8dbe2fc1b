"""Processes that race for one lease of a real directory: at no time do two of them have it.

Some stand still for longer than the lease lasts, some are killed. The files are judged as they lie there, and
against the time of the machine, not by the code that wrote them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.support.repository import ROOT, import_path

TTL_SECONDS = 0.4
WORKERS = 4
ENDS_KILLED = 3
HOLDERS_WANTED = 6
LONGEST_SECONDS = 600.0

WORKER = """
import json, os, random, signal, sys, time
from delta_core.errors import LeaseHeldError, LeaseLostError
from delta_core.leases import lease as leases
from delta_core.storage.local import LocalLogStore

leases.FILES_KEPT = 1 << 30  # so that all of them can be judged
root, stop, seed, ttl_seconds, dies = *sys.argv[1:3], *map(float, sys.argv[3:6])
chance = random.Random(seed)
store = LocalLogStore(root)
print("ready", flush=True)
sys.stdin.readline()

def say(what, lease, at):
    print(json.dumps({"what": what, "token": lease._record.token, "at": at}), flush=True)

while not os.path.exists(stop):
    try:
        lease = leases.acquire_lease(store, "race", ttl_seconds=ttl_seconds)
    except LeaseHeldError:
        time.sleep(chance.random() * 0.05)
        continue
    try:
        at = time.time_ns()
        lease.check()
        say("held", lease, at)
        for _ in range(chance.randrange(6)):
            time.sleep(chance.random() * 0.1)
            lease.renew()
            at = time.time_ns()
            lease.check()
            say("held", lease, at)
        end = chance.random()
        if end < 0.15:
            time.sleep(ttl_seconds + 2.2)  # asleep; somebody else has it by now, or nobody has
            at = time.time_ns()
            lease.check()
            say("held", lease, at)
        elif dies and end < 0.3:
            os.kill(os.getpid(), signal.SIGKILL)
        elif end < 0.9:
            lease.release()
    except LeaseLostError:
        say("lost", lease, time.time_ns())
"""


def race(root: Path, stop: Path) -> list[dict[str, Any]]:
    """Let them race until enough of them had it, however busy the machine; what each said of itself."""
    said: list[dict[str, Any]] = []
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                subprocess.Popen(
                    [
                        *(sys.executable, "-c", WORKER, str(root), str(stop), str(number)),
                        *(str(TTL_SECONDS), str(int(number < ENDS_KILLED))),
                    ],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    cwd=ROOT,
                    env={**os.environ, "PYTHONPATH": import_path()},
                )
            )
            for number in range(WORKERS)
        ]
        for process in processes:
            stack.callback(process.kill)
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        until = time.monotonic() + LONGEST_SECONDS
        while time.monotonic() < until and not is_enough(holders(root)):
            time.sleep(0.2)
        stop.touch()
        for number, process in enumerate(processes):
            output, _ = process.communicate(timeout=900)
            assert process.returncode in ((0, -9) if number < ENDS_KILLED else (0,))
            said += [json.loads(line) for line in output.splitlines()]
    return said


def holders(root: Path) -> list[dict[str, Any]]:
    """The lease's files as they lie there, in order, each with its number and time."""
    files = sorted((root / "_deltaward" / "leases" / "race").glob("[0-9]*.json"))
    return [
        {"number": int(file.stem), "at": file.stat().st_mtime_ns, **json.loads(file.read_text())}
        for file in files
    ]


def changes_of(found: list[dict[str, Any]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Neighbours of which the second belongs to another holder than the first."""
    return [(before, after) for before, after in pairwise(found) if before["token"] != after["token"]]


def is_enough(found: list[dict[str, Any]]) -> bool:
    changes = changes_of(found)
    return len(changes) >= HOLDERS_WANTED and any(before["state"] == "held" for before, _ in changes)


def test_one_process_at_a_time_has_the_lease(tmp_path: Path) -> None:
    said = race(tmp_path, tmp_path / "stop")
    found = holders(tmp_path)
    assert [item["number"] for item in found] == list(range(1, len(found) + 1))
    changes = changes_of(found)
    for before, after in changes:
        waited_ms = (after["at"] - before["at"]) / 1e6
        assert before["state"] == "released" or waited_ms >= TTL_SECONDS * 1000
        assert after["fence"] == after["number"]
    tokens = [found[0]["token"], *(after["token"] for _, after in changes)]
    assert len(tokens) == len(set(tokens)), "nobody has it again after another had it"
    assert is_enough(found), "many had it, and at least one took it over"
    # What they were told: whoever passed a check had it just before, when nobody else had yet begun.
    begins = {token: min(item["at"] for item in found if item["token"] == token) for token in tokens}
    for token, following in pairwise(tokens):
        believed = [one["at"] for one in said if one["token"] == token and one["what"] == "held"]
        assert max(believed, default=0) < begins[following]
