"""The `add` actions of written Parquet files, from their footers."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.parquet as pq

from delta_core.actions import AddFile
from delta_core.data.statistics_collector import statistics_from_footer
from delta_core.execution.executor import Executor, JsonObject
from delta_core.schema.json import schema_from_json, schema_to_json
from delta_core.schema.types import StructType
from delta_core.storage import encode_data_path
from delta_core.storage.task_stores import task_store
from delta_core.table_features.table_properties import TableProperties
from spark_jobs.writer.written_files import WrittenFile


def describe_file(task: JsonObject) -> JsonObject:
    """Read row count and statistics of one file from its footer. One small read.

    Args:
        task: `{table_uri, path, schema, partition_columns, configuration}`.

    Returns:
        `{rows, stats}`.
    """
    store = task_store(task["table_uri"])
    with store.open_input(task["path"]) as source:
        metadata = pq.read_metadata(source)
    stats = statistics_from_footer(
        metadata,
        schema_from_json(task["schema"]),
        TableProperties.of(task["configuration"]),
        partition_columns=tuple(task["partition_columns"]),
    )
    return {"rows": metadata.num_rows, "stats": stats}


def describe_files(
    executor: Executor,
    files: Sequence[WrittenFile],
    *,
    table_uri: str,
    schema: StructType,
    partition_columns: Sequence[str],
    configuration: dict[str, str],
) -> tuple[list[AddFile], int, list[str]]:
    """The `add` actions of the files that a job wrote.

    Returns:
        The actions, their total number of rows, and the paths of files without rows, which have no action.
    """
    common = {
        "table_uri": table_uri,
        "schema": schema_to_json(schema),
        "partition_columns": list(partition_columns),
        "configuration": configuration,
    }
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
