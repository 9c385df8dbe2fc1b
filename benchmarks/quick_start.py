"""How long a process takes that only begins: the import, the command's help, a first predicate.

    python -m benchmarks.quick_start [--rounds 7] [--output benchmarks/results/bench-quick-start.json]

Whole processes, with their bytecode there, one after the other in each round. What counts is the median's
multiple of `python -c "import pyarrow"`, which every reader of tables in Python pays.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa

from delta_core import write_deltalake

RESULT = Path(__file__).parent / "results" / "bench-quick-start.json"
BASE = "import pyarrow"
MOST = {"import DeltaTable": 2.5, "deltaward --help": 2.5, "open and one string predicate": 3.8}
"""The limits of these processes, as multiples of the base."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        table = f"{scratch}/table"
        write_deltalake(table, pa.table({"id": list(range(100)), "city": ["Aarhus", "Bergen"] * 50}))
        seconds = measured(commands(table), rounds=options.rounds)
    base = seconds[BASE]
    multiples = {name: round(taken / base, 2) for name, taken in seconds.items()}
    report = {
        "command": "python -m benchmarks.quick_start",
        "rounds": options.rounds,
        "machine": {
            "cores": os.cpu_count(),
            "system": platform.system(),
            "python": platform.python_version(),
        },
        "base_seconds": round(base, 3),
        "multiples": multiples,
        "at_most": MOST,
    }
    options.output.write_text(json.dumps(report, indent=2) + "\n")
    for name, multiple in multiples.items():
        print(f"{name:40}{multiple:6.2f}   {f'at most {MOST[name]}' if name in MOST else ''}")
    return 0 if all(multiples[name] <= most for name, most in MOST.items()) else 1


def commands(table: str) -> dict[str, list[str]]:
    python = sys.executable
    matching = """to_pyarrow_table(filters="city = 'Aarhus'").num_rows == 50"""
    return {
        BASE: [python, "-c", BASE],
        "import DeltaTable": [python, "-c", "from delta_core import DeltaTable"],
        "deltaward --help": [str(Path(python).with_name("deltaward")), "--help"],
        "open and one string predicate": [
            *(python, "-c"),
            f"from delta_core import DeltaTable; assert DeltaTable({table!r}).{matching}",
        ],
        "deltalake: import DeltaTable": [python, "-c", "from deltalake import DeltaTable"],
    }


def measured(wanted: dict[str, list[str]], *, rounds: int) -> dict[str, float]:
    """The median seconds of each command; one more round comes first and is not counted."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    taken: dict[str, list[float]] = {name: [] for name in wanted}
    for number in range(rounds + 1):
        for name, command in wanted.items():
            began = time.perf_counter()
            subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
            if number:
                taken[name].append(time.perf_counter() - began)
    return {name: statistics.median(times) for name, times in taken.items()}


if __name__ == "__main__":
    sys.exit(main())
