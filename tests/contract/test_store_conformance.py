"""`deltaward store-conformance` against a server of each kind: the honest pass, the others fail readably."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from delta_core.storage.cached import without_cache
from delta_core.storage.open import open_store
from delta_core.storage.webhdfs import WebHdfsLogStore
from tests.support.emulators.installation import require
from tests.support.emulators.places import PLACES, Place, unsafe_s3_place
from tests.support.repository import ROOT
from tests.support.soak import SEED, SOAKING

pytestmark = [pytest.mark.extra]

SECONDS = 3000
"""Ten times what the command gives itself: a slow minute is no fault of a store."""
WRITERS = 2


QUICK = ("s3",)
OTHERS = sorted(name for name in PLACES if name not in QUICK)
# Each of the others takes a minute or two: one is drawn for each run, and a soak takes them all.
DRAWN = OTHERS if SOAKING else [random.Random(SEED).choice(OTHERS)]


@pytest.fixture(
    scope="module", params=[*QUICK, *(pytest.param(name, marks=pytest.mark.soak) for name in DRAWN)]
)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    opener, servers = PLACES[request.param]
    for server in servers:
        require(server)
    with opener(tmp_path_factory.mktemp("place")) as opened:
        yield opened


def _certify(place: Place, folder: Path) -> tuple[subprocess.CompletedProcess[str], dict[str, object], str]:
    """The command with its options in a file; what it printed and reported."""
    options = folder / "options.json"
    options.write_text(json.dumps(dict(place.options)))
    report = folder / "report.json"
    program = "import sys; from delta_core.cli.app import main; sys.exit(main())"
    arguments = ["--options", str(options), "--report", str(report), "--writers", str(WRITERS)]
    arguments += ["--max-seconds", str(SECONDS)]
    answer = subprocess.run(
        [sys.executable, "-c", program, "store-conformance", f"{place.base}/below", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    text = answer.stdout + answer.stderr + report.read_text()
    return answer, json.loads(report.read_text()), text


def _require_no_secret(place: Place, text: str) -> None:
    names = ("AWS_SECRET_ACCESS_KEY", "account_key", "service_account_key")
    secrets = [place.options[name] for name in names if name in place.options]
    assert not [secret for secret in secrets if secret in text]


def test_an_honest_store_is_certified(place: Place, tmp_path: Path) -> None:
    answer, report, text = _certify(place, tmp_path)
    assert answer.returncode == 0, text
    assert report["verdict"] == f"SAFE for {WRITERS} concurrent writers"
    _require_no_secret(place, text)
    above = open_store(place.base, storage_options=place.options)
    assert list(above.walk()) == []
    store = without_cache(above)
    # A directory that the URL names, and that was made for it, may stay; it is empty.
    assert not isinstance(store, WebHdfsLogStore) or set(store.unlisted_paths()) <= {"below"}
    if place.name == "local":
        assert not Path(place.base, "below").exists()


def test_a_server_that_ignores_preconditions_fails_readably(tmp_path: Path) -> None:
    require("s3rver")
    with unsafe_s3_place(tmp_path / "server") as unsafe:
        answer, report, text = _certify(unsafe, tmp_path)
        left = list(open_store(unsafe.base, storage_options=unsafe.options).walk())
    assert answer.returncode == 1, text
    assert report["verdict"] == "NOT SAFE for concurrent writers; fails: preconditions"
    shown = answer.stdout
    assert "A name is created once: FAILED" in shown
    assert "problem: The store of 's3://tables/below/deltaward-conformance-" in shown
    assert "cause:   The store ignores the precondition of create-only writes" in shown
    assert "fix:     Use a store that honours If-None-Match" in shown
    assert shown.rstrip().endswith("NOT SAFE for concurrent writers; fails: preconditions")
    assert left == []
    _require_no_secret(unsafe, text)
