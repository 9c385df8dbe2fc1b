"""Streams and the data source on Spark Connect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from spark_jobs.connect_server import ConnectServer
from tests.support.repository import ROOT
from tests.support.spark import FEW_PARTITIONS


@pytest.mark.spark
@pytest.mark.e2e
def test_streams_on_connect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The server's own Python has the packages, as docs/streaming.md asks for.
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{ROOT / 'plugins'}")
    with ConnectServer.start(master="local[2]", conf=FEW_PARTITIONS, directory=tmp_path / "server") as server:
        done = subprocess.run(
            [sys.executable, "-m", "tests.support.stream_connect", server.url, str(tmp_path)],
            cwd=ROOT, capture_output=True, text=True, check=False, timeout=600,
            env=dict(os.environ),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-4000:] + server.log_path.read_text()[-4000:]
    every = list(range(30))
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["is_connect"]
    assert found["bus"] == [every, 1]
    assert found["copy"] == every
    assert found["source"] == every
    assert found["filtered"] == [6, 7]
    (pin,) = (tmp_path / "bus" / "_deltaward" / "pins" / "streams").iterdir()
    assert pin.name == "copy"
