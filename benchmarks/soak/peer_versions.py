"""DuckDB 2 and polars 2 on tables that we write, each in an environment of its own with the wheel.

    nice python benchmarks/soak/peer_versions.py

DuckDB's delta extension is for one version of DuckDB, so DuckDB 2 gets our rows over Arrow, as a reader of
record batches, and reads the Parquet files that a snapshot names; each query's answer is held against
pyarrow's. Asks whether the extension can be had beside DuckDB 2. polars reads every version and writes a
table that we read. Writes `benchmarks/results/soak-peer-versions.json`; exits with 1 when something failed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

from tests.support.clean_environment import (  # noqa: E402 - a program
    CommandError,
    build_wheel,
    make_environment,
    run,
    users_shell,
    version_of,
)
from tests.support.soak_report import report_head  # noqa: E402

RESULT = REPOSITORY / "benchmarks" / "results" / "soak-peer-versions.json"
PROGRAM = REPOSITORY / "tests" / "support" / "peer_programs.py"
PEERS = {"duckdb": ["duckdb>=2,<3"], "polars": ["polars>=2,<3", "deltalake>=1.6"]}
FREE = ("duckdb", "duckdb-extension-delta", "polars", "polars-runtime-32")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="deltaward-soak-") as scratch:
        wheel = build_wheel(Path(scratch))
        peers = {name: try_peer(name, wheel, Path(scratch) / name) for name in PEERS}
    report = {
        **report_head("peer-versions", seed=None, seconds=time.monotonic() - began),
        "failed": sum("error" in outcome for outcome in peers.values()),
        "peers": peers,
    }
    options.output.write_text(json.dumps(report, indent=2) + "\n")
    print(f"{options.output.name}: {report['failed']} of {len(peers)} peers failed")
    return 1 if report["failed"] else 0


def try_peer(name: str, wheel: Path, folder: Path) -> dict[str, Any]:
    """What the peer's part of the program says, run where nothing of the checkout is."""
    folder.mkdir()
    outcome: dict[str, Any] = {}
    try:
        python = make_environment(folder, [str(wheel), *PEERS[name]], free=FREE)
        outcome["version"] = version_of(python, name)
        program = folder / "program.py"
        program.write_bytes(PROGRAM.read_bytes())
        printed = run([str(python), str(program), name], cwd=folder, environment=users_shell(folder))
        outcome["checks"] = json.loads(printed.splitlines()[-1])
    except Exception as error:
        outcome["error"] = f"{type(error).__name__}: {error}"[:3000]
    if name == "duckdb":
        outcome["delta_extension"] = extension_beside(folder / "extension", PEERS[name])
    return outcome


def extension_beside(folder: Path, wanted: list[str]) -> str:
    """Whether PyPI has DuckDB's delta extension for the version; the resolver's words when not."""
    folder.mkdir()
    try:
        # Older ones than 1.1 ask for any DuckDB and have no extension in them.
        make_environment(folder, [*wanted, "duckdb-extension-delta>=1.1"], free=FREE)
    except CommandError as error:
        return " ".join(str(error).split())[-400:]
    return "can be had"


if __name__ == "__main__":
    sys.exit(main())
