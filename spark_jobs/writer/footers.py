"""From a written Parquet file to what the log says about it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.parquet as pq

from delta_core.actions import AddFile
from delta_core.data.statistics_collector import statistics_from_footer
from delta_core.execution.executor import Executor, JsonObject
from delta_core.schema.json import schema_from_json, schema_to_json
from delta_core.schema.partition_values import HIVE_NULL, unescape_hive
from delta_core.schema.types import StructType
from delta_core.storage.lent import task_store
from delta_core.storage.log_store import ObjectInfo
from delta_core.storage.uri import encode_data_path
from delta_core.table_features.table_properties import TableProperties


def describe_file(task: JsonObject) -> JsonObject:
    """Row count and statistics of one file, from its footer. One small read.

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
    files: Sequence[ObjectInfo],
    *,
    table_uri: str,
    prefix: str,
    schema: StructType,
    partition_columns: Sequence[str],
    configuration: dict[str, str],
) -> tuple[list[AddFile], int, list[str]]:
    """The `add` actions of the files below `prefix`.

    Returns:
        The actions, the number of rows in them, and the paths of files without rows, which get no action.
    """
    common = {
        "table_uri": table_uri,
        "schema": schema_to_json(schema),
        "partition_columns": list(partition_columns),
        "configuration": configuration,
    }
    tasks = [{**common, "path": info.path} for info in files]
    adds: list[AddFile | None] = [None] * len(files)
    empty: list[str] = []
    rows = 0
    for index, result in executor.map(describe_file, tasks):
        info = files[index]
        if result["rows"] == 0:
            empty.append(info.path)
            continue
        rows += result["rows"]
        adds[index] = AddFile(
            path=encode_data_path(info.path),
            partition_values=partition_values_of(
                info.path, prefix=prefix, partition_columns=partition_columns
            ),
            size_bytes=info.size_bytes,
            modification_time_ms=info.modified_ms,
            data_change=True,
            stats=result["stats"],
        )
    return [add for add in adds if add is not None], rows, empty


def partition_values_of(path: str, *, prefix: str, partition_columns: Sequence[str]) -> dict[str, str | None]:
    """The values that the directories between `prefix` and the file's name spell."""
    values: dict[str, str | None] = {}
    for directory in path.removeprefix(prefix + "/").split("/")[:-1]:
        name, _, text = directory.partition("=")
        values[unescape_hive(name)] = None if text == HIVE_NULL else unescape_hive(text)
    return {column: values.get(column) for column in partition_columns}
