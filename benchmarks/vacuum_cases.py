"""VACUUM of 100,000 files that no version names, in one folder and in a hundred: a dry run, and deletions.

Each run has a table of its own. The peer's `full=True` asks for such files; ours always looks for them.
"""

from __future__ import annotations

import os
import uuid
from functools import partial
from pathlib import Path

from benchmarks.contestant import Contestant, Timing

FILES = 100_000
FOLDERS = {"flat": 1, "folders": 100}


def run_vacuum(layout: str, deletes: bool, contestant: Contestant, cache: Path, scratch: Path) -> Timing:
    """Vacuum the table; how many files the engine names, and how many are left, is checked."""
    table = scratch / "vacuum"
    contestant.time("create_for_appends", uri=str(table))
    write_orphans(table, folders=FOLDERS[layout])
    # Orphans are old. Otherwise the first flush of a commit would wait for what this preparation wrote.
    os.sync()
    timing = contestant.time("vacuum", uri=str(table), deletes=deletes)
    left = sum(name.startswith("orphan-") for _, _, names in os.walk(table) for name in names)
    if (timing.value, left) != (FILES, 0 if deletes else FILES):
        raise AssertionError(f"{contestant.engine} named {timing.value} files and left {left}")
    return timing


def write_orphans(table: Path, *, folders: int, files: int = FILES) -> None:
    """Files as a writer names them, of one byte each."""
    for folder in range(folders):
        directory = str(table) if folders == 1 else f"{table}/day={folder:03}"
        os.makedirs(directory, exist_ok=True)
        for number in range(folder, files, folders):
            # The objects of pathlib and io would take most of the time of a case.
            name = f"{directory}/orphan-{number:06}-{uuid.UUID(int=number)}-c000.snappy.parquet"
            file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            os.write(file, b"x")
            os.close(file)


VACUUM_RUNS = {
    f"vacuum-{'delete' if deletes else 'dry-run'}-{layout}": (
        partial(run_vacuum, layout, deletes),
        f"VACUUM of {FILES:,} files that no version names, in {folders} "
        f"folder{'s' if folders > 1 else ''}, "
        + ("each deleted; ours flushes its two commits" if deletes else "a dry run"),
    )
    for layout, folders in FOLDERS.items()
    for deletes in (False, True)
}
"""Case name -> (run, note)."""
