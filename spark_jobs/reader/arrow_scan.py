"""Data files read through Arrow: in Spark's Python workers, with delta_core's reader and stores.

For tables that Spark's own readers do not reach, and for files that they would skip or cannot open: Spark
silently skips files whose name starts with `_` or `.`, even when they are named explicitly, and cannot open a
local file with a colon in its name.

Each task reads a group of files. It gets what the log records about them, and reads them with all features
of the table: deletion vectors, column mapping, widened types.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from delta_core.deletion_vectors.roaring import Positions
from delta_core.deletion_vectors.row_choice import ALL_ROWS, RowChoice
from delta_core.expressions.ast import Expression
from delta_core.scan.record_batches import WHOLE_FILE, FilePart, FileReader, output_fields
from delta_core.scan.row_tracking import FileRowTracking, RowTrackingReader
from delta_core.schema.column_mapping import ColumnMapping
from delta_core.schema.json import schema_from_json, schema_to_json
from delta_core.schema.types import LONG, STRING, StructField, StructType
from delta_core.storage import LogStore
from spark_jobs.engine_io import ExecutorReach, TableReach
from spark_jobs.file_uris import ROW_INDEX, metadata_value
from spark_jobs.packaging import ensure_importable
from spark_jobs.partitioning import one_row_per_partition, parallel_tasks
from spark_jobs.reader.arrow_variants import with_spark_variants
from spark_jobs.reader.table_files import LocatedFile
from spark_jobs.schema import to_spark
from spark_jobs.worker_tasks import BatchFunction, plain_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TASK_BYTES: Final = 128 << 20
"""The most bytes of files that one task reads; a file is split by row groups. As in Spark's own scans."""

OPEN_BYTES: Final = 4 << 20
"""The cost of opening a file, in bytes. As in Spark's own scans."""


def arrow_scan(
    spark: SparkSession,
    reach: TableReach,
    files: Sequence[LocatedFile],
    *,
    schema: StructType,
    constants: Sequence[str],
    mapping: ColumnMapping,
    columns: Sequence[str] | None,
    predicate: Expression | None,
    metadata: Mapping[str, str],
) -> DataFrame:
    """The rows of `files` (at least one file), read in the executors.

    Args:
        spark: the session.
        reach: the stores of the files, in the driver and in the executors. Whether Spark could read the files
            itself does not matter.
        files: the files. A file may occur more than once, with other values or rows.
        schema: the columns of the rows.
        constants: the columns that are constant in each file.
        mapping: the names and ids of the columns in the files.
        columns: columns to return, in this order; None is all.
        predicate: resolved against `schema`; only rows for which it is true are read.
        metadata: additional columns, each with its field of Spark's `_metadata`, whose values they have.
    """
    position = next((name for name, field in metadata.items() if field == ROW_INDEX), None)
    of_files = {name: field for name, field in metadata.items() if field != ROW_INDEX}
    fields = output_fields(schema, columns)
    fields += [] if position is None else [StructField(name=position, data_type=LONG)]
    fields += [StructField(name=name, data_type=STRING) for name in of_files]
    ensure_importable(spark)
    tasks = [json.dumps(group) for group in _groups(files, reach, of_files, parallel_tasks(spark))]
    frame = spark.createDataFrame(
        pa.table({"i": pa.array(range(len(tasks)), pa.int32()), "task": pa.array(tasks, pa.string())})
    )
    read = _reader(
        reach.in_executors,
        schema_to_json(schema),
        constants=tuple(constants),
        mapping=mapping,
        columns=None if columns is None else tuple(columns),
        predicate=predicate,
        position=position,
    )
    output = to_spark(StructType(tuple(fields)))
    return one_row_per_partition(frame, len(tasks), "i").mapInArrow(read, output)


def _groups(
    files: Sequence[LocatedFile], reach: TableReach, of_files: Mapping[str, str], parallel: int
) -> Iterator[list[dict[str, Any]]]:
    """The files of each task, as JSON. A large file is read by several tasks."""
    total = sum((located.file.size_bytes or 0) + OPEN_BYTES for located in files)
    limit = min(TASK_BYTES, max(OPEN_BYTES, -(-total // parallel)))
    group: list[dict[str, Any]] = []
    filled = 0
    for located in files:
        size = located.file.size_bytes or 0
        item = _item(located, reach, of_files)
        parts = max(1, -(-size // limit))
        for part in range(parts):
            weight = size // parts + OPEN_BYTES
            if group and filled + weight > limit:
                yield group
                group, filled = [], 0
            group.append(item if parts == 1 else {**item, "part": {"index": part, "count": parts}})
            filled += weight
    yield group


def _item(located: LocatedFile, reach: TableReach, of_files: Mapping[str, str]) -> dict[str, Any]:
    """A file in the JSON of a task."""
    file, place = located.file, located.place
    item: dict[str, Any] = {"path": file.path, "values": dict(file.values)}
    if not file.rows.chooses_all:
        item["rows"] = file.rows.to_document()
    if of_files:
        root = reach.root_of(place.store)
        item["added"] = {name: metadata_value(field, root, place.path) for name, field in of_files.items()}
    return item


def _reader(
    table: ExecutorReach,
    schema_json: str,
    *,
    constants: tuple[str, ...],
    mapping: ColumnMapping,
    columns: tuple[str, ...] | None,
    predicate: Expression | None,
    position: str | None,
) -> BatchFunction:
    def read_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with plain_errors():
            store, access = table.open()
            reader = FileReader(
                schema=schema_from_json(schema_json),
                columns=columns,
                predicate=predicate,
                partition_columns=constants,
                mapping=mapping,
                row_tracking=None if position is None else _PositionReader(position),
                access=access,
                use_threads=False,
            )
            for batch in batches:
                for task_json in batch.column("task").to_pylist():
                    for item in json.loads(task_json):
                        for rows in _rows(reader, store, item):
                            found = with_spark_variants(rows, reader.arrow_schema)
                            yield _with_values(found, item.get("added", {}))

    return read_batches


def _rows(reader: FileReader, store: LogStore, item: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
    rows = RowChoice.from_document(item["rows"]) if "rows" in item else ALL_ROWS
    part = FilePart(**item["part"]) if "part" in item else WHOLE_FILE
    return reader.read_chosen(store, item["path"], item["values"], rows, part=part)


def _with_values(rows: pa.RecordBatch, added: Mapping[str, str]) -> pa.RecordBatch:
    for name, value in added.items():
        rows = rows.append_column(name, pa.repeat(pa.scalar(value, pa.string()), rows.num_rows))
    return rows


class _PositionReader(RowTrackingReader):
    """Positions in the file as a column, in the place of row ids."""

    def __init__(self, name: str) -> None:
        self.columns = (name,)

    def names_in_file(self, names: Iterable[str]) -> list[str]:
        return []

    def arrays(
        self, read: Mapping[str, pa.Array], positions: Positions, numbers: FileRowTracking, path: str
    ) -> dict[str, pa.Array]:
        return {self.columns[0]: pa.array(positions, pa.int64())}
