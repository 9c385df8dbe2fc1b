"""Results as DataFrames with delta-spark's schemas."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from delta_core.actions import CommitInfo
from delta_core.maintenance import RestorePlan
from delta_core.snapshot.detail import table_detail
from delta_core.snapshot.history import HistoryEntry
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.upgrade import supported_features
from spark_jobs.delta_table.recorded_predicates import as_recorded

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HISTORY = (
    "version bigint, timestamp timestamp_ltz, userId string, userName string, operation string, "
    "operationParameters map<string,string>, "
    "job struct<jobId:string,jobName:string,jobRunId:string,runId:string,jobOwnerId:string,"
    "triggerType:string>, notebook struct<notebookId:string>, clusterId string, readVersion bigint, "
    "isolationLevel string, isBlindAppend boolean, operationMetrics map<string,string>, "
    "userMetadata string, engineInfo string"
)

DETAIL = (
    "format string, id string, name string, description string, location string, "
    "createdAt timestamp_ltz, lastModified timestamp_ltz, partitionColumns array<string>, "
    "clusteringColumns array<string>, numFiles bigint, sizeInBytes bigint, "
    "properties map<string,string>, minReaderVersion int, minWriterVersion int, "
    "tableFeatures array<string>"
)

RESTORE = (
    "table_size_after_restore bigint, num_of_files_after_restore bigint, num_removed_files bigint, "
    "num_restored_files bigint, removed_files_size bigint, restored_files_size bigint"
)

MERGE = (
    "num_affected_rows bigint not null, num_updated_rows bigint not null, "
    "num_deleted_rows bigint not null, num_inserted_rows bigint not null"
)

_SIZES = "struct<min:bigint,max:bigint,avg:double,totalFiles:bigint,totalSize:bigint>"
_FILES = "struct<num:bigint,size:bigint>"
_CUBE_FILES = "struct<numFiles:bigint,size:bigint>"
OPTIMIZE = (
    "path string, metrics struct<"
    f"numFilesAdded:bigint,numFilesRemoved:bigint,filesAdded:{_SIZES},filesRemoved:{_SIZES},"
    "partitionsOptimized:bigint,"
    f"zOrderStats:struct<strategyName:string,inputCubeFiles:{_FILES},inputOtherFiles:{_FILES},"
    f"inputNumCubes:bigint,mergedFiles:{_FILES},numOutputCubes:bigint,mergedNumCubes:bigint>,"
    f"clusteringStats:struct<inputZCubeFiles:{_CUBE_FILES},inputOtherFiles:{_CUBE_FILES},"
    f"inputNumZCubes:bigint,mergedFiles:{_CUBE_FILES},numOutputZCubes:bigint>,"
    "numBins:bigint,numBatches:bigint,totalConsideredFiles:bigint,totalFilesSkipped:bigint,"
    "preserveInsertionOrder:boolean,numFilesSkippedToReduceWriteAmplification:bigint,"
    "numBytesSkippedToReduceWriteAmplification:bigint,startTimeMs:bigint,endTimeMs:bigint,"
    "totalClusterParallelism:bigint,totalScheduledTasks:bigint,"
    "autoCompactParallelismStats:struct<maxClusterActiveParallelism:bigint,"
    "minClusterActiveParallelism:bigint,maxSessionActiveParallelism:bigint,"
    "minSessionActiveParallelism:bigint>,"
    "deletionVectorStats:struct<numDeletionVectorsRemoved:bigint,numDeletionVectorRowsRemoved:bigint>,"
    "numTableColumns:bigint,numTableColumnsWithStats:bigint>"
)


def history_frame(spark: SparkSession, entries: list[HistoryEntry]) -> DataFrame:
    """Commits, newest first, as `DESCRIBE HISTORY` has them."""
    return spark.createDataFrame([_history_row(entry) for entry in entries], HISTORY)


def _history_row(entry: HistoryEntry) -> tuple[Any, ...]:
    info = entry.commit_info
    extra = info.extra
    return (
        entry.version,
        moment(entry.timestamp_ms),
        _text(extra.get("userId")),
        info.user_name,
        info.operation,
        _parameters(info),
        _struct(extra.get("job"), ("jobId", "jobName", "jobRunId", "runId", "jobOwnerId", "triggerType")),
        _struct(extra.get("notebook"), ("notebookId",)),
        _text(extra.get("clusterId")),
        info.read_version,
        info.isolation_level,
        info.is_blind_append,
        {key: _parameter(value) for key, value in info.operation_metrics.items()}
        if info.operation_metrics
        else None,
        info.user_metadata,
        info.engine_info,
    )


def detail_frame(spark: SparkSession, snapshot: Snapshot, *, name: str | None) -> DataFrame:
    """One row that describes a table, as `DESCRIBE DETAIL` has it."""
    detail = table_detail(snapshot)
    created = detail["created_time_ms"]
    row = (
        "delta",
        detail["id"],
        name or detail["name"],
        detail["description"],
        detail["uri"],
        None if created is None else moment(created),
        moment(detail["last_modified_ms"]),
        detail["partition_columns"],
        detail["clustering_columns"],
        detail["num_files"],
        detail["size_bytes"],
        detail["configuration"],
        detail["min_reader_version"],
        detail["min_writer_version"],
        sorted(supported_features(snapshot.protocol)),
    )
    return spark.createDataFrame([row], DETAIL)


def restore_frame(spark: SparkSession, plan: RestorePlan) -> DataFrame:
    """One row with the metrics of a restore."""
    row = (
        plan.bytes_after,
        plan.files_after,
        len(plan.removed),
        len(plan.added),
        sum(file.size_bytes for file in plan.removed),
        sum(file.size_bytes for file in plan.added),
    )
    return spark.createDataFrame([row], RESTORE)


def merge_frame(spark: SparkSession, metrics: Mapping[str, Any]) -> DataFrame:
    """One row with the numbers of rows that a merge changed."""
    updated, deleted, inserted = (
        int(metrics.get(f"numTargetRows{what}") or 0) for what in ("Updated", "Deleted", "Inserted")
    )
    return spark.createDataFrame([(updated + deleted + inserted, updated, deleted, inserted)], MERGE)


def optimize_frame(spark: SparkSession, snapshot: Snapshot, metrics: Mapping[str, Any]) -> DataFrame:
    """One row with the metrics of an OPTIMIZE; zero for a metric that this library does not have."""
    zeros = {
        "partitionsOptimized": 0,
        "numBins": 0,
        "numBatches": 0,
        "totalConsideredFiles": 0,
        "totalFilesSkipped": 0,
        "numFilesSkippedToReduceWriteAmplification": 0,
        "numBytesSkippedToReduceWriteAmplification": 0,
        "startTimeMs": 0,
        "endTimeMs": 0,
        "totalClusterParallelism": 0,
        "totalScheduledTasks": 0,
        "numTableColumns": len(snapshot.schema.names),
        "numTableColumnsWithStats": 0,
        "preserveInsertionOrder": False,
    }
    from pyspark.sql.types import StructType

    schema = StructType.fromDDL(OPTIMIZE)
    if not isinstance(schema, StructType):
        raise AssertionError("a list of columns is a schema")
    row = (snapshot.store.uri, _fitted({**zeros, **metrics}, schema["metrics"].dataType))
    return spark.createDataFrame([row], schema)


def empty_frame(spark: SparkSession) -> DataFrame:
    """A DataFrame without columns and rows."""
    from pyspark.sql.types import StructType

    return spark.createDataFrame([], StructType([]))


def moment(epoch_ms: int) -> dt.datetime:
    """Epoch milliseconds as a time in UTC."""
    return dt.datetime.fromtimestamp(epoch_ms / 1000, tz=dt.UTC)


def _fitted(value: Any, data_type: Any) -> Any:
    """A mapping as a row with the fields of a struct; other values unchanged."""
    fields = getattr(data_type, "fields", None)
    if fields is None or not isinstance(value, Mapping):
        return value
    return tuple(_fitted(value.get(field.name), field.dataType) for field in fields)


def _struct(value: Any, names: tuple[str, ...]) -> tuple[str | None, ...] | None:
    return tuple(_text(value.get(name)) for name in names) if isinstance(value, Mapping) else None


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _parameters(info: CommitInfo) -> dict[str, str | None]:
    """The operation's parameters; the condition of an OPTIMIZE as delta-spark records it."""
    found = dict(info.operation_parameters or {})
    if info.operation == "OPTIMIZE" and "predicate" in found:
        found["predicate"] = as_recorded(found["predicate"])
    return {key: _parameter(value) for key, value in found.items()}


def _parameter(value: Any) -> str | None:
    """A parameter as the log has it: a string, or the JSON of another value."""
    return value if value is None or isinstance(value, str) else json.dumps(value)
