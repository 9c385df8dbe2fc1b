"""Delta Lake reads, writes and jobs on Spark, through the public DataFrame API only.

The exported names load on first use, so that importing the package imports neither pyspark nor pyarrow.
"""

from __future__ import annotations

from typing import Any

from delta_core.on_demand import imported

_EXPORTS = {
    "ConnectServer": "spark_jobs.connect_server",
    "DeltaColumnBuilder": "spark_jobs.delta_table.column_builder",
    "DeltaMergeBuilder": "spark_jobs.delta_table.merge_builder",
    "DeltaOptimizeBuilder": "spark_jobs.delta_table.optimize_builder",
    "DeltaTable": "spark_jobs.delta_table.table",
    "DeltaTableBuilder": "spark_jobs.delta_table.table_builder",
    "IdentityGenerator": "spark_jobs.delta_table.column_builder",
    "SparkExecutor": "spark_jobs.spark_executor",
    "delete": "spark_jobs.dml.delete",
    "files": "spark_jobs.reader.files",
    "get_session": "spark_jobs.session",
    "last_commit": "spark_jobs.writer.commits",
    "last_result": "spark_jobs.writer.commits",
    "merge": "spark_jobs.dml.merge",
    "read": "spark_jobs.reader.read",
    "read_changes": "spark_jobs.reader.changes",
    "stream": "spark_jobs.streaming.source",
    "stream_error": "spark_jobs.streaming.errors",
    "stream_to": "spark_jobs.streaming.sink",
    "sql": "spark_jobs.sql_statements.sql",
    "table": "spark_jobs.names.read",
    "update": "spark_jobs.dml.update",
    "write": "spark_jobs.writer.write",
}

__all__ = [*sorted(_EXPORTS)]


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(imported(_EXPORTS[name]), name)


def __dir__() -> list[str]:
    return __all__
