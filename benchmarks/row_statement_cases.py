"""DELETE, UPDATE and MERGE of few rows everywhere in lineitem SF1: by vectors, and by rewriting.

The peer rewrites in both: it writes no deletion vectors.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks import data, merge_data
from benchmarks.contestant import Contestant, Timing

FILES = 8
_OURS = ("deltaward", "deltaward_spark")
# Keys of parts are spread over all files and row groups: one of a hundred is at most 2,000 of 200,000.
PREDICATE = "l_partkey <= 2000"


def run_statement(statement: str, dvs: bool, contestant: Contestant, cache: Path, scratch: Path) -> Timing:
    """Open the table and run a statement; the number of rows that it changed is checked."""
    source = data.lineitem_table(cache, files=FILES)
    table = data.clone(source, scratch / statement)
    if dvs and contestant.engine in _OURS:
        contestant.time("enable_deletion_vectors", uri=str(table))
    timing = contestant.time(statement, uri=str(table), predicate=PREDICATE)
    keys = pq.read_table(source, columns=["l_partkey"])["l_partkey"]
    expected = pc.sum(pc.less_equal(keys, 2000)).as_py()
    if timing.value != expected:
        raise AssertionError(f"{contestant.engine} changed {timing.value} rows, not {expected}")
    return timing


def run_merge(dvs: bool, contestant: Contestant, cache: Path, scratch: Path) -> Timing:
    """Open the table and merge by `*` clauses; the numbers of rows are checked. The source is read, too."""
    table = data.clone(merge_data.merge_target(cache), scratch / "merge")
    source = merge_data.merge_source(cache)
    if dvs and contestant.engine in _OURS:
        contestant.time("enable_deletion_vectors", uri=str(table))
    timing = contestant.time("merge", uri=str(table), source=str(source), on=merge_data.ON)
    if timing.value != [merge_data.UPDATES, merge_data.INSERTS]:
        raise AssertionError(f"{contestant.engine} updated and inserted {timing.value} rows")
    return timing


ROW_STATEMENT_RUNS = {
    f"{name}-1-percent-{'dvs' if dvs else 'rewriting'}": (
        partial(run_statement, f"{name}_rows", dvs),
        f"{name.upper()} of 1 % of lineitem SF1 in {FILES} files, ours by "
        + ("deletion vectors; the peer rewrites" if dvs else "rewriting, too"),
    )
    for name in ("delete", "update")
    for dvs in (True, False)
} | {
    f"merge-120k-into-6m-{'dvs' if dvs else 'rewriting'}": (
        partial(run_merge, dvs),
        f"60,000 updates and 60,000 inserts by `*` clauses into lineitem SF1 in {FILES} files, ours by "
        + ("deletion vectors; the peer rewrites" if dvs else "rewriting, too"),
    )
    for dvs in (True, False)
}
"""Case name -> (run, note)."""

SPARK_STATEMENT_RUNS = {
    name.replace("-dvs", "-spark-dvs"): run
    for name, run in ROW_STATEMENT_RUNS.items()
    if name.endswith("-dvs")
}
"""The cases with deletion vectors, for statements on Spark."""
