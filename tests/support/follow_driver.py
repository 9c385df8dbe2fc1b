"""A consumer without Spark: `python -m tests.support.follow_driver FOLDER [finish]`, to be killed.

It copies the table `bus` to the table `copy`, and keeps its position in the commits of `copy`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from delta_core import CommitProperties, DeltaTable, write_deltalake

KEY = "position"


def position_of(table: Path) -> str | None:
    """The position in the newest commit of the table."""
    if not DeltaTable.is_deltatable(str(table)):
        return None
    entry = DeltaTable(str(table)).history(1)[0]
    found: str = entry.commit_info.extra[KEY]
    return found


def main(folder: Path, *, wait: bool) -> None:
    target = folder / "copy"
    source = DeltaTable(str(folder / "bus"))
    reader = source.follow(position_of(target), max_files=1, wait=wait, poll_seconds=0.02)
    for batch in reader:
        properties = CommitProperties(custom_metadata={KEY: batch.position.to_json()})
        write_deltalake(str(target), batch.to_table(), mode="append", commit_properties=properties)


if __name__ == "__main__":
    main(Path(sys.argv[1]), wait="finish" not in sys.argv)
