"""MERGE on Spark with deletion vectors, beside deltalake and beside delta-spark with deletion vectors."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from benchmarks import data, merge_data
from benchmarks.contestant import Contestant, Timing

_BY_VECTORS = ("deltaward_spark", "delta_spark")


def run_merge(operation: str, contestant: Contestant, cache: Path, scratch: Path) -> Timing:
    """Open the table and merge; the numbers of rows are checked. The source is read, too."""
    table = data.clone(merge_data.merge_target(cache), scratch / "merge")
    source = merge_data.merge_source(cache)
    if contestant.engine in _BY_VECTORS:
        contestant.time("enable_deletion_vectors", uri=str(table))
    timing = contestant.time(operation, uri=str(table), source=str(source), on=merge_data.ON)
    if timing.value != [merge_data.UPDATES, merge_data.INSERTS]:
        raise AssertionError(f"{contestant.engine} updated and inserted {timing.value} rows")
    return timing


SPARK_MERGE_RUNS = {
    "merge-120k-into-6m-spark-vectors": (
        partial(run_merge, "merge"),
        ("delta_spark",),
        "60,000 updates and 60,000 inserts by `*` clauses into lineitem SF1 in 8 files, both by deletion "
        "vectors",
    ),
    "merge-set-120k-into-6m-spark-vectors": (
        partial(run_merge, "merge_set"),
        ("deltalake", "delta_spark"),
        "the same with SET of two columns, one computed from both sides; deltalake rewrites",
    ),
}
"""Case name -> (run, peers, note)."""
