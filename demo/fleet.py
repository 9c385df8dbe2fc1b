"""`make demo-fleet`: generate a fleet of sick tables, maintain it, and write an HTML report."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import yaml

from demo.fleet_tables import make_fleet
from demo.layout import DEFAULT_HOME, OWN_MARK


def main() -> int:
    """Run the demonstration. The exit code is that of the first command that failed."""
    parser = argparse.ArgumentParser(prog="python -m demo.fleet", description=__doc__)
    parser.add_argument(
        "--home", type=Path, default=DEFAULT_HOME / "fleet", help="the directory for all files"
    )
    parser.add_argument("--tables", type=int, default=200, help="number of tables")
    options = parser.parse_args()
    home: Path = options.home.resolve()
    if home.exists() and any(home.iterdir()) and not (home / OWN_MARK).exists():
        print(f"{home} is not empty and was not made by this demonstration.", file=sys.stderr)
        return 2
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    (home / OWN_MARK).touch()
    began = time.monotonic()
    made = make_fleet(home / "lake", tables=options.tables, files=20)
    kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(t.kind for t in made).most_common())
    print(f"Made {len(made)} tables in {time.monotonic() - began:.0f} s: {kinds}.")
    policies = {
        "defaults": {
            "compaction": {"min_small_files": 4},
            "checkpoint": {"interval": 10},
            "vacuum": {"dry_run": False, "min_bytes": 1},
        },
        "fleet": {"control_root": str(home / "control"), "prefixes": [{"uri": str(home / "lake")}]},
    }
    (home / "policies.yaml").write_text(yaml.safe_dump(policies, sort_keys=False))
    report = home / "report.html"
    for command in (
        ("status", "--worst", "8"),
        ("apply", "--json"),
        ("status", "--worst", "8"),
        ("report",),
        ("report", "--html", str(report)),
    ):
        print(f"\n$ deltaward fleet {' '.join(command)}", flush=True)
        code = _deltaward(home, *command)
        if code:
            return code
    print(f"\nThe report is {report} ({report.stat().st_size / 1024:.0f} KiB).")
    return 0


def _deltaward(home: Path, command: str, *arguments: str) -> int:
    output = subprocess.DEVNULL if "--json" in arguments else None
    program = (sys.executable, "-c", "from delta_core.cli.app import main; main()", "fleet", command)
    done = subprocess.run(
        [*program, "--policies", str(home / "policies.yaml"), *arguments], stdout=output, check=False
    )
    return done.returncode


if __name__ == "__main__":
    raise SystemExit(main())
