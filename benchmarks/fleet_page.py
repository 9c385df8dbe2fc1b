"""`python -m benchmarks.fleet_page`: `fleet status` and `fleet report --html` on a ledger of 5,000 tables.

The rows are those of a few generated tables, repeated under other names. The page is opened in Chromium in a
network namespace without a network, and its numbers are compared with the ledger as deltalake reads it.
Chromium is Debian's package `chromium`. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from statistics import median
from typing import Any

import deltalake

from delta_core.fleet.apply import Application, apply_plan
from delta_core.fleet.control import Control
from delta_core.fleet.ledger import Ledger
from delta_core.fleet.registry import registry
from delta_core.policies.load import load_policies
from demo.fleet_tables import make_fleet
from tests.support.repository import ROOT

_REAL = 50


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--directory", type=Path, default=None)
    parser.add_argument("--without-browser", action="store_true")
    options = parser.parse_args()
    result = measure(
        tables=options.tables,
        rounds=options.rounds,
        browser=not options.without_browser,
        directory=options.directory,
    )
    print(json.dumps(result, indent=2))
    return 0 if result["equal"] else 1


def measure(*, tables: int, rounds: int, browser: bool, directory: Path | None = None) -> dict[str, Any]:
    """The seconds of `fleet status`, the size of the page, and whether its numbers are the ledger's."""
    root = Path(tempfile.mkdtemp(prefix="fleet-page-", dir=directory))
    try:
        policies = _ledger(root, tables)
        before = _cpu_of_children()
        walls = [_deltaward(root, policies, "status")[0] for _ in range(rounds)]
        cpu = (_cpu_of_children() - before) / rounds
        page = root / "report.html"
        seconds, _ = _deltaward(root, policies, "report", "--html", str(page))
        shown = _opened(page) if browser else page.read_text()
        differences = compare(shown, root / "control")
        return {
            "tables": tables,
            "status_seconds": {"median": round(median(walls), 2), "most": round(max(walls), 2)},
            "status_cpu_seconds": round(cpu, 2),
            "report_seconds": round(seconds, 2),
            "page_bytes": page.stat().st_size,
            "opened_in": _version() if browser else None,
            "differences": differences,
            "equal": not differences,
        }
    finally:
        shutil.rmtree(root, ignore_errors=True)


def compare(page: str, control_root: Path) -> list[str]:
    """The numbers of a page that differ from the ledger's tables as deltalake reads them."""
    ledger = control_root / "ledger"
    rows = deltalake.DeltaTable(str(ledger / "fleet")).to_pyarrow_table().to_pylist()
    runs = deltalake.DeltaTable(str(ledger / "runs")).to_pyarrow_table().to_pylist()
    newest = max(runs, key=lambda row: row["started_at"])["run_id"]
    runs = [row for row in runs if row["run_id"] == newest]
    parsed = _Page()
    parsed.feed(page)
    done = [row for row in runs if row["outcome"] == "succeeded" and row["verb"] == "optimize"]
    wanted = {
        "tables": len(rows),
        "sick": sum(row["score"] is not None and row["score"] < 80 for row in rows),
        "with something due": sum(bool(row["due"]) for row in rows),
        "circuits open": sum(bool(row["circuit_open"]) for row in rows),
        "files": sum(row["num_files"] or 0 for row in rows),
        "small files": sum(row["small_files"] or 0 for row in rows),
    }
    found = {name: int(parsed.tiles.get(name, "-1")) for name in wanted}
    differences = [
        f"{name}: {found[name]}, not {wanted[name]}" for name in wanted if found[name] != wanted[name]
    ]
    listed = {row[0]: row for row in parsed.tables["All tables"]}
    if len(listed) != len(rows):
        differences.append(f"{len(listed)} tables are listed, not {len(rows)}")
    for row in rows:
        cells = [row["name"], str(row["score"]), str(row["version"]), str(row["num_files"])]
        if listed.get(row["name"], [])[:4] != cells:
            differences.append(f"{row['name']}: {listed.get(row['name'])}, not {cells}")
    verbs = {row[0]: row for row in parsed.tables["This run"]}
    cells = ["optimize", str(len(done))]
    files = [str(sum(row["actual_files"] for row in done)), str(sum(row["predicted_files"] for row in done))]
    if verbs["optimize"][:2] + verbs["optimize"][4:6] != cells + files:
        differences.append(f"optimize: {verbs['optimize']}, not {cells + files}")
    return differences[:20]


