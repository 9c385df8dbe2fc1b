"""V2 checkpoints, with sidecars, of tables of ten million files: written, verified, read by another engine.

    nice python benchmarks/soak/large_checkpoint.py [--kind realistic] [--form struct]

Opening the table, writing the checkpoint and reading it back is one process, whose peak memory is held to
2 GiB. DuckDB then reads the sidecars: they must name the files that the older ones and the commits leave,
each once. Writes `benchmarks/results/soak-large-checkpoint.json`; exits 1 when memory or a file is missed.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import duckdb

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

from benchmarks.contestant import Contestant  # noqa: E402 - a program
from benchmarks.large_log import COPIES, large_log  # noqa: E402
from benchmarks.snapshot_log import snapshot_log  # noqa: E402

RESULT = REPOSITORY / "benchmarks" / "results" / "soak-large-checkpoint.json"
MILLION = 1_000_000
MOST_BYTES = 2 << 30
FORMS = {"json": "false", "struct": "true"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=("regular", "realistic"), action="append")
    parser.add_argument("--form", choices=tuple(FORMS), action="append")
    parser.add_argument("--cache", type=Path, default=REPOSITORY / ".bench")
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args()
    runs = []
    for kind in options.kind or ("regular", "realistic"):
        table = large_log(options.cache, kind, snapshot_log(options.cache, kind, files=MILLION))
        for form in options.form or FORMS:
            with tempfile.TemporaryDirectory(dir=options.cache) as scratch:
                runs.append(_checkpointed(table, kind, form, Path(scratch) / "table", options.cache))
            print(json.dumps(runs[-1]), flush=True)
    report = {
        "area": "large-checkpoint",
        "command": "make soak-large-checkpoint",
        "commit": _git("rev-parse", "HEAD"),
        "uncommitted_changes": bool(_git("status", "--porcelain", "--", "delta_core")),
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": {"cores": os.cpu_count(), "platform": platform.platform()},
        "most_bytes": MOST_BYTES,
        "runs": runs,
    }
    options.output.write_text(json.dumps(report, indent=2) + "\n")
    return 0 if all(run["peak_rss_bytes"] <= MOST_BYTES and run["files_equal"] for run in runs) else 1


def _checkpointed(table: Path, kind: str, form: str, copy: Path, cache: Path) -> dict[str, Any]:
    log = copy / "_delta_log"
    (log / "_sidecars").mkdir(parents=True)
    for path in sorted((table / "_delta_log").rglob("*")):
        if path.is_file() and path.name != "_last_checkpoint":
            (log / path.relative_to(table / "_delta_log")).hardlink_to(path)
    version = 1 + max(int(path.stem) for path in log.glob("*.json") if path.stem.isdecimal())
    _ask_for(log, version, form)
    older = {path.name for path in (log / "_sidecars").iterdir()}
    with Contestant("deltaward", log=cache / "workers.log") as contestant:
        timing = contestant.time("write_checkpoint", uri=str(copy))
    newer = sorted({path.name for path in (log / "_sidecars").iterdir()} - older)
    if timing.value != version or not newer:
        raise AssertionError(f"no V2 checkpoint of version {version} was written")
    # In another process: what a parent has at most counts for the processes that it starts later.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        left_over, expected, files = pool.submit(_compared, log, sorted(older), newer).result()
    return {
        "kind": kind,
        "form": form,
        "files": files,
        "files_equal": left_over == 0 and expected == files and files > (COPIES * MILLION) // 2,
        "sidecars": len(newer),
        "bytes": sum((log / "_sidecars" / name).stat().st_size for name in newer),
        "seconds": round(timing.seconds, 1),
        "peak_rss_bytes": timing.peak_rss_bytes,
    }


def _ask_for(log: Path, version: int, form: str) -> None:
    """A commit by which the table asks for V2 checkpoints, with a form of statistics."""
    (manifest,) = log.glob("*.checkpoint.*.json")
    lines = [json.loads(line) for line in manifest.read_text().splitlines()]
    metadata = next(line["metaData"] for line in lines if "metaData" in line)
    metadata["configuration"] |= {
        "delta.checkpointPolicy": "v2",
        "delta.checkpoint.writeStatsAsStruct": FORMS[form],
    }
    actions = [{"commitInfo": {"operation": "SET TBLPROPERTIES"}}, {"metaData": metadata}]
    (log / f"{version:020}.json").write_text("".join(json.dumps(action) + "\n" for action in actions))


def _compared(log: Path, older: list[str], newer: list[str]) -> tuple[int, int, int]:
    """How many files either side names alone, or not as often; then how many each names."""
    added, removed = set(), set()
    # Commits behind the older checkpoint name each file once; the last word on a file counts.
    for commit in sorted(path for path in log.glob("*.json") if path.stem.isdecimal()):
        for line in commit.read_text().splitlines():
            action = json.loads(line)
            for kind, here, there in (("add", added, removed), ("remove", removed, added)):
                if kind in action:
                    here.add(action[kind]["path"])
                    there.discard(action[kind]["path"])
    later = [(path, True) for path in added] + [(path, False) for path in removed]
    config = {"memory_limit": "6GB", "temp_directory": str(log.parent / "duckdb")}
    with duckdb.connect(config=config) as database:
        database.execute("SET enable_progress_bar = false")
        for name, files in (("older", older), ("newer", newer)):
            database.execute(
                f"CREATE TABLE {name} AS "
                "SELECT add.path AS path FROM read_parquet(?) WHERE add.path IS NOT NULL",
                [[str(log / "_sidecars" / file) for file in files]],
            )
        database.execute("CREATE TABLE later (path VARCHAR, added BOOLEAN)")
        database.executemany("INSERT INTO later VALUES (?, ?)", later)
        database.execute(
            "CREATE TABLE expected AS SELECT path FROM older ANTI JOIN later USING (path) "
            "UNION ALL SELECT path FROM later WHERE added"
        )
        counts = [
            database.execute(f"SELECT count(*) FROM {query}").fetchall()[0][0]
            for query in (
                "(SELECT path FROM expected EXCEPT ALL SELECT path FROM newer)",
                "expected",
                "newer",
            )
        ]
    return counts[0], counts[1], counts[2]


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
