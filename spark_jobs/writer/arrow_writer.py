"""Writing a DataFrame's rows through Arrow: each task writes files with delta_core's writer and stores.

Needs no connector and no rename: a file appears complete, under its final name, and each task returns the
`add` actions of its own files. Only the actions of successful attempts reach the commit, so files of failed,
killed or repeated attempts are orphan files, which no version refers to and a vacuum deletes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.actions import AddCdcFile, AddFile
from delta_core.actions.json_codec import add_from_json, add_to_json
from delta_core.data.file_writer import choose_compression
from delta_core.data.row_batch import MaterializedRowIds, RowBatch
from delta_core.data.row_files import FileOptions, RowFileWriter
from delta_core.data.write_plan import WritePlan
from delta_core.dml.change_files import Change, ChangeFileWriter
from delta_core.errors import DeltaError
from delta_core.schema.enforcement import conform
from delta_core.schema.variant_structs import with_variant_struct_fields
from spark_jobs.engine_io import ExecutorReach, TableReach
from spark_jobs.expressions.checks import Check
from spark_jobs.failures import ViolationToken, as_delta_error, violation
from spark_jobs.packaging import ensure_importable
from spark_jobs.worker_tasks import BatchFunction, error_from_json, error_to_json, plain_errors
from spark_jobs.writer.changed_rows import NO_EXTRA_COLUMNS, ExtraColumns, RowKind, change_prefix
from spark_jobs.writer.data_writer import discard_prefix

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_EMPTY_LISTINGS: Final = 10
"""Spark ends the Python process of a killed task after two seconds (`spark.python.task.killTimeout`)."""

_RESULT_SCHEMA: Final = "ok boolean, payload string"


def write_files_through_arrow(
    frame: DataFrame,
    reach: TableReach,
    *,
    plan: WritePlan,
    prefix: str,
    compression: str,
    max_records_per_file: int | None = None,
    extra: ExtraColumns = NO_EXTRA_COLUMNS,
    checks: Sequence[Check] = (),
    token: ViolationToken | None = None,
) -> tuple[list[AddFile], list[AddCdcFile]]:
    """Write the rows below `<table>/<prefix>/`. After an error, the written files are deleted.

    Args:
        frame: the rows, with the table's columns.
        reach: the table's store and the executors' options.
        plan: the write plan of the table. Only its physical step applies: the rows are complete and checked.
        prefix: a directory that no other job writes to. It must not start with `_` or `.`.
        compression: the codec.
        max_records_per_file: the maximum number of rows of a file.
        extra: the columns of the rows besides those of the table.
        checks, token: the arguments of `with_checks` for `frame`.

    Returns:
        The actions of the data files and of the change data files.

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
            reach.in_executors,
            json.dumps(plan.to_json()),
            prefix=prefix,
            compression=compression,
            max_records_per_file=max_records_per_file,
            extra=extra,
        )
        found = _mapped(frame, write, plan.schema.names).collect()
        for row in found:
            if not row["ok"]:
                raise error_from_json(row["payload"])
        files = [json.loads(row["payload"]) for row in found]
        adds = [add_from_json(file["add"]) for file in files if "add" in file]
        changes = [AddCdcFile(**file["cdc"]) for file in files if "cdc" in file]
        return sorted(adds, key=lambda add: add.path), sorted(changes, key=lambda file: file.path)
    except BaseException as error:
        # Running tasks would continue to write below the prefix, which is emptied next.
        with contextlib.suppress(Exception):
            spark.interruptTag(tag)
        prefixes = [prefix, *([] if extra.kind is None else [change_prefix(prefix)])]
        discard_prefix(reach.store, *prefixes, tasks_may_run=True, empty_listings=_EMPTY_LISTINGS)
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


def _mapped(frame: DataFrame, write: BatchFunction, names: Sequence[str]) -> DataFrame:
    """`frame.mapInArrow(write)`, which does not find columns with dots or backticks in their names."""
    if not any("." in name or "`" in name for name in names):
        return frame.mapInArrow(write, _RESULT_SCHEMA)
    columns = frame.columns

    def named(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return iter(write(batch.rename_columns(columns) for batch in batches))

    plain = frame.toDF(*[f"c{index}" for index in range(len(columns))])
    return plain.mapInArrow(named, _RESULT_SCHEMA)


def _writer(
    table: ExecutorReach,
    plan_json: str,
    *,
    prefix: str,
    compression: str,
    max_records_per_file: int | None,
    extra: ExtraColumns,
) -> BatchFunction:
    def write_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            with plain_errors():
                rows = [(True, json.dumps(file)) for file in _written(batches)]
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
        rows = _TaskRows(plan, extra)
        options = FileOptions(
            directory=prefix,
            compression=choose_compression(compression, properties),
            max_rows_per_file=max_records_per_file,
        )
        with (
            RowFileWriter(
                store, plan=plan, options=options, properties=properties, keep_row_ids=extra.hidden
            ) as writer,
            ChangeFileWriter(store, plan, directory=change_prefix(prefix)) as changes,
        ):
            for batch in batches:
                writer.write(rows.live(batch))
                for changed, change in rows.changed(batch):
                    changes.write(changed, change)
            written = changes.finish()
            return [
                *({"add": add_to_json(add)} for add in writer.finish()),
                *({"cdc": dataclasses.asdict(file)} for file in written),
            ]

    return write_batches


class _TaskRows:
    """The parts of a task's batches: rows of data files, and rows of change data files."""

    def __init__(self, plan: WritePlan, extra: ExtraColumns) -> None:
        self._plan = plan
        self._extra = extra
        # Spark's variants are structs of two byte strings.
        self._schema = with_variant_struct_fields(plan.schema) if plan.has_variants else plan.schema

    def live(self, batch: pa.RecordBatch) -> RowBatch:
        """The rows of data files, with their hidden columns."""
        if self._extra.kind is not None:
            batch = batch.filter(pc.not_equal(batch.column(self._extra.kind), int(RowKind.DELETED)))
        hidden, tracking = None, self._plan.row_tracking
        if self._extra.hidden and tracking is not None:
            hidden = MaterializedRowIds(
                row_ids=batch.column(tracking.row_id_column),
                row_commit_versions=batch.column(tracking.row_commit_version_column),
            )
        return RowBatch(columns=self._conformed(batch), hidden=hidden)

    def changed(self, batch: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, Change]]:
        """The rows of change data files, and how they changed."""
        if self._extra.kind is None or self._extra.before is None:
            return
        kinds = batch.column(self._extra.kind)
        updated = batch.filter(pc.equal(kinds, int(RowKind.UPDATED)))
        before = updated.column(self._extra.before)
        old = pa.RecordBatch.from_arrays(before.flatten(), names=self._plan.schema.names)
        yield self._conformed(old), Change.BEFORE_UPDATE
        yield self._conformed(updated), Change.AFTER_UPDATE
        for kind, change in ((RowKind.INSERTED, Change.INSERT), (RowKind.DELETED, Change.DELETE)):
            yield self._conformed(batch.filter(pc.equal(kinds, int(kind)))), change

    def _conformed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = batch.select(self._plan.schema.names)
        return conform(self._schema, columns, partition_columns=self._plan.partition_columns)
