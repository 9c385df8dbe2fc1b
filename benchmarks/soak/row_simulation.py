"""100,000 simulated histories of a table with deletion vectors: `simulation.py --rows`.

    nice python benchmarks/soak/row_simulation.py [the arguments of simulation.py]

Writes `benchmarks/results/soak-row-simulation.json`; exits 1 on a violation.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.soak.simulation import main

if __name__ == "__main__":
    sys.exit(main(["--rows", "--histories", "100000", *sys.argv[1:]]))
