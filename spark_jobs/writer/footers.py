"""The `add` actions of written Parquet files, from their footers."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.parquet as pq

from delta_core.actions import AddFile
from delta_core.data.statistics_collector import (
    FileStatistics,
    StatisticsAccumulator,
    statistics_of_leaves,
)
from delta_core.data.steps.physical import PhysicalStep
from delta_core.data.write_plan import WritePlan
from delta_core.execution.executor import Executor, JsonObject
from delta_core.schema.types import STRING, VARIANT, ArrayType, MapType
from delta_core.storage import encode_data_path
from delta_core.storage.task_stores import task_store
from delta_core.table_features.stats_leaves import StatsLeaf
from spark_jobs.writer.written_files import WrittenFile


def describe_file(task: JsonObject) -> JsonObject:
    """Read row count and statistics of one file from its footer. One small read.

    A footer lacks the null counts of arrays, maps and variants, and the bounds of long strings. For these
    columns, the file's rows are read.

    Args:
        task: `{table_uri, path, plan}`, with the write plan as JSON.

    Returns:
        `{rows, stats}`.
    """
    store = task_store(task["table_uri"])
    with store.open_input(task["path"]) as source:
        plan = WritePlan.from_json(task["plan"])
        leaves = PhysicalStep(plan).leaves(plan.properties)
        file = pq.ParquetFile(source)
        found = statistics_of_leaves(file.metadata, leaves)
        missing = [leaf for leaf in leaves if _is_missing(leaf, found)]
        if missing and found.num_records:
            rows = StatisticsAccumulator(missing)
            columns = sorted({leaf.path[0] for leaf in missing})
            for batch in file.iter_batches(columns=columns):
                rows.update(batch)
            found = found.with_columns(rows.found())
    return {"rows": found.num_records, "stats": found.to_json()}


def describe_files(
    executor: Executor, files: Sequence[WrittenFile], *, table_uri: str, plan: WritePlan
) -> tuple[list[AddFile], int, list[str]]:
    """The `add` actions of the files that a job wrote.

    Returns:
        The actions, their total number of rows, and the paths of files without rows, which have no action.
    """
    common = {"table_uri": table_uri, "plan": plan.to_json()}
    tasks = [{**common, "path": file.path} for file in files]
    adds: list[AddFile | None] = [None] * len(files)
    empty: list[str] = []
    rows = 0
    for index, result in executor.map(describe_file, tasks):
        file = files[index]
        if result["rows"] == 0:
            empty.append(file.path)
            continue
        rows += result["rows"]
        adds[index] = AddFile(
            path=encode_data_path(file.path),
            partition_values=file.partition_values,
            size_bytes=file.size_bytes,
            modification_time_ms=file.modified_ms,
            data_change=True,
            stats=result["stats"],
        )
    return [add for add in adds if add is not None], rows, empty


def reads_rows(plan: WritePlan) -> bool:
    """Whether `describe_file` reads rows of every file."""
    return any(_has_no_footer(leaf) for leaf in PhysicalStep(plan).leaves(plan.properties))


def _has_no_footer(leaf: StatsLeaf) -> bool:
    return leaf.data_type == VARIANT or isinstance(leaf.data_type, ArrayType | MapType)


def _is_missing(leaf: StatsLeaf, found: FileStatistics) -> bool:
    if _has_no_footer(leaf):
        return True
    is_null = found.null_counts.get(leaf.path) == found.num_records
    return leaf.data_type == STRING and not is_null and leaf.path not in found.maximums
