"""This project's `GroupCommit`: many small appends of one process as few commits. Flushes as ever."""

from __future__ import annotations

import pyarrow as pa

from benchmarks.engines.deltaward import create_for_appends
from delta_core import GroupCommit

__all__ = ["append_rows", "create_for_appends"]


def append_rows(uri: str, count: int) -> int:
    """`count` appends of one row each, handed over one after the other; done when each is committed."""
    with GroupCommit(uri) as group:
        outcomes = [group.append(pa.table({"id": pa.array([n], pa.int64())})) for n in range(count)]
        return len([outcome.result() for outcome in outcomes])
