"""Puts a named fault into every process that finds this folder on PYTHONPATH.

`DELTAWARD_TEST_FAULT` names the fault, which comes in when the module of its function is imported. Where
`DELTAWARD_TEST_FAULT_SEEN` names a file, each process that has the fault writes a line there.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def _begin(name: str) -> None:
    root = str(Path(__file__).resolve().parents[3])
    sys.path.insert(0, root)
    try:
        from tests.faults.apply import put_in_when_imported
        from tests.faults.table import FAULTS
    finally:
        sys.path.remove(root)
    put_in_when_imported(FAULTS[name], lambda: _note(name))


def _note(name: str) -> None:
    seen = os.environ.get("DELTAWARD_TEST_FAULT_SEEN")
    if seen:
        with Path(seen).open("a") as file:
            file.write(f"{os.getpid()} {name}\n")


if "DELTAWARD_TEST_FAULT" in os.environ:
    _begin(os.environ["DELTAWARD_TEST_FAULT"])
