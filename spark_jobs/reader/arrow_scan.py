"""Files that Spark's native scan would skip or cannot open, read through Arrow on the workers.

Spark silently skips files whose name starts with `_` or `.`, even when they are named explicitly. It cannot
open a local file with a colon in its name. A table may contain such files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from delta_core.scan.record_batches import read_file
from delta_core.schema.json import schema_from_json, schema_to_json
from delta_core.schema.types import StructType
from delta_core.storage import open_store
from spark_jobs.packaging import ensure_importable
from spark_jobs.partitioning import one_row_per_partition
from spark_jobs.reader.data_files import DataFiles
from spark_jobs.schema import to_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BatchFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def arrow_scan(
    spark: SparkSession,
    files: DataFiles,
    *,
    table_uri: str,
    schema: StructType,
    partition_columns: Sequence[str],
) -> DataFrame:
    """The rows of `files` with the table's columns. It has about a quarter of the speed of a native scan."""
    ensure_importable(spark)
    tasks = [
        json.dumps({"path": path, "partition_values": dict(zip(partition_columns, values, strict=True))})
        for path, values in zip(files.paths, files.partitions, strict=True)
    ]
    frame = spark.createDataFrame([(index, task) for index, task in enumerate(tasks)], "i int, task string")
    spread = one_row_per_partition(frame, len(tasks), "i")
    read = _reader(table_uri, schema_to_json(schema), tuple(partition_columns))
    return spread.mapInArrow(read, to_spark(schema))


def _reader(table_uri: str, schema_json: str, partition_columns: tuple[str, ...]) -> BatchFunction:
    def read_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = schema_from_json(schema_json)
        store = open_store(table_uri)
        for batch in batches:
            for task_json in batch.column("task").to_pylist():
                task = json.loads(task_json)
                yield from read_file(
                    store,
                    task["path"],
                    schema=schema,
                    partition_values=task["partition_values"],
                    partition_columns=partition_columns,
                )

    return read_batches
