"""Processes that append to one table through a proxy that disturbs a tenth of their requests.

What they were told is held against the log's bytes, read from the server itself: each append that was
acknowledged is in exactly one version, no version is missing, and no append remains of which nobody knows.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable as PeerTable

from delta_core import write_deltalake
from delta_core.storage.open import open_store
from tests.support.emulators.installation import require
from tests.support.emulators.places import PLACES, Place
from tests.support.fault_plan import RandomFaults
from tests.support.fault_proxy import FaultProxy
from tests.support.repository import ROOT, import_path
from tests.support.soak import SEED, SOAKING

pytestmark = [pytest.mark.extra]

WORKER = Path(__file__).parent / "appending_worker.py"
WRITERS, APPENDS = (32, 500) if SOAKING else (4, 10)
STORES = ["local", "s3"] if SOAKING else list(PLACES)
FAULT_RATE = 0.1


@pytest.fixture(scope="module", params=STORES)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    opener, servers = PLACES[request.param]
    for server in servers:
        require(server)
    with opener(tmp_path_factory.mktemp("place")) as opened:
        yield opened


def test_every_acknowledged_append_is_in_exactly_one_version(
    place: Place, record_property: Callable[[str, object], None]
) -> None:
    uri = place.new_table()
    empty = pa.table({"writer": pa.array([], pa.int64()), "number": pa.array([], pa.int64())})
    write_deltalake(uri, empty, storage_options=dict(place.options))
    with ExitStack() as stack:
        options = dict(place.options)
        faults = 0
        if place.endpoint is not None:
            proxy = stack.enter_context(FaultProxy(place.endpoint, hang_seconds=1.0))
            proxy.inject(RandomFaults(seed=SEED, rate=FAULT_RATE))
            options = place.through(proxy.endpoint)
        told = _run_writers(uri, options)
        if place.endpoint is not None:
            faults = sum(request.fault is not None for request in proxy.requests)
            assert faults > len(proxy.requests) * FAULT_RATE / 2

    versions = _versions_of_keys(place, uri)
    wanted = {(f"writer-{writer}", number) for writer in range(WRITERS) for number in range(APPENDS)}
    assert set(versions) == wanted
    assert {key: found for key, found in versions.items() if len(found) != 1} == {}
    for writer, appends in enumerate(told):
        for number, append in enumerate(appends):
            (landed,) = versions[f"writer-{writer}", number]
            # A key that was there already is reported with the newest version that shows it.
            assert append["version"] >= landed if append["how"] == "already applied" else landed
            if append["how"] != "already applied":
                assert append["version"] == landed
    rows = _rows(place, uri)
    assert Counter(rows) == Counter((w, n) for w in range(WRITERS) for n in range(APPENDS))
    hows = Counter(append["how"] for appends in told for append in appends)
    again = sum(append["runs"] - 1 for appends in told for append in appends)
    for name, found in {**hows, "runs again": again, "faults": faults}.items():
        record_property(name, found)
    print(f"{place.name}: {dict(hows)}, {again} runs again, {faults} faults, seed {SEED}")


def _run_writers(uri: str, options: dict[str, str]) -> list[list[dict[str, Any]]]:
    with ExitStack() as stack:
        processes = []
        for writer in range(WRITERS):
            request = {"uri": uri, "options": options, "writer": writer, "appends": APPENDS}
            processes.append(
                stack.enter_context(
                    subprocess.Popen(
                        [sys.executable, str(WORKER), json.dumps(request)],
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        text=True,
                        cwd=ROOT,
                        env={**os.environ, "PYTHONPATH": import_path(), "DELTAWARD_CACHE_BYTES": "0"},
                    )
                )
            )
            stack.callback(processes[-1].kill)
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        found = []
        for process in processes:
            output, _ = process.communicate()
            assert process.returncode == 0, output
            found.append(json.loads(output))
        return found


def _versions_of_keys(place: Place, uri: str) -> dict[tuple[str, int], list[int]]:
    """From the commits' bytes, none of which may be missing."""
    store = open_store(uri, storage_options=place.options)
    names = [info.path for info in store.list_directory("_delta_log", start_after="0")]
    commits = [name for name in names if name.endswith(".json") and name.split("/")[1][:20].isdigit()]
    assert commits == [f"_delta_log/{version:020d}.json" for version in range(len(commits))]
    versions: dict[tuple[str, int], list[int]] = {}
    ids = []
    for version, path in enumerate(commits):
        for line in store.read(path).splitlines():
            action = json.loads(line)
            if "txn" in action:
                key = action["txn"]["appId"], action["txn"]["version"]
                versions.setdefault(key, []).append(version)
            if "commitInfo" in action:
                ids.append(action["commitInfo"]["txnId"])
    assert len(set(ids)) == len(ids) == len(commits)
    return versions


def _rows(place: Place, uri: str) -> list[tuple[int, int]]:
    """By another library where it speaks to the server."""
    if place.name in ("local", "s3"):
        options = {name: value for name, value in place.options.items() if name.startswith("AWS_")}
        table = PeerTable(uri, storage_options=options).to_pyarrow_table()
    else:
        from delta_core import DeltaTable

        table = DeltaTable(uri, storage_options=dict(place.options)).to_pyarrow_table()
    return list(zip(table["writer"].to_pylist(), table["number"].to_pylist(), strict=True))