class _Page(HTMLParser):
    """The tiles of a report by name, and the rows of its tables by heading. End tags may be left out."""

    def __init__(self) -> None:
        super().__init__()
        self.tiles: dict[str, str] = {}
        self.tables: dict[str, list[list[str]]] = {}
        self._heading = ""
        self._number = ""
        self._row: list[str] = []
        self._open = ""
        self._words: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self._close()
        self._open = tag
        if tag == "tr":
            self._row = []

    def handle_endtag(self, tag: str) -> None:
        self._close()
        self._open = "li" if tag == "b" else ""
        if tag == "tr" and self._row:
            self.tables.setdefault(self._heading, []).append(self._row)
            self._row = []

    def handle_data(self, data: str) -> None:
        self._words.append(data)

    def _close(self) -> None:
        text = "".join(self._words)
        self._words = []
        if self._open == "h2":
            self._heading = text
        elif self._open == "b":
            self._number = text
        elif self._open == "li" and not self._heading:
            self.tiles[text] = self._number
        elif self._open == "td":
            self._row.append(text)
        self._open = ""


def _ledger(root: Path, tables: int) -> Path:
    """A ledger whose rows are those of a few tables, repeated; the path of its policy file."""
    make_fleet(root / "lake", tables=_REAL, files=12, seed=18)
    policies = root / "policies.yaml"
    policies.write_text(
        "defaults: {compaction: {min_small_files: 4}, vacuum: {dry_run: false, min_bytes: 1}}\n"
        f"fleet: {{control_root: {root}/control, prefixes: [{{uri: {root}/lake}}]}}\n"
    )
    control = Control(
        registry=registry(load_policies(policies)), ledger=Ledger(control_root=f"{root}/control")
    )
    rows = control.refresh(run_id="page")
    plan = control.plan(rows, run_id="page")
    runs = list(apply_plan(plan, Application(ledger=control.ledger)))
    copies = -(-tables // _REAL)
    repeated = [
        {**row, "name": f"{row['name']}_{copy:03d}", "uri": f"{row['uri']}_{copy:03d}"}
        for copy in range(copies)
        for row in rows.values()
    ][:tables]
    older = [
        {**row, "run_id": "an older run", "started_at": row["started_at"] - timedelta(hours=1)}
        for row in runs
    ]
    control.ledger.append("runs", older * copies)
    control.ledger.replace_fleet(repeated)
    return policies


def _deltaward(root: Path, policies: Path, command: str, *arguments: str) -> tuple[float, str]:
    program = [sys.executable, "-c", "from delta_core.cli.app import main; main()", "fleet", command]
    began = time.monotonic()
    done = subprocess.run(
        [*program, "--policies", str(policies), *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    return time.monotonic() - began, done.stdout


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _opened(page: Path) -> str:
    """The page as Chromium has it after loading, without a network."""
    profile = page.parent / "profile"
    browser = [_chromium(), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
    logging = ["--enable-logging=stderr", "--v=0"]
    done = subprocess.run(
        ["unshare", "--net", "--", *browser, *logging, "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    # Pages of the browser's own, which it opens beside this one, miss the network.
    messages = [line for line in re.findall(r".*CONSOLE.*", done.stderr) if "source: chrome://" not in line]
    if messages:
        raise RuntimeError(f"the page has console messages: {messages[:3]}")
    return done.stdout


def _chromium() -> str:
    for name in ("chromium", "chromium-headless-shell", "google-chrome"):
        if found := shutil.which(name):
            return found
    raise RuntimeError("there is no Chromium: apt-get install chromium")


def _version() -> str:
    done = subprocess.run([_chromium(), "--version"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


if __name__ == "__main__":
    raise SystemExit(main())
