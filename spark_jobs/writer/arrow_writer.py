"""Writing a DataFrame's rows through Arrow: each task writes files with delta_core's writer and stores.

Needs no connector and no rename: a file appears complete, under its final name, and each task returns the
`add` actions of its own files. Only the actions of successful attempts reach the commit, so files of failed,
killed or repeated attempts are orphan files, which no version refers to and a vacuum deletes.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from delta_core.actions import AddFile
from delta_core.actions.json_codec import add_from_json, add_to_json
from delta_core.data.file_writer import choose_compression
from delta_core.data.row_batch import RowBatch
from delta_core.data.row_files import FileOptions, RowFileWriter
from delta_core.data.write_plan import WritePlan
from delta_core.errors import DeltaError
from delta_core.schema.enforcement import conform
from spark_jobs.engine_io import ExecutorReach, TableReach
from spark_jobs.expressions.checks import Check
from spark_jobs.failures import ViolationToken, as_delta_error, violation
from spark_jobs.packaging import ensure_importable
from spark_jobs.worker_tasks import BatchFunction, error_from_json, error_to_json, plain_errors
from spark_jobs.writer.data_writer import discard_prefix

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_RESULT_SCHEMA: Final = "ok boolean, payload string"


def write_files_through_arrow(
    frame: DataFrame,
    reach: TableReach,
    *,
    plan: WritePlan,
    prefix: str,
    compression: str,
    checks: Sequence[Check] = (),
    token: ViolationToken | None = None,
) -> list[AddFile]:
    """Write the rows below `<table>/<prefix>/`. After an error, the written files are deleted.

    Args:
        frame: the rows, with the table's columns.
        reach: the table's store and the executors' options.
        plan: the write plan of the table. Only its physical step applies: the rows are complete and checked.
        prefix: a directory that no other job writes to. It must not start with `_` or `.`.
        compression: the codec.
        checks, token: the arguments of `with_checks` for `frame`.

    Raises:
        ConstraintViolationError: a row violates a check.
        DeltaError: a store failed in an executor.
        JobFailedError: Spark failed.
    """
    spark = frame.sparkSession
    tag = f"deltaward-{prefix}"
    spark.addTag(tag)
    try:
        choose_compression(compression, plan.properties)
        ensure_importable(spark)
        write = _writer(
            reach.in_executors, json.dumps(plan.to_json()), prefix=prefix, compression=compression
        )
        found = frame.mapInArrow(write, _RESULT_SCHEMA).collect()
        for row in found:
            if not row["ok"]:
                raise error_from_json(row["payload"])
        adds = [add_from_json(json.loads(row["payload"])) for row in found]
        return sorted(adds, key=lambda add: add.path)
    except BaseException as error:
        # Running tasks would continue to write below the prefix, which is emptied next.
        with contextlib.suppress(Exception):
            spark.interruptTag(tag)
        discard_prefix(reach.store, prefix, tasks_may_run=True)
        if not isinstance(error, Exception):
            raise
        mark = token.find(error) if token is not None else None
        if mark is not None:
            check = checks[mark[0]]
            raise violation(check.name, check.text, mark[1]) from None
        raise as_delta_error(error, doing="writing data files") from error
    finally:
        with contextlib.suppress(Exception):  # a broken connection must not hide the error
            spark.removeTag(tag)


def _writer(table: ExecutorReach, plan_json: str, *, prefix: str, compression: str) -> BatchFunction:
    def write_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            with plain_errors():
                rows = [(True, json.dumps(add)) for add in _written(batches)]
        except DeltaError as error:
            if error.retryable:
                # Spark repeats the task.
                raise
            rows = [(False, error_to_json(error))]
        for ok, payload in rows:
            yield pa.RecordBatch.from_pydict({"ok": [ok], "payload": [payload]})

    def _written(batches: Iterator[pa.RecordBatch]) -> list[dict[str, Any]]:
        store, _ = table.open()
        plan = WritePlan.from_json(json.loads(plan_json))
        properties = plan.properties
        with RowFileWriter(
            store,
            plan=plan,
            options=FileOptions(directory=prefix, compression=choose_compression(compression, properties)),
            properties=properties,
        ) as writer:
            for batch in batches:
                writer.write(
                    RowBatch(columns=conform(plan.schema, batch, partition_columns=plan.partition_columns))
                )
            return [add_to_json(add) for add in writer.finish()]

    return write_batches
